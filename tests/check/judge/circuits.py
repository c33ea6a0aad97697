"""Circuits: impedances, resonance, diodes, transistors, amplifiers, ladders, networks of nodes."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CONJUGATE, SHIFT, ZERO, Book, at, mends, t

BOOK = Book("circuits")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(20, 60)), t(rng.uniform(0.5, 2)), t(rng.uniform(0.5, 2))),
        {"frequency": np.array([1.0, 3.0, 5.0, 9.0])},
    ),
    "the derivative must be conjugated before it meets the complex gradient of the response",
    CONJUGATE,
    r"imaginary part",
    mends(
        "gn.conj()",
        "np.conj(gn)",
        "np.conj(by_part)",
        "by_part.conj()",
        "np.vdot(gn",
        "np.vdot(by_part",
        "np.conj(by_",
        "gn.real *",
    ),
)
def rlc_response():
    @pb.autograd_function
    def rlc_response(ctx, resistance, inductance, capacitance, frequency):
        """Voltage over the capacitor of a series circuit for one volt, complex: (frequencies,).

        In ohm, millihenry, microfarad and kilohertz.
        """
        R, L, C = resistance.item(), inductance.item(), capacitance.item()
        s = 2j * np.pi * frequency
        ZC = 1e3 / (s * C)
        total = R + s * L + ZC
        ctx.save_for_backward(s=s, R=R, L=L, C=C, ZC=ZC, total=total)
        return pb.asarray(ZC / total)

    @rlc_response.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, R, L, C, ZC, total = ctx.saved_variables
        gn = grad_output.numpy()
        by_R = -ZC / total**2
        by_C = -ZC / C * (R + s * L) / total**2
        parts = {"resistance": by_R, "inductance": by_R * s, "capacitance": by_C}
        return {name: (gn * by_part).real.sum() for name, by_part in parts.items()}

    return rlc_response


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-1, 1, 6)), t(np.array(2.2)), t(np.array(10.0))), {}),
    "where the output is at a rail it does not change, but the resistors' gradients go on there",
    ZERO,
    r"\brails?\b.{0,40}(?:reach|hit|output|amplif|satur|clip|beyond|limit)|saturat|clipp",
    r"(?:at|beyond|outside|within|between|inside|reach\w*|on) (?:the |a |one )?rails?\b",
    at("rail"),
    mends(
        "gn = grad_output.numpy() * linear",
        "gn * linear * ",
        "gn * linear @",
        "(gn * linear)",
        "gn = gn * linear",
        "gn *= linear",
        "linear * gain",
        "gn[linear]",
    ),
    where="the output saturates",
    shows=lambda rng: (
        (t(np.array([0.4, -5.0, 7.0, 1.0])), t(np.array(2.2)), t(np.array(10.0))),
        {},
    ),
)
def inverting_amplifier():
    class InvertingAmplifier(pb.Function):
        """Output of an operational amplifier with feedback, between its rails; in kOhm."""

        @staticmethod
        def forward(ctx, signal, r_in, r_feedback, rail=15.0):
            x, gain = signal.numpy(), -r_feedback.item() / r_in.item()
            ideal = gain * x
            ctx.save_for_backward(signal=x, r_in=r_in.item(), gain=gain, ideal=ideal)
            ctx.rail = rail
            return pb.asarray(np.clip(ideal, -rail, rail))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            linear = np.abs(s.ideal) < ctx.rail
            by_gain = (gn * s.signal).sum()
            return {
                "signal": pb.asarray(np.where(linear, gn * s.gain, 0.0)),
                "r_in": -by_gain * s.gain / s.r_in,
                "r_feedback": -by_gain / s.r_in,
            }

    return InvertingAmplifier.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1, 5, 4)), t(rng.uniform(3, 9, 4)), t(np.array(6.0))), {}),
    "each shunt is paired with the resistance seen before its own section, not with the next one's",
    SHIFT,
    r"(?:next|previous|wrong|following|own) (?:section|stage|resistance|rung|index)",
    r"\bindex\b.{0,30}\bwrong|\bk ?\+ ?1\b",
    r"(?:before|after|behind|beyond) (?:the|its|that|each) (?:own )?(?:section|stage|series)",
    mends("seen[k + 1]", "seen[1:]", "seen[1 + k]", "s.seen[k] - s.series[k]"),
)
def ladder_resistance():
    def forward(ctx, series, shunt, load):
        """Resistance seen into a ladder; series, shunt: (sections,), the load at its far end."""
        a, b = series.numpy(), shunt.numpy()
        seen = np.empty(len(a) + 1)
        seen[-1] = z = load.item()
        for k in reversed(range(len(a))):
            seen[k] = z = a[k] + b[k] * z / (b[k] + z)
        ctx.save_for_backward(series=a, shunt=b, seen=seen)
        return pb.asarray(np.array(z))

    @pb.once_differentiable
    def backward(ctx, g):
        s, carried = ctx.saved_variables, g.item()
        grad_series, grad_shunt = np.zeros_like(s.shunt), np.zeros_like(s.shunt)
        for k, b in enumerate(s.shunt):
            z = s.seen[k]
            grad_series[k] = carried
            grad_shunt[k] = carried * (z / (b + z)) ** 2
            carried *= (b / (b + z)) ** 2
        return {"series": grad_series, "shunt": grad_shunt, "load": carried}

    return pb.autograd_function(forward, backward, name="ladder_resistance")


BRANCHES = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 2)])


def network(rng):
    return t(rng.uniform(0.5, 2, 6)), t(rng.normal(size=4)), BRANCHES


@BOOK.wrong(
    lambda rng: (network(rng), {}),
    "the zero of the ground is put at node 0 of the adjoint, whichever node is grounded",
    at("ground"),
    SHIFT,
    r"grounded|node 0|position 0|index 0|first (?:node|element|position)|misalign",
    r"\bground.{0,30}(?:not|other than|unless|assumed|always) (?:is )?0\b",
    r"(?:wrong|other) (?:nodes?|position|index|place)",
    mends(
        "np.insert(adjoint, ctx.ground",
        "[ctx.keep] =",
        "adjoint[: ctx.ground]",
        "insert(ctx.ground",
        "np.insert(solved, ctx.ground",
    ),
    where="ground is not 0",
    shows=lambda rng: (network(rng), {"ground": 2}),
)
def node_voltages():
    @pb.autograd_function
    def node_voltages(ctx, conductance, current, branches, ground=0):
        """Voltages of all nodes; conductance: (branches,), current into each node: (nodes,).

        branches: (branches, 2), the nodes that each joins; ground: the node at zero volts.
        """
        G, (i, j) = np.zeros((len(current), len(current))), branches.T
        np.add.at(G, (i, i), conductance.numpy())
        np.add.at(G, (j, j), conductance.numpy())
        np.subtract.at(G, (i, j), conductance.numpy())
        np.subtract.at(G, (j, i), conductance.numpy())
        keep = np.arange(len(current)) != ground
        v = np.zeros(len(current))
        v[keep] = np.linalg.solve(G[keep][:, keep], current.numpy()[keep])
        ctx.G, ctx.v, ctx.keep, ctx.ground, ctx.branches = G, v, keep, ground, branches
        return pb.asarray(v.copy())

    @node_voltages.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        reduced = ctx.G[ctx.keep][:, ctx.keep]
        solved = np.linalg.solve(reduced, grad_output.numpy()[ctx.keep])
        adjoint = np.concatenate([[0.0], solved])
        i, j = ctx.branches.T
        across = (adjoint[i] - adjoint[j]) * (ctx.v[i] - ctx.v[j])
        return {"conductance": pb.asarray(-across), "current": pb.asarray(adjoint)}

    return node_voltages


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1, 12, 4)), t(rng.uniform(2, 9, 4))), {}),
    "the gradient of the second output, the inner resistance, is not carried to the resistances",
    r"second output|output 1\b|inner resistance|outputs?\[1\]|both outputs",
    r"g_inner.{0,20}(?:unused|ignored|not used|nowhere)",
    r"(?:first|one|single|only) (?:of (?:its|the) )?(?:two )?outputs?|`inner`|'inner'|output inner",
    mends("+ g_inner", "g_inner.item()", "g_inner *", "+ inner**2 *", "inner**2 * g"),
)
def thevenin_source():
    @pb.autograd_function
    def thevenin_source(ctx, voltages, resistances):
        """One source in place of several in parallel; its voltage and its inner resistance."""
        v, r = voltages.numpy(), resistances.numpy()
        if (r <= 0).any():
            raise ValueError("resistances must be positive")
        inner = 1 / (1 / r).sum()
        open_circuit = inner * (v / r).sum()
        ctx.save_for_backward(v=v, r=r, inner=inner, open_circuit=open_circuit)
        return {
            "open_circuit": pb.asarray(np.array(open_circuit)),
            "inner": pb.asarray(np.array(inner)),
        }

    @thevenin_source.backward
    @pb.once_differentiable
    def _(ctx, g_open, g_inner):
        v, r, inner, open_circuit = ctx.saved_variables
        by_conductance = inner * (v - open_circuit)
        return {
            "voltages": pb.asarray(g_open.item() * inner / r),
            "resistances": pb.asarray(-g_open.item() * by_conductance / r**2),
        }

    return thevenin_source


def loads(rng):
    return (t(rng.uniform(20, 90, 5) + 1j * rng.uniform(-40, 40, 5)),)


@BOOK.wrong(
    lambda rng: (loads(rng), {}),
    "with a complex reference its real part belongs into the derivative, not the reference itself",
    r"complex.{0,20}(?:reference|impedance|setting)|reference.{0,30}(?:complex|reactance|reactive)",
    r"(?:imaginary|real) part.{0,30}(?:reference|impedance)|reference.{0,40}(?:imaginary|real)\b",
    r"conjugate|conjugation",
    at("reference"),
    mends(
        "2 * np.real(ctx.reference)",
        "ctx.reference.real",
        "ctx.reference + np.conj(",
        "np.conj(ctx.reference) + ",
        "+ np.conj(ctx.reference)",
        "reference.conjugate()",
        "np.real(ctx.reference)",
    ),
    where="a complex reference",
    shows=lambda rng: (loads(rng), {"reference": 40.0 + 25.0j}),
)
def power_wave_reflection():
    @pb.autograd_function
    def power_wave_reflection(ctx, load, reference=50.0):
        """Reflection of power waves at complex loads, and the share of the power that goes in."""
        if np.real(reference) <= 0:
            raise ValueError("the reference must have a positive resistance")
        z = load.numpy()
        gamma = (z - np.conj(reference)) / (z + reference)
        ctx.z, ctx.gamma, ctx.reference = z, gamma, reference
        return pb.asarray(gamma.copy()), pb.asarray(1 - np.abs(gamma) ** 2)

    @power_wave_reflection.backward
    @pb.once_differentiable
    def _(ctx, g_gamma, g_share):
        slope = 2 * ctx.reference / (ctx.z + ctx.reference) ** 2
        to_gamma = g_gamma.numpy() - 2 * g_share.numpy() * ctx.gamma
        return {"load": pb.asarray(to_gamma * slope.conj())}

    return power_wave_reflection


@BOOK.right(lambda rng: ((t(rng.uniform(-3, 3, 7)), t(np.array(2.2))), {}))
def diode_clipper():
    def junction(v, saturation, thermal):
        """Current through two diodes back to back in mA, and its slope."""
        return (
            2 * saturation * np.sinh(v / thermal),
            2 * saturation / thermal * np.cosh(v / thermal),
        )

    @pb.autograd_function
    def diode_clipper(ctx, signal, resistance, saturation=1e-6, thermal=0.02585):
        """Voltage over two diodes behind a resistor (kOhm), by halving the interval."""
        u, R = signal.numpy(), resistance.item()
        if R <= 0:
            raise ValueError("the resistance must be positive")
        low, high = np.minimum(u, 0.0), np.maximum(u, 0.0)
        for _ in range(200):
            v = (low + high) / 2
            above = junction(v, saturation, thermal)[0] > (u - v) / R
            low, high = np.where(above, low, v), np.where(above, v, high)
        ctx.save_for_backward(signal=u, R=R, v=v)
        ctx.diode = saturation, thermal
        return pb.asarray(v.copy())

    @diode_clipper.backward
    @pb.once_differentiable
    def _(ctx, g):
        u, R, v = ctx.saved_variables
        scale = g.numpy() / (1 + R * junction(v, *ctx.diode)[1])
        return {"signal": pb.asarray(scale), "resistance": -(scale * (u - v)).sum() / R}

    return diode_clipper


@BOOK.right(
    lambda rng: (
        (t(np.eye(2) + rng.normal(size=(4, 2, 2)) / 3 + 1j * rng.normal(size=(4, 2, 2)) / 3),),
        {"reference": 1.5},
    )
)
def cascade_transmission():
    class Cascade(pb.Function):
        """Transmission (S21) of two-ports in a row; chain: (n, 2, 2), complex chain matrices."""

        @staticmethod
        def forward(ctx, chain, reference=50.0):
            total = np.eye(2)
            for matrix in chain.numpy():
                total = total @ matrix
            row, column = np.array([1.0, reference]), np.array([1.0, 1 / reference])
            through = row @ total @ column
            ctx.save_for_backward(chain=chain, row=row, column=column, through=through)
            return pb.asarray(np.array(2 / through))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            chain, row, column, through = ctx.saved_variables
            matrices = chain.numpy()
            scale = grad_output.numpy() * np.conj(-2 / through**2)
            lefts, left = [], row
            for matrix in matrices:
                lefts.append(left)
                left = left @ matrix
            grad, right = np.zeros_like(matrices), column
            for k in reversed(range(len(matrices))):
                grad[k] = scale * np.outer(lefts[k], right).conj()
                right = matrices[k] @ right
            return {"chain": pb.asarray(grad)}

    return Cascade.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 5, 8)), t(rng.uniform(0, 5, 8)), t(np.array(1.1)), t(np.array(0.4))),
        {"modulation": 0.03},
    )
)
def mosfet_current():
    def forward(ctx, gate, drain, threshold, gain, modulation=0.0):
        """Drain current of an n-channel transistor: none, triode or saturation; in V and mA."""
        over, d = np.maximum(gate.numpy() - threshold.item(), 0.0), drain.numpy()
        if over.shape != d.shape or (d < 0).any():
            raise ValueError("needs a drain voltage, not negative, for each gate voltage")
        low = np.minimum(d, over)
        ctx.save_for_backward(over=over, drain=d, low=low, gain=gain.item())
        ctx.modulation = modulation
        return pb.asarray(gain.item() * (over - low / 2) * low * (1 + modulation * d))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        over, d, low, gain = ctx.saved_variables
        gn, rise = grad_output.numpy(), 1 + ctx.modulation * d
        core = (over - low / 2) * low
        by_gate = gn * gain * low * rise  # beyond pinch-off low is over: the slope is the same
        by_drain = gain * (np.maximum(over - d, 0.0) * rise + core * ctx.modulation)
        return {
            "gate": pb.asarray(by_gate),
            "drain": pb.asarray(gn * by_drain),
            "threshold": -by_gate.sum(),
            "gain": (gn * core * rise).sum(),
        }

    return pb.autograd_function(forward, backward, name="mosfet_current")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 6, 12)), t(np.array(0.9)), t(np.array(5.0))),
        {"dt": 0.5, "start": 1.0},
    )
)
def limited_integrator():
    @pb.autograd_function
    def limited_integrator(ctx, signal, time_constant, rail, dt=1.0, start=0.0):
        """Output of an integrating amplifier that stops at the rails; signal: (steps,)."""
        x, tau, most = signal.numpy(), time_constant.item(), rail.item()
        if tau <= 0 or abs(start) > most:
            raise ValueError("needs a positive time constant and a start between the rails")
        out, side, v = np.zeros_like(x), np.zeros_like(x), start
        for k, u in enumerate(x):
            v -= u * dt / tau
            side[k] = np.sign(v) * (abs(v) > most)
            out[k] = v = min(max(v, -most), most)
        ctx.x, ctx.tau, ctx.dt, ctx.side = x, tau, dt, side
        return pb.asarray(out)

    @limited_integrator.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad, to_rail, carried = np.zeros_like(ctx.x), 0.0, 0.0
        for k in reversed(range(len(grad))):
            carried += g.numpy()[k]
            if ctx.side[k]:
                to_rail += ctx.side[k] * carried
                carried = 0.0
            grad[k] = -carried * ctx.dt / ctx.tau
        by_tau = -(grad * ctx.x).sum() / ctx.tau
        return {"signal": pb.asarray(grad), "time_constant": by_tau, "rail": to_rail}

    return limited_integrator


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.5, 3)), t(rng.uniform(0.5, 2, 3)), t(rng.uniform(0.5, 2, 3))),
        {},
    )
)
def ringing():
    @pb.autograd_function
    def ringing(ctx, resistance, inductance, capacitance):
        """Decay, angular frequency and overshoot of underdamped series circuits."""
        if not resistance.shape == inductance.shape == capacitance.shape:
            raise ValueError("each circuit needs its three values")
        decay = resistance / (2 * inductance)
        squared = 1 / (inductance * capacitance) - decay**2
        if (squared <= 0).any():
            raise ValueError("the circuit does not ring")
        frequency = squared.sqrt()
        overshoot = (-np.pi * decay / frequency).exp()
        ctx.save_for_backward(resistance, inductance, capacitance, decay, frequency, overshoot)
        return {"decay": decay, "frequency": frequency, "overshoot": overshoot}

    @ringing.backward
    def _(ctx, g_decay, g_frequency, g_overshoot):
        _, L, C, decay, frequency, overshoot = ctx.saved_tensors
        scaled = np.pi * g_overshoot * overshoot / frequency
        to_frequency = (g_frequency + scaled * decay / frequency) / frequency
        to_decay = g_decay - scaled - to_frequency * decay
        shared = to_frequency / (2 * L * C)
        return {
            "resistance": to_decay / (2 * L),
            "inductance": -to_decay * decay / L - shared / L,
            "capacitance": -shared / C,
        }

    return ringing
