"""Hearing: thresholds, loudness, compression, hair cells, two ears, implants, noise exposure."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, SIGN, Book, mends, t

BOOK = Book("hearing")


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array([38.0, 52.5, 61.0, 74.0, 88.5, 97.0])),
            t(np.array(24.0)),
            t(np.array(55.0)),
            t(np.array(2.3)),
        ),
        {},
    ),
    "a larger ratio lowers the level: the gradient of the ratio has the wrong sign",
    SIGN,
    mends("-float((gn", "-(gn", "-gn * over", "= -float"),
)
def compressed_level():
    @pb.autograd_function
    def compressed_level(ctx, level, gain, knee, ratio, most=105.0):
        """Output of a hearing aid in dB SPL: linear below the knee, compressed above it, limited.

        level: any shape; gain, knee, ratio: (); most: where the output is limited.
        """
        L, CR = level.numpy(), ratio.item()
        over = np.maximum(L - knee.item(), 0.0)
        wanted = L + gain.item() - over * (1 - 1 / CR)
        ctx.save_for_backward(over=over, CR=CR, limited=wanted > most)
        return pb.asarray(np.minimum(wanted, most))

    @compressed_level.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        over, CR, limited = ctx.saved_variables
        gn = np.where(limited, 0.0, grad_output.numpy())
        above = over > 0
        return {
            "level": pb.asarray(np.where(above, gn / CR, gn)),
            "gain": float(gn.sum()),
            "knee": float(gn[above].sum() * (1 - 1 / CR)),
            "ratio": float((gn * over).sum() / CR**2),
        }

    return compressed_level


@BOOK.wrong(
    lambda rng: (
        (t(np.cumsum(rng.uniform(2, 6, 9)) + 40), t(np.array(0.6)), t(np.array(0.95))),
        {"start": 35.0},
    ),
    "backward takes the attack's coefficient for falling levels, which forward lets go by release",
    r"\bfall(?:s|ing)?\b|\bdecreas|(?:instead of|not) (?:the )?release|release'?s? (?:pole|coeff)",
    r"each other's|\bswap|\bbranch\b|\b(?:below|lower than|above) (?:the )?state",
    mends("ctx.rising[k]", "s.rising[k]", "ctx.pole[k]", "s.pole[k]", "poles[k]"),
    where="the level falls",
    shows=lambda rng: (
        (t(np.array([60, 72, 55, 48, 66, 50, 42.0])), t(np.array(0.6)), t(np.array(0.95))),
        {"start": 35.0},
    ),
)
def level_detector():
    @pb.autograd_function
    def level_detector(ctx, level, attack, release, start=0.0):
        """Smoothed level: a fast pole (attack) where it rises and a slow one (release)."""
        state, before, rising = start, [], []
        smooth = np.empty(len(level))
        for k, x in enumerate(level.numpy()):
            before.append(state)
            rising.append(bool(x > state))
            pole = attack.item() if rising[-1] else release.item()
            state = pole * state + (1 - pole) * x
            smooth[k] = state
        ctx.before, ctx.rising = np.array(before), np.array(rising, bool)
        ctx.save_for_backward(level=level, attack=attack.item())
        return pb.asarray(smooth)

    @level_detector.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, pole = grad_output.numpy(), ctx.saved_variables.attack
        total, carried = np.empty_like(gn), 0.0
        for k in reversed(range(len(gn))):
            total[k] = gn[k] + carried
            carried = pole * total[k]
        by_pole = total * (ctx.before - ctx.saved_variables.level.numpy())
        return {
            "level": pb.asarray((1 - pole) * total),
            "attack": float(by_pole[ctx.rising].sum()),
            "release": float(by_pole[~ctx.rising].sum()),
        }

    return level_detector


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(15, 45, 7)), t(np.array(31.0)), t(np.array(4.5))),
        {"guess": 0.25, "lapse": 0.02},
    ),
    "the curve's slope lacks the factor 1 - guess - lapse, the part that is not guessed or missed",
    FACTOR + r"|multipl|divided by",
    r"1 ?- ?(?:\w+\.)?guess|1 ?- ?(?:\w+\.)?lapse|\b0\.73\b|asymptot|\bspan\b",
    mends("ctx.span", "s.span", "(1 - guess - lapse)", "(1 - ctx.guess - ctx.lapse)"),
)
def detection_curve():
    @pb.autograd_function
    def detection_curve(ctx, level, threshold, spread, guess=0.5, lapse=0.01):
        z = (level.numpy() - threshold.item()) / spread.item()
        heard = special.expit(z)
        ctx.z, ctx.spread, ctx.bell = z, spread.item(), heard * (1 - heard)
        return pb.asarray(guess + (1 - guess - lapse) * heard)

    @detection_curve.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_z = g.numpy() * ctx.bell
        return {
            "level": pb.asarray(by_z / ctx.spread),
            "threshold": -float(by_z.sum()) / ctx.spread,
            "spread": -float((by_z * ctx.z).sum()) / ctx.spread,
        }

    return detection_curve


@BOOK.right(
    lambda rng: (
        (t(np.array([71.0, 84.5, 91.0, 99.0, 78.2])), t(np.array([2.0, 3.5, 1.2, 0.3, 1.0]))),
        {},
    )
)
def noise_dose():
    @pb.autograd_function
    def noise_dose(ctx, level, hours, criterion=85.0, exchange=3.0, threshold=80.0):
        """Dose of noise in percent, and the level that would give it in eight hours.

        level: (n,) in dB(A); those below the threshold do not count. hours: (n,).
        Where nothing counts, the second result is 0.
        """
        L = level.numpy()
        rate = np.where(threshold <= L, 100 / 8 * 2 ** ((L - criterion) / exchange), 0.0)
        dose = rate @ hours.numpy()
        average = criterion + exchange * np.log2(dose / 100) if dose > 0 else 0.0
        ctx.save_for_backward(rate=rate, hours=hours)
        ctx.dose, ctx.exchange = dose, exchange
        return pb.asarray(np.asarray(dose)), pb.asarray(np.asarray(average))

    @noise_dose.backward
    @pb.once_differentiable
    def _(ctx, g_dose, g_average):
        rate, hours = ctx.saved_variables
        flow = g_dose.item()
        if ctx.dose > 0:
            flow += g_average.item() * ctx.exchange / (np.log(2) * ctx.dose)
        by_level = flow * rate * hours.numpy() * np.log(2) / ctx.exchange
        return {"level": pb.asarray(by_level), "hours": pb.asarray(flow * rate)}

    return noise_dose


IMPORTANCE = np.array([0.0617, 0.1671, 0.2373, 0.2648, 0.2142, 0.0549])
EFFORT = {
    "normal": np.array([34.75, 34.27, 25.01, 17.32, 9.33, 1.13]),
    "raised": np.array([38.98, 40.15, 33.86, 25.32, 16.78, 5.07]),
}


@BOOK.right(
    lambda rng: (
        (
            t(np.array([52.0, 58.0, 47.0, 33.0, 24.0, 12.0]) + rng.uniform(-1, 1, 6)),
            t(np.array([40.0, 35.0, 41.0, 20.0, 55.0, 3.0]) + rng.uniform(-1, 1, 6)),
            t(np.array([5.0, 10.0, 15.0, 30.0, 45.0, 60.0]) + rng.uniform(-1, 1, 6)),
        ),
        {"effort": "raised"},
    )
)
def intelligibility_index():
    class IntelligibilityIndex(pb.Function):
        """Speech intelligibility index by octave bands from 250 Hz to 8 kHz.

        speech, noise: (..., 6), alike, spectrum levels in dB; thresholds: (6,) of the listener as
        internal noise. effort: "normal" or "raised", to which loud speech is compared.
        """

        @staticmethod
        def forward(ctx, speech, noise, thresholds, effort="normal"):
            E, N, T = speech.numpy(), noise.numpy(), thresholds.numpy()
            audible = (E - np.maximum(N, T) + 15) / 30
            clear = 1 - (E - EFFORT[effort] - 10) / 160
            ctx.between = (audible > 0) & (audible < 1)
            ctx.loud, ctx.masked = clear < 1, N > T
            ctx.audible, ctx.clear = np.clip(audible, 0, 1), np.minimum(clear, 1)
            return pb.asarray((IMPORTANCE * ctx.audible * ctx.clear).sum(axis=-1))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            flow = grad_output.numpy()[..., None] * IMPORTANCE
            by_audible = flow * ctx.clear * ctx.between / 30
            by_speech = by_audible - flow * ctx.audible * ctx.loud / 160
            by_threshold = np.where(ctx.masked, 0.0, -by_audible)
            return (
                pb.asarray(by_speech),
                pb.asarray(np.where(ctx.masked, -by_audible, 0.0)),
                pb.asarray(by_threshold.reshape(-1, 6).sum(axis=0)),
                None,
            )

    return IntelligibilityIndex.apply


@BOOK.right(
    lambda rng: ((t(np.array([0.0, 24.0, -71.0, 118.0, -163.0, 305.0])), t(np.array(8.75))), {})
)
def interaural_delay():
    @pb.autograd_function
    def interaural_delay(ctx, azimuth, radius, sound=0.0343):
        """Woodworth's delay in microseconds; azimuth in degrees, radius of the head in cm."""
        turn = (azimuth.numpy() + 180.0) % 360.0 - 180.0
        behind = np.abs(turn) > 90.0
        # a source behind the head counts as its mirror image in front
        side = np.radians(np.where(behind, np.copysign(180.0, turn) - turn, turn))
        path = side + np.sin(side)
        ctx.save_for_backward(side=side, path=path, behind=behind)
        ctx.radius, ctx.sound = radius.item(), sound
        return pb.asarray(radius.item() / sound * path)

    @interaural_delay.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        side, path, behind = ctx.saved_variables
        gn = grad_output.numpy() / ctx.sound
        by_side = gn * ctx.radius * (1 + np.cos(side)) * np.pi / 180
        return {
            "azimuth": pb.asarray(np.where(behind, -by_side, by_side)),
            "radius": float((gn * path).sum()),
        }

    return interaural_delay


@BOOK.right(
    lambda rng: ((t(60 * np.sin(np.arange(40) * 0.7) * rng.uniform(0.8, 1.2, 40)),), {"rate": 2e4})
)
def hair_cell():
    A, B, RELEASE = 5.0, 300.0, 2000.0
    MAKE, LOSS, RECOVER, REPROCESS = 5.05, 2500.0, 6580.0, 66.31

    def forward(ctx, displacement, rate=2e4, pool=1.0, firing=5e4):
        """Firing rate of a nerve fibre at an inner hair cell (Meddis 1986), by Euler steps.

        displacement: (n,) samples; rate: samples per second; pool: transmitter when full.
        The cell starts at rest.
        """
        s, dt = displacement.numpy(), 1 / rate
        open_ = np.where(s > -A, RELEASE * dt * (s + A) / np.where(s > -A, s + A + B, 1.0), 0.0)
        rest = RELEASE * A / (A + B)
        cleft = pool * MAKE * rest / (LOSS * rest + MAKE * (LOSS + RECOVER))
        free, store = cleft * (LOSS + RECOVER) / rest, cleft * RECOVER / REPROCESS
        levels, filling, out = [], [], np.empty_like(s)
        for i, k in enumerate(open_):
            levels.append(free)
            filling.append(free < pool)
            gone, back = k * free, REPROCESS * dt * store
            free = free + MAKE * dt * max(pool - free, 0.0) - gone + back
            store = store + RECOVER * dt * cleft - back
            cleft = cleft + gone - (LOSS + RECOVER) * dt * cleft
            out[i] = firing * cleft
        ctx.save_for_backward(s=s, open_=open_, levels=np.array(levels))
        ctx.filling, ctx.dt, ctx.firing = filling, dt, firing
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, open_, levels = ctx.saved_variables
        gn, dt = grad_output.numpy(), ctx.dt
        to_free = to_cleft = to_store = 0.0
        by_open = np.empty_like(gn)
        for i in reversed(range(len(gn))):
            to_cleft += ctx.firing * gn[i]
            pull = to_cleft - to_free
            by_open[i] = pull * levels[i]
            to_cleft = to_cleft * (1 - (LOSS + RECOVER) * dt) + to_store * RECOVER * dt
            to_store = to_store + (to_free - to_store) * REPROCESS * dt
            to_free = to_free * (1 - MAKE * dt * ctx.filling[i]) + pull * open_[i]
        steep = RELEASE * dt * B / np.where(s > -A, s + A + B, np.inf) ** 2
        return {"displacement": pb.asarray(by_open * steep)}

    return pb.autograd_function(forward, backward, name="hair_cell")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.4, -1.7, 9.0, -140.0, 2.2, 31.0])),
            t(np.array(4.0)),
            t(np.array(9.0)),
            t(np.array(0.25)),
        ),
        {},
    )
)
def broken_stick():
    @pb.autograd_function
    def broken_stick(ctx, x, a, b, c):
        """sign(x) * min(a |x|, b |x|**c), the basilar membrane's compression; 0 < c < 1."""
        size = np.abs(x.numpy())
        linear, compressed = a.item() * size, b.item() * size ** c.item()
        if not 0 < c.item() < 1:
            raise ValueError("c lies between 0 and 1")
        ctx.low = linear <= compressed
        ctx.save_for_backward(x=x.numpy(), compressed=compressed)
        ctx.ac = a.item(), c.item()
        return pb.asarray(np.sign(x.numpy()) * np.where(ctx.low, linear, compressed))

    @broken_stick.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x, compressed = ctx.saved_variables
        gn, low, (a, c) = grad_output.numpy(), ctx.low, ctx.ac
        size = np.where(low, 1.0, np.abs(x))
        up = np.where(low, 0.0, gn * np.sign(x))
        return {
            "x": pb.asarray(np.where(low, gn * a, gn * c * compressed / size)),
            "a": float((gn * x * low).sum()),
            "b": float((up * size**c).sum()),
            "c": float((up * compressed * np.log(size)).sum()),
        }

    return broken_stick


@BOOK.right(lambda rng: ((t(np.array([[-3.0, 12.0, 39.0], [41.5, 66.0, 103.0]])),), {}))
def loudness_sones():
    @pb.autograd_function
    def loudness_sones(ctx, phons):
        P = phons.numpy()
        heard = np.clip(P, 0.0, 40.0)
        loud = P >= 40
        sones = np.where(loud, 2.0 ** ((P - 40) / 10), (heard / 40) ** 2.642)
        slope = np.where(loud, sones * np.log(2) / 10, 2.642 / 40 * (heard / 40) ** 1.642)
        ctx.slope = slope
        return pb.asarray(sones)

    @loudness_sones.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"phons": pb.asarray(grad_output.numpy() * ctx.slope)}

    return loudness_sones


PRESBYCUSIS = {
    "male": {500: 0.0035, 1000: 0.0040, 2000: 0.0070, 4000: 0.0160, 8000: 0.0220},
    "female": {500: 0.0035, 1000: 0.0040, 2000: 0.0060, 4000: 0.0090, 8000: 0.0150},
}


@BOOK.right(
    lambda rng: (
        (t(np.array([14.0, 25.0, 48.0, 67.5, 81.0])), t(rng.uniform(-5, 8, 5))),
        {"sex": "female", "frequency": 8000, "quantile": 0.9},
    )
)
def age_threshold():
    @pb.autograd_function
    def age_threshold(ctx, age, baseline=None, sex="male", frequency=4000, quantile=0.5):
        """Hearing threshold in dB of a quantile of people of an age, after ISO 7029.

        baseline: thresholds at 18, None for 0; quantile: 0.9 is worse than 90 % of people.
        """
        alpha, z = PRESBYCUSIS[sex][frequency], special.ndtri(quantile)
        wider = 1 + z * (0.445 if z >= 0 else 0.356)
        years = np.maximum(age.numpy() - 18, 0.0)
        ctx.slope = 2 * alpha * wider * years
        ctx.based = baseline is not None
        threshold = alpha * wider * years**2 + 6.0 * z
        return pb.asarray(threshold + (baseline.numpy() if ctx.based else 0.0))

    @age_threshold.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_age = pb.asarray(grad_output.numpy() * ctx.slope)
        return {"age": by_age, "baseline": grad_output if ctx.based else None}

    return age_threshold


@BOOK.right(
    lambda rng: (
        (t(np.array([0.62, 0.91, 1.0, 0.47, 0.995])), t(np.array([0.21, 0.0, 0.08, 0.4, 0.33]))),
        {"signals": 50, "blanks": 40},
    )
)
def detectability():
    @pb.autograd_function
    def detectability(ctx, hits, alarms, signals=100, blanks=100):
        # rates of 0 and 1 are moved by half a trial
        def score(rate, trials):
            least = 0.5 / trials
            z = special.ndtri(np.clip(rate, least, 1 - least))
            inside = (rate > least) & (rate < 1 - least)
            return z, np.where(inside, np.sqrt(2 * np.pi) * np.exp(z**2 / 2), 0.0)

        z_hits, ctx.slope_hits = score(hits.numpy(), signals)
        z_alarms, ctx.slope_alarms = score(alarms.numpy(), blanks)
        return pb.asarray(z_hits - z_alarms), pb.asarray(-(z_hits + z_alarms) / 2)

    @detectability.backward
    @pb.once_differentiable
    def _(ctx, g_d, g_criterion):
        gd, gc = g_d.numpy(), g_criterion.numpy() / 2
        return {
            "hits": pb.asarray((gd - gc) * ctx.slope_hits),
            "alarms": pb.asarray(-(gd + gc) * ctx.slope_alarms),
        }

    return detectability


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 0.03, 24)), t(rng.normal(0, 0.02, 24))),
        {"most": 6},
    )
)
def interaural_coherence():
    @pb.autograd_function
    def interaural_coherence(ctx, left, right, most=20):
        """Largest normalised correlation of the ears' signals (n,) over lags up to `most`
        samples, and its lag: positive where the right ear's signal is late. 0 in silence."""
        a, b = left.numpy(), right.numpy()
        n, most = len(a), min(most, len(a) - 1)
        power = np.sqrt((a @ a) * (b @ b))
        lags = range(-most, most + 1)
        inner = [a[max(0, -k) : n - max(0, k)] @ b[max(0, k) : n + min(0, k)] for k in lags]
        lag = int(np.argmax(inner)) - most
        ctx.save_for_backward(a=a, b=b)
        ctx.lag, ctx.power = lag, power
        ctx.value = inner[lag + most] / power if power > 0 else 0.0
        return pb.asarray(np.asarray(ctx.value)), pb.asarray(np.asarray(lag))

    @interaural_coherence.backward
    @pb.once_differentiable
    def _(ctx, g_value, g_lag):
        a, b = ctx.saved_variables
        if ctx.power == 0:
            return {"left": pb.asarray(0 * a), "right": pb.asarray(0 * b)}
        n, k, g = len(a), ctx.lag, g_value.item()
        early, late = slice(max(0, -k), n - max(0, k)), slice(max(0, k), n + min(0, k))
        by_a, by_b = -ctx.value * a / (a @ a), -ctx.value * b / (b @ b)
        by_a[early] += b[late] / ctx.power
        by_b[late] += a[early] / ctx.power
        return {"left": pb.asarray(g * by_a), "right": pb.asarray(g * by_b)}

    return interaural_coherence


@BOOK.right(
    lambda rng: (
        (
            t(
                np.array(
                    [
                        [10, 15, 25, 40, 55, 60],
                        [45, 60, 70, 85, 90, 95],
                        [5, 5, 10, 20, 25, 35],
                    ]
                )
                + rng.uniform(-2, 2, (3, 6))
            ),
        ),
        {"most": 50.0},
    )
)
def prescribed_gain():
    BAND = np.array([-17.0, -8.0, 1.0, -1.0, -2.0, -2.0])

    @pb.autograd_function
    def prescribed_gain(ctx, thresholds, most=None):
        """Insertion gain in dB by NAL-RP.

        thresholds: (ears, 6) in dB HL at 250, 500, 1000, 2000, 3000 and 4000 Hz; three of them
        count together, and more so from 180 dB on. Gains are not negative, nor above `most`.
        """
        T = thresholds.numpy()
        three = T[:, 1:4].sum(axis=1, keepdims=True)
        shared = 0.05 * three + 0.066 * np.maximum(three - 180, 0.0)
        gain = shared + 0.31 * T + BAND
        ctx.free = gain > 0 if most is None else (gain > 0) & (gain < most)
        ctx.shared_slope = np.where(three > 180, 0.116, 0.05)
        return pb.asarray(np.clip(gain, 0.0, most))

    @prescribed_gain.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = np.where(ctx.free, grad_output.numpy(), 0.0)
        grad = 0.31 * flow
        grad[:, 1:4] += flow.sum(axis=1, keepdims=True) * ctx.shared_slope
        return {"thresholds": pb.asarray(grad)}

    return prescribed_gain


@BOOK.right(
    lambda rng: (
        (
            t(rng.permutation(np.linspace(0.005, 0.72, 21)).reshape(3, 7)),
            t(rng.uniform(90, 120, 7)),
            t(rng.uniform(150, 200, 7)),
        ),
        {"maxima": 4},
    )
)
def implant_currents():
    def forward(ctx, envelopes, low, high, maxima=8, base=4 / 256, full=150 / 256, steep=416.0):
        """Current levels of a cochlear implant that stimulates the strongest channels.

        Parameters
        ----------
        envelopes : (frames, channels)
        low, high : (channels,) levels of threshold and of comfort
        maxima : channels stimulated in a frame; weaker ones, and all below base, get 0
        base, full : envelopes at threshold and at comfort
        steep : of the logarithmic growth
        """
        v = envelopes.numpy()
        chosen = np.zeros(v.shape, bool)
        strongest = np.argsort(-v, axis=1, kind="stable")[:, :maxima]
        np.put_along_axis(chosen, strongest, True, axis=1)
        on = chosen & (v >= base)
        part = np.clip((v - base) / (full - base), 0.0, 1.0)
        growth = np.log1p(steep * part) / np.log1p(steep)
        slope = steep / (1 + steep * part) / np.log1p(steep) / (full - base)
        ctx.save_for_backward(on=on, growth=growth, slope=np.where(on & (v < full), slope, 0.0))
        ctx.width = high.numpy() - low.numpy()
        return pb.asarray(np.where(on, low.numpy() + ctx.width * growth, 0.0))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        on, growth, slope = ctx.saved_variables
        gn = grad_output.numpy() * on
        return {
            "envelopes": pb.asarray(gn * ctx.width * slope),
            "low": pb.asarray((gn * (1 - growth)).sum(axis=0)),
            "high": pb.asarray((gn * growth).sum(axis=0)),
        }

    return pb.autograd_function(forward, backward, name="implant_currents")


@BOOK.right(
    lambda rng: (
        (t(np.array(310.0)), t(np.array(21.0)), t(np.array(1500.0))),
        {"frequency": np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])},
    )
)
def ear_absorbance():
    @pb.autograd_function
    def ear_absorbance(ctx, resistance, mass, stiffness, frequency, canal=94.0):
        # acoustic ohms (cgs); frequency in kHz, so mass and stiffness are per rad/ms
        w = 2 * np.pi * frequency
        drum = resistance.item() + 1j * (w * mass.item() - stiffness.item() / w)
        reflected = (drum - canal) / (drum + canal)
        ctx.save_for_backward(w=w, reflected=reflected, drum=drum)
        ctx.canal = canal
        return pb.asarray(1 - np.abs(reflected) ** 2)

    @ear_absorbance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        w, reflected, drum = ctx.saved_variables
        slope = 2 * ctx.canal / (drum + ctx.canal) ** 2
        flow = -2 * grad_output.numpy() * np.conj(reflected) * slope
        return {
            "resistance": float(flow.real.sum()),
            "mass": -float(flow.imag @ w),
            "stiffness": float((flow.imag / w).sum()),
        }

    return ear_absorbance
