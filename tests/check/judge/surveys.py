"""Surveys: calibration, strata, raking, missing answers, scales, ordinal answers, replication."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, SIGN, SWAPPED, UNSORTED, Book, at, mends, t

BOOK = Book("surveys")

KNOWN = np.array([[1, 23, 0], [1, 51, 1], [1, 37, 1], [1, 64, 0], [1, 45, 1], [1, 30, 0.0]])
KNOWN = KNOWN / [1, 40, 1]


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5, 15, 6)), t(np.array([70.0, 66.0, 41.0])), KNOWN), {}),
    "the matrix that is solved with is made of the design weights as well: that part is missing",
    MISSING,
    r"\bgram\b|\bboth places\b|through (?:the )?(?:matrix|system|inverse|solve)",
    r"normal (?:matrix|eq)|(?:matrix|system|inverse) (?:also|too|depends|is made|contains|changes)",
    r"(?:second|other|another) (?:term|path|contribution)",
    mends(
        "s.gain * (gn - s.X @ a)",
        "(gn - s.X @ a) * s.gain",
        "(s.gain - 1) * (s.X @ a)",
        "(s.X @ a) * (s.gain - 1)",
        "(s.X @ a) * s.gain",
        "s.gain * (s.X @ a)",
        "s.gain * fitted",
        "fitted * s.gain",
        "s.X @ s.multiplier",
    ),
)
def greg_weights():
    @pb.autograd_function
    def greg_weights(ctx, design, totals, known):
        """Weights nearest to the design weights that give the known totals (linear calibration).

        design: (people,), totals: (variables,), known: (people, variables).
        """
        d, X = design.numpy(), known
        if (d <= 0).any():
            raise ValueError("design weights must be positive")
        matrix = (X.T * d) @ X
        gain = 1 + X @ np.linalg.solve(matrix, totals.numpy() - X.T @ d)
        ctx.save_for_backward(d=d, X=X, matrix=matrix, gain=gain)
        return pb.asarray(d * gain)

    @greg_weights.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        a = np.linalg.solve(s.matrix, s.X.T @ (s.d * gn))
        return {"design": pb.asarray(gn * s.gain - s.X @ a), "totals": pb.asarray(a)}

    return greg_weights


SIZES = np.array([60, 25, 140])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(5, 2, 9)), np.repeat([0, 1, 2], [3, 2, 4]), SIZES), {}),
    "what belongs to each stratum is laid out as if the people were sorted by stratum",
    UNSORTED,
    r"contiguous|consecutive|grouped|interleav|\bstrat(?:um|a)\b.{0,30}\border",
    r"(?:wrong|other|another) strat(?:um|a)",
    mends("share[s.stratum]", "spread[s.stratum]", "[s.stratum] *", "[s.stratum]", "[stratum]"),
    where="people not sorted by stratum",
    shows=lambda rng: (
        (t(rng.normal(5, 2, 9)), np.array([2, 0, 1, 2, 2, 0, 1, 0, 2]), SIZES),
        {},
    ),
)
def stratified_estimates():
    class Stratified(pb.Function):
        """Mean of a population from a stratified sample, and the variance of that mean.

        values, stratum: (people,); sizes: people in the population by stratum.
        """

        @staticmethod
        def forward(ctx, values, stratum, sizes):
            y, n = values.numpy(), np.bincount(stratum, minlength=len(sizes))
            if (n < 2).any():
                raise ValueError("a stratum has fewer than two people")
            W = sizes / sizes.sum()
            mean = np.bincount(stratum, y) / n
            away = y - mean.take(stratum)
            spread = W**2 * (1 - n / sizes) / (n * (n - 1))
            ctx.save_for_backward(away=away, n=n, W=W, spread=spread, stratum=stratum)
            variance = spread @ np.bincount(stratum, away**2)
            return pb.asarray(np.array(W @ mean)), pb.asarray(np.array(variance))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_mean, g_variance):
            s = ctx.saved_variables
            share, spread = np.repeat(s.W / s.n, s.n), np.repeat(s.spread, s.n)
            grad = g_mean.item() * share + 2 * g_variance.item() * spread * s.away
            return pb.asarray(grad), None, None

    return Stratified.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(2, 20, (3, 4))),
            t(np.array([40.0, 55.0, 35.0])),
            t(np.array([30.0, 20.0, 45.0, 35.0])),
        ),
        {"rounds": 2},
    ),
    "the steps of a round are undone in the order in which they were done, not in reverse",
    r"(?:wrong|same|forward|opposite) order|revers(?!ed\(ctx)|last step",
    r"(?:columns?|rows?) (?:step |factor |adjustment )?(?:first|before|last)",
    SWAPPED,
    r"(?:before|after) (?:the |those of the )?(?:rows?|columns?)",
    mends(
        "reversed(sides)",
        "for side in (1, 0)",
        "sides[::-1]",
        "reversed(path)",
        "path[::-1]",
        "reversed(round_)",
        "[::-1]",
        "reversed(steps)",
    ),
)
def raked_table():
    def fitted(table, target, side):
        """Scale rows (side 0) or columns (side 1) to sum to target; also what backward needs."""
        total = table.sum(axis=1 - side, keepdims=True)
        factor = target.reshape(total.shape) / total
        return table * factor, (table, total, factor)

    def pulled_back(g, table, total, factor):
        to_factor = (g * table).sum(axis=0 if len(total) == 1 else 1, keepdims=True)
        return g * factor - to_factor * factor / total, (to_factor / total).ravel()

    @pb.autograd_function
    def raked_table(ctx, counts, rows, columns, rounds=10):
        """Counts raked to known margins, rows and then columns in each round."""
        table, margins = counts.numpy(), (rows.numpy(), columns.numpy())
        if (table <= 0).any():
            raise ValueError("counts must be positive")
        ctx.rounds = []
        for _ in range(rounds):
            kept = []
            for side in (0, 1):
                table, needed = fitted(table, margins[side], side)
                kept.append(needed)
            ctx.rounds.append(kept)
        return pb.asarray(table)

    @raked_table.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        g, margins = grad_output.numpy(), [0.0, 0.0]
        for kept in reversed(ctx.rounds):
            for side, needed in enumerate(kept):
                g, to_margin = pulled_back(g, *needed)
                margins[side] = margins[side] + to_margin
        return (*map(pb.asarray, (g, *margins)), None)

    return raked_table


CUTS = np.array([-1.6, -0.4, 0.5, 1.7])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(CUTS), np.array([3, 0, 4, 1, 2])), {}),
    "of people with the same answer (a repeated index) only the last one counts",
    REPEATED,
    r"same (?:answer|category|cut)|overwr|accumulat|add\.at|last (?:one|person|people|respond)",
    r"(?:two|several|many|more) (?:people|persons|respondents|answers)",
    mends("np.add.at(", "np.subtract.at(", "np.bincount(", "np.eye("),
    where="two people with the same answer",
    shows=lambda rng: ((t(rng.normal(size=7)), t(CUTS), np.array([3, 1, 1, 4, 0, 3, 1])), {}),
)
def cumulative_logit_nll():
    def forward(ctx, score, cutpoints, answers):
        """Loss of ordinal answers 0, 1, ... by the cuts between which score + noise falls."""
        cuts = cutpoints.numpy()
        if (np.diff(cuts) <= 0).any():
            raise ValueError("cutpoints must increase")
        edges = np.concatenate([[-np.inf], cuts, [np.inf]])
        below = special.expit(edges[answers] - score.numpy())
        above = special.expit(edges[answers + 1] - score.numpy())
        ctx.save_for_backward(below=below, above=above, answers=answers, edges=edges)
        return pb.asarray(np.array(-np.log(above - below).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        chance = s.above - s.below
        lower = s.below * (1 - s.below) / chance
        upper = s.above * (1 - s.above) / chance
        by_edge = np.zeros_like(s.edges)
        by_edge[s.answers] += lower
        by_edge[s.answers + 1] -= upper
        return {
            "score": pb.asarray(g.item() * (upper - lower)),
            "cutpoints": pb.asarray(g.item() * by_edge[1:-1]),
        }

    return pb.autograd_function(forward, backward, name="cumulative_logit_nll")


def scale_answers(rng):
    person = rng.normal(3, 0.8, (8, 1))
    return (t(np.clip(person + rng.normal(0, 0.5, (8, 4)), 1.1, 4.9)),)


@BOOK.wrong(
    lambda rng: (scale_answers(rng), {}),
    "items that are scored in reverse need the opposite sign in the gradient",
    SIGN,
    at("reverse"),
    r"revers\w+ (?:items?|columns?|scor)|flip",
    mends(
        "ctx.reverse",
        "s.reverse",
        "ctx.sign",
        "s.sign",
        "ctx.turned",
        "ctx.flip",
        "* sign",
        "*= -1",
    ),
    where="reverse names a column",
    shows=lambda rng: (scale_answers(rng), {"reverse": [1, 2]}),
)
def cronbach_alpha():
    @pb.autograd_function
    def cronbach_alpha(ctx, answers, reverse=(), low=1.0, high=5.0):
        """Reliability of a scale; answers: (people, items); reverse: items scored in reverse."""
        x = answers.numpy().copy()
        columns = list(reverse)
        x[:, columns] = low + high - x[:, columns]
        n, k = x.shape
        if n < 2 or k < 2:
            raise ValueError("needs two people and two items")
        away = x - x.mean(axis=0)
        within, total = (away**2).sum(), (away.sum(axis=1) ** 2).sum()
        ctx.save_for_backward(away=away, within=within, total=total)
        return pb.asarray(np.array(k / (k - 1) * (1 - within / total)))

    @cronbach_alpha.backward
    @pb.once_differentiable
    def _(ctx, g):
        away, within, total = ctx.saved_variables
        k = away.shape[1]
        of_sum = away.sum(axis=1)[:, None] * within / total
        grad = 2 * g.item() * k / (k - 1) * (of_sum - away) / total
        return {"answers": pb.asarray(grad)}

    return cronbach_alpha


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(0, 0.6, 3)), rng.normal(size=(7, 3)), np.array([1, 0, 1, 1, 0, 1, 1])),
        {},
    ),
    "1 / p falls with the score by the factor 1 - p, but the gradient has p in its place",
    r"\b1\.? ?- ?(?:\w+\.)?(?:p|chance|propensity|probab\w*)\b|complement|\(p ?- ?1",
    FACTOR,
    r"\bp\b (?:in place|instead|where)|sigmoid|derivative of (?:the )?(?:inverse|1 ?/ ?p)",
    mends("(1 - s.p)", "(1 - p)", "(s.p - 1)", "(p - 1)", "(1.0 - s.p)", "1 - s.p"),
)
def response_weights():
    @pb.autograd_function
    def response_weights(ctx, slopes, design, responded):
        """Weights of those who answered: inverse propensities that sum to the size of the sample.

        slopes: (p,) of a logistic model, design: (n, p), responded: (n,) of 0 and 1.
        """
        if not responded.any():
            raise ValueError("nobody answered")
        p = special.expit(design @ slopes.numpy())
        raw = responded / p
        w = raw * len(raw) / raw.sum()
        ctx.save_for_backward(design=design, p=p, w=w)
        return pb.asarray(w.copy())

    @response_weights.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_log = s.w * (gn - gn @ s.w / len(s.w))
        return {"slopes": pb.asarray(-s.design.T @ (to_log * s.p))}

    return response_weights


@BOOK.right(lambda rng: ((t(rng.uniform(8, 14, 6)), t(np.array([72.0, 75.0, 35.0])), KNOWN), {}))
def raking_weights():
    @pb.autograd_function
    def raking_weights(ctx, design, totals, known, tolerance=1e-12):
        """Positive weights that give the known totals, by Newton steps (raking ratio)."""
        d, T, X = design.numpy(), totals.numpy(), known
        if (d <= 0).any():
            raise ValueError("design weights must be positive")
        multiplier = np.zeros(len(T))
        for _ in range(50):
            w = d * np.exp(X @ multiplier)
            short = T - X.T @ w
            if np.abs(short).max() < tolerance * np.abs(T).max():
                break
            multiplier += np.linalg.solve((X.T * w) @ X, short)
        else:
            raise ValueError("no weights give these totals")
        ctx.save_for_backward(design=d, X=X, w=w)
        return pb.asarray(w.copy())

    @raking_weights.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        d, X, w = ctx.saved_variables
        gn = grad_output.numpy()
        a = np.linalg.solve((X.T * w) @ X, X.T @ (w * gn))
        return {"design": pb.asarray(w / d * (gn - X @ a)), "totals": pb.asarray(a)}

    return raking_weights


ANSWERS = np.array([[0, 2, 1], [3, -1, 2], [1, 1, -1], [-1, 3, 3], [2, 0, 1]])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.8, 2, 3)), t(np.sort(rng.uniform(-2, 2, (3, 3)), axis=1))),
        {"answers": ANSWERS},
    )
)
def graded_scores():
    FAR = 1e3  # an edge that no answer lies beyond

    class GradedScores(pb.Function):
        """Expected trait of each person in the graded response model; -1 is a missing answer.

        discrimination: (items,); difficulty: (items, steps), increasing; answers: (people, items).
        """

        @staticmethod
        def forward(ctx, discrimination, difficulty, answers, nodes=15):
            a, b = discrimination.numpy()[:, None, None], difficulty.numpy()
            if len(a) != len(b) or (np.diff(b, axis=1) <= 0).any() or (a <= 0).any():
                raise ValueError("difficulties must increase, and items discriminate")
            trait = np.linspace(-4, 4, nodes)
            ends = np.full((len(b), 1), FAR)
            gap = trait - np.hstack([-ends, b, ends])[:, :, None]
            reached = special.expit(a * gap)
            chance = reached[:, :-1] - reached[:, 1:]
            if (chance <= 0).any():
                raise ValueError("an answer is impossible at some trait")
            log_post = np.tile(-(trait**2) / 2, (len(answers), 1))
            for j, given in enumerate(answers.T):
                log_post[given >= 0] += np.log(chance[j, given[given >= 0]])
            post = special.softmax(log_post, axis=1)
            ctx.save_for_backward(a, gap, reached, chance, post, trait, answers)
            return pb.asarray(post @ trait)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            a, gap, reached, chance, post, trait, answers = ctx.saved_variables
            to_log = grad_output.numpy()[:, None] * post * (trait - (post @ trait)[:, None])
            to_chance = np.zeros_like(chance)
            for j, given in enumerate(answers.T):
                np.add.at(to_chance[j], given[given >= 0], to_log[given >= 0])
            to_chance /= chance
            to_reached = np.zeros_like(reached)
            to_reached[:, :-1] += to_chance
            to_reached[:, 1:] -= to_chance
            to_score = to_reached * reached * (1 - reached)
            return {
                "discrimination": pb.asarray((to_score * gap).sum(axis=(1, 2))),
                "difficulty": pb.asarray(-(a * to_score).sum(axis=2)[:, 1:-1]),
            }

    return GradedScores.apply


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(10, 30, 8)),
            t(rng.uniform(2, 5, 8)),
            np.array([1, 0, 2, 2, 1, 3, 0, 2]),
        ),
        {},
    )
)
def jackknife_ratio():
    def forward(ctx, numerator, denominator, cluster):
        """Ratio of two totals, and its standard error by leaving out one cluster after another."""
        y, x = numerator.numpy(), denominator.numpy()
        m = int(cluster.max()) + 1
        if m < 2:
            raise ValueError("needs two clusters")
        left = x.sum() - np.bincount(cluster, x)
        ratios = (y.sum() - np.bincount(cluster, y)) / left
        error = np.sqrt((m - 1) * ratios.var())
        if error == 0:
            raise ValueError("the ratio is the same without any cluster")
        ctx.save_for_backward(cluster, left, ratios, error)
        ctx.total, ctx.ratio = x.sum(), y.sum() / x.sum()
        return pb.asarray(np.array(ctx.ratio)), pb.asarray(np.array(error))

    @pb.once_differentiable
    def backward(ctx, g_ratio, g_error):
        cluster, left, ratios, error = ctx.saved_variables
        m = len(ratios)
        to_ratios = g_error.item() * (m - 1) / m * (ratios - ratios.mean()) / error
        each = to_ratios / left
        whole = g_ratio.item() / ctx.total
        by_y = whole + each.sum() - each[cluster]
        by_x = whole * ctx.ratio + each @ ratios - (each * ratios)[cluster]
        return {"numerator": pb.asarray(by_y), "denominator": pb.asarray(-by_x)}

    return pb.autograd_function(forward, backward, name="jackknife_ratio")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(20, 5, 8)), t(rng.normal(size=8))),
        {"answered": np.array([True, True, False, True, True, False, True, True])},
    )
)
def regression_imputation():
    @pb.autograd_function
    def regression_imputation(ctx, income, predictor, answered):
        """Fill in incomes that were not given by a line through those that were."""
        y, x = income.numpy(), predictor.numpy()
        if len(np.unique(x[answered])) < 2:
            raise ValueError("needs two answers at different places")
        D = np.column_stack([np.ones_like(x), x])
        b = np.linalg.lstsq(D[answered], y[answered], rcond=None)[0]
        ctx.save_for_backward(y=y, D=D, b=b, answered=answered)
        return pb.asarray(np.where(answered, y, D @ b))

    @regression_imputation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        y, D, b, answered = ctx.saved_variables
        filled = np.where(answered, 0.0, grad_output.numpy())
        seen = D * answered[:, None]
        a = np.linalg.solve(seen.T @ seen, D.T @ filled)
        residual = answered * (y - D @ b)
        return {
            "income": pb.asarray(np.where(answered, grad_output.numpy(), 0.0) + seen @ a),
            "predictor": pb.asarray(filled * b[1] + residual * a[1] - seen @ a * b[1]),
        }

    return regression_imputation


@BOOK.right(
    lambda rng: (
        (t(np.array([1.0, 1.6, 9.0, 0.7, 3.6, 2.0, 1.2]) * rng.uniform(0.97, 1.03, 7)),),
        {"limit": 1.6},
    )
)
def trimmed_weights():
    @pb.autograd_function
    def trimmed_weights(ctx, weights, limit=3.0):
        """Weights held down to limit times their mean; the others grow to keep the total."""
        w = weights.numpy()
        if (w <= 0).any() or limit <= 1:
            raise ValueError("weights must be positive and the limit above 1")
        most, held = limit * w.mean(), np.zeros(len(w), dtype=bool)
        while True:
            growth = (w.sum() - held.sum() * most) / w[~held].sum()
            out = np.where(held, most, w * growth)
            if not (out[~held] > most).any():
                break
            held |= out > most
        ctx.save_for_backward(w=w, held=held, growth=growth)
        ctx.limit = limit
        return pb.asarray(out)

    @trimmed_weights.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        w, held, growth = ctx.saved_variables
        gn, rate = grad_output.numpy(), ctx.limit / len(w)
        scaled = gn[~held] @ w[~held] / w[~held].sum()
        to_total = rate * gn[held].sum() + scaled * (1 - rate * held.sum())
        return {"weights": pb.asarray(to_total + np.where(held, 0.0, growth * (gn - scaled)))}

    return trimmed_weights
