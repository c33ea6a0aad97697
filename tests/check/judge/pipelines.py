"""Pipelines: gas and water flow, friction, networks, pumps, surges, heat, leaks, corrosion."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, REPEATED, SIGN, Book, mends, t

BOOK = Book("pipelines")
GRAVITY = 9.80665


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(55, 70, 4)), t(rng.uniform(30, 48, 4)), t(rng.uniform(0.4, 0.9, 4))),
        {"length": 85.0},
    ),
    "a higher pressure at the outlet gives less flow: the sign of its gradient is wrong",
    SIGN,
    mends("-half * s.p2", "-s.p2 * half", "half * -s.p2", "-(half * s.p2)", "-pb.asarray(half * s"),
)
def weymouth_flow():
    @pb.autograd_function
    def weymouth_flow(ctx, inlet, outlet, diameter, length, gravity=0.6, temperature=288.0, z=0.9):
        """Gas flow in millions of m3 a day; pressures in bar, diameter in m, length in km."""
        p1, p2, D = inlet.numpy(), outlet.numpy(), diameter.numpy()
        fall = p1**2 - p2**2
        if (fall <= 0).any():
            raise ValueError("gas flows from the higher pressure to the lower one")
        scale = 43.0 * np.sqrt(1 / (gravity * temperature * length * z))
        flow = scale * np.sqrt(fall) * D ** (8 / 3)
        ctx.save_for_backward(p1=p1, p2=p2, D=D, fall=fall, flow=flow)
        return pb.asarray(flow.copy())

    @weymouth_flow.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        carried = grad_output.numpy() * s.flow
        half = carried / s.fall
        return {
            "inlet": pb.asarray(half * s.p1),
            "outlet": pb.asarray(half * s.p2),
            "diameter": pb.asarray(carried * 8 / 3 / s.D),
        }

    return weymouth_flow


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.05, 0.2, 5)), t(rng.uniform(0.25, 0.5, 5)), t(rng.uniform(0.2, 1.5, 5))),
        {"friction": 0.018},
    ),
    "the velocity depends on the diameter as well: those terms are missing",
    MISSING,
    r"\bvelocity\b|chain rule|through v\b|\barea\b|cross.section|held fixed|as (?:a )?constant",
    r"-? ?5\b|fifth|-4\b|fourth",
    mends("-5 * ", "5 * carried", "4 * carried", "by_v * -2 * ", "-2 * ctx.v / D", "2 * ctx.v / D"),
)
def pressure_along():
    @pb.autograd_function
    def pressure_along(ctx, flow, diameter, length, friction=0.02, density=860.0, start=40.0):
        """Pressure in bar after each of the pieces of a line, in order.

        flow: m3/s; diameter: m; length: km; all of shape (n,) and positive.
        """
        Q, D, L = flow.numpy(), diameter.numpy(), length.numpy()
        v = 4 * Q / (np.pi * D**2)
        fall = friction * 1e3 * L / D * density * v**2 / 2 / 1e5
        ctx.save_for_backward(Q=Q, D=D, L=L, fall=fall)
        ctx.v = v
        return pb.asarray(start - np.cumsum(fall))

    @pressure_along.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        Q, D, L, fall = ctx.saved_variables
        carried = -np.cumsum(grad_output.numpy()[::-1])[::-1] * fall
        return {
            "flow": pb.asarray(2 * carried / Q),
            "diameter": pb.asarray(-carried / D),
            "length": pb.asarray(carried / L),
        }

    return pressure_along


def pipes(ends):
    def given(rng):
        ends_ = np.array(ends)
        level = 60 - 4.0 * np.arange(ends_.max() + 1) + rng.uniform(-1, 1, ends_.max() + 1)
        return (t(level), t(rng.uniform(0.5, 3, len(ends))), ends_[:, 0], ends_[:, 1]), {}

    return given


@BOOK.wrong(
    pipes([(0, 1), (1, 2), (2, 3)]),
    "where pipes leave the same node, += with repeated indices keeps only one of their gradients",
    REPEATED,
    r"add\.at|bincount|accumul|\bscatter",
    mends("np.add.at(", "np.bincount(", "pb.index_add"),
    where="a node has two pipes of the same direction",
    shows=pipes([(0, 1), (0, 2), (1, 3), (2, 3)]),
)
def pipe_flows():
    @pb.autograd_function
    def pipe_flows(ctx, head, conductance, start, end):
        h, c = head.numpy(), conductance.numpy()
        fall = h[start] - h[end]
        root = np.sqrt(np.abs(fall))
        ctx.save_for_backward(h=h, c=c, fall=fall, root=root)
        ctx.start, ctx.end = start, end
        return pb.asarray(c * np.sign(fall) * root)

    @pipe_flows.backward
    @pb.once_differentiable
    def _(ctx, g):
        h, c, fall, root = ctx.saved_variables
        gn = g.numpy()
        by_fall = gn * c / (2 * root)
        grad_head = np.zeros_like(h)
        grad_head[ctx.start] += by_fall
        grad_head[ctx.end] -= by_fall
        return pb.asarray(grad_head), pb.asarray(gn * np.sign(fall) * root), None, None

    return pipe_flows


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.004, 0.8, 1.6, 2.4]) * rng.uniform(0.9, 1.1, 4)),
            t(rng.uniform(0.1, 0.4, 4)),
            t(rng.uniform(0.05, 0.5, 4)),
        ),
        {"viscosity": 1.1},
    )
)
def colebrook_friction():
    def forward(ctx, velocity, diameter, roughness, viscosity=1.0, steps=30):
        """Friction factor by Colebrook and White, or that of laminar flow below Re 2300.

        velocity: m/s, positive; diameter: m; roughness: mm; all (n,); viscosity: mm2/s.
        """
        v, D, k = velocity.numpy(), diameter.numpy(), roughness.numpy()
        reynolds, rough = 1e6 * v * D / viscosity, 1e-3 * k / D / 3.7
        laminar = reynolds < 2300
        x = -1.8 * np.log10(rough**1.11 + 6.9 / np.maximum(reynolds, 2300))
        for _ in range(steps):
            inner = rough + 2.51 * x / reynolds
            by_x = 1 + 2 / np.log(10) * 2.51 / reynolds / inner
            step = (x + 2 * np.log10(inner)) / by_x
            x = np.maximum(x - step, 0.1 * x)
            if np.abs(step[~laminar]).max(initial=0.0) < 1e-13:
                break
        f = np.where(laminar, 64 / reynolds, x**-2.0)
        inner = rough + 2.51 * x / reynolds
        by_x = 1 + 2 / np.log(10) * 2.51 / reynolds / inner
        by_inner = 2 * x**-3.0 / by_x * 2 / np.log(10) / inner
        by_re = np.where(laminar, -64 / reynolds**2, -by_inner * 2.51 * x / reynolds**2)
        by_rough = np.where(laminar, 0.0, by_inner)
        ctx.save_for_backward(v=v, D=D, by_re=by_re * reynolds, by_rough=by_rough, rough=rough)
        return pb.asarray(f)

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "velocity": pb.asarray(gn * s.by_re / s.v),
            "diameter": pb.asarray(gn * (s.by_re - s.by_rough * s.rough) / s.D),
            "roughness": pb.asarray(gn * s.by_rough * 1e-3 / s.D / 3.7),
        }

    return pb.autograd_function(forward, backward, name="colebrook_friction")


def closing(rng):
    opening = np.array([1.0, 0.9, 0.75, 0.55, 0.35, 0.2, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05])
    return (t(opening * rng.uniform(0.97, 1, 12)), t(1.3), t(140 + 9 * rng.random())), {
        "reaches": 3
    }


@BOOK.right(closing)
def valve_surge():
    @pb.autograd_function
    def valve_surge(ctx, opening, velocity, reservoir, reaches=4, wave=1100.0):
        """Head at a closing valve, a step for each reach that the wave passes (no friction).

        opening: (n,), parts of the valve's opening; velocity: at first, with the valve open.
        """
        B, V0, HR = wave / GRAVITY, velocity.item(), reservoir.item()
        H, V, roots, out = np.full(reaches + 1, HR), np.full(reaches + 1, V0), [], []
        for tau in opening.numpy():
            plus, minus = H[:-1] + B * V[:-1], H[1:] - B * V[1:]
            c = B * V0 * tau / np.sqrt(HR)
            if plus[-1] <= 0:
                raise ValueError("the column of water separates")
            root = (np.sqrt(c**2 + 4 * plus[-1]) - c) / 2
            H = np.concatenate([[HR], (plus[:-1] + minus[1:]) / 2, [root**2]])
            V = np.concatenate([[HR], (plus[:-1] - minus[1:]) / 2, [plus[-1] - root**2]]) / B
            V[0] -= minus[0] / B
            roots.append((root, c))
            out.append(H[-1])
        ctx.roots, ctx.opening, ctx.shape = roots, opening, (reaches, B, V0, HR)
        return pb.asarray(np.array(out))

    @valve_surge.backward
    @pb.once_differentiable
    def _(ctx, g):
        n, B, V0, HR = ctx.shape
        tau, gH, gV = ctx.opening.numpy(), np.zeros(n + 1), np.zeros(n + 1)
        by_tau, by_V0, by_HR = np.zeros_like(tau), 0.0, 0.0
        for k in reversed(range(len(tau))):
            root, c = ctx.roots[k]
            gH[-1] += g.numpy()[k]
            by_root = 2 * root * (gH[-1] - gV[-1] / B) / (2 * root + c)
            by_c = -by_root * root
            by_tau[k] = by_c * B * V0 / np.sqrt(HR)
            by_V0 += by_c * B * tau[k] / np.sqrt(HR)
            by_HR += -by_c * c / (2 * HR) + gH[0] + gV[0] / B
            plus = np.append(gH[1:-1] / 2 + gV[1:-1] / (2 * B), by_root + gV[-1] / B)
            minus = np.append(-gV[0] / B, gH[1:-1] / 2 - gV[1:-1] / (2 * B))
            gH, gV = np.append(plus, 0), np.append(B * plus, 0)
            gH[1:] += minus
            gV[1:] -= B * minus
        return {
            "opening": pb.asarray(by_tau),
            "velocity": by_V0 + gV.sum(),
            "reservoir": by_HR + gH.sum(),
        }

    return valve_surge


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.85, 1.05, 4)), t(np.array([20.0, 31, 44, 70])), t(rng.uniform(0.3, 2, 4))),
        {"pumps": 2},
    )
)
def pumping_point():
    @pb.autograd_function
    def pumping_point(ctx, speed, lift, resistance, pumps=1, curve=(58.0, 0.9)):
        """Flow of equal pumps side by side; none where they cannot overcome the lift."""
        top, bend = curve
        w, k = speed.numpy(), resistance.numpy() + bend / pumps**2
        spare = np.maximum(top * w**2 - lift.numpy(), 0.0)
        ctx.save_for_backward(w=w, k=k, flow=np.sqrt(spare / k))
        ctx.top = top
        return pb.asarray(np.sqrt(spare / k))

    @pumping_point.backward
    @pb.once_differentiable
    def _(ctx, g):
        w, k, flow = ctx.saved_variables
        runs = flow > 0
        by_spare = np.where(runs, g.numpy() / (2 * k * np.where(runs, flow, 1)), 0.0)
        return (
            pb.asarray(by_spare * 2 * ctx.top * w),
            pb.asarray(-by_spare),
            pb.asarray(-g.numpy() * flow / (2 * k)),
            None,
            None,
        )

    return pumping_point


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.12, -0.05, 0.0, 0.31]) + 0.005 * rng.random(4)),
            t(rng.uniform(0.2, 0.4, 4)),
            t(rng.uniform(95, 140, 4)),
        ),
        {"length": np.array([310.0, 120, 75, 940]), "fittings": ("bend", "tee", "bend")},
    )
)
def head_losses():
    LOSS = {"bend": 0.75, "tee": 1.8, "gate": 0.2, "globe": 10.0, "exit": 1.0}

    @pb.autograd_function
    def head_losses(ctx, flow, diameter, smoothness, length, fittings=()):
        Q, D, C = flow.numpy(), diameter.numpy(), smoothness.numpy()
        unknown = set(fittings) - set(LOSS)
        if unknown:
            raise ValueError(f"no fittings of that name: {sorted(unknown)}")
        per_flow = 10.67 * length * np.abs(Q) ** 0.852 / (C**1.852 * D**4.8704)
        minor = sum(LOSS[f] for f in fittings) * 8 * np.abs(Q) / (np.pi**2 * GRAVITY * D**4)
        ctx.save_for_backward(Q=Q, D=D, C=C, per_flow=per_flow, minor=minor)
        return pb.asarray((per_flow + minor) * Q)

    @head_losses.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "flow": pb.asarray(gn * (1.852 * s.per_flow + 2 * s.minor)),
            "diameter": pb.asarray(-gn * s.Q * (4.8704 * s.per_flow + 4 * s.minor) / s.D),
            "smoothness": pb.asarray(-1.852 * gn * s.Q * s.per_flow / s.C),
        }

    return head_losses


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2.5, 4)), t(rng.uniform(0.2, 0.9, 6)), t(np.array(64.0))),
        {"ends": [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (2, 4)]},
    )
)
def network_heads():
    @pb.autograd_function
    def network_heads(ctx, demand, resistance, source, ends, steps=60, tol=1e-12):
        """Heads at the nodes of a looped network of pipes with the loss R q |q|.

        demand: (nodes - 1,), of all nodes but 0, which is the source; resistance: (pipes,);
        source: the head there; ends: pairs of nodes.
        """
        d, R, hs = demand.numpy(), resistance.numpy(), source.item()
        links = np.zeros((len(R), len(d) + 1))
        for row, (a, b) in enumerate(ends):
            links[row, a], links[row, b] = 1, -1
        fixed, free = links[:, 0], links[:, 1:]
        q = np.ones(len(R))
        for _ in range(steps):
            w = 1 / (2 * R * np.maximum(np.abs(q), 1e-9))
            right = -d - free.T @ (q / 2 + w * fixed * hs)
            h = np.linalg.solve(free.T @ (w[:, None] * free), right)
            new = q / 2 + w * (free @ h + fixed * hs)
            moved, q = np.abs(new - q).max(), new
            if moved < tol * np.abs(q).max():
                break
        else:
            raise ArithmeticError("the flows of the network do not converge")
        ctx.save_for_backward(R=R, q=q, free=free, fixed=fixed)
        return pb.asarray(h)

    @network_heads.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        R, q, free, fixed = ctx.saved_variables
        w = 1 / (2 * R * np.abs(q))
        adjoint = np.linalg.solve(free.T @ (w[:, None] * free), grad_output.numpy())
        across = w * (free @ adjoint)
        return {
            "demand": pb.asarray(-adjoint),
            "resistance": pb.asarray(across * q * np.abs(q)),
            "source": -(across @ fixed),
        }

    return network_heads


@BOOK.right(
    lambda rng: (
        (t(68.0), t(rng.uniform(1.5, 6, 5)), t(rng.uniform(4, 15, 5)), t(np.array(85.0))),
        {"length": np.array([4.0, 12.5, 7.5, 20.0, 3.0]), "diameter": 0.6},
    )
)
def line_temperature():
    class LineTemperature(pb.Function):
        """Temperature of warm oil along a buried line, by pieces; lengths in km, flow in kg/s."""

        @staticmethod
        def forward(ctx, inlet, loss, ground, flow, length, diameter=0.5, heat=2.0):
            U, around, m, T = loss.numpy(), ground.numpy(), flow.item(), inlet.item()
            decay = np.exp(-np.pi * diameter * U * length / (m * heat))
            out, excess = np.empty(len(U)), np.empty(len(U))
            for k in range(len(U)):
                excess[k] = T - around[k]
                T = out[k] = around[k] + excess[k] * decay[k]
            ctx.save_for_backward(U=U, m=m, decay=decay, excess=excess, out=out.copy())
            ctx.per_loss = np.pi * diameter * length / (m * heat)
            return pb.asarray(out)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s, carried = ctx.saved_variables, 0.0
            by_loss, by_ground = np.zeros_like(s.U), np.zeros_like(s.U)
            for k in reversed(range(len(s.U))):
                carried = carried + g.numpy()[k]
                by_loss[k] = -carried * s.excess[k] * s.decay[k] * ctx.per_loss[k]
                by_ground[k] = carried * (1 - s.decay[k])
                carried = carried * s.decay[k]
            by_flow = -(by_loss @ s.U) / s.m
            grads = carried, pb.asarray(by_loss), pb.asarray(by_ground), by_flow
            return (*grads, None, None, None)

    return LineTemperature.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([1.2, 4.8, 6.5, 8.4, 3.0]) + 0.1 * rng.random(5)),
            t(np.array([40.0, 160, 300, 200, 700])),
        ),
        {"diameter": 610.0, "wall": 9.5},
    )
)
def corroded_strength():
    @pb.autograd_function
    def corroded_strength(ctx, depth, length, diameter, wall, strength=415.0, deepest=0.8):
        """Bursting pressure in MPa of pipes with corroded patches (modified B31G); mm.

        Patches deeper than a part `deepest` of the wall must be cut out: their pressure is 0.
        """
        d, L = depth.numpy() / wall, length.numpy()
        z = L**2 / (diameter * wall)
        long = z > 50
        root = np.sqrt(1 + 0.6275 * np.minimum(z, 50) - 0.003375 * np.minimum(z, 50) ** 2)
        folias = np.where(long, 0.032 * z + 3.3, root)
        by_z = np.where(long, 0.032, (0.6275 - 0.00675 * z) / (2 * root))
        whole = 2 * wall * (strength + 69) / diameter * (d <= deepest)
        below = 1 - 0.85 * d / folias
        ctx.save_for_backward(d=d, whole=whole, below=below, folias=folias)
        ctx.by_length, ctx.wall = by_z * 2 * L / (diameter * wall), wall
        return pb.asarray(whole * (1 - 0.85 * d) / below)

    @corroded_strength.backward
    @pb.once_differentiable
    def _(ctx, g):
        d, whole, below, folias = ctx.saved_variables
        carried = g.numpy() * whole * 0.85 / below**2
        by_d = carried * (1 / folias - 1)
        by_length = -carried * (1 - 0.85 * d) * d / folias**2 * ctx.by_length
        return {"depth": pb.asarray(by_d / ctx.wall), "length": pb.asarray(by_length)}

    return corroded_strength


@BOOK.right(
    lambda rng: (
        (
            t(np.array([310.0, 290, 0, 0, 260, 330, 300]) + np.array([9, 9, 0, 0, 9, 9, 9])),
            t(np.array([150.0, 480.0, 733.0, 2900.0]) + rng.uniform(0, 30, 4)),
        ),
        {"dt": 0.5},
    )
)
def batch_arrival():
    def forward(ctx, flow, volume, dt=1.0):
        """Times at which batches have moved through; the end of the record where they have not."""
        q = flow.numpy()
        passed = np.concatenate([[0.0], np.cumsum(q * dt)])
        k = np.searchsorted(passed, volume.numpy(), side="left") - 1
        arrived = k < len(q)
        k = np.clip(k, 0, len(q) - 1)
        speed = np.where(arrived, q[k], 1.0)
        part = np.where(arrived, (volume.numpy() - passed[k]) / speed, dt)
        ctx.k, ctx.arrived, ctx.speed, ctx.part, ctx.dt, ctx.n = k, arrived, speed, part, dt, len(q)
        return pb.asarray(k * dt + part)

    @pb.once_differentiable
    def backward(ctx, g):
        by_volume = np.where(ctx.arrived, g.numpy() / ctx.speed, 0.0)
        before = np.arange(ctx.n)[:, None] < ctx.k
        grad_flow = -ctx.dt * (before * by_volume).sum(axis=1)
        np.add.at(grad_flow, ctx.k, -by_volume * ctx.part)
        return {"flow": pb.asarray(grad_flow), "volume": pb.asarray(by_volume)}

    return pb.autograd_function(forward, backward, name="batch_arrival")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.9, 1.3, 1.7, 6.0, 55.0]) + 0.02 * rng.random(5)),
            t(rng.uniform(3, 20, 5)),
            t(rng.uniform(275, 300, 5)),
        ),
        {"kappa": 1.31},
    )
)
def gas_leak():
    @pb.autograd_function
    def gas_leak(ctx, pressure, hole, temperature, kappa=1.3, mass=17.4, outside=1.013):
        p, d, T = pressure.numpy(), hole.numpy(), temperature.numpy()
        out = np.minimum(outside / p, 1.0)
        critical = (2 / (kappa + 1)) ** (kappa / (kappa - 1))
        x = np.maximum(out, critical)
        bend = x ** (2 / kappa) - x ** ((kappa + 1) / kappa)
        per = 0.62 * np.pi / 4 * d**2 * 0.1 * np.sqrt(2 * kappa / (kappa - 1) * mass / (8314.5 * T))
        rate = per * p * np.sqrt(bend)
        sub = (out > critical) & (out < 1)
        by_x = np.where(
            sub, 2 / kappa * x ** (2 / kappa - 1) - (1 + 1 / kappa) * x ** (1 / kappa), 0
        )
        by_p = per * (np.sqrt(bend) - by_x * x / (2 * np.sqrt(np.where(bend > 0, bend, 1))))
        ctx.save_for_backward(d, T, rate, by_p)
        return pb.asarray(rate.copy())

    @gas_leak.backward
    @pb.once_differentiable
    def _(ctx, g):
        d, T, rate, by_p = ctx.saved_variables
        carried = g.numpy() * rate
        return {
            "pressure": pb.asarray(g.numpy() * by_p),
            "hole": pb.asarray(2 * carried / d),
            "temperature": pb.asarray(-carried / (2 * T)),
        }

    return gas_leak


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(30, 40, 3)),
            t(np.array([60.0, 33.0, 24.0]) * 1.3),
            t(rng.uniform(90, 160, 3)),
        ),
        {"stages": 2},
    )
)
def compressor_power():
    @pb.autograd_function
    def compressor_power(ctx, suction, discharge, flow, stages=1, kappa=1.3, efficiency=0.82):
        ratio = (discharge / suction).clamp(min=1.0)
        n = (kappa - 1) / (kappa * stages)
        ctx.save_for_backward(suction=suction, discharge=discharge, flow=flow, n=n)
        ctx.unit = 0.1378 / (n * efficiency)
        return ctx.unit * flow * (ratio**n - 1)

    @compressor_power.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        ratio = s.discharge / s.suction
        works = ratio > 1
        rise = ratio.clamp(min=1.0) ** s.n
        flow = grad_output * ctx.unit
        by_log = flow * s.flow * s.n * rise * works
        return {
            "suction": -by_log / s.suction,
            "discharge": by_log / s.discharge,
            "flow": flow * (rise - 1),
        }

    return compressor_power


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 9, 4)), t(rng.uniform(-20, 45, 4)), t(rng.uniform(-60, 90, 4))),
        {"size": (508.0, 11.1), "mode": "restrained"},
    )
)
def combined_stress():
    @pb.autograd_function
    def combined_stress(ctx, pressure, warming, bending, size, mode="restrained"):
        """Largest equivalent stress in MPa over the two sides that bend."""
        D, wall = size
        hoop = D / (2 * wall)
        if mode == "restrained":
            along, by_T = 0.3 * hoop, -207e3 * 1.17e-5
        elif mode == "free":
            along, by_T = 0.5 * hoop, 0.0
        else:
            raise ValueError(f"mode is restrained or free, not {mode!r}")
        p = pressure.numpy()
        h, axial = hoop * p, along * p + by_T * warming.numpy()
        both = np.stack([axial + bending.numpy(), axial - bending.numpy()])
        squares = h**2 - h * both + both**2
        side = squares.argmax(axis=0)
        worst = np.take_along_axis(both, side[None], axis=0)[0]
        out = np.sqrt(squares.max(axis=0))
        ctx.save_for_backward(h=h, worst=worst, out=out, sign=1.0 - 2 * side)
        ctx.slopes = hoop, along, by_T
        return pb.asarray(out.copy())

    @combined_stress.backward
    @pb.once_differentiable
    def _(ctx, g):
        h, worst, out, sign = ctx.saved_variables
        hoop, along, by_T = ctx.slopes
        scale = np.divide(g.numpy(), 2 * out, out=np.zeros_like(out), where=out > 0)
        by_h, by_l = scale * (2 * h - worst), scale * (2 * worst - h)
        return {
            "pressure": pb.asarray(by_h * hoop + by_l * along),
            "warming": pb.asarray(by_l * by_T),
            "bending": pb.asarray(by_l * sign),
        }

    return combined_stress


MAINS = [(0, 2, 8.0, 3.5), (1, 2, 5.0, 1.2), (2, 3, 7.0, 6.0), (2, 4, 6.0, 2.5), (3, 4, 2.0, 9.0)]


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 1.2, 5)), t(rng.uniform(0.02, 0.09, 5)), MAINS), {}))
def chlorine_at_nodes():
    class Chlorine(pb.Function):
        @staticmethod
        def forward(ctx, dosed, decay, mains, boost=False):
            """Chlorine in mg/l at nodes; mains: (from, to, flow, hours), sorted.

            dosed: what nodes without an inflow give, with boost what is added at the others.
            """
            c, inflow = dosed.numpy().copy(), np.zeros(len(dosed))
            for _, b, flow, _ in mains:
                inflow[b] += flow
            fed = inflow > 0
            if not boost:
                c[fed] = 0.0
            kept = np.exp(-decay.numpy() * [hours for *_, hours in mains])
            if list(mains) != sorted(mains) or any(a >= b for a, b, *_ in mains):
                raise ValueError("nodes must be numbered along the flow, and mains be sorted")
            for (a, b, flow, _), left in zip(mains, kept, strict=True):
                c[b] += flow / inflow[b] * left * c[a]
            ctx.mains, ctx.kept, ctx.inflow = mains, kept, inflow
            ctx.c, ctx.taken = c.copy(), ~fed | boost
            return pb.asarray(c)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            by_c, by_decay = g.numpy().copy(), np.zeros(len(ctx.mains))
            for k in reversed(range(len(ctx.mains))):
                a, b, flow, hours = ctx.mains[k]
                part = flow / ctx.inflow[b] * ctx.kept[k] * by_c[b]
                by_c[a] += part
                by_decay[k] = -hours * part * ctx.c[a]
            return pb.asarray(by_c * ctx.taken), pb.asarray(by_decay), None, None

    return Chlorine.apply
