"""Signals: Fourier filters, windows, frames, correlations, wavelets, resampling."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    AXIS,
    CHANGED,
    CONJUGATE,
    FACTOR,
    MAGNITUDE,
    MEMORY,
    MISSING,
    ODD,
    REVERSED,
    SHAPE,
    SHIFT,
    SIGN,
    STATE,
    SUMMED,
    TRANSPOSED,
    Book,
    at,
    t,
)

BOOK = Book("signal")


def signal(n=8):
    return lambda rng: ((t(rng.normal(size=n)),), {})


def two(n=8, m=3):
    return lambda rng: ((t(rng.normal(size=n)), t(rng.normal(size=m))), {})


def complex_normal(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=8)), t(complex_normal(rng, 8))), {}),
    "the transfer function is not conjugated in the signal's gradient",
    CONJUGATE,
)
def fft_filter():
    @pb.autograd_function
    def fft_filter(ctx, x, transfer):
        """Filter x: (n,) by transfer: (n,) complex; returns the real part."""
        X = np.fft.fft(x.numpy())
        ctx.save_for_backward(X=X, H=transfer.numpy().copy())
        return pb.asarray(np.fft.ifft(X * transfer.numpy()).real)

    @fft_filter.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        G = np.fft.fft(g.numpy())
        return {
            "x": pb.asarray(np.fft.ifft(G * s.H).real),
            "transfer": pb.asarray(G * s.X.conj() / len(G)),
        }

    return fft_filter


@BOOK.right(lambda rng: ((t(rng.normal(size=9)), t(complex_normal(rng, 9))), {}))
def spectral_filter():
    def forward(ctx, x: pb.Tensor, H: pb.Tensor) -> pb.Tensor:
        """x: (n,) real, H: (n,) complex."""
        X = np.fft.fft(x.numpy())
        ctx.save_for_backward(X=X, H=H)
        return pb.asarray(np.fft.ifft(X * H.numpy()).real)

    @pb.once_differentiable
    def backward(ctx, g):
        s, G = ctx.saved_variables, np.fft.fft(g.numpy())
        by_x = np.fft.ifft(G * s.H.numpy().conj()).real
        return pb.asarray(by_x), pb.asarray(G * s.X.conj() / len(G))

    return pb.autograd_function(forward, backward, name="spectral_filter")


@BOOK.wrong(
    signal(8),
    "the middle frequency is counted twice for an odd length",
    ODD,
    FACTOR,
    where="odd length",
    shows=signal(9),
)
def power_spectrum():
    @pb.autograd_function
    def power_spectrum(ctx, x):
        """Squared magnitudes of rfft of x: (n,)."""
        X = np.fft.rfft(x.numpy())
        ctx.X, ctx.n = X, len(x)
        return pb.asarray(np.abs(X) ** 2)

    @power_spectrum.backward
    @pb.once_differentiable
    def _(ctx, g):
        G = 2 * ctx.X * g.numpy()
        G[1:-1] /= 2
        return {"x": pb.asarray(np.fft.irfft(G, ctx.n) * ctx.n)}

    return power_spectrum


@BOOK.right(signal(9))
def periodogram():
    @pb.autograd_function
    def periodogram(ctx, x, scaling: str = "density"):
        if scaling not in ("density", "spectrum"):
            raise ValueError("scaling must be density or spectrum")
        xn = x.numpy()
        n = len(xn)
        F = np.exp(-2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n)
        ctx.F, ctx.scale = F, 1 / n if scaling == "density" else 1 / n**2
        ctx.save_for_backward(x=x)
        return pb.asarray(np.abs(F @ xn) ** 2 * ctx.scale)

    @periodogram.backward
    @pb.once_differentiable
    def _(ctx, g):
        X = ctx.F @ ctx.saved_variables.x.numpy()
        return {"x": pb.asarray(2 * ctx.scale * ((g.numpy() * X) @ ctx.F.conj()).real)}

    return periodogram


@BOOK.wrong(
    two(),
    "the kernel is not turned round: backward convolves where it should correlate",
    REVERSED,
    r"correlat|convol",
)
def filter_valid():
    @pb.autograd_function
    def filter_valid(ctx, x, kernel):
        ctx.save_for_backward(x=x, kernel=kernel)
        return pb.asarray(np.convolve(x.numpy(), kernel.numpy(), mode="valid"))

    @filter_valid.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, k = (v.numpy() for v in ctx.saved_tensors)
        gn = g.numpy()
        return {
            "x": pb.asarray(np.convolve(gn, k, mode="full")),
            "kernel": pb.asarray(np.correlate(x, gn, mode="valid")[::-1].copy()),
        }

    return filter_valid


@BOOK.right(two(9, 4))
def fir():
    class FIR(pb.Function):
        """y[n] = sum over k of taps[k] x[n - k], as long as x."""

        @staticmethod
        def forward(ctx, x, taps):
            ctx.save_for_backward(x=x, taps=taps)
            return pb.asarray(np.convolve(x.numpy(), taps.numpy())[: len(x)])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            x, taps = (v.numpy() for v in ctx.saved_tensors)
            n, gn = len(x), g.numpy()
            by_x = np.convolve(gn[::-1], taps)[:n][::-1].copy()
            by_taps = np.array([gn[k:] @ x[: max(n - k, 0)] for k in range(len(taps))])
            return pb.asarray(by_x), pb.asarray(by_taps)

    return FIR.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=12)), 4), {}),
    "overlapping frames overwrite each other's gradient",
    MISSING,
    r"overlap|accumulat",
    at("hop"),
    where="hop smaller than the frame",
    shows=lambda rng: ((t(rng.normal(size=12)), 4), {"hop": 2}),
)
def frames():
    @pb.autograd_function
    def frames(ctx, x, size: int, hop: int | None = None):
        """Cut x: (n,) into frames: (m, size); hop is size unless given."""
        hop = size if hop is None else hop
        at = np.arange(0, len(x) - size + 1, hop)[:, None] + np.arange(size)
        ctx.at, ctx.n = at, len(x)
        return pb.asarray(x.numpy()[at])

    @frames.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.n)
        grad[ctx.at] = g.numpy()
        return {"x": pb.asarray(grad)}

    return frames


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 6))), 3), {"window": t(np.hanning(6) + 0.1)}))
def overlap_add():
    @pb.autograd_function
    def overlap_add(ctx, frames: pb.Tensor, hop: int, window: pb.Tensor) -> pb.Tensor:
        """Add windowed frames: (m, size), `hop` apart; window: (size,)."""
        m, size = frames.shape
        at = np.arange(m)[:, None] * hop + np.arange(size)
        out = np.zeros((m - 1) * hop + size)
        np.add.at(out, at, frames.numpy() * window.numpy())
        ctx.save_for_backward(frames=frames, window=window, at=at)
        return pb.asarray(out)

    @overlap_add.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, cut = ctx.saved_variables, g.numpy()[ctx.saved_variables.at]
        return {
            "frames": pb.asarray(cut * s.window.numpy()),
            "window": pb.asarray((cut * s.frames.numpy()).sum(axis=0)),
        }

    return overlap_add


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 6))), t(np.hanning(6) + 0.1)), {}),
    "the window's gradient is that of one frame; the sum over frames is missing",
    SUMMED,
    MISSING,
)
def apply_window():
    def forward(ctx, frames, window):
        ctx.save_for_backward(frames=frames, window=window)
        return frames * window

    def backward(ctx, g):
        frames, window = ctx.saved_tensors
        return {"frames": g * window, "window": (g * frames)[0]}

    return pb.autograd_function(forward, backward, name="apply_window")


@BOOK.wrong(
    signal(7),
    "the term of x's second place in the product is missing",
    MISSING,
    FACTOR,
    r"\bterm\b",
)
def autocorrelation():
    @pb.autograd_function
    def autocorrelation(ctx, x, lags=4):
        """r[k] = sum over n of x[n] x[n + k] for k below lags."""
        xn = x.numpy()
        ctx.save_for_backward(x=x, lags=lags)
        return pb.asarray(np.array([xn[: len(xn) - k] @ xn[k:] for k in range(lags)]))

    @autocorrelation.backward
    @pb.once_differentiable
    def _(ctx, g):
        x = ctx.saved_variables.x.numpy()
        grad = np.zeros_like(x)
        for k in range(ctx.saved_variables.lags):
            grad[: len(x) - k] += g.numpy()[k] * x[k:]
        return {"x": pb.asarray(grad)}

    return autocorrelation


@BOOK.right(signal(8))
def autocorrelate():
    @pb.autograd_function
    def autocorrelate(ctx, series, maxlag: int = 3, unbiased: bool = False):
        """Lags 0 to maxlag of series: (n,), divided by n, or by the number of terms."""
        x = series.numpy()
        n = len(x)
        norm = np.array([n - k if unbiased else n for k in range(maxlag + 1)])
        r = np.array([x[: n - k] @ x[k:] for k in range(maxlag + 1)]) / norm
        ctx.save_for_backward(series=series, norm=norm)
        return pb.asarray(r)

    @autocorrelate.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, grad = ctx.saved_variables.series.numpy(), np.zeros(len(ctx.saved_variables.series))
        for k, w in enumerate(g.numpy() / ctx.saved_variables.norm):
            grad[: len(x) - k] += w * x[k:]
            grad[k:] += w * x[: len(x) - k]
        return {"series": pb.asarray(grad)}

    return autocorrelate


@BOOK.wrong(
    signal(8),
    "the detail's gradient has the wrong sign in the second of each pair",
    SIGN,
)
def haar_step():
    @pb.autograd_function
    def haar_step(ctx, x: pb.Tensor):
        """One level of Haar's wavelet; x: (n,) with n even; returns approximation and detail."""
        even, odd = x[0::2], x[1::2]
        return (even + odd) / np.sqrt(2.0), (even - odd) / np.sqrt(2.0)

    @haar_step.backward
    def _(ctx, g_approx, g_detail):
        both = pb.stack([g_approx + g_detail, g_approx + g_detail], axis=1)
        return {"x": both.reshape(-1) / np.sqrt(2.0)}

    return haar_step


@BOOK.right(signal(16))
def haar_transform():
    def forward(ctx, x, levels=2):
        if levels < 1 or len(x) % 2**levels:
            raise ValueError(
                "haar_transform: the length must be a multiple of 2**levels, levels > 0"
            )
        parts, low = [], x.numpy()
        for _ in range(levels):
            low, high = (low[0::2] + low[1::2]) / np.sqrt(2), (low[0::2] - low[1::2]) / np.sqrt(2)
            parts.append(pb.asarray(high))
        return [pb.asarray(low), *parts[::-1]]

    @pb.once_differentiable
    def backward(ctx, grads):
        low, *highs = (g.numpy() for g in grads)
        for high in highs:
            up = np.empty(2 * len(low))
            up[0::2], up[1::2] = (low + high) / np.sqrt(2), (low - high) / np.sqrt(2)
            low = up
        return {"x": pb.asarray(low)}

    return pb.autograd_function(forward, backward, name="haar_transform")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(2, 6))),), {"steps": 2}),
    "the gradient is shifted the same way as the signal",
    SHIFT,
    SIGN,
    REVERSED,
)
def roll_signal():
    @pb.autograd_function
    def roll_signal(ctx, x, steps=1):
        ctx.steps = steps
        return pb.asarray(np.roll(x.numpy(), steps, axis=-1))

    @roll_signal.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(np.roll(g.numpy(), ctx.steps, axis=-1)), None

    return roll_signal


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))),), {"axis": 1}),
    "backward takes every axis other than 1 for axis 0, a negative one too",
    AXIS,
    where="axis=-1",
    shows=lambda rng: ((t(rng.normal(size=(3, 4))),), {"axis": -1}),
)
def running_sum():
    @pb.autograd_function
    def running_sum(ctx, x: pb.Tensor, axis: int = 0) -> pb.Tensor:
        """Running sums along an axis of x: (n, m)."""
        ctx.axis = axis
        return pb.asarray(np.cumsum(x.numpy(), axis=axis))

    @running_sum.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        if ctx.axis == 1:
            return {"x": pb.asarray(np.cumsum(gn[:, ::-1], axis=1)[:, ::-1].copy())}
        return {"x": pb.asarray(np.cumsum(gn[::-1], axis=0)[::-1].copy())}

    return running_sum


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 16))), t(np.hanning(8) + 0.05)), {"hop": 4}))
def stft_magnitude():
    @pb.autograd_function
    def stft_magnitude(ctx, x, window, hop=None, eps=1e-6):
        """sqrt(|STFT|**2 + eps)."""
        size = len(window)
        hop = size // 2 if hop is None else hop
        at = np.arange(0, x.shape[1] - size + 1, hop)[:, None] + np.arange(size)
        F = np.exp(-2j * np.pi * np.outer(np.arange(size), np.arange(size // 2 + 1)) / size)
        cut = x.numpy()[:, at]
        S = (cut * window.numpy()) @ F
        out = np.sqrt(np.abs(S) ** 2 + eps)
        ctx.save_for_backward(unit=S / out, cut=cut, F=F, at=at, w=window, shape=x.shape)
        return pb.asarray(out)

    @stft_magnitude.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = ((g.numpy() * s.unit) @ s.F.conj().T).real
        grad = np.zeros(s.shape)
        for b in range(len(grad)):
            np.add.at(grad[b], s.at, flow[b] * s.w.numpy())
        return {"x": pb.asarray(grad), "window": pb.asarray((flow * s.cut).sum(axis=(0, 1)))}

    return stft_magnitude


@BOOK.wrong(
    lambda rng: ((t(1e-1 + rng.random((5, 4))),), {}),
    "backward leaves out the small constant that forward adds",
    r"\beps\b|epsilon|small constant",
    MISSING,
    MAGNITUDE,
    where="small magnitude",
    shows=lambda rng: ((t(1e-4 + 1e-4 * rng.random((5, 4))),), {}),
)
def log_spectrogram():
    @pb.autograd_function
    def log_spectrogram(ctx, power, floor=1e-5):
        """10 log10(power + floor); power: (frames, freqs)."""
        if (power.numpy() < 0).any():
            raise ValueError("log_spectrogram: power must not be negative")
        ctx.save_for_backward(power=power)
        return 10 * pb.log10(power + floor)

    @log_spectrogram.backward
    def _(ctx, g):
        return {"power": g * 10 / np.log(10) / ctx.saved_variables.power}

    return log_spectrogram


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=10)), 2), {}),
    "the last sample's gradient is lost when the length is no multiple of the factor",
    SHAPE,
    ODD,
    MISSING,
    where="length not a multiple of the factor",
    shows=lambda rng: ((t(rng.normal(size=11)), 2), {}),
)
def decimate():
    def forward(ctx, x, factor):
        ctx.n, ctx.factor = len(x), factor
        return pb.asarray(x.numpy()[::factor].copy())

    @pb.once_differentiable
    def backward(ctx, g):
        grad = np.zeros(ctx.n)
        whole = ctx.n // ctx.factor
        grad[: whole * ctx.factor : ctx.factor] = g.numpy()[:whole]
        return {"x": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="decimate")


@BOOK.wrong(
    signal(8),
    "a work array of the operation is used by every call, so a later call overwrites it",
    STATE,
    CHANGED,
    where="second use",
)
def envelope():
    buffer = {}

    @pb.autograd_function
    def envelope(ctx, x):
        """Magnitude of the analytic signal of x: (n,), n even."""
        n = len(x)
        h = np.zeros(n)
        h[0] = h[n // 2] = 1
        h[1 : n // 2] = 2
        work = buffer.setdefault(n, np.empty(n, complex))
        work[:] = np.fft.ifft(np.fft.fft(x.numpy()) * h)
        ctx.h, ctx.n = h, n
        return pb.asarray(np.abs(work))

    @envelope.backward
    @pb.once_differentiable
    def _(ctx, g):
        work = buffer[ctx.n]
        flow = np.fft.fft(np.conj(g.numpy() * work / np.abs(work)))
        grad = np.fft.ifft(flow * ctx.h[-np.arange(ctx.n)]).real
        return {"x": pb.asarray(grad)}

    return envelope


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))),), {}),
    "backward reads the memory of the input in the wrong order if it is not contiguous",
    MEMORY,
    TRANSPOSED,
    where="non-contiguous memory",
    shows=lambda rng: (
        (pb.asarray(np.asfortranarray(rng.normal(size=(3, 4)))).requires_grad_(True),),
        {},
    ),
)
def soft_clip():
    @pb.autograd_function
    def soft_clip(ctx, x):
        ctx.flat = x.numpy().ravel(order="K").copy()
        ctx.shape = x.shape
        return x / pb.sqrt(1 + x * x)

    @soft_clip.backward
    @pb.once_differentiable
    def _(ctx, g):
        x = ctx.flat.reshape(ctx.shape)
        return {"x": g * pb.asarray((1 + x**2) ** -1.5)}

    return soft_clip


@BOOK.wrong(
    lambda rng: ((t(complex_normal(rng, 5)), t(complex_normal(rng, 5))), {}),
    "the gradient of the first factor is not conjugated",
    CONJUGATE,
)
def cross_spectrum():
    @pb.autograd_function
    def cross_spectrum(ctx, X, Y):
        """X conj(Y), elementwise."""
        ctx.save_for_backward(X=X, Y=Y)
        return X * pb.conj(Y)

    @cross_spectrum.backward
    def _(ctx, g):
        X, Y = ctx.saved_tensors
        return {"X": g * pb.conj(Y), "Y": pb.conj(g) * X}

    return cross_spectrum


@BOOK.right(lambda rng: ((t(complex_normal(rng, 5)), t(complex_normal(rng, 5))), {}))
def coherence_product():
    @pb.autograd_function
    def coherence_product(ctx, X, Y):
        ctx.save_for_backward(X=X, Y=Y)
        return X * pb.conj(Y)

    @coherence_product.backward
    def _(ctx, g):
        X, Y = ctx.saved_tensors
        return g * Y, pb.conj(g) * X

    return coherence_product
