"""Cosmology: distances, ages, power spectra, lensing, halos, supernovae, pairs of galaxies."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SIGN, Book, at, mends, t

BOOK = Book("cosmology")


def universe(rng):
    return t(rng.uniform(0.2, 2.5, 4)), t(np.array(0.31)), t(np.array(68.0))


@BOOK.wrong(
    lambda rng: (universe(rng), {}),
    "in a curved space the distance is a sine of the path: its derivative, a cosine, is left out",
    at("curvature"),
    r"\bcurved\b|\bflat\b|\bcosh?\b|cosine|(?:open|closed) (?:space|univ)",
    r"curvature.{0,40}(?:not 0|non.?zero|other than|ignored|differs|[!><]=? ?0)|chain rule",
    mends("np.cosh(", "np.cos(", "np.sqrt(1 + ", "s.bend", "ctx.bend", "np.hypot(1"),
    where="curvature is not 0",
    shows=lambda rng: (universe(rng), {"curvature": 0.25}),
)
def angular_distance():
    NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)

    def squared_rate(z, matter, curvature):
        return matter * (1 + z) ** 3 + curvature * (1 + z) ** 2 + 1 - matter - curvature

    @pb.autograd_function
    def angular_distance(ctx, redshift, matter, hubble, curvature=0.0):
        """Angular diameter distance in Mpc; redshift: (n,), hubble in km/s/Mpc."""
        z, m = redshift.numpy(), matter.item()
        grid = z[:, None] / 2 * (NODES + 1)
        squared = squared_rate(grid, m, curvature)
        path = z / 2 * (squared**-0.5 @ WEIGHTS)
        root = np.sqrt(abs(curvature))
        if curvature > 0:
            across = np.sinh(root * path) / root
        else:
            across = np.sin(root * path) / root if curvature else path
        out = 299792.458 / hubble.item() * across / (1 + z)
        ctx.save_for_backward(z=z, m=m, H=hubble.item(), grid=grid, squared=squared, out=out)
        ctx.path, ctx.curvature = path, curvature
        return pb.asarray(out.copy())

    @angular_distance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_path = gn * 299792.458 / s.H / (1 + s.z)
        slope = s.squared**-1.5 * ((1 + s.grid) ** 3 - 1)
        by_matter = -s.z / 4 * (slope @ WEIGHTS)
        rate = np.sqrt(squared_rate(s.z, s.m, ctx.curvature))
        return {
            "redshift": pb.asarray(to_path / rate - gn * s.out / (1 + s.z)),
            "matter": to_path @ by_matter,
            "hubble": -(gn @ s.out) / s.H,
        }

    return angular_distance


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 3)), t(rng.uniform(0.9, 1.0)), t(rng.uniform(0.15, 0.25))),
        {"k": np.geomspace(0.01, 2, 6)},
    ),
    "the transfer function stands squared in the spectrum: the factor 2 of its slope is missing",
    FACTOR + r"|multipl|divided by",
    r"\bsquared?\b|transfer function|power rule|doubl",
    mends("2 * bend", "bend * 2", "2 * s.P", "2 * (gn", "2 * gn", "2 * s.q"),
)
def bbks_spectrum():
    COEFFICIENTS = np.array([1.0, 3.89, 16.1**2, 5.46**3, 6.71**4])

    def forward(ctx, amplitude, tilt, shape, k):
        """Spectrum of cold dark matter by the fit of Bardeen and others, at wavenumbers k."""
        q = k / shape.item()
        series = np.polynomial.Polynomial(COEFFICIENTS)
        transfer = np.log1p(2.34 * q) / (2.34 * q) * series(q) ** -0.25
        P = amplitude.item() * k ** tilt.item() * transfer**2
        ctx.save_for_backward(amplitude=amplitude, shape=shape, k=k, q=q, P=P)
        return pb.asarray(P.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        series = np.polynomial.Polynomial(COEFFICIENTS)
        bend = 2.34 / ((1 + 2.34 * s.q) * np.log1p(2.34 * s.q)) - 1 / s.q
        bend -= series.deriv()(s.q) / (4 * series(s.q))
        return {
            "amplitude": gn @ s.P / s.amplitude.item(),
            "tilt": gn @ (s.P * np.log(s.k)),
            "shape": -(gn @ (s.P * bend * s.q)) / s.shape.item(),
        }

    return pb.autograd_function(forward, backward, name="bbks_spectrum")


NIGHTS = np.array([-30.0, -12.0, -4.0, 1.0, 6.0, 19.0, 44.0])


@BOOK.wrong(
    lambda rng: ((NIGHTS, t(rng.normal()), t(rng.uniform(15, 25)), t(rng.uniform(0.2, 0.6))), {}),
    "a lens that passes on the other side (negative impact) gets the opposite sign",
    SIGN,
    r"(?:other|wrong) side|absolute value",
    r"\bimpact`? ?(?:is |are |was )?(?:<|below|under|less than)",
    mends("np.sign(", "np.copysign(", "s.impact / s.u", "impact.item() / ", "impact=impact"),
    where="negative impact",
    shows=lambda rng: ((NIGHTS, t(rng.normal()), t(rng.uniform(15, 25)), t(np.array(-0.3))), {}),
)
def microlensing_flux():
    class Microlensing(pb.Function):
        """Flux of a star behind a passing lens, 1 without the lens.

        time: (n,), days; peak and timescale: days; impact: smallest distance in Einstein radii,
        its sign the side on which the lens passes; share: of the light that is lensed.
        """

        @staticmethod
        def forward(ctx, time, peak, timescale, impact, share=1.0):
            if timescale.item() <= 0:
                raise ValueError("timescale must be positive")
            closest = abs(impact.item())
            along = (time - peak.item()) / timescale.item()
            u = np.hypot(along, closest)
            ctx.save_for_backward(along=along, u=u, closest=closest, timescale=timescale)
            ctx.share = share
            return pb.asarray(share * (u**2 + 2) / (u * np.sqrt(u**2 + 4)) + 1 - share)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            by_u = -8 * ctx.share / (s.u**2 * (s.u**2 + 4) ** 1.5)
            to_square = grad_output.numpy() * by_u / s.u
            return {
                "peak": -(to_square * s.along).sum() / s.timescale.item(),
                "timescale": -(to_square * s.along**2).sum() / s.timescale.item(),
                "impact": to_square.sum() * s.closest,
            }

    return Microlensing.apply


MASSES = np.geomspace(1.0, 50.0, 7)


@BOOK.wrong(
    lambda rng: (
        (t(2.2 * MASSES**-0.2 * rng.uniform(0.97, 1.03, 7)), t(np.array(1.686)), MASSES),
        {},
    ),
    "the one-sided differences at both ends are taken for central ones",
    r"\bends\b|at the end\b|boundar|\bedges?\b|one.?sided|first and (?:the )?last",
    r"last (?:two|element|mass|value)",
    r"(?:elements?|positions?|indices) 0 and|first two|\binterior\b|\binner\b|centr",
    mends("to_slope[0]", "to_slope[-1]", "to_slope[1:-1]", "to_slope[:1]", "to_slope[-1:]"),
)
def halo_abundance():
    @pb.autograd_function
    def halo_abundance(ctx, sigma, threshold, mass):
        """Halos by logarithm of mass (Press and Schechter) in units of the mean density.

        sigma: (n,), fluctuations at mass (n,), which must be spaced evenly in its logarithm.
        """
        spacing = np.diff(np.log(mass))
        if not np.allclose(spacing, spacing[0]):
            raise ValueError("mass must be spaced evenly in its logarithm")
        slope = np.gradient(np.log(sigma.numpy()), spacing[0])
        if (slope >= 0).any():
            raise ValueError("sigma must fall with mass")
        nu = threshold.item() / sigma.numpy()
        counts = -np.sqrt(2 / np.pi) * nu * slope * np.exp(-(nu**2) / 2) / mass
        ctx.save_for_backward(sigma=sigma, threshold=threshold, slope=slope, nu=nu, counts=counts)
        ctx.spacing = spacing[0]
        return pb.asarray(counts.copy())

    @halo_abundance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        weighted = grad_output.numpy() * s.counts
        to_nu = weighted * (1 - s.nu**2)
        to_slope = weighted / s.slope
        to_log = -to_nu
        to_log[1:] += to_slope[:-1] / (2 * ctx.spacing)
        to_log[:-1] -= to_slope[1:] / (2 * ctx.spacing)
        return {
            "sigma": pb.asarray(to_log / s.sigma.numpy()),
            "threshold": to_nu.sum() / s.threshold.item(),
        }

    return halo_abundance


def supernovae(rng, error):
    model = rng.uniform(34, 44, 6)
    return (t(model), model + rng.normal(0, 0.3, 6), t(np.array(0.12))), {"sigma": error}


@BOOK.wrong(
    lambda rng: supernovae(rng, 0.15),
    "the offset taken off is the plain mean, where that weighted by the errors is the best one",
    r"weighted (?:mean|average|offset)|plain mean|unweighted",
    r"(?:weights?|sigmas?).{0,30}(?:differ|equal|same|vary|unequal)",
    r"(?:different|equal|unequal|same|array of) (?:errors|sigmas?|weights?)",
    at("sigma"),
    mends(
        "np.average(s.delta, weights",
        "(s.w * s.delta).sum()",
        "(s.w @ s.delta)",
        "s.w @ s.delta",
        "np.average(delta, weights=s.w",
        "s.offset",
        "ctx.offset",
    ),
    where="errors that differ",
    shows=lambda rng: supernovae(rng, np.array([0.1, 0.4, 0.15, 0.6, 0.2, 0.3])),
)
def supernova_misfit():
    @pb.autograd_function
    def supernova_misfit(ctx, modulus, observed, scatter, sigma=0.1):
        """-2 log likelihood of distance moduli, at the best common offset.

        scatter: of the supernovae themselves, beside sigma, that of each observation.
        """
        variance = np.broadcast_to(sigma, observed.shape) ** 2 + scatter.item() ** 2
        delta = modulus.numpy() - observed
        residual = delta - np.average(delta, weights=1 / variance)
        ctx.save_for_backward(delta=delta, w=1 / variance, scatter=scatter.item())
        return pb.asarray(np.array((residual**2 / variance + np.log(variance)).sum()))

    @supernova_misfit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        pull = s.w * (s.delta - s.delta.mean())
        return {
            "modulus": pb.asarray(2 * g.item() * pull),
            "scatter": 2 * g.item() * s.scatter * (s.w - pull**2).sum(),
        }

    return supernova_misfit


@BOOK.wrong(
    lambda rng: ((t(np.tril(rng.normal(size=(5, 5)) + 1j * rng.normal(size=(5, 5)))),), {}),
    "harmonics with m = 0 have no partner: their gradient must not be doubled",
    r"\bm`? ?={1,2} ?0|first column|column 0|\[(?:\d|:|l), 0\]|zonal|\bm (?:is|of) (?:0|zero)",
    FACTOR,
    r"doubl|counted twice|no partner",
    mends(
        "[:, 0] *= 0.5",
        "[:, 0] /= 2",
        "pairs[:, 0] =",
        "grad[:, 0]",
        "ctx.count",
        "np.where(m == 0",
        "np.where(m > 0",
    ),
)
def harmonic_spectrum():
    def forward(ctx, alm):
        """Power at each l of a real map; alm: (lmax + 1, lmax + 1), rows l, columns m from 0."""
        a = alm.numpy()
        count = np.tril(np.full(a.shape, 2.0))
        count[:, 0] = 1.0
        ctx.a, ctx.modes = a, 2 * np.arange(len(a)) + 1
        return pb.asarray((count * np.abs(a) ** 2).sum(axis=1) / ctx.modes)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        pairs = np.tril(np.full(ctx.a.shape, 2.0))
        each = (grad_output.numpy() / ctx.modes)[:, None]
        return pb.asarray(2 * each * pairs * ctx.a)

    return pb.autograd_function(forward, backward, name="harmonic_spectrum")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 6, 5)), t(np.array(70.0)), t(np.array(0.3))),
        {"w": t(np.array(-0.9))},
    )
)
def lookback_time():
    @pb.autograd_function
    def lookback_time(ctx, redshift, hubble, matter, w):
        """Time in Gyr since light left, in a flat universe; w: pressure of dark energy."""
        z, m = redshift.numpy(), matter.item()
        if (z <= -1).any() or not 0 <= m <= 1:
            raise ValueError("needs redshifts above -1 and a share of matter")
        nodes, weights = np.polynomial.legendre.leggauss(48)
        # in the logarithm of the scale factor, where the integrand is smooth
        a = (1 + np.append(nodes, 1.0)) * np.log1p(z)[:, None] / 2
        dark = np.exp(3 * (1 + w.item()) * a)
        squared = m * np.exp(3 * a) + (1 - m) * dark
        ctx.save_for_backward(z=z, hubble=hubble.item(), m=m, a=a, dark=dark, squared=squared)
        ctx.weights = weights * np.log1p(z)[:, None] / 2
        ctx.time = 977.79 / hubble.item() * (ctx.weights * squared[:, :-1] ** -0.5).sum(axis=1)
        return pb.asarray(ctx.time.copy())

    @lookback_time.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, scale = ctx.saved_variables, 977.79 / ctx.saved_variables.hubble * grad_output.numpy()
        slope = -0.5 * ctx.weights * s.squared[:, :-1] ** -1.5
        dark, a = s.dark[:, :-1], s.a[:, :-1]
        return {
            "redshift": pb.asarray(scale * s.squared[:, -1] ** -0.5 / (1 + s.z)),
            "hubble": -(grad_output.numpy() @ ctx.time) / s.hubble,
            "matter": scale @ (slope * (np.exp(3 * a) - dark)).sum(axis=1),
            "w": scale @ (slope * 3 * a * (1 - s.m) * dark).sum(axis=1),
        }

    return lookback_time


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=6) + 1j * rng.normal(size=6)),
            t(rng.uniform(0.2, 0.6, 3)),
            t(2 * rng.normal(size=3) + 2j * rng.normal(size=3)),
        ),
        {"shear": 0.1},
    )
)
def lensed_source():
    @pb.autograd_function
    def lensed_source(ctx, image, mass, place, shear=0.0):
        """Where the source of each image lies, behind point masses; places are complex numbers."""
        away = image.numpy()[:, None] - place.numpy()
        if mass.shape != place.shape or (away == 0).any():
            raise ValueError("each mass needs a place, away from the images")
        ctx.save_for_backward(mass=mass, away=away)
        ctx.shear = shear
        theta = image.numpy()
        return pb.asarray(theta - shear * theta.conj() - (mass.numpy() / away.conj()).sum(axis=1))

    @lensed_source.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, away = grad_output.numpy()[:, None], ctx.saved_variables.away
        bent = gn.conj() * ctx.saved_variables.mass.numpy() / away.conj() ** 2
        image = gn[:, 0] - ctx.shear * gn[:, 0].conj() + bent.sum(axis=1)
        return {
            "image": pb.asarray(image),
            "mass": pb.asarray(-(gn.conj() / away.conj()).real.sum(axis=0)),
            "place": pb.asarray(-bent.sum(axis=0)),
        }

    return lensed_source


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 3, 8)), t(rng.uniform(0.6, 1.2)), t(rng.uniform(1, 5))),
        {},
    )
)
def nfw_column():
    def column(x):
        """(1 - F) / (x^2 - 1) and its slope, F = arccosh(1 / x) / sqrt(1 - x^2)."""
        near = np.abs(x - 1) < 1e-3
        y = np.where(near, 2.0, x)
        root = np.sqrt(np.abs(y**2 - 1))
        angle = np.where(y > 1, np.arctan(root), np.arctanh(np.where(y < 1, root, 0.0)))
        F, gap = angle / root, y**2 - 1
        value = (1 - F) / gap
        slope = ((y**2 * F - 1) / (y * gap) - 2 * y * value) / gap
        d = x - 1
        return (
            np.where(near, 1 / 3 - 2 / 5 * d + 13 / 35 * d**2, value),
            np.where(near, -2 / 5 + 26 / 35 * d, slope),
        )

    class NFWColumn(pb.Function):
        """Mass in a column through a halo at a distance from its centre."""

        @staticmethod
        def forward(ctx, radius, scale, density):
            r, rs = radius.numpy(), scale.item()
            if (r <= 0).any() or rs <= 0:
                raise ValueError("radii and scale must be positive")
            ctx.value, ctx.slope = column(r / rs)
            ctx.x, ctx.rs, ctx.density = r / rs, rs, density.item()
            return pb.asarray(2 * ctx.density * rs * ctx.value)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn = 2 * grad_output.numpy()
            return {
                "radius": pb.asarray(gn * ctx.density * ctx.slope),
                "scale": ctx.density * (gn @ (ctx.value - ctx.x * ctx.slope)),
                "density": ctx.rs * (gn @ ctx.value),
            }

    return NFWColumn.apply


def galaxies(rng):
    return (
        (t(rng.uniform(0.5, 1.5, 12)), rng.uniform(size=(12, 2)), rng.uniform(size=(40, 2))),
        {"edges": np.array([0.0, 0.2, 0.5, 1.0])},
    )


@BOOK.right(galaxies)
def landy_szalay():
    def binned(first, second, edges):
        """The bin of the distance of each pair, -1 where there is none."""
        distance = np.linalg.norm(first[:, None] - second, axis=-1)
        place = np.searchsorted(edges, distance, side="right") - 1
        return np.where(place < len(edges) - 1, place, -1)

    @pb.autograd_function
    def landy_szalay(ctx, weights, positions, randoms, edges):
        """Correlation of weighted galaxies by distance, given random points in the same field."""
        w, bins = weights.numpy(), len(edges) - 1
        near = binned(positions, positions, edges)
        np.fill_diagonal(near, -1)
        among = np.stack([near == b for b in range(bins)]).astype(float)
        far = np.stack([binned(positions, randoms, edges) == b for b in range(bins)]).sum(axis=2)
        upper = binned(randoms, randoms, edges)[np.triu_indices(len(randoms), 1)]
        rr = np.array([(upper == b).mean() for b in range(bins)])
        if (rr == 0).any():
            raise ValueError("a bin has no pair of random points")
        pairs, total = w.sum() ** 2 - (w**2).sum(), w.sum() * len(randoms)
        dd, dr = (among @ w) @ w / pairs, far @ w / total
        ctx.save_for_backward(w, among, far, rr, dd, dr)
        ctx.pairs, ctx.total, ctx.n = pairs, total, len(randoms)
        return pb.asarray((dd - 2 * dr + rr) / rr)

    @landy_szalay.backward
    @pb.once_differentiable
    def _(ctx, g):
        w, among, far, rr, dd, dr = ctx.saved_variables
        share = g.numpy() / rr
        to_pairs = -(share @ dd) / ctx.pairs
        grad = 2 * np.einsum("b,bij,j->i", share, among, w) / ctx.pairs
        grad += 2 * to_pairs * (w.sum() - w)
        grad -= 2 * (share @ far - ctx.n * (share @ dr)) / ctx.total
        return {"weights": pb.asarray(grad)}

    return landy_szalay


@BOOK.right(lambda rng: ((t(rng.uniform(0.28, 0.4, 6)), t(rng.uniform(5, 7))), {}))
def ionised_fraction():
    ZETA3 = 1.2020569031595942
    CONSTANT = np.log(np.pi**2 / (2 * ZETA3) * (510998.95 / (2 * np.pi)) ** 1.5 * 1e10)

    @pb.autograd_function
    def ionised_fraction(ctx, temperature, baryons, binding=13.605693):
        """Share of hydrogen that is ionised, by Saha; temperature in eV, baryons in 1e-10."""
        if (temperature <= 0).any() or (baryons <= 0).any():
            raise ValueError("temperature and baryons must be positive")
        log_s = CONSTANT - baryons.log() - 1.5 * temperature.log() - binding / temperature
        x = 2 / (1 + (1 + 4 * (-log_s).exp()).sqrt())
        ctx.save_for_backward(temperature=temperature, baryons=baryons, x=x)
        ctx.binding = binding
        return x

    @ionised_fraction.backward
    def _(ctx, grad_output):
        T, b, x = ctx.saved_tensors
        to_log = grad_output * x * (1 - x) / (2 - x)
        return {
            "temperature": pb.sum_to_size(to_log * (ctx.binding / T - 1.5) / T, T.shape),
            "baryons": pb.sum_to_size(-to_log / b, b.shape),
        }

    return ionised_fraction
