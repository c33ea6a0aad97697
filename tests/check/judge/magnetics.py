"""Magnetics: fields of dipoles, wires and coils, hysteresis, losses, spins, circuits."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import MISSING, SHAPE, SIGN, TRANSPOSED, Book, mends, t

BOOK = Book("magnetics")


def survey(rng, sources, points):
    places = rng.uniform(-1, 1, (sources, 3)) * [1.0, 1.0, 0.2]
    grid = rng.uniform(-1.5, 1.5, (points, 3)) + np.array([0.0, 0.0, 2.0])
    measured = rng.normal(size=(points, 3))
    return (t(rng.normal(size=(sources, 3))), t(places)), {"points": grid, "measured": measured}


@BOOK.wrong(
    lambda rng: survey(rng, 4, 4),
    "the mean over points is divided by the number of dipoles: it shows if the two numbers differ",
    SHAPE,
    r"\b(?:number|count) of (?:the )?(?:points|dipoles|rows|sources)|wrong (?:count|size|number)",
    r"\bfactor\b|\bratio\b|\bscaled?\b|\bmean\b.{0,40}\b(?:instead|over|axis)|\bdivided\b",
    mends(
        "/ len(s.misfit)",
        "/ s.misfit.shape[0]",
        "/ len(s.points)",
        "len(s.misfit) *",
        "s.misfit / len(s.misfit)",
        "/ s.points.shape[0]",
    ),
    where="not as many points as dipoles",
    shows=lambda rng: survey(rng, 3, 7),
)
def dipole_misfit():
    @pb.autograd_function
    def dipole_misfit(ctx, moments, places, points, measured, noise=0.05):
        """Mean squared misfit of dipoles' field; moments, places: (m, 3), points: (n, 3)."""
        apart = points[:, None] - places.numpy()
        square = (apart**2).sum(axis=-1, keepdims=True)
        along = (moments.numpy() * apart).sum(axis=-1, keepdims=True)
        field = 3 * along * apart / square**2.5 - moments.numpy() / square**1.5
        misfit = (field.sum(axis=1) - measured) / noise
        ctx.save_for_backward(
            moments=moments, places=places, apart=apart, square=square, along=along, misfit=misfit
        )
        ctx.noise = noise
        return pb.asarray(np.array((misfit**2).sum() / len(points)))

    @dipole_misfit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        m, r, along = s.moments.numpy(), s.apart, s.along
        G = 2 * g.item() * s.misfit / len(m) / ctx.noise
        G = G[:, None, :]
        inward = (r * G).sum(axis=-1, keepdims=True)
        by_moment = 3 * r * inward / s.square**2.5 - G / s.square**1.5
        by_apart = 3 * (m * inward + G * along + r * (m * G).sum(axis=-1, keepdims=True))
        by_apart = by_apart / s.square**2.5 - 15 * r * along * inward / s.square**3.5
        return {
            "moments": pb.asarray(by_moment.sum(axis=0)),
            "places": pb.asarray(-by_apart.sum(axis=0)),
        }

    return dipole_misfit


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(-2.0, 2.0, 6)), t(np.array(1.1)), t(np.array(0.4))),
        {"coupling": 0.5},
    ),
    "the magnetisation acts on itself: the implicit gradient's denominator is missing",
    MISSING,
    r"feedback|implicit|fixed.point|self.consisten|denominator|acts on itself|effective field",
    r"\bcoupling\b.{0,40}(?:ignored|not used|no (?:effect|influence)|left out|forgot)",
    r"\bfactor\b|\bratio\b|\bscaled?\b|chain rule",
    mends(
        "1 - s.coupling * ",
        "1 - ctx.coupling * ",
        "1 - coupling * ",
        "(1 - ctx.coupling",
        "1.0 - s.coupling * ",
    ),
)
def anhysteretic_curve():
    def langevin(x):
        return 1 / np.tanh(x) - 1 / x, 1 / x**2 - 1 / np.sinh(x) ** 2

    class Anhysteretic(pb.Function):
        """Magnetisation without hysteresis (Jiles and Atherton), by fixed-point iteration.

        field: (n,), not 0; saturation, shape: (); coupling: of the magnetisation to itself.
        """

        @staticmethod
        def forward(ctx, field, saturation, shape, coupling=0.1, tol=1e-13):
            H, top, a = field.numpy(), saturation.item(), shape.item()
            if coupling * top >= 3 * a:
                raise ValueError("with such a coupling the curve has jumps")
            M = top * langevin(H / a)[0]
            for _ in range(500):
                last, M = M, top * langevin((H + coupling * M) / a)[0]
                if np.abs(M - last).max() < tol:
                    break
            ctx.save_for_backward(M=M, x=(H + coupling * M) / a, top=top, a=a, coupling=coupling)
            return pb.asarray(M.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            curve, slope = langevin(s.x)
            flow = grad_output.numpy()
            by_field = flow * s.top * slope / s.a
            return {
                "field": pb.asarray(by_field),
                "saturation": flow @ curve,
                "shape": -(by_field @ s.x),
            }

    return Anhysteretic.apply


def coils(rng, skew):
    root = rng.normal(size=(4, 4))
    impedance = root @ root.T / 4 + 1.5 * np.eye(4) + skew * np.triu(root, 1)
    return (t(impedance), t(rng.normal(size=(4, 2)))), {"resistance": 0.3}


@BOOK.wrong(
    lambda rng: coils(rng, 0.0),
    "backward solves with the matrix, not its transpose: it shows if that is not symmetric",
    TRANSPOSED,
    r"(?:not|un|non-?|a)symmetric|\bsymmetric\b",
    mends(
        "np.linalg.solve(s.A.T",
        "np.linalg.solve(A.T",
        "s.A.T",
        "np.linalg.inv(s.A).T",
        "s.A.swapaxes(",
        "np.transpose(s.A)",
    ),
    where="the inductances are not symmetric",
    shows=lambda rng: coils(rng, 0.8),
)
def coil_currents():
    @pb.autograd_function
    def coil_currents(ctx, inductance, flux, resistance=0.0, dt=1.0):
        """Currents of coupled coils after a step of implicit Euler, and the energy of each.

        inductance: (n, n), which with iron in between need not be symmetric; flux: (n, cases).
        """
        A = inductance.numpy() + dt * resistance * np.eye(len(inductance))
        currents = np.linalg.solve(A, flux.numpy())
        energy = 0.5 * (currents * flux.numpy()).sum(axis=0)
        ctx.save_for_backward(A=A, flux=flux, currents=currents)
        return pb.asarray(currents.copy()), pb.asarray(energy)

    @coil_currents.backward
    @pb.once_differentiable
    def _(ctx, g_currents, g_energy):
        s = ctx.saved_variables
        half = 0.5 * g_energy.numpy()
        to_currents = g_currents.numpy() + half * s.flux.numpy()
        back = np.linalg.solve(s.A, to_currents)
        return {
            "inductance": pb.asarray(-back @ s.currents.T),
            "flux": pb.asarray(back + half * s.currents),
        }

    return coil_currents


def drive(rng, course):
    return (
        t(np.array(course) + rng.uniform(-0.03, 0.03, 6)),
        t(np.array([0.15, 0.4, 0.7]) * rng.uniform(0.95, 1.05, 3)),
        t(rng.uniform(0.3, 1.0, 3)),
    ), {}


@BOOK.wrong(
    lambda rng: drive(rng, [0.2, 0.6, 0.9, 1.3, 1.6, 2.1]),
    "where the field falls, the threshold's gradient has the wrong sign",
    SIGN,
    r"\bfall(?:s|ing)\b|\bdescending\b|decreas|\bdownward|\breturn branch\b|\bgo(?:es|ing) down\b",
    mends(
        "grad_threshold += np.where(s.down[k]",
        "grad_threshold += s.down[k] * to_play",
        "grad_threshold += to_play * s.down[k]",
        "grad_threshold += (s.down[k]",
        "(s.down[k].astype(float) - s.up[k])",
        "to_play[s.down[k]]",
        "(s.up[k] - s.down[k].astype(float))",
    ),
    where="the field falls",
    shows=lambda rng: drive(rng, [0.2, 1.6, 0.3, -0.8, 0.9, -1.5]),
)
def play_hysteresis():
    @pb.autograd_function
    def play_hysteresis(ctx, field, thresholds, weights, start=0.0):
        """Magnetisation along a course of the field: a weighted sum of play operators.

        field: (n,); thresholds, weights: (m,); start: of all plays before the first value.
        """
        H, r, play = field.numpy(), thresholds.numpy(), np.full(len(thresholds), start)
        if (r < 0).any():
            raise ValueError("thresholds cannot be negative")
        plays, up, down = [], [], []
        for h in H:
            up.append(h - r > play)
            down.append(h + r < play)
            play = np.where(up[-1], h - r, np.where(down[-1], h + r, play))
            plays.append(play)
        ctx.save_for_backward(weights=weights, plays=np.array(plays), up=up, down=down)
        return pb.asarray(np.array(plays) @ weights.numpy())

    @play_hysteresis.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        w = s.weights.numpy()
        grad_field, grad_threshold = np.zeros_like(gn), np.zeros_like(w)
        to_play = np.zeros_like(w)
        for k in reversed(range(len(gn))):
            to_play += gn[k] * w
            moved = s.up[k] | s.down[k]
            grad_field[k] = to_play[moved].sum()
            grad_threshold[moved] -= to_play[moved]
            to_play[moved] = 0.0
        return {
            "field": pb.asarray(grad_field),
            "thresholds": pb.asarray(grad_threshold),
            "weights": pb.asarray(gn @ s.plays),
        }

    return play_hysteresis


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))),
        {"damping": 0.3, "dt": 0.2},
    ),
    "spins are normalised after the step: the projection that belongs to it is missing",
    r"project|normali[sz]|unit (?:length|vector|sphere)|tangent|radial|\bparallel\b",
    MISSING,
    mends(
        "s.spin * (s.spin * gn).sum(",
        "(s.spin * gn).sum(",
        "(gn * s.spin).sum(",
        "gn - s.spin *",
        "np.einsum(",
        "np.sum(gn * s.spin",
        "np.sum(s.spin * gn",
    ),
)
def precession_step():
    def forward(ctx, spins, field, damping=0.1, gamma=1.0, dt=0.1):
        """One step of Landau's and Lifshitz's equation; spins, field: (n, 3); unit vectors."""
        m, h = spins.numpy(), field.numpy()
        torque = np.cross(m, h)
        moved = m - dt * gamma * (torque + damping * np.cross(m, torque))
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        spin = moved / length
        ctx.save_for_backward(m=m, h=h, torque=torque, length=length, spin=spin)
        ctx.damping, ctx.rate = damping, gamma * dt
        return pb.asarray(spin.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_moved = gn / s.length
        to_change = -ctx.rate * to_moved
        to_torque = to_change + ctx.damping * np.cross(to_change, s.m)
        by_spins = to_moved + ctx.damping * np.cross(s.torque, to_change)
        by_spins += np.cross(s.h, to_torque)
        return {"spins": pb.asarray(by_spins), "field": pb.asarray(np.cross(to_torque, s.m))}

    return pb.autograd_function(forward, backward, name="precession_step")


def teeth(rng, flux):
    args = t(np.array(flux) * rng.uniform(0.95, 1.05, 5)), t(np.array(1.8)), t(np.array(1.9))
    return args, {"frequency": 0.4, "volume": np.array([1.0, 1.2, 0.8, 0.8, 1.5])}


@BOOK.wrong(
    lambda rng: teeth(rng, [0.4, 0.9, 1.2, 1.4, 1.7]),
    "the loss is of the flux's absolute value, whose sign is missing where the flux is negative",
    SIGN,
    r"absolute|\babs\b|\bnegative\b|\|B\||\bpositive\b|\bdirection of\b",
    mends("np.sign(s.B)", "np.sign(B)", "s.B / s.size", "np.copysign(", "np.sign("),
    where="negative flux",
    shows=lambda rng: teeth(rng, [0.4, -0.9, 1.2, -1.4, -1.7]),
)
def core_loss():
    @pb.autograd_function
    def core_loss(ctx, flux, hysteresis, exponent, frequency=0.05, volume=1.0, eddy=0.6):
        """Loss in a machine's teeth: Steinmetz's hysteresis and eddy currents, in W.

        flux: (n,) in T, as it comes out of the field's solution; frequency in kHz.
        """
        B, k, beta = flux.numpy(), hysteresis.item(), exponent.item()
        size = np.abs(B)
        if (size == 0).any():
            raise ValueError("teeth without flux are left out beforehand")
        swing = frequency * size**beta
        loss = volume * (k * swing + eddy * frequency**2 * size**2)
        ctx.save_for_backward(B=B, size=size, swing=swing, k=k, beta=beta, volume=volume)
        ctx.eddy = eddy * frequency**2
        return pb.asarray(loss)

    @core_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = grad_output.numpy() * s.volume
        by_size = s.k * s.beta * s.swing / s.size + 2 * ctx.eddy * s.size
        return {
            "flux": pb.asarray(gn * by_size),
            "hysteresis": gn @ s.swing,
            "exponent": gn @ (s.k * s.swing * np.log(s.size)),
        }

    return core_loss


@BOOK.right(
    lambda rng: (
        (
            t(
                np.array([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0.2], [1, -1, 0]])
                + 0.1 * rng.random((4, 3))
            ),
            t(np.array(2.5)),
        ),
        {"points": np.array([[0.1, 0.2, 0.7], [0.4, -0.3, 1.2], [1.6, 0.4, 0.5]])},
    )
)
def wire_field():
    @pb.autograd_function
    def wire_field(ctx, corners, current, points, closed=True):
        """Field in uT m of a current in A along straight pieces of wire, by Biot and Savart.

        corners: (m, 3); points: (n, 3), off the wire; closed: whether the last corner joins the
        first one.
        """
        near = points[:, None] - corners.numpy()
        if closed:
            near = np.concatenate([near, near[:, :1]], axis=1)
        a, b = near[:, :-1], near[:, 1:]
        far = np.linalg.norm(near, axis=-1, keepdims=True)
        p, q = far[:, :-1], far[:, 1:]
        dot, across = (a * b).sum(axis=-1, keepdims=True), np.cross(a, b)
        below = p * q * (p * q + dot)
        unit = 0.1 * (across * (p + q) / below).sum(axis=1)
        ctx.save_for_backward(a=a, b=b, p=p, q=q, dot=dot, across=across, below=below, unit=unit)
        ctx.current, ctx.closed = current.item(), closed
        return pb.asarray(current.item() * unit)

    @wire_field.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        G = 0.1 * ctx.current * gn[:, None, :]
        to_across = G * (s.p + s.q) / s.below
        to_sum = (s.across * G).sum(axis=-1, keepdims=True) / s.below
        to_below = -to_sum * (s.p + s.q) / s.below
        to_dot = to_below * s.p * s.q
        to_p = to_sum + to_below * s.q * (2 * s.p * s.q + s.dot)
        to_q = to_sum + to_below * s.p * (2 * s.p * s.q + s.dot)
        by_a = np.cross(s.b, to_across) + to_dot * s.b + to_p * s.a / s.p
        by_b = np.cross(to_across, s.a) + to_dot * s.a + to_q * s.b / s.q
        by_near = np.zeros((s.a.shape[1] + 1, 3))
        by_near[:-1] += by_a.sum(axis=0)
        by_near[1:] += by_b.sum(axis=0)
        if ctx.closed:
            by_near[0] += by_near[-1]
            by_near = by_near[:-1]
        return {"corners": pb.asarray(-by_near), "current": (gn * s.unit).sum()}

    return wire_field


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.04, 0.06, 4)), t(rng.uniform(0.07, 0.1, 4)), t(np.array(0.05))),
        {"turns": (40, 25)},
    )
)
def mutual_inductance():
    VACUUM = 0.4e3 * np.pi

    def forward(ctx, first, second, gap, turns=(1, 1)):
        """Mutual inductance of coaxial loops in nH by Maxwell's elliptic integrals.

        first, second: radii: (n,) in m; gap: () in m; turns: of the two coils, whole numbers.
        """
        a, b, d = first.numpy(), second.numpy(), gap.item()
        m = 4 * a * b / ((a + b) ** 2 + d**2)
        if (m >= 1).any():
            raise ValueError("the loops coincide")
        K, E = special.ellipk(m), special.ellipe(m)
        scale = VACUUM * turns[0] * turns[1] * np.sqrt(a * b)
        part = ((2 - m) * K - 2 * E) / np.sqrt(m)
        ctx.save_for_backward(a=a, b=b, d=d, m=m, K=K, E=E, scale=scale, part=part)
        return pb.asarray(scale * part)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_K, by_E = (s.E / (1 - s.m) - s.K) / (2 * s.m), (s.E - s.K) / (2 * s.m)
        slope = ((2 - s.m) * by_K - s.K - 2 * by_E) / np.sqrt(s.m) - 0.5 * s.part / s.m
        flow = gn * s.scale * slope * s.m
        apart = (s.a + s.b) ** 2 + s.d**2
        both = 0.5 * gn * s.scale * s.part + flow
        return {
            "first": pb.asarray(both / s.a - 2 * flow * (s.a + s.b) / apart),
            "second": pb.asarray(both / s.b - 2 * flow * (s.a + s.b) / apart),
            "gap": -2 * s.d * (flow / apart).sum(),
        }

    return pb.autograd_function(forward, backward, name="mutual_inductance")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-6.0, -0.4, 0.0, 2e-4, 0.05, 1.3, 9.0])),
            t(np.array(3.0) * rng.uniform(0.9, 1.1)),
            t(np.array(1.7)),
        ),
        {},
    )
)
def ferrofluid_magnetisation():
    def langevin(x, cut):
        """Return the function and its slope; a series where both terms nearly cancel."""
        small = np.abs(x) < cut
        y = np.where(small, 1.0, x)
        curve = np.where(small, x / 3 - x**3 / 45 + 2 * x**5 / 945, 1 / np.tanh(y) - 1 / y)
        slope = np.where(small, 1 / 3 - x**2 / 15 + 2 * x**4 / 189, 1 / y**2 - 1 / np.sinh(y) ** 2)
        return curve, slope

    class Ferrofluid(pb.Function):
        """Magnetisation of small magnets that turn freely; field: (n,), moment, density: ()."""

        @staticmethod
        def forward(field, moment, density, cut=0.02):
            curve, _ = langevin(field.numpy() * moment.item(), cut)
            return pb.asarray(density.item() * moment.item() * curve)

        @staticmethod
        def setup_context(ctx, inputs, output):
            field, moment, density, *cut = inputs
            ctx.save_for_backward(field=field, moment=moment, density=density)
            ctx.cut = cut[0] if cut else 0.02

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            H, m, n = (each.numpy() for each in ctx.saved_tensors)
            curve, slope = langevin(H * m, ctx.cut)
            gn = grad_output.numpy()
            return {
                "field": pb.asarray(gn * n * m**2 * slope),
                "moment": n * (gn @ (curve + m * H * slope)),
                "density": m * (gn @ curve),
            }

    return Ferrofluid.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([0.1, 0.6, 0.995, 1.0, 1.004, 1.8, 12.0]) * rng.uniform(0.999, 1.001, 7)),),
        {"susceptibility": np.array([1.0, 5.0, 50.0, 2.0, 8.0, 1.0, 20.0])},
    )
)
def spheroid_response():
    CLOSE = 0.02

    def demagnetising(ratio):
        """Return the factor along the axis of a spheroid, and its slope."""
        near = np.abs(ratio - 1) < CLOSE
        u = np.where(near, ratio - 1, 0.0)
        series = (1 / 3, -4 / 15, 6 / 35, -32 / 315, 40 / 693, -32 / 1001)
        factor = np.polynomial.polynomial.polyval(u, series)
        slope = np.polynomial.polynomial.polyval(u, [k * c for k, c in enumerate(series)][1:])
        square = np.where(near, 1.0, ratio**2 - 1)
        root = np.sqrt(np.abs(square))
        arc = np.where(ratio > 1, np.arcsinh(root), np.arctan2(root, ratio)) / root
        exact = (ratio * arc - 1) / square
        exact_slope = (arc - 3 * ratio * exact) / square
        return np.where(near, factor, exact), np.where(near, slope, exact_slope)

    @pb.autograd_function
    def spheroid_response(ctx, ratio, susceptibility=10.0):
        """Magnetisation along the axis of spheroids in a unit field; ratio: length by width."""
        if (ratio.numpy() <= 0).any():
            raise ValueError("ratios must be positive")
        factor, slope = demagnetising(ratio.numpy())
        out = susceptibility / (1 + factor * susceptibility)
        ctx.save_for_backward(out=out, slope=slope)
        return pb.asarray(out.copy())

    @spheroid_response.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        out, slope = ctx.saved_variables
        return {"ratio": pb.asarray(-grad_output.numpy() * out**2 * slope)}

    return spheroid_response


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-2.6, -0.4, 0.0, 0.15, 0.9, 1.7, 3.5])),
            t(np.array([0.9, 1.3, 1.5, 1.6]) + 0.02 * rng.random(4)),
        ),
        {"knots": np.array([0.2, 0.6, 1.5, 2.5])},
    )
)
def flux_density():
    @pb.autograd_function
    def flux_density(ctx, field, values, knots, vacuum=0.01):
        """Flux density in iron from a table, odd in the field, and the piece of the table used.

        field: any shape; values: (m,) at the increasing knots: (m,), which are positive: at 0 it
        is 0. Beyond the table the slope is that of vacuum.
        """
        if knots[0] <= 0 or (np.diff(knots) <= 0).any():
            raise ValueError("knots must be positive and increase")
        H, B = field.numpy(), np.concatenate([[0.0], values.numpy()])
        knots = np.concatenate([[0.0], knots])
        size, sense = np.abs(H), np.where(H < 0, -1.0, 1.0)
        piece = np.clip(np.searchsorted(knots, size, side="right") - 1, 0, len(knots) - 1)
        beyond = piece == len(knots) - 1
        left = np.where(beyond, piece - 1, piece)
        part = np.where(beyond, 1.0, (size - knots[left]) / (knots[left + 1] - knots[left]))
        slope = np.where(beyond, vacuum, (B[left + 1] - B[left]) / (knots[left + 1] - knots[left]))
        out = (1 - part) * B[left] + part * B[left + 1] + beyond * vacuum * (size - knots[-1])
        ctx.save_for_backward(left=left, part=part, slope=slope, sense=sense)
        ctx.count = len(knots)
        return pb.asarray(sense * out), pb.asarray(piece)

    @flux_density.backward
    @pb.once_differentiable
    def _(ctx, g_flux, g_piece):
        left, part, slope, sense = ctx.saved_variables
        flow = sense * g_flux.numpy()
        grad = np.zeros(ctx.count)
        np.add.at(grad, left, flow * (1 - part))
        np.add.at(grad, left + 1, flow * part)
        return {"field": pb.asarray(g_flux.numpy() * slope), "values": pb.asarray(grad[1:])}

    return flux_density
