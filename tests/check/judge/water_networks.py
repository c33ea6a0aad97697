"""Water networks: head losses, pumps, tanks, valves, leaks, demands, quality, surge."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, Book, at, mends, t

BOOK = Book("water_networks")
GRAVITY = 9.81


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array([0.12, -0.045, 0.08, 0.02, -0.15]) * rng.uniform(0.9, 1.1, 5)),
            t(rng.uniform(0.2, 0.45, 5)),
            t(rng.uniform(95, 140, 5)),
        ),
        {"length": np.array([420.0, 180.0, 650.0, 90.0, 1200.0])},
    ),
    "the flow's exponent is taken for 2, as in Darcy-Weisbach, where the formula has 1.852",
    r"\bexponent|\bpower\b|1\.852|Darcy",
    r"\bfactor\b|\bscaled?\b|\bratio\b|\btimes (the|too)|1\.08|0\.926",
    mends("1.852 * unit", "1.852 * gn", "EXPONENT * unit", "unit * 1.852"),
)
def hazen_williams_loss():
    @pb.autograd_function
    def hazen_williams_loss(ctx, flow, diameter, roughness, length):
        """Head loss of pipes in m, with the sign of the flow.

        flow: (n,) in m3/s; diameter: (n,) in m; roughness: (n,), the Hazen-Williams C;
        length: (n,) in m, an array.
        """
        q, d, c = flow.numpy(), diameter.numpy(), roughness.numpy()
        if (d <= 0).any() or (c <= 0).any():
            raise ValueError("diameter and roughness must be positive")
        unit = 10.67 * length * np.abs(q) ** 0.852 / (c**1.852 * d**4.871)
        ctx.save_for_backward(q=q, d=d, c=c, unit=unit)
        return pb.asarray(unit * q)

    @hazen_williams_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        q, d, c, unit = ctx.saved_variables
        gn = grad_output.numpy()
        loss = gn * unit * q
        return {
            "flow": pb.asarray(2 * unit * gn),
            "diameter": pb.asarray(-4.871 * loss / d),
            "roughness": pb.asarray(-1.852 * loss / c),
        }

    return hazen_williams_loss


def filling(rng, surplus):
    day = np.array([60.0, 80.0, 95.0, 70.0, 55.0, 62.0, 90.0])
    use = np.array([70.0, 60.0, 66.0, 75.0, 62.0, 58.0, 71.0])
    inflow = day * rng.uniform(0.97, 1.03, 7) + surplus
    return (t(inflow), t(use * rng.uniform(0.97, 1.03, 7)), t(np.array(2.2))), {"top": 3.5}


@BOOK.wrong(
    lambda rng: filling(rng, 0.0),
    "a tank that overflows stays at its top, but the gradient goes through as if it rose on",
    r"overflow|\bfull\b|\bspill|\bclip|\bclamp|saturat|\bcapped?\b|plateau|\bat (its|the) top\b",
    at("top"),
    r"(should|must|ought to)( be)? (0|zero)\b|\bupper (limit|bound)|\bconstant\b|\bbranch\b",
    mends("filled[k] > top", "filled[k] >= top", "ctx.top", "s.top", "0 < s.filled[k]"),
    where="a tank overflows",
    shows=lambda rng: filling(rng, 60.0),
)
def tank_levels():
    @pb.autograd_function
    def tank_levels(ctx, inflow, outflow, start, area=80.0, top=4.0):
        """Levels of a tank in m after each hour; inflow and outflow: (n,) in m3/h."""
        level, filled = start.item(), []
        levels = np.empty(len(inflow))
        for k, net in enumerate(inflow.numpy() - outflow.numpy()):
            filled.append(level + net / area)
            level = min(max(filled[-1], 0.0), top)
            levels[k] = level
        ctx.save_for_backward(filled=filled, area=area)
        return pb.asarray(levels)

    @tank_levels.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        net, to_level = np.zeros_like(gn), 0.0
        for k in reversed(range(len(gn))):
            to_level += gn[k]
            if s.filled[k] < 0:
                to_level = 0.0
            net[k] = to_level / s.area
        return {"inflow": pb.asarray(net), "outflow": pb.asarray(-net), "start": to_level}

    return tank_levels


def station(rng):
    return (
        t(rng.uniform(20, 60, 4)),
        t(rng.uniform(0.7, 1.1, 4)),
        t(rng.uniform(50, 70, 4)),
        t(rng.uniform(0.004, 0.012, 4)),
    )


@BOOK.wrong(
    lambda rng: (station(rng), {}),
    "the second term depends on the speed unless the exponent is 2: that part is missing",
    MISSING,
    at("exponent"),
    r"affinity|second term|speed\b.{0,40}(also|as well|too)|2 ?- ?(?:n|exponent)\b",
    mends("(2 - s.n)", "(2 - n)", "(s.n - 2)", "(2.0 - s.n)"),
    where="exponent is not 2",
    shows=lambda rng: (station(rng), {"exponent": 1.6}),
)
def pump_head():
    @pb.autograd_function
    def pump_head(ctx, flow, speed, shutoff, slope, exponent=2.0):
        """Head that pumps add at a relative speed, by the affinity laws; flow in L/s."""
        q, w, n = flow.numpy(), speed.numpy(), exponent
        if (q < 0).any() or (w <= 0).any():
            raise ValueError("flows must not be negative and speeds must be positive")
        curve = q**n * w ** (2 - n)
        ctx.save_for_backward(q=q, w=w, n=n, curve=curve, shutoff=shutoff, slope=slope)
        return pb.asarray(shutoff.numpy() * w**2 - slope.numpy() * curve)

    @pump_head.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        steep = s.slope.numpy()
        by_flow = -steep * s.n * s.q ** (s.n - 1) * s.w ** (2 - s.n)
        return {
            "flow": pb.asarray(gn * by_flow),
            "speed": pb.asarray(gn * 2 * s.w * s.shutoff.numpy()),
            "shutoff": pb.asarray(gn * s.w**2),
            "slope": pb.asarray(-gn * s.curve),
        }

    return pump_head


@BOOK.wrong(
    lambda rng: (
        (t(np.array(0.8)), t(rng.uniform(0.15, 0.4, 4)), t(np.array(0.35)), t(np.array(0.06))),
        {"flow": np.array([2400.0, 1500.0, 800.0, 300.0]), "length": 300 * np.arange(2.0, 6.0)},
    ),
    "a wider pipe holds the water for longer: the diameter's part in the travel time is missing",
    MISSING,
    r"travel time|residence|\barea\b|\bage\b|longer|through (?:the )?`?time|cross.section",
    mends("2 * s.time / s.d", "s.time * 2 / s.d", "2 * s.rate", "2.0 * s.time", "2 * s.decay"),
)
def chlorine_along():
    class ChlorineAlong(pb.Function):
        @staticmethod
        def forward(ctx, dosed, diameter, bulk, wall, flow, length):
            # flow in m3/d, bulk in 1/d, wall in m/d; the pipes come one after another
            d = diameter.numpy()
            time = np.pi * d**2 / 4 * length / flow
            rate = bulk.item() + 4 * wall.item() / d
            decay = np.exp(-np.cumsum(rate * time))
            ctx.save_for_backward(
                d=d, time=time, rate=rate, decay=decay, dosed=dosed.item(), wall=wall.item()
            )
            return pb.asarray(dosed.item() * decay)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            flow = g.numpy() * s.dosed * s.decay
            later = np.cumsum(flow[::-1])[::-1]
            by_rate = -later * s.time
            return {
                "dosed": g.numpy() @ s.decay,
                "diameter": pb.asarray(by_rate * -4 * s.wall / s.d**2),
                "bulk": by_rate.sum(),
                "wall": (by_rate * 4 / s.d).sum(),
            }

    return ChlorineAlong.apply


LINKS = np.array([[4, 0], [0, 1], [0, 2], [1, 3], [2, 3], [5, 3], [1, 2]])


def incidence(links, n):
    B = np.zeros((len(links), n))
    B[np.arange(len(links)), links[:, 0]] += 1
    B[np.arange(len(links)), links[:, 1]] -= 1
    return B


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.01, 0.04, 4)),
            t(rng.uniform(400, 2500, 7)),
            t(np.array([72.0, 66.0]) + rng.uniform(-1, 1, 2)),
        ),
        {"links": LINKS},
    )
)
def gradient_method_heads():
    @pb.autograd_function
    def gradient_method_heads(ctx, demand, resistance, reservoir, links, tol=1e-12):
        """Heads at the junctions and flows in the pipes, by the global gradient method.

        demand: (n,) in m3/s; resistance: (m,), loss = resistance * flow**1.852;
        reservoir: (k,) heads in m; links: (m, 2) integers, junctions first, then reservoirs.
        """
        d, r, fixed = demand.numpy(), resistance.numpy(), reservoir.numpy()
        n, m = len(d), len(r)
        B = incidence(links, n + len(fixed))
        K = np.zeros((m + n, m + n))
        K[:m, m:], K[m:, :m] = -B[:, :n], -B[:, :n].T
        q, h = np.full(m, 0.05), np.zeros(n)
        for _ in range(200):
            lost = r * np.abs(q) ** 0.852
            K[range(m), range(m)] = np.maximum(1.852 * lost, 1e-9)
            wrong = np.concatenate([lost * q - B @ np.append(h, fixed), -B[:, :n].T @ q - d])
            step = np.linalg.solve(K, wrong)
            q, h = q - step[:m], h - step[m:]
            if np.abs(step).max() < tol * max(1.0, np.abs(h).max()):
                break
        else:
            raise ArithmeticError("gradient_method_heads: no convergence")
        K[range(m), range(m)] = np.maximum(1.852 * r * np.abs(q) ** 0.852, 1e-9)
        ctx.save_for_backward(K=K, q=q, B=B)
        return pb.asarray(h), pb.asarray(q.copy())

    @gradient_method_heads.backward
    @pb.once_differentiable
    def _(ctx, g_heads, g_flows):
        K, q, B = ctx.saved_variables
        m = len(q)
        back = np.linalg.solve(K, np.concatenate([g_flows.numpy(), g_heads.numpy()]))
        return {
            "demand": pb.asarray(back[m:]),
            "resistance": pb.asarray(-back[:m] * q * np.abs(q) ** 0.852),
            "reservoir": pb.asarray(back[:m] @ B[:, len(K) - m :]),
        }

    return gradient_method_heads


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.3, 2.5, 5)), t(rng.uniform(0.1, 0.5, 5)), t(rng.uniform(0.05, 1.5, 5))),
        {"viscosity": 1.14e-6},
    )
)
def colebrook_white():
    C = 2 / np.log(10)

    @pb.autograd_function
    def colebrook_white(ctx, velocity, diameter, roughness, viscosity=1.3e-6):
        """Darcy's friction factor in turbulent flow; the roughness is in mm, all else in SI."""
        v, D, rough = velocity.numpy(), diameter.numpy(), roughness.numpy() * 1e-3
        re = v * D / viscosity
        if not (re > 2300).all():
            raise ValueError("the flow is not turbulent")
        x = np.ones(v.shape)
        for _ in range(100):
            u = rough / D / 3.7 + 2.51 * x / re
            step = (x + C * np.log(u)) / (1 + C * 2.51 / (re * u))
            x = x - step
            if np.abs(step).max() < 1e-13 * np.abs(x).max():
                break
        u = rough / D / 3.7 + 2.51 * x / re
        ctx.save_for_backward(v=v, D=D, rough=rough, re=re, x=x, u=u)
        return pb.asarray(x**-2)

    @colebrook_white.backward
    @pb.once_differentiable
    def _(ctx, g):
        v, D, rough, re, x, u = ctx.saved_variables
        # d(residual) = 0 gives x by u's own arguments, at x held
        by_u = -2 * x**-3 * -(C / u) / (1 + C * 2.51 / (re * u)) * g.numpy()
        by_re = -by_u * 2.51 * x / re**2
        by_rough = by_u / (3.7 * D)
        return (
            pb.asarray(by_re * re / v),
            pb.asarray(by_re * re / D - by_rough * rough / D),
            pb.asarray(by_rough * 1e-3),
            None,
        )

    return colebrook_white


@BOOK.right(
    lambda rng: (
        (t(np.array([-3.0, 4.0, 12.0, 21.0, 38.0]) + rng.random(5)), t(rng.uniform(2, 9, 5))),
        {"low": 2.0, "wanted": 25.0},
    )
)
def delivered_demand():
    def delivered(ctx, pressure, demand, low=0.0, wanted=20.0, power=0.5):
        """Part of the demand (L/s) that is delivered: nothing up to low, all from wanted on."""
        if wanted <= low or power <= 0:
            raise ValueError("wanted must exceed low, and power must be positive")
        share = np.clip((pressure.numpy() - low) / (wanted - low), 0.0, 1.0)
        ctx.share, ctx.demand, ctx.span, ctx.power = share, demand.numpy(), wanted - low, power
        return pb.asarray(share**power * ctx.demand)

    @pb.once_differentiable
    def back(ctx, g):
        inside = (ctx.share > 0) & (ctx.share < 1)
        steep = np.zeros_like(ctx.share)
        steep[inside] = ctx.power * ctx.share[inside] ** (ctx.power - 1) / ctx.span
        gn = g.numpy()
        return {
            "pressure": pb.asarray(gn * steep * ctx.demand),
            "demand": pb.asarray(gn * ctx.share**ctx.power),
        }

    return pb.autograd_function(delivered, back, name="delivered_demand")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 12, 7)), t(rng.uniform(0.01, 0.3, 7))),
        {"parent": [-1, 0, 0, 1, 1, 2, 5]},
    )
)
def branched_pressure():
    @pb.autograd_function
    def branched_pressure(ctx, demand, resistance, parent, source=55.0):
        """Head at each node of a branched network.

        demand: (n,) in L/s. resistance: (n,) of the pipe from the parent, m per (L/s)^2.
        parent: list of n integers, each less than its own place; -1 is the source.
        """
        flow = demand.numpy().copy()
        for k in reversed(range(len(parent))):
            if parent[k] >= 0:
                flow[parent[k]] += flow[k]
        drop = resistance.numpy() * flow * np.abs(flow)
        head = np.empty_like(flow)
        for k, up in enumerate(parent):
            head[k] = (source if up < 0 else head[up]) - drop[k]
        ctx.save_for_backward(flow=flow, resistance=resistance, parent=tuple(parent))
        return pb.asarray(head)

    @branched_pressure.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow, resistance, parent = ctx.saved_variables
        below = g.numpy().copy()
        for k in reversed(range(len(parent))):
            if parent[k] >= 0:
                below[parent[k]] += below[k]
        to_flow = -2 * below * resistance.numpy() * np.abs(flow)
        for k, up in enumerate(parent):
            if up >= 0:
                to_flow[k] += to_flow[up]
        return {
            "demand": pb.asarray(to_flow),
            "resistance": pb.asarray(-below * flow * np.abs(flow)),
        }

    return branched_pressure


@BOOK.right(
    lambda rng: (
        (
            t(np.array([35.0, -4.0, 22.0, 51.0, 8.0]) + rng.random(5)),
            t(rng.uniform(0.01, 0.08, 5)),
            t(np.array(1.15)),
        ),
        {},
    )
)
def leakage():
    @pb.autograd_function
    def leakage(ctx, pressure, coefficient, exponent):
        p, n = pressure.numpy(), exponent.item()
        if n < 0.5:
            raise ValueError("the exponent of a leak is 0.5 or more")
        wet = p > 0
        held = np.where(wet, p, 1.0)  # nothing leaks, nor is sucked in, where there is no pressure
        ctx.save_for_backward(held=held, wet=wet, n=n, c=coefficient.numpy())
        return pb.asarray((coefficient.numpy() * wet * held**n).sum(keepdims=True))

    @leakage.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, scale = ctx.saved_variables, g.item()
        jet = s.wet * s.held**s.n
        return {
            "pressure": pb.asarray(scale * s.c * s.n * jet / s.held),
            "coefficient": pb.asarray(scale * jet),
            "exponent": scale * (s.c * jet * np.log(s.held)).sum(),
        }

    return leakage


KINDS = ("PRV", "TCV", "PRV", "PSV", "closed", "PRV")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([62.0, 48.0, 31.0, 44.0, 50.0, 12.0]) + rng.random(6)),
            t(np.array([40.0, 6.0, 45.0, 30.0, 1.0, 20.0]) + rng.random(6)),
            t(rng.uniform(0.4, 2.2, 6)),
        ),
        {"kinds": KINDS, "minor": 2.5},
    )
)
def valve_outlet():
    @pb.autograd_function
    def valve_outlet(ctx, head, setting, velocity, kinds, minor=0.2):
        """Pressure behind valves: reducing (PRV), sustaining (PSV), throttling (TCV) or closed.

        setting is a pressure in m, or the loss coefficient of a TCV; minor is that of the others.
        """
        h, held_at, v = head.numpy(), setting.numpy(), velocity.numpy()
        D = {key: np.zeros(len(h)) for key in ("head", "setting", "velocity")}
        out = np.zeros(len(h))
        for k, kind in enumerate(kinds):
            loss = (held_at[k] if kind == "TCV" else minor) * v[k] * abs(v[k]) / (2 * GRAVITY)
            if kind == "closed" or (kind == "PSV" and h[k] < held_at[k]):
                continue
            if kind == "PRV" and h[k] - loss > held_at[k]:
                out[k], D["setting"][k] = held_at[k], 1.0
                continue
            out[k], D["head"][k] = h[k] - loss, 1.0
            K = held_at[k] if kind == "TCV" else minor
            D["velocity"][k] = -K * abs(v[k]) / GRAVITY
            if kind == "TCV":
                D["setting"][k] = -v[k] * abs(v[k]) / (2 * GRAVITY)
        ctx.slopes = D
        return pb.asarray(out)

    @valve_outlet.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {key: pb.asarray(g.numpy() * slope) for key, slope in ctx.slopes.items()}

    return valve_outlet


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 6, 8)), t(np.array([0.4, 0.7, 1.5, 1.9, 1.1, 0.6]))),
        {"zone": np.array([2, 0, 1, 0, 2, 2, 0, 1]), "hours": 9, "start": 4},
    )
)
def zone_demand():
    @pb.autograd_function
    def zone_demand(ctx, base, pattern, zone, hours=24, start=0, zones=None):
        """Demand by hour and zone: (hours, zones); the pattern starts again when it ends."""
        zones = int(zone.max()) + 1 if zones is None else zones
        which = (start + np.arange(hours)) % len(pattern)
        total = np.bincount(zone, base.numpy(), minlength=zones)
        ctx.save_for_backward(which=which, zone=zone.copy(), total=total, pattern=pattern)
        return pb.asarray(np.outer(pattern.numpy()[which], total))

    @zone_demand.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        p = s.pattern.numpy()
        by_pattern = np.zeros_like(p)
        np.add.at(by_pattern, s.which, gn @ s.total)
        return {
            "base": pb.asarray((p[s.which] @ gn)[s.zone]),
            "pattern": pb.asarray(by_pattern),
        }

    return zone_demand


@BOOK.right(
    lambda rng: (
        (t(np.array([0.02, -0.05, 0.11])), t(rng.uniform(0.15, 0.3, 3))),
        {"fittings": [["elbow", "gate", "elbow"], [], ["tee", "exit"]]},
    )
)
def fitting_losses():
    COEFFICIENT = {"elbow": 0.9, "tee": 1.8, "gate": 0.2, "globe": 10.0, "entrance": 0.5, "exit": 1}

    @pb.autograd_function
    def fitting_losses(ctx, flow, diameter, fittings):
        K = np.array([sum(COEFFICIENT[name] for name in row) for row in fittings], float)
        area = np.pi * diameter * diameter / 4
        v = flow / area
        ctx.save_for_backward(K=pb.asarray(K), v=v, area=area, diameter=diameter)
        return pb.asarray(K) * v * v.abs() / (2 * GRAVITY)

    @fitting_losses.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_v = grad_output * s.K * s.v.abs() / GRAVITY
        return {"flow": by_v / s.area, "diameter": -2 * by_v * s.v / s.diameter}

    return fitting_losses


LOOPS = np.array([[1, 1, -1, 0, 0], [0, -1, 0, 1, -1]])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(10, 60, 5) * [1, -1, 1, 1, 1]), t(rng.uniform(0.002, 0.02, 5))),
        {"loops": LOOPS, "rounds": 3},
    )
)
def hardy_cross():
    @pb.autograd_function
    def hardy_cross(ctx, flow, resistance, loops, rounds=1):
        """Flows after some rounds of Hardy Cross corrections, a loop after the other.

        flow: (m,) in L/s, balanced at the nodes; resistance: (m,), loss = r q |q|;
        loops: (l, m) of -1, 0 and 1. The rounds are few: this is not the converged flow.
        """
        q, r = flow.numpy().copy(), resistance.numpy()
        trail = []
        for _ in range(rounds):
            for loop in loops:
                top, below = loop @ (r * q * np.abs(q)), 2 * (loop**2 @ (r * np.abs(q)))
                trail.append((loop, q.copy(), top, below))
                q -= top / below * loop
        ctx.trail, ctx.r = trail, r.copy()
        return pb.asarray(q)

    @hardy_cross.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_q, to_r = g.numpy().copy(), np.zeros(len(ctx.r))
        for loop, q, top, below in reversed(ctx.trail):
            to_top = -(to_q @ loop) / below
            to_below = -to_top * top / below
            to_r += to_top * loop * q * np.abs(q) + 2 * to_below * loop**2 * np.abs(q)
            to_q += 2 * ctx.r * (to_top * loop * np.abs(q) + to_below * loop**2 * np.sign(q))
        return {"flow": pb.asarray(to_q), "resistance": pb.asarray(to_r)}

    return hardy_cross


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.8, 2.1, 1.4]) + 0.1 * rng.random(3)),
            t(np.array([8.0, 12.0, 6.0]) + rng.random(3)),
            t(np.array([1.5, 9.0, 3.0]) + 0.1 * rng.random(3)),
        ),
        {"diameter": 400.0, "length": np.array([2400.0, 1500.0, 3000.0])},
    )
)
def surge_head():
    BULK = 2.2

    @pb.autograd_function
    def surge_head(ctx, velocity, thickness, closing, diameter, length, modulus=170.0):
        """Rise of the head in m when a valve closes; thickness and diameter in mm, moduli in GPa.

        A valve that closes within the period of the pipe has Joukowsky's surge, a slower one less.
        """
        e, T = thickness.numpy(), closing.numpy()
        soft = 1 + BULK / modulus * diameter / e
        wave = np.sqrt(BULK * 1e6 / soft)
        period = 2 * length / wave
        slow = np.maximum(T / period, 1.0)
        steep = wave / GRAVITY / slow
        rise = steep * velocity.numpy()
        ctx.save_for_backward(steep=steep, e=e, T=T, soft=soft, slow=slow, rise=rise)
        return pb.asarray(rise.copy())

    @surge_head.backward
    @pb.once_differentiable
    def _(ctx, g):
        steep, e, T, soft, slow, rise = ctx.saved_variables
        flow, rapid = g.numpy() * rise, slow <= 1
        # a slow valve's surge is 2 length velocity / (g closing), whatever the wall
        return {
            "velocity": pb.asarray(g.numpy() * steep),
            "thickness": pb.asarray(flow * rapid * 0.5 * (soft - 1) / (soft * e)),
            "closing": pb.asarray(np.where(rapid, 0.0, -flow / T)),
        }

    return surge_head


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.3, 2.6, 4.4, -0.2, 7.5, 5.1]) + 0.05 * rng.random(6)),
            t(np.array([0.0, 40.0, 130.0, 260.0, 300.0]) + rng.random(5)),
        ),
        {"levels": np.array([0.0, 1.0, 2.5, 5.0, 6.0])},
    )
)
def tank_volume():
    @pb.autograd_function
    def tank_volume(ctx, level, volumes, levels):
        h, V = level.numpy(), volumes.numpy()
        k = np.clip(np.searchsorted(levels, h, side="right") - 1, 0, len(levels) - 2)
        part = np.clip((h - levels[k]) / (levels[k + 1] - levels[k]), 0, 1)
        inside = (h >= levels[0]) & (h < levels[-1])
        ctx.save_for_backward(k=k, part=part, inside=inside, V=V, gap=np.diff(levels)[k])
        return pb.asarray((1 - part) * V[k] + part * V[k + 1])

    @tank_volume.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_V = np.zeros_like(s.V)
        np.add.at(by_V, s.k, gn * (1 - s.part))
        np.add.at(by_V, s.k + 1, gn * s.part)
        by_level = gn * s.inside * (s.V[s.k + 1] - s.V[s.k]) / s.gap
        return {"level": pb.asarray(by_level), "volumes": pb.asarray(by_V)}

    return tank_volume


@BOOK.right(
    lambda rng: (
        (
            t(np.array([12.0, -7.0, 20.0, 5.0, -3.0, 9.0]) + rng.random(6)),
            t(rng.uniform(0.2, 1.0, 5)),
        ),
        {"links": np.array([[0, 2], [2, 1], [0, 3], [3, 2], [4, 3], [1, 4]]), "dosed": (0,)},
    )
)
def mixed_quality():
    @pb.autograd_function
    def mixed_quality(ctx, flow, quality, links, dosed=()):
        """Concentrations at the nodes after what flows in has mixed.

        A negative flow goes from a link's second node to its first. Nodes in `dosed`, and those
        that nothing flows into, keep their concentration.
        """
        q, c = flow.numpy(), quality.numpy()
        turn = q < 0
        source = np.where(turn, links[:, 1], links[:, 0])
        target = np.where(turn, links[:, 0], links[:, 1])
        water = np.bincount(target, np.abs(q), minlength=len(c))
        mass = np.bincount(target, np.abs(q) * c[source], minlength=len(c))
        mixes = water > 0
        mixes[list(dosed)] = False
        out = c.copy()
        out[mixes] = mass[mixes] / water[mixes]
        ctx.save_for_backward(q, c, source, target, water, mixes, out)
        return pb.asarray(out.copy())

    @mixed_quality.backward
    @pb.once_differentiable
    def _(ctx, g):
        q, c, source, target, water, mixes, out = ctx.saved_variables
        share = np.where(mixes, g.numpy() / np.where(mixes, water, 1.0), 0.0)[target]
        by_c = np.where(mixes, 0.0, g.numpy())
        np.add.at(by_c, source, share * np.abs(q))
        by_flow = share * np.sign(q) * (c[source] - out[target])
        return {"flow": pb.asarray(by_flow), "quality": pb.asarray(by_c)}

    return mixed_quality
