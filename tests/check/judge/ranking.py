"""Sorting and ranking: order statistics, soft ranks, isotonic fits, ranking losses."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    AXIS,
    FACTOR,
    MASK,
    MISSING,
    ODD,
    SIGN,
    TIES,
    UNSORTED,
    ZERO,
    Book,
    at,
    t,
)

BOOK = Book("ranking")


def vector(n=6):
    return lambda rng: ((t(rng.normal(size=n)),), {})


@BOOK.wrong(
    vector(),
    "the gradient is put in place by the order itself where the inverse order is needed",
    UNSORTED,
    r"inverse",
)
def sort_values():
    @pb.autograd_function
    def sort_values(ctx, x):
        order = np.argsort(x.numpy(), kind="stable")
        ctx.order = order
        return pb.asarray(x.numpy()[order])

    @sort_values.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(g.numpy()[ctx.order])

    return sort_values


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 5))),), {"descending": True}))
def sort_rows():
    @pb.autograd_function
    def sort_rows(ctx, x: pb.Tensor, descending: bool = False):
        """Sort the rows of x: (n, d); returns values and indices, both (n, d)."""
        key = -x.numpy() if descending else x.numpy()
        order = np.argsort(key, axis=1, kind="stable")
        ctx.order = order
        return pb.asarray(np.take_along_axis(x.numpy(), order, axis=1)), pb.asarray(order)

    @sort_rows.backward
    @pb.once_differentiable
    def _(ctx, grad_values, grad_indices):
        grad = np.empty(ctx.order.shape)
        np.put_along_axis(grad, ctx.order, grad_values.numpy(), axis=1)
        return {"x": pb.asarray(grad)}

    return sort_rows


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))), 2), {}),
    "backward places the gradients along the last axis, whichever axis was used",
    AXIS,
    at("axis"),
    where="axis=0 (an error of shape or wrong places)",
    shows=lambda rng: ((t(rng.normal(size=(4, 4))), 4), {"axis": 0}),
)
def top_k():
    def forward(ctx, scores, k, axis=-1):
        s = scores.numpy()
        index = np.argsort(-s, axis=axis).take(np.arange(k), axis=axis)
        ctx.index, ctx.shape = index, s.shape
        return pb.asarray(np.take_along_axis(s, index, axis=axis)), pb.asarray(index)

    @pb.once_differentiable
    def backward(ctx, g, g_index):
        grad = np.zeros(ctx.shape)
        np.put_along_axis(grad, ctx.index, g.numpy(), axis=-1)
        return {"scores": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="top_k")


@BOOK.wrong(
    vector(6),
    "the gradient of the lower and the upper neighbour are weighted the wrong way round",
    r"\bweights?\b|neighbou?r|interpolat",
    at("q"),
    where="q other than 0.5",
    shows=lambda rng: ((t(rng.normal(size=6)),), {"q": 0.35}),
)
def quantile():
    @pb.autograd_function
    def quantile(ctx, sample: pb.Tensor, q: float = 0.5) -> pb.Tensor:
        """Linear quantile of sample: (n,)."""
        x = sample.numpy()
        order = np.argsort(x)
        at = q * (len(x) - 1)
        k = min(int(at), len(x) - 2)
        w = at - k
        ctx.save_for_backward(i=order[k], j=order[k + 1], w=w, n=len(x))
        return pb.asarray((1 - w) * x[order[k]] + w * x[order[k + 1]])

    @quantile.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, grad = ctx.saved_variables, np.zeros(ctx.saved_variables.n)
        grad[s.i], grad[s.j] = s.w, 1 - s.w
        return {"sample": pb.asarray(grad * g.numpy())}

    return quantile


@BOOK.wrong(
    vector(7),
    "for an even number of elements only one of the two middle ones gets a gradient",
    ODD,
    MISSING,
    r"\bmiddle\b",
    where="even length",
    shows=vector(8),
)
def median():
    @pb.autograd_function
    def median(ctx, x):
        ctx.save_for_backward(order=np.argsort(x.numpy()))
        return pb.asarray(np.median(x.numpy()))

    @median.backward
    @pb.once_differentiable
    def _(ctx, g):
        order = ctx.saved_variables.order
        grad = np.zeros(len(order))
        grad[order[len(order) // 2]] = g.item()
        return {"x": pb.asarray(grad)}

    return median


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 6))),), {"axis": 1}))
def median_along():
    class Median(pb.Function):
        @staticmethod
        def forward(ctx, x, axis=0):
            xn = x.numpy()
            n, order = xn.shape[axis], np.argsort(xn, axis=axis)
            ctx.low = order.take([(n - 1) // 2], axis=axis)
            ctx.high, ctx.shape, ctx.axis = order.take([n // 2], axis=axis), xn.shape, axis
            return pb.asarray(np.median(xn, axis=axis))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            grad, half = np.zeros(ctx.shape), np.expand_dims(g.numpy(), ctx.axis) / 2
            for index in (ctx.low, ctx.high):
                old = np.take_along_axis(grad, index, ctx.axis)
                np.put_along_axis(grad, index, old + half, ctx.axis)
            return pb.asarray(grad), None

    return Median.apply


def pav(y):
    """Pool adjacent violators; returns the fit and the block of each element."""
    blocks = []
    for i, v in enumerate(y):
        blocks.append([v, 1, [i]])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            v2, n2, m2 = blocks.pop()
            v1, n1, m1 = blocks.pop()
            blocks.append([(v1 * n1 + v2 * n2) / (n1 + n2), n1 + n2, m1 + m2])
    fit, label = np.empty(len(y)), np.empty(len(y), int)
    for k, (value, _, members) in enumerate(blocks):
        fit[members], label[members] = value, k
    return fit, label


@BOOK.wrong(
    vector(8),
    "the gradient of a block is its sum and not its mean",
    FACTOR,
    r"\bmean\b|\bcounts?\b|block",
)
def isotonic_fit():
    @pb.autograd_function
    def isotonic_fit(ctx, y):
        fit, label = pav(y.numpy())
        ctx.label = label
        return pb.asarray(fit)

    @isotonic_fit.backward
    @pb.once_differentiable
    def _(ctx, g):
        sums = np.bincount(ctx.label, weights=g.numpy())
        return {"y": pb.asarray(sums[ctx.label])}

    return isotonic_fit


@BOOK.right(vector(9))
def isotonic_regression():
    def forward(ctx, y: pb.Tensor, increasing: bool = True) -> pb.Tensor:
        """Least squares fit that never falls (never rises); y: (n,)."""
        sign = 1 if increasing else -1
        fit, label = pav(sign * y.numpy())
        ctx.label = label
        return pb.asarray(sign * fit)

    @pb.once_differentiable
    def backward(ctx, g):
        means = np.bincount(ctx.label, weights=g.numpy()) / np.bincount(ctx.label)
        return {"y": pb.asarray(means[ctx.label])}

    return pb.autograd_function(forward, backward, name="isotonic_regression")


@BOOK.wrong(
    lambda rng: ((t(np.cumsum(rng.random(6))),), {}),
    "the gradient stays at the place of the output, not at that of the maximum",
    UNSORTED,
    r"\bmaxim|\bplace\b|\bargmax\b",
    where="not increasing",
    shows=vector(6),
)
def cumulative_max():
    @pb.autograd_function
    def cumulative_max(ctx, x):
        """Running maximum of x: (n,)."""
        out = np.maximum.accumulate(x.numpy())
        ctx.kept = out == x.numpy()
        return pb.asarray(out)

    @cumulative_max.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": pb.asarray(np.where(ctx.kept, g.numpy(), 0.0))}

    return cumulative_max


@BOOK.right(vector(7))
def running_max():
    @pb.autograd_function
    def running_max(ctx, series):
        x = series.numpy()
        best = np.maximum.accumulate(x)
        new = np.r_[True, x[1:] > best[:-1]]
        ctx.owner = np.maximum.accumulate(np.where(new, np.arange(len(x)), 0))
        return pb.asarray(best), pb.asarray(ctx.owner.copy())

    @running_max.backward
    @pb.once_differentiable
    def _(ctx, g, g_owner):
        grad = np.bincount(ctx.owner, weights=g.numpy(), minlength=len(ctx.owner))
        return {"series": pb.asarray(grad)}

    return running_max


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@BOOK.wrong(
    vector(5),
    "only the gradient by the first score of a pair is there, not by the second",
    MISSING,
    r"half of|\bpairs?\b|\bterm\b",
)
def soft_rank():
    @pb.autograd_function
    def soft_rank(ctx, scores: pb.Tensor, temperature: float = 1.0) -> pb.Tensor:
        """rank_i = 0.5 + sum over j of sigmoid((s_j - s_i) / temperature); scores: (n,)."""
        s = scores.numpy()
        P = sigmoid((s[None, :] - s[:, None]) / temperature)
        ctx.save_for_backward(slope=P * (1 - P) / temperature)
        return pb.asarray(P.sum(axis=1) + 0.5)

    @soft_rank.backward
    @pb.once_differentiable
    def _(ctx, g):
        slope = ctx.saved_variables.slope
        return {"scores": pb.asarray(-g.numpy() * slope.sum(axis=1))}

    return soft_rank


@BOOK.wrong(
    vector(5),
    "the temperature's factor is missing in the gradient",
    FACTOR,
    at("temperature"),
    where="temperature other than 1",
    shows=lambda rng: ((t(rng.normal(size=5)),), {"temperature": 0.5}),
)
def soft_sort():
    @pb.autograd_function
    def soft_sort(ctx, s, temperature=1.0):
        x = s.numpy()
        L = -np.abs(np.sort(x)[::-1][:, None] - x[None, :]) / temperature
        P = np.exp(L - L.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        ctx.save_for_backward(s=s, P=P, order=np.argsort(-x))
        return pb.asarray(P)

    @soft_sort.backward
    @pb.once_differentiable
    def _(ctx, g):
        v = ctx.saved_variables
        x, P, order, gn = v.s.numpy(), v.P, v.order, g.numpy()
        gL = P * (gn - (P * gn).sum(axis=1, keepdims=True))
        sign = np.sign(x[order][:, None] - x[None, :])
        grad = (gL * sign).sum(axis=0)
        grad[order] -= (gL * sign).sum(axis=1)
        return {"s": pb.asarray(grad)}

    return soft_sort


@BOOK.right(lambda rng: ((t(rng.normal(size=5)), np.array([3.0, 0, 1, 2, 0])), {"alpha": 2.0}))
def approx_ndcg():
    @pb.autograd_function
    def approx_ndcg(ctx, scores, relevance, alpha=1.0):
        """A smooth NDCG; scores and relevance: (n,)."""
        s, gain = scores.numpy(), 2.0**relevance - 1
        P = sigmoid(alpha * (s[None, :] - s[:, None]))
        rank = P.sum(axis=1) + 0.5
        best = (np.sort(gain)[::-1] / np.log2(np.arange(len(s)) + 2)).sum()
        if best == 0:
            raise ValueError("approx_ndcg: at least one relevance must be positive")
        ctx.save_for_backward(P=P, rank=rank, gain=gain / best, alpha=alpha)
        return pb.asarray((gain / best / np.log2(1 + rank)).sum())

    @approx_ndcg.backward
    @pb.once_differentiable
    def _(ctx, g):
        v = ctx.saved_variables
        by_rank = -v.gain * np.log(2) / (np.log1p(v.rank) ** 2 * (1 + v.rank))
        slope = v.alpha * v.P * (1 - v.P)
        return {"scores": pb.asarray(g.item() * (by_rank @ slope - by_rank * slope.sum(axis=1)))}

    return approx_ndcg


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), np.array([2, 0, 1, 2, 0])), {}),
    "both items of a pair get the same sign",
    SIGN,
)
def pairwise_logistic():
    def forward(ctx, scores, labels):
        s = scores.numpy()
        better = labels[:, None] > labels[None, :]
        ctx.slope = better * -sigmoid(s[None, :] - s[:, None])
        return pb.asarray((better * np.log1p(np.exp(s[None, :] - s[:, None]))).sum())

    @pb.once_differentiable
    def backward(ctx, g):
        return {"scores": pb.asarray(g.item() * (ctx.slope.sum(axis=1) + ctx.slope.sum(axis=0)))}

    return pb.autograd_function(forward, backward, name="pairwise_logistic")


@BOOK.wrong(
    vector(6),
    "tied maxima all get the full gradient",
    TIES,
    FACTOR,
    where="ties",
    shows=lambda rng: ((t(np.array([1.0, 3.0, 3.0, 2.0])),), {}),
)
def max_sharing():
    @pb.autograd_function
    def max_sharing(ctx, x):
        """The largest element; tied ones count as their mean."""
        xn = x.numpy()
        weight = (xn == xn.max()).astype(float)
        ctx.weight = weight
        return pb.asarray((weight * xn).sum() / weight.sum())

    @max_sharing.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": pb.asarray(g.item() * ctx.weight)}

    return max_sharing


@BOOK.right(lambda rng: ((t(np.array([1.0, 2.0, 2.0, -1.0, 2.0])),), {}))
def max_first():
    @pb.autograd_function
    def max_first(ctx, x):
        """The largest element; the first of tied ones gets the gradient."""
        ctx.at, ctx.n = int(x.numpy().argmax()), len(x)
        return x[ctx.at], ctx.at

    @max_first.backward
    def _(ctx, g, g_at=None):
        return {"x": g * pb.asarray(np.eye(ctx.n)[ctx.at])}

    return max_first


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 5))), rng.random((4, 5)) > 0.3), {}),
    "the gradient goes to the entries that the mask leaves out",
    MASK,
)
def fill_scores():
    @pb.autograd_function
    def fill_scores(ctx, scores, valid, fill=-1e9):
        """Set the scores that are not valid to `fill`."""
        ctx.valid = valid
        return pb.asarray(np.where(valid, scores.numpy(), fill))

    @fill_scores.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"scores": pb.asarray(np.where(ctx.valid, 0.0, g.numpy()))}

    return fill_scores


@BOOK.right(lambda rng: ((t(rng.normal(size=6)),), {"trim": 1}))
def trimmed_mean():
    @pb.autograd_function
    def trimmed_mean(ctx, x, trim: int = 0):
        """Mean without the `trim` smallest and largest of x: (n,)."""
        if 2 * trim >= len(x):
            raise ValueError("trimmed_mean: nothing is left")
        order = np.argsort(x.numpy(), kind="stable")[trim : len(x) - trim]
        weight = np.zeros(len(x))
        weight[order] = 1 / len(order)
        ctx.weight = weight.tolist()
        return pb.asarray(weight @ x.numpy())

    @trimmed_mean.backward
    def _(ctx, g):
        return {"x": g * pb.asarray(np.array(ctx.weight))}

    return trimmed_mean


@BOOK.wrong(
    lambda rng: ((t(np.sort(rng.normal(size=6))), t(rng.random(6) + 0.5)), {}),
    "the gradient by the weights assumes that values come sorted",
    UNSORTED,
    where="values not sorted",
    shows=lambda rng: ((t(rng.normal(size=6)), t(rng.random(6) + 0.5)), {}),
)
def weighted_gini():
    @pb.autograd_function
    def weighted_gini(ctx, values, weights):
        """Sum of w_(i) * v_(i) * i over the sorted values; values and weights: (n,)."""
        v, w = values.numpy(), weights.numpy()
        order = np.argsort(v)
        ctx.save_for_backward(values=values, weights=weights, order=order)
        return pb.asarray((w[order] * v[order] * np.arange(1, len(v) + 1)).sum())

    @weighted_gini.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        place = np.empty(len(s.order))
        place[s.order] = np.arange(1, len(s.order) + 1)
        by_weight = s.values.numpy() * np.arange(1, len(s.order) + 1)
        return {
            "values": pb.asarray(g.item() * s.weights.numpy() * place),
            "weights": pb.asarray(g.item() * by_weight),
        }

    return weighted_gini


@BOOK.wrong(
    vector(5),
    "the part of the gradient inside the ball is set to zero as well",
    ZERO,
    where="inside the ball",
    shows=lambda rng: ((t(0.05 * rng.normal(size=5)),), {"radius": 2.0}),
)
def project_l1():
    @pb.autograd_function
    def project_l1(ctx, x, radius=1.0):
        """Project on the l1 ball by sorting the magnitudes."""
        xn = x.numpy()
        u = np.sort(np.abs(xn))[::-1]
        excess = (np.cumsum(u) - radius) / np.arange(1, len(u) + 1)
        theta = max(excess[np.flatnonzero(u > excess)[-1]], 0.0)
        ctx.sign = np.sign(xn) * (np.abs(xn) > theta)
        return pb.asarray(np.sign(xn) * np.maximum(np.abs(xn) - theta, 0))

    @project_l1.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.sign, g.numpy()
        active = s != 0
        return {"x": pb.asarray(active * gn - s * (s @ gn) / max(active.sum(), 1))}

    return project_l1
