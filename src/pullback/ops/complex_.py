"""Complex numbers: their parts, conjugates and directions.

None of these is holomorphic: the rules say the gradient dL/dx + i dL/dy themselves.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import complex_of, library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, compose
from pullback.ops._declare import (
    READ_ONLY,
    both,
    elementwise,
    face,
    needs_tensor,
    on,
    only_complex,
    operation,
    sample,
    standard,
)
from pullback.ops._declare import real as reals
from pullback.ops._examples import documented

__all__ = [
    "conj",
    "imag",
    "real",
]

conj = elementwise(
    "conj",
    lambda xp, x: xp.conj(x) if "complex" in str(x.dtype) else x + 0,
    x=lambda g, xp: xp.conj(g),
    holomorphic=False,
    domain=both(-2, 2),
    doc=documented(
        "Return the complex conjugate.",
        "pb.conj(pb.tensor([1.0 + 2.0j]))",
        "tensor([1.-2.j])",
    ),
)


def _turn(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the part of g that turns x, over its magnitude; 0 where x is 0."""
    along = out * xp.real(xp.conj(out) * g)
    safe = xp.where(x == 0, xp.ones_like(x), x)
    return xp.where(x == 0, xp.zeros_like(g), (g - along) / xp.abs(safe))


complex_sign = elementwise(
    "sgn",
    standard("sign"),
    x=_turn,
    holomorphic=False,
    domain=only_complex(-2, 2),
    doc="Return x / abs(x), 0 where x is 0.",
)


def _to_complex(xp: Any, g: Any, *, imaginary: bool) -> Any:
    library = library_of(g)
    return library.astype(g, complex_of(library.dtype(g))) * (1j if imaginary else 1)


to_complex = operation(
    "to_complex",
    _to_complex,
    rules={
        "g": lambda g, imaginary, xp: xp.imag(g) if imaginary else xp.real(g),
    },
    holomorphic=False,
    domain=reals(-2, 2),
    samples=(sample((3,), imaginary=False), sample((3,), imaginary=True)),
    doc="Return g, or g times the imaginary unit, as complex numbers.",
)
real_ = operation(
    "real",
    lambda xp, x: xp.real(x),
    rules={"x": lambda g, xp: on(xp, to_complex)(g, imaginary=False)},
    view=READ_ONLY,
    holomorphic=False,
    domain=only_complex(-2, 2),
    samples=(sample((3, 4)),),
    doc="Return the real part of complex numbers.",
)
imag_ = operation(
    "imag",
    lambda xp, x: xp.imag(x),
    rules={"x": lambda g, xp: on(xp, to_complex)(g, imaginary=True)},
    view=READ_ONLY,
    holomorphic=False,
    domain=only_complex(-2, 2),
    samples=(sample((3, 4)),),
    doc="Return the imaginary part of complex numbers.",
)


@face(real_)
def real(x: Any, /) -> Tensor:
    """Return the real part of complex numbers, a view; real numbers as they are.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.real(pb.tensor([1.0 + 2.0j]))
    tensor([1.])
    """
    needs_tensor("real", x)
    return real_(x) if "complex" in str(x.dtype) else x


@face(imag_)
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
    return imag_(x)
