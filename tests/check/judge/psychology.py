"""Psychology: thresholds, detection, learning, choice, response times, memory, categories."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, IGNORED, Book, at, mends, t

BOOK = Book("psychology")


@BOOK.wrong(
    lambda rng: (
        (t(np.array(0.2)), t(np.array(1.7)), t(np.array(0.25)), t(np.array(0.04))),
        {"contrast": np.linspace(-1.5, 2, 7)},
    ),
    "the logistic derivative is taken of the whole curve and not of its core without guesses",
    r"logistic derivative|\bcore\b|\bwhole\b|without (?:guess|laps)|sigmoid|p \* \(1 - p\)",
    FACTOR,
    r"chain rule|derivative of the (?:logistic|sigmoid)",
    mends("s.core * (1 - s.core)", "core * (1 - core)", "(1 - s.core)"),
)
def psychometric_curve():
    @pb.autograd_function
    def psychometric_curve(ctx, threshold, slope, guess, lapse, contrast):
        """Chance of a right answer by (log) contrast."""
        gamma, lam = guess.item(), lapse.item()
        core = special.expit(slope.item() * (contrast - threshold.item()))
        p = gamma + (1 - gamma - lam) * core
        ctx.save_for_backward(core=core, p=p, x=contrast - threshold.item(), b=slope.item())
        ctx.range = 1 - gamma - lam
        return pb.asarray(p.copy())

    @psychometric_curve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_core = gn * ctx.range * s.p * (1 - s.p)
        return {
            "threshold": -s.b * to_core.sum(),
            "slope": to_core @ s.x,
            "guess": gn @ (1 - s.core),
            "lapse": -(gn @ s.core),
        }

    return psychometric_curve


def lessons(rewards):
    return (t(np.array(0.3)), t(np.array(0.15)), t(np.array(0.1))), {"rewards": np.array(rewards)}


@BOOK.wrong(
    lambda rng: lessons([1.0, 1.0, 1.4, 1.5, 2.0]),
    "after a disappointment backward goes on with the rate for gains, not that for losses",
    r"negative (?:prediction )?(?:error|surprise|value)|disappoint|\bboth rates\b|\bbranch",
    r"\bsign of the (?:error|surprise)|rate for (?:gains|losses)|wrong rate|below the expect",
    r"other rate|gain.{0,30}instead",
    mends("s.rates[k]", "ctx.rates[k]", "1 - rates[k]", "(1 - rate)", "ctx.down if", "else ctx.up"),
    where="a reward is below what was expected",
    shows=lambda rng: lessons([1.0, 0.0, 1.0, 0.2, -0.5]),
)
def rescorla_wagner():
    class RescorlaWagner(pb.Function):
        """Expectations after each reward, learned faster or slower from losses than from gains."""

        @staticmethod
        def forward(ctx, up, down, start, rewards):
            value, values, errors = start.item(), [], []
            for reward in rewards:
                error = reward - value
                value += (up.item() if error > 0 else down.item()) * error
                errors.append(error)
                values.append(value)
            ctx.errors, ctx.up, ctx.down = errors, up.item(), down.item()
            return pb.asarray(np.array(values))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn = grad_output.numpy()
            by_up = by_down = carried = 0.0
            for k in reversed(range(len(gn))):
                carried += gn[k]
                if ctx.errors[k] > 0:
                    by_up += carried * ctx.errors[k]
                else:
                    by_down += carried * ctx.errors[k]
                carried *= 1 - ctx.up
            return by_up, by_down, carried, None

    return RescorlaWagner.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.3, 1.5, 4)), t(rng.uniform(0.6, 1.4, 4)), t(np.array(0.3))), {}),
    "drift ignores the incoming gradient of the mean time, its second output",
    IGNORED,
    r"(?:second|other|both|one) (?:of the )?outputs?\b|output 1\b|mean time|times? (?:is|are) left",
    r"through the (?:second|mean|time)|\bsum of both\b|g_time|only the (?:first|accuracy)",
    mends(
        "gp * s.a + gt",
        "s.a + gt",
        "gt * by_v",
        "+ g_time",
    ),
)
def diffusion_summary():
    def forward(ctx, drift, bound, delay):
        """Chance of the right answer and mean time of a diffusion from the middle."""
        v, a = drift.numpy(), bound.numpy()
        if (np.abs(v) < 1e-6).any():
            raise ValueError("a drift is too near zero")
        p = special.expit(2 * v * a)
        tanh = np.tanh(v * a)
        ctx.save_for_backward(v=v, a=a, p=p, tanh=tanh)
        return pb.asarray(p.copy()), pb.asarray(delay.item() + a / v * tanh)

    @pb.once_differentiable
    def backward(ctx, g_accuracy, g_time):
        s = ctx.saved_variables
        gp = g_accuracy.numpy() * 2 * s.p * (1 - s.p)
        gt = g_time.numpy()
        by_a = gp * s.v + gt * (s.tanh / s.v + s.a * (1 - s.tanh**2))
        return {
            "drift": pb.asarray(gp * s.a),
            "bound": pb.asarray(by_a),
            "delay": gt.sum(),
        }

    return pb.autograd_function(forward, backward, name="diffusion_summary")


def bandit(rng):
    return t(rng.normal(size=(5, 3))), t(np.array(2.2)), np.array([0, 2, 2, 1, 0])


@BOOK.wrong(
    lambda rng: (bandit(rng), {}),
    "the part of the choices that comes from lapses is not taken off in the gradients",
    at("lapse"),
    FACTOR,
    r"\blapses? .{0,30}(?:ignored|not used|left out|forgot)|1 - (?:ctx\.)?lapse|\bmixture\b",
    r"responsib|random choices?|chain rule|\blog\b|from lapses|taken off",
    mends("(1 - ctx.lapse)", "ctx.attentive", "/ ctx.p", "s.p / ", "ctx.share"),
    where="lapse is not 0",
    shows=lambda rng: (bandit(rng), {"lapse": 0.1}),
)
def bandit_nll():
    @pb.autograd_function
    def bandit_nll(ctx, values, inverse_temperature, choices, lapse=0.0):
        """Negative log likelihood of choices; values: (trials, options)."""
        q, beta = values.numpy(), inverse_temperature.item()
        soft = special.softmax(beta * q, axis=1)
        rows = np.arange(len(q))
        p = (1 - lapse) * soft[rows, choices] + lapse / q.shape[1]
        residual = soft.copy()
        residual[rows, choices] -= 1
        ctx.save_for_backward(q=q, beta=beta, residual=residual)
        return pb.asarray(np.asarray(-np.log(p).sum()))

    @bandit_nll.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_logits = grad_output.item() * s.residual
        return {
            "values": pb.asarray(by_logits * s.beta),
            "inverse_temperature": (by_logits * s.q).sum(),
        }

    return bandit_nll


def similarities(rng, skew):
    both = rng.uniform(0.5, 2.0, (5, 5))
    return (t(rng.normal(size=(5, 2))), both + both.T + skew * np.triu(both)), {}


@BOOK.wrong(
    lambda rng: similarities(rng, 0.0),
    "the pulls of j on i are doubled as if the judged distances were symmetric",
    r"symmetr|\bboth (?:directions|orders|triangles)|doubled|column(?:s|\b)|\.T\b|transpos",
    mends("pull + pull.T", "gap + gap.T", "pull.T", "pull - pull.swapaxes", "- pull.sum(axis=0)"),
    where="the judged distances are not symmetric",
    shows=lambda rng: similarities(rng, 0.8),
)
def scaling_stress():
    @pb.autograd_function
    def scaling_stress(ctx, positions, judged):
        """Raw stress of points: (n, 2) beside judged distances: (n, n), each pair both ways."""
        X = positions.numpy()
        apart = X[:, None] - X
        distance = np.sqrt((apart**2).sum(axis=-1))
        gap = distance - judged
        np.fill_diagonal(gap, 0.0)
        ctx.save_for_backward(apart, distance, gap)
        return pb.asarray(np.asarray((gap**2).sum()))

    @scaling_stress.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        apart, distance, gap = ctx.saved_variables
        np.fill_diagonal(distance, 1.0)
        pull = 4 * (gap / distance)[:, :, None] * apart
        return pb.asarray(grad_output.item() * pull.sum(axis=1)), None

    return scaling_stress


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(12, 28, 4)), t(rng.uniform(3, 14, 4))), {"trials": 30}),
    "the density multiplies where it should divide: the normal quantile is an inverse function",
    r"\bdivid|invers|reciprocal|1 ?/|\bquantile",
    FACTOR,
    mends("/ density(", "/ s.density", "gn / ", "g / pdf", "np.exp(s.z_hit ** 2 / 2)", "/ pdf"),
)
def sensitivity_index():
    @pb.autograd_function
    def sensitivity_index(ctx, hits, false_alarms, trials=40):
        """d' and criterion of observers, with the log-linear correction for rates of 0 and 1."""
        z_hit = special.ndtri((hits.numpy() + 0.5) / (trials + 1))
        z_false = special.ndtri((false_alarms.numpy() + 0.5) / (trials + 1))
        ctx.save_for_backward(z_hit=z_hit, z_false=z_false)
        ctx.trials = trials
        return pb.asarray(z_hit - z_false), pb.asarray(-(z_hit + z_false) / 2)

    @sensitivity_index.backward
    @pb.once_differentiable
    def _(ctx, g_sensitivity, g_criterion):
        def pdf(z):
            return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

        s = ctx.saved_variables
        gd, gc = g_sensitivity.numpy(), g_criterion.numpy()
        by_hits = (gd - gc / 2) * pdf(s.z_hit) / (ctx.trials + 1)
        by_false = (-gd - gc / 2) * pdf(s.z_false) / (ctx.trials + 1)
        return {"hits": pb.asarray(by_hits), "false_alarms": pb.asarray(by_false)}

    return sensitivity_index


@BOOK.right(
    lambda rng: (
        (t(np.array(0.9)), t(np.array(0.7)), t(np.array(0.3))),
        {"delay": np.array([0.0, 1.0, 6.0, 24.0, 72.0])},
    )
)
def forgetting_curve():
    @pb.autograd_function
    def forgetting_curve(ctx, strength, rate, decay, delay):
        """Memory left after delays in hours: strength * (1 + rate * delay) ** -decay."""
        base = 1 + rate.item() * delay
        kept = base ** -decay.item()
        ctx.save_for_backward(base=base, kept=kept, delay=delay)
        ctx.strength, ctx.decay = strength.item(), decay.item()
        return pb.asarray(ctx.strength * kept)

    @forgetting_curve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        flow = ctx.strength * gn * s.kept
        return {
            "strength": gn @ s.kept,
            "rate": -ctx.decay * (flow @ (s.delay / s.base)),
            "decay": -(flow @ np.log(s.base)),
        }

    return forgetting_curve


@BOOK.right(
    lambda rng: (
        (t(np.array([5.0, -3.0, 0.8, -12.0, 7.0])), t(np.array(0.88)), t(np.array(2.25))),
        {},
    )
)
def prospect_values():
    @pb.autograd_function
    def prospect_values(ctx, outcomes, curvature, aversion):
        """Felt values of gains and losses (prospect theory)."""
        x, a, lam = outcomes.numpy(), curvature.item(), aversion.item()
        size = np.abs(x)
        felt = np.zeros_like(x)
        some = size > 0
        felt[some] = size[some] ** a
        weight = np.where(x < 0, -lam, 1.0)
        ctx.save_for_backward(x=x, size=size, felt=felt, weight=weight)
        ctx.a, ctx.some = a, some
        return pb.asarray(weight * felt)

    @prospect_values.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        safe = np.where(ctx.some, s.size, 1.0)
        by_x = gn * np.abs(s.weight) * ctx.a * s.felt / safe
        by_a = (gn * s.weight * s.felt * np.log(safe)).sum()
        return pb.asarray(by_x), by_a, -(gn * s.felt)[s.x < 0].sum()

    return prospect_values


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=5)),),
        {"pairs": np.array([[0, 1], [0, 2], [3, 0], [3, 4], [4, 0]]), "wins": [7, 2, 5, 9, 1]},
    )
)
def thurstone_nll():
    def forward(ctx, scale, pairs, wins, of=10):
        """Negative log likelihood of paired comparisons (case V); wins: of the first, of `of`."""
        won = np.asarray(wins, float)
        z = (scale.numpy()[pairs[:, 0]] - scale.numpy()[pairs[:, 1]]) / np.sqrt(2)
        up, down = special.log_ndtr(z), special.log_ndtr(-z)
        log_pdf = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        ctx.by_z = (of - won) * np.exp(log_pdf - down) - won * np.exp(log_pdf - up)
        ctx.pairs, ctx.n = pairs, len(scale)
        return pb.asarray(np.asarray(-(won * up + (of - won) * down).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        flow = g.item() * ctx.by_z / np.sqrt(2)
        grad = np.zeros(ctx.n)
        np.add.at(grad, ctx.pairs[:, 0], flow)
        np.subtract.at(grad, ctx.pairs[:, 1], flow)
        return pb.asarray(grad), None, None, None

    return pb.autograd_function(forward, backward, name="thurstone_nll")


@BOOK.right(
    lambda rng: (
        (t(np.array(-3.0)), t(np.array(0.05))),
        {
            "sooner": np.array([20.0, 35.0, 50.0, 10.0]),
            "later": np.array([40.0, 60.0, 55.0, 80.0]),
            "wait": np.array([7.0, 30.0, 90.0, 14.0]),
            "waited": np.array([True, True, False, True]),
        },
    )
)
def discounting_nll():
    @pb.autograd_function
    def discounting_nll(ctx, log_k, sharpness, sooner, later, wait, waited):
        """Negative log likelihood of choices between money now and more money later."""
        k, m = np.exp(log_k.item()), sharpness.item()
        worth = later / (1 + k * wait)
        sign = np.where(waited, 1.0, -1.0)
        margin = sign * (worth - sooner)
        ctx.save_for_backward(margin=margin, miss=special.expit(-m * margin), m=m)
        ctx.by_log_k = -sign * worth * k * wait / (1 + k * wait)
        return pb.asarray(np.asarray(np.logaddexp(0, -m * margin).sum()))

    @discounting_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        margin, miss, m = ctx.saved_variables
        flow = -g.item() * miss
        return {"log_k": m * (flow @ ctx.by_log_k), "sharpness": flow @ margin}

    return discounting_nll


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(3, 2))), t(np.array([0.8, 0.4])), t(np.array(1.3))),
        {"exemplars": rng.normal(size=(6, 2)), "labels": np.array([0, 1, 1, 0, 2, 1])},
    )
)
def exemplar_categories():
    class ExemplarCategories(pb.Function):
        """Chances of categories by similarity to exemplars, in the city-block metric."""

        @staticmethod
        def forward(ctx, probe, attention, sensitivity, exemplars, labels):
            gap = probe.numpy()[:, None] - exemplars
            distance = np.abs(gap) @ attention.numpy()
            similar = np.exp(-sensitivity.item() * distance)
            belongs = np.eye(labels.max() + 1)[labels]
            total = similar.sum(axis=1, keepdims=True)
            p = similar @ belongs / total
            ctx.save_for_backward(gap=gap, distance=distance, share=similar / total, p=p)
            ctx.belongs, ctx.w, ctx.c = belongs, attention.numpy(), sensitivity.item()
            return pb.asarray(p.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s, gn = ctx.saved_variables, g.numpy()
            centred = gn @ ctx.belongs.T - (gn * s.p).sum(axis=1, keepdims=True)
            to_log = s.share * centred
            to_distance = -ctx.c * to_log
            by_probe = np.einsum("pe,ped->pd", to_distance, np.sign(s.gap)) * ctx.w
            by_w = np.einsum("pe,ped->d", to_distance, np.abs(s.gap))
            by_c = -(to_log * s.distance).sum()
            return pb.asarray(by_probe), pb.asarray(by_w), by_c, None, None

    return ExemplarCategories.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(-0.5, 0.2, 3)), t(np.array(0.4)), t(np.array(0.15))),
        {"times": np.array([0.6, 0.9, 0.45, 1.2]), "winners": np.array([1, 1, 0, 2])},
    )
)
def lognormal_race_nll():
    @pb.autograd_function
    def lognormal_race_nll(ctx, means, spread, delay, times, winners):
        """Negative log likelihood of a race: the winner ends at its time, the others later."""
        left = times - delay.item()
        if (left <= 0).any():
            raise ValueError("a time is shorter than the delay")
        s = spread.item()
        z = (np.log(left)[:, None] - means.numpy()) / s
        won = np.arange(len(means)) == winners[:, None]
        density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log(s * left)[:, None]
        survival = special.log_ndtr(-z)
        hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - survival)
        ctx.by_z = np.where(won, z, hazard)
        ctx.save_for_backward(z=z, left=left, s=s)
        return pb.asarray(np.asarray(-np.where(won, density, survival).sum()))

    @lognormal_race_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        z, left, s = ctx.saved_variables
        by_z = g.item() * ctx.by_z
        by_left = (by_z.sum(axis=1) / s + g.item()) / left
        by_spread = g.item() * len(left) / s - (by_z * z).sum() / s
        return pb.asarray(-by_z.sum(axis=0) / s), by_spread, -by_left.sum(), None, None

    return lognormal_race_nll


@BOOK.right(
    lambda rng: (
        (t(np.array(0.2)), t(np.array(0.15))),
        {"chances": np.array([[0.5, 0.25, 0.25, 0.0], [0.7, 0.1, 0.1, 0.1], [1.0, 0, 0, 0]])},
    )
)
def hick_hyman_times():
    @pb.autograd_function
    def hick_hyman_times(ctx, base, per_bit, chances):
        """Mean response times by the information in bits of what may be shown."""
        ctx.bits = special.entr(chances).sum(axis=-1) / np.log(2)
        return base + per_bit * pb.asarray(ctx.bits)

    @hick_hyman_times.backward
    def _(ctx, g):
        return {"base": g.sum(), "per_bit": (g * pb.asarray(ctx.bits)).sum()}

    return hick_hyman_times


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 4, 6)), t(rng.uniform(0.6, 2.0, 3)), t(rng.uniform(0.3, 0.6, 3))),
        {"observer": np.array([0, 1, 1, 2, 0, 1])},
    )
)
def loudness_judgements():
    @pb.autograd_function
    def loudness_judgements(ctx, intensity, scale, exponent, observer):
        """Log magnitudes by Stevens' power law; each observer has a scale and an exponent."""
        log_i = np.log(intensity.numpy())
        k, b = scale.numpy()[observer], exponent.numpy()[observer]
        ctx.save_for_backward(log_i=log_i, I=intensity.numpy(), k=k, b=b)
        ctx.observer, ctx.count = observer, len(scale)
        return pb.asarray(np.log(k) + b * log_i)

    @loudness_judgements.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        pooled = [
            np.bincount(ctx.observer, weights=part, minlength=ctx.count)
            for part in (gn / s.k, gn * s.log_i)
        ]
        return {
            "intensity": pb.asarray(gn * s.b / s.I),
            "scale": pb.asarray(pooled[0]),
            "exponent": pb.asarray(pooled[1]),
        }

    return loudness_judgements
