"""Forecasting: seasonal and trend smoothing, demand, differences, scores, variance, hierarchies."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CHANGED, MISSING, REVERSED, SECOND, UNSORTED, Book, at, mends, t

BOOK = Book("forecasting")


def quarters(rng):
    season = t(rng.normal(size=3))
    return (
        t(rng.normal(10, 2, 7)),
        t(np.array(9.5)),
        season,
        t(np.array(0.3)),
        t(np.array(0.4)),
    ), {}


@BOOK.wrong(
    quarters,
    "the saved states hold one and the same array of seasons, so that all have its final values",
    r"\balias|same (?:array|object|list)|\bcop(?:y|ies)\b|by reference|\bfinal (?:state|value)",
    r"\bafter (?:the|its|each|their) (?:last |final )?(?:update|step|loop)|last (?:season|update)",
    r"seasons? .{0,30}(?:before|after|old|updated|overwr|final|later)|(?:before|old) season",
    CHANGED,
    mends("season.copy()", "list(season)", "np.array(season)", "(level, season[k])", "before[k]"),
)
def seasonal_smoothing():
    @pb.autograd_function
    def seasonal_smoothing(ctx, series, level, season, alpha, gamma):
        """One-step forecasts by smoothing of level and additive season; season: (period,)."""
        y, level_now, season = series.numpy(), level.item(), season.numpy().copy()
        a, c = alpha.item(), gamma.item()
        forecasts, ctx.states = np.empty_like(y), []
        for n, value in enumerate(y):
            k = n % len(season)
            forecasts[n] = level_now + season[k]
            ctx.states.append((level_now, season))
            level_now = a * (value - season[k]) + (1 - a) * level_now
            season[k] = c * (value - level_now) + (1 - c) * season[k]
        ctx.final_level = level_now
        ctx.save_for_backward(series=series, alpha=alpha, gamma=gamma)
        return pb.asarray(forecasts)

    @seasonal_smoothing.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        a, c, y = s.alpha.item(), s.gamma.item(), s.series.numpy()
        by_y, by_season = np.zeros_like(y), np.zeros(len(ctx.states[0][1]))
        by_level = by_a = by_c = 0.0
        after = ctx.final_level
        for n in reversed(range(len(y))):
            before, season = ctx.states[n]
            k = n % len(season)
            to_season = by_season[k]
            by_c += to_season * (y[n] - after - season[k])
            by_level -= c * to_season
            by_a += by_level * (y[n] - season[k] - before)
            by_y[n] = a * by_level + c * to_season
            by_season[k] = (1 - c) * to_season - a * by_level + gn[n]
            by_level = (1 - a) * by_level + gn[n]
            after = before
        grads = {"level": by_level, "alpha": by_a, "gamma": by_c}
        grads = {name: np.array(value) for name, value in grads.items()}
        grads |= {"series": by_y, "season": by_season}
        return {name: pb.asarray(value) for name, value in grads.items()}

    return seasonal_smoothing


def states(rng):
    return t(rng.normal(10, 2, 4)), t(rng.normal(1, 0.5, 4)), t(np.array(0.8))


@BOOK.wrong(
    lambda rng: (states(rng), {}),
    "the gradient of phi is that of the first step ahead, whatever the horizon",
    at("horizon"),
    r"steps? ahead|\b(?:first|one|single) step|further ahead|geometric|\bone period\b",
    r"powers? of phi|\bphi ?(?:\*\*|\^)|does not (?:change|depend|vary) (?:with|on) .{0,10}phi",
    r"sum over (?:the )?(?:steps|horizon|i\b)|higher (?:powers|terms|order terms)",
    MISSING,
    mends(
        "phi ** (",
        "i * phi",
        "phi**k",
        "phi**(k - 1)",
        "range(1, ctx.horizon",
        "arange(1, ctx.horizon",
        "arange(ctx.horizon)",
    ),
    where="horizon above 1",
    shows=lambda rng: (states(rng), {"horizon": 3}),
)
def damped_trend():
    class DampedTrend(pb.Function):
        """Forecast with a damped trend, `horizon` steps ahead; level, trend: (series,)."""

        @staticmethod
        def forward(level, trend, phi, horizon=1):
            return level + sum(phi**i for i in range(1, horizon + 1)) * trend

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, trend, phi, horizon = inputs
            ctx.horizon = horizon
            ctx.save_for_backward(trend=trend, phi=phi)

        @staticmethod
        def backward(ctx, grad_output):
            trend, phi = ctx.saved_variables
            reach = phi
            for _ in range(ctx.horizon - 1):
                reach = phi * (1 + reach)
            by_phi = (grad_output * trend).sum()
            return grad_output, grad_output * reach, by_phi, None

    return DampedTrend.apply


@BOOK.wrong(
    lambda rng: ((t(np.sort(rng.normal(size=(3, 5)), axis=1)), t(rng.normal(size=3))), {}),
    "the weights of the spread belong to sorted members, but are handed out unsorted",
    UNSORTED,
    r"\bsort|\branks?\b|increasing|ascending|argsort|\bunordered|in order\b|order of members",
    mends(
        "argsort", "ranks", "rank", "take_along_axis", "put_along_axis", "searchsorted", "rankdata"
    ),
    where="members that are not sorted",
    shows=lambda rng: ((t(rng.normal(size=(3, 5))), t(rng.normal(size=3))), {}),
)
def ensemble_crps():
    def weights(m):
        return (2 * np.arange(1, m + 1) - m - 1) / m**2

    @pb.autograd_function
    def ensemble_crps(ctx, members, actual):
        """Continuous ranked probability score of ensembles; members: (cases, members)."""
        x, y = members.numpy(), actual.numpy()[:, None]
        ctx.save_for_backward(members=members, actual=actual)
        near = abs(x - y).mean(axis=1)
        return pb.asarray(near - np.sort(x, axis=1) @ weights(x.shape[1]))

    @ensemble_crps.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, y = (v.numpy() for v in ctx.saved_variables)
        gn = g.numpy()[:, None]
        side = np.sign(x - y[:, None]) / x.shape[1]
        return {
            "members": pb.asarray(gn * (side - weights(x.shape[1]))),
            "actual": pb.asarray(-(gn * side).sum(axis=1)),
        }

    return ensemble_crps


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2, 6, 7)), t(np.array(0.3))), {}),
    "a period without demand leaves the state as it is, but its gradient is damped there as well",
    at("least"),
    r"(?:without|no|zero|small|little|low|idle|missing) (?:demand|values?|period|entr|element)",
    r"(?:demand|value|element|period|entr)\w*`? .{0,30}(?:<=?|below|under) ?(?:`?least|0\.5\b)",
    r"intermittent(?!_)|every (?:period|step)|each (?:period|step)|\bidle\b|\bskip|indent",
    mends(
        "continue", "* ctx.seen[k]", "else 1.0", "np.where(ctx.seen", "if not ctx.seen[k]", "keep ="
    ),
    where="a period without demand",
    shows=lambda rng: (
        (t(np.array([0.0, 4, 0.2, 3, 0.1, 0.3, 5, 0.2]) + 0.01 * rng.uniform(size=8)), t(0.3)),
        {},
    ),
)
def intermittent_demand():
    def forward(ctx, demand, alpha, least=0.5):
        """Expected demand per period (Croston): smoothed size over smoothed interval.

        A demand of up to `least` counts as none.
        """
        y, a = demand.numpy(), alpha.item()
        ctx.seen = y > least
        if not ctx.seen.any():
            raise ValueError("no demand in any period")
        ctx.first = int(np.argmax(ctx.seen))
        size, interval, gap = y[ctx.first], ctx.first + 1.0, 1.0
        ctx.path = {}
        for k in range(ctx.first + 1, len(y)):
            ctx.path[k] = size, interval, gap
            if ctx.seen[k]:
                size += a * (y[k] - size)
                interval += a * (gap - interval)
                gap = 0.0
            gap += 1
        ctx.save_for_backward(demand=demand, alpha=alpha)
        ctx.end = size, interval
        return pb.asarray(np.array(size / interval))

    @pb.once_differentiable
    def backward(ctx, g):
        y, a = ctx.saved_variables.demand.numpy(), ctx.saved_variables.alpha.item()
        size, interval = ctx.end
        to_size, to_interval = g.item() / interval, -g.item() * size / interval**2
        grad, by_a = np.zeros_like(y), 0.0
        for k in range(len(y) - 1, ctx.first, -1):
            size, interval, gap = ctx.path[k]
            if ctx.seen[k]:
                by_a += to_size * (y[k] - size) + to_interval * (gap - interval)
                grad[k] = a * to_size
            to_size, to_interval = (1 - a) * to_size, (1 - a) * to_interval
        grad[ctx.first] = to_size
        return {"demand": pb.asarray(grad), "alpha": pb.asarray(np.array(by_a))}

    return pb.autograd_function(forward, backward, name="intermittent_demand")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=7)), t(rng.normal(10, 3, 2))), {}),
    "the sums run from the first step to the last; a difference acts on later steps, so that they "
    "must run in reverse",
    REVERSED,
    r"\blater (?:step|value|forecast|element)|\bfuture\b|\bearlier (?:step|value|element)",
    r"(?:from|start\w* at|begin\w* at) the (?:end|last)|wrong (?:way|direction|end)|other way",
    r"\bcumulative|\bcumsum|\btranspos|\bprefix|\bsuffix",
    mends(
        "flow[k - m] += flow[k]",
        "reversed(range(m, len(flow)))",
        "range(len(flow) - 1",
        "[::-1]",
        "flow[k] += flow[k + m]",
    ),
)
def undo_differences():
    @pb.autograd_function
    def undo_differences(ctx, differences, history):
        """Series from its forecast seasonal differences, after the last season, `history`."""
        d, m = differences.numpy(), len(history)
        if len(d) < m:
            raise ValueError("forecast one season or more")
        out = d.copy()
        out[:m] += history.numpy()
        for k in range(m, len(d)):
            out[k] += out[k - m]
        ctx.m = m
        return pb.asarray(out)

    @undo_differences.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        m, flow = ctx.m, grad_output.numpy().copy()
        for k in range(m, len(flow)):
            flow[k] += flow[k - m]
        return {"differences": pb.asarray(flow), "history": pb.asarray(flow[:m].copy())}

    return undo_differences


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=5))), {}),
    "backward detaches the slope, so that the second derivative is zero",
    SECOND,
    r"\bdetach|no_grad|cut from the graph|taken for (?:a )?constant",
    where="second derivative",
)
def logcosh_score():
    class LogCoshScore(pb.Function):
        """Mean log cosh of the errors of a forecast, in units of width."""

        @staticmethod
        def forward(ctx, forecast, actual, width=1.0):
            ctx.save_for_backward(forecast=forecast, actual=actual)
            ctx.width = width
            z = ((forecast - actual) / width).abs()
            return (z + (1 + (-2 * z).exp()).log() - np.log(2.0)).mean()

        @staticmethod
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            # the slope is all that is needed, not how it came about
            slope = ((s.forecast - s.actual) / ctx.width).tanh().detach()
            grad = grad_output * slope / (ctx.width * len(slope))
            return {"forecast": grad, "actual": -grad}

    return LogCoshScore.apply


@BOOK.right(lambda rng: ((t(rng.normal(size=8)), t(0.1), t(0.2), t(0.7)), {}))
def garch_nll():
    @pb.autograd_function
    def garch_nll(ctx, returns, omega, alpha, beta):
        """Gaussian loss of returns whose variance follows GARCH(1, 1) from their mean square."""
        r, (w, a, b) = returns.numpy(), (x.item() for x in (omega, alpha, beta))
        if min(w, a, b) < 0 or not r.any():
            raise ValueError("parameters must not be negative, nor all returns 0")
        h = np.empty_like(r)
        h[0] = (r**2).mean()
        for k in range(1, len(r)):
            h[k] = w + a * r[k - 1] ** 2 + b * h[k - 1]
        if (h <= 0).any():
            raise ValueError("a variance is 0")
        ctx.save_for_backward(returns, omega, alpha, beta)
        ctx.h = h
        return pb.asarray(np.array((np.log(h) + r**2 / h).sum() / 2))

    @garch_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        r, _, a, b = (x.numpy() for x in ctx.saved_tensors)
        to_h = (1 / ctx.h - r**2 / ctx.h**2) / 2
        for k in range(len(r) - 1, 0, -1):
            to_h[k - 1] += b * to_h[k]
        by_square = 0.5 / ctx.h + to_h[0] / len(r)
        by_square[:-1] += a * to_h[1:]
        grads = 2 * r * by_square, to_h[1:].sum(), to_h[1:] @ r[:-1] ** 2, to_h[1:] @ ctx.h[:-1]
        return tuple(pb.asarray(np.array(g.item() * grad)) for grad in grads)

    return garch_nll


TREE = np.array([[1.0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


@BOOK.right(lambda rng: ((t(rng.normal(20, 5, 5)), t(rng.uniform(1, 3, 5))), {"summing": TREE}))
def reconciled_forecasts():
    def projection(variance, S):
        P = S.mT / variance
        return pb.linalg.solve(P @ S, P)

    def forward(ctx, base, variance, summing):
        """Forecasts that add up, nearest to `base` for errors of the variances (MinT).

        base, variance: (series,); summing: (series, lowest series).
        """
        if bool((variance <= 0).any()):
            raise ValueError("variances must be positive")
        S = pb.asarray(summing)
        ctx.save_for_backward(base=base, variance=variance)
        ctx.summing = summing
        return S @ (projection(variance, S) @ base)

    def backward(ctx, grad_output):
        s, S = ctx.saved_variables, pb.asarray(ctx.summing)
        reconcile = S @ projection(s.variance, S)
        pulled = reconcile.mT @ grad_output
        left = s.base - reconcile @ s.base
        return {"base": pulled, "variance": -pulled * left / s.variance}

    return pb.autograd_function(forward, backward, name="reconciled_forecasts")


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(-2, 0, (3, 4))),
            t(rng.uniform(0.5, 2, (3, 4))),
            t(rng.normal(0, 2, (3, 4))),
        ),
        {"level": 0.8, "reduction": "mean"},
    )
)
def interval_score():
    class IntervalScore(pb.Function):
        """Width of intervals of the level, and what is outside by 2 / (1 - level) times as much.

        reduction: "none", "sum", or "mean".
        """

        @staticmethod
        def forward(ctx, lower, upper, actual, level=0.9, reduction="none"):
            if bool((lower > upper).any()):
                raise ValueError("lower must not be above upper")
            if not 0 <= level < 1 or reduction not in ("none", "sum", "mean"):
                raise ValueError("a level below 1 and a reduction by its name required")
            rate = 2 / (1 - level)
            ctx.save_for_backward(below=actual < lower, above=actual > upper)
            ctx.rate, ctx.shape = rate, actual.shape
            ctx.share = 1 / max(int(np.prod(ctx.shape)), 1) if reduction == "mean" else 1.0
            under, over = (lower - actual).clip(min=0), (actual - upper).clip(min=0)
            score = upper - lower + rate * (under + over)
            return score if reduction == "none" else score.sum() * ctx.share

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            below, above = (x.to(grad_output.dtype) for x in ctx.saved_variables)
            g = grad_output * ctx.share + pb.zeros(*ctx.shape, dtype=grad_output.dtype)
            return {
                "actual": g * ctx.rate * (above - below),
                "lower": g * (ctx.rate * below - 1),
                "upper": g * (1 - ctx.rate * above),
            }

    return IntervalScore.apply


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 2, 5)), t(rng.uniform(0.1, 0.3, 5)), t(0.3)), {}))
def box_cox_mean():
    def log_inverse(w, power):
        """Return log(1 + power w) / power and its slopes, by series where the power is small."""
        base = 1 + power * w
        if abs(power) < 1e-4:
            value = w - power * w**2 / 2 + power**2 * w**3 / 3
            return value, 1 / base, -(w**2) / 2 + 2 * power * w**3 / 3 - 0.75 * power**2 * w**4
        value = np.log1p(power * w) / power
        return value, 1 / base, (w / base - value) / power

    @pb.autograd_function
    def box_cox_mean(ctx, transformed, variance, power):
        """Mean forecast on the original scale, from mean and variance after a Box-Cox transform."""
        w, v, p = transformed.numpy(), variance.numpy(), power.item()
        if (1 + p * w <= 0).any():
            raise ValueError("1 + power * transformed must be positive")
        ctx.save_for_backward(transformed=transformed, variance=variance, power=power)
        return pb.asarray(np.exp(log_inverse(w, p)[0]) * (1 + v * (1 - p) / (2 * (1 + p * w) ** 2)))

    @box_cox_mean.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        w, v, p = (x.numpy() for x in ctx.saved_variables)
        value, by_w, by_p = log_inverse(w, p)
        base = 1 + p * w
        bias = v * (1 - p) / (2 * base**2)
        flow = grad_output.numpy() * np.exp(value)
        slope_p = by_p * (1 + bias) - v / (2 * base**2) - 2 * bias * w / base
        return {
            "transformed": pb.asarray(flow * (by_w * (1 + bias) - 2 * bias * p / base)),
            "variance": pb.asarray(flow * (1 - p) / (2 * base**2)),
            "power": pb.asarray(np.array(flow @ slope_p)),
        }

    return box_cox_mean


@BOOK.right(
    lambda rng: ((t(5 * 1.1 ** np.arange(6) * rng.uniform(0.9, 1.1, 6)), t(0.4), t(0.3)), {})
)
def exponential_trend():
    def step(y, l0, b0, a, b):
        l1 = a * y + (1 - a) * l0 * b0
        return l1, b * l1 / l0 + (1 - b) * b0

    @pb.autograd_function
    def exponential_trend(ctx, series, alpha, beta, horizon=2):
        """Forecasts 1 to `horizon` steps ahead by smoothing of a level and its growth factor."""
        y, a, b = series.numpy(), alpha.item(), beta.item()
        if len(y) < 2 or (y <= 0).any() or not (0 <= a <= 1 and 0 <= b <= 1):
            raise ValueError("two positive values or more, and weights in 0 to 1 required")
        ctx.path = [(y[0], y[1] / y[0])]
        for value in y[1:]:
            ctx.path.append(step(value, *ctx.path[-1], a, b))
        ctx.save_for_backward(series=series, alpha=alpha, beta=beta)
        ctx.ahead = np.arange(1, horizon + 1)
        level, growth = ctx.path[-1]
        return pb.asarray(level * growth**ctx.ahead)

    @exponential_trend.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        y, a, b = s.series.numpy(), s.alpha.item(), s.beta.item()
        level, growth = ctx.path[-1]
        to_l = gn @ growth**ctx.ahead
        to_b = gn @ (ctx.ahead * level * growth ** (ctx.ahead - 1))
        by_y, by_a, by_b = np.zeros_like(y), 0.0, 0.0
        for k in range(len(y) - 1, 0, -1):
            (l0, b0), (l1, _) = ctx.path[k - 1], ctx.path[k]
            to_l += to_b * b / l0
            by_b += to_b * (l1 / l0 - b0)
            by_a += to_l * (y[k] - l0 * b0)
            by_y[k] = a * to_l
            to_l, to_b = (
                (1 - a) * b0 * to_l - to_b * b * l1 / l0**2,
                (1 - b) * to_b + (1 - a) * l0 * to_l,
            )
        by_y[0] = to_l - to_b * y[1] / y[0] ** 2
        by_y[1] += to_b / y[0]
        return {
            "series": pb.asarray(by_y),
            "alpha": pb.asarray(np.array(by_a)),
            "beta": pb.asarray(np.array(by_b)),
        }

    return exponential_trend
