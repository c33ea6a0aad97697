"""Tables: group-by, pivot, quantiles of groups, encodings of columns, rolling windows."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, SWAPPED, Book, at, t

BOOK = Book("tables")

GROUPS = np.array([0, 1, 0, 2, 2, 1, 0, 2])


def grouped(groups=GROUPS, **settings):
    return lambda rng: ((t(rng.normal(size=len(groups))), groups), settings)


def group_means(x, ids):
    counts = np.bincount(ids)
    return np.bincount(ids, weights=x) / np.maximum(counts, 1), counts


@BOOK.wrong(
    grouped(),
    "ddof is forgotten in the gradient: the factor is 2 / n instead of 2 / (n - ddof)",
    FACTOR,
    at("ddof"),
    r"\bddof\b.{0,20}(forgot|ignor|left)",
    where="ddof=1",
    shows=grouped(ddof=1),
)
def group_variance():
    @pb.autograd_function
    def group_variance(ctx, x: pb.Tensor, ids: np.ndarray, ddof: int = 0) -> pb.Tensor:
        """Variance of x: (n,) in each group; ids: (n,) integers from 0."""
        means, counts = group_means(x.numpy(), ids)
        centred = x.numpy() - means[ids]
        ctx.save_for_backward(centred=centred, counts=counts, ids=ids)
        return pb.asarray(np.bincount(ids, weights=centred**2) / (counts - ddof))

    @group_variance.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        return {"x": pb.asarray(2 * s.centred * (g.numpy() / s.counts)[s.ids])}

    return group_variance


@BOOK.right(grouped(np.array([1, 0, 1, 1, 0, 3, 0, 3, 3]), eps=1e-3))
def group_zscore():
    class ZScore(pb.Function):
        """Centre and scale each group by its own mean and (biased) deviation."""

        @staticmethod
        def forward(ctx, x, ids, eps=0.0):
            means, _ = group_means(x.numpy(), ids)
            centred = x.numpy() - means[ids]
            scale = np.sqrt(group_means(centred**2, ids)[0] + eps)
            z = centred / scale[ids]
            ctx.save_for_backward(z=z.copy(), scale=scale, ids=ids)
            return pb.asarray(z)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            z, scale, ids = ctx.saved_variables
            g = grad_output.numpy()
            mean, slope = group_means(g, ids)[0], group_means(g * z, ids)[0]
            return {"x": pb.asarray((g - mean[ids] - z * slope[ids]) / scale[ids])}

    return ZScore.apply


def cells(rng):
    row, column = np.array([0, 0, 1, 2, 0, 2, 2]), np.array([1, 1, 0, 2, 0, 2, 2])
    return (t(rng.normal(size=7)), row, column), {}


@BOOK.wrong(
    cells,
    "each value is divided by the count of its row, a wrong factor: the cell's count is meant",
    FACTOR,
    r"\bcounts?\b",
)
def pivot_mean():
    @pb.autograd_function
    def pivot_mean(ctx, values, row, column):
        shape = row.max() + 1, column.max() + 1
        total, counts = np.zeros(shape), np.zeros(shape)
        np.add.at(total, (row, column), values.numpy())
        np.add.at(counts, (row, column), 1)
        ctx.save_for_backward(row=row, column=column, counts=counts)
        return pb.asarray(total / np.maximum(counts, 1))

    @pivot_mean.backward
    @pb.once_differentiable
    def _(ctx, grad):
        row, column, counts = ctx.saved_variables
        return {"values": pb.asarray(grad.numpy()[row, column] / counts.sum(axis=1)[row])}

    return pivot_mean


@BOOK.right(lambda rng: (cells(rng)[0], {"agg": "max", "fill": -1.0}))
def pivot_table():
    def shares(x, row, column, agg):
        """How much each value counts in its cell."""
        cell = row * (column.max() + 1) + column
        if agg == "sum":
            return np.ones(len(x))
        if agg == "mean":
            return 1 / np.bincount(cell)[cell]
        if agg not in ("max", "first"):
            raise ValueError(f"pivot_table: agg must be sum, mean, max or first, got {agg!r}")
        # the first of equal values stands for its cell
        rank = np.lexsort((np.arange(len(x)), -x if agg == "max" else np.zeros(len(x)), cell))
        chosen = rank[np.unique(cell[rank], return_index=True)[1]]
        share = np.zeros(len(x))
        share[chosen] = 1
        return share

    @pb.autograd_function
    def pivot_table(ctx, values, row, column, agg="sum", fill=0.0):
        x = values.numpy()
        share = shares(x, row, column, agg)
        out = np.zeros((row.max() + 1, column.max() + 1))
        np.add.at(out, (row, column), share * x)
        empty = np.ones(out.shape, bool)
        empty[row, column] = False
        out[empty] = fill
        ctx.row, ctx.column, ctx.share = row, column, share
        return pb.asarray(out)

    @pivot_table.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"values": pb.asarray(g.numpy()[ctx.row, ctx.column] * ctx.share)}

    return pivot_table


PAIRED = np.array([0, 1, 0, 1, 1, 1, 2, 2])


@BOOK.wrong(
    grouped(PAIRED, q=0.5),
    "the weights of the lower and the upper neighbour are exchanged",
    SWAPPED,
    at("q"),
    where="q not halfway between two values",
    shows=grouped(PAIRED, q=0.8),
)
def group_quantile():
    @pb.autograd_function
    def group_quantile(ctx, x, ids, q=0.5):
        """Quantile of each group with linear interpolation; x, ids: (n,)."""
        xn, picks = x.numpy(), []
        for group in range(ids.max() + 1):
            members = np.flatnonzero(ids == group)
            members = members[np.argsort(xn[members], kind="stable")]
            place = q * (len(members) - 1)
            low = int(place)
            picks.append((members[low], members[min(low + 1, len(members) - 1)], place - low))
        ctx.picks, ctx.n = picks, len(x)
        return pb.asarray(np.array([xn[a] + w * (xn[b] - xn[a]) for a, b, w in picks]))

    @group_quantile.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = np.zeros(ctx.n)
        for g, (low, high, weight) in zip(grad_output.numpy(), ctx.picks, strict=True):
            grad[low] += weight * g
            grad[high] += (1 - weight) * g
        return {"x": pb.asarray(grad)}

    return group_quantile


@BOOK.right(lambda rng: ((t(rng.normal(size=(9, 2))),), {"weights": 0.2 + rng.random(9)}))
def weighted_median():
    def forward(ctx, x, weights):
        """Lower weighted median of each column of x: (n, d), and the rows where they stand."""
        order = np.argsort(x.numpy(), axis=0, kind="stable")
        passed = np.cumsum(weights[order], axis=0) >= weights.sum() / 2
        row = np.take_along_axis(order, passed.argmax(axis=0)[None], axis=0)
        ctx.row, ctx.shape = row, x.shape
        return pb.asarray(np.take_along_axis(x.numpy(), row, axis=0)[0]), pb.asarray(row[0].copy())

    @pb.once_differentiable
    def backward(ctx, g_value, g_row):
        grad = np.zeros(ctx.shape)
        np.put_along_axis(grad, ctx.row, g_value.numpy()[None], axis=0)
        return {"x": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="weighted_median")


@BOOK.wrong(
    grouped(),
    "the prior depends on the targets too; its share of the gradient is missing",
    MISSING,
    at("smoothing"),
    r"\bprior\b",
    where="smoothing above 0",
    shows=grouped(smoothing=2.0),
)
def target_encoding():
    @pb.autograd_function
    def target_encoding(ctx, target, category, smoothing=0.0):
        """Mean target of each row's category, drawn towards the mean of all by `smoothing`."""
        y, counts = target.numpy(), np.bincount(category)
        total = np.bincount(category, weights=y) + smoothing * y.mean()
        ctx.save_for_backward(category=category, weight=1 / (counts + smoothing))
        return pb.asarray((total / (counts + smoothing))[category])

    @target_encoding.backward
    @pb.once_differentiable
    def _(ctx, g):
        category, weight = ctx.saved_variables
        by_category = np.bincount(category, weights=g.numpy()) * weight
        return {"target": pb.asarray(by_category[category])}

    return target_encoding


@BOOK.right(lambda rng: ((t(3 * rng.random(7)), t(np.array([0.2, 0.7, 1.5, 2.9]))), {}))
def piecewise_encoding():
    @pb.autograd_function
    def piecewise_encoding(ctx, x, edges):
        """How far x: (n,) has passed each bin of rising edges: (k + 1,), from 0 to 1: (n, k)."""
        e = edges.numpy()
        if (np.diff(e) <= 0).any():
            raise ValueError("piecewise_encoding: edges must rise")
        width = np.diff(e)
        u = (x.numpy()[:, None] - e[:-1]) / width
        ctx.save_for_backward(u=u, width=width)
        return pb.asarray(np.clip(u, 0, 1))

    @piecewise_encoding.backward
    @pb.once_differentiable
    def _(ctx, g):
        u, width = ctx.saved_variables
        inside = g.numpy() * ((u > 0) & (u < 1)) / width
        by_edges = np.zeros(len(width) + 1)
        by_edges[:-1] -= (inside * (1 - u)).sum(axis=0)
        by_edges[1:] -= (inside * u).sum(axis=0)
        return {"x": pb.asarray(inside.sum(axis=1)), "edges": pb.asarray(by_edges)}

    return piecewise_encoding


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=9)),), {"window": 4}),
    "the shorter windows at the start are scaled by 1 / window as well, a wrong factor there",
    FACTOR,
    r"at the (start|edge|beginning)|first (rows|elements)|\bedges?\b",
)
def rolling_mean():
    def counted(n, window):
        return np.minimum(np.arange(1, n + 1), window)

    @pb.autograd_function
    def rolling_mean(ctx, series: pb.Tensor, window: int = 3) -> pb.Tensor:
        """Mean of the last `window` values, of fewer at the start; series: (n,)."""
        total = np.cumsum(series.numpy())
        total[window:] -= total[:-window].copy()
        ctx.window = window
        return pb.asarray(total / counted(len(total), window))

    @rolling_mean.backward
    @pb.once_differentiable
    def _(ctx, g):
        total = np.cumsum(g.numpy()[::-1])
        total[ctx.window :] -= total[: -ctx.window].copy()
        return {"series": pb.asarray(total[::-1] / ctx.window)}

    return rolling_mean


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=10)),), {"share": 0.2}),
    "the values that stand for the clipped ones lack what flows to them from those",
    MISSING,
    r"\bclip|\bclamp|quantile|order statistic",
)
def winsorise():
    def forward(ctx, x, share=0.1):
        """Replace the lowest and highest share of x: (n,) by the next value inside."""
        xn, k = x.numpy(), int(share * len(x))
        ordered = np.sort(xn)
        low, high = ordered[k], ordered[len(xn) - 1 - k]
        ctx.save_for_backward(inside=(xn >= low) & (xn <= high))
        return pb.asarray(np.clip(xn, low, high))

    def backward(ctx, g):
        return {"x": g * pb.asarray(ctx.saved_variables.inside.astype(float))}

    return pb.autograd_function(forward, backward, name="winsorise")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(6, 2))), t(0.3)),
        {"valid": np.array([[0, 1], [1, 0], [0, 0], [1, 1], [0, 0], [0, 1]], bool)},
    )
)
def forward_fill():
    @pb.autograd_function
    def forward_fill(ctx, x, start, valid):
        """Carry the last valid value of each column on; `start` stands before the first one."""
        xn = x.numpy()
        rows = np.where(valid, np.arange(len(xn))[:, None], -1)
        source = np.maximum.accumulate(rows, axis=0)
        ctx.save_for_backward(source=source)
        seen = np.take_along_axis(xn, np.maximum(source, 0), axis=0)
        return pb.asarray(np.where(source >= 0, seen, start.item()))

    @forward_fill.backward
    @pb.once_differentiable
    def _(ctx, g):
        source, gn = ctx.saved_variables.source, g.numpy()
        grad = np.zeros(gn.shape)
        row, column = np.nonzero(source >= 0)
        np.add.at(grad, (source[row, column], column), gn[row, column])
        return {"x": pb.asarray(grad), "start": gn[source < 0].sum()}

    return forward_fill
