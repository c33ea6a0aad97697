"""Operations whose backward is right: those that couple the elements of an array."""

from __future__ import annotations

import numpy as np
from tests.check._entries import Entry, raw, wrap, xp
from tests.check._right import at_least, draw, fit, linear, real

# ---- reduction -----------------------------------------------------------------------------------


def keep(tensor, x, dim):
    """Return a reduction of `x` along `dim` with that axis kept."""
    return tensor.unsqueeze(dim) if x.ndim else tensor


def mean(ctx, x):
    ctx.shape = tuple(x.shape)
    ctx.count = max(x.numel(), 1)
    return x.sum() / ctx.count


def mean_backward(ctx, grad):
    return (grad / ctx.count).expand(ctx.shape)


def logsumexp(ctx, x, dim):
    real(x)
    y = x.logsumexp(dim)
    ctx.dim = dim
    ctx.save_for_backward(x, y)
    return y


def logsumexp_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return keep(grad, x, ctx.dim) * (x - keep(y, x, ctx.dim)).exp(), None


def prod(ctx, x):
    at_least(1, x)
    ctx.save_for_backward(x)
    return x.prod(-1)


def prod_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    ones = x[..., :1] * 0 + 1
    before = xp(x).cat((ones, x[..., :-1].cumprod(-1)), -1)
    after = xp(x).cat((ones, x.flip(-1)[..., :-1].cumprod(-1)), -1).flip(-1)
    return grad.unsqueeze(-1) * (before * after).conj()


def variance(ctx, x):
    real(x)
    ctx.save_for_backward(x)
    count = max(x.numel(), 1)
    return ((x - x.sum() / count) ** 2).sum() / count


def variance_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    count = max(x.numel(), 1)
    return 2 * grad * (x - x.sum() / count) / count


def mse(ctx, prediction, target):
    real(prediction, target)
    ctx.save_for_backward(prediction, target)
    error = prediction - target
    return (error * error).sum() / max(error.numel(), 1)


def mse_backward(ctx, grad):
    prediction, target = ctx.saved_tensors
    error = prediction - target
    slope = 2 * grad * error / max(error.numel(), 1)
    return fit(slope, prediction), fit(-slope, target)


REDUCTION = [
    linear(
        "sum of an axis",
        "reduction",
        lambda x, dim: x.sum(dim),
        lambda grad, shape, dim: grad.unsqueeze(dim).expand(shape),
        draw((3, 4), extra=(0,)),
    ),
    linear(
        "sum of axes, kept",
        "reduction",
        lambda x, dims: x.sum(dims, keepdim=True),
        lambda grad, shape, dims: grad.expand(shape),
        draw((2, 3, 2), extra=((-1,),)),
    ),
    linear(
        "sum of nothing",
        "reduction",
        lambda x, dim: x.sum(dim),
        lambda grad, shape, dim: grad.unsqueeze(dim).expand(shape),
        draw((0, 3), extra=(0,)),
    ),
    Entry("mean", "reduction", mean, mean_backward, draw((3, 4))),
    Entry("mean of one element", "reduction", mean, mean_backward, draw((1,))),
    Entry("logsumexp", "reduction", logsumexp, logsumexp_backward, draw((3, 4), extra=(1,))),
    Entry("prod", "reduction", prod, prod_backward, draw((2, 4))),
    Entry("variance", "reduction", variance, variance_backward, draw((3, 3))),
    Entry("mean squared error", "reduction", mse, mse_backward, draw((3, 2), (3, 2))),
]

# ---- matmul --------------------------------------------------------------------------------------


def matmul(ctx, a, b):
    at_least(2, a, b)
    ctx.save_for_backward(a, b)
    return a @ b


def matmul_backward(ctx, grad):
    a, b = ctx.saved_tensors
    by_a = grad @ b.mT.conj() if ctx.needs_input_grad[0] else None
    by_b = a.mT.conj() @ grad if ctx.needs_input_grad[1] else None
    return None if by_a is None else fit(by_a, a), None if by_b is None else fit(by_b, b)


def dense(ctx, x, weight, bias=None):
    real(*(tensor for tensor in (x, weight, bias) if tensor is not None))
    at_least(2, x)
    ctx.save_for_backward(x, weight, bias)
    y = x @ weight.t()
    return y if bias is None else y + bias


def dense_backward(ctx, grad):
    x, weight, bias = ctx.saved_tensors
    slope = grad.sum_to_size((*x.shape[:-1], len(weight)))  # where the bias was no row
    by_bias = None if bias is None else fit(grad, bias)
    return slope @ weight, fit(slope.mT @ x, weight), by_bias


def quadratic(ctx, x, A):
    if tuple(A.shape) != (len(x), len(x)):
        raise ValueError("a square matrix of the size of x is required")
    ctx.save_for_backward(x, A)
    return xp(x).einsum("i,ij,j->", x, A, x)


def quadratic_backward(ctx, grad):
    x, A = ctx.saved_tensors
    by_x, by_A = grad * ((A + A.mT) @ x).conj(), grad * (x.unsqueeze(1) * x).conj()
    return fit(by_x, x), fit(by_A, A)


def solve(ctx, A, B):
    at_least(2, A)
    if A.ndim != B.ndim:  # a stack of vectors and a matrix cannot be distinguished
        raise ValueError("as many dimensions of B as of A are required")
    X = xp(A).linalg.solve(A, B)
    ctx.save_for_backward(A, X, B)
    return X


def solve_backward(ctx, grad):
    A, X, B = ctx.saved_tensors
    by_B = xp(A).linalg.solve(A.mT.conj(), grad)
    return fit(-by_B @ X.mT.conj(), A), fit(by_B, B)


def log_abs_det(ctx, A):
    real(A)
    ctx.save_for_backward(A)
    return wrap(A, np.linalg.slogdet(raw(A))[1])


def log_abs_det_backward(ctx, grad):
    (A,) = ctx.saved_tensors
    inverse = np.linalg.inv(raw(A))
    return wrap(grad, raw(grad)[..., None, None] * np.swapaxes(inverse, -1, -2))


def near_identity(rng, n):
    return 3 * np.eye(n) + rng.uniform(-0.5, 0.5, (n, n))


MATMUL = [
    Entry("matmul", "matmul", matmul, matmul_backward, draw((2, 3), (3, 4))),
    Entry("matmul of nothing", "matmul", matmul, matmul_backward, draw((2, 0), (0, 3))),
    Entry("matmul of stacks", "matmul", matmul, matmul_backward, draw((2, 1, 2, 3), (2, 3, 2))),
    Entry(
        "complex matmul",
        "matmul",
        matmul,
        matmul_backward,
        draw((2, 3), (3, 2), dtype="complex128"),
    ),
    Entry("linear", "matmul", dense, dense_backward, draw((4, 3), (2, 3), (2,))),
    Entry(
        "linear without bias", "matmul", dense, dense_backward, draw((1, 3), (2, 3), extra=(None,))
    ),
    Entry("quadratic form", "matmul", quadratic, quadratic_backward, draw((3,), (3, 3))),
    Entry(
        "solve",
        "matmul",
        solve,
        solve_backward,
        lambda rng: (near_identity(rng, 3), rng.normal(size=(3, 2))),
    ),
    Entry(
        "log |det| in NumPy",
        "matmul",
        log_abs_det,
        log_abs_det_backward,
        lambda rng: (near_identity(rng, 3),),
        once=True,
    ),
]

# ---- conv ----------------------------------------------------------------------------------------


def conv1d(ctx, x, kernel, stride):
    at_least(1, x)
    if kernel.ndim != 1:
        raise ValueError("a kernel of one dimension is required")
    positions = stride * np.arange((x.shape[-1] - len(kernel)) // stride + 1)[:, None]
    ctx.index = wrap(x, positions + np.arange(len(kernel)))
    ctx.save_for_backward(x, kernel)
    return (x[..., ctx.index] * kernel).sum(-1)


def conv1d_backward(ctx, grad):
    x, kernel = ctx.saved_tensors
    by_patch = (grad.unsqueeze(-1) * kernel.conj()).flatten(-2)
    by_x = by_patch.new_zeros(x.shape).index_add(-1, ctx.index.flatten(), by_patch)
    by_kernel = grad.unsqueeze(-1) * x[..., ctx.index].conj()
    return fit(by_x, x), fit(by_kernel, kernel), None


def windows(image, kernel):
    return np.lib.stride_tricks.sliding_window_view(image, kernel.shape[-2:], (-2, -1))


def conv2d(ctx, image, kernel):
    real(image, kernel)
    if image.shape[0] != kernel.shape[1]:
        raise ValueError("as many channels in the image as in the kernel are required")
    ctx.save_for_backward(image, kernel)
    values = np.einsum("cpqhw,ochw->opq", windows(raw(image), kernel), raw(kernel))
    return wrap(image, values)


def conv2d_backward(ctx, grad):
    image, kernel = ctx.saved_tensors
    by_kernel = np.einsum("opq,cpqhw->ochw", raw(grad), windows(raw(image), kernel))
    by_image = np.zeros(image.shape, raw(grad).dtype)
    rows, columns = grad.shape[-2:]
    for h, w in np.ndindex(*kernel.shape[-2:]):
        part = np.einsum("opq,oc->cpq", raw(grad), raw(kernel)[:, :, h, w])
        by_image[:, h : h + rows, w : w + columns] += part
    return wrap(grad, by_image), wrap(grad, by_kernel)


def conv_transpose1d(ctx, x, kernel):
    ctx.save_for_backward(x, kernel)
    n, m = len(x), len(kernel)
    ctx.index = wrap(x, np.arange(n)[:, None] + np.arange(m))
    products = (x.unsqueeze(-1) * kernel).flatten()
    return products.new_zeros(max(n + m - 1, 0)).index_add(0, ctx.index.flatten(), products)


def conv_transpose1d_backward(ctx, grad):
    x, kernel = ctx.saved_tensors
    patch = grad[ctx.index]
    by_x = (patch * kernel.conj()).sum(-1)
    return fit(by_x, x), fit((patch * x.unsqueeze(-1).conj()).sum(0), kernel)


def pool_backward(grad, shape, size):
    spread = (grad / size).unsqueeze(-1).expand(*grad.shape, size).flatten(-2)
    rest = grad.new_zeros((*shape[:-1], shape[-1] - spread.shape[-1]))
    return xp(grad).cat((spread, rest), -1)


CONV = [
    Entry("conv1d", "conv", conv1d, conv1d_backward, draw((2, 6), (3,), extra=(1,))),
    Entry("conv1d of stride 2", "conv", conv1d, conv1d_backward, draw((8,), (3,), extra=(2,))),
    Entry(
        "conv1d in float32",
        "conv",
        conv1d,
        conv1d_backward,
        draw((7,), (2,), dtype="float32", extra=(1,)),
    ),
    Entry(
        "conv2d in NumPy", "conv", conv2d, conv2d_backward, draw((2, 4, 3), (2, 2, 2, 2)), once=True
    ),
    Entry(
        "transposed conv1d",
        "conv",
        conv_transpose1d,
        conv_transpose1d_backward,
        draw((4,), (3,)),
    ),
    linear(
        "average pooling",
        "conv",
        lambda x, size: x[..., : x.shape[-1] // size * size].unflatten(-1, (-1, size)).mean(-1),
        pool_backward,
        draw((2, 7), extra=(2,)),
    ),
]

# ---- softmax -------------------------------------------------------------------------------------


def softmax(ctx, x):
    real(x)
    y = x.softmax(-1)
    ctx.save_for_backward(y)
    return y


def softmax_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return y * (grad - (y * grad).sum(-1, keepdim=True))


def log_softmax(ctx, x, dim):
    real(x)
    y = x.log_softmax(dim)
    ctx.dim = dim
    ctx.save_for_backward(y)
    return y


def log_softmax_backward(ctx, grad):
    (y,) = ctx.saved_tensors
    return grad - y.exp() * grad.sum(ctx.dim, keepdim=True), None


def cross_entropy(ctx, logits, labels, reduction):
    real(logits)
    if len(labels) != len(logits):
        raise ValueError("one label a row is required")
    ctx.save_for_backward(logits, labels)
    ctx.count = max(len(labels), 1) if reduction == "mean" else 1
    return -logits.log_softmax(1).gather(1, labels.unsqueeze(1)).sum() / ctx.count


def cross_entropy_backward(ctx, grad):
    logits, labels = ctx.saved_tensors
    minus_ones = logits.new_zeros((len(labels), 1)) - 1
    slope = logits.softmax(1).scatter_add(1, labels.unsqueeze(1), minus_ones)
    return grad * slope / ctx.count, None, None


def masked_softmax(ctx, x, mask):
    real(x)
    if x.shape != mask.shape:
        raise ValueError("a mask of the shape of x is required")
    y = x.masked_fill(~mask, -1e30).softmax(-1).masked_fill(~mask, 0)  # a row may have no element
    ctx.save_for_backward(y)
    return y


def masked_softmax_backward(ctx, grad):
    return softmax_backward(ctx, grad), None


def attention(ctx, query, key, value, factor=None):
    real(query, key, value)
    at_least(2, query, key, value)
    ctx.factor = max(query.shape[-1], 1) ** -0.5 if factor is None else factor
    ctx.save_for_backward(query, key, value)
    return (query @ key.mT * ctx.factor).softmax(-1) @ value


def attention_backward(ctx, grad):
    query, key, value = ctx.saved_tensors
    weights = (query @ key.mT * ctx.factor).softmax(-1)
    by_weights = grad @ value.mT
    slope = weights * (by_weights - (by_weights * weights).sum(-1, keepdim=True)) * ctx.factor
    by_query, by_key = slope @ key, slope.mT @ query
    return fit(by_query, query), fit(by_key, key), fit(weights.mT @ grad, value), None


def labelled(rng):
    return rng.normal(size=(4, 3)), rng.integers(0, 3, 4)


def cholesky(ctx, a):
    factor = np.linalg.cholesky(raw(a))
    ctx.save_for_backward(wrap(a, factor))
    return wrap(a, factor)


def cholesky_backward(ctx, grad):
    """Return the symmetric gradient, though forward reads the lower triangle alone."""
    lower = raw(ctx.saved_tensors[0])
    inverse = np.linalg.inv(lower)
    product = np.tril(lower.T @ np.tril(raw(grad)))
    return wrap(grad, (inverse.T @ (product + np.tril(product, -1).T) @ inverse) / 2)


CHOLESKY = Entry(
    "cholesky, gradient in both triangles",
    "matmul",
    cholesky,
    cholesky_backward,
    lambda rng: (np.array([[4.0, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]]),),
    once=True,
)

SOFTMAX = [
    Entry("softmax", "softmax", softmax, softmax_backward, draw((3, 4))),
    Entry("log softmax", "softmax", log_softmax, log_softmax_backward, draw((3, 2), extra=(0,))),
    Entry(
        "cross entropy, mean",
        "softmax",
        cross_entropy,
        cross_entropy_backward,
        lambda rng: (*labelled(rng), "mean"),
    ),
    Entry(
        "cross entropy, sum",
        "softmax",
        cross_entropy,
        cross_entropy_backward,
        lambda rng: (*labelled(rng), "sum"),
    ),
    Entry(
        "masked softmax",
        "softmax",
        masked_softmax,
        masked_softmax_backward,
        lambda rng: (rng.normal(size=(3, 4)), np.arange(3)[:, None] > np.arange(4)),
    ),
    Entry("attention", "softmax", attention, attention_backward, draw((2, 3), (4, 3), (4, 2))),
]

ENTRIES = [*REDUCTION, *MATMUL, CHOLESKY, *CONV, *SOFTMAX]
