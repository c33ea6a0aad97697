"""Speech: framing, filter banks, cepstra, pitch, vocal tract, alignment, decoding, scoring."""

from __future__ import annotations

import numpy as np
from scipy import linalg

import pullback as pb

from .entries import AXIS, FACTOR, MISSING, SHIFT, Book, at, mends, t

BOOK = Book("speech")


def voiced(rng, n, rate=8000.0):
    """Some milliseconds of a vowel, in units of 16-bit samples."""
    time = np.arange(n) / rate
    wave = sum(np.sin(2 * np.pi * 130 * k * time + k) / k for k in (1, 2, 3, 5))
    return 900 * wave + rng.normal(0, 60, n)


@BOOK.wrong(
    lambda rng: ((t(voiced(rng, 40)),), {}),
    "the first sample is left as it is, but backward treats it as if it had a neighbour before it",
    SHIFT,
    r"\b(?:first|last|element|index|position|entry) (?:sample|element|value|entry|\(?0\b|\[?0\b)",
    r"boundar|\bedge\b|\bwrap|circular|\broll\b",
    mends("grad[:-1] -= coefficient * gn[1:]", "gn[1:]", "grad[-1]", "[:-1] -="),
)
def pre_emphasis():
    @pb.autograd_function
    def pre_emphasis(ctx, signal, coefficient=0.97):
        """High-pass y[n] = x[n] - coefficient * x[n - 1]; the first sample stays."""
        x = signal.numpy()
        y = x.copy()
        y[1:] -= coefficient * x[:-1]
        ctx.coefficient = coefficient
        return pb.asarray(y)

    @pre_emphasis.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {"signal": pb.asarray(gn - ctx.coefficient * np.roll(gn, -1))}

    return pre_emphasis


def filter_energies(rng):
    return (t(rng.uniform(2e2, 9e5, (3, 8))),), {}


@BOOK.wrong(
    filter_energies,
    "the cepstra are liftered in forward, but the gradient is not multiplied by the lifter",
    at("lifter"),
    FACTOR + r"|multipl|weight",
    r"\blifter\b.{0,30}(?:ignored|not used|forgotten|no effect)",
    mends("gn * ctx.weights", "ctx.weights *", "* ctx.weights", "ctx.lift"),
    where="lifter is not 0",
    shows=lambda rng: (filter_energies(rng)[0], {"lifter": 22}),
)
def mel_cepstra():
    def cosines(filters, count):
        k, m = np.arange(count)[:, None], np.arange(filters) + 0.5
        scale = np.sqrt(np.where(k == 0, 1.0, 2.0) / filters)
        return scale * np.cos(np.pi * k * m / filters)

    @pb.autograd_function
    def mel_cepstra(ctx, energies, count=5, lifter=0, floor=1e-3):
        """Cepstra: (frames, count) of filter bank energies: (frames, filters).

        lifter: length of the sine lifter that raises the higher cepstra, 0 for none; energies
        below the floor count as the floor.
        """
        E = np.maximum(energies.numpy(), floor)
        ctx.basis = cosines(E.shape[1], count)
        cepstra = np.log(E) @ ctx.basis.T
        if lifter:
            cepstra *= 1 + lifter / 2 * np.sin(np.pi * np.arange(count) / lifter)
        ctx.save_for_backward(E=E, heard=energies.numpy() > floor)
        return pb.asarray(cepstra)

    @mel_cepstra.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_log = grad_output.numpy() @ ctx.basis
        return {"energies": pb.asarray(np.where(s.heard, by_log / s.E, 0.0))}

    return mel_cepstra


def features(rng):
    return (t(rng.normal([2.0, -4.0, 11.0], [1.0, 3.0, 5.0], (9, 3))),), {}


@BOOK.wrong(
    features,
    "with variances normalised, the gradient lacks the term through the standard deviation",
    at("variance"),
    MISSING,
    r"standard deviation|\bstd\b|projection|correlat|constant",
    AXIS,
    mends("s.z * (", "- z *", "- s.z", "(gn * s.z)", "(s.z * gn)"),
    where="variance is True",
    shows=lambda rng: (features(rng)[0], {"variance": True}),
)
def utterance_norm():
    @pb.autograd_function
    def utterance_norm(ctx, frames, variance=False, eps=1e-8):
        """Frames less their mean over the utterance, if asked for with unit variances."""
        X = frames.numpy()
        z = X - X.mean(axis=0)
        deviation = np.sqrt((z**2).mean(axis=0) + eps) if variance else 1.0
        ctx.deviation = deviation
        return pb.asarray(z / deviation)

    @utterance_norm.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {"frames": pb.asarray((gn - gn.mean(axis=0)) / ctx.deviation)}

    return utterance_norm


@BOOK.right(lambda rng: ((t(voiced(rng, 61)),), {"size": 20, "hop": 8, "window": "hamming"}))
def framed():
    WINDOWS = {"hamming": np.hamming, "hann": np.hanning, "none": np.ones}

    @pb.autograd_function
    def framed(ctx, signal, size=25, hop=10, window="hann", centre=False):
        """Overlapping windowed frames: (frames, size) of a signal: (n,), n at least size.

        hop: samples from one frame to the next; centre: whether to take away a frame's mean
        before the window. Samples that do not fill a frame are dropped.
        """
        x = signal.numpy()
        if len(x) < size:
            raise ValueError("the signal is shorter than a frame")
        starts = np.arange(0, len(x) - size + 1, hop)
        ctx.places, ctx.n, ctx.centre = starts[:, None] + np.arange(size), len(x), centre
        ctx.taper = WINDOWS[window](size)
        frames = x[ctx.places]
        if centre:
            frames = frames - frames.mean(axis=1, keepdims=True)
        return pb.asarray(frames * ctx.taper)

    @framed.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        back = grad_output.numpy() * ctx.taper
        if ctx.centre:
            back = back - back.mean(axis=1, keepdims=True)
        grad = np.zeros(ctx.n, back.dtype)
        np.add.at(grad, ctx.places, back)
        return {"signal": pb.asarray(grad)}

    return framed


@BOOK.right(lambda rng: ((t(voiced(rng, 48) * np.hamming(48)),), {"order": 6, "ridge": 1e-4}))
def predictor_of_frame():
    @pb.autograd_function
    def predictor_of_frame(ctx, frame, order=10, ridge=1e-5):
        """Coefficients of the linear prediction of a windowed frame, by its autocorrelation."""
        x = frame.numpy()
        if order >= len(x):
            raise ValueError("the frame is too short for the order")
        r = np.array([x[: len(x) - k] @ x[k:] for k in range(order + 1)])
        first = r[:-1].copy()
        first[0] *= 1 + ridge
        a = linalg.solve_toeplitz(first, r[1:])
        ctx.save_for_backward(frame=frame, first=first, a=a)
        ctx.ridge = ridge
        return pb.asarray(a.copy())

    @predictor_of_frame.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        x, p = s.frame.numpy(), len(s.a)
        y = linalg.solve_toeplitz(s.first, g.numpy())
        by_r = np.zeros(p + 1)
        by_r[1:] = y
        lags = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
        np.subtract.at(by_r, lags, np.outer(y, s.a))
        by_r[0] -= ctx.ridge * (y @ s.a)
        by_x = np.zeros_like(x)
        for k, w in enumerate(by_r):
            by_x[: len(x) - k] += w * x[k:]
            by_x[k:] += w * x[: len(x) - k]
        return {"frame": pb.asarray(by_x)}

    return predictor_of_frame


@BOOK.right(lambda rng: ((t(rng.uniform(-0.85, 0.85, 7)),), {"lips": 4.6}))
def tube_areas():
    @pb.autograd_function
    def tube_areas(ctx, reflection, lips=5.0):
        """Areas in cm2 of the tubes of a vocal tract, lips first; reflection: in (-1, 1)."""
        k = reflection.numpy()
        if (np.abs(k) >= 1).any():
            raise ValueError("reflection coefficients lie between -1 and 1")
        areas = lips * np.cumprod(np.append(1.0, (1 - k) / (1 + k)))
        ctx.save_for_backward(k=k.copy(), areas=areas)
        return pb.asarray(areas.copy())

    @tube_areas.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        k, areas = ctx.saved_variables
        behind = np.cumsum((grad_output.numpy() * areas)[:0:-1])[::-1]
        return {"reflection": pb.asarray(-2 * behind / (1 - k**2))}

    return tube_areas


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 2, (9, 4))),),
        {"labels": [2, 1, 1], "blank": 0},
    )
)
def connectionist_loss():
    def paths(score, targets, blank):
        """Forward variables: log probability of all that is read up to a frame."""
        skip = np.array(
            [i > 1 and c != blank and c != targets[i - 2] for i, c in enumerate(targets)]
        )
        alpha = np.full((len(score), len(targets)), -np.inf)
        alpha[0, :2] = score[0, targets[:2]]
        for k in range(1, len(score)):
            stay = alpha[k - 1]
            step = np.append(-np.inf, stay[:-1])
            jump = np.where(skip, np.append([-np.inf, -np.inf], stay[:-2])[: len(stay)], -np.inf)
            alpha[k] = np.logaddexp(np.logaddexp(stay, step), jump) + score[k, targets]
        return alpha

    @pb.autograd_function
    def connectionist_loss(ctx, logits, labels, blank=0):
        """-ln of the probability that the frames, (frames, symbols), are read as the labels."""
        z = logits.numpy()
        z = z - z.max(axis=1, keepdims=True)
        score = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        targets = np.full(2 * len(labels) + 1, blank)
        targets[1::2] = labels
        ahead = paths(score, targets, blank)
        behind = paths(score[::-1], targets[::-1], blank)[::-1, ::-1]
        total = np.logaddexp.reduce(ahead[-1, -2:])
        if not np.isfinite(total):
            raise ValueError("too few frames for the labels")
        occupied = np.exp(ahead + behind - score[:, targets] - total)
        share = np.zeros_like(score)
        for place, symbol in enumerate(targets):
            share[:, symbol] += occupied[:, place]
        ctx.residual = np.exp(score) - share
        return pb.asarray(np.asarray(-total))

    @connectionist_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"logits": pb.asarray(g.item() * ctx.residual)}

    return connectionist_loss


@BOOK.right(
    lambda rng: (
        (t(np.cumsum(rng.normal(0, 1, (6, 2)), 0)), t(np.cumsum(rng.normal(0, 1, (8, 2)), 0))),
        {"band": 4},
    )
)
def warped_distance():
    @pb.autograd_function
    def warped_distance(ctx, spoken, template, band=None, penalty=0.0):
        """Cost of the best time alignment of two sequences of frames, squares per pair.

        spoken: (n, d), template: (m, d); band: how far the path may go from the diagonal, in
        frames, None for any; penalty: cost of a step that repeats a frame.
        """
        X, Y = spoken.numpy(), template.numpy()
        (n, m), wide = (len(X), len(Y)), max(len(X), len(Y)) if band is None else band
        if wide < abs(n - m):
            raise ValueError("the band is too narrow")
        total = np.full((n + 1, m + 1), np.inf)
        total[0, 0], move = 0.0, {}
        for i in range(1, n + 1):
            for j in range(max(1, i - wide), min(m, i + wide) + 1):
                before = (
                    (total[i - 1, j - 1], (i - 1, j - 1)),
                    (total[i - 1, j] + penalty, (i - 1, j)),
                    (total[i, j - 1] + penalty, (i, j - 1)),
                )
                least, move[i, j] = min(before)
                total[i, j] = least + ((X[i - 1] - Y[j - 1]) ** 2).sum()
        path = [(n, m)]
        while move[path[-1]] != (0, 0):
            path.append(move[path[-1]])
        ctx.pairs = np.array(path) - 1
        ctx.save_for_backward(spoken=spoken, template=template)
        return pb.asarray(np.asarray(total[n, m]))

    @warped_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        X, Y = (v.numpy() for v in ctx.saved_variables)
        i, j = ctx.pairs.T
        pull = 2 * g.item() * (X[i] - Y[j])
        by_X, by_Y = np.zeros_like(X), np.zeros_like(Y)
        np.add.at(by_X, i, pull)
        np.subtract.at(by_Y, j, pull)
        return {"spoken": pb.asarray(by_X), "template": pb.asarray(by_Y)}

    return warped_distance


@BOOK.right(lambda rng: ((t(rng.uniform(60, 7800, (4, 3))),), {"scale": "bark"}))
def perceived_pitch():
    def forward(ctx, hertz, scale="mel"):
        f = hertz.numpy()
        if (f < 0).any():
            raise ValueError("frequencies must not be negative")
        if scale == "mel":
            out, slope = 2595 * np.log10(1 + f / 700), 2595 / np.log(10) / (700 + f)
        elif scale == "slaney":
            low = f < 1000
            step = 27 / np.log(6.4)
            ratio = np.where(low, 1.0, f / 1000)
            out = np.where(low, f * 3 / 200, 15 + step * np.log(ratio))
            slope = np.where(low, 3 / 200, step / (1000 * ratio))
        elif scale == "bark":
            out = 26.81 * f / (1960 + f) - 0.53
            slope = 26.81 * 1960 / (1960 + f) ** 2
            # Traunmueller's corrections at both ends
            slope = slope * np.where(out < 2, 0.85, np.where(out > 20.1, 1.22, 1.0))
            out = np.where(out < 2, out + 0.15 * (2 - out), out)
            out = np.where(out > 20.1, out + 0.22 * (out - 20.1), out)
        else:
            raise ValueError(f"no scale {scale!r}")
        ctx.slope = slope
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"hertz": pb.asarray(g.numpy() * ctx.slope)}

    return pb.autograd_function(forward, backward, name="perceived_pitch")


@BOOK.right(
    lambda rng: (
        (t(voiced(rng, 90)),),
        {"rate": 8000, "low": 90.0, "high": 400.0},
    )
)
def harmonicity():
    @pb.autograd_function
    def harmonicity(ctx, frame, rate, low=75.0, high=500.0):
        x = frame.numpy()
        lags = range(int(np.ceil(rate / high)), min(int(rate / low), len(x) // 2) + 1)
        best = (-np.inf, 0)
        for lag in lags:
            a, b = x[:-lag], x[lag:]
            best = max(best, (a @ b / np.sqrt((a @ a) * (b @ b) + 1.0), lag))
        ctx.save_for_backward(frame=frame)
        ctx.value, ctx.lag = best
        return pb.asarray(np.asarray(best[0])), pb.asarray(np.array(ctx.lag))

    @harmonicity.backward
    @pb.once_differentiable
    def _(ctx, g_value, g_lag):
        x, lag = ctx.saved_variables.frame.numpy(), ctx.lag
        a, b = x[:-lag], x[lag:]
        left, right = a @ a, b @ b
        square = left * right + 1.0
        grad = np.zeros_like(x)
        grad[:-lag] += b / np.sqrt(square) - ctx.value * a * right / square
        grad[lag:] += a / np.sqrt(square) - ctx.value * b * left / square
        return {"frame": pb.asarray(g_value.item() * grad)}

    return harmonicity


@BOOK.right(
    lambda rng: (
        (t(np.array([640.0, 1190.0, 2390.0])), t(np.array([70.0, 95.0, 140.0]))),
        {"frequencies": np.linspace(100, 3900, 12), "rate": 8000.0},
    )
)
def formant_envelope():
    @pb.autograd_function
    def formant_envelope(ctx, centre, width, frequencies, rate=16000.0):
        """Level in dB of a cascade of formants, each with unit gain at 0 Hz.

        centre, width: (formants,) in Hz, above 0; frequencies: (n,) in Hz.
        """
        radius = np.exp(-np.pi * width.numpy() / rate)[:, None]
        angle = 2 * np.pi * centre.numpy()[:, None] / rate
        w = 2 * np.pi * frequencies / rate
        down, up = (1 - 2 * radius * np.cos(w + s * angle) + radius**2 for s in (-1, 1))
        still = 1 - 2 * radius * np.cos(angle) + radius**2
        level = 2 * np.log(still) - np.log(down) - np.log(up)
        by_angle = (
            2
            * radius
            * (2 * np.sin(angle) / still + np.sin(w - angle) / down - np.sin(w + angle) / up)
        )
        by_radius = 2 * (
            2 * (radius - np.cos(angle)) / still
            - (radius - np.cos(w - angle)) / down
            - (radius - np.cos(w + angle)) / up
        )
        dB = 10 / np.log(10)
        ctx.by_centre = dB * by_angle * 2 * np.pi / rate
        ctx.by_width = -dB * by_radius * radius * np.pi / rate
        return pb.asarray(dB * level.sum(axis=0))

    @formant_envelope.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {"centre": pb.asarray(ctx.by_centre @ gn), "width": pb.asarray(ctx.by_width @ gn)}

    return formant_envelope


@BOOK.right(lambda rng: ((t(rng.normal(size=(7, 3))),), {"reach": 2, "lengths": [7]}))
def delta_features():
    @pb.autograd_function
    def delta_features(ctx, frames, reach=2, lengths=None):
        """Slopes of features over time; lengths: frames of each utterance, one after the other."""
        X = frames.numpy()
        ends = np.cumsum([len(X)] if lengths is None else lengths)
        if ends[-1] != len(X):
            raise ValueError("the lengths do not sum to the number of frames")
        first = np.repeat(np.append(0, ends[:-1]), np.diff(np.append(0, ends)))
        last = np.repeat(ends - 1, np.diff(np.append(0, ends)))
        here = np.arange(len(X))
        steps = range(1, reach + 1)
        norm = 2.0 * sum(k * k for k in steps)
        # the first and the last frame of an utterance stand for those beyond it
        ctx.terms = [
            (k / norm, np.minimum(here + k, last), np.maximum(here - k, first)) for k in steps
        ]
        return pb.asarray(sum(w * (X[after] - X[before]) for w, after, before in ctx.terms))

    @delta_features.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        grad = np.zeros_like(gn)
        for w, after, before in ctx.terms:
            np.add.at(grad, after, w * gn)
            np.subtract.at(grad, before, w * gn)
        return {"frames": pb.asarray(grad)}

    return delta_features


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 2, (3, 3))), t(rng.normal(-3, 2, (6, 3))), t(np.array(0.8))),
        {},
    )
)
def best_phones():
    @pb.autograd_function
    def best_phones(ctx, transition, emission, scale):
        """Score of the best path of states, and the path; transition: from row to column."""
        A, E, weight = transition.numpy(), emission.numpy(), scale.item()
        score, came = weight * E[0], np.zeros(E.shape, int)
        for k in range(1, len(E)):
            reached = score[:, None] + A
            came[k] = reached.argmax(axis=0)
            score = reached.max(axis=0) + weight * E[k]
        path = [int(score.argmax())]
        for k in range(len(E) - 1, 0, -1):
            path.append(came[k, path[-1]])
        ctx.path = np.array(path[::-1])
        ctx.save_for_backward(emission=emission, scale=scale, size=len(A))
        return pb.asarray(np.asarray(score.max())), pb.asarray(ctx.path.copy())

    @best_phones.backward
    @pb.once_differentiable
    def _(ctx, g_score, g_path):
        s, top = ctx.saved_variables, g_score.item()
        by_A, by_E = np.zeros((s.size, s.size)), np.zeros(s.emission.shape)
        np.add.at(by_A, (ctx.path[:-1], ctx.path[1:]), top)
        chosen = np.arange(len(ctx.path)), ctx.path
        by_E[chosen] = top * s.scale.item()
        by_scale = top * s.emission.numpy()[chosen].sum()
        return {
            "transition": pb.asarray(by_A),
            "emission": pb.asarray(by_E),
            "scale": by_scale,
        }

    return best_phones


@BOOK.right(lambda rng: ((t(voiced(rng, 12)), t(voiced(rng, 12) * 0.7)), {}))
def signal_to_distortion():
    @pb.autograd_function
    def signal_to_distortion(ctx, estimate, target):
        if estimate.shape != target.shape:
            raise ValueError("estimate and target must have one shape")
        e, s = estimate.numpy() - estimate.numpy().mean(), target.numpy() - target.numpy().mean()
        ee, ss, es = e @ e, s @ s, e @ s
        # of the projection on the target and of what is left over
        clean, rest = es**2 / ss, ee - es**2 / ss
        ctx.e, ctx.s, ctx.sums = e, s, (ss, es, clean, rest)
        return pb.asarray(np.asarray(10 * np.log10(clean / rest)))

    @signal_to_distortion.backward
    @pb.once_differentiable
    def _(ctx, g):
        ss, es, clean, rest = ctx.sums
        scale = g.item() * 10 / np.log(10)
        by_clean = scale * (1 / clean + 1 / rest)
        by_e = by_clean * 2 * es / ss * ctx.s - scale * 2 * ctx.e / rest
        by_s = by_clean * 2 * es / ss * (ctx.e - es / ss * ctx.s)
        return {
            "estimate": pb.asarray(by_e - by_e.mean()),
            "target": pb.asarray(by_s - by_s.mean()),
        }

    return signal_to_distortion


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(2.0, 4e3, (7, 4))), t(np.array(1.6))),
        {"silent": np.array([1, 1, 0, 0, 1, 0, 0], bool), "floor": 0.05},
    )
)
def spectral_subtraction():
    @pb.autograd_function
    def spectral_subtraction(ctx, power, excess, silent, memory=0.8, floor=0.01):
        """Power spectra less that of the noise, which is learned while nobody speaks.

        power: (frames, bins); excess: how many times the noise is taken away, above 0;
        silent: (frames,), the first of them True; memory: part of the old noise that is kept.
        """
        P, over = power.numpy(), excess.item()
        if not silent[0]:
            raise ValueError("the first frame must be silent")
        noise, noises = P[0], np.empty_like(P)
        for k, frame in enumerate(P):
            if silent[k]:
                noise = memory * noise + (1 - memory) * frame
            noises[k] = noise
        clean = P - over * noises
        ctx.spoken = clean > floor * P
        ctx.noises, ctx.settings = noises, (over, silent.copy(), memory, floor)
        return pb.asarray(np.where(ctx.spoken, clean, floor * P))

    @spectral_subtraction.backward
    @pb.once_differentiable
    def _(ctx, g):
        over, silent, memory, floor = ctx.settings
        by_clean = np.where(ctx.spoken, g.numpy(), 0.0)
        by_power = np.where(ctx.spoken, by_clean, floor * g.numpy())
        back = np.zeros(by_clean.shape[1])
        for k in range(len(by_clean) - 1, -1, -1):
            back = back - over * by_clean[k]
            if silent[k]:
                by_power[k] += (1 - memory) * back
                back = memory * back
        by_power[0] += back
        return {"power": pb.asarray(by_power), "excess": -(by_clean * ctx.noises).sum()}

    return spectral_subtraction
