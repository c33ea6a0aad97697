"""Education: item response models, knowledge tracing, memory, equating and marking."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

import pullback as pb

from .entries import FACTOR, IGNORED, REPEATED, SWAPPED, Book, at, mends, t

BOOK = Book("education")


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=4)), t(rng.uniform(0.6, 1.8, 3)), t(rng.normal(size=3))),
        {"guessing": np.array([0.2, 0.25, 0.0])},
    ),
    "the gradient of the difficulties lacks the factor metric",
    at("metric"),
    FACTOR + r"|multipl|divided by",
    r"1\.7(?:0[0-9]*)?\b|\bmetric.{0,30}(?:missing|left out|ignored|forgot)",
    mends(
        "-(by_logit * ctx.metric",
        "s.slope * ctx.metric",
        "-by_logit * ctx.metric",
        "-ctx.metric * ",
    ),
    where="metric is not 1",
    shows=lambda rng: (
        (t(rng.normal(size=4)), t(rng.uniform(0.6, 1.8, 3)), t(rng.normal(size=3))),
        {"metric": 1.702},
    ),
)
def chance_of_success():
    @pb.autograd_function
    def chance_of_success(ctx, ability, slope, difficulty, guessing=0.0, metric=1.0):
        """3PL model: (persons, items). With metric=1.702 the slopes are those of a probit model."""
        gap = ability.unsqueeze(1) - difficulty
        known = (metric * slope * gap).sigmoid()
        ctx.save_for_backward(ability=ability, slope=slope, difficulty=difficulty)
        ctx.guessing, ctx.metric = guessing, metric
        floor = pb.asarray(np.asarray(guessing, dtype=float))
        return floor + (1 - floor) * known

    @chance_of_success.backward
    def _(ctx, g):
        s = ctx.saved_variables
        gap = s.ability.unsqueeze(1) - s.difficulty
        known = (ctx.metric * s.slope * gap).sigmoid()
        floor = pb.asarray(np.asarray(ctx.guessing, dtype=float))
        by_logit = g * (1 - floor) * known * (1 - known)
        return {
            "ability": (by_logit * ctx.metric * s.slope).sum(dim=1),
            "slope": (by_logit * ctx.metric * gap).sum(dim=0),
            "difficulty": -(by_logit * s.slope).sum(dim=0),
        }

    return chance_of_success


THRESHOLDS = np.array([[-1.2, 0.1, 1.0], [-0.5, 0.4, 1.6]])


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=4)), t(rng.uniform(0.7, 1.6, 2)), t(THRESHOLDS)),
        {"answers": np.array([[0, 1], [2, 1], [1, 0], [2, 2]])},
    ),
    "the highest category has no upper bound, but the last threshold is taken for one",
    r"\b(?:highest|top|last|upper\w*|best|final|largest) (?:category|answer|score|class|bound)",
    r"answers?`?.{0,30}(?:\b3\b|last|highest|largest|maximum|top)|\bclipp?(?:ed|ing)?\b",
    r"\bupper (?:bound|end|limit|threshold)|(?:above|beyond) the (?:last|highest)",
    r"\blast (?:threshold|boundary)",
    mends(
        "np.where(x < k - 1,",
        "np.where(x < k,",
        "(x < k - 1)",
        "np.pad(slope",
        "np.where(x == k - 1, 0",
        "below[x == k - 1] = 0",
    ),
    where="an answer in the highest category",
    shows=lambda rng: (
        (t(rng.normal(size=4)), t(rng.uniform(0.7, 1.6, 2)), t(THRESHOLDS)),
        {"answers": np.array([[0, 3], [3, 1], [1, 0], [2, 3]])},
    ),
)
def graded_response_nll():
    def forward(ctx, ability, slope, thresholds, answers):
        """Samejima's graded responses; thresholds: (items, k - 1) increasing, answers 0 to k - 1.

        ability: (persons,), slope: (items,), answers: (persons, items)
        """
        theta, a, b = ability.numpy(), slope.numpy(), thresholds.numpy()
        if (np.diff(b, axis=1) <= 0).any():
            raise ValueError("thresholds must increase")
        beyond = expit(a[:, None] * (theta[:, None, None] - b))
        padded = np.concatenate([np.ones_like(beyond[..., :1]), beyond, 0 * beyond[..., :1]], 2)
        x = answers[..., None]
        chance = np.take_along_axis(padded, x, 2) - np.take_along_axis(padded, x + 1, 2)
        ctx.save_for_backward(ability=theta, slope=a, thresholds=b, chance=chance[..., 0])
        ctx.beyond, ctx.answers = beyond, answers
        return pb.asarray(np.array(-np.log(chance).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        theta, a, b, chance = ctx.saved_variables
        x, k = ctx.answers, b.shape[1] + 1
        person, item = np.indices(x.shape)
        slope = ctx.beyond * (1 - ctx.beyond)
        lower, upper = np.maximum(x - 1, 0), np.minimum(x, k - 2)
        above = np.where(x > 0, slope[person, item, lower], 0.0)
        below = slope[person, item, upper]
        flow = -g.item() / chance
        grad_theta, grad_a, grad_b = np.zeros_like(theta), np.zeros_like(a), np.zeros_like(b)
        for part, which in ((flow * above, lower), (-flow * below, upper)):
            grad_theta += (part * a).sum(axis=1)
            grad_a += (part * (theta[:, None] - b[item, which])).sum(axis=0)
            np.add.at(grad_b, (item, which), -part * a)
        return {
            "ability": pb.asarray(grad_theta),
            "slope": pb.asarray(grad_a),
            "thresholds": pb.asarray(grad_b),
        }

    return pb.autograd_function(forward, backward, name="graded_response_nll")


ANSWERS = np.array([1, 0, 0, 1, 1, 1])


@BOOK.wrong(
    lambda rng: ((ANSWERS, *map(t, np.array([0.35, 0.2, 0.25, 0.1]))), {}),
    "the gradients of guess and slip are returned in each other's place",
    SWAPPED,
    r"\bwrong (?:order|place|position)|(?:order|positions?) of the (?:gradients|arguments|values)",
    r"(?:that|gradient) of `?(?:guess|slip)`? (?:and|for|with|as|is|instead|where|in place)",
    mends("(by_known, by_learn, by_guess, by_slip)", "by_learn, by_guess, by_slip"),
)
def traced_knowledge():
    class TracedKnowledge(pb.Function):
        """Bayesian knowledge tracing: the chance that each answer is right, from those before."""

        @staticmethod
        def forward(ctx, answers, known, learn, guess, slip):
            L, T, G, S = (x.item() for x in (known, learn, guess, slip))
            ctx.path, chances = [], []
            for right in answers:
                chance = L * (1 - S) + (1 - L) * G
                chances.append(chance)
                kept = L * (1 - S) / chance if right else L * S / (1 - chance)
                ctx.path.append((right, L, chance, kept))
                L = kept + (1 - kept) * T
            ctx.rates = T, G, S
            return pb.asarray(np.array(chances))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            T, G, S = ctx.rates
            by_known = by_learn = by_guess = by_slip = 0.0
            for (right, L, chance, kept), g in reversed(
                [*zip(ctx.path, grad_output.numpy(), strict=True)]
            ):
                to_kept = by_known * (1 - T)
                by_learn += by_known * (1 - kept)
                shown = chance if right else 1 - chance
                to_joint = to_kept / shown
                to_chance = g - to_kept * kept / shown * (1 if right else -1)
                by_slip += L * (to_joint * (-1 if right else 1) - to_chance)
                by_guess += to_chance * (1 - L)
                by_known = to_joint * (1 - S if right else S) + to_chance * (1 - S - G)
            grads = (by_known, by_learn, by_slip, by_guess)
            return (None, *(pb.asarray(np.array(x)) for x in grads))

    return TracedKnowledge.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(0, 0.5, (5, 3))), np.array([3, 0, 4, 1])),
        {"successes": np.array([2, 0, 5, 1]), "failures": np.array([1, 3, 0, 2])},
    ),
    "where a skill is practised more than once only one of its attempts counts",
    REPEATED,
    r"add\.at|bincount|scatter|accumulat|overwr",
    r"(?:last|one|single|first|only|all|every|each) (?:of (?:its|the) )?(?:attempts?|rows?|occurr)",
    r"\b(?:twice|several times|same skill)\b",
    where="a skill that stands twice",
    shows=lambda rng: (
        (t(rng.normal(0, 0.5, (5, 3))), np.array([3, 0, 3, 1, 3])),
        {"successes": np.array([2, 0, 5, 1, 3]), "failures": np.array([1, 3, 0, 2, 2])},
    ),
)
def practice_logits():
    @pb.autograd_function
    def practice_logits(ctx, skills, index, successes, failures):
        """Performance factors: easiness + gain * log(1 + successes) + loss * log(1 + failures).

        skills: (n, 3) easiness, gain and loss of each skill; index: the skill of each attempt.
        """
        ctx.features = np.stack([np.ones(len(index)), np.log1p(successes), np.log1p(failures)], 1)
        ctx.index, ctx.shape = index, skills.shape
        return pb.asarray((skills.numpy()[index] * ctx.features).sum(axis=1))

    @practice_logits.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = np.zeros(ctx.shape)
        grad[ctx.index] += grad_output.numpy()[:, None] * ctx.features
        return {"skills": pb.asarray(grad)}

    return practice_logits


@BOOK.wrong(
    lambda rng: ((t(rng.dirichlet(np.ones(4), 6)), np.array([0, 2, 3, 1, 2, 0])), {}),
    "the disagreement expected by chance is taken for a constant: its change with the marks is "
    "left out",
    r"expected.{0,60}(?:constant|missing|left out|deriv|ignor|forgot|depend|chang)",
    r"denominator|quotient|(?:missing|second) (?:term|part)|\bterm\b.{0,40}(?:missing|left out)",
    r"(?:missing|left out|lacks?|without).{0,30}(?:chance|expected)|observed ?/ ?expected ?\*\* ?2",
    mends(
        "expected**2", "(1 - kappa)", "observed / expected", "by_expected", "expected * expected"
    ),
)
def marking_loss():
    @pb.autograd_function
    def marking_loss(ctx, marks, reference, power=2):
        """1 - weighted kappa of soft marks (essays, grades) with a reader's grades."""
        ctx.save_for_backward(marks=marks)
        ctx.reference, ctx.power = reference, power
        weight, chance = weights(reference, marks.shape[1], power)
        return (marks * weight).sum() / (marks * chance).sum()

    def weights(reference, k, power):
        grades = np.arange(k)
        apart = np.abs(grades[:, None] - grades) ** power
        return pb.asarray(1.0 * apart[reference]), pb.asarray(apart[reference].mean(axis=0))

    @marking_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        marks = ctx.saved_variables.marks
        weight, chance = weights(ctx.reference, marks.shape[1], ctx.power)
        return g * weight / (marks * chance).sum()

    return marking_loss


def practice(rng, **settings):
    features = rng.uniform(0, 1.5, (7, 3))
    return (
        t(rng.normal(0.5, 0.4, 3)),
        features,
        rng.uniform(0.2, 6, 7),
        rng.uniform(0.1, 0.95, 7),
    ), settings


@BOOK.wrong(
    practice,
    "the penalty's part is not multiplied by the incoming gradient",
    IGNORED,
    r"\bpenalty|\bregulari[sz]|(?:with|for|when|if|unless) .{0,12}\bl2\b|weight.decay",
    r"grad_output.{0,40}(?:missing|left out|not multipl|forgot)",
    mends("g * ctx.decay", "ctx.decay * g", "ctx.decay * w * g", "g * (ctx.decay"),
)
def half_life_loss():
    LN2 = np.log(2)

    def forward(ctx, weights, features, lag, recalled, alpha=0.01, l2=0.3):
        """Loss of half-life regression (Settles and Meeder 2016); lag in days, recalled a share."""
        w = weights.numpy()
        half_life = 2.0 ** (features @ w)
        p = 2.0 ** (-lag / half_life)
        miss, target = p - recalled, -lag / np.log2(recalled)
        loss = (miss**2 + alpha * (half_life - target) ** 2).sum() + l2 * (w**2).sum()
        ctx.save_for_backward(weights=weights, features=features)
        ctx.to_half_life = 2 * miss * p * LN2 * lag / half_life**2
        ctx.to_half_life += 2 * alpha * (half_life - target)
        ctx.half_life, ctx.decay = half_life, 2 * l2
        return pb.asarray(np.array(loss))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        w, g = ctx.saved_variables.weights.numpy(), grad_output.item()
        to_exponent = g * ctx.to_half_life * ctx.half_life * LN2
        grad = to_exponent @ ctx.saved_variables.features
        grad += ctx.decay * w
        return {"weights": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="half_life_loss")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=4)),),
        {"answers": np.array([[1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1]])},
    )
)
def rasch_conditional_nll():
    def symmetric(eps):
        """Elementary symmetric functions of orders 0 to n."""
        gamma = np.zeros(len(eps) + 1)
        gamma[0] = 1.0
        for i, e in enumerate(eps):
            gamma[1 : i + 2] += e * gamma[: i + 1]
        return gamma

    @pb.autograd_function
    def rasch_conditional_nll(ctx, difficulty, answers):
        """Loss of the Rasch model given the sum scores; answers: (persons, items) of 0 and 1."""
        answers = np.asarray(answers)
        if not np.isin(answers, (0, 1)).all() or answers.shape[1:] != difficulty.shape:
            raise ValueError("answers must be 0 or 1, one for each person and item")
        eps = np.exp(-difficulty.numpy())
        gamma, scores = symmetric(eps), answers.sum(axis=1).astype(int)
        solved = answers.sum(axis=0)
        ctx.eps, ctx.gamma, ctx.scores, ctx.solved = eps, gamma, scores, solved
        return pb.asarray(np.array(solved @ difficulty.numpy() + np.log(gamma[scores]).sum()))

    @rasch_conditional_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = ctx.solved.astype(float)
        counts = np.bincount(ctx.scores, minlength=len(ctx.gamma))
        for i, e in enumerate(ctx.eps):
            without = symmetric(np.delete(ctx.eps, i))
            grad[i] -= e * (counts[1:] * without / ctx.gamma[1:]).sum()
        return {"difficulty": pb.asarray(g.item() * grad)}

    return rasch_conditional_nll


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.6, 2, 5)), t(rng.normal(size=5)), np.array([1, 0, -1, 1, 1])),
        {"nodes": 31},
    )
)
def expected_ability():
    class Quadrature:
        def __init__(self, nodes, reach=5.0):
            self.theta = np.linspace(-reach, reach, nodes)
            self.log_prior = -(self.theta**2) / 2

    @pb.autograd_function
    def expected_ability(ctx, slope, difficulty, answers, nodes=41):
        """Posterior mean and standard deviation of a 2PL ability; an answer of -1 is left out.

        A standard normal prior, on `nodes` points.
        """
        if nodes < 2:
            raise ValueError("two nodes or more")
        a, b, x = slope.numpy(), difficulty.numpy(), np.asarray(answers)
        if not a.shape == b.shape == x.shape or a.ndim != 1:
            raise ValueError("one slope, difficulty and answer for each item")
        grid = Quadrature(nodes)
        gap = grid.theta[:, None] - b
        residual = (x >= 0) * ((x > 0) - expit(a * gap))
        likelihood = (x >= 0) * -np.logaddexp(0, np.where(x > 0, -1, 1) * a * gap)
        log_weight = grid.log_prior + likelihood.sum(axis=1)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mean = weight @ grid.theta
        away = grid.theta - mean
        spread = np.sqrt(weight @ away**2)
        ctx.save_for_backward(slope=a, gap=gap, residual=residual, weight=weight)
        ctx.away, ctx.spread = away, spread
        return {"mean": pb.asarray(np.array(mean)), "sd": pb.asarray(np.array(spread))}

    @expected_ability.backward
    @pb.once_differentiable
    def _(ctx, g_mean, g_sd):
        s, away, sd = ctx.saved_variables, ctx.away, ctx.spread
        to_log = g_mean.item() * away + g_sd.item() * (away**2 - sd**2) / (2 * sd)
        to_log *= s.weight
        return {
            "slope": pb.asarray(to_log @ (s.residual * s.gap)),
            "difficulty": pb.asarray(-s.slope * (to_log @ s.residual)),
        }

    return expected_ability


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(3, 9, (3, 5))), t(np.array([55.0, 71, 40]))),
        {"points": np.array([10.0, 10, 8, 12, 10]), "drop": 2},
    )
)
def course_grade():
    @pb.autograd_function
    def course_grade(ctx, homework, exam, points, drop=1, share=0.4, best=1.0):
        """Grades between 0 and best: homework without the lowest `drop` shares, and an exam of 80.

        homework: (students, n) of `points`, exam: (students,).
        """
        h, e = homework.numpy(), exam.numpy()
        if h.ndim != 2 or e.shape != h.shape[:1] or np.shape(points) != h.shape[1:]:
            raise ValueError("homework of each student, and an exam")
        if not 0 <= drop < h.shape[1] or np.min(points) <= 0:
            raise ValueError("a homework must be left, and points must be positive")
        part = h / points
        kept = np.argsort(part, axis=1, kind="stable")[:, drop:]
        total = share * np.take_along_axis(part, kept, 1).mean(axis=1) + (1 - share) * e / 80
        grade = np.clip(total, 0.0, best)
        ctx.kept, ctx.free, ctx.points, ctx.share = kept, grade == total, points, share
        return pb.asarray(grade)

    @course_grade.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = np.where(ctx.free, grad_output.numpy(), 0.0)
        each = np.zeros((len(flow), len(ctx.points)))
        np.put_along_axis(each, ctx.kept, ctx.share / ctx.kept.shape[1], 1)
        return {
            "homework": pb.asarray(flow[:, None] * each / ctx.points),
            "exam": pb.asarray(flow * (1 - ctx.share) / 80),
        }

    return course_grade


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 30, 4)), t(rng.uniform(5, 30, 7)), t(rng.uniform(5, 35, 6))),
        {},
    )
)
def linear_equating():
    def moments(scores):
        mean = scores.mean()
        return mean, ((scores - mean) ** 2).mean() ** 0.5

    def forward(ctx, scores, old, new):
        """Scores of the new form on the scale of the old one, which two groups have taken."""
        (m_old, s_old), (m_new, s_new) = moments(old), moments(new)
        if s_old.item() == 0 or s_new.item() == 0:
            raise ValueError("the scores of a group are all the same")
        ctx.save_for_backward(scores=scores, old=old, new=new)
        return m_old + s_old / s_new * (scores - m_new)

    def backward(ctx, g):
        scores, old, new = ctx.saved_tensors
        (m_old, s_old), (m_new, s_new) = moments(old), moments(new)
        z = (scores - m_new) / s_new
        total, along = g.sum(), (g * z).sum()
        z_old, z_new = (old - m_old) / s_old, (new - m_new) / s_new
        return {
            "scores": g * s_old / s_new,
            "old": (total + along * z_old) / len(old),
            "new": -s_old / s_new * (total + along * z_new) / len(new),
        }

    return pb.autograd_function(forward, backward, name="linear_equating")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.0, 1.5, 4.0, 9.0]) + rng.uniform(0, 0.8, 4)),
            t(np.array(0.5)),
            t(np.array([2.9, 7.0, 20.0])),
        ),
        {"threshold": -0.8, "noise": 0.3},
    )
)
def recall_probability():
    @pb.autograd_function
    def recall_probability(ctx, studied, decay, asked, threshold=0.0, noise=0.25):
        """ACT-R: chance to recall an item, at the times `asked`, after it was studied at others."""
        if studied.ndim != 1 or decay.ndim or noise <= 0:
            raise ValueError("one item and one decay, and noise must be positive")
        age = asked.numpy()[..., None] - studied.numpy()
        past = age > 0
        if not past.any(axis=-1).all():
            raise ValueError("asked before it was studied")
        log_age = np.log(np.where(past, age, 1.0))
        trace = np.where(past, np.exp(-decay.item() * log_age), 0.0)
        strength = trace.sum(axis=-1)
        recall = expit((np.log(strength) - threshold) / noise)
        ctx.save_for_backward(decay=decay, recall=recall, trace=trace, log_age=log_age)
        ctx.noise = noise
        return pb.asarray(np.array(recall))

    @recall_probability.backward
    @pb.once_differentiable
    def _(ctx, g):
        decay, recall, trace, log_age = ctx.saved_variables
        flow = g.numpy() * recall * (1 - recall) / ctx.noise / trace.sum(axis=-1)
        to_log_trace = flow[..., None] * trace
        to_age = -decay.item() * to_log_trace * np.exp(-log_age)
        return {
            "studied": pb.asarray(-to_age.reshape(-1, trace.shape[-1]).sum(axis=0)),
            "decay": pb.asarray(np.array(-(to_log_trace * log_age).sum())),
            "asked": pb.asarray(np.array(to_age.sum(axis=-1))),
        }

    return recall_probability
