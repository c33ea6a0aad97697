"""Power grids: flows, droop, dispatch, ramps, three phases, batteries, tariffs, swings."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CONJUGATE, FACTOR, MISSING, TRANSPOSED, ZERO, Book, at, mends, t

BOOK = Book("power_grids")


def lines(rng, n=4):
    """Return the admittance matrix of a ring of n buses with shunts."""
    series = 1 / (rng.uniform(0.02, 0.05, n) + 1j * rng.uniform(0.1, 0.2, n))
    Y = np.diag(np.full(n, 0.02 + 0.1j))
    for k, y in enumerate(series):
        ends = [k, (k + 1) % n]
        Y[np.ix_(ends, ends)] += y * np.array([[1, -1], [-1, 1]])
    return Y


def voltages(rng, n=4):
    return rng.uniform(0.95, 1.05, n) * np.exp(1j * rng.uniform(-0.2, 0.2, n))


@BOOK.wrong(
    lambda rng: ((t(voltages(rng)), lines(rng)), {}),
    "the current's part goes back through the transposed admittances, not conjugated as well",
    CONJUGATE,
    r"hermit|adjoint|\bimaginary\b|\bphase\b|\breactive\b|susceptance",
    mends("ctx.Y.conj().T", "ctx.Y.T.conj()", "np.conj(ctx.Y", "Y.conj()", "ctx.Y.conj()"),
)
def power_injections():
    @pb.autograd_function
    def power_injections(ctx, voltage, admittance):
        """Complex power that each bus feeds in, V * conj(Y @ V), in per unit; voltage: (n,)."""
        V = voltage.numpy()
        current = admittance @ V
        ctx.save_for_backward(voltage=voltage, current=current)
        ctx.Y = admittance
        return pb.asarray(V * current.conj())

    @power_injections.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        V = s.voltage.numpy()
        return {"voltage": pb.asarray(gn * s.current + ctx.Y.T @ (gn.conj() * V))}

    return power_injections


def frequencies(rng):
    return (t(50 + np.array([-0.08, 0.03, -0.02, 0.06, -0.01])), t(rng.uniform(2, 4, 5))), {}


@BOOK.wrong(
    frequencies,
    "within the dead band the output does not follow the frequency, but its gradient does",
    at("dead_?band"),
    ZERO,
    r"dead[ -]?band\b|small deviation|near (?:the )?nominal|\bclose to (?:50|nominal)",
    r"\bwithin\b|\binside\b|\|.{0,25}\| ?<",
    mends(
        "np.abs(s.deviation) > ",
        "s.beyond != 0",
        "beyond != 0",
        "s.beyond.astype(bool)",
        "np.abs(deviation) > ",
        "active =",
    ),
    where="a deviation within the dead band",
    shows=lambda rng: (frequencies(rng)[0], {"dead_band": 0.025}),
)
def droop_response():
    @pb.autograd_function
    def droop_response(ctx, frequency, gain, nominal=50.0, dead_band=0.0):
        """Extra output of machines, gain (per Hz) times what the frequency lacks; both (n,)."""
        deviation = nominal - frequency.numpy()
        beyond = np.sign(deviation) * np.maximum(np.abs(deviation) - dead_band, 0.0)
        ctx.save_for_backward(gain=gain, beyond=beyond)
        return pb.asarray(gain.numpy() * beyond)

    @droop_response.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        return {
            "frequency": pb.asarray(-g.numpy() * s.gain.numpy()),
            "gain": pb.asarray(g.numpy() * s.beyond),
        }

    return droop_response


def machines(rng):
    return (t(rng.uniform(10, 14, 4)), t(rng.uniform(0.08, 0.16, 4)), t(np.array(160.0))), {}


@BOOK.wrong(
    machines,
    "the price is moved by free machines alone, but the gradient divides by the sum over all, "
    "also those at a limit",
    r"\blimit|\bupper\b|\blower\b|\bfree\b|\bactive\b|saturat|\bclip|\bbounds?\b|\bcapacit",
    FACTOR + r"|multipl|divided by",
    at("(?:most|least)"),
    mends(
        "(ctx.free / b).sum()",
        "(1 / b[ctx.free]).sum()",
        "(1 / b)[ctx.free].sum()",
        "np.sum(ctx.free / b)",
        "np.sum(1 / b[ctx.free])",
        "ctx.free @ (1 / b)",
        "(1 / b * ctx.free).sum()",
    ),
    where="a machine at its limit",
    shows=lambda rng: (machines(rng)[0], {"most": np.array([20.0, 100.0, 100.0, 100.0])}),
)
def economic_dispatch():
    @pb.autograd_function
    def economic_dispatch(ctx, linear, quadratic, demand, least=0.0, most=500.0):
        """Cheapest outputs that meet the demand; machine i costs linear * p + quadratic * p**2 / 2.

        linear, quadratic: (n,); least, most: numbers or (n,) arrays. Demand is a scalar.
        """
        a, b, D = linear.numpy(), quadratic.numpy(), demand.item()
        low, high = np.broadcast_to(least, a.shape), np.broadcast_to(most, a.shape)
        if not low.sum() < D < high.sum():
            raise ValueError(f"the machines cannot give {D}")
        left, right = (a + b * low).min(), (a + b * high).max()
        for _ in range(200):
            price = (left + right) / 2
            if np.clip((price - a) / b, low, high).sum() < D:
                left = price
            else:
                right = price
        p = np.clip((price - a) / b, low, high)
        ctx.free = (p > low) & (p < high)
        ctx.save_for_backward(quadratic=quadratic, p=p)
        return pb.asarray(p)

    @economic_dispatch.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        b = ctx.saved_variables.quadratic.numpy()
        direct = ctx.free * grad_output.numpy() / b
        by_total = direct.sum() / (1 / b).sum()
        by_marginal = ctx.free * by_total / b - direct
        return {
            "linear": pb.asarray(by_marginal),
            "quadratic": pb.asarray(by_marginal * ctx.saved_variables.p),
            "demand": pb.asarray(np.array(by_total)),
        }

    return economic_dispatch


@BOOK.wrong(
    lambda rng: ((t(np.array([60.0, 40, 75, 70, 30]) + rng.uniform(-3, 3, 5)), t(30.0)), {}),
    "the first hour's own ramp, from what ran before, is left out of its gradient",
    MISSING,
    r"first (?:hour|element|entry|ramp|step|value)|\binitial\b|element \[?0\b|index 0",
    r"(?:at|only|in|is|grad|output)`? ?\[0\]",
    r"(?:ramp|change) (?:from|since) .{0,20}before",
    mends(
        "grad[0] += ",
        "grad_output += ",
        "grad = by_ramp.copy()",
        "grad += by_ramp",
        "by_ramp - np.append(by_ramp[1:], 0",
        "-np.diff(by_ramp, append=0",
        "-np.diff(np.append(by_ramp, 0",
        "np.array(by_ramp)",
    ),
)
def ramp_penalty():
    class RampPenalty(pb.Function):
        """Half the squares of the ramps beyond the limit; output: (hours,), before: the hour 0."""

        @staticmethod
        def forward(ctx, output, before, limit=12.0):
            ramp = np.diff(output.numpy(), prepend=before.item())
            ctx.beyond = np.sign(ramp) * np.maximum(np.abs(ramp) - limit, 0.0)
            return pb.asarray(np.array((ctx.beyond**2).sum() / 2))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            by_ramp = g.item() * ctx.beyond
            grad = np.zeros_like(by_ramp)
            grad[1:] += by_ramp[1:]
            grad[:-1] -= by_ramp[1:]
            return {"output": pb.asarray(grad), "before": pb.asarray(np.array(-by_ramp[0]))}

    return RampPenalty.apply


BRANCHES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(4, 10, 5)), t(rng.normal(size=4)), BRANCHES), {}),
    "a line's susceptance changes the angles as well: the term through the solution is missing",
    MISSING,
    r"\bangles?\b|through the (?:solution|solve|system|matrix|network)|\bimplicit|\bindirect",
    r"only the (?:direct|explicit)|\btreated as (?:a )?(?:constant|fixed)|product rule|\bdirect\b",
    mends(
        "adjoint[ctx.start]",
        "adjoint[start]",
        "incidence @ adjoint",
        "ctx.incidence @ adjoint",
        "np.diff(adjoint",
        "lam[",
        "* drop_adjoint",
        "(adjoint[",
        "gn - ",
        "(gn -",
    ),
)
def dc_line_flows():
    def forward(ctx, susceptance, injection, branches):
        """Flow on each branch by the linear (DC) load flow; bus 0 takes up what is left over.

        susceptance: (m,), injection: (n,), branches: (m, 2) buses.
        """
        b, n = susceptance.numpy(), len(injection)
        incidence = np.zeros((len(b), n))
        incidence[np.arange(len(b)), branches[:, 0]] = 1
        incidence[np.arange(len(b)), branches[:, 1]] = -1
        ctx.incidence = incidence[:, 1:]
        ctx.matrix = ctx.incidence.T @ (b[:, None] * ctx.incidence)
        drop = ctx.incidence @ np.linalg.solve(ctx.matrix, injection.numpy()[1:])
        ctx.save_for_backward(susceptance=susceptance, drop=drop)
        return pb.asarray(b * drop)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        adjoint = np.linalg.solve(ctx.matrix, ctx.incidence.T @ (s.susceptance.numpy() * gn))
        return {
            "susceptance": pb.asarray(gn * s.drop),
            "injection": pb.asarray(np.concatenate([[0.0], adjoint])),
        }

    return pb.autograd_function(forward, backward, name="dc_line_flows")


def phases(rng, **settings):
    return (t(rng.normal(size=(5, 3))), t(rng.uniform(0, 6, 5))), settings


@BOOK.wrong(
    phases,
    "the gradient goes back through the inverse transformation, which is the transpose only if "
    "the transformation keeps the power",
    at("power_invariant"),
    FACTOR + r"|multipl|divided by",
    TRANSPOSED,
    r"\binverse\b|\borthogonal|\b1\.5\b|\b3 ?/ ?2\b|\b2 ?/ ?3\b|\bamplitude",
    mends('"nk,nkp->np", gn, ctx.T', "ctx.T.transpose(0, 2, 1)", "np.swapaxes(ctx.T", "ctx.T.mT"),
    where="power_invariant is False",
    shows=lambda rng: phases(rng, power_invariant=False),
)
def park_components():
    def transformation(angle, power_invariant):
        spread = angle[:, None] - 2 * np.pi / 3 * np.arange(3)
        rows = np.stack([np.cos(spread), -np.sin(spread), np.full_like(spread, 0.5)], axis=1)
        if power_invariant:
            return np.sqrt(2 / 3) * rows * np.array([[1], [1], [np.sqrt(2)]])
        return 2 / 3 * rows

    @pb.autograd_function
    def park_components(ctx, phases, angle, power_invariant=True):
        """Direct, quadrature and zero components of three phases; phases: (n, 3), angle: (n,)."""
        ctx.T = transformation(angle.numpy(), power_invariant)
        out = np.einsum("nkp,np->nk", ctx.T, phases.numpy())
        ctx.save_for_backward(out=out)
        return pb.asarray(out.copy())

    @park_components.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, (d, q, _) = grad_output.numpy(), ctx.saved_variables.out.T
        return {
            "phases": pb.asarray(np.einsum("npk,nk->np", np.linalg.inv(ctx.T), gn)),
            "angle": pb.asarray(gn[:, 0] * q - gn[:, 1] * d),
        }

    return park_components


@BOOK.right(
    lambda rng: (
        (t(-rng.uniform(0.05, 0.2, 3) - 1j * rng.uniform(0.02, 0.08, 3)), lines(rng)),
        {},
    )
)
def load_flow():
    @pb.autograd_function
    def load_flow(ctx, power, admittance, slack=1.0, tolerance=1e-13):
        """Voltages at which the buses feed in these powers; power: (n - 1,), bus 0 is the slack."""
        Y, S = admittance[1:, 1:], power.numpy()
        fed, V = admittance[1:, 0] * slack, np.full(len(S), slack + 0j)
        for _ in range(500):
            V, before = np.linalg.solve(Y, np.conj(S / V) - fed), V
            if np.abs(V - before).max() < tolerance:
                break
        else:
            raise ValueError("load_flow: no solution, the loads may be too high")
        ctx.V, ctx.Y, ctx.current = V, Y, Y @ V + fed
        return pb.asarray(V.copy())

    @load_flow.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, own, other = (
            grad_output.numpy(),
            np.diag(ctx.current.conj()),
            ctx.V[:, None] * ctx.Y.conj(),
        )
        by_real, by_imaginary = own + other, 1j * (own - other)
        jacobian = np.block([[by_real.real, by_imaginary.real], [by_real.imag, by_imaginary.imag]])
        adjoint = np.linalg.solve(jacobian.T, np.concatenate([gn.real, gn.imag]))
        real, imaginary = np.split(adjoint, 2)
        return {"power": pb.asarray(real + 1j * imaginary)}

    return load_flow


@BOOK.right(
    lambda rng: ((t(np.array([3.0, -2, 0.5, -4, 2, -1.5])), t(np.array(0.9))), {"start": 10.0})
)
def battery_charge():
    @pb.autograd_function
    def battery_charge(ctx, power, efficiency, start=5.0, leak=0.01, capacity=20.0):
        """Energy stored after each hour; power is positive while charging."""
        eta, level = efficiency.item(), [start]
        if not 0 < eta <= 1:
            raise ValueError("efficiency must lie between 0 and 1")
        for p in power.numpy():
            level.append((1 - leak) * level[-1] + (p * eta if p > 0 else p / eta))
        if min(level) < 0 or max(level) > capacity:
            raise ValueError("the battery is empty or full")
        ctx.save_for_backward(power=power, efficiency=efficiency)
        ctx.keep = 1 - leak
        return pb.asarray(np.array(level[1:]))

    @battery_charge.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, eta = ctx.saved_variables.power.numpy(), ctx.saved_variables.efficiency.item()
        adjoint, total = np.zeros_like(p), 0.0
        for hour in reversed(range(len(p))):
            total = g.numpy()[hour] + ctx.keep * total
            adjoint[hour] = total
        return {
            "power": pb.asarray(adjoint * np.where(p > 0, eta, 1 / eta)),
            "efficiency": pb.asarray(np.array(adjoint @ np.where(p > 0, p, -p / eta**2))),
        }

    return battery_charge


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(20, 90, 12)), t(np.array([0.12, 0.3])), t(np.array(4.0))),
        {"period": np.array([0] * 4 + [1] * 6 + [0] * 2), "window": 3},
    )
)
def electricity_bill():
    @pb.autograd_function
    def electricity_bill(ctx, load, prices, peak_price, period, window=1):
        """Energy at the price of its period, and the highest mean load of `window` slots."""
        x = load.numpy()
        if window > len(x) or period.max() >= len(prices):
            raise ValueError("the window is too long, or a period has no price")
        means = np.convolve(x, np.full(window, 1 / window), "valid")
        ctx.first, ctx.window, ctx.period = int(means.argmax()), window, period
        ctx.save_for_backward(load=load, prices=prices, peak_price=peak_price, peak=means.max())
        return pb.asarray(np.array(prices.numpy()[period] @ x + peak_price.item() * means.max()))

    @electricity_bill.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_load = s.prices.numpy()[ctx.period]
        by_load[ctx.first : ctx.first + ctx.window] += s.peak_price.item() / ctx.window
        energy = np.bincount(ctx.period, weights=s.load.numpy(), minlength=len(s.prices))
        return {
            "load": pb.asarray(g.item() * by_load),
            "prices": pb.asarray(g.item() * energy),
            "peak_price": pb.asarray(np.array(g.item() * s.peak)),
        }

    return electricity_bill


@BOOK.right(
    lambda rng: (
        (t(np.exp(-2j * np.pi / 3 * np.arange(3)) * rng.uniform(0.8, 1.2, (4, 3))),),
        {},
    )
)
def voltage_unbalance():
    def forward(ctx, phasors):
        """Zero, positive and negative sequence of (..., 3) phasors; and the unbalance."""
        a = np.exp(2j * np.pi / 3)
        ctx.M = np.array([[1, 1, 1], [1, a, a**2], [1, a**2, a]]) / 3
        sequence = phasors.numpy() @ ctx.M.T
        size = np.abs(sequence)
        if (size[..., 1:] < 1e-9).any():
            raise ValueError("the unbalance of these phasors has no derivative")
        ctx.sequence, ctx.ratio = sequence, size[..., 2] / size[..., 1]
        return {"sequence": pb.asarray(sequence.copy()), "unbalance": pb.asarray(ctx.ratio.copy())}

    @pb.once_differentiable
    def backward(ctx, g_sequence, g_unbalance):
        by_sequence, flow = g_sequence.numpy().copy(), g_unbalance.numpy() * ctx.ratio
        positive, negative = ctx.sequence[..., 1], ctx.sequence[..., 2]
        by_sequence[..., 1] -= flow * positive / np.abs(positive) ** 2
        by_sequence[..., 2] += flow * negative / np.abs(negative) ** 2
        return pb.asarray(by_sequence @ ctx.M.conj())

    return pb.autograd_function(forward, backward, name="voltage_unbalance")


@BOOK.right(lambda rng: ((t(0.8), t(1.6), t(np.array(0.1))), {"steps": 25, "fault": range(4, 9)}))
def rotor_swing():
    @pb.autograd_function
    def rotor_swing(ctx, mechanical, coupling, damping, steps=20, fault=(), inertia=0.5, dt=0.05):
        """Rotor angle of a machine on a strong grid; no power is taken in the steps in `fault`."""
        pm, pe, c = mechanical.item(), coupling.item(), damping.item()
        if not abs(pm) < pe:
            raise ValueError("rotor_swing: the machine has no point of rest")
        ctx.on = np.array([k not in fault for k in range(steps)], dtype=float)
        angle, speed = np.empty(steps + 1), np.zeros(steps + 1)
        angle[0] = np.arcsin(pm / pe)
        for k, on in enumerate(ctx.on):
            push = pm - on * pe * np.sin(angle[k]) - c * speed[k]
            speed[k + 1] = speed[k] + dt / inertia * push
            angle[k + 1] = angle[k] + dt * speed[k + 1]
        ctx.save_for_backward(mechanical=mechanical, coupling=coupling, damping=damping)
        ctx.angle, ctx.speed, ctx.rate, ctx.dt = angle, speed, dt / inertia, dt
        return pb.asarray(angle[1:].copy())

    @rotor_swing.backward
    @pb.once_differentiable
    def _(ctx, g):
        pm, pe, c = (x.item() for x in ctx.saved_tensors)
        by_pm = by_pe = by_c = to_angle = to_speed = 0.0
        for k in reversed(range(len(ctx.on))):
            to_angle += g.numpy()[k]
            to_speed += ctx.dt * to_angle
            push, on = ctx.rate * to_speed, ctx.on[k]
            by_pm += push
            by_pe -= push * on * np.sin(ctx.angle[k])
            by_c -= push * ctx.speed[k]
            to_angle -= push * on * pe * np.cos(ctx.angle[k])
            to_speed -= push * c
        steep = to_angle / np.sqrt(1 - (pm / pe) ** 2)
        by_pm, by_pe = by_pm + steep / pe, by_pe - steep * pm / pe**2
        return tuple(pb.asarray(np.array(x)) for x in (by_pm, by_pe, by_c)) + (None,) * 4

    return rotor_swing
