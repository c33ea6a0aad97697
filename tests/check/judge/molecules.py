"""Molecules: restraints, switched charges, fingerprints, scattering, dipoles, solvation, metals."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, FLOAT32, MISSING, SWAPPED, Book, at, mends, t

BOOK = Book("molecules")


@BOOK.wrong(
    lambda rng: (
        (t(np.array([1.1, -0.6, 2.0]) + rng.uniform(-0.2, 0.2, 3)), t(rng.uniform(1, 3, 3))),
        {"targets": np.array([0.2, 0.4, 1.9])},
    ),
    "forward wraps the difference of the angles to half a turn, backward does not",
    r"\bwrap|periodic|2 ?\*? ?(?:np\.)?(?:pi\b|\u03c0)|\b360\b|(?:full|half a) turn|\bmodulo",
    r"(?:beyond|above|exceed\w*|larger than|greater than|>|outside) .{0,12}(?:pi\b|180|3\.14)",
    r"\bthe (?:other|short\w*|long\w*) way",
    mends(
        "wrapped(s.angles",
        "wrapped(angles -",
        "wrapped(x",
        "ctx.away",
        "s.away",
        "np.angle(",
        "np.remainder(s.angles",
    ),
    where="angle and target on different sides of half a turn",
    shows=lambda rng: (
        (t(np.array([3.0, -0.6, -2.9])), t(rng.uniform(1, 3, 3))),
        {"targets": np.array([-2.8, 0.4, 2.5])},
    ),
)
def torsion_restraint():
    def wrapped(difference):
        return np.remainder(difference + np.pi, 2 * np.pi) - np.pi

    @pb.autograd_function
    def torsion_restraint(ctx, angles, stiffness, targets, tolerance=0.1):
        """Energy that holds torsion angles near targets, flat within a tolerance; radians."""
        beyond = np.maximum(abs(wrapped(angles.numpy() - targets)) - tolerance, 0.0)
        ctx.save_for_backward(angles=angles, stiffness=stiffness, beyond=beyond)
        ctx.targets, ctx.tolerance = targets, tolerance
        return pb.asarray(np.array(stiffness.numpy() @ beyond**2 / 2))

    @torsion_restraint.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        away = s.angles.numpy() - ctx.targets
        push = np.sign(away) * np.maximum(abs(away) - ctx.tolerance, 0.0)
        return {
            "angles": pb.asarray(g.item() * s.stiffness.numpy() * push),
            "stiffness": pb.asarray(g.item() * s.beyond**2 / 2),
        }

    return torsion_restraint


def atoms(rng, n=4, spread=1.0):
    corners = np.array([[0, 0, 0], [1, 0, 0.2], [0.1, 1.1, 0], [0.9, 1, 1], [0, 0.2, 1.2]])
    return spread * (corners[:n] + rng.uniform(-0.1, 0.1, (n, 3)))


@BOOK.wrong(
    lambda rng: ((t(atoms(rng)), t(rng.uniform(-1, 1, 4))), {}),
    "the slope of the switching function is missing from the forces",
    MISSING,
    r"\bswitch(?!ed_)|product rule|smooth.?step|\btaper",
    at("(?:inner|outer)"),
    r"(?:distance|pair|atom)s? .{0,40}(?:inner|outer|cut.?off)|\bcut.?off\b|between inner",
    mends("30 *", "- 30", "-30", "fade_slope", "slope * (", "dfade", "switch_slope"),
    where="a distance between inner and outer",
    shows=lambda rng: (
        (t(atoms(rng)), t(rng.uniform(-1, 1, 4))),
        {"inner": 0.5, "outer": 2.5},
    ),
)
def switched_coulomb():
    def fade(r, inner, outer):
        x = ((r - inner) / (outer - inner)).clip(0.0, 1.0)
        return 1 - x**3 * (10 - 15 * x + 6 * x * x)

    def pairs(positions):
        i, j = np.triu_indices(len(positions), 1)
        gap = positions[pb.asarray(i)] - positions[pb.asarray(j)]
        return i, j, gap, (gap**2).sum(1).sqrt()

    class SwitchedCoulomb(pb.Function):
        """Energy of charges, faded out between the distances inner and outer; kcal/mol."""

        @staticmethod
        def forward(ctx, positions, charges, inner=8.0, outer=10.0):
            i, j, _, r = pairs(positions)
            ctx.save_for_backward(positions=positions, charges=charges)
            ctx.inner, ctx.outer = inner, outer
            product = charges[pb.asarray(i)] * charges[pb.asarray(j)]
            return 332.06 * (product / r * fade(r, inner, outer)).sum()

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            i, j, gap, r = pairs(s.positions)
            q = s.charges.numpy()
            each = (332.06 * g * fade(r, ctx.inner, ctx.outer) / r).numpy()
            force = -(each * q[i] * q[j] / r.numpy() ** 2)[:, None] * gap.numpy()
            by_position, by_charge = np.zeros((len(q), 3)), np.zeros(len(q))
            np.add.at(by_position, i, force)
            np.add.at(by_position, j, -force)
            np.add.at(by_charge, i, each * q[j])
            np.add.at(by_charge, j, each * q[i])
            return {"positions": pb.asarray(by_position), "charges": pb.asarray(by_charge)}

    return SwitchedCoulomb.apply


@BOOK.wrong(
    lambda rng: ((t(atoms(rng)), np.array([0.5, 2.0])), {}),
    "an atom is in the fingerprints of its neighbours too; only its own moves its gradient",
    r"neighbou?r|\bother atoms?\b|\breaction\b|symmetric (?:part|half)",
    r"not symmetric|newton|\bown (?:fingerprint|row|feature)",
    r"(?:both|two) (?:atoms|ends|halves)|half of (?:the )?pairs?|(?:second|other) atom of|as j\b",
    r"sum over (?:the )?(?:first|second|other)|\bslope\.T\b|\bj ?, ?i\b",
    mends("slope + slope.T", "+ slope.T", "slope.T +", "ij->j", "slope += slope.T", "slope.T["),
)
def radial_fingerprint():
    def geometry(positions, reach):
        gap = positions[:, None] - positions[None]
        r = np.sqrt((gap**2).sum(axis=2))
        near = (r < reach) & ~np.eye(len(r), dtype=bool)
        return gap, np.where(near, r, 1.0), near

    def forward(ctx, positions, widths, centre=1.0, reach=4.0):
        """Radial symmetry functions of each atom (Behler and Parrinello): (atoms, widths)."""
        _, r, near = geometry(positions.numpy(), reach)
        fade = near * (np.cos(np.pi * r / reach) + 1) / 2
        ctx.save_for_backward(positions=positions)
        ctx.widths, ctx.centre, ctx.reach = widths, centre, reach
        gauss = np.exp(-widths * (r[:, :, None] - centre) ** 2)
        return pb.asarray((gauss * fade[:, :, None]).sum(axis=1))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        gap, r, near = geometry(ctx.saved_variables.positions.numpy(), ctx.reach)
        away = r[:, :, None] - ctx.centre
        fade = (np.cos(np.pi * r / ctx.reach) + 1) / 2
        fade_slope = -np.pi / (2 * ctx.reach) * np.sin(np.pi * r / ctx.reach)
        gauss = np.exp(-ctx.widths * away**2)
        each = gauss * (fade_slope[:, :, None] - 2 * ctx.widths * away * fade[:, :, None])
        slope = near * np.einsum("ik,ijk->ij", grad_output.numpy(), each) / r
        return {"positions": pb.asarray(np.einsum("ij,ijx->ix", slope, gap))}

    return pb.autograd_function(forward, backward, name="radial_fingerprint")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.5, 3, 4)), t(rng.uniform(1, 4, 5))), {}),
    "for small q the slope is a difference of nearly equal numbers, which float32 does not hold",
    FLOAT32,
    r"\bcancel|nearly equal|small (?:q|x|angle|val|input|arg|elem)",
    r"(?:near|at|is) zero|\bnan\b|\bseries\b|\btaylor\b",
    where="float32 at small angles",
    shows=lambda rng: ((t(rng.uniform(0.5e-3, 2e-3, 4)), t(rng.uniform(1, 4, 5))), {}),
)
def debye_scattering():
    @pb.autograd_function
    def debye_scattering(ctx, q, distances):
        """Scattered intensity per pair of atoms: mean of sin(q r) / (q r) over the distances."""
        ctx.save_for_backward(q, distances)
        return pb.asarray(np.sinc(np.outer(q.numpy(), distances.numpy()) / np.pi).mean(axis=1))

    @debye_scattering.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        q, r = (v.numpy() for v in ctx.saved_tensors)
        x = np.outer(q, r)
        slope = (x * np.cos(x) - np.sin(x)) / (x * x) * (grad_output.numpy() / len(r))[:, None]
        return pb.asarray(slope @ r), pb.asarray(q @ slope)

    return debye_scattering


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(1.5, 3, 4)),
            t(rng.uniform(50, 90, 4)),
            t(rng.uniform(0.3, 0.5, 4)),
            t(rng.uniform(1, 5, 4)),
        ),
        {},
    ),
    "the gradients of decay and dispersion are swapped in the tuple",
    SWAPPED,
    r"(?:decay|dispersion)`? .{0,30}\b(?:is|gets|has|equals) .{0,25}(?:of|for) `?(?:decay|disp)",
    r"(?:wrong|another|different) (?:order|place|position)|order of (?:the )?(?:grad|tuple)",
    mends("by_decay, by_dispersion", "by_strength, by_decay", '"decay": by_decay'),
)
def buckingham_energy():
    class BuckinghamEnergy(pb.Function):
        """Exp-6 energy of each pair: strength exp(-distance / decay) - dispersion / distance^6."""

        @staticmethod
        def forward(ctx, distance, strength, decay, dispersion):
            ctx.save_for_backward(distance, strength, decay, dispersion)
            return strength * (-distance / decay).exp() - dispersion / distance**6

        @staticmethod
        def backward(ctx, grad_output):
            r, strength, decay, dispersion = ctx.saved_tensors
            wall = (-r / decay).exp()
            by_strength = grad_output * wall
            by_decay = by_strength * strength * r / decay**2
            by_dispersion = -grad_output / r**6
            by_distance = 6 * grad_output * dispersion / r**7 - by_strength * strength / decay
            return by_distance, by_strength, by_dispersion, by_decay

    return BuckinghamEnergy.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(-1, 1, 4)), t(atoms(rng))),
        {"masses": np.array([12.0, 1, 16, 14])},
    ),
    "the dipole is in debye, but the gradient of the positions in charge times length",
    FACTOR + r"|multipl|divided by",
    r"4\.80|0\.208|debye|\bunits\b|\bunit (?:of|conv|factor)|\bconver(?:t|sion)",
    mends(
        "DEBYE * np.outer(",
        "np.outer(own, gn) * DEBYE",
        "np.outer(own * DEBYE",
        "gn = DEBYE",
        "np.outer(DEBYE",
        "np.outer(own, DEBYE",
        "grad_output.numpy() * DEBYE",
    ),
)
def dipole_moment():
    DEBYE = 4.80320

    def forward(ctx, charges, positions, masses):
        """Dipole in debye about the centre of mass; positions: (atoms, 3) in angstrom."""
        share = masses / masses.sum()
        ctx.save_for_backward(charges=charges, positions=positions)
        ctx.share = share
        arm = positions.numpy() - share @ positions.numpy()
        return pb.asarray(DEBYE * (charges.numpy() @ arm))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        charges, positions = (v.numpy() for v in ctx.saved_variables)
        gn = grad_output.numpy()
        arm = positions - ctx.share @ positions
        own = charges - charges.sum() * ctx.share
        return {
            "charges": pb.asarray(DEBYE * (arm @ gn)),
            "positions": pb.asarray(np.outer(own, gn)),
        }

    return pb.autograd_function(forward, backward, name="dipole_moment")


@BOOK.right(lambda rng: ((t(atoms(rng)), np.array([6, 1, 8, 7])), {}))
def coulomb_spectrum():
    def matrix(positions, numbers):
        gap = positions[:, None] - positions[None]
        r = np.sqrt((gap**2).sum(axis=2)) + np.eye(len(numbers))
        if (r == 0).any():
            raise ValueError("two atoms are at one place")
        pairs = np.outer(numbers, numbers) / r
        np.fill_diagonal(pairs, 0.5 * numbers**2.4)
        return gap, r, pairs

    @pb.autograd_function
    def coulomb_spectrum(ctx, positions, numbers):
        """Eigenvalues of the Coulomb matrix, the largest first; numbers: atomic numbers."""
        Z = np.asarray(numbers, float)
        gap, r, C = matrix(positions.numpy(), Z)
        values, ctx.vectors = np.linalg.eigh(C)
        ctx.weight = np.outer(Z, Z)[:, :, None] * gap / r[:, :, None] ** 3
        return pb.asarray(values[::-1].copy())

    @coulomb_spectrum.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        to_matrix = ctx.vectors * grad_output.numpy()[::-1] @ ctx.vectors.T
        return {"positions": pb.asarray(-2 * np.einsum("ij,ijx->ix", to_matrix, ctx.weight))}

    return coulomb_spectrum


@BOOK.right(
    lambda rng: ((t(atoms(rng, spread=2.0)), t(rng.uniform(-1, 1, 4)), t(rng.uniform(1, 2, 4))), {})
)
def born_energy():
    @pb.autograd_function
    def born_energy(ctx, positions, charges, radii, solvent=78.5):
        """Energy of solvation (generalized Born, Still's formula); kcal/mol, angstrom."""
        if solvent < 1 or (radii.numpy() <= 0).any():
            raise ValueError("the solvent must be 1 or more, radii positive")
        ctx.save_for_backward(positions=positions, charges=charges, radii=radii)
        ctx.scale = 332.06 * (1 - 1 / solvent)
        q = charges.numpy()
        _, _, _, square = lengths(positions.numpy(), radii.numpy())
        return pb.asarray(np.array(-ctx.scale / 2 * (q @ (1 / np.sqrt(square)) @ q)))

    def lengths(x, R):
        gap = x[:, None] - x[None]
        ratio = (gap**2).sum(axis=2) / (4 * np.outer(R, R))
        fade = np.exp(-ratio)
        return gap, ratio, fade, np.outer(R, R) * (4 * ratio + fade)

    @born_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, q, R = (v.numpy() for v in ctx.saved_variables)
        gap, ratio, fade, square = lengths(x, R)
        scale = g.item() * ctx.scale
        to_square = scale / 2 * np.outer(q, q) / square**1.5
        return {
            "positions": pb.asarray(np.einsum("ij,ijx->ix", to_square * (2 - fade / 2), gap)),
            "charges": pb.asarray(-scale * (q / np.sqrt(square)).sum(axis=1)),
            "radii": pb.asarray((to_square * fade * (1 + ratio)) @ R),
        }

    return born_energy


@BOOK.right(lambda rng: ((t(atoms(rng, 5)), t(atoms(rng, 5) @ np.diag([1, -1, 1]))), {}))
def superposed_rmsd():
    class SuperposedRmsd(pb.Function):
        """Root mean square distance of two structures after the best rotation, no reflection."""

        @staticmethod
        def forward(ctx, mobile, reference):
            a, b = (x.numpy() - x.numpy().mean(axis=0) for x in (mobile, reference))
            u, _, vt = np.linalg.svd(a.T @ b)
            u[:, -1] *= np.sign(np.linalg.det(u @ vt))
            rest = a - b @ (u @ vt).T
            rmsd = np.sqrt((rest**2).sum() / len(a))
            if rmsd < 1e-9:
                raise ValueError("the structures are the same")
            ctx.save_for_backward(rest=rest, turn=u @ vt, rmsd=rmsd)
            return pb.asarray(np.array(rmsd))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            rest, turn, rmsd = ctx.saved_variables
            grad = grad_output.item() * rest / (len(rest) * rmsd)
            return pb.asarray(grad), pb.asarray(-grad @ turn)

    return SuperposedRmsd.apply


@BOOK.right(lambda rng: ((t(atoms(rng, 5)),), {"centre": 1, "radius": 1.1}))
def coordination_number():
    def quotient(x, n, m):
        """Return (1 - x**n) / (1 - x**m) and its slope, of which x = 1 is no pole."""
        top, bottom = np.poly1d(np.ones(n)), np.poly1d(np.ones(m))
        value = top(x) / bottom(x)
        return value, (top.deriv()(x) - value * bottom.deriv()(x)) / bottom(x)

    @pb.autograd_function
    def coordination_number(ctx, positions, centre=0, radius=1.5, n=6, m=12):
        """Number of atoms within about `radius` of the atom `centre`, without steps."""
        if not 1 < n < m or radius <= 0:
            raise ValueError("exponents 1 < n < m and a positive radius required")
        gap = positions.numpy() - positions.numpy()[centre]
        r = np.sqrt((gap**2).sum(axis=1))
        others = np.arange(len(gap)) != centre % len(gap)
        if (r[others] == 0).any():
            raise ValueError("an atom is at the centre")
        value, slope = quotient(r / radius, n, m)
        safe = np.where(others, r, 1.0)
        ctx.pull = np.where(others, slope / (radius * safe), 0.0)[:, None] * gap
        ctx.centre = centre
        return pb.asarray(np.array(value[others].sum()))

    @coordination_number.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = g.item() * ctx.pull
        grad[ctx.centre] -= grad.sum(axis=0)
        return {"positions": pb.asarray(grad)}

    return coordination_number


@BOOK.right(lambda rng: ((t(atoms(rng, 5, spread=2.5)), t(0.1), t(1.2)), {}))
def gupta_energy():
    def parts(positions, p, q, nearest):
        i, j = np.nonzero(~np.eye(len(positions), dtype=bool))
        gap = positions[i] - positions[j]
        r = np.sqrt((gap**2).sum(axis=1))
        if len(positions) < 2 or (r == 0).any():
            raise ValueError("two atoms or more, all apart, required")
        wall, glue = (np.exp(-k * (r / nearest - 1)) for k in (p, 2 * q))
        density = np.bincount(i, weights=glue, minlength=len(positions))
        if (density == 0).any():
            raise ValueError("an atom is alone")
        return i, j, gap / r[:, None], wall, glue, density

    def forward(ctx, positions, repulsion, cohesion, p=10.0, q=2.5, nearest=2.5):
        """Cohesive energy of a cluster of metal atoms, second-moment approximation."""
        *_, wall, _, density = parts(positions.numpy(), p, q, nearest)
        ctx.save_for_backward(positions=positions, repulsion=repulsion, cohesion=cohesion)
        ctx.settings = p, q, nearest
        energy = repulsion.item() * wall.sum() - cohesion.item() * np.sqrt(density).sum()
        return pb.asarray(np.array(energy))

    @pb.once_differentiable
    def backward(ctx, g):
        s, (p, q, nearest) = ctx.saved_variables, ctx.settings
        i, j, along, wall, glue, density = parts(s.positions.numpy(), *ctx.settings)
        bond = s.cohesion.item() / (2 * np.sqrt(density[i]))
        slope = (2 * q * bond * glue - p * s.repulsion.item() * wall) / nearest
        force = g.item() * slope[:, None] * along
        grad = np.zeros(s.positions.shape)
        np.add.at(grad, i, force)
        np.subtract.at(grad, j, force)
        return {
            "positions": pb.asarray(grad),
            "repulsion": pb.asarray(np.array(g.item() * wall.sum())),
            "cohesion": pb.asarray(np.array(-g.item() * np.sqrt(density).sum())),
        }

    return pb.autograd_function(forward, backward, name="gupta_energy")
