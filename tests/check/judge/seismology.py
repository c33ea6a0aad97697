"""Seismology: travel times, wavelets, attenuation, moment tensors, location, reflectivity."""

from __future__ import annotations

import numpy as np
from scipy import signal

import pullback as pb

from .entries import FACTOR, MISSING, SHIFT, Book, at, mends, t

BOOK = Book("seismology")


def stations(rng):
    angles = rng.uniform(0, 2 * np.pi, 6)
    at_surface = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return at_surface * rng.uniform(10, 40, (6, 1))


def event(rng, weights=None):
    place, places = t(np.array([3.0, -2.0, 9.0])), stations(rng)
    distance = np.sqrt(((places - [3.0, -2.0]) ** 2).sum(axis=1) + 81)
    picks = 1.0 + distance / 6 + rng.normal(0, 0.3, 6)
    settings = {} if weights is None else {"weights": weights}
    return (place, t(np.array(1.0)), places, picks), settings


@BOOK.wrong(
    event,
    "the misfit weighs its residuals, the gradient takes them all alike: weights are ignored",
    at("weights?"),
    FACTOR + r"|multipl|divided by",
    r"weights?.{0,40}(?:ignor|missing|left out|forgot|unused|not used)",
    r"(?:ignor\w*|missing|without|lacks?|left out|forgot\w*|uniform|equal|unweighted).{0,30}weight",
    r"\bunweighted\b",
    mends(
        "ctx.weights * s.residual",
        "s.residual * ctx.weights",
        "s.weights * s.residual",
        "s.residual * s.weights",
        "g.item() * ctx.weights",
        "ctx.weights * g.item()",
        "by_time *= ctx.weights",
    ),
    where="weights are given",
    shows=lambda rng: event(rng, np.array([1.0, 0.2, 2.0, 0.5, 1.0, 3.0])),
)
def location_misfit():
    @pb.autograd_function
    def location_misfit(ctx, place, origin, stations, picks, velocity=6.0, weights=None):
        """Half the squared residuals of arrival times; place: (3,), x, y and depth in km."""
        east_north, depth = place.numpy()[:2] - stations, place.numpy()[2]
        if depth < 0:
            raise ValueError("the depth is counted downwards and must not be negative")
        distance = np.sqrt((east_north**2).sum(axis=1) + depth**2)
        ctx.weights = np.ones(len(picks)) if weights is None else weights
        residual = origin.item() + distance / velocity - picks
        ctx.rays = np.column_stack([east_north, np.full(len(picks), depth)]) / distance[:, None]
        ctx.save_for_backward(residual=residual)
        ctx.velocity = velocity
        return pb.asarray(np.array((ctx.weights * residual**2).sum() / 2))

    @location_misfit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_time = g.item() * s.residual
        return {
            "place": pb.asarray(by_time @ ctx.rays / ctx.velocity),
            "origin": pb.asarray(np.array(by_time.sum())),
        }

    return location_misfit


@BOOK.wrong(
    lambda rng: ((t(np.array(1.4)), t(np.array(0.1))), {"times": np.linspace(-1, 1, 15)}),
    "only the exponential is derived by the frequency, the term of the factor 1 - 2 a is missing",
    MISSING,
    r"product rule|only the (?:exponential|gaussian|envelope)|\bpolynomial\b",
    r"\bterm\b.{0,40}(?:1 - 2|\ba\b|exp)|(?:1 - 2|exp|\ba\b).{0,40}\bterm\b",
    r"other factor|2 \* ?a - ?3|3 - 2 ?\* ?a|\b(?:-2|2|-3|3)\.?0? ?\* ?(?:np\.exp|gauss|s\.gauss)",
    mends(
        "(2 * s.a - 3)",
        "(2 * a - 3)",
        "gn * -(3 - 2 * s.a)",
        "-gn * (3 - 2 * s.a)",
        "(3 - 2 * s.a) * s.gauss * 2 * s.a",
        "-(3 - 2 * a)",
        "-(1 - 2 * s.a) - 2",
        "- 2 * s.gauss",
        "(-2 - (1 - 2 * s.a))",
        "-s.wavelet - 2 * s.gauss",
        "-(s.wavelet + 2 * s.gauss)",
    ),
)
def ricker_wavelet():
    class RickerWavelet(pb.Function):
        """(1 - 2 a) exp(-a) at `times`, where a = (pi * frequency * (times - delay))**2."""

        @staticmethod
        def forward(ctx, frequency, delay, times):
            if frequency.item() <= 0:
                raise ValueError("the peak frequency must be positive")
            a = (np.pi * frequency.item() * (times - delay.item())) ** 2
            gauss = np.exp(-a)
            ctx.save_for_backward(frequency=frequency, delay=delay, a=a, gauss=gauss)
            ctx.times = times
            return pb.asarray((1 - 2 * a) * gauss)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            f, lag = s.frequency.item(), ctx.times - s.delay.item()
            by_frequency = gn * -(1 - 2 * s.a) * s.gauss * 2 * s.a / f
            by_delay = gn * (3 - 2 * s.a) * s.gauss * 2 * (np.pi * f) ** 2 * lag
            return {
                "frequency": pb.asarray(np.array(by_frequency.sum())),
                "delay": pb.asarray(np.array(by_delay.sum())),
            }

    return RickerWavelet.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.normal(size=9) + 1j * rng.normal(size=9)),
            t(np.array(4.0)),
            t(np.array(80.0)),
        ),
        {"frequencies": np.linspace(0.0, 8.0, 9)},
    ),
    "with dispersion the decay is complex, but it is not conjugated on the way back",
    r"conjug|\bconj\b|\bphase\b|\bdispersion\b|\bimaginary\b|\bcomplex (?:decay|factor|rate)",
    at("reference"),
    mends("np.conj(s.decay)", "s.decay.conj()", ".conj()", "np.conj("),
    where="a reference frequency is given",
    shows=lambda rng: (
        (
            t(rng.normal(size=9) + 1j * rng.normal(size=9)),
            t(np.array(4.0)),
            t(np.array(8.0)),
        ),
        {"frequencies": np.linspace(0.0, 8.0, 9), "reference": 1.0},
    ),
)
def attenuated_spectrum():
    def forward(ctx, spectrum, time, quality, frequencies, reference=None):
        """Spectrum after `time` seconds in rock of this quality; dispersion if reference is given.

        spectrum: (n,) complex, frequencies: (n,) in Hz, the first may be 0.
        """
        if quality.item() <= 0:
            raise ValueError("the quality factor must be positive")
        rate = -np.pi * frequencies + 0j
        if reference is not None:
            rate += 2j * frequencies * np.log(np.maximum(frequencies, 1e-9) / reference)
        decay = np.exp(rate * time.item() / quality.item())
        ctx.save_for_backward(spectrum=spectrum, time=time, quality=quality, decay=decay)
        ctx.rate = rate
        return pb.asarray(spectrum.numpy() * decay)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        T, Q = s.time.item(), s.quality.item()
        slope = ctx.rate * s.decay * s.spectrum.numpy()
        by_ratio = (gn.real * slope.real + gn.imag * slope.imag).sum()
        return {
            "spectrum": pb.asarray(gn * s.decay),
            "time": pb.asarray(np.array(by_ratio / Q)),
            "quality": pb.asarray(np.array(-by_ratio * T / Q**2)),
        }

    return pb.autograd_function(forward, backward, name="attenuated_spectrum")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), rng.normal(size=(4, 3))), {}),
    "an off-diagonal component stands twice in the tensor, but its gradient counts it once",
    FACTOR + r"|multipl|divided by",
    r"off.?diagonal|\bsymmetr|\btwice\b|\bshear\b|\bboth (?:halves|places|triangles|entries)",
    r"(?:last three|elements? (?:3|\[?3)|components? (?:3|xy)|index (?:3|>= 3)|\[3:\]).{0,60}",
    r"upper (?:triangle|half)|lower (?:triangle|half)",
    mends(
        "by_tensor[j, i]",
        "by_tensor[COLS, ROWS]",
        "by_tensor.T",
        "grad[3:] *= 2",
        "2 * by_tensor",
        "[1, 1, 1, 2, 2, 2]",
        "np.where(ROWS == COLS, 1",
        "np.where(ROWS != COLS, 2",
    ),
)
def p_radiation():
    ROWS, COLS = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])

    @pb.autograd_function
    def p_radiation(ctx, moment, directions):
        """P amplitudes of a point source along `directions`.

        moment: (6,), xx, yy, zz, xy, xz, yz; directions: (stations, 3), of any length.
        """
        norms = np.linalg.norm(directions, axis=1, keepdims=True)
        if (norms == 0).any():
            raise ValueError("a direction has no length")
        unit, tensor = directions / norms, np.zeros((3, 3))
        tensor[ROWS, COLS] = moment.numpy()
        tensor[COLS, ROWS] = moment.numpy()
        ctx.unit = unit
        return pb.asarray(np.einsum("si,ij,sj->s", unit, tensor, unit))

    @p_radiation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_tensor = np.einsum("s,si,sj->ij", grad_output.numpy(), ctx.unit, ctx.unit)
        return {"moment": pb.asarray(by_tensor[ROWS, COLS])}

    return p_radiation


PATH = np.array([0, 1, 1, 2, 3, 3, 3]), np.array([0, 0, 1, 2, 2, 3, 4])
LOOP = np.array([0, 1, 1, 2, 2, 1, 0]), np.array([0, 0, 1, 2, 1, 1, 0])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 0.4, (4, 5))), *PATH), {}),
    "a ray that passes a cell again overwrites what the cell has got instead of adding to it",
    r"\brepeat|duplicate|more than once|\bsame (?:index|cell)\b|\bagain\b|\btwice\b|overwr|accumul",
    r"(?:add|sum)\w* (?:up|to|of)|np\.add\.at|bincount|\bvisited\b|\breturn(?:s|ed|ing) to\b",
    FACTOR,
    mends("np.add.at(", "np.bincount(", "grad[r, c] +=", "grad[i, j] +=", "grad[row, col] +="),
    where="a ray that passes a cell more than once",
    shows=lambda rng: ((t(rng.uniform(0.2, 0.4, (4, 5))), *LOOP), {}),
)
def ray_time():
    @pb.autograd_function
    def ray_time(ctx, slowness, rows, columns, lengths=1.0):
        """Travel time through the cells (rows, columns) of a grid, with a length in each."""
        ctx.cells, ctx.shape = (rows, columns), slowness.shape
        ctx.lengths = np.broadcast_to(lengths, rows.shape)
        return pb.asarray(np.array((slowness.numpy()[ctx.cells] * ctx.lengths).sum()))

    @ray_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.shape)
        grad[ctx.cells] = g.item() * ctx.lengths
        return {"slowness": pb.asarray(grad)}

    return ray_time


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2, 5, 6)), t(rng.normal(size=3))), {}),
    "the impedance of the upper layer is left out: each contrast goes back to the lower layer only",
    MISSING,
    SHIFT,
    r"(?:upper|lower|above|below|both|two|first|next|previous) (?:layers?|side|impedances?|one)",
    r"(?:first|last|top) (?:element|entry|value|row).{0,25}(?:zero|0)|element \[?0",
    mends("[:-1] -=", "[:-1] +=", "grad_Z[:-1]", "grad[:-1]", "by_upper", "to_upper"),
)
def reflection_trace():
    @pb.autograd_function
    def reflection_trace(ctx, impedance, wavelet):
        """Reflectivity of layers, convolved with a wavelet; impedance: (n,) from the top."""
        Z = impedance.numpy()
        if (Z <= 0).any():
            raise ValueError("impedances must be positive")
        contrast = np.diff(Z) / (Z[1:] + Z[:-1])
        ctx.save_for_backward(impedance=impedance, wavelet=wavelet, contrast=contrast)
        return pb.asarray(np.convolve(contrast, wavelet.numpy()))

    @reflection_trace.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        Z, by_contrast = s.impedance.numpy(), np.correlate(gn, s.wavelet.numpy(), "valid")
        grad = np.zeros_like(Z)
        grad[1:] += by_contrast * 2 * Z[:-1] / (Z[1:] + Z[:-1]) ** 2
        return {
            "impedance": pb.asarray(grad),
            "wavelet": pb.asarray(np.correlate(gn, s.contrast, "valid")),
        }

    return reflection_trace


@BOOK.right(
    lambda rng: ((t(np.array([4.5, 6.0, 8.0])), t(np.array([5.0, 20.0]))), {"offset": 90.0})
)
def first_arrival():
    @pb.autograd_function
    def first_arrival(ctx, velocities, thicknesses, offset=50.0):
        """First arrival at the surface: the direct wave or a head wave along a deeper layer."""
        v, h = velocities.numpy(), thicknesses.numpy()
        if len(h) != len(v) - 1 or (np.diff(v) <= 0).any():
            raise ValueError("velocities must grow downwards, the last layer is a half space")
        times = [offset / v[0]]
        for k in range(1, len(v)):
            times.append(
                offset / v[k] + 2 * (h[:k] * np.sqrt(1 / v[:k] ** 2 - 1 / v[k] ** 2)).sum()
            )
        ctx.save_for_backward(velocities=velocities, thicknesses=thicknesses)
        ctx.first, ctx.offset = int(np.argmin(times)), offset
        return pb.asarray(np.array(min(times)))

    @first_arrival.backward
    @pb.once_differentiable
    def _(ctx, g):
        v, h = (x.numpy() for x in ctx.saved_tensors)
        grad_v, grad_h, k = np.zeros_like(v), np.zeros_like(h), ctx.first
        down = np.sqrt(1 / v[:k] ** 2 - 1 / v[k] ** 2)
        grad_h[:k] = 2 * down
        grad_v[:k] = -2 * h[:k] / (down * v[:k] ** 3)
        grad_v[k] = -ctx.offset / v[k] ** 2 + 2 * (h[:k] / down).sum() / v[k] ** 3
        return pb.asarray(g.item() * grad_v), pb.asarray(g.item() * grad_h), None

    return first_arrival


@BOOK.right(lambda rng: ((t(rng.normal(size=24)),), {"corner": 0.2, "short": 3, "long": 8}))
def sta_lta_ratio():
    @pb.autograd_function
    def sta_lta_ratio(ctx, trace, corner=None, short=5, long=50, floor=1e-6):
        """Mean energy of the last `short` samples over that of the last `long` ones."""
        if not 0 < short < long <= len(trace):
            raise ValueError("0 < short < long <= len(trace) is required")
        ctx.sos = None if corner is None else signal.butter(2, corner, output="sos")
        x = trace.numpy() if ctx.sos is None else signal.sosfilt(ctx.sos, trace.numpy())
        total = np.concatenate([[0.0], np.cumsum(x**2)])
        ends = np.arange(long, len(x) + 1)
        sta = (total[ends] - total[ends - short]) / short
        lta = (total[ends] - total[ends - long]) / long + floor
        ctx.save_for_backward(x=x, sta=sta, lta=lta)
        ctx.short, ctx.long = short, long
        return pb.asarray(sta / lta)

    @sta_lta_ratio.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        energy = np.zeros_like(s.x)
        for k, end in enumerate(range(ctx.long, len(s.x) + 1)):
            energy[end - ctx.short : end] += gn[k] / s.lta[k] / ctx.short
            energy[end - ctx.long : end] -= gn[k] * s.sta[k] / s.lta[k] ** 2 / ctx.long
        grad = 2 * s.x * energy
        if ctx.sos is not None:
            grad = signal.sosfilt(ctx.sos, grad[::-1])[::-1].copy()
        return {"trace": pb.asarray(grad)}

    return sta_lta_ratio


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 20))), t(rng.uniform(-3, 3, 3))), {"dt": 0.5}))
def slant_stack():
    @pb.autograd_function
    def slant_stack(ctx, traces, delays, dt=1.0):
        """Mean of traces read `delays` seconds later, linear between samples, zero outside."""
        n = traces.shape[1]
        position = np.arange(n) + delays.numpy()[:, None] / dt
        left = np.floor(position).astype(int)
        part = position - left
        padded = np.pad(traces.numpy(), ((0, 0), (1, 1)))
        ctx.places = np.clip(left + 1, 0, n + 1), np.clip(left + 2, 0, n + 1)
        low, high = (np.take_along_axis(padded, place, axis=1) for place in ctx.places)
        ctx.save_for_backward(part=part, rise=high - low)
        ctx.shape, ctx.dt = padded.shape, dt
        return pb.asarray(((1 - part) * low + part * high).mean(axis=0))

    @slant_stack.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy() / ctx.shape[0]
        grad, each = np.zeros(ctx.shape), np.arange(ctx.shape[0])[:, None]
        np.add.at(grad, (each, ctx.places[0]), gn * (1 - s.part))
        np.add.at(grad, (each, ctx.places[1]), gn * s.part)
        return {
            "traces": pb.asarray(grad[:, 1:-1].copy()),
            "delays": pb.asarray((gn * s.rise).sum(axis=1) / ctx.dt),
        }

    return slant_stack


@BOOK.right(
    lambda rng: ((t(np.array([2.5, 3.1, 3.1, 4.0, 5.2, 2.1]) + rng.uniform(0, 0.3, 6)),), {})
)
def b_value():
    def forward(ctx, magnitudes: pb.Tensor, completeness: float = 2.5) -> pb.Tensor:
        """Aki's b value of the events at or above the magnitude of completeness."""
        m = magnitudes.numpy()
        ctx.counted = m >= completeness
        if ctx.counted.sum() < 2:
            raise ValueError("b_value needs two or more events above the completeness")
        excess = m[ctx.counted].mean() - completeness
        if excess <= 0:
            raise ValueError("all events have the magnitude of completeness")
        ctx.b = np.log10(np.e) / excess
        return pb.asarray(np.array(ctx.b))

    @pb.once_differentiable
    def backward(ctx, g):
        slope = -(ctx.b**2) / np.log10(np.e) / ctx.counted.sum()
        return pb.asarray(g.item() * slope * ctx.counted)

    return pb.autograd_function(forward, backward, name="b_value")


@BOOK.right(lambda rng: ((t(rng.uniform(5, 60, (2, 3))), t(rng.uniform(0.1, 0.2, 3))), {}))
def hyperbolic_moveout():
    @pb.autograd_function
    def hyperbolic_moveout(ctx, offset, slowness, zero_time=0.8, stretch_limit=None):
        """Arrival times sqrt(t0**2 + (offset * slowness)**2), at most stretch_limit * t0."""
        time = (zero_time**2 + (offset * slowness) ** 2).sqrt()
        ctx.save_for_backward(offset=offset, slowness=slowness)
        ctx.zero_time, ctx.limit = zero_time, stretch_limit
        return time if stretch_limit is None else time.clamp(max=stretch_limit * zero_time)

    @hyperbolic_moveout.backward
    def _(ctx, g):
        x, p = ctx.saved_tensors
        time = (ctx.zero_time**2 + (x * p) ** 2).sqrt()
        if ctx.limit is not None:
            g = pb.where(time < ctx.limit * ctx.zero_time, g, pb.zeros_like(g))
        by_product = g * x * p / time
        return {
            "offset": pb.sum_to_size(by_product * p, x.shape),
            "slowness": pb.sum_to_size(by_product * x, p.shape),
        }

    return hyperbolic_moveout
