"""Ophthalmology: lenses, implants, wavefronts, visual fields, pressure, drops, scans of retinas."""

from __future__ import annotations

import numpy as np
from scipy import linalg, special

import pullback as pb

from .entries import FACTOR, REVERSED, Book, at, mends, t

BOOK = Book("ophthalmology")


@BOOK.wrong(
    lambda rng: ((t(np.array([-9.5, -6.0, 4.5, 12.0]) + rng.random(4)), t(12.5)), {}),
    "the power stands below the line as well: a factor 1 / (1 - d F) is missing",
    FACTOR + r"|\bsquared?\b",
    r"quotient rule|denominator|below the line|\bpower of\b",
    mends("s.below**2", "below ** 2", "s.below * s.below", "/ s.below / s.below"),
)
def contact_lens_power():
    @pb.autograd_function
    def contact_lens_power(ctx, spectacle, distance):
        """Power at the cornea in dpt of lenses worn at a distance in mm."""
        F, d = spectacle.numpy(), distance.item() / 1000
        below = 1 - d * F
        if (below <= 0).any():
            raise ValueError("the lens is too strong for its distance")
        ctx.save_for_backward(F=F, below=below)
        return pb.asarray(F / below)

    @contact_lens_power.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "spectacle": pb.asarray(gn / s.below),
            "distance": gn @ (s.F / s.below) ** 2 / 1000,
        }

    return contact_lens_power


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0, 0.25, (3, 10))),), {"wavelength": 0.55}),
    "piston and tilt are excluded from the error, yet they get a gradient, too",
    r"piston|\btilt|exclud|first (?:three|3|modes|columns)|low(?:er)?.order|:3\b|< ?3\b",
    r"(?:should|must|expected|ought to)(?: be)? (?:0|zero)\b|\bnon-?zero\b|not (?:used|part)",
    mends("[:, 3:]", "[:, :3] = 0", "s.used", "[..., 3:]", "[..., :3] = 0"),
)
def wavefront_error():
    @pb.autograd_function
    def wavefront_error(ctx, modes, wavelength=None):
        """Error of wavefronts from Zernike coefficients, in the order of the standard (OSA).

        modes: (eyes, modes) in micrometres; piston and tilt do not count. In waves where the
        wavelength in micrometres is given. Returns (eyes,).
        """
        c = modes.numpy()
        unit = 1.0 if wavelength is None else wavelength
        rms = np.sqrt((c[:, 3:] ** 2).sum(axis=1))
        ctx.save_for_backward(c=c, rms=rms)
        ctx.unit = unit
        return pb.asarray(rms / unit)

    @wavefront_error.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        c, rms = ctx.saved_variables
        scale = np.divide(
            grad_output.numpy(), rms * ctx.unit, out=np.zeros(len(rms)), where=rms > 0
        )
        return {"modes": pb.asarray(scale[:, None] * c)}

    return wavefront_error


NORMAL = np.array([[28, 29, 28, 27], [30, 33, 32, 29], [30, 33, 31, 30], [28, 30, 30, 29.0]])
SPREAD = np.array(
    [[3, 2.6, 2.7, 3.1], [2.4, 1.6, 1.9, 2.8], [2.3, 1.5, 1.8, 2.5], [3, 2.4, 2.5, 2.9]]
)


def fields(eye):
    return lambda rng: ((t(NORMAL - rng.gamma(1.0, 3, (4, 4))),), {"eye": eye})


@BOOK.wrong(
    fields("right"),
    "the field of a left eye is mirrored, but its gradient is not mirrored back",
    REVERSED,
    at("eye"),
    r"\bleft\b",
    mends("[:, ::-1]", "np.fliplr(", "np.flip("),
    where="eye is left",
    shows=fields("left"),
)
def mean_deviation():
    def forward(ctx, sensitivity, eye="right"):
        if eye not in ("left", "right"):
            raise ValueError("eye is left or right")
        field = sensitivity.numpy() if eye == "right" else sensitivity.numpy()[:, ::-1]
        weight = 1 / SPREAD**2
        ctx.weight = weight / weight.sum()
        ctx.eye = eye
        return pb.asarray(np.array((ctx.weight * (field - NORMAL)).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        return {"sensitivity": pb.asarray(g.item() * ctx.weight)}

    return pb.autograd_function(forward, backward, name="mean_deviation")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-2.0, 1.25, 0.5]) + 0.1 * rng.random(3)),
            t(np.array([-1.5, -0.75, 2.0]) + 0.1 * rng.random(3)),
            t(np.array([20.0, 95.0, 170.0]) + rng.random(3)),
        ),
        {},
    )
)
def crossed_lenses():
    @pb.autograd_function
    def crossed_lenses(ctx, sphere, cylinder, axis):
        """Sphere, minus cylinder and axis in degrees of thin lenses put together: (n,) each."""
        S, C, twice = sphere.numpy(), cylinder.numpy(), np.deg2rad(2 * axis.numpy())
        across, oblique = -(C / 2) @ np.cos(twice), -(C / 2) @ np.sin(twice)
        size = np.hypot(across, oblique)
        turned = np.rad2deg(np.arctan2(oblique, across) / 2) % 180
        ctx.save_for_backward(C=C, twice=twice, J=(across, oblique), size=size)
        results = (S + C / 2).sum() + size, -2 * size, turned
        return tuple(pb.asarray(np.array(r)) for r in results)

    @crossed_lenses.backward
    @pb.once_differentiable
    def _(ctx, g_sphere, g_cylinder, g_axis):
        C, twice, (across, oblique), size = ctx.saved_variables
        by_across = by_oblique = 0.0
        if size > 0:
            along = (g_sphere.item() - 2 * g_cylinder.item()) / size
            turn = np.rad2deg(g_axis.item() / 2) / size**2
            by_across = along * across - turn * oblique
            by_oblique = along * oblique + turn * across
        c, s = np.cos(twice), np.sin(twice)
        return {
            "sphere": pb.asarray(np.full(len(C), g_sphere.item())),
            "cylinder": pb.asarray((g_sphere.item() - c * by_across - s * by_oblique) / 2),
            "axis": pb.asarray(np.deg2rad(C * (s * by_across - c * by_oblique))),
        }

    return crossed_lenses


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(22, 26, 4)), t(rng.uniform(41, 46, 4)), t(rng.uniform(2.7, 3.6, 4))),
        {"target": -0.5},
    )
)
def implant_power():
    @pb.autograd_function
    def implant_power(ctx, length, cornea, chamber, target=0.0, constants=(1.1, 0.4, 0.1)):
        """Power of a lens to implant in dpt, by vergences.

        length: of the eye in mm; cornea: dpt; chamber: depth in mm; all (n,). target: refraction
        to be reached with spectacles; constants: of the lens, which place it.
        """
        a0, a1, a2 = constants
        L, acd = length.numpy(), chamber.numpy()
        d = a0 + a1 * acd + a2 * L
        z = cornea.numpy() + target / (1 - 0.012 * target)
        behind, front = 1336 / (L - d), 1336 / (1336 - d * z)
        if ((d >= L) | (d * z >= 1336)).any():
            raise ValueError("the lens would not lie within the eye")
        by_d = behind**2 / 1336 - front**2 * z**2 / 1336
        ctx.save_for_backward(by_d, a2 * by_d - behind**2 / 1336, -(front**2))
        ctx.a1 = a1
        return pb.asarray(behind - front * z)

    @implant_power.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_d, by_length, by_cornea = ctx.saved_variables
        gn = g.numpy()
        return {
            "length": pb.asarray(gn * by_length),
            "cornea": pb.asarray(gn * by_cornea),
            "chamber": pb.asarray(gn * ctx.a1 * by_d),
        }

    return implant_power


@BOOK.right(
    lambda rng: (
        (
            t(np.array([128.0, 152.0, 98.0, -166.0]) + rng.normal(0, 2, 4)),
            t(np.array([0.55, 3.1, 3.9]) + 0.05 * rng.random(3)),
            t(-1.5),
        ),
        {"indices": [1.0, 1.376, 1.336, 1.41, 1.336]},
    )
)
def through_surfaces():
    class ThroughSurfaces(pb.Function):
        @staticmethod
        def forward(ctx, curvature, gap, vergence, indices):
            """Vergence behind the last of the surfaces; curvatures in 1/m, gaps in mm."""
            k, d, n, V = curvature.numpy(), gap.numpy() / 1000, np.array(indices), vergence.item()
            if len(n) != len(k) + 1 or len(d) != len(k) - 1:
                raise ValueError("a medium is needed on each side, a gap between the surfaces")
            ctx.steps, ctx.power = [], np.diff(n)
            for i in range(len(k)):
                V += ctx.power[i] * k[i]
                if i < len(d):
                    below = 1 - d[i] / n[i + 1] * V
                    V /= below
                    ctx.steps.append((below, V, n[i + 1]))
            return pb.asarray(np.array(V))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            carried, count = g.item(), len(ctx.power)
            by_curvature, by_gap = np.empty(count), np.empty(count - 1)
            for i in reversed(range(count)):
                if i < count - 1:
                    below, V, n = ctx.steps[i]
                    by_gap[i] = carried * V**2 / n / 1000
                    carried /= below**2
                by_curvature[i] = carried * ctx.power[i]
            return pb.asarray(by_curvature), pb.asarray(by_gap), carried, None

    return ThroughSurfaces.apply


FREQUENCIES = np.array([0.25, 0.5, 1.5, 3.0, 6.0, 12.0, 18.0, 60.0])


@BOOK.right(
    lambda rng: (
        (t(2.1 + 0.1 * rng.random()), t(2.8 + 0.3 * rng.random()), t(2.9), t(0.45)),
        {"frequency": FREQUENCIES},
    )
)
def contrast_sensitivity():
    K = np.log10(2)

    @pb.autograd_function
    def contrast_sensitivity(ctx, gain, peak, bandwidth, truncation, frequency):
        """Logarithm of the sensitivity to contrast: a parabola, level below the peak, never < 0."""
        width = np.log10(2 * bandwidth.item()) / 2
        if width <= 0:
            raise ValueError("the bandwidth must be above half an octave")
        u = (np.log10(frequency) - np.log10(peak.item())) / width
        fall = K * u**2
        level = (u < 0) & (fall > truncation.item())
        out = gain.item() - np.where(level, truncation.item(), fall)
        ctx.save_for_backward(u, width, level, out > 0, peak.item(), bandwidth.item())
        return pb.asarray(np.maximum(out, 0.0))

    @contrast_sensitivity.backward
    @pb.once_differentiable
    def _(ctx, g):
        u, width, level, seen, peak, bandwidth = ctx.saved_variables
        flow = np.where(seen, g.numpy(), 0.0)
        bent = np.where(level, 0.0, flow) * 2 * K / (width * np.log(10))
        return {
            "gain": flow.sum(),
            "peak": bent @ u / peak,
            "bandwidth": bent @ u**2 / (2 * bandwidth),
            "truncation": -flow[level].sum(),
        }

    return contrast_sensitivity


VISITS = np.array([0.0, 0.6, 1.1, 2.0, 2.7, 3.5, 4.1])


@BOOK.right(
    lambda rng: (
        (t(11.0), t(np.array(-3.2)), t(2.1)),
        {
            "years": VISITS,
            "measured": np.maximum(11 - 3.2 * VISITS + 2 * rng.normal(size=7), 0),
        },
    )
)
def censored_decline():
    def forward(ctx, start, slope, noise, years, measured, floor=0.0):
        """Mean negative log likelihood of a decline; values at the floor may be lower still."""
        sigma = noise.item()
        if sigma <= 0:
            raise ValueError("noise must be positive")
        z = (np.maximum(measured, floor) - start.item() - slope.item() * years) / sigma
        hidden = measured <= floor
        each = np.where(hidden, -special.log_ndtr(z), z**2 / 2 + np.log(sigma * np.sqrt(2 * np.pi)))
        hazard = np.exp(-(z**2) / 2 - special.log_ndtr(z)) / np.sqrt(2 * np.pi)
        by_mean = np.where(hidden, hazard, -z) / sigma / len(z)
        ctx.by_noise = by_mean @ z + (~hidden).mean() / sigma
        ctx.by_mean, ctx.years = by_mean, years
        return pb.asarray(np.array(each.mean()))

    @pb.once_differentiable
    def backward(ctx, g):
        flow = g.item()
        return {
            "start": flow * ctx.by_mean.sum(),
            "slope": flow * (ctx.by_mean @ ctx.years),
            "noise": flow * ctx.by_noise,
        }

    return pb.autograd_function(forward, backward, name="censored_decline")


@BOOK.right(
    lambda rng: (
        (t(np.array([30.0, 0, 0, 25, 0, 0, 0, 40]) + rng.random(8)), t(rng.uniform(0.2, 0.9, 4))),
        {"dt": 0.5},
    )
)
def drop_levels():
    def rates_matrix(k):
        washed, entering, onward, cleared = k
        return np.array([[-washed - entering, 0, 0], [entering, -onward, 0], [0, onward, -cleared]])

    @pb.autograd_function
    def drop_levels(ctx, doses, rates, dt=1.0):
        """Amounts of a drug in the tears, the cornea and the aqueous after each interval.

        doses: (n,), at the start of each interval of dt hours; rates: (4,) per hour, for what is
        washed away, enters the cornea, goes on to the aqueous and is cleared. Returns (n, 3).
        """
        A = rates_matrix(rates.numpy()) * dt
        E, state, starts, out = linalg.expm(A), np.zeros(3), [], []
        for dose in doses.numpy():
            starts.append(state + np.array([dose, 0, 0]))
            state = E @ starts[-1]
            out.append(state)
        ctx.A, ctx.E, ctx.dt, ctx.starts = A, E, dt, starts
        return pb.asarray(np.array(out))

    @drop_levels.backward
    @pb.once_differentiable
    def _(ctx, g):
        adjoint, by_E, by_dose = np.zeros(3), np.zeros((3, 3)), np.zeros(len(g))
        for k in range(len(by_dose) - 1, -1, -1):
            adjoint = adjoint + g.numpy()[k]
            by_E += np.outer(adjoint, ctx.starts[k])
            adjoint = ctx.E.T @ adjoint
            by_dose[k] = adjoint[0]
        A = linalg.expm_frechet(ctx.A.T, by_E, compute_expm=False) * ctx.dt
        by_rates = [-A[0, 0], A[1, 0] - A[0, 0], A[2, 1] - A[1, 1], -A[2, 2]]
        return pb.asarray(by_dose), pb.asarray(np.array(by_rates)), None

    return drop_levels


@BOOK.right(
    lambda rng: (
        (t(np.array([0.3, 8.0, 120.0, 900.0]) * rng.uniform(0.8, 1, 4)), t(rng.uniform(20, 70, 4))),
        {"eyes": 1},
    )
)
def pupil_diameter():
    @pb.autograd_function
    def pupil_diameter(ctx, luminance, age, field=60.0, eyes=2):
        L, years = luminance.numpy(), age.numpy()
        if (L <= 0).any():
            raise ValueError("the luminance must be positive")
        light = (L * field * (0.1 if eyes == 1 else 1.0) / 846) ** 0.41
        young = 7.75 - 5.75 * light / (light + 2)
        by_age = 0.02132 - 0.009562 * young
        ctx.by_light = -11.5 * 0.41 * light / (light + 2) ** 2 / L
        ctx.grows = 1 - 0.009562 * (years - 28.58)
        ctx.by_age = by_age
        return pb.asarray(young + (years - 28.58) * by_age)

    @pupil_diameter.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return pb.asarray(gn * ctx.grows * ctx.by_light), pb.asarray(gn * ctx.by_age), None, None

    return pupil_diameter


@BOOK.right(
    lambda rng: (
        (t(np.array([0.2, 1.5, 2.5, 4.0, 9.0, 12.0]) + 0.1 * rng.random(6)), t(38.0), t(0.9)),
        {"kind": "expected"},
    )
)
def accommodation():
    REACH = {"least": (15.0, 0.25), "expected": (18.5, 0.3), "most": (25.0, 0.4)}

    @pb.autograd_function
    def accommodation(ctx, demand, age, slope, kind="least", depth=0.5):
        start, fall = REACH[kind]
        most = max(start - fall * age.item(), 0.0)
        excess = demand.numpy() - depth
        wanted = slope.item() * excess
        follows = (wanted > 0) & (wanted < most)
        ctx.save_for_backward(excess, follows, (wanted >= most) & (most > 0), fall, slope.item())
        return pb.asarray(np.clip(wanted, 0.0, most))

    @accommodation.backward
    @pb.once_differentiable
    def _(ctx, g):
        excess, follows, limited, fall, slope = ctx.saved_variables
        flow = np.where(follows, g.numpy(), 0.0)
        return {
            "demand": pb.asarray(flow * slope),
            "age": -fall * g.numpy()[limited].sum(),
            "slope": flow @ excess,
        }

    return accommodation


def scanned(rng):
    upper = 120 + 8 * rng.random((5, 6))
    lower = upper + 40 * rng.random((5, 6)) - 6
    sector = rng.integers(-1, 4, (5, 6))
    return (t(upper), t(lower), sector), {"sectors": 5, "microns": 3.87}


@BOOK.right(scanned)
def sector_thickness():
    @pb.autograd_function
    def sector_thickness(ctx, upper, lower, sector, sectors=9, microns=1.0):
        """Mean thickness of a layer by sector, 0 for a sector without points.

        upper, lower: (h, w), heights in pixels; where they cross there is no layer.
        sector: (h, w) integers below sectors, negative outside of all.
        """
        gap = (lower.numpy() - upper.numpy()) * microns
        inside = sector >= 0
        index = sector[inside]
        count = np.maximum(np.bincount(index, minlength=sectors), 1)
        weight = np.zeros(sector.shape)
        weight[inside] = microns / count[index]
        ctx.weight, ctx.sector = weight * (gap > 0), np.where(inside, sector, 0)
        total = np.bincount(index, np.maximum(gap, 0)[inside], minlength=sectors)
        return pb.asarray(total / count)

    @sector_thickness.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = grad_output.numpy()[ctx.sector] * ctx.weight
        return {"upper": pb.asarray(-grad), "lower": pb.asarray(grad)}

    return sector_thickness


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2.6, 2.2, 3.1, 0.4]) + 0.1 * rng.random(4)),
            t(rng.uniform(0.18, 0.35, 4)),
            t(np.array([0.3, 0.5, 0.8, 0.7])),
            t(rng.uniform(7, 11, 4)),
        ),
        {"obstruction": 0.012},
    )
)
def aqueous_pressure():
    @pb.autograd_function
    def aqueous_pressure(ctx, inflow, facility, uveal, venous, obstruction=0.0):
        """Pressure in an eye in mmHg, with outflow that gets harder as the pressure grows."""
        through = np.maximum(inflow.numpy() - uveal.numpy(), 0.0)
        below = facility.numpy() - obstruction * through
        if (below <= 0).any():
            raise ValueError("the outflow is too small for any pressure")
        ctx.save_for_backward(facility=facility, through=through, below=below)
        return pb.asarray(venous.numpy() + through / below)

    @aqueous_pressure.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        flow = gn / s.below**2
        by_inflow = flow * s.facility.numpy() * (s.through > 0)
        return {
            "inflow": pb.asarray(by_inflow),
            "facility": pb.asarray(-flow * s.through),
            "uveal": pb.asarray(-by_inflow),
            "venous": pb.asarray(gn.copy()),
        }

    return aqueous_pressure


@BOOK.right(lambda rng: ((t(-rng.gamma(1.2, 3, 12)),), {"rank": 3, "blind": (4, 9)}))
def pattern_deviation():
    class PatternDeviation(pb.Function):
        """Deviations less the general height, the rank-th best; 0 at the blind spot."""

        @staticmethod
        def forward(ctx, deviation, rank=7, blind=()):
            d = deviation.numpy()
            counted = np.setdiff1d(np.arange(len(d)), np.array(blind, int))
            if rank > len(counted):
                raise ValueError("fewer points than the rank")
            ctx.best = counted[np.argsort(-d[counted], kind="stable")[rank - 1]]
            ctx.counted = counted
            out = np.zeros_like(d)
            out[counted] = d[counted] - d[ctx.best]
            return pb.asarray(out), pb.asarray(np.array(d[ctx.best]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_pattern, g_height):
            kept = g_pattern.numpy()[ctx.counted]
            grad = np.zeros(len(g_pattern))
            grad[ctx.counted] = kept
            grad[ctx.best] += g_height.item() - kept.sum()
            return pb.asarray(grad), None, None

    return PatternDeviation.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([0.0, 40, 900, 900, 0, 0, 15]) + rng.random(7)), t(120.0)),
        {"dt": 30.0, "start": 0.8},
    )
)
def bleached_pigment():
    def forward(ctx, light, recovery, dt=1.0, bleaching=2e4, start=1.0):
        lit, tau, p = light.numpy(), recovery.item(), start
        rate = 1 / tau + lit / bleaching
        rest, decay = 1 / (tau * rate), np.exp(-rate * dt)
        before, out = np.empty_like(lit), np.empty_like(lit)
        for k in range(len(lit)):
            before[k] = p
            p = out[k] = rest[k] + (p - rest[k]) * decay[k]
        ctx.save_for_backward(rate=rate, rest=rest, decay=decay, before=before)
        ctx.tau, ctx.dt, ctx.bleaching = tau, dt, bleaching
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        rate, rest, decay, before = ctx.saved_variables
        carried, by_rest, by_rate = 0.0, np.empty_like(rate), np.empty_like(rate)
        for k in range(len(rate) - 1, -1, -1):
            carried += g.numpy()[k]
            by_rest[k] = carried * (1 - decay[k])
            by_rate[k] = -carried * ctx.dt * (before[k] - rest[k]) * decay[k]
            carried *= decay[k]
        by_rate -= by_rest * rest / rate
        by_tau = -(by_rest @ rest) / ctx.tau - by_rate.sum() / ctx.tau**2
        return {"light": pb.asarray(by_rate / ctx.bleaching), "recovery": by_tau}

    return pb.autograd_function(forward, backward, name="bleached_pigment")
