"""Audio: compressors, echoes, delays, resampling, mel bands, phases, linear prediction."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    MASK,
    REVERSED,
    SECOND,
    Book,
    at,
    t,
)

BOOK = Book("audio")


def tone(rng, n=24):
    """A tone that grows and dies away, in noise."""
    n = np.arange(n)
    return np.sin(0.9 * n + 0.3) * np.sin(np.pi * (n + 1) / (len(n) + 1)) + 0.05 * rng.normal(
        size=len(n)
    )


@BOOK.wrong(
    lambda rng: ((t(tone(rng)), t(0.4), t(3.0)), {}),
    "samples below the threshold count in its gradient too: their mask is forgotten",
    MASK,
    r"\bbelow\b|\bquiet|\babove\b|\bexceed|not compressed|unchanged samples|all samples",
)
def hard_compressor():
    @pb.autograd_function
    def hard_compressor(ctx, x, threshold, ratio):
        """Above the threshold: threshold (|x| / threshold)^(1 / ratio), with the sign of x."""
        xn, top, r = x.numpy(), threshold.item(), ratio.item()
        over = np.abs(xn) / top
        loud = over > 1
        ctx.save_for_backward(over=over, loud=loud, sign=np.sign(xn), top=top, ratio=r)
        return pb.asarray(np.where(loud, np.sign(xn) * top * over ** (1 / r), xn))

    @hard_compressor.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        curve = s.over ** (1 / s.ratio)
        signed = gn * s.sign
        by_x = np.where(s.loud, gn * curve / (s.over * s.ratio), gn)
        by_ratio = -signed * s.top * curve * np.log(s.over) / s.ratio**2
        return {
            "x": pb.asarray(by_x),
            "threshold": (signed * (1 - 1 / s.ratio) * curve).sum(),
            "ratio": by_ratio[s.loud].sum(),
        }

    return hard_compressor


def triangles(bins, bands):
    """Triangular bands, evenly spaced: (bands, bins)."""
    edges = np.linspace(-0.5, bins - 0.5, bands + 2)
    f = np.arange(bins)
    up = (f - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - f) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down))


def quiet_frames(rng):
    power = 0.1 + rng.random((5, 12))
    power[[1, 3]] *= 1e-8
    return (t(power),), {"bands": 4, "floor": 1e-3}


@BOOK.wrong(
    lambda rng: ((t(0.1 + rng.random((5, 12))),), {"bands": 4}),
    "bands below the floor still get a gradient, as if they had not been clipped",
    MASK,
    r"\bclip|\bclamp|\bbelow\b|\bsaturat",
    at("floor"),
    where="bands below the floor",
    shows=quiet_frames,
)
def mel_decibels():
    @pb.autograd_function
    def mel_decibels(ctx, power, bands=4, floor=1e-10):
        """10 log10 of the power in bands, at least `floor`; power: (frames, bins)."""
        bank = triangles(power.shape[1], bands)
        mel = power.numpy() @ bank.T
        ctx.save_for_backward(bank=bank, mel=mel)
        return pb.asarray(10 * np.log10(np.maximum(mel, floor)))

    @mel_decibels.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        return {"power": pb.asarray(10 / np.log(10) * (g.numpy() / s.mel) @ s.bank)}

    return mel_decibels


@BOOK.wrong(
    lambda rng: ((t(0.5 + rng.random((6, 4))), t(rng.normal(size=(6, 4)))), {}),
    "the running sum of the phase goes forwards in backward too; it has to be reversed in time",
    REVERSED,
    r"\b(cum|running|cumulative) ?sum|\b(later|earlier|future|past|following|preceding) frames?",
    r"\bcumsum",
)
def phase_vocoder():
    @pb.autograd_function
    def phase_vocoder(ctx, magnitude, advance):
        """Complex spectrum whose phase grows by `advance` from frame to frame: (frames, bins)."""
        unit = np.exp(1j * np.cumsum(advance.numpy(), axis=0))
        ctx.save_for_backward(magnitude=magnitude, unit=unit)
        return pb.asarray(magnitude.numpy() * unit)

    @phase_vocoder.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        turned = np.conj(g.numpy()) * s.unit
        by_phase = -turned.imag * s.magnitude.numpy()
        return {
            "magnitude": pb.asarray(turned.real.copy()),
            "advance": pb.asarray(np.cumsum(by_phase, axis=0)),
        }

    return phase_vocoder


@BOOK.wrong(
    lambda rng: ((t(tone(rng)), t(1.17)), {"length": 14}),
    "output n stands at n times the rate; that factor n is left out of the rate's gradient",
    FACTOR,
    r"\bsample (number|index)|\bindex of|\bn times\b|\bposition|\btime index",
)
def pitch_shift():
    @pb.autograd_function
    def pitch_shift(ctx, x: pb.Tensor, rate: pb.Tensor, length: int = 8):
        """Read x: (n,) at 0, rate, 2 rate, ..., linearly between samples."""
        xn = x.numpy()
        where = np.arange(length) * rate.item()
        if where[-1] >= len(xn) - 1:
            raise ValueError("pitch_shift: x is too short for this length and rate")
        k = where.astype(int)
        ctx.save_for_backward(x=x, k=k, part=where - k)
        return pb.asarray(xn[k] + (where - k) * (xn[k + 1] - xn[k]))

    @pitch_shift.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        x = s.x.numpy()
        grad = np.zeros_like(x)
        np.add.at(grad, s.k, gn * (1 - s.part))
        np.add.at(grad, s.k + 1, gn * s.part)
        return {"x": pb.asarray(grad), "rate": (gn * (x[s.k + 1] - x[s.k])).sum()}

    return pitch_shift


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(2, 12))), t(np.array([0.6, 0.3]))), {"delay": 3}),
    "the gain's gradient takes the delayed input where the delayed output is fed back",
    r"delayed (output|input)|fed back|feedback|recursi|\boutput\b.{0,60}\binput\b",
    r"\binput\b.{0,60}\boutput\b|later echoes|first echo|y\[",
)
def echo():
    @pb.autograd_function
    def echo(ctx, x, gain, delay=1):
        """y[n] = x[n] + gain y[n - delay] for each channel; x: (c, n), gain: (c,)."""
        y = x.numpy().copy()
        for n in range(delay, y.shape[1]):
            y[:, n] += gain.numpy() * y[:, n - delay]
        ctx.save_for_backward(x=x, gain=gain)
        ctx.delay = delay
        return pb.asarray(y)

    @echo.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, d = ctx.saved_variables, ctx.delay
        h = g.numpy().copy()
        for n in range(h.shape[1] - d - 1, -1, -1):
            h[:, n] += s.gain.numpy() * h[:, n + d]
        by_gain = (h[:, d:] * s.x.numpy()[:, :-d]).sum(axis=1)
        return {"x": pb.asarray(h), "gain": pb.asarray(by_gain)}

    return echo


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=8)), t(1.4)), {}),
    "the slope is computed under no_grad to save memory, so the second derivative lacks it",
    SECOND,
    where="second derivative",
)
def saturate():
    @pb.autograd_function
    def saturate(ctx, x, drive):
        """x / sqrt(1 + (drive x)^2); x: (n,), drive: ()."""
        ctx.save_for_backward(x=x, drive=drive)
        return x / pb.sqrt(1 + (drive * x) ** 2)

    @saturate.backward
    def _(ctx, g):
        x, drive = ctx.saved_tensors
        with pb.no_grad():
            slope = (1 + (drive * x) ** 2) ** -1.5
        return {"x": g * slope, "drive": -(g * slope * x**3).sum() * drive}

    return saturate


@BOOK.right(
    lambda rng: ((t(tone(rng)), t(-9.0), t(4.0)), {"knee": 6.0, "attack": 0.5, "release": 0.9})
)
def soft_compressor():
    @pb.autograd_function
    def soft_compressor(ctx, x, threshold, ratio, knee=6.0, attack=0.3, release=0.95, eps=1e-5):
        """Compress above `threshold` dB; the gain reduction in dB is smoothed in time."""
        level = 20 * np.log10(np.abs(x.numpy()) + eps)
        over = level - threshold.item()
        rounded = np.clip(over + knee / 2, 0, knee) ** 2 / (2 * knee)
        bent = np.where(over > knee / 2, over, rounded)
        slope = np.clip(over / knee + 0.5, 0, 1)
        wanted = (1 / ratio.item() - 1) * bent
        gain, keep, last = np.empty_like(wanted), np.empty_like(wanted), 0.0
        for n, value in enumerate(wanted):
            keep[n] = attack if value < last else release
            gain[n] = last = keep[n] * last + (1 - keep[n]) * value
        ctx.save_for_backward(x=x, ratio=ratio, bent=bent, slope=slope, keep=keep, gain=gain)
        ctx.eps = eps
        return pb.asarray(x.numpy() * 10 ** (gain / 20))

    @soft_compressor.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        x, ratio, factor = s.x.numpy(), s.ratio.item(), 10 ** (s.gain / 20)
        h, carry = gn * x * factor * np.log(10) / 20, 0.0
        for n in range(len(h) - 1, -1, -1):
            h[n], carry = (1 - s.keep[n]) * (h[n] + carry), s.keep[n] * (h[n] + carry)
        by_over = h * (1 / ratio - 1) * s.slope
        by_level = 20 / np.log(10) * np.sign(x) / (np.abs(x) + ctx.eps)
        return {
            "x": pb.asarray(gn * factor + by_over * by_level),
            "threshold": -by_over.sum(),
            "ratio": -(h * s.bent).sum() / ratio**2,
        }

    return soft_compressor


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 12))), t(np.array([2.0, 1.37, 0.61]))), {}))
def fractional_delay():
    def kernel(when, taps):
        """Windowed sinc and its derivative."""
        small = np.abs(when) < 1e-4
        safe = np.where(small, 1.0, when)
        wave = np.sinc(when)
        rise = np.where(small, -(np.pi**2) * when / 3, (np.cos(np.pi * when) - wave) / safe)
        angle = np.pi * np.clip(when / taps, -1, 1)
        window, fall = 0.5 + 0.5 * np.cos(angle), -0.5 * np.pi / taps * np.sin(angle)
        return wave * window, rise * window + wave * fall

    @pb.autograd_function
    def fractional_delay(ctx, x, delay, taps=4):
        """Delay each channel of x: (c, n) by its own number of samples: (c,)."""
        n = np.arange(x.shape[1])
        K, slope = kernel(n[:, None] - n - delay.numpy()[:, None, None], taps)
        ctx.save_for_backward(x=x, K=K, slope=slope)
        return pb.asarray(np.einsum("cnk,ck->cn", K, x.numpy()))

    @fractional_delay.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "x": pb.asarray(np.einsum("cnk,cn->ck", s.K, gn)),
            "delay": pb.asarray(-np.einsum("cnk,cn,ck->c", s.slope, gn, s.x.numpy())),
        }

    return fractional_delay


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 5)) + 1j * rng.normal(size=(4, 5))),), {"hop": 2}))
def inverse_stft():
    class InverseSTFT(pb.Function):
        """Signal of a spectrum: (frames, bins) of frames that are 2 (bins - 1) long."""

        @staticmethod
        def forward(ctx, spectrum, hop=None):
            frames, size = spectrum.shape[0], 2 * (spectrum.shape[1] - 1)
            hop = size // 4 if hop is None else hop
            at = np.arange(frames)[:, None] * hop + np.arange(size)
            window = np.sin(np.pi * (np.arange(size) + 0.5) / size)
            out, norm = np.zeros(at.max() + 1), np.zeros(at.max() + 1)
            np.add.at(out, at, np.fft.irfft(spectrum.numpy(), size) * window)
            np.add.at(norm, at, np.broadcast_to(window**2, at.shape))
            ctx.at, ctx.window, ctx.norm = at, window, norm
            return pb.asarray(out / norm)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            cut = (g.numpy() / ctx.norm)[ctx.at] * ctx.window
            size = cut.shape[1]
            G = np.fft.rfft(cut) * 2 / size
            G[:, [0, -1]] /= 2
            return {"spectrum": pb.asarray(G)}

    return InverseSTFT.apply


def correlations(rng, order=4):
    x = rng.normal(size=40).cumsum()
    return t(np.array([x[: 40 - k] @ x[k:] for k in range(order + 1)]) / 40)


@BOOK.right(lambda rng: ((correlations(rng),), {}))
def linear_prediction():
    @pb.autograd_function
    def linear_prediction(ctx, correlation):
        """Levinson's recursion: predictor of correlation[0..p] and the error's power."""
        r = correlation.numpy()
        a, power = np.zeros(0), r[0]
        for k in range(1, len(r)):
            reflection = (r[k] - a @ r[k - 1 : 0 : -1]) / power
            a = np.append(a - reflection * a[::-1], reflection)
            power *= 1 - reflection**2
        ctx.save_for_backward(correlation=correlation, a=a)
        return {"predictor": pb.asarray(a.copy()), "power": pb.asarray(np.asarray(power))}

    @linear_prediction.backward
    @pb.once_differentiable
    def _(ctx, g_predictor, g_power):
        r, a = ctx.saved_variables.correlation.numpy(), ctx.saved_variables.a
        lag = np.abs(np.subtract.outer(np.arange(len(a)), np.arange(len(a))))
        gp = g_power.item()
        adjoint = np.linalg.solve(r[lag], g_predictor.numpy() - gp * r[1:])
        grad = np.append(gp, adjoint - gp * a)
        np.subtract.at(grad, lag, np.outer(adjoint, a))
        return {"correlation": pb.asarray(grad)}

    return linear_prediction


@BOOK.right(lambda rng: ((t(1e-3 + rng.random((4, 10))), t(0.5 + rng.random(3))), {"eps": 1e-6}))
def channel_energy_norm():
    @pb.autograd_function
    def channel_energy_norm(ctx, power: pb.Tensor, exponent: pb.Tensor, *, eps: float = 1e-6):
        """(band energy + eps)^exponent, an exponent for each band; power: (frames, bins)."""
        ctx.save_for_backward(power=power, exponent=exponent)
        ctx.eps = eps
        return (power @ bank(power, exponent).t() + eps) ** exponent

    def bank(power, exponent):
        return pb.asarray(triangles(power.shape[1], len(exponent))).to(power.dtype)

    @channel_energy_norm.backward
    def _(ctx, g):
        power, exponent = ctx.saved_tensors
        bands = bank(power, exponent)
        energy = power @ bands.t() + ctx.eps
        return {
            "power": (g * exponent * energy ** (exponent - 1)) @ bands,
            "exponent": (g * energy**exponent * pb.log(energy)).sum(dim=0),
        }

    return channel_energy_norm
