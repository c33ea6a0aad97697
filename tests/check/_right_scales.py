"""Operations whose backward is right at inputs where a difference quotient is poor.

Edges of the domain, strong curvature, saturation, huge and tiny scales, ill-conditioned matrices
and narrow types.
"""

from __future__ import annotations

import numpy as np
from tests.check._entries import Entry, raw, wrap
from tests.check._right import (
    draw,
    elementwise,
    linear,
    mul,
    mul_backward,
    real,
    saved_output,
)
from tests.check._right_arrays import (
    dense,
    dense_backward,
    log_softmax,
    log_softmax_backward,
    logsumexp,
    logsumexp_backward,
    matmul,
    matmul_backward,
    softmax,
    softmax_backward,
    solve,
    solve_backward,
)
from tests.check._right_hard import as_float, at, flat, powers
from tests.check._right_indexing import layer_norm, layer_norm_backward, with_scale

# ---- edges of the domain, curvature, saturation --------------------------------------------------

CURVED = [
    saved_output("sqrt of tiny", lambda x: x**0.5, lambda y: 0.5 / y, powers(-12, 0)),
    elementwise("log near 0", lambda x: x.log(), lambda x: 1 / x, powers(-8, 0), holomorphic=True),
    elementwise(
        "arcsin near 1",
        lambda x: x.asin(),
        lambda x: (1 - x * x) ** -0.5,
        lambda rng: ((1 - powers(-6, -1)(rng)[0]) * rng.choice([-1, 1], 6),),
    ),
    elementwise(
        "reciprocal near 0",
        lambda x: 1 / x,
        lambda x: -1 / (x * x),
        powers(-5, 0, sign=True),
        holomorphic=True,
    ),
    elementwise(
        "tan near pi / 2",
        lambda x: x.tan(),
        lambda x: 1 + x.tan() ** 2,
        lambda rng: (np.pi / 2 - powers(-3, 0, sign=True)(rng)[0],),
        holomorphic=True,
    ),
    saved_output("exp of 20 x", lambda x: (20 * x).exp(), lambda y: 20 * y, draw((2, 3))),
    elementwise(
        "sin of 200 x",
        lambda x: (200 * x).sin(),
        lambda x: 200 * (200 * x).cos(),
        draw((2, 3)),
        holomorphic=True,
    ),
    saved_output("tanh at 30", lambda x: x.tanh(), lambda y: 1 - y * y, draw((6,), scale=15.0)),
    saved_output(
        "sigmoid at 30", lambda x: x.sigmoid(), lambda y: y * (1 - y), draw((6,), scale=15.0)
    ),
    Entry("softmax at 30", "softmax", softmax, softmax_backward, draw((2, 4), scale=15.0)),
    Entry(
        "log softmax at 30",
        "softmax",
        log_softmax,
        log_softmax_backward,
        draw((2, 4), scale=15.0, extra=(-1,)),
    ),
    Entry(
        "logsumexp at 1000",
        "softmax",
        logsumexp,
        logsumexp_backward,
        draw((2, 4), scale=500.0, extra=(-1,)),
    ),
]

# ---- scales --------------------------------------------------------------------------------------


def square_sum(ctx, x):
    ctx.save_for_backward(x)
    return (x * x).sum()


def square_sum_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * 2 * x.conj()


def hilbert(rng):
    n = np.arange(5)
    return 1 / (n[:, None] + n + 1) + 1e-4 * rng.uniform(-0.1, 0.1, (5, 5))


def inverse(ctx, A):
    real(A)
    values = np.linalg.inv(raw(A))
    ctx.save_for_backward(A)
    return wrap(A, values)


def inverse_backward(ctx, grad):
    (A,) = ctx.saved_tensors
    adjoint = np.swapaxes(np.linalg.inv(raw(A)), -1, -2)
    return wrap(grad, -adjoint @ raw(grad) @ adjoint)


SCALES = [
    elementwise(
        "square of 1e8", lambda x: x * x, lambda x: 2 * x, draw((4,), scale=1e8), holomorphic=True
    ),
    elementwise(
        "square of 1e-8", lambda x: x * x, lambda x: 2 * x, draw((4,), scale=1e-8), holomorphic=True
    ),
    elementwise(
        "square of 1e150",
        lambda x: x * x,
        lambda x: 2 * x,
        draw((4,), scale=1e150),
        holomorphic=True,
    ),
    elementwise(
        "square of 1e-150",
        lambda x: x * x,
        lambda x: 2 * x,
        draw((4,), scale=1e-150),
        holomorphic=True,
    ),
    elementwise(
        "square of mixed scales",
        lambda x: x * x,
        lambda x: 2 * x,
        powers(-8, 8, sign=True),
        holomorphic=True,
    ),
    elementwise(
        "offset of 1e8", lambda x: 1e8 + x, lambda x: flat(x) + 1, draw((2, 3)), holomorphic=True
    ),
    elementwise(
        "slope of 1e-12",
        lambda x: 1 + 1e-12 * x,
        lambda x: flat(x) + 1e-12,
        draw((3,)),
        holomorphic=True,
    ),
    Entry(
        "1e150 times 1e-150",
        "elementwise",
        mul,
        mul_backward,
        lambda rng: (1e150 * rng.normal(size=3), 1e-150 * rng.normal(size=(2, 3))),
    ),
    Entry(
        "sum of squares of mixed scales",
        "reduction",
        square_sum,
        square_sum_backward,
        powers(-8, 8, sign=True),
    ),
    linear(
        "sum of 1e8",
        "reduction",
        lambda x: x.sum(-1),
        lambda grad, shape: grad.unsqueeze(-1).expand(shape),
        draw((2, 4), scale=1e8),
    ),
    Entry(
        "solve of a Hilbert matrix",
        "matmul",
        solve,
        solve_backward,
        lambda rng: (hilbert(rng), rng.normal(size=(5, 2))),
    ),
    Entry(
        "inverse of a Hilbert matrix",
        "matmul",
        inverse,
        inverse_backward,
        lambda rng: (hilbert(rng),),
        once=True,
    ),
]

# ---- narrow types --------------------------------------------------------------------------------


def in_float32(ctx, x):
    real(x)
    y = x.float().tanh()
    ctx.save_for_backward(x)
    return y.to(x.dtype)


def in_float32_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    y = x.float().tanh()
    return (grad.float() * (1 - y * y)).to(x.dtype)


def layer_norm32(rng):
    return *(array.astype("float32") for array in with_scale(rng)[:3]), 1e-5


def narrow(*shapes, dtype="float32", extra=()):
    return draw(*shapes, dtype=dtype, extra=extra)


NARROW = [
    saved_output("float32 exp", lambda x: x.exp(), lambda y: y, narrow((2, 3))),
    saved_output(
        "float16 tanh", lambda x: x.tanh(), lambda y: 1 - y * y, narrow((5,), dtype="float16")
    ),
    elementwise(
        "float32 offset of 100",
        lambda x: 100 + x,
        lambda x: flat(x) + 1,
        narrow((4,)),
        holomorphic=True,
    ),
    elementwise(
        "float32 relu at 0",
        lambda x: x.clamp(min=0),
        lambda x: as_float(x > 0, x),
        lambda rng: (at(0.0)(rng)[0].astype("float32"),),
    ),
    Entry(
        "float32 tanh of float16",
        "elementwise",
        in_float32,
        in_float32_backward,
        narrow((5,), dtype="float16"),
    ),
    Entry("tanh computed in float32", "elementwise", in_float32, in_float32_backward, narrow((5,))),
    Entry("float32 linear", "matmul", dense, dense_backward, narrow((3, 4), (2, 4), (2,))),
    Entry(
        "float16 matmul", "matmul", matmul, matmul_backward, narrow((2, 3), (3, 2), dtype="float16")
    ),
    Entry("float32 softmax", "softmax", softmax, softmax_backward, narrow((3, 4))),
    Entry("float32 layer norm", "norm", layer_norm, layer_norm_backward, layer_norm32),
    Entry("float32 sum of squares", "reduction", square_sum, square_sum_backward, narrow((5, 5))),
]

ENTRIES = [*CURVED, *SCALES, *NARROW]
