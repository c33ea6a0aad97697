"""Complex numbers: their parts, and those made of real numbers, of length and angle, of pairs."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_tensor, wrapper_of
from pullback.ops.functions.creation import ones_like
from pullback.ops.functions.joining import stack
from pullback.ops.functions.pointwise import add, where
from pullback.ops.primitives.arithmetic import multiply
from pullback.ops.primitives.comparison import equal, less
from pullback.ops.primitives.complex_numbers import conj, imag_p, real_p, to_complex_p
from pullback.ops.primitives.rounding import sign_p
from pullback.ops.primitives.trigonometric import atan2, cos, sin
from pullback.ops.samples import both, only_complex, real as real_numbers, sample


# -- parts -----------------------------------------------------------------------------------------
def squared_size(x: Tensor) -> Tensor:
    """Return abs(x) ** 2, with the second derivatives at 0 that abs of a complex number has not."""
    return real(multiply(x, conj(x))) if x.dtype.is_complex else multiply(x, x)


@wrapper_of(real_p, numpy="real: val=x")
def real(x: Any, /) -> Tensor:
    """Return the real part of complex numbers, a view; real numbers as they are.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.real(pb.tensor([1.0 + 2.0j]))
    tensor([1.])
    """
    needs_tensor("real", x)
    return real_p.public(x) if "complex" in str(x.dtype) else x


@wrapper_of(imag_p)
def imag(x: Any, /) -> Tensor:
    """Return the imaginary part of complex numbers, a view.

    Raises
    ------
    DTypeError
        If the dtype is not complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.imag(pb.tensor([1.0 + 2.0j]))
    tensor([2.])
    """
    needs_tensor("imag", x)
    if "complex" not in str(x.dtype):
        raise DTypeError(compose("imag", "a complex dtype required", x.dtype.name, ("x", x)))
    return imag_p.public(x)


def _reals(op: str, name: str, x: Any) -> Tensor:
    result = tensor_of(op, x, name)
    if not result.dtype.is_floating_point:
        required = f"real floating point numbers required as '{name}'"
        raise DTypeError(compose(op, required, result.dtype.name, (name, result)))
    return result


# -- made of real numbers --------------------------------------------------------------------------
@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain=real_numbers(-2, 2),
    reference=(lambda x, y: x + 1j * y),
    result_dtype="complex",
)
def complex(real: Any, imag: Any) -> Tensor:
    """Return the complex numbers real + i imag.

    Raises
    ------
    DTypeError
        If a part is not of real floating point numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.complex(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor([1.+3.j, 2.+4.j])
    """
    real, imag = _reals("complex", "real", real), _reals("complex", "imag", imag)
    result: Tensor = add(
        to_complex_p.public(real, imaginary=False), to_complex_p.public(imag, imaginary=True)
    )
    return result


@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain={"abs": real_numbers(0.5, 2), "angle": real_numbers(-3, 3)},
    reference=(lambda np, r, angle: r * np.exp(1j * angle)),
    result_dtype="complex",
)
def polar(abs: Any, angle: Any) -> Tensor:
    """Return the complex numbers of a length and an angle: abs * (cos(angle) + i sin(angle)).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.polar(pb.tensor([2.0]), pb.tensor([0.0]))
    tensor([2.+0.j])
    """
    abs, angle = _reals("polar", "abs", abs), _reals("polar", "angle", angle)
    return complex(multiply(abs, cos(angle)), multiply(abs, sin(angle)))


@composition(sample((3, 4)), sample(()), domain=both(0.5, 2), result_dtype="real", methods="angle")
def angle(x: Any) -> Tensor:
    """Return the angle of complex numbers, from -pi to pi; of real ones 0, or pi below 0.

    The derivative at 0 is 0, as that of real numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.angle(pb.tensor([1.0j, -1.0]))
    tensor([1.5708, 3.1416])
    """
    x = tensor_of("angle", x)
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    x = x if x.dtype.is_inexact else x.to(x._default_dtype())
    flat = multiply(sign_p.public(x), 0)  # NaN stays
    return where(less(x, 0), add(flat, math.pi), flat)


@composition(
    sample((3, 2)),
    sample((0, 2)),
    sample((2,)),
    domain=real_numbers(-2, 2),
    reference=(lambda x: x[..., 0] + 1j * x[..., 1]),
    result_dtype="complex",
    scalars=False,
)
def view_as_complex(x: Any) -> Tensor:
    """Return the complex numbers whose parts are the pairs of the last axis, as a copy.

    Raises
    ------
    ShapeError, DTypeError
        If the last axis is not of length 2; if the numbers are not real floating point ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.view_as_complex(pb.tensor([[1.0, 3.0], [2.0, 4.0]]))
    tensor([1.+3.j, 2.+4.j])
    """
    x = _reals("view_as_complex", "x", x)
    if x.shape[-1:] != (2,):
        came = f"shape {x.shape}"
        raise ShapeError(
            compose("view_as_complex", "a last axis of length 2 required", came, ("x", x))
        )
    return complex(x[..., 0], x[..., 1])


@composition(
    sample((3,)),
    sample(()),
    sample((0, 2)),
    domain=only_complex(-2, 2),
    reference=(lambda np, x: np.stack([x.real, x.imag], -1)),
    result_dtype="real",
)
def view_as_real(x: Any) -> Tensor:
    """Return complex numbers as real ones with a last axis of length 2, as a copy.

    Raises
    ------
    DTypeError
        If the numbers are not complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.view_as_real(pb.tensor([1.0 + 3.0j]))
    tensor([[1., 3.]])
    """
    x = tensor_of("view_as_real", x)
    if not x.dtype.is_complex:
        came = x.dtype.name
        raise DTypeError(compose("view_as_real", "a complex dtype required", came, ("x", x)))
    return stack([real(x), imag(x)], axis=-1)


@composition(
    sample((3,)),
    sample(()),
    domain=both(-2, 2),
    differentiable=False,
    result_dtype="bool",
    methods="isreal",
)
def isreal(x: Any) -> Tensor:
    """Return whether the imaginary part of each element is 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isreal(pb.tensor([1.0 + 2.0j, 3.0 + 0.0j]))
    tensor([False,  True])
    """
    x = tensor_of("isreal", x).detach()
    return equal(imag(x), 0) if x.dtype.is_complex else ones_like(x, dtype="bool")
