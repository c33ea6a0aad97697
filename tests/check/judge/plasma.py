"""Plasma and accelerators: pushers, deposits, fields, beams, orbits, probes, ionisation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

import pullback as pb

from .entries import CONJUGATE, MISSING, SIGN, Book, mends, t

BOOK = Book("plasma")


def particles(rng):
    return (
        t(rng.normal(size=(4, 3))),
        t(rng.normal(size=(4, 3))),
        t(rng.normal(0, 2, (4, 3))),
    ), {"dt": 0.5}


@BOOK.wrong(
    particles,
    "gamma is taken for a constant: its dependence on u in the angle of rotation is missing",
    MISSING,
    r"\bgamma\b.{0,60}(?:constant|depend|missing|ignored|function|through|derivative|differenti)",
    r"(?:constant|depend\w*|missing|ignor\w+|through|derivative of).{0,40}\bgamma\b",
    r"\brelativistic (?:mass|factor)|Lorentz factor",
    r"right (?:only )?(?:if|where|when) .{0,15}\b[uBE]\b.{0,10}\b(?:0|zero|small)",
    mends("before / gamma", "gamma**2", "g_gamma", "d_gamma", "ggamma"),
)
def relativistic_boris():
    class Boris(pb.Function):
        """One step of a relativistic Boris pusher.

        u: (n, 3), gamma times velocity over c, half a step behind the fields E and B, (n, 3),
        which are in units of m c / q over the unit of dt.
        """

        @staticmethod
        def forward(ctx, u, E, B, dt=0.1):
            kick = dt / 2 * E.numpy()
            before = u.numpy() + kick
            gamma = np.sqrt(1 + (before**2).sum(axis=1, keepdims=True))
            turn = dt / 2 * B.numpy() / gamma
            s = 2 * turn / (1 + (turn**2).sum(axis=1, keepdims=True))
            prime = before + np.cross(before, turn)
            ctx.dt, ctx.step = dt, (before, gamma, turn, s, prime)
            return pb.asarray(before + np.cross(prime, s) + kick)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            g, half = grad_output.numpy(), ctx.dt / 2
            before, gamma, turn, s, prime = ctx.step
            g_prime, g_s = np.cross(s, g), np.cross(g, prime)
            g_before = g + g_prime + np.cross(turn, g_prime)
            size = 1 + (turn**2).sum(axis=1, keepdims=True)
            along = (g_s * turn).sum(axis=1, keepdims=True)
            g_turn = np.cross(g_prime, before) + 2 * g_s / size - 4 * turn * along / size**2
            return {
                "u": pb.asarray(g_before),
                "E": pb.asarray(half * (g + g_before)),
                "B": pb.asarray(half * g_turn / gamma),
            }

    return Boris.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0, 1.7, 7)), t(rng.uniform(0.5, 1.5, 7))),
        {"cells": 8, "box": 2.0},
    ),
    "the cell after the last is the last itself and not, as the box is periodic, the first",
    r"\bperiodic|\bwrap|\bghost\b|\bmodulo\b|\bpadd",
    r"\blast (?:cell|bin|grid|interval|node)|(?:right|upper) (?:end|edge|border|boundary|wall)",
    r"grad_output\[(?:0|7|-1)\]|output\[0\]",
    r"(?:near|at|close to|end of|edge of|boundary of) the (?:box|grid|end|edge|boundary)",
    r"position.{0,30}(?:>=?|above|beyond|larger than|near) ?(?:\d|box)",
    mends("gn[0]", "gn[:1]", "% len(gn)", "% ctx.cells", 'mode="wrap"', "np.roll(gn", "% gn.size"),
    where="a particle in the last cell",
    shows=lambda rng: (
        (t(np.array([0.3, 1.93, 1.1, 1.8])), t(rng.uniform(0.5, 1.5, 4))),
        {"cells": 8, "box": 2.0},
    ),
)
def cloud_in_cell():
    @pb.autograd_function
    def cloud_in_cell(ctx, position, charge, *, cells, box=1.0):
        """Charge density at the nodes of a periodic grid, each particle shared by two nodes."""
        x = position.numpy()
        if (x < 0).any() or (x >= box).any():
            raise ValueError("particles must be inside the box")
        place = x / box * cells
        left = place.astype(int)
        ctx.left, ctx.share, ctx.charge, ctx.per = left, place - left, charge.numpy(), cells / box
        low = np.bincount(left, ctx.charge * (1 - ctx.share), cells)
        high = np.bincount((left + 1) % cells, ctx.charge * ctx.share, cells)
        return pb.asarray((low + high) * ctx.per)

    @cloud_in_cell.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy() * ctx.per
        node = np.append(gn, gn[-1])
        low, high = node[ctx.left], node[ctx.left + 1]
        return {
            "position": pb.asarray(ctx.charge * (high - low) * ctx.per),
            "charge": pb.asarray(low + ctx.share * (high - low)),
        }

    return cloud_in_cell


class Twiss(NamedTuple):
    beta: pb.Tensor
    alpha: pb.Tensor


def section(rng):
    k, length = rng.uniform(0.5, 1.5), rng.uniform(0.5, 1)
    phi = np.sqrt(k) * length
    return np.array(
        [[np.cos(phi), np.sin(phi) / np.sqrt(k)], [-np.sqrt(k) * np.sin(phi), np.cos(phi)]]
    )


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2, 9, 3)), t(np.zeros(3)), section(rng)), {}),
    "gamma = (1 + alpha**2) / beta depends on alpha too; that term, zero at a waist, is missing",
    MISSING,
    r"\bgamma\b|\bwaist\b|2 ?\* ?alpha ?/ ?beta|alpha ?(?:\*\*|\^) ?2",
    r"\balpha`? ?(?:is not|!=|≠|not|away from|other than|differs from|>|<).{0,12}(?:0\b|zero)",
    r"(?:non.?zero|right (?:only )?(?:at|for|where|when|if)) .{0,10}alpha",
    mends("2 * s.alpha / s.beta", "2 * alpha / beta", "2.0 * s.alpha", "s.alpha / s.beta"),
    where="alpha is not zero",
    shows=lambda rng: ((t(rng.uniform(2, 9, 3)), t(rng.normal(0, 1, 3)), section(rng)), {}),
)
def transport_twiss():
    def forward(ctx, beta, alpha, matrix):
        """Beta and alpha of a beam after the section with this 2 x 2 transfer matrix."""
        (a, b), (c, d) = matrix.tolist()
        ctx.save_for_backward(beta=beta, alpha=alpha)
        ctx.entries = a, b, c, d
        gamma = (1 + alpha**2) / beta
        return Twiss(
            beta=a * a * beta - 2 * a * b * alpha + b * b * gamma,
            alpha=-a * c * beta + (a * d + b * c) * alpha - b * d * gamma,
        )

    def backward(ctx, grad_beta, grad_alpha):
        s = ctx.saved_variables
        a, b, c, d = ctx.entries
        grad_gamma = b * b * grad_beta - b * d * grad_alpha
        return {
            "beta": a * a * grad_beta
            - a * c * grad_alpha
            - grad_gamma * (1 + s.alpha**2) / s.beta**2,
            "alpha": (a * d + b * c) * grad_alpha - 2 * a * b * grad_beta,
        }

    return pb.autograd_function(forward, backward, name="transport_twiss")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=10)),), {"length": 3.0}),
    "the field is an antisymmetric function of the charge: its part has the wrong sign, as the "
    "conjugate of the filter is not taken",
    SIGN,
    CONJUGATE,
    r"\badjoint\b|anti.?symmetric|\bskew|anti.?hermitian",
    r"(?:field|E)\b.{0,40}\bsubtract",
    mends("- ctx.to_field", "ctx.to_field.conj", "np.conj(", "ctx.to_potential - "),
)
def periodic_poisson():
    @pb.autograd_function
    def periodic_poisson(ctx, rho, length=1.0):
        """Potential and electric field of a charge density on a periodic line."""
        k = 2 * np.pi * np.fft.fftfreq(len(rho), d=length / len(rho))
        green = np.divide(1.0, k**2, out=np.zeros_like(k), where=k != 0)
        ctx.to_potential, ctx.to_field = green, -1j * k * green
        modes = np.fft.fft(rho.numpy())
        potential = np.fft.ifft(ctx.to_potential * modes).real
        field = np.fft.ifft(ctx.to_field * modes).real
        return pb.asarray(potential.copy()), pb.asarray(field.copy())

    @periodic_poisson.backward
    @pb.once_differentiable
    def _(ctx, g_potential, g_field):
        modes = ctx.to_potential * np.fft.fft(g_potential.numpy())
        modes += ctx.to_field * np.fft.fft(g_field.numpy())
        return pb.asarray(np.fft.ifft(modes).real.copy())

    return periodic_poisson


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1.5, 3, 4)), t(rng.normal(0, 0.2, 4)), t(rng.uniform(0.2, 0.4))),
        {"turns": 5, "slip": -0.6},
    ),
    "the two updates are undone at once: the gradient of delta before that of the phase has "
    "reached it is used for the kick",
    MISSING,
    r"\bat once\b|simultaneous|(?:order|sequence) of (?:the )?(?:two |both )?(?:updates|steps)",
    r"(?:old|previous|earlier|stale|not yet updated|before it is updated|updated|new) "
    r"(?:value of )?`?(?:g_)?(?:delta|gradient)",
    r"(?:missing|lacks?|without|left out).{0,40}\bslip\b|\bslip\b.{0,40}(?:missing|is (?:0|zero))",
    r"\btuple assignment|\bkick\b.{0,40}(?:before|after) .{0,20}\b(?:drift|phase)",
    mends(
        "g_delta = g_delta + ctx.slip * g_phi\n",
        "g_delta += ctx.slip * g_phi",
        "g_delta += slip * g_phi",
        "(g_delta + ctx.slip * g_phi)",
        "g_phi = g_phi + g_delta",
        "g_phi += ",
    ),
)
def synchrotron_motion():
    @pb.autograd_function
    def synchrotron_motion(ctx, phi, delta, voltage, turns=1, slip=-0.1, stable=np.pi):
        """Phase and momentum deviation after some turns, with a cavity in each."""
        p, d, V = phi.numpy(), delta.numpy(), voltage.item()
        ctx.V, ctx.slip, ctx.stable, ctx.phases = V, slip, stable, []
        for _ in range(turns):
            ctx.phases.append(p)
            d = d + V * (np.sin(p) - np.sin(stable))
            p = p + slip * d
        return pb.asarray(p), pb.asarray(d)

    @synchrotron_motion.backward
    @pb.once_differentiable
    def _(ctx, grad_phi, grad_delta):
        g_phi, g_delta, g_V = grad_phi.numpy(), grad_delta.numpy(), 0.0
        for p in reversed(ctx.phases):
            g_V += g_delta @ (np.sin(p) - np.sin(ctx.stable))
            g_phi, g_delta = g_phi + g_delta * ctx.V * np.cos(p), g_delta + ctx.slip * g_phi
        grads = {"phi": g_phi, "delta": g_delta, "voltage": np.array(g_V)}
        return {name: pb.asarray(grad) for name, grad in grads.items()}

    return synchrotron_motion


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.normal(size=3)),
            t(np.sort(rng.uniform(0, 2, 3))),
            t(np.sort(rng.uniform(2, 6, 5))),
            t(np.array(1.31)),
        ),
        {},
    ),
    "the sign of the derivative of the absolute phase advance is left out: it is minus one where "
    "the monitor is upstream of the corrector",
    SIGN,
    r"\babs\b|absolute|\bsgn\b",
    r"\b(?:up|down)stream|(?:before|behind|ahead of|in front of|beyond|after) (?:the|a|its) "
    r"(?:corrector|kick|monitor)",
    r"(?:monitor|phase|where|at)`?s? ?(?:is |are )?(?:<|>|below|above|smaller|greater)"
    r".{0,15}(?:kick|at|phase)",
    mends("np.sign(", "np.copysign(", "np.where(gap", "gap > 0", "gap >= 0", "gap < 0"),
    where="a monitor upstream of a corrector",
    shows=lambda rng: (
        (t(rng.normal(size=3)), t(np.array([0.5, 2, 4])), t(np.array([0.1, 1, 3, 5])), t(1.31)),
        {},
    ),
)
def closed_orbit():
    class ClosedOrbit(pb.Function):
        """Closed orbit at the monitors, in normalised coordinates.

        kick: (m,) angles at the correctors, at: (m,) their phases, phase: (n,) those of the
        monitors, all in radians, tune: number of oscillations in a turn.
        """

        @staticmethod
        def forward(kick, at, phase, tune):
            gap = phase.numpy()[:, None] - at.numpy()
            response = np.cos(np.abs(gap) - np.pi * tune.item())
            return pb.asarray(response @ kick.numpy() / (2 * np.sin(np.pi * tune.item())))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            kick, at, phase, tune, orbit = (x.numpy() for x in ctx.saved_tensors)
            gap = phase[:, None] - at
            psi = np.abs(gap) - np.pi * tune
            gn = grad_output.numpy() / (2 * np.sin(np.pi * tune))
            slope = -gn[:, None] * kick * np.sin(psi)
            by_tune = -np.pi * slope.sum()
            by_tune -= np.pi / np.tan(np.pi * tune) * (grad_output.numpy() @ orbit)
            return (
                pb.asarray(gn @ np.cos(psi)),
                pb.asarray(-slope.sum(axis=0)),
                pb.asarray(slope.sum(axis=1)),
                pb.asarray(np.array(by_tune)),
            )

    return ClosedOrbit.apply


@BOOK.right(lambda rng: ((t(rng.normal(size=5) + 1j * rng.uniform(-0.5, 2, 5)),), {}))
def plasma_dispersion():
    @pb.autograd_function
    def plasma_dispersion(ctx, zeta):
        """Return Z of Fried and Conte, continued below the real axis."""
        Z = pb.asarray(1j * np.sqrt(np.pi) * special.wofz(zeta.numpy()))
        ctx.save_for_backward(zeta=zeta, Z=Z)
        return Z

    @plasma_dispersion.backward
    def _(ctx, g):
        zeta, Z = ctx.saved_tensors
        return g * (-2 * (1 + zeta * Z)).conj()

    return plasma_dispersion


def cell(rng):
    return (
        t(np.array([0.55, -0.5, 0.1]) * rng.uniform(0.9, 1.1, 3)),
        t(rng.uniform(0.8, 1.2, 3)),
    ), {}


@BOOK.right(cell)
def betatron_tune():
    def elements(strength, length):
        for k, ell in zip(strength, length, strict=True):
            yield np.array([[1.0, 0.0], [-k, 1.0]])
            yield np.array([[1.0, ell], [0.0, 1.0]])

    @pb.autograd_function
    def betatron_tune(ctx, strength: pb.Tensor, length: pb.Tensor) -> pb.Tensor:
        """Tune of a ring of thin lenses, each followed by a drift; its fractional part."""
        parts = list(elements(strength.numpy(), length.numpy()))
        turn = np.linalg.multi_dot(parts[::-1])
        if abs(np.trace(turn)) >= 2:
            raise ValueError("the ring is unstable")
        mu = np.arccos(np.trace(turn) / 2)
        ctx.side = 1.0 if turn[0, 1] > 0 else -1.0
        ctx.parts, ctx.sine = parts, np.sin(mu)
        return pb.asarray(np.array((ctx.side * mu / (2 * np.pi)) % 1.0))

    @betatron_tune.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_trace = -ctx.side * g.item() / (4 * np.pi * ctx.sine)
        n = len(ctx.parts)
        by_strength, by_length = np.zeros(n // 2), np.zeros(n // 2)
        for i in range(n):
            rest = np.eye(2)
            for part in ctx.parts[i + 1 :] + ctx.parts[:i]:
                rest = part @ rest
            if i % 2 == 0:
                by_strength[i // 2] = -to_trace * rest[0, 1]
            else:
                by_length[i // 2] = to_trace * rest[1, 0]
        return {"strength": pb.asarray(by_strength), "length": pb.asarray(by_length)}

    return betatron_tune


@BOOK.right(lambda rng: ((t(rng.uniform(8, 9)), t(rng.uniform(1, 2))), {}))
def penning_frequencies():
    @pb.autograd_function
    def penning_frequencies(ctx, cyclotron, axial):
        """Angular frequencies of an ion in a Penning trap."""
        root2 = cyclotron**2 - 2 * axial**2
        if root2.item() <= 0:
            raise ValueError("the ion is not confined")
        ctx.save_for_backward(cyclotron=cyclotron, axial=axial)
        root = root2.sqrt()
        return {
            "modified": (cyclotron + root) / 2,
            "magnetron": (cyclotron - root) / 2,
            "axial": axial * 1.0,
        }

    @penning_frequencies.backward
    def _(ctx, g_modified, g_magnetron, g_axial):
        c, z = ctx.saved_tensors
        root = (c**2 - 2 * z**2).sqrt()
        g_root = (g_modified - g_magnetron) / 2
        return {
            "axial": g_axial - 2 * g_root * z / root,
            "cyclotron": (g_modified + g_magnetron) / 2 + g_root * c / root,
        }

    return penning_frequencies


@BOOK.right(
    lambda rng: (
        (
            np.linspace(-30.0, 25.0, 9),
            t(rng.uniform(2, 5)),
            t(rng.uniform(9, 12)),
            t(rng.uniform(1, 2)),
        ),
        {"mass_number": 40.0},
    )
)
def langmuir_probe():
    EXCESS = 0.61 * np.sqrt(2 * np.pi / 1836.15)

    @pb.autograd_function
    def langmuir_probe(ctx, bias, temperature, potential, saturation, mass_number=1.0):
        """Current of a plane probe: electrons, fewer below the potential of the plasma, less ions.

        bias in volts, temperature in electronvolts, saturation: that of the electrons.
        """
        V = np.asarray(bias)
        exponent = np.minimum((V - potential.item()) / temperature.item(), 0.0)
        ion = EXCESS / np.sqrt(mass_number)
        shape = np.exp(exponent) - ion
        ctx.save_for_backward(temperature=temperature, saturation=saturation, exponent=exponent)
        ctx.shape = shape
        return pb.asarray(saturation.item() * shape)

    @langmuir_probe.backward
    @pb.once_differentiable
    def _(ctx, g):
        T, top, e = ctx.saved_variables
        gn = g.numpy()
        current = gn * top.item() * np.exp(e)
        # where electrons are not repelled, e is 0 and stays so
        return {
            "saturation": pb.asarray(np.array(gn @ ctx.shape)),
            "temperature": pb.asarray(np.array(-(current @ e) / T.item())),
            "potential": pb.asarray(np.array(-current[e < 0].sum() / T.item())),
        }

    return langmuir_probe


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.6, 1.4, 5)), t(rng.uniform(0.2, 3, 5))), {"energy": 13.6})
)
def saha_fraction():
    # (2 pi m_e eV / h**2)**1.5 in units of 1e20 / m3
    LEVELS = 3.0149e7

    @pb.autograd_function
    def saha_fraction(ctx, temperature, density, energy=13.5984, weights=(2.0, 1.0)):
        """Ionised fraction of a gas in equilibrium.

        temperature: in eV, density: of all nuclei, in 1e20 / m3; weights: of atom and ion.
        """
        T, n = temperature.numpy(), density.numpy()
        if T.shape != n.shape:
            raise ValueError("temperature and density must have one shape")
        if np.any(T <= 0) or np.any(n <= 0):
            raise ValueError("temperature and density must be positive")
        K = 2 * weights[1] / weights[0] * LEVELS * T**1.5 * np.exp(-energy / T) / n
        x = 2 / (1 + np.sqrt(1 + 4 / K))
        ctx.energy, ctx.T, ctx.n, ctx.x = energy, T, n, x
        return pb.asarray(x.copy())

    @saha_fraction.backward
    @pb.once_differentiable
    def _(ctx, g):
        # d log K = (2 / x + 1 / (1 - x)) dx
        flow = g.numpy() * ctx.x * (1 - ctx.x) / (2 - ctx.x)
        by_T = (1.5 + ctx.energy / ctx.T) / ctx.T
        return {"temperature": pb.asarray(flow * by_T), "density": pb.asarray(-flow / ctx.n)}

    return saha_fraction
