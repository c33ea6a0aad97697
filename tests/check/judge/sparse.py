"""Sparse: CSR and COO products, segments, bags of embeddings, messages on graphs."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    AXIS,
    FACTOR,
    MISSING,
    NONE,
    REPEATED,
    SUMMED,
    SWAPPED,
    TRANSPOSED,
    ZERO,
    Book,
    at,
    t,
)

BOOK = Book("sparse")

ROWS = np.array([0, 0, 1, 2, 3, 3])
COLS = np.array([1, 3, 0, 2, 1, 4])


def coo(rng):
    return (t(rng.normal(size=6)), ROWS, COLS, t(rng.normal(size=5))), {"n_rows": 4}


@BOOK.wrong(
    coo,
    "rows and columns are exchanged in the gradient of the vector",
    SWAPPED,
    TRANSPOSED,
)
def coo_matvec():
    @pb.autograd_function
    def coo_matvec(ctx, data, rows, cols, x, n_rows):
        d, xn = data.numpy(), x.numpy()
        y = np.bincount(rows, weights=d * xn[cols], minlength=n_rows)
        ctx.save_for_backward(data=data, x=x, rows=rows, cols=cols)
        return pb.asarray(y)

    @coo_matvec.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        d, x = s.data.numpy(), s.x.numpy()
        full = np.concatenate([gn, np.zeros(max(0, len(x) - len(gn)))])
        grad_x = np.bincount(s.rows, weights=d * full[s.cols], minlength=len(x))
        return {"data": pb.asarray(gn[s.rows] * x[s.cols]), "x": pb.asarray(grad_x)}

    return coo_matvec


def csr(rng):
    indptr, indices = np.array([0, 2, 2, 5, 6]), np.array([0, 3, 1, 2, 3, 0])
    return (t(rng.normal(size=6)), indices, indptr, t(rng.normal(size=(4, 3)))), {}


@BOOK.right(csr)
def csr_matmul():
    @pb.autograd_function
    def csr_matmul(ctx, data: pb.Tensor, indices, indptr, dense: pb.Tensor) -> pb.Tensor:
        """Multiply a CSR matrix by dense: (k, n)."""
        d, D = data.numpy(), dense.numpy()
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        out = np.zeros((len(indptr) - 1, D.shape[1]))
        np.add.at(out, rows, d[:, None] * D[indices])
        ctx.save_for_backward(data=data, dense=dense, rows=rows, indices=indices)
        return pb.asarray(out)

    @csr_matmul.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        grad_dense = np.zeros(s.dense.shape)
        np.add.at(grad_dense, s.indices, s.data.numpy()[:, None] * gn[s.rows])
        grad_data = (gn[s.rows] * s.dense.numpy()[s.indices]).sum(axis=1)
        return {"data": pb.asarray(grad_data), "dense": pb.asarray(grad_dense)}

    return csr_matmul


@BOOK.wrong(
    lambda rng: (csr(rng)[0], {}),
    "the gradient of the data takes the first column of the product only",
    MISSING,
    SUMMED,
    r"columns?",
)
def spmm():
    def forward(ctx, values, indices, indptr, B):
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        S = np.zeros((len(indptr) - 1, B.shape[0]))
        S[rows, indices] = values.numpy()
        ctx.save_for_backward(S=S, rows=rows, cols=indices, B=B)
        return pb.asarray(S @ B.numpy())

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        B = s.B.numpy()
        return {
            "values": pb.asarray(gn[s.rows, 0] * B[s.cols, 0]),
            "B": pb.asarray(s.S.T @ gn),
        }

    return pb.autograd_function(forward, backward, name="spmm")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 2))), np.array([0, 0, 1, 2, 2, 2])), {}),
    "the mean's gradient is not divided by the number in the segment",
    FACTOR,
    at("reduce"),
    r"\bmean\b|\bcounts?\b",
    where='reduce="mean"',
    shows=lambda rng: (
        (t(rng.normal(size=(6, 2))), np.array([0, 0, 1, 2, 2, 2])),
        {"reduce": "mean"},
    ),
)
def segment_reduce():
    @pb.autograd_function
    def segment_reduce(ctx, x: pb.Tensor, segments, reduce: str = "sum") -> pb.Tensor:
        """x: (n, d), segments: (n,) integers from 0; reduce: sum or mean."""
        n = int(segments.max()) + 1
        out = np.zeros((n, x.shape[1]))
        np.add.at(out, segments, x.numpy())
        if reduce == "mean":
            out /= np.maximum(np.bincount(segments, minlength=n), 1)[:, None]
        ctx.segments = segments
        return pb.asarray(out)

    @segment_reduce.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"x": pb.asarray(grad_output.numpy()[ctx.segments])}

    return segment_reduce


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(7, 2))), np.array([0, 2, 0, 2, 2, 4, 0])),
        {"num_segments": 6, "reduce": "mean"},
    )
)
def segment_mean():
    class Segment(pb.Function):
        @staticmethod
        def forward(ctx, x, ids, num_segments=None, reduce="sum"):
            n = int(ids.max()) + 1 if num_segments is None else num_segments
            if ids.min() < 0 or ids.max() >= n:
                raise IndexError("segment ids must lie in [0, num_segments)")
            counts = np.maximum(np.bincount(ids, minlength=n), 1)
            ctx.ids, ctx.scale = ids, (1 / counts if reduce == "mean" else np.ones(n))
            out = np.zeros((n, x.shape[1]), x.numpy().dtype)
            np.add.at(out, ids, x.numpy())
            return pb.asarray(out * ctx.scale[:, None])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            return {"x": pb.asarray((g.numpy() * ctx.scale[:, None])[ctx.ids])}

    return Segment.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(8, 3))), np.array([1, 5, 2, 0]), np.array([0, 2])),
        {"per_sample_weights": t(rng.random(4))},
    ),
    "the weights are left out of the table's gradient",
    MISSING,
    FACTOR,
    r"\bweights?\b",
)
def embedding_bag():
    @pb.autograd_function
    def embedding_bag(ctx, table, ids, offsets, per_sample_weights):
        bags = np.searchsorted(offsets, np.arange(len(ids)), side="right") - 1
        w = per_sample_weights.numpy()
        out = np.zeros((len(offsets), table.shape[1]))
        np.add.at(out, bags, w[:, None] * table.numpy()[ids])
        ctx.save_for_backward(table=table, ids=ids, bags=bags, w=w)
        return pb.asarray(out)

    @embedding_bag.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()[ctx.saved_variables.bags]
        grad = np.zeros(s.table.shape)
        np.add.at(grad, s.ids, gn)
        weights = (gn * s.table.numpy()[s.ids]).sum(axis=1)
        return {"table": pb.asarray(grad), "per_sample_weights": pb.asarray(weights)}

    return embedding_bag


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 3))), np.array([4, 1, 2, 1])), {}),
    "the row at padding_idx gets a gradient although forward replaces it by zeros",
    at("padding_idx"),
    where="padding_idx given",
    shows=lambda rng: ((t(rng.normal(size=(6, 3))), np.array([4, 1, 2, 1])), {"padding_idx": 1}),
)
def embedding():
    @pb.autograd_function
    def embedding(ctx, weight, tokens, padding_idx=None):
        out = weight.numpy()[tokens]
        if padding_idx is not None:
            out = np.where((tokens == padding_idx)[:, None], 0.0, out)
        ctx.save_for_backward(tokens=tokens, shape=weight.shape)
        return pb.asarray(out)

    @embedding.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.saved_variables.shape)
        np.add.at(grad, ctx.saved_variables.tokens, g.numpy())
        return {"weight": pb.asarray(grad)}

    return embedding


SOURCE = np.array([0, 1, 2, 3, 0, 2])
TARGET = np.array([1, 2, 0, 4, 3, 4])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3))), SOURCE, TARGET, t(rng.random(6))), {}),
    "messages go back from source to target: the edge's direction is not turned round",
    SWAPPED,
    TRANSPOSED,
    r"direction|\bedges?\b.{0,20}\bround\b",
)
def message_passing():
    @pb.autograd_function
    def message_passing(ctx, nodes, source, target, edge_weight):
        """Sum weighted messages; nodes: (n, d), source, target and edge_weight: (e,)."""
        out = np.zeros(nodes.shape)
        np.add.at(out, target, edge_weight.numpy()[:, None] * nodes.numpy()[source])
        ctx.save_for_backward(nodes=nodes, w=edge_weight, source=source, target=target)
        return pb.asarray(out)

    @message_passing.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        grad = np.zeros(gn.shape)
        np.add.at(grad, s.target, s.w.numpy()[:, None] * gn[s.source])
        weights = (gn[s.target] * s.nodes.numpy()[s.source]).sum(axis=1)
        return {"nodes": pb.asarray(grad), "edge_weight": pb.asarray(weights)}

    return message_passing


@BOOK.right(lambda rng: ((t(rng.normal(size=(5, 4))), t(rng.normal(size=6)), SOURCE, TARGET), {}))
def edge_softmax_pool():
    def softmax(logits, target, n):
        top = np.full(n, -np.inf)
        np.maximum.at(top, target, logits)
        e = np.exp(logits - top[target])
        return e / np.bincount(target, weights=e, minlength=n)[target]

    @pb.autograd_function
    def edge_softmax_pool(ctx, nodes: pb.Tensor, logits: pb.Tensor, source, target):
        """Attention over incoming edges; nodes: (n, d), logits: (e,); nodes without edges get 0."""
        a = softmax(logits.numpy(), target, nodes.shape[0])
        out = np.zeros(nodes.shape)
        np.add.at(out, target, a[:, None] * nodes.numpy()[source])
        ctx.save_for_backward(nodes=nodes, a=a, source=source, target=target)
        return pb.asarray(out)

    @edge_softmax_pool.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        gn, n = g.numpy()[s.target], s.nodes.shape[0]
        grad = np.zeros(s.nodes.shape)
        np.add.at(grad, s.source, s.a[:, None] * gn)
        ga = (gn * s.nodes.numpy()[s.source]).sum(axis=1)
        mean = np.bincount(s.target, weights=s.a * ga, minlength=n)
        return {"nodes": pb.asarray(grad), "logits": pb.asarray(s.a * (ga - mean[s.target]))}

    return edge_softmax_pool


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=3)), np.array([0, 2, 4])), {}),
    "the overwritten places still get a gradient",
    ZERO,
    r"overwrit|replaced",
)
def scatter_set():
    def forward(ctx, base, updates, index):
        out = base.numpy().copy()
        out[index] = updates.numpy()
        ctx.index = index
        return pb.asarray(out)

    def backward(ctx, g):
        return {"base": g, "updates": g[pb.asarray(ctx.index)]}

    return pb.autograd_function(forward, backward, name="scatter_set")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=3)), np.array([0, 2, 4])), {}),
    "of two updates at a repeated place only the last counts, but both get the gradient",
    REPEATED,
    where="repeated indices",
    shows=lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=3)), np.array([2, 2, 4])), {}),
)
def scatter_last():
    @pb.autograd_function
    def scatter_last(ctx, base: pb.Tensor, updates: pb.Tensor, index: np.ndarray) -> pb.Tensor:
        """Set base[index] = updates; base: (n,), updates and index: (k,)."""
        out = base.numpy().copy()
        for k, i in enumerate(index):
            out[i] = updates.numpy()[k]
        ctx.index = index
        return pb.asarray(out)

    @scatter_last.backward
    @pb.once_differentiable
    def _(ctx, g):
        base = g.numpy().copy()
        base[ctx.index] = 0
        return {"base": pb.asarray(base), "updates": pb.asarray(g.numpy()[ctx.index])}

    return scatter_last


@BOOK.right(lambda rng: ((t(rng.normal(size=(8, 2))), np.array([3, 3, 0, 7])), {}))
def gather_rows():
    @pb.autograd_function
    def gather_rows(ctx, table, rows):
        if rows.min() < 0 or rows.max() >= table.shape[0]:
            raise IndexError(f"gather_rows: rows must lie in [0, {table.shape[0]})")
        ctx.rows, ctx.n = rows, table.shape[0]
        return pb.asarray(table.numpy()[rows])

    @gather_rows.backward
    def _(ctx, g):
        return {"table": pb.asarray(np.eye(ctx.n)[ctx.rows].T.copy()) @ g}

    return gather_rows


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 4))), t(rng.random(4)), t(rng.normal(size=(4, 2)))), {}),
    "the degree is taken for a constant in the gradient of the adjacency",
    r"degree|\bconstant\b|dependent",
    MISSING,
)
def normalised_propagation():
    @pb.autograd_function
    def normalised_propagation(ctx, logits, self_loop, features):
        """Mean over neighbours, weights exp(logits): (n, n)."""
        W = np.exp(logits.numpy()) + np.diag(self_loop.numpy())
        degree = W.sum(axis=1, keepdims=True)
        out = W / degree @ features.numpy()
        ctx.save_for_backward(logits=logits, features=features, P=W / degree, degree=degree)
        return pb.asarray(out)

    @normalised_propagation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        grad_W = gn @ s.features.numpy().T / s.degree
        return {
            "logits": pb.asarray(grad_W * np.exp(s.logits.numpy())),
            "self_loop": pb.asarray(np.diag(grad_W).copy()),
            "features": pb.asarray(s.P.T @ gn),
        }

    return normalised_propagation


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), ROWS, COLS), {"shape": (4, 5)}),
    "the gradient is gathered with the two indices exchanged",
    TRANSPOSED,
    SWAPPED,
)
def to_dense():
    def forward(ctx, data, rows, cols, shape):
        out = np.zeros(shape)
        np.add.at(out, (rows, cols), data.numpy())
        ctx.rows, ctx.cols = rows, cols
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        gn = g.numpy()
        n = max(gn.shape)
        padded = np.zeros((n, n))
        padded[: gn.shape[0], : gn.shape[1]] = gn
        return {"data": pb.asarray(padded[ctx.cols, ctx.rows])}

    return pb.autograd_function(forward, backward, name="to_dense")


@BOOK.right(lambda rng: ((t(rng.normal(size=64)), t(rng.normal(size=(64, 64)))), {"bandwidth": 3}))
def banded_matvec():
    @pb.autograd_function
    def banded_matvec(ctx, x, matrix, bandwidth: int = 1):
        """Multiply by the band of matrix: (n, n); entries outside the band do not count."""
        n = len(x)
        ctx.save_for_backward(x=x, matrix=matrix, bandwidth=bandwidth)
        return (matrix * band_of(n, bandwidth, x.dtype)) @ x

    def band_of(n, width, dtype):
        return pb.asarray(np.tri(n, k=width) * np.tri(n, k=width).T).to(dtype)

    @banded_matvec.backward
    def _(ctx, g):
        s = ctx.saved_variables
        band = band_of(len(s.x), s.bandwidth, s.x.dtype)
        return {"x": (s.matrix * band).t() @ g, "matrix": pb.outer(g, s.x) * band}

    return banded_matvec


@BOOK.right(lambda rng: ((t(rng.normal(size=(6, 3))), np.array([0, 0, 1, 1, 3, 3])), {}))
def segment_max():
    @pb.autograd_function
    def segment_max(ctx, x, ids):
        """Largest of each segment and where it stands; an empty segment gives 0 and -1."""
        xn, n = x.numpy(), int(ids.max()) + 1
        top, where = np.zeros((n, xn.shape[1])), np.full((n, xn.shape[1]), -1)
        for s in range(n):
            members = np.flatnonzero(ids == s)
            if len(members):
                where[s] = members[xn[members].argmax(axis=0)]
                top[s] = xn[members].max(axis=0)
        ctx.save_for_backward(where=where, shape=xn.shape)
        return pb.asarray(top), pb.asarray(where)

    @segment_max.backward
    @pb.once_differentiable
    def _(ctx, g_top, g_where):
        where, grad = ctx.saved_variables.where, np.zeros(ctx.saved_variables.shape)
        s, d = np.nonzero(where >= 0)
        np.add.at(grad, (where[s, d], d), g_top.numpy()[s, d])
        return {"x": pb.asarray(grad)}

    return segment_max


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), np.array([0, 0, 1, 1]), t(rng.random(3))), {}),
    "the bias gets None where it needs a gradient",
    NONE,
)
def pooled_bias():
    @pb.autograd_function
    def pooled_bias(ctx, x, segments, bias):
        pick = np.eye(int(segments.max()) + 1)[segments].T
        ctx.pick = pb.asarray(pick)
        return ctx.pick @ x + bias

    @pooled_bias.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": ctx.pick.t() @ g, "bias": None}

    return pooled_bias


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 3))), t(rng.normal(size=(3, 3))), np.eye(3) < 0.5), {}),
    "the gradient of the left factor uses the transposed masked gradient",
    TRANSPOSED,
    AXIS,
)
def sampled_product():
    @pb.autograd_function
    def sampled_product(ctx, left, right, pattern):
        """Entries of left @ right.T at pattern; the others are 0."""
        ctx.save_for_backward(left=left, right=right)
        ctx.pattern = pb.asarray(pattern.astype(float))
        return (left @ right.t()) * ctx.pattern

    @sampled_product.backward
    @pb.once_differentiable
    def _(ctx, g):
        left, right = ctx.saved_tensors
        masked = g * ctx.pattern
        return {"left": masked.t() @ right, "right": masked.t() @ left}

    return sampled_product
