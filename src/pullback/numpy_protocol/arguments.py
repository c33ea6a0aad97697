"""What NumPy's functions are called with, as tensors; and where their counterparts are listed.

Owns the reading of arguments that NumPy would convert itself: arrays, nested lists, numbers.
Invariant: a tensor inside a list stays in the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, TypeVar

import numpy as np

from pullback.arrays import NUMPY, DType, constant, dtype_of, library_of
from pullback.core.custom.pytree import leaves, map_leaves
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import BORROWED
from pullback.ops.axes import normalize_axis

F = TypeVar("F", bound=Callable[..., Any])

xp = TENSOR_XP  # pullback's functions, which counterparts are written with
# The counterparts written by hand, by the names that NumPy's functions have below `np`. Each
# takes NumPy's own arguments, less those that change no value and `out`.
ADAPTERS: dict[str, Callable[..., Any]] = {}


def adapter(names: str) -> Callable[[F], F]:
    """Register a function as the counterpart of NumPy's functions of these names."""

    def decorate(function: F) -> F:
        ADAPTERS.update(dict.fromkeys(names.split(), function))
        return function

    return decorate


def operand(value: Any, cls: type[Tensor] = Tensor) -> Any:
    """Return what an element-wise operation can take: a tensor, or a number as it is.

    An array becomes a tensor of a class: the operation is quick where that is the other operand's.
    """
    if isinstance(value, (Tensor, Number)) or value is None:
        return value
    if value.__class__ is np.ndarray:
        return _snapshot(value, cls)
    if isinstance(value, (list, tuple)) and tensors_in(value):
        return xp.stack([as_tensor(item) for item in value])
    tensor = xp.asarray(value if hasattr(value, "dtype") else np.asarray(value), copy=True)
    return tensor if cls is Tensor else box(tensor._data, cls=cls)


def _snapshot(array: np.ndarray, cls: type[Tensor]) -> Tensor:
    """Return an array of the caller's, who may write to it later, as a tensor."""
    dtype_of(array.dtype)  # raises for text, objects, dates
    return box(NUMPY.snapshot(array), None, BORROWED, cls)


def as_tensor(value: Any, like: Tensor | None = None) -> Any:
    """Return what NumPy takes for an array as a tensor; numbers become 0-d ones, as in NumPy.

    Numbers and lists of them go where `like` is; an array stays of its library, in `like`'s class:
    an operation is quick on tensors of one class.
    """
    if isinstance(value, Tensor):
        return value
    if like is not None and value.__class__ is np.ndarray:
        return _snapshot(value, like.__class__)
    is_list = isinstance(value, (list, tuple))
    if like is not None and not hasattr(value, "dtype") and not (is_list and tensors_in(value)):
        return beside(np.array(value), like)  # not the memory of what NumPy reads it from
    value = operand(value, Tensor if like is None else like.__class__)
    return value if isinstance(value, Tensor) else xp.asarray(np.asarray(value))


def together(*values: Any) -> list[Any]:
    """Return arguments as tensors, numbers and lists where the first tensor is; None stays."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) == len(values):
        return tensors
    like = tensors[0] if tensors else None
    return [value if value is None else as_tensor(value, like) for value in values]


def inexact(value: Any, dtype: Any = None) -> Any:
    """Return an argument in a dtype that holds a mean: NumPy's float64 for integers."""
    x = as_tensor(value)
    if dtype is None and not x.dtype.is_inexact:
        dtype = np.dtype(np.float64)
    return x if dtype is None else xp.astype(x, dtype, copy=False)


def flat(a: Any) -> Any:
    """Return the elements of an array in one axis."""
    return xp.reshape(as_tensor(a), (-1,))


def along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """Return a tensor and the axis from the front: of the flat tensor where it is None."""
    if axis is None:
        return flat(a), 0
    x = as_tensor(a)
    return x, normalize_axis(name, axis, x.ndim)


def with_rank(x: Any, rank: int) -> Any:
    """Return a tensor of at least that many axes, those of length 1 in front."""
    return xp.reshape(x, (1,) * (rank - x.ndim) + x.shape) if x.ndim < rank else x


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    return [x for x in leaves(value) if isinstance(x, Tensor)]


def truth(mask: Any) -> Any:
    """Return a mask as a tensor of bools: what is not 0 holds."""
    mask = as_tensor(mask)
    return mask if mask.dtype.kind == "b" else mask != 0


def values_of(value: Any) -> Any:
    """Return the same nested lists, tuples and dictionaries with tensors as NumPy arrays.

    For what depends on the values without a derivative: an order, places, a dtype.
    """
    return map_leaves(_values, value)


def _values(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    array = constant(x.data_array())
    return library_of(array).to_numpy(array)


def beside(result: Any, like: Tensor) -> Any:
    """Return NumPy's arrays as tensors where `like` is; other results as they are."""

    def tensor(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "biufc":
            return x
        library = library_of(like._data)
        array = library.from_numpy(x, library.native_device(like.device))
        return box(array, cls=like.__class__)

    return map_leaves(tensor, result)


def numpy_dtype(wanted: Any) -> Any:
    """Return a dtype as NumPy reads it: `float` is float64."""
    return wanted if wanted is None or isinstance(wanted, DType) else np.dtype(wanted)


def position(axis: int, index: Any) -> tuple[Any, ...]:
    """Return the index that reads `index` along one axis counted from the front."""
    return (*(slice(None),) * axis, index)
