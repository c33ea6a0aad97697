"""Materials: elasticity, finite elements, phase fields, plasticity, porous media, crystals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pullback as pb

from .entries import AXIS, CHANGED, FACTOR, SHIFT, SWAPPED, Book, at, t

BOOK = Book("materials")

BARS = np.array([[0, 1], [1, 2], [2, 3], [0, 2], [1, 3]])


@BOOK.wrong(
    lambda rng: ((t(1 + rng.random(5)), t(rng.normal(size=4))), {"bars": BARS, "held": [0, 3]}),
    "a load on a held node gets the incoming gradient passed on, where it should be zero",
    at("held"),
    r"(should|must|expected|ought to)( be)? (0|zero)\b|\bnon-?zero\b|\bno (effect|influence)\b",
    r"\bpass(es|ed) (on|through)|\bconstrain|\bmask|\bnodes? (0|3)\b",
    r"\b(held|ends?)\b.{0,30}(ignor|forg[eo]t|not (used|applied))",
)
def spring_network():
    @pb.autograd_function
    def spring_network(ctx, stiffness, load, bars, held):
        """Displacements: (n,) under load: (n,) of nodes joined by bars: (m, 2), some held."""
        k, f = stiffness.numpy(), load.numpy()
        K = np.zeros((len(f), len(f)))
        for (i, j), value in zip(bars, k, strict=True):
            K[[i, j], [i, j]] += value
            K[[i, j], [j, i]] -= value
        free = np.setdiff1d(np.arange(len(f)), held)
        inner = K[np.ix_(free, free)]
        u = np.zeros_like(f)
        u[free] = np.linalg.solve(inner, f[free])
        ctx.inner, ctx.free, ctx.bars, ctx.u = inner, free, bars, u.copy()
        return pb.asarray(u)

    @spring_network.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_load = grad_output.numpy().copy()
        by_load[ctx.free] = np.linalg.solve(ctx.inner, by_load[ctx.free])
        adjoint = np.zeros_like(by_load)
        adjoint[ctx.free] = by_load[ctx.free]
        i, j = ctx.bars.T
        by_stiffness = -(adjoint[i] - adjoint[j]) * (ctx.u[i] - ctx.u[j])
        return {"stiffness": pb.asarray(by_stiffness), "load": pb.asarray(by_load)}

    return spring_network


@BOOK.wrong(
    lambda rng: ((t(0.1 * rng.normal(size=(4, 2, 2))), t(2.0 + rng.random(4)), t(0.3)), {}),
    "the shear strain's gradient is half of what it should be: a factor 2 of Voigt's notation",
    FACTOR,
    r"off.?diagonal|\bshear\b|\b0?\.5\b ?(times|x)|\b2(\.0+)? ?(times|x)\b|times (2|0\.5)\b",
    r"\[(\.\.\.|:|\d), (0, 1|1, 0)\]",
)
def plane_stress():
    class PlaneStress(pb.Function):
        """Stresses xx, yy, xy: (n, 3) of strain: (n, 2, 2), of which the symmetric part counts."""

        @staticmethod
        def forward(ctx, strain, young, poisson):
            e, nu = strain.numpy(), poisson.item()
            voigt = np.stack([e[:, 0, 0], e[:, 1, 1], e[:, 0, 1] + e[:, 1, 0]], axis=1)
            shape = np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])
            unit = voigt @ shape / (1 - nu**2)
            ctx.save_for_backward(young=young, voigt=voigt, shape=shape, unit=unit, nu=nu)
            return pb.asarray(young.numpy()[:, None] * unit)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, g = ctx.saved_variables, grad_output.numpy()
            scaled = g * s.young.numpy()[:, None] / (1 - s.nu**2)
            by_voigt = scaled @ s.shape
            by_strain = np.empty((len(g), 2, 2))
            by_strain[:, 0, 0], by_strain[:, 1, 1] = by_voigt[:, 0], by_voigt[:, 1]
            by_strain[:, 0, 1] = by_strain[:, 1, 0] = by_voigt[:, 2] / 2
            slope = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -0.5]])
            by_nu = (scaled * (s.voigt @ slope)).sum()
            by_nu += 2 * s.nu * (scaled * s.unit).sum()
            return pb.asarray(by_strain), pb.asarray((g * s.unit).sum(axis=1)), by_nu

    return PlaneStress.apply


def grains(**settings):
    return lambda rng: ((t(rng.uniform(-1, 1, (5, 4))), t(0.4), t(1.2)), settings)


@BOOK.wrong(
    grains(),
    "the first spacing is used for both axes in the gradient of the interface's energy",
    at("spacing"),
    AXIS,
    r"\b(isotrop|anisotrop)|\b(both|each) (of the )?(axes|axis|directions)",
    where="spacing that differs",
    shows=grains(spacing=(1.0, 0.4)),
)
def phase_field_energy():
    @pb.autograd_function
    def phase_field_energy(ctx, phase, stiffness, barrier, spacing=(1.0, 1.0)):
        """Allen-Cahn energy of phase: (ny, nx) on a periodic grid of cells dy by dx."""
        p, area = phase.numpy(), spacing[0] * spacing[1]
        steps = [(np.roll(p, -1, axis) - p) / spacing[axis] for axis in (0, 1)]
        slope = 0.5 * sum((step**2).sum() for step in steps) * area
        well = ((1 - p**2) ** 2).sum() / 4 * area
        ctx.save_for_backward(phase, stiffness, barrier, slope, well, spacing)
        return pb.asarray(np.asarray(stiffness.item() * slope + barrier.item() * well))

    @phase_field_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        phase, stiffness, barrier, slope, well, spacing = ctx.saved_variables
        p, scale = phase.numpy(), g.item()
        laplacian = sum(np.roll(p, 1, axis) + np.roll(p, -1, axis) for axis in (0, 1)) - 4 * p
        area = spacing[0] * spacing[1]
        by_phase = -stiffness.item() * area * laplacian / spacing[0] ** 2
        by_phase -= barrier.item() * area * p * (1 - p**2)
        return {
            "phase": pb.asarray(scale * by_phase),
            "stiffness": scale * slope,
            "barrier": scale * well,
        }

    return phase_field_energy


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(6, 3))), t(np.array([0.4, 5.0, 0.7, 0.9, 6.0, 0.5])), t(0.2)),
        {},
    ),
    "the trial stress is overwritten by the returned one, so backward divides by the wrong norm",
    CHANGED,
    FACTOR,
    r"\b(wrong|another|other|old|later) (value|norm)|\bnorm\b|normali[sz]|\byielding\b",
    r"\brows? (0|2|3|5)\b|\belastic\b|\bonly (the )?(rows?|some)\b",
)
def return_mapping():
    @pb.autograd_function
    def return_mapping(ctx, trial, limit, hardening):
        """Deviatoric stresses: (n, 3) brought back to the yield surface; limit: (n,)."""
        s, h = trial.numpy().copy(), hardening.item()
        norm = np.sqrt((s**2).sum(axis=1))
        flows = norm > limit.numpy()
        excess = (norm - limit.numpy())[flows]
        target = (limit.numpy()[flows] + h * norm[flows]) / (1 + h)
        direction = s[flows] / norm[flows, None]
        norm[flows] = target
        s[flows] = target[:, None] * direction
        ctx.norm, ctx.flows, ctx.h = norm, flows, h
        ctx.direction, ctx.excess, ctx.target = direction, excess, target
        return pb.asarray(s)

    @return_mapping.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        g, flows, n, h = grad_output.numpy(), ctx.flows, ctx.direction, ctx.h
        along = (g[flows] * n).sum(axis=1)
        by_trial, by_limit = g.copy(), np.zeros(len(g))
        across = g[flows] - along[:, None] * n
        by_trial[flows] = (ctx.target / ctx.norm[flows])[:, None] * across
        by_trial[flows] += (h / (1 + h) * along)[:, None] * n
        by_limit[flows] = along / (1 + h)
        return {
            "trial": pb.asarray(by_trial),
            "limit": pb.asarray(by_limit),
            "hardening": (along * ctx.excess).sum() / (1 + h) ** 2,
        }

    return return_mapping


@BOOK.wrong(
    lambda rng: ((t(0.2 + 2 * rng.random((2, 6))), t(rng.normal(size=(2, 6)))), {"cell": 0.5}),
    "the two neighbours' shares of the harmonic mean are swapped",
    SWAPPED,
    SHIFT,
    r"\b(left|right)\b|\bother (cell|side|one)\b|\bwrong (cell|side|place)",
)
def darcy_flux():
    @pb.autograd_function
    def darcy_flux(ctx, permeability, pressure, cell=1.0):
        """Fluxes: (b, n - 1) between cells of harmonic mean permeability; both (b, n)."""
        k, drop = permeability.numpy(), -np.diff(pressure.numpy(), axis=1) / cell
        left, right = k[:, :-1], k[:, 1:]
        mean = 2 * left * right / (left + right)
        ctx.save_for_backward(permeability=permeability, drop=drop, mean=mean, cell=cell)
        return pb.asarray(mean * drop)

    @darcy_flux.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        k, by_mean = s.permeability.numpy(), g.numpy() * s.drop
        left, right = k[:, :-1], k[:, 1:]
        scale = 2 * by_mean / (left + right) ** 2
        by_k, by_p = np.zeros_like(k), np.zeros_like(k)
        by_k[:, :-1] += scale * left**2
        by_k[:, 1:] += scale * right**2
        by_p[:, :-1] += g.numpy() * s.mean / s.cell
        by_p[:, 1:] -= g.numpy() * s.mean / s.cell
        return {"permeability": pb.asarray(by_k), "pressure": pb.asarray(by_p)}

    return darcy_flux


REFLECTIONS = np.array([[1, 0, 0], [1, 1, 0], [2, 0, 1], [0, -1, 3]])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-1, 2, (4, 3))), t(1 + rng.random(4))), {}),
    "backward wraps the caller's positions into the cell, in place",
    CHANGED,
    where="input changed",
)
def structure_factors():
    @pb.autograd_function
    def structure_factors(ctx, positions, scattering, reflections=REFLECTIONS):
        """Complex amplitudes: (m,) of atoms at fractional positions: (n, 3)."""
        phase = 2 * np.pi * reflections @ positions.numpy().T
        ctx.atoms = positions.numpy(), scattering.numpy()
        ctx.hkl = reflections
        return pb.asarray(np.exp(1j * phase) @ scattering.numpy())

    @structure_factors.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, f = ctx.atoms
        x -= np.floor(x)
        seen = g.numpy().conj()[:, None] * np.exp(2j * np.pi * ctx.hkl @ x.T)
        by_phase = -f * seen.imag
        return {
            "positions": pb.asarray(2 * np.pi * by_phase.T @ ctx.hkl),
            "scattering": pb.asarray(seen.real.sum(axis=0)),
        }

    return structure_factors


@BOOK.right(
    lambda rng: (
        (t(np.eye(3) + 0.15 * rng.normal(size=(4, 3, 3))), t(0.8 + rng.random(4)), t(2.0)),
        {},
    )
)
def neo_hooke():
    @pb.autograd_function
    def neo_hooke(ctx, deformation, shear, bulk):
        """Energies: (n,) of deformation gradients: (n, 3, 3); shear: (n,), bulk: ()."""
        F, mu, lam = deformation.numpy(), shear.numpy(), bulk.item()
        J = np.linalg.det(F)
        if (J <= 0).any():
            raise ValueError("neo_hooke: an element is turned inside out")
        log_J = np.log(J)
        stretch = 0.5 * ((F**2).sum(axis=(1, 2)) - 3) - log_J
        ctx.save_for_backward(F=deformation, mu=shear, lam=lam, log_J=log_J, stretch=stretch)
        return pb.asarray(mu * stretch + 0.5 * lam * log_J**2)

    @neo_hooke.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        F, mu = s.F.numpy(), s.mu.numpy()[:, None, None]
        inverse = np.linalg.inv(F).swapaxes(1, 2)
        stress = mu * (F - inverse) + s.lam * s.log_J[:, None, None] * inverse
        return {
            "deformation": pb.asarray(gn[:, None, None] * stress),
            "shear": pb.asarray(gn * s.stretch),
            "bulk": 0.5 * (gn * s.log_J**2).sum(),
        }

    return neo_hooke


def residual(T, source, k, slope, ends):
    full = np.concatenate([ends[:1], T, ends[1:]])
    mean = (full[1:] + full[:-1]) / 2
    conduct = k * np.exp(slope * mean)
    flux = conduct * np.diff(full)
    by_left = -conduct + slope / 2 * flux
    by_right = conduct + slope / 2 * flux
    A = np.diag(by_left[1:] - by_right[:-1])
    A += np.diag(by_right[1:-1], 1) - np.diag(by_left[1:-1], -1)
    return np.diff(flux) + source, A, flux, mean


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=6)), t(0.5 + rng.random(7)), t(0.15)),
        {"ends": (0.2, 1.0)},
    )
)
def heated_bar():
    @pb.autograd_function
    def heated_bar(ctx, source, conductivity, slope, ends=(0.0, 0.0), tol=1e-12):
        """Steady temperatures: (n,) inside; conductivity: (n + 1,), growing with temperature."""
        q, k, b = source.numpy(), conductivity.numpy(), slope.item()
        T = np.linspace(*ends, len(q) + 2)[1:-1]
        for _ in range(40):
            r, A, _flux, _mean = residual(T, q, k, b, np.asarray(ends))
            step = np.linalg.solve(A, r)
            T = T - step
            if np.abs(step).max() < tol:
                break
        else:
            raise ArithmeticError("heated_bar: Newton's method did not converge")
        _, ctx.A, ctx.flux, ctx.mean = residual(T, q, k, b, np.asarray(ends))
        ctx.k = k.copy()
        return pb.asarray(T)

    @heated_bar.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_residual = -np.linalg.solve(ctx.A.T, g.numpy())
        by_flux = -np.diff(by_residual, prepend=0, append=0)
        return {
            "source": pb.asarray(by_residual),
            "conductivity": pb.asarray(by_flux * ctx.flux / ctx.k),
            "slope": (by_flux * ctx.flux * ctx.mean).sum(),
        }

    return heated_bar


@BOOK.right(
    lambda rng: (
        (t(np.array([-3.0, -0.4, 0.5, -20.0, 1.2])), t(0.08), t(0.43), t(0.7), t(1.6)),
        {},
    )
)
def water_retention():
    @pb.autograd_function
    def water_retention(ctx, head, residual, saturated, alpha, n):
        """Van Genuchten's water contents and saturations at pressure heads: (k,)."""
        h, a, power = head.numpy(), alpha.item(), n.item()
        low, high = residual.item(), saturated.item()
        dry = h < 0
        pull = np.where(dry, -a * h, 1.0)
        raised = pull**power
        m = 1 - 1 / power
        S = np.where(dry, (1 + raised) ** -m, 1.0)
        ctx.save_for_backward(h.copy(), a, power, high - low, dry, pull, raised, S)
        return pb.asarray(low + (high - low) * S), pb.asarray(S)

    @water_retention.backward
    @pb.once_differentiable
    def _(ctx, g_content, g_saturation):
        h, a, power, span, dry, pull, raised, S = ctx.saved_variables
        gc = g_content.numpy()
        m = 1 - 1 / power
        by_log_S = (span * gc + g_saturation.numpy()) * S * dry
        by_log_pull = -by_log_S * m * power * raised / (1 + raised)
        by_n = -by_log_S * np.log1p(raised) / power**2 + by_log_pull * np.log(pull) / power
        return {
            "head": pb.asarray(by_log_pull / h),
            "residual": (gc * (1 - S)).sum(),
            "saturated": (gc * S).sum(),
            "alpha": by_log_pull.sum() / a,
            "n": by_n.sum(),
        }

    return water_retention


@BOOK.right(
    lambda rng: (
        (t(0.1 * rng.normal(size=8).cumsum()), t(1 + rng.random(2)), t(np.array([1e-3, 2.0]))),
        {"dt": 0.25, "glassy": 0.4},
    )
)
def relaxing_stress():
    @pb.autograd_function
    def relaxing_stress(ctx, strain, moduli, rates, dt=0.1, *, glassy=0.0):
        """Stresses: (n,) of a Prony series; moduli, rates: (k,), slow rates included."""
        e, E, r = strain.numpy(), moduli.numpy(), rates.numpy()
        decay, gain = np.exp(-r * dt), -np.expm1(-r * dt) / (r * dt)
        steps = np.diff(e, prepend=0)
        branch = np.zeros((len(e) + 1, len(E)))
        for i, step in enumerate(steps):
            np.multiply(branch[i], decay, out=branch[i + 1])
            branch[i + 1] += gain * step
        ctx.save_for_backward(E.copy(), r.copy(), decay, gain, steps, branch, dt, glassy)
        return pb.asarray(glassy * e + branch[1:] @ E)

    @relaxing_stress.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        E, r, decay, gain, steps, branch, dt, glassy = ctx.saved_variables
        g, carry = grad_output.numpy(), np.zeros_like(E)
        by_step, by_decay, by_gain = np.zeros_like(steps), np.zeros_like(E), np.zeros_like(E)
        for i in range(len(steps) - 1, -1, -1):
            carry = carry + g[i] * E
            by_step[i] = carry @ gain
            by_decay += carry * branch[i]
            by_gain += carry * steps[i]
            carry = carry * decay
        by_strain = glassy * g + by_step
        by_strain[:-1] -= by_step[1:]
        by_rates = -dt * decay * by_decay + by_gain * (decay - gain) / r
        return {
            "strain": pb.asarray(by_strain),
            "moduli": pb.asarray(g @ branch[1:]),
            "rates": pb.asarray(by_rates),
        }

    return relaxing_stress


class Moduli(NamedTuple):
    bulk: pb.Tensor
    shear: pb.Tensor
    anisotropy: float


def cubic_crystal(rng):
    C = np.diag([0.0, 0, 0, 1.2, 1.1, 1.3]) + 0.05 * rng.normal(size=(6, 6))
    C[:3, :3] += 1.2 + 1.6 * np.eye(3)
    return (t(C),), {"share": 0.4}


@BOOK.right(cubic_crystal)
def polycrystal_moduli():
    normal = np.diag([1.0, 1, 1, 0, 0, 0])
    block = np.zeros((6, 6))
    block[:3, :3] = 1
    shears = np.eye(6) - normal
    stiff = {"bulk": block / 9, "shear": (1.5 * normal - 0.5 * block + 3 * shears) / 15}
    soft = {"bulk": block, "shear": (6 * normal - 2 * block + 3 * shears) / 15}

    @pb.autograd_function
    def polycrystal_moduli(ctx, stiffness, share=0.5):
        """Mean of Voigt's and Reuss's bounds; stiffness: (6, 6) in Voigt's notation."""
        C = stiffness.numpy()
        S = np.linalg.inv(C)
        upper = {key: (weight * C).sum() for key, weight in stiff.items()}
        lower = {key: 1 / (weight * S).sum() for key, weight in soft.items()}
        mixed = {key: share * upper[key] + (1 - share) * lower[key] for key in upper}
        ctx.S, ctx.lower, ctx.share = S, lower, share
        results = (pb.asarray(np.asarray(mixed[key])) for key in ("bulk", "shear"))
        return Moduli(*results, upper["shear"] / lower["shear"])

    @polycrystal_moduli.backward
    @pb.once_differentiable
    def _(ctx, *grads):
        by_C, by_S = np.zeros((6, 6)), np.zeros((6, 6))
        for key, g in zip(("bulk", "shear"), grads, strict=False):
            by_C += g.item() * ctx.share * stiff[key]
            by_S -= g.item() * (1 - ctx.share) * ctx.lower[key] ** 2 * soft[key]
        return {"stiffness": pb.asarray(by_C - ctx.S.T @ by_S @ ctx.S.T)}

    return polycrystal_moduli
