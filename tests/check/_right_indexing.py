"""Operations whose backward is right: norms, indexing, scatter, scans, in place."""

from __future__ import annotations

import numpy as np
from tests.check._entries import Entry, raw, wrap, xp
from tests.check._right import at_least, draw, fit, linear, mul_backward, real, scale_backward
from tests.check._right_arrays import softmax_backward

# ---- norm ----------------------------------------------------------------------------------------


def normalized(x, dim, eps):
    """Return x less its mean, over its standard deviation, and what it was divided by."""
    count = max(x.shape[dim], 1)
    centred = x - x.sum(dim, keepdim=True) / count
    deviation = ((centred * centred).sum(dim, keepdim=True) / count + eps) ** 0.5
    return centred / deviation, deviation


def layer_norm(ctx, x, weight, bias, eps):
    real(x, weight, bias)
    at_least(1, x)
    ctx.eps = eps
    ctx.save_for_backward(x, weight, bias)
    return normalized(x, -1, eps)[0] * weight + bias


def layer_norm_backward(ctx, grad):
    x, weight, bias = ctx.saved_tensors
    y, deviation = normalized(x, -1, ctx.eps)
    by_x = by_weight = by_bias = None
    if ctx.needs_input_grad[0]:
        slope, count = grad * weight, max(x.shape[-1], 1)
        slope = slope.sum_to_size(x.shape)
        mean = slope.sum(-1, keepdim=True) / count
        by_x = (slope - mean - y * (slope * y).sum(-1, keepdim=True) / count) / deviation
    if ctx.needs_input_grad[1]:
        by_weight = fit(grad * y, weight)
    if ctx.needs_input_grad[2]:
        by_bias = fit(grad, bias)
    return by_x, by_weight, by_bias, None


def batch_norm(ctx, x):
    real(x)
    at_least(1, x)
    ctx.save_for_backward(x)
    return normalized(x, 0, 1e-3)[0]


def batch_norm_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    y, deviation = normalized(x, 0, 1e-3)
    count = max(x.shape[0], 1)
    mean = grad.sum(0, keepdim=True) / count
    return (grad - mean - y * (grad * y).sum(0, keepdim=True) / count) / deviation


def rms_norm(ctx, x, weight=None):
    real(*([x] if weight is None else [x, weight]))
    at_least(1, x)
    ctx.save_for_backward(x, weight)
    y = x / mean_square(x) ** 0.5
    return y if weight is None else y * weight


def mean_square(x):
    return (x * x).sum(-1, keepdim=True) / max(x.shape[-1], 1) + 1e-5


def rms_norm_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    square = mean_square(x)
    slope = grad if weight is None else (grad * weight).sum_to_size(x.shape)
    along = x * (slope * x).sum(-1, keepdim=True) / (square * max(x.shape[-1], 1))
    by_weight = None if weight is None else fit(grad * x / square**0.5, weight)
    return (slope - along) / square**0.5, by_weight


def unit(ctx, v, length):
    real(v, length)
    ctx.save_for_backward(v, length)
    return length * v / (v * v).sum() ** 0.5


def unit_backward(ctx, grad):
    v, length = ctx.saved_tensors
    norm = (v * v).sum() ** 0.5
    slope = fit(grad * length, v)
    return (slope - v * (slope * v).sum() / norm**2) / norm, fit(grad * v / norm, length)


def with_scale(rng):
    return rng.normal(size=(3, 4)), rng.uniform(1, 2, 4), rng.normal(size=4), 1e-5


NORM = [
    Entry("layer norm", "norm", layer_norm, layer_norm_backward, with_scale),
    Entry("batch norm", "norm", batch_norm, batch_norm_backward, draw((5, 2))),
    Entry("rms norm", "norm", rms_norm, rms_norm_backward, draw((2, 4), (4,))),
    Entry("rms norm without weight", "norm", rms_norm, rms_norm_backward, draw((2, 4))),
    Entry("weight norm", "norm", unit, unit_backward, draw((2, 3), ())),
]

# ---- indexing ------------------------------------------------------------------------------------


def take(ctx, table, rows):
    ctx.shape = tuple(table.shape)
    ctx.save_for_backward(rows)
    return table.index_select(0, rows)


def take_backward(ctx, grad):
    (rows,) = ctx.saved_tensors
    return grad.new_zeros(ctx.shape).index_add(0, rows, grad), None


def gather(ctx, x, index):
    at_least(1, x)
    ctx.shape = tuple(x.shape)
    size = x.shape[-1]
    if size and not bool(((index >= -size) & (index < size)).all()):
        raise IndexError("an index is out of range")
    positive = index + size * (index < 0).to(index.dtype)
    ctx.save_for_backward(positive)
    return x.gather(-1, positive)


def gather_backward(ctx, grad):
    (index,) = ctx.saved_tensors
    return grad.new_zeros(ctx.shape).scatter_add(-1, index, grad), None


def select(ctx, x, mask):
    if x.shape != mask.shape:
        raise ValueError("a mask of the shape of x is required")
    ctx.save_for_backward(mask)
    return x[mask]


def select_backward(ctx, grad):
    (mask,) = ctx.saved_tensors
    return grad.new_zeros(mask.shape).masked_scatter(mask, grad), None


def concat(ctx, a, b):
    at_least(1, a, b)
    ctx.save_for_backward(a, b)
    return xp(a).cat((a, b), 0)


def concat_backward(ctx, grad):
    a, b = ctx.saved_tensors
    first, second = grad[: len(a)], grad[len(a) :]
    return fit(first.reshape(a.shape), a), fit(second.reshape(b.shape), b)


def halves(ctx, x):
    at_least(1, x)
    middle = x.shape[0] // 2
    return x[:middle].clone(), x[middle:].clone()


def halves_backward(ctx, grad_first, grad_second):
    return xp(grad_first).cat((grad_first, grad_second), 0)


INDEXING = [
    Entry(
        "rows of a table",
        "indexing",
        take,
        take_backward,
        lambda rng: (rng.normal(size=(4, 2)), np.array([1, 3, 1, 1])),
    ),
    Entry(
        "gather of negative indices",
        "indexing",
        gather,
        gather_backward,
        lambda rng: (rng.normal(size=(2, 4)), rng.integers(-4, 4, (2, 3))),
    ),
    Entry(
        "selected elements",
        "indexing",
        select,
        select_backward,
        lambda rng: (rng.normal(size=(3, 3)), rng.random((3, 3)) < 0.5),
    ),
    Entry("concatenation", "indexing", concat, concat_backward, draw((2, 3), (1, 3))),
    Entry("two halves", "indexing", halves, halves_backward, draw((5, 2))),
    linear(
        "every other element",
        "indexing",
        lambda x: x[..., ::2],
        lambda grad, shape: grad.new_zeros(shape).slice_scatter(grad, -1, 0, shape[-1], 2),
        draw((2, 5)),
    ),
    linear(
        "flattened view",
        "indexing",
        lambda x: x.reshape(-1),
        lambda grad, shape: grad.reshape(shape),
        draw((2, 3)),
    ),
    linear(
        "permuted view",
        "indexing",
        lambda x, dims: x.permute(dims),
        lambda grad, shape, dims: grad.permute(tuple(np.argsort(dims).tolist())),
        draw((2, 1, 3), extra=([2, 0, 1],)),
    ),
    linear(
        "flip",
        "indexing",
        lambda x: x.flip(-1),
        lambda grad, shape: grad.flip(-1),
        draw((2, 3)),
    ),
    linear(
        "roll",
        "indexing",
        lambda x, by: x.roll(by, 0),
        lambda grad, shape, by: grad.roll(-by, 0),
        draw((4, 2), extra=(1,)),
    ),
]

# ---- scatter -------------------------------------------------------------------------------------


def scatter_add(ctx, x, index, size):
    if x.shape != index.shape:
        raise ValueError("an index of the shape of x is required")
    ctx.save_for_backward(index)
    return x.new_zeros(size).scatter_add(0, index, x)


def scatter_add_backward(ctx, grad):
    (index,) = ctx.saved_tensors
    return grad.gather(0, index), None, None


def segment_mean(ctx, x, segments, count):
    at_least(1, x)
    sizes = np.maximum(np.bincount(raw(segments), minlength=count), 1)
    ctx.sizes = wrap(segments, sizes.reshape(-1, *[1] * (x.ndim - 1)))
    ctx.save_for_backward(segments)
    sums = x.new_zeros((count, *x.shape[1:])).index_add(0, segments, x)
    return sums / ctx.sizes.to(x.dtype)


def segment_mean_backward(ctx, grad):
    (segments,) = ctx.saved_tensors
    return (grad / ctx.sizes.to(grad.dtype)).index_select(0, segments), None, None


def put(ctx, base, index, values):
    at_least(1, base)
    if index.shape != values.shape:
        raise ValueError("an index of the shape of the values is required")
    if base.dtype != values.dtype:
        raise TypeError("values of the dtype of the base are required")
    ctx.save_for_backward(index)
    return base.scatter(-1, index, values)


def put_backward(ctx, grad):
    (index,) = ctx.saved_tensors
    kept = grad.scatter(-1, index, grad.new_zeros(index.shape))
    return kept, None, grad.gather(-1, index)


def index_add(ctx, base, index, rows, alpha):
    if base.dtype != rows.dtype:
        raise TypeError("rows of the dtype of the base are required")
    ctx.alpha = alpha
    ctx.save_for_backward(index)
    return base.index_add(0, index, alpha * rows)


def index_add_backward(ctx, grad):
    (index,) = ctx.saved_tensors
    return grad, None, ctx.alpha * grad.index_select(0, index), None


def different(rng, rows, size, count):
    """Return `count` different indices below `size` for each of the rows."""
    return np.argsort(rng.random((rows, size)), axis=1)[:, :count].copy()


SCATTER = [
    Entry(
        "scatter add of repeated indices",
        "scatter",
        scatter_add,
        scatter_add_backward,
        lambda rng: (rng.normal(size=6), np.array([0, 2, 2, 1, 2, 0]), 4),
    ),
    Entry(
        "segment mean",
        "scatter",
        segment_mean,
        segment_mean_backward,
        lambda rng: (rng.normal(size=(5, 2)), rng.integers(0, 3, 5), 4),
    ),
    Entry(
        "scatter over a base",
        "scatter",
        put,
        put_backward,
        lambda rng: (rng.normal(size=(2, 5)), different(rng, 2, 5, 3), rng.normal(size=(2, 3))),
    ),
    Entry(
        "index add",
        "scatter",
        index_add,
        index_add_backward,
        lambda rng: (rng.normal(size=(3, 2)), np.array([2, 0, 2]), rng.normal(size=(3, 2)), -0.5),
    ),
]

# ---- scan ----------------------------------------------------------------------------------------


def logcumsumexp(ctx, x):
    real(x)
    at_least(1, x)
    y = x.logcumsumexp(-1)
    ctx.save_for_backward(x, y)
    return y


def logcumsumexp_backward(ctx, grad):
    x, y = ctx.saved_tensors
    earlier = wrap(x, np.tri(x.shape[-1], k=-1) > 0)  # the outputs j < i do not depend on x_i
    share = (x.unsqueeze(-1) - y.unsqueeze(-2)).masked_fill(earlier, -np.inf).exp()
    return (share * grad.unsqueeze(-2)).sum(-1)


def recurrence(ctx, decay, x):
    real(decay, x)
    if decay.shape != x.shape or not x.ndim:
        raise ValueError("arrays of the same shape are required")
    states, state = np.zeros_like(raw(x)), 0.0
    for t in range(len(states)):
        states[t] = state = raw(decay)[t] * state + raw(x)[t]
    states = wrap(x, states)
    ctx.save_for_backward(decay, states)
    return states


def recurrence_backward(ctx, grad):
    decay, states = [raw(tensor) for tensor in ctx.saved_tensors]
    by_x, carried = np.zeros_like(raw(grad)), 0.0
    for t in reversed(range(len(by_x))):
        by_x[t] = raw(grad)[t] + carried
        carried = by_x[t] * decay[t]
    before = np.concatenate((np.zeros_like(states[:1]), states[:-1]))
    return wrap(grad, by_x * before), wrap(grad, by_x)


def smoothing(x, decay):
    """Return the matrix of an exponential moving average along the first axis."""
    distance = np.arange(len(x))[:, None] - np.arange(len(x))
    return wrap(x, np.tril((1 - decay) * decay ** np.abs(distance))).to(x.dtype)


SCAN = [
    linear(
        "cumsum",
        "scan",
        lambda x: x.cumsum(-1),
        lambda grad, shape: grad.flip(-1).cumsum(-1).flip(-1),
        draw((2, 5)),
    ),
    linear(
        "differences",
        "scan",
        lambda x: x - x.roll(1, 0),
        lambda grad, shape: grad - grad.roll(-1, 0),
        draw((5,)),
    ),
    linear(
        "moving average",
        "scan",
        lambda x, decay: smoothing(x, decay) @ x,
        lambda grad, shape, decay: smoothing(grad, decay).mT @ grad,
        draw((4, 2), extra=(0.7,)),
    ),
    Entry("logcumsumexp", "scan", logcumsumexp, logcumsumexp_backward, draw((2, 4))),
    Entry(
        "recurrence in NumPy",
        "scan",
        recurrence,
        recurrence_backward,
        draw((5, 2), (5, 2)),
        once=True,
    ),
]

# ---- in place ------------------------------------------------------------------------------------


def scale_(ctx, x, factor):
    ctx.factor = factor
    ctx.mark_dirty(x)
    return x.mul_(factor)


def exp_(ctx, x):
    ctx.mark_dirty(x)
    ctx.save_for_backward(x.exp_())
    return x


def exp_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return grad * y.conj()


def axpy_(ctx, x, y, alpha):
    ctx.alpha = alpha
    ctx.save_for_backward(y)
    ctx.mark_dirty(x)
    return x.add_(y * alpha)


def axpy_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return grad, fit(grad * ctx.alpha, y), None


def mul_(ctx, x, y):
    ctx.save_for_backward(x.clone(), y.clone())  # y may be x
    ctx.mark_dirty(x)
    return x.mul_(y)


def masked_fill_(ctx, x, mask, value):
    ctx.save_for_backward(mask)
    ctx.mark_dirty(x)
    return x.masked_fill_(mask, value)


def masked_fill_backward(ctx, grad):
    (mask,) = ctx.saved_tensors
    return grad.masked_fill(mask, 0), None, None


def softmax_(ctx, x):
    real(x)
    ctx.mark_dirty(x)
    ctx.save_for_backward(x.copy_(x.softmax(-1)))
    return x


INPLACE = [
    Entry("scale in place", "inplace", scale_, scale_backward, draw((2, 3), extra=(-1.5,))),
    Entry("exp in place", "inplace", exp_, exp_backward, draw((4,))),
    Entry("axpy in place", "inplace", axpy_, axpy_backward, draw((2, 3), (3,), extra=(0.5,))),
    Entry("mul in place", "inplace", mul_, mul_backward, draw((2, 3), (2, 1)), once=True),
    Entry(
        "masked fill in place",
        "inplace",
        masked_fill_,
        masked_fill_backward,
        lambda rng: (rng.normal(size=(3, 3)), rng.random((3, 3)) < 0.4, 7.0),
    ),
    Entry("softmax in place", "inplace", softmax_, softmax_backward, draw((2, 3))),
]

ENTRIES = [*NORM, *INDEXING, *SCATTER, *SCAN, *INPLACE]
