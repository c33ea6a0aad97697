"""Indexing: reading, writing, and the scatter that is the gradient of reading.

Basic indices (integers, slices, None, Ellipsis) read a view; integer and bool arrays a copy. An
element that is read several times gets the sum of its gradients.

Reading and writing by a mask is here as well.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from pullback.arrays import NUMPY, is_array, library_of
from pullback.ops.arguments import unless_overwritten
from pullback.ops.axes import sum_to_shape
from pullback.ops.declare import Primitive, elementwise, op_for, operation
from pullback.ops.samples import both, mask, sample

_PLAIN = frozenset((int, type(None), type(Ellipsis)))


def is_plain(index: Any) -> bool:
    """Return whether an index is made of Python's own numbers, slices, None and Ellipsis."""
    for i in index if index.__class__ is tuple else (index,):
        if i.__class__ not in _PLAIN and not (
            i.__class__ is slice
            and i.start.__class__ in _PLAIN
            and i.stop.__class__ in _PLAIN
            and i.step.__class__ in _PLAIN
        ):
            return False
    return True


def is_basic(index: Any) -> bool:
    """Return whether an index is a basic one, which names no element twice."""
    if is_plain(index):
        return True
    return all(map(_is_basic_item, index)) if isinstance(index, tuple) else _is_basic_item(index)


def _is_basic_item(i: Any) -> bool:
    if i is None or i is Ellipsis or isinstance(i, slice):
        return True
    return hasattr(i, "__index__") and not hasattr(i, "shape") and not isinstance(i, bool)


def _scatter(xp: Any, g: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
    library = library_of(g)
    device = library.native_device(library.device(g))
    zeros = library.zeros(shape, library.dtype(g), device)
    if is_basic(index):  # no element is named twice
        return library.assign(zeros, index, g)
    return library.add_at(zeros, index, g)


index_put_p = operation(
    "index_put",
    _scatter,
    rules={"g": lambda g, index, xp: op_for(xp, reader(index))(g, index=index)},
    samples=(sample((3,), index=1, shape=(4, 3)), sample((3, 3), index=([0, 2, 2],), shape=(4, 3))),
    scalars=False,
    doc="Return zeros of `shape` with `g` added at `index`.",
    batch="index_put",
    moves=True,
)


def _read(xp: Any, x: Any, *, index: Any) -> Any:
    return library_of(x).getitem(x, index)


def _put_back(g: Any, index: Any, x_shape: tuple[int, ...], xp: Any) -> Any:
    return op_for(xp, index_put_p)(g, index=index, shape=x_shape)


def _add_to_part(buffer: Any, g: Any, index: Any) -> None:
    """Add to the part of an array that a basic index names."""
    part = buffer[index]
    if part.__class__ is buffer.__class__:
        part += g
    else:  # one element, which NumPy gives as a number
        buffer[index] = part + g


getitem_p: Primitive = operation(
    "getitem",
    _read,
    numpy_kernel=NUMPY.getitem,
    rules={"x": _put_back},
    adds_into=_add_to_part,
    view=True,
    samples=(
        sample((4, 3), index=1),
        sample((4, 3), index=(slice(1, None, 2), -1)),
        sample((4, 3), index=(Ellipsis, None, slice(None, None, -1))),
        sample((), index=()),
        sample((0, 3), index=slice(0, 0)),
    ),
    reference=(lambda x, index: x[index]),
    doc="Return x[index] of a basic index: a view.",
    batch="getitem",
    moves=True,
)

index_p: Primitive = operation(
    "index",
    _read,
    numpy_kernel=NUMPY.getitem,
    rules={"x": _put_back},
    adds_into=lambda buffer, g, index: NUMPY.add_at(buffer, index, g),
    samples=(
        sample((4, 3), index=([0, 2, 2],)),
        sample((4, 3), index=([0, 2, 2], slice(0, 2))),
        sample((4, 3), index=([[0, 1], [3, 3]], [[0, 2], [1, 1]])),
        sample((3,), index=[]),
        sample((), index=True),
    ),
    reference=(lambda x, index: x[index]),
    doc="Return x[index] of an index with arrays: a copy.",
    batch="getitem",
    moves=True,
)


def reader(index: Any) -> Primitive:
    """Return the operation that reads by an index: as a view where the index is a basic one."""
    return getitem_p if is_basic(index) else index_p


def _written(xp: Any, x: Any, value: Any, *, index: Any) -> Any:
    library = library_of(x)
    return library.assign(library.copy(x), index, value)


def _write(x: Any, value: Any, *, index: Any) -> Any:
    return library_of(x).assign(x, index, value)


def _without(g: Any, index: Any, xp: Any) -> Any:
    """Return `g` with zeros at `index`."""
    return op_for(xp, setitem_p)(g, 0, index=index)


def _may_repeat(index: Any) -> bool:
    """Return whether an index has lists or arrays of integers, which may name an element twice."""
    items = [i for i in (index if isinstance(index, tuple) else (index,)) if not _is_basic_item(i)]
    return any(
        math.prod(i.shape) > 1 and library_of(i).dtype(i).kind != "b"
        if is_array(i)
        else not isinstance(i, bool)
        for i in items
    )


def _of_value(g: Any, index: Any, value_shape: tuple[int, ...], xp: Any) -> Any:
    """Return the gradient of what was written at `index`."""
    read = functools.partial(op_for(xp, reader(index)), index=index)
    values = read(g)
    if _may_repeat(index):
        write = functools.partial(op_for(xp, setitem_p), index=index)
        values = unless_overwritten(values, g, write, read, xp)
    return sum_to_shape(values, value_shape, xp)


setitem_p: Primitive = operation(
    "setitem",
    _written,
    rules={
        "x": _without,
        "value": _of_value,
    },
    inplace=_write,
    samples=(
        sample((4, 3), (3,), index=1),
        sample((4, 3), (), index=(slice(1, None, 2), -1)),
        sample((4, 3), (2, 1), index=([0, 2],)),
        sample((), (), index=()),
        sample((3,), (0,), index=[]),
    ),
    doc="Return x with value written at index.",
    batch="setitem",
    moves=True,
)


masked_fill_p = elementwise(
    "masked_fill",
    lambda xp, x, mask, value: xp.where(mask, value, x),
    x=lambda g, mask, xp: xp.where(mask, 0, g),
    mask=None,
    value=lambda g, mask, xp: xp.where(mask, g, 0),
    inputs=("x", "mask", "value"),
    domain={"x": both(-2, 2), "mask": mask(), "value": both(-2, 2)},
    reference=(lambda x, mask, value: (1 - mask) * x + mask * value),
    doc="Return x with value where mask holds.",
    moves=True,
)


# -- masks -----------------------------------------------------------------------------------------
def _select(xp: Any, x: Any, mask: Any) -> Any:
    return library_of(x).getitem(x, mask)


def _put(xp: Any, g: Any, mask: Any) -> Any:
    library = library_of(g)
    device = library.native_device(library.device(g))
    zeros = library.zeros(mask.shape, library.dtype(g), device)
    return library.assign(zeros, mask, g)


def _taken_back(g: Any, mask: Any, g_shape: tuple[int, ...], xp: Any) -> Any:
    """Return the gradient of what was put where mask holds: of one number a sum."""
    if math.prod(g_shape) == 1:
        return xp.reshape(xp.sum(xp.where(mask, g, xp.zeros_like(g))), g_shape)
    return sum_to_shape(op_for(xp, masked_select_p)(g, mask), g_shape, xp)


masked_put_p: Primitive = operation(
    "masked_put",
    _put,
    rules={
        "g": _taken_back,
        "mask": None,
    },
    holomorphic=False,
    domain={"g": both(-2, 2), "mask": mask()},
    samples=(sample((1,), (3, 4)), sample((), (2, 0))),
    doc="Return zeros with `g` written where mask holds.",
    moves=True,
)


masked_select_p: Primitive = operation(
    "masked_select",
    _select,
    rules={"x": lambda g, mask, xp: op_for(xp, masked_put_p)(g, mask), "mask": None},
    holomorphic=False,
    domain={"x": both(-2, 2), "mask": mask()},
    samples=(sample((3, 4), (3, 4)), sample((), ()), sample((2, 0), (2, 0))),
    reference=(lambda np, x, mask: np.extract(mask, x)),
    moves=True,
)
