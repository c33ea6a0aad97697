"""Astronomy: orbits, photometry, lensing, light curves, spectra, coordinates on the sky."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CONJUGATE, FACTOR, FLOAT32, MISSING, SWAPPED, Book, at, t

BOOK = Book("astronomy")


def eccentric_anomaly(mean, eccentricity):
    """Solve Kepler's equation by Newton's method."""
    E = mean + eccentricity * np.sin(mean)
    for _ in range(50):
        step = (E - eccentricity * np.sin(E) - mean) / (1 - eccentricity * np.cos(E))
        E = E - step
        if np.abs(step).max() < 1e-14:
            break
    return E


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 6, 5)), t(0.3 + 0.2 * rng.random()), t(1.5)), {}),
    "the anomaly is taken for a constant in the eccentricity's gradient: its term is missing",
    MISSING,
    r"\bconstant\b|\bimplicit|\bonly part\b|\bpart of\b|\bexplicit|\ba term\b",
)
def orbit_position():
    @pb.autograd_function
    def orbit_position(ctx, mean_anomaly, eccentricity, axis):
        """Positions: (n, 2) in the plane of the orbit; mean_anomaly: (n,)."""
        e, a = eccentricity.item(), axis.item()
        E = eccentric_anomaly(mean_anomaly.numpy(), e)
        root = np.sqrt(1 - e * e)
        ctx.E, ctx.e, ctx.a, ctx.root = E, e, a, root
        return pb.asarray(a * np.stack([np.cos(E) - e, root * np.sin(E)], axis=1))

    @orbit_position.backward
    @pb.once_differentiable
    def _(ctx, g):
        E, e, a, root = ctx.E, ctx.e, ctx.a, ctx.root
        gx, gy = g.numpy().T
        by_E = a * (gy * root * np.cos(E) - gx * np.sin(E))
        by_e = -a * (gx + gy * e / root * np.sin(E)).sum()
        return {
            "mean_anomaly": pb.asarray(by_E / (1 - e * np.cos(E))),
            "eccentricity": by_e,
            "axis": (gx * (np.cos(E) - e) + gy * root * np.sin(E)).sum(),
        }

    return orbit_position


@BOOK.wrong(
    lambda rng: ((t(50 + 100 * rng.random(6)), t(1 + rng.random(6)), t(25.0)), {"exposure": 30.0}),
    "the gradients of the two outputs are exchanged",
    SWAPPED,
    r"\b(other|another|first|second|wrong|which) (of the )?(two )?outputs?\b",
    r"\boutputs?\b.{0,40}\border\b|\border of\b.{0,40}\boutputs?\b",
)
def magnitudes():
    @pb.autograd_function
    def magnitudes(ctx, counts, sigma, zero_point, exposure=1.0):
        """Magnitudes of counts: (n,) and their errors from sigma: (n,)."""
        c, s = counts.numpy(), sigma.numpy()
        unit = 2.5 / np.log(10)
        ctx.c, ctx.s, ctx.unit = c.copy(), s.copy(), unit
        magnitude = zero_point.item() - unit * np.log(c / exposure)
        return pb.asarray(magnitude), pb.asarray(unit * s / c)

    @magnitudes.backward
    @pb.once_differentiable
    def _(ctx, g_error, g_magnitude):
        gm, ge = g_magnitude.numpy(), g_error.numpy()
        by_counts = -ctx.unit * (gm + ge * ctx.s / ctx.c) / ctx.c
        return {
            "counts": pb.asarray(by_counts),
            "sigma": pb.asarray(ctx.unit * ge / ctx.c),
            "zero_point": gm.sum(),
        }

    return magnitudes


def sky(rng):
    ra, dec = rng.uniform(0, 6, 6), rng.uniform(-0.9, 0.9, 6)
    return (t(ra), t(dec), t(ra + 0.2 * rng.normal(size=6)), t(dec + 0.3)), {}


@BOOK.wrong(
    sky,
    "the right ascensions' gradients lack a factor, the cosine of the declination",
    FACTOR,
    r"\bcos(ine)?\b|\btoo (large|small)\b|(depend|chang|var)\w* (on|with) `?dec",
)
def separation():
    @pb.autograd_function
    def separation(ctx, ra, dec, ra2, dec2):
        """Angles between pairs of directions by the haversine formula; all (n,)."""
        a, d, a2, d2 = (v.numpy() for v in (ra, dec, ra2, dec2))
        half_a, half_d = (a2 - a) / 2, (d2 - d) / 2
        hav = np.sin(half_d) ** 2 + np.cos(d) * np.cos(d2) * np.sin(half_a) ** 2
        ctx.save_for_backward(d.copy(), d2.copy(), half_a, half_d, hav)
        return pb.asarray(2 * np.arcsin(np.sqrt(hav)))

    @separation.backward
    @pb.once_differentiable
    def _(ctx, g):
        d, d2, half_a, half_d, hav = ctx.saved_variables
        by_hav = g.numpy() / np.sqrt(hav * (1 - hav))
        across = by_hav * np.cos(d) * np.sin(half_a) * np.cos(half_a)
        along = by_hav * np.sin(half_d) * np.cos(half_d)
        lean = by_hav * np.sin(half_a) ** 2
        return {
            "ra": pb.asarray(-across),
            "dec": pb.asarray(-along - lean * np.sin(d) * np.cos(d2)),
            "ra2": pb.asarray(across),
            "dec2": pb.asarray(along - lean * np.cos(d) * np.sin(d2)),
        }

    return separation


def complex_normal(rng, n):
    return rng.normal(size=n) + 1j * rng.normal(size=n)


@BOOK.wrong(
    lambda rng: (
        (t(2 + complex_normal(rng, 5)), t(0.5 * complex_normal(rng, 2)), t(0.5 + rng.random(2))),
        {"shear": 0.1},
    ),
    "the deflection depends on the conjugate of z, but the incoming gradient is not conjugated",
    CONJUGATE,
    r"\bimaginary (part|component)|\bholomorph|Wirtinger",
)
def lens_equation():
    @pb.autograd_function
    def lens_equation(ctx, image, lens, mass, shear=0.0):
        """Sources of complex images: (n,) behind point masses at lens: (k,), mass: (k,)."""
        apart = np.conj(image.numpy()[:, None] - lens.numpy())
        ctx.save_for_backward(mass=mass, apart=apart, shear=shear)
        deflection = (mass.numpy() / apart).sum(axis=1)
        return pb.asarray(image.numpy() + shear * np.conj(image.numpy()) - deflection)

    @lens_equation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        by_apart = g[:, None] * s.mass.numpy() / s.apart**2
        return {
            "image": pb.asarray(g + s.shear * g.conj() + by_apart.sum(axis=1)),
            "lens": pb.asarray(-by_apart.sum(axis=0)),
            "mass": pb.asarray(-(g.conj()[:, None] / s.apart).sum(axis=0).real),
        }

    return lens_equation


def observed(**settings):
    def given(rng):
        times = np.sort(rng.uniform(0, 5, 9))
        return (t(0.3), t(1.3 + 0.2 * rng.random()), t(0.2)), {"times": times, **settings}

    return given


@BOOK.wrong(
    observed(cadence=0.4),
    "the gradients are taken at the middle of the exposure, whatever supersample is",
    at("supersample"),
    r"\bsupersample`?\b.{0,30}(ignor|not used|no (effect|influence))|\bsub-?(samples|exposures)",
    r"\bmid(dle|point)",
    where="supersample other than 1",
    shows=observed(cadence=0.4, supersample=5),
)
def pulsation():
    @pb.autograd_function
    def pulsation(ctx, amplitude, period, epoch, times, cadence=0.0, supersample=1):
        """A cosine seen in exposures that last a cadence each; times: (n,) of their middles."""
        inside = (np.arange(supersample) + 0.5) / supersample - 0.5
        moments = times[:, None] + cadence * inside
        cycles = (moments - epoch.item()) / period.item()
        flux = np.cos(2 * np.pi * cycles).mean(axis=1)
        ctx.save_for_backward(amplitude=amplitude, period=period, epoch=epoch, flux=flux)
        ctx.times = times
        return pb.asarray(1 + amplitude.item() * flux)

    @pulsation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        a, p = s.amplitude.item(), s.period.item()
        cycles = (ctx.times - s.epoch.item()) / p
        by_cycles = -2 * np.pi * a * g.numpy() * np.sin(2 * np.pi * cycles)
        return {
            "amplitude": (g.numpy() * s.flux).sum(),
            "period": -(by_cycles * cycles).sum() / p,
            "epoch": -by_cycles.sum() / p,
        }

    return pulsation


@BOOK.wrong(
    lambda rng: ((t(3000 + 2 * rng.normal(size=8)), t(0.1 + 0.1 * rng.random(8))), {}),
    "backward takes the variance as mean square less squared mean, which loses float32's precision",
    FLOAT32,
    r"cancel|\brounding\b|\bsingle\b",
    where="float32",
)
def fractional_variability():
    @pb.autograd_function
    def fractional_variability(ctx, flux, error):
        """Root of the variance in excess of the errors', by the mean flux; both (n,)."""
        f, e = flux.numpy(), error.numpy()
        excess = f.var(ddof=1) - (e**2).mean()
        if excess <= 0:
            raise ValueError("fractional_variability: the errors explain all of the variance")
        ctx.save_for_backward(flux=flux, error=error)
        return pb.asarray(np.asarray(np.sqrt(excess) / f.mean()))

    @fractional_variability.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        f, e, n = s.flux.numpy(), s.error.numpy(), len(s.flux)
        mean = f.mean()
        variance = (np.mean(f * f) - mean * mean) * f.dtype.type(n / (n - 1))
        root = np.sqrt(np.maximum(variance - (e**2).mean(), f.dtype.type(1e-6)))
        by_excess = g.numpy() / (2 * root * mean)
        by_flux = by_excess * 2 * (f - mean) / (n - 1) - g.numpy() * root / (mean**2 * n)
        return {"flux": pb.asarray(by_flux), "error": pb.asarray(-by_excess * 2 * e / n)}

    return fractional_variability


@BOOK.right(
    lambda rng: (
        (t(12.0), t(3.1), t(0.4), t(0.35 + 0.2 * rng.random()), t(rng.uniform(0, 6)), t(-2.0)),
        {"times": np.sort(rng.uniform(0, 10, 8))},
    )
)
def radial_velocity():
    @pb.autograd_function
    def radial_velocity(ctx, swing, period, epoch, eccentricity, omega, systemic, times):
        """Velocities of a star at times: (n,), swung by a planet on an eccentric orbit."""
        K, P, e, w = (v.item() for v in (swing, period, eccentricity, omega))
        elapsed = times - epoch.item()
        E = eccentric_anomaly(2 * np.pi * elapsed / P, e)
        nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
        shape = np.cos(nu + w) + e * np.cos(w)
        ctx.save_for_backward(K, P, e, w, elapsed, E, nu, shape)
        return pb.asarray(systemic.item() + K * shape)

    @radial_velocity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        K, P, e, w, elapsed, E, nu, shape = ctx.saved_variables
        g = grad_output.numpy()
        root, r = np.sqrt(1 - e * e), 1 - e * np.cos(E)
        by_nu = -K * g * np.sin(nu + w)
        by_M = by_nu * root / r**2
        by_e = (by_nu * np.sin(nu) * (2 + e * np.cos(nu)) / root**2).sum()
        return {
            "swing": (g * shape).sum(),
            "period": -(by_M * 2 * np.pi * elapsed).sum() / P**2,
            "epoch": -by_M.sum() * 2 * np.pi / P,
            "eccentricity": by_e + K * np.cos(w) * g.sum(),
            "omega": by_nu.sum() - K * e * np.sin(w) * g.sum(),
            "systemic": g.sum(),
        }

    return radial_velocity


@BOOK.right(
    lambda rng: (
        (t(0.02 + 0.01 * rng.random()), t(2.03), t(0.52), t(0.2)),
        {"times": np.linspace(1.2, 2.8, 13)},
    )
)
def trapezoid_transit():
    class Transit(pb.Function):
        """Flux at times: (n,) of a transit with straight flanks; also which are in it."""

        @staticmethod
        def forward(ctx, depth, centre, half_width, flank, times):
            d, c, h, f = (v.item() for v in (depth, centre, half_width, flank))
            late = times - c
            raw = (h + f - np.abs(late)) / f
            share = np.clip(raw, 0, 1)
            ctx.save_for_backward(d, f, share, np.sign(late), (raw > 0) & (raw < 1))
            return pb.asarray(1 - d * share), pb.asarray(share > 0)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_flux, g_inside):
            d, f, share, side, on_flank = ctx.saved_variables
            by_raw = -d * g_flux.numpy() * on_flank
            return (
                -(g_flux.numpy() * share).sum(),
                (by_raw * side).sum() / f,
                by_raw.sum() / f,
                (by_raw * (1 - share)).sum() / f,
                None,
            )

    return Transit.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(3, 2))), t(1.2), t(np.array([0.1, -0.2])), t(0.7)),
        {"core": 0.05},
    )
)
def isothermal_lens():
    @pb.autograd_function
    def isothermal_lens(ctx, position, strength, centre, flattening, *, core=0.0):
        """Deflections: (n, 2) and potentials: (n,) of an elliptical lens with a small core."""
        d = position.numpy() - centre.numpy()
        b, q = strength.item(), flattening.item()
        radius = np.sqrt(core**2 + q**2 * d[:, 0] ** 2 + d[:, 1] ** 2)
        weight = np.array([q**2, 1.0])
        ctx.d, ctx.b, ctx.q, ctx.radius, ctx.weight = d, b, q, radius, weight
        return pb.asarray(b * weight * d / radius[:, None]), pb.asarray(b * radius)

    @isothermal_lens.backward
    @pb.once_differentiable
    def _(ctx, g_deflection, g_potential):
        d, b, q, r, weight = ctx.d, ctx.b, ctx.q, ctx.radius, ctx.weight
        ga, gp = g_deflection.numpy(), g_potential.numpy()
        pull = (ga * weight * d).sum(axis=1)
        by_radius = b * gp - b * pull / r**2
        by_d = b * ga * weight / r[:, None] + (by_radius / r)[:, None] * weight * d
        by_q = (2 * b * q * ga[:, 0] * d[:, 0] + by_radius * q * d[:, 0] ** 2) / r
        return {
            "position": pb.asarray(by_d),
            "strength": (pull / r + gp * r).sum(),
            "centre": pb.asarray(-by_d.sum(axis=0)),
            "flattening": by_q.sum(),
        }

    return isothermal_lens


def exposure(rng):
    ivar = 0.5 + rng.random(12)
    ivar[[2, 7]] = 0
    return (t(rng.normal(size=12)), t(rng.normal(size=(3, 12)))), {"ivar": ivar, "ridge": 0.1}


@BOOK.right(exposure)
def template_fit():
    @pb.autograd_function
    def template_fit(ctx, flux, templates, ivar=None, ridge=0.0):
        """Least chi-square over amplitudes: (k,) of templates: (k, n), and these; dead pixels 0."""
        f, T = flux.numpy(), templates.numpy()
        w = np.ones_like(f) if ivar is None else ivar
        A = (T * w) @ T.T + ridge * np.eye(len(T))
        amplitude = np.linalg.solve(A, T @ (w * f))
        residual = f - amplitude @ T
        chi2 = (w * residual**2).sum() + ridge * (amplitude**2).sum()
        ctx.save_for_backward(T=templates, A=A, x=amplitude.copy(), w=w, residual=residual)
        return {"chi2": pb.asarray(np.asarray(chi2)), "amplitude": pb.asarray(amplitude)}

    @template_fit.backward
    @pb.once_differentiable
    def _(ctx, g_chi2, g_amplitude):
        s, gc = ctx.saved_variables, 2 * g_chi2.item()
        T = s.T.numpy()
        y = np.linalg.solve(s.A, g_amplitude.numpy())
        weighted = s.w * s.residual
        by_flux = gc * weighted + s.w * (y @ T)
        by_T = -gc * np.outer(s.x, weighted)
        by_T += np.outer(y, weighted) - np.outer(s.x, s.w * (y @ T))
        return {"flux": pb.asarray(by_flux), "templates": pb.asarray(by_T)}

    return template_fit


@BOOK.right(
    lambda rng: (
        (t(rng.random(3)), t(0.3 * rng.normal(size=3)), t(0.3 * rng.normal(size=3))),
        {"baselines": rng.normal(size=(6, 2))},
    )
)
def visibilities():
    @pb.autograd_function
    def visibilities(ctx, flux, east, north, baselines):
        """Complex visibilities at baselines: (m, 2) of point sources: (k,)."""
        u, v = baselines[:, :1], baselines[:, 1:]
        fringes = np.exp(-2j * np.pi * (u * east.numpy() + v * north.numpy()))
        ctx.save_for_backward(flux=flux, fringes=fringes, u=u, v=v)
        return pb.asarray(fringes @ flux.numpy())

    @visibilities.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        seen = g.numpy().conj()[:, None] * s.fringes
        by_phase = 2 * np.pi * s.flux.numpy() * seen.imag
        return {
            "flux": pb.asarray(seen.real.sum(axis=0)),
            "east": pb.asarray((s.u * by_phase).sum(axis=0)),
            "north": pb.asarray((s.v * by_phase).sum(axis=0)),
        }

    return visibilities
