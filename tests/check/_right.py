"""Operations whose backward is right, over all families; `_right_hard` has those of awkward inputs.

Each rule holds for every layout, for empty arrays and arrays of one element, for arguments that
forward broadcasts, and for complex numbers, unless forward refuses them. A rule written with tensor
methods can be differentiated again; the others are marked ``once=True``.
"""

from __future__ import annotations

import numpy as np
from tests.check._entries import Entry, raw, wrap


def draw(*shapes, dtype="float64", scale=1.0, extra=()):
    """Return a function that draws normal arrays of these shapes, before the `extra` arguments."""

    def inputs(rng):
        def normal(shape):
            values = rng.normal(size=shape)
            if np.dtype(dtype).kind == "c":
                values = values + 1j * rng.normal(size=shape)
            return np.asarray(scale * values, dtype)

        return (*(normal(shape) for shape in shapes), *extra)

    return inputs


def real(*tensors):
    """Refuse complex arguments, of which the rule is not the one written."""
    if any(tensor.is_complex() for tensor in tensors):
        raise TypeError("real arguments are required, got complex ones")


def at_least(ndim, *tensors):
    """Refuse arguments of fewer dimensions."""
    if any(tensor.ndim < ndim for tensor in tensors):
        raise ValueError(f"arguments of at least {ndim} dimensions are required")


def fit(grad, x):
    """Return the gradient of an argument that was broadcast, or is real among complex ones."""
    grad = grad.sum_to_size(x.shape)
    return grad.real if grad.is_complex() and not x.is_complex() else grad


def elementwise(name, function, derivative, inputs, holomorphic=False, family="elementwise"):
    """Return the entry of a function of one variable with its derivative."""

    def forward(ctx, x):
        if not holomorphic:
            real(x)
        ctx.save_for_backward(x)
        return function(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * derivative(x).conj()

    return Entry(name, family, forward, backward, inputs)


def linear(name, family, function, adjoint, inputs):
    """Return the entry of a linear map of `x`, which further arguments may set."""

    def forward(ctx, x, *settings):
        at_least(1, x)
        ctx.shape, ctx.settings = tuple(x.shape), settings
        return function(x, *settings)

    def backward(ctx, grad):
        return adjoint(grad, ctx.shape, *ctx.settings), *[None for _ in ctx.settings]

    return Entry(name, family, forward, backward, inputs)


# ---- elementwise ---------------------------------------------------------------------------------


def saved_output(name, function, derivative, inputs, family="elementwise"):
    """Return the entry of a holomorphic function whose derivative is one of the output."""

    def forward(ctx, x):
        y = function(x)
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * derivative(y).conj()

    return Entry(name, family, forward, backward, inputs)


def mul(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y


def mul_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return fit(grad * y.conj(), x), fit(grad * x.conj(), y)


def div(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x / y


def div_backward(ctx, grad):
    x, y = ctx.saved_tensors
    by_x = grad / y.conj()
    return fit(by_x, x), fit(-by_x * (x / y).conj(), y)


def arctan2(ctx, y, x):
    real(y, x)
    ctx.save_for_backward(y, x)
    return y.atan2(x)


def arctan2_backward(ctx, grad):
    y, x = ctx.saved_tensors
    square = x * x + y * y
    return fit(grad * x / square, y), fit(-grad * y / square, x)


def scale(ctx, x, factor):
    ctx.factor = factor
    return x * factor


def scale_backward(ctx, grad):
    return grad * ctx.factor, None


def power(ctx, x, exponent):
    ctx.exponent = exponent
    ctx.save_for_backward(x)
    return x**exponent


def power_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * (ctx.exponent * x ** (ctx.exponent - 1)).conj(), None


def choose(ctx, mask, x, y):
    ctx.save_for_backward(mask, x, y)
    return x.where(mask, y)


def choose_backward(ctx, grad):
    mask, x, y = ctx.saved_tensors
    return None, fit(grad.masked_fill(~mask, 0), x), fit(grad.masked_fill(mask, 0), y)


def affine(ctx, x, weight=None, bias=None):
    ctx.save_for_backward(x, weight, bias)
    y = x if weight is None else x * weight
    return y.clone() if bias is None else y + bias


def affine_backward(ctx, grad):
    x, weight, bias = ctx.saved_tensors
    needs_x, needs_weight, needs_bias = [ctx.needs_input_grad[i] for i in range(3)]
    by_x = by_weight = by_bias = None
    if needs_x:
        by_x = fit(grad if weight is None else grad * weight.conj(), x)
    if needs_weight:
        by_weight = fit(grad * x.conj(), weight)
    if needs_bias:
        by_bias = fit(grad, bias)
    return by_x, by_weight, by_bias


def polynomial(ctx, x, coefficients):
    ctx.coefficients = coefficients
    ctx.save_for_backward(x)
    y = x * 0 + coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        y = y * x + coefficient
    return y


def polynomial_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    slope = x * 0
    for n, coefficient in reversed(list(enumerate(ctx.coefficients))[1:]):
        slope = slope * x + n * coefficient
    return grad * slope.conj(), None


def sincos(ctx, x):
    ctx.save_for_backward(x)
    return x.sin(), x.cos()


def sincos_backward(ctx, grad_sin, grad_cos):
    (x,) = ctx.saved_tensors
    return grad_sin * x.cos().conj() - grad_cos * x.sin().conj()


def sincos_unmaterialized(ctx, x):
    ctx.set_materialize_grads(False)
    return sincos(ctx, x)


def sincos_unmaterialized_backward(ctx, grad_sin, grad_cos):
    (x,) = ctx.saved_tensors
    parts = [] if grad_sin is None else [grad_sin * x.cos().conj()]
    parts += [] if grad_cos is None else [-grad_cos * x.sin().conj()]
    return sum(parts) if parts else None


def arctan_numpy(ctx, x):
    real(x)
    ctx.save_for_backward(x)
    return wrap(x, np.arctan(raw(x)))


def arctan_numpy_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return wrap(grad, raw(grad) / (1 + raw(x) ** 2))


def drop(ctx, x, kept, probability):
    ctx.save_for_backward(x, kept)
    ctx.probability = probability
    return x.masked_fill(~kept, 0) / (1 - probability)


def drop_backward(ctx, grad):
    x, kept = ctx.saved_tensors
    return fit(grad.masked_fill(~kept, 0) / (1 - ctx.probability), x), None, None


def gelu(x):
    return 0.5 * x * (1 + (0.8 * (x + 0.04 * x**3)).tanh())


def gelu_slope(x):
    t = (0.8 * (x + 0.04 * x**3)).tanh()
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.8 * (1 + 0.12 * x * x)


ELEMENTWISE = [
    elementwise("sin", lambda x: x.sin(), lambda x: x.cos(), draw((3, 4)), holomorphic=True),
    elementwise("cube", lambda x: x * x * x, lambda x: 3 * x * x, draw((5,)), holomorphic=True),
    elementwise("softplus", lambda x: x.exp().log1p(), lambda x: x.sigmoid(), draw((2, 3))),
    elementwise("gelu", gelu, gelu_slope, draw((2, 5))),
    elementwise("0-d sin", lambda x: x.sin(), lambda x: x.cos(), draw(()), holomorphic=True),
    elementwise("empty square", lambda x: x * x, lambda x: 2 * x, draw((0, 3)), holomorphic=True),
    elementwise("identity", lambda x: x, lambda x: x * 0 + 1, draw((2, 3)), holomorphic=True),
    saved_output("exp", lambda x: x.exp(), lambda y: y, draw((3, 3))),
    saved_output("tanh", lambda x: x.tanh(), lambda y: 1 - y * y, draw((4, 2))),
    saved_output("one element sigmoid", lambda x: x.sigmoid(), lambda y: y * (1 - y), draw((1,))),
    Entry("mul of a row", "elementwise", mul, mul_backward, draw((2, 3), (3,))),
    Entry("mul of a number", "elementwise", mul, mul_backward, draw((2, 3), ())),
    Entry(
        "div of a column",
        "elementwise",
        div,
        div_backward,
        lambda rng: (rng.normal(size=(2, 3)), rng.uniform(1, 2, (2, 1))),
    ),
    Entry("arctan2", "elementwise", arctan2, arctan2_backward, draw((2, 3), (3,))),
    Entry("scale", "elementwise", scale, scale_backward, draw((3, 2), extra=(2.5,))),
    Entry("power of 3", "elementwise", power, power_backward, draw((4,), extra=(3,))),
    Entry(
        "where",
        "elementwise",
        choose,
        choose_backward,
        lambda rng: (rng.random((2, 3)) < 0.5, rng.normal(size=(2, 3)), rng.normal(size=3)),
    ),
    Entry("affine", "elementwise", affine, affine_backward, draw((4, 3), (3,), (3,))),
    Entry(
        "affine without weight",
        "elementwise",
        affine,
        affine_backward,
        lambda rng: (rng.normal(size=(2, 3)), None, rng.normal(size=3)),
    ),
    Entry(
        "polynomial",
        "elementwise",
        polynomial,
        polynomial_backward,
        draw((5,), extra=([1.0, -2.0, 0.5, 3.0],)),
    ),
    Entry("sin and cos", "elementwise", sincos, sincos_backward, draw((2, 2))),
    Entry(
        "sin and cos, unmaterialized",
        "elementwise",
        sincos_unmaterialized,
        sincos_unmaterialized_backward,
        draw((3,)),
    ),
    Entry(
        "arctan in NumPy",
        "elementwise",
        arctan_numpy,
        arctan_numpy_backward,
        draw((2, 3)),
        once=True,
    ),
    Entry(
        "dropout with a mask",
        "elementwise",
        drop,
        drop_backward,
        lambda rng: (rng.normal(size=(3, 4)), rng.random((3, 4)) < 0.7, 0.3),
    ),
]

# ---- complex -------------------------------------------------------------------------------------


def abs_square(ctx, z):
    ctx.save_for_backward(z)
    return (z * z.conj()).real if z.is_complex() else z * z


def abs_square_backward(ctx, grad):
    (z,) = ctx.saved_tensors
    return 2 * grad * z


def times_conj(ctx, z, w):
    ctx.save_for_backward(z, w)
    return z * w.conj()


def times_conj_backward(ctx, grad):
    z, w = ctx.saved_tensors
    return fit(grad * w, z), fit(grad.conj() * z, w)


def from_parts(ctx, x, y):
    real(x, y)
    ctx.save_for_backward(x, y)
    return x + 1j * y


def from_parts_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return fit(grad.real, x), fit(grad.imag, y)


def polar(ctx, z):
    if not z.is_complex():
        raise TypeError("a complex argument is required, got a real one")
    ctx.save_for_backward(z)
    return z.abs(), z.angle()


def polar_backward(ctx, grad_abs, grad_angle):
    (z,) = ctx.saved_tensors
    square = (z * z.conj()).real
    return grad_abs * z / square**0.5 + grad_angle * 1j * z / square


def fourier(ctx, z):
    if not z.is_complex() or not z.ndim:
        raise TypeError("a complex array is required")
    return wrap(z, np.fft.fft(raw(z.resolve_conj())) if z.numel() else raw(z))


def fourier_backward(ctx, grad):
    values = raw(grad.resolve_conj())
    return wrap(grad, np.fft.ifft(values, norm="forward") if values.size else values)


def real_part(ctx, z):
    if not z.is_complex():
        raise TypeError("a complex argument is required, got a real one")
    return z.real.clone()


def real_part_backward(ctx, grad):
    return grad + 0j


COMPLEX = [
    saved_output(
        "complex exp", lambda x: x.exp(), lambda y: y, draw((3,), dtype="complex128"), "complex"
    ),
    elementwise(
        "complex square",
        lambda x: x * x,
        lambda x: 2 * x,
        draw((2, 2), dtype="complex128"),
        holomorphic=True,
        family="complex",
    ),
    elementwise(
        "complex64 reciprocal",
        lambda x: 1 / x,
        lambda x: -1 / (x * x),
        lambda rng: ((rng.uniform(1, 2, 4) + 1j * rng.normal(size=4)).astype("complex64"),),
        holomorphic=True,
        family="complex",
    ),
    Entry("complex mul", "complex", mul, mul_backward, draw((2, 3), (3,), dtype="complex128")),
    Entry(
        "real times complex",
        "complex",
        mul,
        mul_backward,
        lambda rng: (rng.normal(size=3), rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))),
    ),
    Entry(
        "complex div",
        "complex",
        div,
        div_backward,
        lambda rng: (rng.normal(size=3) * 1j, rng.uniform(1, 2, 3) + 1j * rng.normal(size=3)),
    ),
    Entry(
        "abs squared", "complex", abs_square, abs_square_backward, draw((4,), dtype="complex128")
    ),
    Entry(
        "times conj",
        "complex",
        times_conj,
        times_conj_backward,
        draw((2, 3), (3,), dtype="complex128"),
    ),
    Entry("complex of its parts", "complex", from_parts, from_parts_backward, draw((3,), (3,))),
    Entry("abs and angle", "complex", polar, polar_backward, draw((3,), dtype="complex128")),
    Entry("real part", "complex", real_part, real_part_backward, draw((3,), dtype="complex128")),
    Entry(
        "Fourier transform in NumPy",
        "complex",
        fourier,
        fourier_backward,
        draw((2, 4), dtype="complex128"),
        once=True,
    ),
]

ENTRIES = [*ELEMENTWISE, *COMPLEX]
