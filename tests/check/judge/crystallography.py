"""Crystallography: structure factors, cells, symmetry, displacement, powder peaks, refinement."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, TRANSPOSED, Book, at, mends, t

BOOK = Book("crystallography")

HKL = np.array([[1, 0, 0], [1, 1, 0], [0, 2, 1], [2, -1, 3], [1, 2, 2], [3, 0, 1]])


def atoms(rng):
    kwargs = {"scattering": np.array([6.0, 8.0, 16.0])}
    return (HKL, t(rng.uniform(0, 1, (3, 3))), t(rng.uniform(0.5, 1, 3))), kwargs


@BOOK.wrong(
    atoms,
    "with an inversion centre the slope in the positions has the cosine where the sine belongs",
    at("centric"),
    r"\bco?sine?\b|\bsin\(|\bphase\b.{0,40}(?:wrong|quarter|shift)|pi ?/ ?2\b",
    r"centro|\binversion\b|\bcentric (?:is|=|set|True)|second atom|\bmates?\b",
    mends(
        "waves - waves.conj()",
        "- np.conj(waves)",
        "-2 * np.sin",
        "2j * waves.imag",
        "waves.imag",
        "np.sin(",
    ),
    where="centric=True",
    shows=lambda rng: (atoms(rng)[0], {"scattering": np.array([6.0, 8, 16]), "centric": True}),
)
def structure_factor():
    @pb.autograd_function
    def structure_factor(ctx, hkl, positions, occupancy, scattering, centric=False):
        """F(hkl) of atoms at fractional positions (atoms, 3).

        centric: the origin is an inversion centre; every atom has a mate at -x.
        """
        waves = np.exp(2j * np.pi * hkl @ positions.numpy().T)
        if centric:
            waves = waves + waves.conj()
        ctx.save_for_backward(occupancy=occupancy, waves=waves)
        ctx.hkl, ctx.scattering = hkl, scattering
        return pb.asarray(waves @ (scattering * occupancy.numpy()))

    @structure_factor.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        occupancy, waves = ctx.saved_variables.occupancy.numpy(), ctx.saved_variables.waves
        gn = grad_output.numpy()
        turn = 2j * np.pi * waves * (ctx.scattering * occupancy)
        by_phase = (gn.conj()[:, None] * turn).real
        return {
            "positions": pb.asarray(by_phase.T @ ctx.hkl),
            "occupancy": pb.asarray(ctx.scattering * (gn.conj() @ waves).real),
        }

    return structure_factor


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5, 12, 3)), t(np.array([90.0, 104.0, 90.0]))), {}),
    "the slope in an angle lacks the product of the cosines of the other two, which is zero in a "
    "monoclinic cell",
    MISSING,
    r"triclinic|rhombohedral|\bcosines?\b|other (?:two )?angles|monoclinic|orthorhombic",
    r"(?:if|when|where|unless|angles?).{0,40}\b90\b|right.angle|oblique",
    mends(
        "np.prod(",
        "np.roll(",
        "[1, 2, 0]",
        "cos.prod()",
        "c.prod() /",
        "np.cos(radians) - ",
        "[(i + 1) % 3]",
        "cos[1] * cos[2]",
        "cb * cg",
    ),
    where="a triclinic cell",
    shows=lambda rng: ((t(rng.uniform(5, 12, 3)), t(np.array([82.0, 104.0, 97.0]))), {}),
)
def cell_volume():
    def forward(ctx, lengths: pb.Tensor, angles: pb.Tensor) -> pb.Tensor:
        """Volume of the unit cell; lengths: a, b, c; angles: alpha, beta, gamma in degrees."""
        c = np.cos(np.deg2rad(angles.numpy()))
        square = 1 - c @ c + 2 * c.prod()
        if square <= 0:
            raise ValueError("no cell has these angles")
        ctx.save_for_backward(lengths=lengths, angles=angles, root=np.sqrt(square))
        return pb.asarray(np.array(lengths.numpy().prod() * np.sqrt(square)))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        lengths, radians = s.lengths.numpy(), np.deg2rad(s.angles.numpy())
        volume = lengths.prod() * s.root
        by_angle = np.sin(radians) * np.cos(radians) * lengths.prod() / s.root
        return {
            "lengths": pb.asarray(g.item() * volume / lengths),
            "angles": pb.asarray(g.item() * by_angle * np.pi / 180),
        }

    return pb.autograd_function(forward, backward, name="cell_volume")


@BOOK.wrong(
    lambda rng: (
        (t(np.array([0.05, 0.04, 0.03, 0.006, -0.004, 0.005]) * rng.uniform(0.9, 1.1)), HKL),
        {"wavelength": 1.54},
    ),
    "the off-diagonal terms of the metric lack the factor 2 in the gradient",
    FACTOR + r"|multipl|divided by",
    r"off.?diagonal|\bcross\b|mixed (?:terms?|indices)|symmetric|(?:last|final) three|\[3:",
    r"\b(?:elements|entries|indices|columns|positions) .{0,12}[345]\b",
    mends(
        "2 * k * m",
        "2 * h * m",
        "k * m * 2",
        "2 * h[:, [1",
        "terms[:, 3:] *= 2",
        "np.array([1, 1, 1, 2, 2, 2])",
    ),
)
def bragg_angles():
    @pb.autograd_function
    def bragg_angles(ctx, metric, hkl, wavelength=1.5406):
        """2 theta in degrees; metric: the six numbers (11, 22, 33, 23, 13, 12) of the reciprocal
        metric tensor, in 1/A^2."""
        g, (h, k, m) = metric.numpy(), hkl.T
        square = g[0] * h**2 + g[1] * k**2 + g[2] * m**2
        square = square + 2 * (g[3] * k * m + g[4] * h * m + g[5] * h * k)
        sine = wavelength / 2 * np.sqrt(square)
        if (sine >= 1).any():
            raise ValueError("a reflection lies beyond the limiting sphere")
        ctx.save_for_backward(sine=sine, square=square)
        ctx.hkl, ctx.wavelength = hkl, wavelength
        return pb.asarray(np.rad2deg(2 * np.arcsin(sine)))

    @bragg_angles.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, (h, k, m) = ctx.saved_variables, ctx.hkl.T
        by_square = np.rad2deg(2 / np.sqrt(1 - s.sine**2)) * ctx.wavelength / 4 / np.sqrt(s.square)
        terms = np.stack([h * h, k * k, m * m, k * m, h * m, h * k], axis=1)
        return {"metric": pb.asarray((g.numpy() * by_square) @ terms)}

    return bragg_angles


GRID = np.linspace(20, 40, 60)


def pattern(rng):
    centres = np.array([24.3, 31.1, 36.7])
    return (GRID, t(centres), t(rng.uniform(5, 9, 3)), t(rng.uniform(0.8, 1.4, 3))), {"mixing": 0.3}


@BOOK.wrong(
    pattern,
    "forward cuts the peaks off at reach, but the gradient has their tails beyond it",
    at("reach"),
    r"\btails?\b|cut.?off|\bwindow|truncat|\bfar (?:from|away)|\bwings?\b|\bclipp",
    r"(?:outside|beyond|inside|within|in) .{0,15}\breach",
    mends(
        "near * ", "* near", "ctx.near", "s.near", "[~near]", "np.where(near, by", "<= ctx.reach"
    ),
    where="reach is given",
    shows=lambda rng: (pattern(rng)[0], {"mixing": 0.3, "reach": 1.3}),
)
def powder_pattern():
    def profile(x, centres, widths):
        z = (x[:, None] - centres) / widths
        return z, np.exp(-np.log(2) * 4 * z**2), 1 / (1 + 4 * z**2)

    @pb.autograd_function
    def powder_pattern(ctx, x, centres, heights, widths, mixing=0.0, reach=None):
        """Sum of pseudo-Voigt peaks; mixing: share of the Lorentzian.

        reach: widths from its centre up to which a peak counts, all if None.
        """
        z, gauss, lorentz = profile(x, centres.numpy(), widths.numpy())
        shape = mixing * lorentz + (1 - mixing) * gauss
        if reach is not None:
            near = np.abs(z) <= reach
            shape = np.where(near, shape, 0.0)
        ctx.save_for_backward(centres=centres, heights=heights, widths=widths, shape=shape)
        ctx.x, ctx.mixing, ctx.reach = x, mixing, reach
        return pb.asarray(shape @ heights.numpy())

    @powder_pattern.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        heights, widths = s.heights.numpy(), s.widths.numpy()
        z, gauss, lorentz = profile(ctx.x, s.centres.numpy(), widths)
        by_z = -8 * z * (ctx.mixing * lorentz**2 + (1 - ctx.mixing) * np.log(2) * gauss)
        by_z *= gn[:, None] * heights
        return {
            "centres": pb.asarray(-(by_z / widths).sum(axis=0)),
            "heights": pb.asarray(gn @ s.shape),
            "widths": pb.asarray(-(by_z * z / widths).sum(axis=0)),
        }

    return powder_pattern


MIRRORS = np.array([np.eye(3), np.diag([-1, 1, 1]), np.diag([-1, -1, 1])])
TRIGONAL = np.array(
    [np.eye(3), [[0, -1, 0], [1, -1, 0], [0, 0, 1]], [[-1, 1, 0], [-1, 0, 0], [0, 0, 1]]]
)
SCREW = np.array([[0, 0, 0], [0, 0, 1 / 3], [0, 0, 2 / 3]])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 1, (4, 3))), MIRRORS), {}),
    "the rotations are transposed in the gradient, which is right for symmetric ones alone",
    TRANSPOSED,
    r"\binverse\b|symmetric (?:matri|rotat|operat)|not symmetric",
    r"\bthree.?fold|\btrigonal|hexagonal",
    r"\bdiagonal\b|\brows? .{0,20}columns?\b",
    mends(
        "gn @ ctx.rotations)",
        "gn, ctx.rotations)",
        '"oai,oij->aj"',
        '"oni,oij->nj"',
        "'oai,oij->aj'",
    ),
    where="a rotation that is not symmetric",
    shows=lambda rng: ((t(rng.uniform(0, 1, (4, 3))), TRIGONAL), {"translations": SCREW}),
)
def symmetry_mates():
    class SymmetryMates(pb.Function):
        """Equivalent positions R x + t of each atom, within the cell: (operations, atoms, 3)."""

        @staticmethod
        def forward(ctx, positions, rotations, translations=None):
            if translations is None:
                translations = np.zeros((len(rotations), 3))
            ctx.rotations = rotations
            images = positions.numpy() @ rotations.transpose(0, 2, 1) + translations[:, None]
            return pb.asarray(images - np.floor(images))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn = grad_output.numpy()
            back = gn @ ctx.rotations.transpose(0, 2, 1)
            return {"positions": pb.asarray(back.sum(axis=0))}

    return SymmetryMates.apply


def amplitudes(rng):
    observed = rng.uniform(10, 60, 9)
    return (t(observed * rng.uniform(0.4, 0.6, 9)), observed), {}


@BOOK.wrong(
    amplitudes,
    "the scale is fitted to the calculated amplitudes; its change with them is left out",
    MISSING,
    r"\bscale (?:factor )?(?:k )?(?:is|was|itself|depends|changes|fitted|held|taken)",
    r"\bk\b.{0,30}depend",
    r"depend\w* .{0,30}\b(?:k|scale)\b|(?:through|via) (?:the )?(?:scale|k)\b|\bfitted\b",
    r"\b(?:scale|k)\b.{0,30}\bconstant|least squares|homogene|invarian",
    at("fixed"),
    mends(
        "g_scale",
        "by_scale",
        "by_k",
        "g_k",
        "grad_k",
        "scale_grad",
        "(observed - 2 * ctx.k * F)",
        "(observed - 2 * k * F)",
        "observed - 2 * ",
        "sides @ F",
    ),
)
def r_factor():
    @pb.autograd_function
    def r_factor(ctx, calculated, observed, fixed=None):
        """R1 of a refinement; the scale is that of least squares unless it is fixed."""
        F = calculated.numpy()
        k = fixed if fixed is not None else observed @ F / (F @ F)
        ctx.save_for_backward(calculated=calculated)
        ctx.k, ctx.observed, ctx.free = k, observed, fixed is None
        return pb.asarray(np.array(np.abs(observed - k * F).sum() / observed.sum()))

    @r_factor.backward
    @pb.once_differentiable
    def _(ctx, g):
        F, k = ctx.saved_variables.calculated.numpy(), ctx.k
        sides = np.sign(k * F - ctx.observed) / ctx.observed.sum()
        return {"calculated": pb.asarray(g.item() * sides * k)}

    return r_factor


def displacement(rng):
    half = 0.1 * rng.normal(size=(3, 3))
    return (t(half @ half.T + 0.01 * np.eye(3)), HKL), {}


@BOOK.right(displacement)
def debye_waller():
    @pb.autograd_function
    def debye_waller(ctx, U, hkl):
        """exp(-2 pi^2 h U h) for each reflection; U: symmetric (3, 3), dimensionless."""
        u = U.numpy()
        if not np.allclose(u, u.T, atol=1e-12):
            raise ValueError("U must be symmetric")
        ctx.hkl = hkl
        ctx.damping = np.exp(-2 * np.pi**2 * np.einsum("ri,ij,rj->r", hkl, u, hkl))
        return pb.asarray(ctx.damping.copy())

    @debye_waller.backward
    @pb.once_differentiable
    def _(ctx, g):
        weight = -2 * np.pi**2 * g.numpy() * ctx.damping
        return {"U": pb.asarray(np.einsum("r,ri,rj->ij", weight, ctx.hkl, ctx.hkl))}

    return debye_waller


PAIRS = np.array([[0, 1], [0, 2], [1, 3], [2, 3], [0, 3], [1, 2]])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 1, (4, 3))), t(np.diag([36.0, 49, 64]) + rng.uniform(-3, 3, (3, 3)))),
        {"pairs": PAIRS},
    )
)
def nearest_image_distances():
    @pb.autograd_function
    def nearest_image_distances(ctx, positions, metric, pairs):
        """Distances of pairs of atoms to the nearest image, by fractional differences."""
        first, second = pairs.T
        if (first == second).any():
            raise ValueError("an atom has no distance from itself")
        away = positions.numpy()[second] - positions.numpy()[first]
        away -= np.round(away)
        lengths = np.sqrt(np.einsum("pi,ij,pj->p", away, metric.numpy(), away))
        if not lengths.all():
            raise ValueError("two atoms lie in one place")
        ctx.save_for_backward(metric=metric, away=away, lengths=lengths)
        ctx.pairs, ctx.atoms = pairs, len(positions)
        return pb.asarray(lengths.copy())

    @nearest_image_distances.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, weight = ctx.saved_variables, g.numpy() / (2 * ctx.saved_variables.lengths)
        both = s.metric.numpy() + s.metric.numpy().T
        pull, grad = weight[:, None] * (s.away @ both), np.zeros((ctx.atoms, 3))
        np.add.at(grad, ctx.pairs[:, 1], pull)
        np.subtract.at(grad, ctx.pairs[:, 0], pull)
        return {
            "positions": pb.asarray(grad),
            "metric": pb.asarray((weight[:, None] * s.away).T @ s.away),
        }

    return nearest_image_distances


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=6) + 1j * rng.normal(size=6)), t(rng.uniform(0, 1, (5, 3)))),
        {"hkl": HKL, "volume": 250.0},
    )
)
def electron_density():
    @pb.autograd_function
    def electron_density(ctx, factors, points, hkl, volume=1.0):
        """Density at fractional points (n, 3) from factors of one half of reciprocal space."""
        ctx.save_for_backward(factors=factors, points=points)
        ctx.hkl, ctx.volume = hkl, volume
        return 2 / volume * (waves(points, hkl) @ factors).real

    def waves(points, hkl):
        phase = -2 * np.pi * points @ pb.asarray(hkl.T.astype(float))
        return phase.cos() + 1j * phase.sin()

    @electron_density.backward
    def _(ctx, g):
        s = ctx.saved_variables
        weight = 2 / ctx.volume * g
        turned = waves(s.points, ctx.hkl) * s.factors
        slope = 2 * np.pi * turned.imag * weight[:, None]
        return {
            "factors": waves(s.points, ctx.hkl).conj().transpose(0, 1) @ (weight + 0j),
            "points": slope @ pb.asarray(ctx.hkl.astype(float)),
        }

    return electron_density


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.4, 0.9, 5)), t(rng.uniform(20, 90, 5))),
        {"instrument": 0.12, "wavelength": 1.5406},
    )
)
def scherrer_size():
    def forward(ctx, width, two_theta, instrument=0.0, wavelength=1.5406, shape=0.9):
        """Crystallite size from the widths of peaks, both widths and angles in degrees."""
        w, angle = np.deg2rad(width.numpy()), np.deg2rad(two_theta.numpy()) / 2
        square = w**2 - np.deg2rad(instrument) ** 2
        if (square <= 0).any():
            raise ValueError("a peak is narrower than the instrument's")
        size = shape * wavelength / (np.sqrt(square) * np.cos(angle))
        ctx.save_for_backward(width=w, angle=angle, square=square, size=size)
        return pb.asarray(size.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        flow = np.pi / 180 * grad_output.numpy() * s.size
        return {
            "width": pb.asarray(-flow * s.width / s.square),
            "two_theta": pb.asarray(flow * np.tan(s.angle) / 2),
        }

    return pb.autograd_function(forward, backward, name="scherrer_size")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(50, 90, 8)), t(rng.uniform(2, 6, 8)), np.array([0, 2, 0, 1, 2, 2, 0, 1])),
        {},
    )
)
def merged_intensities():
    @pb.autograd_function
    def merged_intensities(ctx, intensities, sigmas, unique):
        """Weighted means of equivalent reflections, and their sigmas; unique: index of each."""
        w = sigmas.numpy() ** -2.0
        total = np.bincount(unique, weights=w)
        if (total == 0).any():
            raise ValueError("unique leaves out a number")
        mean = np.bincount(unique, weights=w * intensities.numpy()) / total
        ctx.save_for_backward(intensities=intensities, sigmas=sigmas, total=total, mean=mean)
        ctx.unique = unique
        return {"mean": pb.asarray(mean.copy()), "sigma": pb.asarray(total**-0.5)}

    @merged_intensities.backward
    @pb.once_differentiable
    def _(ctx, g_mean, g_sigma):
        s, u = ctx.saved_variables, ctx.unique
        w, per_total = s.sigmas.numpy() ** -2.0, g_mean.numpy() / s.total
        by_weight = per_total[u] * (s.intensities.numpy() - s.mean[u])
        by_weight -= (g_sigma.numpy() * s.total**-1.5 / 2)[u]
        return {
            "intensities": pb.asarray(per_total[u] * w),
            "sigmas": pb.asarray(-2 * by_weight * s.sigmas.numpy() ** -3.0),
        }

    return merged_intensities
