"""Tensors as an array library: what the arrays of a wrapping library may hold in place of arrays.

A tangent, or one more level of wrapping, whose parts are tensors keeps their graph: computing with
the parts records it. Owns the library of such parts; its functions are the operations themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pullback.arrays import Array, DType, Library, library_of
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.graph.modes import MAKING, STATE, mode_of_parts, run_with
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose

# SciPy's names of special functions that PyTorch calls otherwise.
_NAMES = {"gammaln": "lgamma", "psi": "digamma"}


class TensorLibrary(Library):
    """The operations on tensors, with the methods of an array library; nothing is registered."""

    mutable = False  # a change in place is recorded on a copy
    array_types = (Tensor,)
    level = sys.maxsize  # operations take arrays of any library beside tensors

    def __init__(self) -> None:
        super().__init__("pullback", TENSOR_XP)

    def native(self, dtype: DType) -> DType:
        return dtype

    def dtype(self, a: Array) -> DType:
        dtype: DType = a.dtype
        return dtype

    def device(self, a: Array) -> str:
        device: str = a.device
        return device

    def native_device(self, name: str) -> Any:
        return name

    def from_numpy(self, array: Any, device: Any = None) -> Array:
        return TENSOR_XP.asarray(array, device=device)

    def to_numpy(self, a: Array) -> Any:
        return a.detach().cpu().numpy()

    def moved(self, a: Array, name: str, target: Library, device: Any = None) -> Array:
        return TENSOR_XP.toDevice(a, device=name)

    def special(self, name: str, *arrays: Array) -> Array:
        function = getattr(TENSOR_XP, _NAMES.get(name, name), None)
        if function is None:
            required = "a special function that is an operation as well required"
            raise ArgumentTypeError(compose("special", required, name))
        return function(*arrays)

    def copy(self, a: Array) -> Array:
        return TENSOR_XP.clone(a)

    def reshape(self, a: Array, shape: tuple[int, ...]) -> tuple[Array, bool]:
        return TENSOR_XP.reshape(a, shape), True

    def diagonal(self, a: Array, offset: int = 0) -> Array:
        return TENSOR_XP.diagonal(a, offset=offset)

    def getitem(self, a: Array, index: Any) -> Array:
        return a[index]

    def assign(self, a: Array, index: Any, value: Any) -> Array:
        result = TENSOR_XP.clone(a)
        result[index] = value
        return result

    def add_at(self, a: Array, index: Any, value: Any) -> Array:
        shape, value = a[index].shape, TENSOR_XP.asarray(value)
        extra = len(value.shape) - len(shape)  # leading axes of length 1, which NumPy drops
        value = TENSOR_XP.reshape(value, value.shape[extra:]) if extra > 0 else value
        spread = TENSOR_XP.broadcast_to(value, shape)
        return a + TENSOR_XP.index_put(spread, index=index, shape=a.shape)


def on_parts(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of the tensors that a wrapping library's arrays hold, in their own mode."""
    mode = mode_of_parts(STATE.get())
    return run_with(STATE, mode, run_with, MAKING, None, function, *args, **kwargs)


TENSOR_LIBRARY = TensorLibrary()


def library_of_part(part: Any) -> Library:
    """Return the library to compute with what a wrapping library's array holds."""
    return TENSOR_LIBRARY if isinstance(part, Tensor) else library_of(part)
