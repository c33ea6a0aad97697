"""Metrology: uncertainties, calibration, sensors, stability, interferometry, form, comparisons."""

from __future__ import annotations

import numpy as np
from scipy import stats

import pullback as pb

from .entries import FACTOR, REVERSED, SIGN, Book, at, mends, t

BOOK = Book("metrology")


def budget(correlation):
    def given(rng):
        return (
            t(rng.uniform(0.5, 2.0, 4)),
            t(rng.normal(0, 2, 4)),
        ), {} if correlation is None else {"correlation": correlation}

    return given


@BOOK.wrong(
    budget(None),
    "backward leaves the correlations out: only the diagonal of the matrix counts",
    at("correlation"),
    r"\bdiagonal\b|correlat\w+ (?:are|is|was|were)? ?(?:ignored|left out|not used|missing)",
    r"uncorrelated|cross.?terms|\bcovarian|other (?:contributions|elements|inputs)|\bcoupl",
    mends(
        "s.matrix @ s.parts",
        "s.parts @ s.matrix",
        "ctx.matrix @ s.parts",
        "s.correlated",
        "correlation @ s.parts",
        "s.mixed",
    ),
    where="correlation is given",
    shows=budget(0.5 * np.eye(4) + 0.5 * np.array([[1, 1, 0, -1]]).T * np.array([[1, 1, 0, -1]])),
)
def combined_uncertainty():
    @pb.autograd_function
    def combined_uncertainty(ctx, uncertainty, sensitivity, correlation=None):
        """Combined standard uncertainty of inputs: (n,) with coefficients: (n,), as in the GUM."""
        u, c = uncertainty.numpy(), sensitivity.numpy()
        if (u < 0).any():
            raise ValueError("uncertainties are not negative")
        parts = c * u
        matrix = np.eye(len(u)) if correlation is None else correlation
        combined = np.sqrt(parts @ matrix @ parts)
        ctx.save_for_backward(u=u, c=c, parts=parts, matrix=matrix, combined=combined)
        return pb.asarray(np.asarray(combined))

    @combined_uncertainty.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_parts = g.item() / s.combined * s.parts
        return {
            "uncertainty": pb.asarray(by_parts * s.c),
            "sensitivity": pb.asarray(by_parts * s.u),
        }

    return combined_uncertainty


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2, 40, 6)), t(np.array(10.0)), t(np.array(3950.0))), {}),
    "the temperature is squared in degrees Celsius instead of kelvin",
    r"\bcelsius\b|\bkelvin\b|\babsolute temperature|273",
    r"(?:wrong|other|different) (?:unit|scale|value)|\boffset\b|\bshifted\b|\badd(?:ed|ing)?\b",
    mends("ZERO) ** 2", "ZERO + s.degrees", "ctx.kelvin**2", "s.kelvin**2", "+ 273.15) ** 2"),
)
def thermistor_temperature():
    ZERO = 273.15

    @pb.autograd_function
    def thermistor_temperature(ctx, resistance, nominal, beta):
        """Temperature in degrees of thermistors: (n,) in kilohm, nominal at 25 degrees."""
        R = resistance.numpy()
        logs = np.log(R / nominal.item())
        inverse = 1 / (25.0 + ZERO) + logs / beta.item()
        degrees = 1 / inverse - ZERO
        ctx.save_for_backward(R=R, logs=logs, degrees=degrees)
        ctx.nominal, ctx.beta = nominal.item(), beta.item()
        return pb.asarray(degrees.copy())

    @thermistor_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_inverse = -grad_output.numpy() * s.degrees**2
        by_logs = by_inverse / ctx.beta
        return {
            "resistance": pb.asarray(by_logs / s.R),
            "nominal": -by_logs.sum() / ctx.nominal,
            "beta": -(by_inverse @ s.logs) / ctx.beta**2,
        }

    return thermistor_temperature


def clock(**settings):
    return lambda rng: ((t(np.cumsum(rng.normal(size=14))),), settings)


@BOOK.wrong(
    clock(),
    "backward divides by the number of differences that there are with stride 1",
    at("stride"),
    FACTOR + r"|divided by|multipl",
    r"(?:number|count) of (?:differences|terms|samples|windows)|wrong (?:number|count)",
    mends("2 * ctx.stride)", "len(s.bend)", "s.bend.size", "ctx.stride * 2", "n - 2 * stride"),
    where="stride is not 1",
    shows=clock(stride=3, tau=0.5),
)
def allan_deviation():
    @pb.autograd_function
    def allan_deviation(ctx, phase, stride=1, tau=1.0):
        """Overlapping Allan deviation of a clock's phase: (n,), sampled every tau seconds."""
        x = phase.numpy()
        if len(x) <= 2 * stride:
            raise ValueError("the record is too short")
        bend = x[2 * stride :] - 2 * x[stride:-stride] + x[: -2 * stride]
        deviation = np.sqrt(0.5 * np.mean(bend**2)) / (stride * tau)
        ctx.save_for_backward(bend=bend, deviation=deviation)
        ctx.n, ctx.stride, ctx.tau = len(x), stride, tau
        return pb.asarray(np.asarray(deviation))

    @allan_deviation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, span = ctx.saved_variables, ctx.stride * ctx.tau
        by_bend = g.item() * s.bend / (2 * (ctx.n - 2) * span**2 * s.deviation)
        grad = np.zeros(ctx.n)
        grad[2 * ctx.stride :] += by_bend
        grad[ctx.stride : -ctx.stride] -= 2 * by_bend
        grad[: -2 * ctx.stride] += by_bend
        return {"phase": pb.asarray(grad)}

    return allan_deviation


def laboratories(scatter):
    def given(rng):
        u = rng.uniform(0.5, 1.5, 6)
        return (t(20 + scatter * u * np.array([1, -1, 0.5, -0.8, 0.2, 0.9])), t(u)), {}

    return given


@BOOK.wrong(
    laboratories(0.4),
    "where the Birge ratio is above 1 it depends on the values too: backward keeps it constant",
    r"\bconstant\b|\bchi.?sq|\bchi2\b|\binflat|\bdepends?\b|\bresiduals\b",
    r"birge.{0,40}(?:differentiat|ignored|left out|other than|is not 1|above|larger|more than)",
    r"\bmissing\b.{0,40}\bterm|\bterm\b.{0,40}\bmissing|\bbranch\b|\binconsistent\b|\bfixed\b",
    mends(
        "s.birge > 1",
        "ctx.birge > 1",
        "birge > 1",
        "s.residual**2 *",
        "* s.residual**2",
        "s.weights * s.residual",
        "if s.birge",
    ),
    where="Birge ratio above 1",
    shows=laboratories(3.0),
)
def key_comparison():
    class KeyComparison(pb.Function):
        """Reference value of laboratories' results: (n,), and its uncertainty.

        If the results scatter more than their uncertainties say, it grows by the Birge ratio.
        """

        @staticmethod
        def forward(ctx, values, uncertainties):
            x, u = values.numpy(), uncertainties.numpy()
            weights = u**-2
            total = weights.sum()
            reference = weights @ x / total
            residual = x - reference
            birge = max(1.0, np.sqrt(weights @ residual**2 / (len(x) - 1)))
            ctx.save_for_backward(u=u, weights=weights, total=total, residual=residual, birge=birge)
            return pb.asarray(np.asarray(reference)), pb.asarray(np.asarray(birge / total**0.5))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_reference, g_uncertainty):
            s = ctx.saved_variables
            by_values = g_reference.item() * s.weights / s.total
            by_weights = g_reference.item() * s.residual / s.total
            by_weights -= 0.5 * g_uncertainty.item() * s.birge / s.total**1.5
            return pb.asarray(by_values), pb.asarray(-2 * by_weights / s.u**3)

    return KeyComparison.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(
                5
                + 2 * np.cos(rng.uniform(-1, 1, (2, 3)) + np.pi / 2 * np.arange(4)[:, None, None])
                + 0.1 * rng.normal(size=(4, 2, 3))
            ),
        ),
        {"wavelength": 632.8},
    ),
    "the phase's gradient has the wrong sign for the first and the third frame",
    SIGN,
    r"first and (?:the )?third|frames? 0 and 2|cosine (?:part|term)|in.phase",
    mends(
        "by_phase * -s.sine",
        "-by_phase * s.sine",
        "= -(by_phase * s.sine",
        "-s.sine * by_phase",
        "s.cosine - by_phase * s.sine",
        "- by_phase * s.sine",
    ),
)
def four_step_heights():
    @pb.autograd_function
    def four_step_heights(ctx, frames, wavelength=632.8):
        """Heights and contrast of a surface from 4 interferograms: (4, h, w), a quarter apart."""
        I0, I1, I2, I3 = frames.numpy()
        sine, cosine = I3 - I1, I0 - I2
        square = sine**2 + cosine**2
        ctx.save_for_backward(sine=sine, cosine=cosine, square=square)
        ctx.nm = wavelength / (4 * np.pi)
        heights = ctx.nm * np.arctan2(sine, cosine)
        return pb.asarray(heights), pb.asarray(0.5 * np.sqrt(square))

    @four_step_heights.backward
    @pb.once_differentiable
    def _(ctx, g_heights, g_contrast):
        s = ctx.saved_variables
        by_phase = ctx.nm * g_heights.numpy() / s.square
        along = 0.5 * g_contrast.numpy() / np.sqrt(s.square)
        by_sine = by_phase * s.cosine + along * s.sine
        by_cosine = by_phase * s.sine + along * s.cosine
        return {"frames": pb.asarray(np.stack([by_cosine, -by_sine, -by_cosine, by_sine]))}

    return four_step_heights


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1.0, 6.0, 5)), t(np.array([0.05, 1.2, 0.3]) * rng.uniform(0.9, 1.1, 3))),
        {},
    ),
    "the coefficients' gradient comes in reverse order: the lowest power first",
    REVERSED,
    r"\b(?:lowest|highest|ascending|descending)\b|\border of (?:the )?(?:coefficients|powers)",
    r"(?:wrong|other|different|opposite) order",
    mends(
        "np.vander(s.x, len(s.p))",
        "increasing=False",
        "[::-1]",
        "np.vander(s.x, 3)",
        "np.flip(",
        "np.vander(s.x, N=len(s.p))",
    ),
)
def calibrated():
    def forward(ctx, reading, coefficients, guess=1.0):
        """Values: (n,) that give the readings, by the sensor's polynomial, as for polyval."""
        y, p = reading.numpy(), coefficients.numpy()
        slope, x = np.polyder(p), np.full(len(y), guess)
        for _ in range(50):
            step = (np.polyval(p, x) - y) / np.polyval(slope, x)
            x = x - step
            if np.abs(step).max() < 1e-13:
                break
        else:
            raise ArithmeticError("the readings are out of the range of the sensor")
        ctx.save_for_backward(x=x, p=p, slope=np.polyval(slope, x))
        return pb.asarray(x.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        by_reading = grad_output.numpy() / s.slope
        powers = np.vander(s.x, len(s.p), increasing=True)
        return {"reading": pb.asarray(by_reading), "coefficients": pb.asarray(-by_reading @ powers)}

    return pb.autograd_function(forward, backward, name="calibrated")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([9.8, 10.1, 10.0, 10.3, 9.9, 10.2, 12.9, 10.05]) + 0.05 * rng.random(8)),
            t(np.array(0.2)),
        ),
        {"tuning": 1.5},
    )
)
def robust_mean():
    @pb.autograd_function
    def robust_mean(ctx, values, scale, tuning=1.345, tol=1e-14):
        """Huber's mean of values: (n,): those off by more than tuning * scale are pulled in."""
        x, reach = values.numpy(), tuning * scale.item()
        if reach <= 0:
            raise ValueError("scale and tuning must be positive")
        centre = np.median(x)
        for _ in range(500):
            update = np.clip(x, centre - reach, centre + reach).mean()
            done = abs(update - centre) <= tol * abs(centre)
            centre = update
            if done:
                break
        ctx.side, ctx.tuning = np.sign(x - centre) * (np.abs(x - centre) > reach), tuning
        return pb.asarray(np.asarray(centre))

    @robust_mean.backward
    @pb.once_differentiable
    def _(ctx, g):
        inside = ctx.side == 0
        flow = g.item() / inside.sum()
        return {"values": pb.asarray(flow * inside), "scale": flow * ctx.tuning * ctx.side.sum()}

    return robust_mean


@BOOK.right(
    lambda rng: (
        (
            t(np.arange(7) + 0.2 * rng.normal(size=7)),
            t(3.0 - 0.8 * np.arange(7) + 0.2 * rng.normal(size=7)),
        ),
        {"ratio": 0.5},
    )
)
def deming_line():
    class DemingLine(pb.Function):
        """Slope and intercept of a line through points with errors in x and in y.

        ratio: variance of the errors in y over that in x.
        """

        @staticmethod
        def forward(ctx, x, y, ratio=1.0):
            mx, my = x.numpy().mean(), y.numpy().mean()
            dx, dy = x.numpy() - mx, y.numpy() - my
            excess, cross = dy @ dy - ratio * (dx @ dx), dx @ dy
            root = np.sqrt(excess**2 + 4 * ratio * cross**2)
            slope = (excess + root) / (2 * cross)
            ctx.save_for_backward(dx=dx, dy=dy, mx=mx, slope=slope)
            ctx.by_excess = slope / root
            ctx.by_cross = 2 * ratio / root - slope / cross
            ctx.ratio = ratio
            return pb.asarray(np.asarray(slope)), pb.asarray(np.asarray(my - slope * mx))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_slope, g_intercept):
            s, n = ctx.saved_variables, len(ctx.saved_variables.dx)
            total = g_slope.item() - g_intercept.item() * s.mx
            by_x = total * (ctx.by_cross * s.dy - 2 * ctx.ratio * ctx.by_excess * s.dx)
            by_y = total * (ctx.by_cross * s.dx + 2 * ctx.by_excess * s.dy)
            level = g_intercept.item() / n
            return pb.asarray(by_x - s.slope * level), pb.asarray(by_y + level), None

    return DemingLine.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 2, (4, 8))),),
        {"valid": np.arange(8) != np.array([[2], [5], [9], [0]])},
    )
)
def peak_to_valley():
    @pb.autograd_function
    def peak_to_valley(ctx, heights, valid=None):
        """Highest less lowest point of traces: (n, m), of those that are valid; and where."""
        z = heights.numpy()
        used = np.ones(z.shape, bool) if valid is None else np.broadcast_to(valid, z.shape)
        peak = np.where(used, z, -np.inf).argmax(axis=1)
        valley = np.where(used, z, np.inf).argmin(axis=1)
        rows = np.arange(len(z))
        ctx.peak, ctx.valley, ctx.shape = peak, valley, z.shape
        where = np.stack([peak, valley], axis=1)
        return pb.asarray(z[rows, peak] - z[rows, valley]), pb.asarray(where)

    @peak_to_valley.backward
    @pb.once_differentiable
    def _(ctx, g_range, g_where):
        rows, grad = np.arange(ctx.shape[0]), np.zeros(ctx.shape)
        grad[rows, ctx.peak] += g_range.numpy()
        grad[rows, ctx.valley] -= g_range.numpy()
        return {"heights": pb.asarray(grad)}

    return peak_to_valley


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2.0, 4)),),
        {"freedom": np.array([9.0, 4.0, 50.0, 12.0])},
    )
)
def expanded_uncertainty():
    @pb.autograd_function
    def expanded_uncertainty(ctx, contributions, freedom, level=0.95):
        """Expanded uncertainty, the coverage factor and the effective degrees of freedom.

        The degrees are cut to a whole number, so the coverage factor is a step function.
        """
        u = contributions.numpy()
        combined = np.sqrt((u**2).sum())
        effective = int(combined**4 / (u**4 / freedom).sum())
        coverage = stats.t.ppf(0.5 + level / 2, effective)
        ctx.direction, ctx.coverage = u / combined, coverage
        expanded = pb.asarray(np.asarray(coverage * combined))
        return expanded, pb.asarray(np.asarray(coverage)), pb.asarray(np.asarray(effective))

    @expanded_uncertainty.backward
    @pb.once_differentiable
    def _(ctx, g_expanded, g_coverage, g_effective):
        grad = g_expanded.item() * ctx.coverage * ctx.direction
        return {"contributions": pb.asarray(grad)}

    return expanded_uncertainty


@BOOK.right(
    lambda rng: (
        (
            t(np.array([24.0, 71.0, 96.0, 109.0, 158.0]) + rng.uniform(0, 2, 5)),
            t(np.array(100.02)),
        ),
        {},
    )
)
def platinum_temperature():
    A, B, C = 3.9083e-3, -5.775e-7, -4.183e-12

    @pb.autograd_function
    def platinum_temperature(ctx, resistance, ice):
        """Temperature of platinum resistors: (n,) by IEC 60751, whose cubic term is for frost.

        ice: resistance at 0 degrees.
        """
        ratio = resistance.numpy() / ice.item()
        temperature = (ratio - 1) / A
        for _ in range(30):
            T, c = temperature, np.where(temperature < 0, C, 0.0)
            error = 1 + A * T + B * T**2 + c * (T - 100) * T**3 - ratio
            slope = A + 2 * B * T + c * (4 * T**3 - 300 * T**2)
            temperature = T - error / slope
        ctx.ice, ctx.ratio, ctx.slope = ice.item(), ratio, slope
        return pb.asarray(temperature)

    @platinum_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_ratio = grad_output.numpy() / ctx.slope
        return {
            "resistance": pb.asarray(by_ratio / ctx.ice),
            "ice": -(by_ratio @ ctx.ratio) / ctx.ice,
        }

    return platinum_temperature
