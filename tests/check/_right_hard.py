"""Operations whose backward is right at inputs where gradient checkers give false alarms.

Kinks, ties, jumps and zeros: there the gradient is the one-sided, the mean or the zero one that
libraries take by convention.
"""

from __future__ import annotations

import numpy as np
from tests.check._entries import Entry, raw, wrap
from tests.check._right import (
    at_least,
    draw,
    elementwise,
    fit,
    real,
)
from tests.check._right_arrays import (
    keep,
    prod,
    prod_backward,
)


def at(*points, shape=(3, 4)):
    """Return a function that draws a normal array, with the points at every third index."""

    def inputs(rng):
        x = rng.normal(size=shape)
        x.flat[::3] = rng.choice(points, x.flat[::3].size)
        return (x,)

    return inputs


def tied(*shape):
    """Return a function that draws an array of few different values."""
    return lambda rng: (rng.integers(-1, 2, shape).astype(float),)


def powers(low, high, shape=(6,), sign=False):
    """Return a function that draws powers of ten."""

    def inputs(rng):
        x = 10.0 ** rng.uniform(low, high, shape)
        return (x * rng.choice([-1.0, 1.0], shape) if sign else x,)

    return inputs


def as_float(condition, x):
    return condition.to(x.dtype)


def flat(x):
    """Return the gradient of a function that is constant wherever it has one."""
    return x.new_zeros(x.shape)


# ---- kinks and jumps -----------------------------------------------------------------------------


def huber(ctx, prediction, target, delta):
    real(prediction, target)
    ctx.delta = delta
    ctx.save_for_backward(prediction, target)
    size = (prediction - target).abs()
    inner = size.clamp(max=delta)
    return inner * (size - 0.5 * inner)


def huber_backward(ctx, grad):
    prediction, target = ctx.saved_tensors
    slope = grad * (prediction - target).clamp(-ctx.delta, ctx.delta)
    return fit(slope, prediction), fit(-slope, target), None


def hinge(ctx, scores, labels):
    real(scores)
    if scores.shape != labels.shape:
        raise ValueError("one label a score is required")
    ctx.save_for_backward(scores, labels)
    return (1 - labels.to(scores.dtype) * scores).clamp(min=0).sum()


def hinge_backward(ctx, grad):
    scores, labels = ctx.saved_tensors
    signs = labels.to(scores.dtype)
    return -grad * signs * as_float(signs * scores < 1, scores), None


def maximum(ctx, x, y):
    real(x, y)
    ctx.save_for_backward(x, y)
    return x.maximum(y)


def maximum_backward(ctx, grad):
    x, y = ctx.saved_tensors
    share = as_float(x > y, grad) + 0.5 * as_float(x == y, grad)
    return fit(grad * share, x), fit(grad * (1 - share), y)


def cross_log(ctx, x, y):
    real(x, y)
    ctx.save_for_backward(x, y)
    return x.xlogy(y)


def cross_log_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return fit(grad * y.log(), x), fit(grad * x / y, y)


def shrink(ctx, x, bound):
    real(x)
    ctx.bound = bound
    ctx.save_for_backward(x)
    return x - x.clamp(-bound, bound)


def shrink_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * as_float(x.abs() > ctx.bound, x), None


def relu_(ctx, x):
    real(x)
    ctx.mark_dirty(x)
    ctx.save_for_backward(x.clamp_(min=0))
    return x


def relu_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return grad * as_float(y > 0, y)


def equal_pairs(rng):
    x = rng.normal(size=(2, 3))
    return x, np.where(rng.random((2, 3)) < 0.5, x, rng.normal(size=(2, 3)))


def with_zeros(rng):
    return rng.normal(size=4) * np.array([0, 1, 0, 1]), rng.uniform(0.5, 2, 4)


def x_log_x(x):
    return x * x.masked_fill(x <= 0, 1).log()


def x_log_x_slope(x):
    return (x.masked_fill(x <= 0, 1).log() + 1) * as_float(x > 0, x)


KINKS = [
    elementwise("relu at 0", lambda x: x.clamp(min=0), lambda x: as_float(x > 0, x), at(0.0)),
    elementwise("abs at 0", lambda x: x.abs(), lambda x: x.sign(), at(0.0, -0.0)),
    elementwise(
        "leaky relu at 0",
        lambda x: x.where(x > 0, 0.1 * x),
        lambda x: 0.1 + 0.9 * as_float(x > 0, x),
        at(0.0),
    ),
    elementwise(
        "clamp at its bounds",
        lambda x: x.clamp(-1, 1),
        lambda x: as_float(x.abs() <= 1, x),
        at(-1.0, 1.0),
    ),
    elementwise("x |x| at 0", lambda x: x * x.abs(), lambda x: 2 * x.abs(), at(0.0)),
    elementwise(
        "|x| to 2.5 at 0",
        lambda x: x.abs() ** 2.5,
        lambda x: 2.5 * x.sign() * x.abs() ** 1.5,
        at(0.0),
    ),
    elementwise(
        "elu at 0",
        lambda x: x.clamp(min=0) + x.clamp(max=0).expm1(),
        lambda x: x.clamp(max=0).exp(),
        at(0.0),
    ),
    elementwise(
        "relu of zeros alone",
        lambda x: x.clamp(min=0),
        lambda x: as_float(x > 0, x),
        lambda rng: (np.zeros((2, 2)),),
    ),
    elementwise("0-d abs at 0", lambda x: x.abs(), lambda x: x.sign(), lambda rng: (np.zeros(()),)),
    elementwise("floor at integers", lambda x: x.floor(), flat, at(-1.0, 0.0, 2.0)),
    elementwise("round at halves", lambda x: x.round(), flat, at(-0.5, 0.5, 1.5)),
    elementwise("sign at 0", lambda x: x.sign(), flat, at(0.0)),
    elementwise(
        "heaviside at 0", lambda x: as_float(x > 0, x) + 0.5 * as_float(x == 0, x), flat, at(0.0)
    ),
    elementwise(
        "fraction at integers", lambda x: x - x.floor(), lambda x: flat(x) + 1, at(0.0, 1.0)
    ),
    elementwise("constant", lambda x: flat(x) + 3, flat, draw((2, 3)), holomorphic=True),
    elementwise("x log x at 0", x_log_x, x_log_x_slope, lambda rng: (with_zeros(rng)[0] ** 2,)),
    Entry(
        "soft shrink at its bound",
        "elementwise",
        shrink,
        shrink_backward,
        lambda rng: (*at(-0.5, 0.5)(rng), 0.5),
    ),
    Entry(
        "huber at 0 and its bound",
        "elementwise",
        huber,
        huber_backward,
        lambda rng: (*at(0.0, 1.0, -1.0, shape=(6,))(rng), np.zeros(6), 1.0),
    ),
    Entry(
        "hinge at the margin",
        "reduction",
        hinge,
        hinge_backward,
        lambda rng: (*at(1.0, -1.0, shape=(9,))(rng), rng.choice([-1, 1], 9)),
    ),
    Entry("maximum of equal elements", "elementwise", maximum, maximum_backward, equal_pairs),
    Entry("x log y, x with zeros", "elementwise", cross_log, cross_log_backward, with_zeros),
    Entry("relu in place at 0", "inplace", relu_, relu_backward, at(0.0)),
]

# ---- ties ----------------------------------------------------------------------------------------


def amax(ctx, x, dim):
    real(x)
    ctx.dim = dim
    y = x.amax(dim)
    ctx.save_for_backward(x, y)
    return y


def amax_backward(ctx, grad):
    x, y = ctx.saved_tensors
    ties = as_float(x == keep(y, x, ctx.dim), grad)
    return ties * (keep(grad, x, ctx.dim) / ties.sum(ctx.dim, keepdim=True)), None


def chosen(name, family, function, inputs, *settings):
    """Return the entry of a function of elements along the last axis, and their indices."""

    def forward(ctx, x, *settings):
        real(x)
        at_least(1, x)
        values, index = function(x, *settings)
        ctx.shape, ctx.rank = tuple(x.shape), index.ndim
        ctx.settings = [None for _ in settings]
        ctx.save_for_backward(index)
        ctx.mark_non_differentiable(index)
        return values, index

    def backward(ctx, grad, _):
        (index,) = ctx.saved_tensors
        if ctx.rank < len(ctx.shape):
            grad, index = grad.unsqueeze(-1), index.unsqueeze(-1)
        return grad.new_zeros(ctx.shape).scatter_add(-1, index, grad), *ctx.settings

    return Entry(name, family, forward, backward, lambda rng: (*inputs(rng), *settings))


def max_pool(ctx, x, size):
    real(x)
    at_least(1, x)
    values, index = x.unfold(-1, size, size).max(-1)
    ctx.shape = tuple(x.shape)
    starts = wrap(index, np.arange(index.shape[-1]) * size)
    ctx.save_for_backward(index + starts)
    return values


def max_pool_backward(ctx, grad):
    (index,) = ctx.saved_tensors
    return grad.new_zeros(ctx.shape).scatter_add(-1, index, grad), None


def segment_max(ctx, x, segments, count):
    real(x)
    if not x.ndim or tuple(segments.shape) != (len(x),):
        raise ValueError("one segment a row is required")
    values = np.full((count, *x.shape[1:]), -100, raw(x).dtype)
    np.maximum.at(values, raw(segments), raw(x))
    ctx.save_for_backward(x, segments)
    return wrap(x, values)


def segment_max_backward(ctx, grad):
    x, segments = [raw(tensor) for tensor in ctx.saved_tensors]
    largest = np.full(grad.shape, -100, x.dtype)
    np.maximum.at(largest, segments, x)
    ties = (x == largest[segments]).astype(x.dtype)
    counts = np.zeros(grad.shape)
    np.add.at(counts, segments, ties)
    return wrap(grad, ties * raw(grad)[segments] / np.maximum(counts, 1)[segments]), None, None


TIES = [
    Entry("amax of ties", "reduction", amax, amax_backward, lambda rng: (*tied(3, 4)(rng), -1)),
    Entry(
        "amax of equal elements", "reduction", amax, amax_backward, lambda rng: (np.ones((2, 3)), 0)
    ),
    chosen("max of ties", "reduction", lambda x: x.max(-1), tied(3, 4)),
    chosen("median of ties", "reduction", lambda x: x.median(-1), tied(3, 5)),
    chosen("sort of ties", "indexing", lambda x: x.sort(-1), tied(2, 5)),
    chosen("largest of ties", "indexing", lambda x, k: x.topk(k, -1), tied(2, 5), 2),
    chosen("running maximum of ties", "scan", lambda x: x.cummax(-1), tied(2, 6)),
    Entry(
        "max pooling of ties",
        "conv",
        max_pool,
        max_pool_backward,
        lambda rng: (*tied(2, 7)(rng), 2),
    ),
    Entry(
        "segment max of ties",
        "scatter",
        segment_max,
        segment_max_backward,
        lambda rng: (*tied(6)(rng), rng.integers(0, 3, 6), 3),
        once=True,
    ),
]

# ---- norms at zero, products with zeros ----------------------------------------------------------


def norm(ctx, x):
    at_least(1, x)
    y = (x * x.conj()).real.sum(-1) ** 0.5 if x.is_complex() else (x * x).sum(-1) ** 0.5
    ctx.save_for_backward(x)
    return y


def norm_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    square = (x * x.conj()).real if x.is_complex() else x * x
    square = square.sum(-1, keepdim=True)
    zero = square == 0
    return x * (grad.unsqueeze(-1) / square.masked_fill(zero, 1) ** 0.5).masked_fill(zero, 0)


def norm1(ctx, x):
    at_least(1, x)
    ctx.save_for_backward(x)
    return x.abs().sum(-1)


def norm1_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    size = x.abs()
    return grad.unsqueeze(-1) * x / size.masked_fill(size == 0, 1)


def cumprod(ctx, x):
    at_least(1, x)
    real(x)
    ctx.save_for_backward(x)
    return wrap(x, np.cumprod(raw(x), -1))


def cumprod_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    x, grad_y = raw(x), raw(grad)
    by_x = np.zeros_like(x)
    for i in range(x.shape[-1]):
        others = x.copy()
        others[..., i] = 1
        by_x[..., i] = (grad_y * np.cumprod(others, -1))[..., i:].sum(-1)
    return wrap(grad, by_x)


def zero_rows(rng):
    return (rng.normal(size=(4, 3)) * np.array([[0], [1], [0], [1]]),)


ZEROS = [
    Entry("norm of zero rows", "norm", norm, norm_backward, zero_rows),
    Entry(
        "norm of complex zero rows",
        "complex",
        norm,
        norm_backward,
        lambda rng: (zero_rows(rng)[0] * (1 + 2j),),
    ),
    Entry("sum of |x| at 0", "norm", norm1, norm1_backward, at(0.0)),
    Entry(
        "prod with a zero", "reduction", prod, prod_backward, lambda rng: at(0.0, shape=(2, 3))(rng)
    ),
    Entry(
        "prod with two zeros",
        "reduction",
        prod,
        prod_backward,
        lambda rng: (rng.normal(size=(2, 4)) * [0, 1, 0, 1],),
    ),
    Entry(
        "cumprod with zeros",
        "scan",
        cumprod,
        cumprod_backward,
        lambda rng: (rng.normal(size=(2, 5)) * [1, 1, 0, 1, 0],),
        once=True,
    ),
]

ENTRIES = [*KINKS, *TIES, *ZEROS]
