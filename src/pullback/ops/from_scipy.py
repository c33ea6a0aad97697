"""How a function of SciPy's becomes an operation: its values are SciPy's, the rules are declared.

They need ``pip install 'pullback[scipy]'``; on a GPU they are CuPy's. The functions are of real
numbers, and refuse complex ones.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.errors import DTypeError, compose
from pullback.ops.declare import Domain, Primitive, elementwise


def needs_real(op: str, inputs: tuple[str, ...], arrays: tuple[Any, ...]) -> None:
    """Raise where a function of real numbers got complex ones."""
    for name, array in zip(inputs, arrays, strict=True):
        if "complex" in str(array.dtype):
            came, hint = str(array.dtype).rpartition(".")[2], "take its real part, or its abs"
            raise DTypeError(compose(op, "real numbers required", came, (name, array), hint=hint))


def from_scipy(
    name: str, scipy_name: str = "", *, domain: Domain | dict[str, Domain], **facts: Any
) -> Primitive:
    """Declare a function of `scipy.special`, of the same name if no other is given.

    `facts` are those of `elementwise`.
    """
    scipy_name = scipy_name or name

    def kernel(xp: Any, *arrays: Any) -> Any:
        return like(arrays[0], library_of(arrays[0]).special(scipy_name, *arrays))

    def forward(xp: Any, *arrays: Any) -> Any:
        needs_real(name, op.inputs, arrays)
        return kernel(xp, *arrays)

    op = elementwise(name, forward, unchecked_forward=kernel, floating=True, domain=domain, **facts)
    return op


def like(x: Any, result: Any) -> Any:
    """Return the result in the dtype of `x`: SciPy has no half precision, and widens numbers."""
    library = library_of(x)
    result = library.tidy(result)
    return result if result.dtype == x.dtype else library.astype(result, library.dtype(x))
