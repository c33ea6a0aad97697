"""Music: tuning, timbre, envelopes, timing, loudness, alignment of performances."""

from __future__ import annotations

import numpy as np
from scipy import signal as sps

import pullback as pb

from .entries import MISSING, ODD, REPEATED, SIGN, Book, mends, t

BOOK = Book("music")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=14)), t(0.9), t(0.4)), {"period": 4}),
    "the gradient of the blend has the wrong sign: further minus nearer is swapped",
    SIGN + r"|subtract",
    mends("further - s.nearer", "s.further - s.nearer"),
)
def plucked_string():
    @pb.autograd_function
    def plucked_string(ctx, burst, decay, blend, period=5):
        """Karplus-Strong string: y[n] = x[n] + decay * mix of y[n - period], y[n - period - 1]."""
        x, d, b = burst.numpy(), decay.item(), blend.item()
        y = np.zeros(len(x) + period + 1)
        off = period + 1
        for n in range(len(x)):
            y[n + off] = x[n] + d * ((1 - b) * y[n + 1] + b * y[n])
        ctx.save_for_backward(d=d, b=b, further=y[: len(x)], nearer=y[1 : len(x) + 1])
        ctx.period = period
        return pb.asarray(y[off:].copy())

    @plucked_string.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, p = ctx.saved_variables, ctx.period
        a = g.numpy().copy()
        for n in reversed(range(len(a))):
            if n >= p:
                a[n - p] += s.d * (1 - s.b) * a[n]
            if n > p:
                a[n - p - 1] += s.d * s.b * a[n]
        mixed = (1 - s.b) * s.nearer + s.b * s.further
        return {
            "burst": pb.asarray(a),
            "decay": a @ mixed,
            "blend": s.d * (a @ (s.nearer - s.further)),
        }

    return plucked_string


@BOOK.wrong(
    lambda rng: ((t(np.sort(rng.uniform(200, 700, 5))), t(rng.uniform(0.2, 1, 5))), {}),
    "the width of the critical band depends on the lower tone: that term is missing",
    MISSING,
    r"critical band|bandwidth|lower (?:tone|frequency|partial)|constant|product rule|quotient rule",
    mends("0.0207"),
)
def roughness():
    @pb.autograd_function
    def roughness(ctx, partials, loudness):
        """Sethares' roughness of partials in Hz, summed over pairs."""
        f, a = partials.numpy(), loudness.numpy()
        i, j = np.triu_indices(len(f), 1)
        gap = np.abs(f[j] - f[i])
        s = 0.24 / (0.0207 * np.minimum(f[i], f[j]) + 18.96)
        near, far = np.exp(-3.51 * s * gap), np.exp(-5.75 * s * gap)
        ctx.save_for_backward(f=f, a=a, s=s, near=near, far=far)
        ctx.pairs = i, j
        return pb.asarray(np.array((a[i] * a[j] * (near - far)).sum()))

    @roughness.backward
    @pb.once_differentiable
    def _(ctx, g):
        v, (i, j) = ctx.saved_variables, ctx.pairs
        beat = g.item() * (v.near - v.far)
        by_gap = g.item() * v.a[i] * v.a[j] * v.s * (5.75 * v.far - 3.51 * v.near)
        by_gap = by_gap * np.sign(v.f[j] - v.f[i])
        grad_f, grad_a = np.zeros_like(v.f), np.zeros_like(v.a)
        np.add.at(grad_f, j, by_gap)
        np.add.at(grad_f, i, -by_gap)
        np.add.at(grad_a, i, beat * v.a[j])
        np.add.at(grad_a, j, beat * v.a[i])
        return {"partials": pb.asarray(grad_f), "loudness": pb.asarray(grad_a)}

    return roughness


def keyed(gate):
    def given(rng):
        return (t(0.11), t(0.23), t(0.6), t(0.35)), {"gate": gate, "n": 23}

    return given


@BOOK.wrong(
    keyed(0.7),
    "a key let go during attack or decay: the release starts elsewhere than at sustain, "
    "but its gradient is that of a release from the sustain level",
    r"let go|released? (?:early|before|during|from)|\bgate\b.{0,40}(?:attack|decay|short)",
    r"\bbranch|(?:with|for|when|where|at|if|unless|other) .{0,25}\bgate\b|\bstart(?:s|ing)? level",
    mends("ctx.gate < A", "ctx.gate < A + D", "gate < A + D", "level(ctx.gate"),
    where="gate shorter than attack and decay",
    shows=keyed(0.2),
)
def adsr_envelope():
    def held(time, A, D, S):
        falling = np.maximum(1 - (1 - S) * (time - A) / D, S)
        return np.where(time < A, time / A, falling)

    @pb.autograd_function
    def adsr_envelope(ctx, attack, decay, sustain, release, gate=0.5, n=16, rate=16.0):
        """Envelope of a note held for `gate` seconds; the release is linear."""
        A, D, S, R = (x.item() for x in (attack, decay, sustain, release))
        time = np.arange(n) / rate
        left = np.clip(1 - (time - gate) / R, 0.0, 1.0)
        out = np.where(time < gate, held(time, A, D, S), held(np.array(gate), A, D, S) * left)
        ctx.A, ctx.D, ctx.S, ctx.R, ctx.gate = A, D, S, R, gate
        ctx.time, ctx.left = time, left
        return pb.asarray(out)

    @adsr_envelope.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, time, A, D = g.numpy(), ctx.time, ctx.A, ctx.D
        on = time < ctx.gate
        up, down = on & (time < A), on & (time >= A) & (time < A + D)
        flat = on & (time >= A + D)
        fade = ~on & (ctx.left > 0)
        x = (time - A) / D
        slope = (1 - ctx.S) / D
        by_S = gn[down] @ x[down] + gn[flat].sum() + gn[fade] @ ctx.left[fade]
        return {
            "attack": -(gn[up] @ time[up]) / A**2 + slope * gn[down].sum(),
            "decay": slope * (gn[down] @ x[down]),
            "sustain": by_S,
            "release": ctx.S * (gn[fade] @ (time[fade] - ctx.gate)) / ctx.R**2,
        }

    return adsr_envelope


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(60, 140, 4)), t(rng.uniform(0.3, 2, 3))), {"bar": [2, 0, 3]}),
    "the tempo of a bar with several notes gets the last note's gradient only: repeated bars",
    REPEATED,
    r"\badd\.at\b|bincount|accumulat|several|assign|\+=",
    where="two notes in one bar",
    shows=lambda rng: (
        (t(rng.uniform(60, 140, 4)), t(rng.uniform(0.3, 2, 5))),
        {"bar": [2, 0, 2, 3, 0]},
    ),
)
def note_seconds():
    @pb.autograd_function
    def note_seconds(ctx, tempo, beats, bar):
        """Lengths of notes in seconds; tempo: (bars,) per minute, beats and bar: (notes,)."""
        bar = np.asarray(bar)
        spacing = 60.0 / tempo.numpy()
        ctx.save_for_backward(tempo=tempo, beats=beats)
        ctx.bar = bar
        return pb.asarray(beats.numpy() * spacing[bar])

    @note_seconds.backward
    @pb.once_differentiable
    def _(ctx, g):
        tempo, beats = (v.numpy() for v in ctx.saved_variables)
        grad_tempo = np.zeros_like(tempo)
        grad_tempo[ctx.bar] -= 60.0 * g.numpy() * beats / tempo[ctx.bar] ** 2
        return {
            "tempo": pb.asarray(grad_tempo),
            "beats": pb.asarray(g.numpy() * 60.0 / tempo[ctx.bar]),
        }

    return note_seconds


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.4, 0.6, 8)), t(0.62)), {}),
    "with an odd number of notes the last one has no partner, but gets no gradient",
    ODD,
    r"\blast\b|\bpair|partner|left ?over|\blengths?\b|\bremain",
    where="odd number of notes",
    shows=lambda rng: ((t(rng.uniform(0.4, 0.6, 7)), t(0.62)), {}),
)
def swing():
    def forward(ctx, durations, share):
        """Swing quavers: of each pair, the first takes `share`; a last single one stays."""
        d, s = durations.numpy(), share.item()
        half = len(d) // 2 * 2
        pair = d[:half:2] + d[1:half:2]
        out = d.copy()
        out[:half:2], out[1:half:2] = s * pair, (1 - s) * pair
        ctx.pair, ctx.share, ctx.half = pair, s, half
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        gn, s, half = g.numpy(), ctx.share, ctx.half
        first, second = gn[:half:2], gn[1:half:2]
        grad = np.zeros_like(gn)
        grad[:half] = np.repeat(s * first + (1 - s) * second, 2)
        return {"durations": pb.asarray(grad), "share": (first - second) @ ctx.pair}

    return pb.autograd_function(forward, backward, name="swing")


@BOOK.right(lambda rng: ((t(rng.normal(size=20)), t(2.3), t(0.7)), {"rate": 0.11}))
def vibrato():
    @pb.autograd_function
    def vibrato(ctx, samples, depth, phase, rate=0.1):
        """Read samples at a place that swings, between samples by a straight line."""
        x, n = samples.numpy(), len(samples)
        angle = 2 * np.pi * rate * np.arange(n) + phase.item()
        place = np.arange(n) + depth.item() * np.sin(angle)
        inside = (place >= 0) & (place <= n - 1)
        place = np.clip(place, 0, n - 1)
        k = np.minimum(place.astype(int), n - 2)
        w = place - k
        ctx.k, ctx.w, ctx.angle, ctx.depth = k, w, angle, depth.item()
        ctx.slope = (x[k + 1] - x[k]) * inside
        return pb.asarray((1 - w) * x[k] + w * x[k + 1])

    @vibrato.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        grad = np.bincount(ctx.k, gn * (1 - ctx.w), len(gn))
        grad += np.bincount(ctx.k + 1, gn * ctx.w, len(gn))
        moved = gn * ctx.slope
        return {
            "samples": pb.asarray(grad),
            "depth": moved @ np.sin(ctx.angle),
            "phase": ctx.depth * (moved @ np.cos(ctx.angle)),
        }

    return vibrato


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(6, 8)) * np.array([1, 0.8, 1e-3, 1.2, 0.9, 2e-3])[:, None]),),
        {},
    )
)
def programme_loudness():
    @pb.autograd_function
    def programme_loudness(ctx, blocks, gate=-30.0):
        """Loudness in dB of the blocks: (n, m) that are above the gate in dB."""
        x = blocks.numpy()
        power = (x**2).mean(axis=1)
        heard = 10 * np.log10(power) > gate
        if not heard.any():
            raise ValueError("no block is above the gate")
        total = power[heard].mean()
        ctx.x, ctx.heard, ctx.total = x, heard, total
        return pb.asarray(np.array(-0.691 + 10 * np.log10(total)))

    @programme_loudness.backward
    @pb.once_differentiable
    def _(ctx, g):
        scale = g.item() * 10 / np.log(10) / ctx.total / ctx.heard.sum()
        by_block = 2 * ctx.x / ctx.x.shape[1] * ctx.heard[:, None]
        return {"blocks": pb.asarray(scale * by_block)}

    return programme_loudness


@BOOK.right(
    lambda rng: ((t(2.1), t(4e-3), t(rng.uniform(0.2, 1, 4))), {"time": np.linspace(0, 1, 9)})
)
def stiff_string_tone():
    @pb.autograd_function
    def stiff_string_tone(ctx, pitch, inharmonicity, strengths, time):
        """Sum of partials at n * pitch * sqrt(1 + B n^2); strengths: (partials,)."""
        n = np.arange(1, len(strengths) + 1)
        stretch = np.sqrt(1 + inharmonicity.item() * n**2)
        angle = 2 * np.pi * pitch.item() * np.outer(time, n * stretch)
        ctx.save_for_backward(strengths=strengths, angle=angle, stretch=stretch, n=n)
        ctx.pitch = pitch.item()
        return pb.asarray(np.sin(angle) @ strengths.numpy())

    @stiff_string_tone.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        per_partial = gn @ (np.cos(s.angle) * s.angle) * s.strengths.numpy()
        return {
            "pitch": per_partial.sum() / ctx.pitch,
            "inharmonicity": per_partial @ (0.5 * s.n**2 / s.stretch**2),
            "strengths": pb.asarray(gn @ np.sin(s.angle)),
        }

    return stiff_string_tone


@BOOK.right(lambda rng: ((t(rng.uniform(0, 1, (2, 15))),), {"hertz": np.linspace(90, 900, 15)}))
def chroma():
    class Chroma(pb.Function):
        """Energy by pitch class, each frame of unit norm."""

        @staticmethod
        def forward(ctx, spectrum, hertz, tuning=440.0):
            classes = np.rint(12 * np.log2(hertz / tuning)).astype(int) % 12
            fold = np.zeros((len(hertz), 12))
            fold[np.arange(len(hertz)), classes] = 1.0
            energy = spectrum.numpy() ** 2 @ fold
            norm = np.linalg.norm(energy, axis=1, keepdims=True)
            norm = np.where(norm > 0, norm, 1.0)
            ctx.spectrum, ctx.fold, ctx.norm = spectrum, fold, norm
            ctx.unit = energy / norm
            return pb.asarray(ctx.unit.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            gn = g.numpy()
            along = (gn * ctx.unit).sum(axis=1, keepdims=True)
            by_energy = (gn - along * ctx.unit) / ctx.norm
            return pb.asarray(2 * ctx.spectrum.numpy() * (by_energy @ ctx.fold.T)), None, None

    return Chroma.apply


@BOOK.right(lambda rng: ((t(rng.uniform(50, 80, (2, 3))), t(440.0), t(rng.normal(size=3))), {}))
def note_frequency():
    @pb.autograd_function
    def note_frequency(ctx, note, concert_pitch, bend):
        """Frequencies of MIDI notes: (..., n), each bent by semitones: (n,)."""
        ctx.save_for_backward(note=note, concert_pitch=concert_pitch, bend=bend)
        return concert_pitch * ((note + bend - 69) * (np.log(2) / 12)).exp()

    @note_frequency.backward
    def _(ctx, g):
        note, concert, bend = ctx.saved_variables
        ratio = ((note + bend - 69) * (np.log(2) / 12)).exp()
        by_note = g * ratio * concert * (np.log(2) / 12)
        return {"note": by_note, "concert_pitch": (g * ratio).sum(), "bend": by_note.sum(dim=0)}

    return note_frequency


@BOOK.right(lambda rng: ((t(rng.normal(size=(2, 16))), t(0.6), t(0.5)), {"delay": 3}))
def schroeder_allpass():
    @pb.autograd_function
    def schroeder_allpass(ctx, dry, gain, mix, delay=5):
        """Allpass (-k + z^-D) / (1 - k z^-D) along the last axis, mixed with the dry sound."""
        x, k, m = dry.numpy(), gain.item(), mix.item()
        a = np.zeros(delay + 1)
        a[0], a[-1] = 1.0, -k
        wet = sps.lfilter(a[::-1], a, x, axis=-1)
        ctx.x, ctx.wet, ctx.a, ctx.k, ctx.m, ctx.delay = x, wet, a, k, m, delay
        return pb.asarray((1 - m) * x + m * wet)

    @schroeder_allpass.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, D = g.numpy(), ctx.delay
        to_wet = ctx.m * gn
        back = sps.lfilter(ctx.a[::-1], ctx.a, to_wet[..., ::-1], axis=-1)[..., ::-1]
        pole = sps.lfilter([1.0], ctx.a, to_wet[..., ::-1], axis=-1)[..., ::-1]
        late = np.zeros_like(ctx.wet)
        late[..., D:] = ctx.wet[..., :-D]
        return {
            "dry": pb.asarray((1 - ctx.m) * gn + back),
            "gain": (pole * (late - ctx.x)).sum(),
            "mix": (gn * (ctx.wet - ctx.x)).sum(),
        }

    return schroeder_allpass


@BOOK.right(lambda rng: ((t(np.array([3.0, 40.0, 64.5, 90.0, 126.0])), t(1.7), t(0.2)), {}))
def velocity_gain():
    @pb.autograd_function
    def velocity_gain(ctx, velocity, curve, floor, quiet=10, full=120):
        """Gain of a key's velocity, bent by a power, from the floor up to 1."""
        x = np.clip((velocity.numpy() - quiet) / (full - quiet), 0.0, 1.0)
        ctx.x, ctx.c, ctx.f, ctx.span = x, curve.item(), floor.item(), full - quiet
        return pb.asarray(ctx.f + (1 - ctx.f) * x**ctx.c)

    @velocity_gain.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, x, c = g.numpy(), ctx.x, ctx.c
        inner = (x > 0) & (x < 1)
        xs, gs = x[inner], gn[inner] * (1 - ctx.f)
        grad = np.zeros_like(gn)
        grad[inner] = gs * c * xs ** (c - 1) / ctx.span
        return {
            "velocity": pb.asarray(grad),
            "curve": (gs * xs**c * np.log(xs)).sum(),
            "floor": (gn * (1 - x**c)).sum(),
        }

    return velocity_gain


@BOOK.right(lambda rng: ((t(rng.normal(size=(5, 3))), t(rng.normal(size=(7, 3)))), {}))
def score_alignment():
    @pb.autograd_function
    def score_alignment(ctx, score, played):
        """Cost of the cheapest alignment of two sequences of features: (n, d), (m, d)."""
        apart = score.numpy()[:, None] - played.numpy()
        cost = (apart**2).sum(axis=2)
        n, m = cost.shape
        best = np.full((n + 1, m + 1), np.inf)
        best[0, 0] = 0.0
        for i in range(n):
            for j in range(m):
                best[i + 1, j + 1] = cost[i, j] + min(best[i, j], best[i, j + 1], best[i + 1, j])
        ctx.apart, ctx.best = apart, best
        return pb.asarray(np.array(best[n, m]))

    @score_alignment.backward
    @pb.once_differentiable
    def _(ctx, g):
        n, m = ctx.apart.shape[:2]
        grad = np.zeros_like(ctx.apart)
        i, j = n, m
        while i and j:
            grad[i - 1, j - 1] = 2 * g.item() * ctx.apart[i - 1, j - 1]
            steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
            i, j = min(steps, key=lambda ij: ctx.best[ij])
        return {"score": pb.asarray(grad.sum(axis=1)), "played": pb.asarray(-grad.sum(axis=0))}

    return score_alignment
