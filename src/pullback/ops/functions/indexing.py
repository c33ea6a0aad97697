"""Indexing with square brackets, and what is written into a part.

Basic indices (integers, slices, None, Ellipsis) read a view; integer and bool arrays a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.arrays import NUMPY, is_array, join, library_of, varies
from pullback.core.function.dispatch import beside, mixed_error, unwrap_escaped
from pullback.core.function.inplace import adopt, apply_inplace, check_allowed, write_unrecorded
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import MAKING, STATE
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.views import own_memory
from pullback.errors import ArgumentTypeError, ShapeError, TensorIndexError, compose
from pullback.ops.arguments import all_values, holds_somewhere, needs_shape, tensor_of
from pullback.ops.axes import normalize_axis, to_builtin
from pullback.ops.declare import composition
from pullback.ops.functions.creation import shape_of
from pullback.ops.functions.data_types import astype, needs_room
from pullback.ops.functions.gathering import needs_whole
from pullback.ops.functions.joining import stack
from pullback.ops.functions.manipulation import reshape
from pullback.ops.functions.sorting import nonzero
from pullback.ops.primitives.arithmetic import floor_divide, remainder
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.indexing import (
    getitem_p,
    index_p,
    is_basic,
    is_plain,
    reader,
    setitem_p,
)
from pullback.ops.samples import grid, integers, sample


def _unwrap(index: Any, *kept_for: Any) -> Any:
    """Return an index with tensors as arrays, and integers of all kinds as Python's.

    Where one of the tensors `kept_for` has a gradient that will need the index, its arrays are
    copied: a later change of them must not be seen.
    """
    if isinstance(index, tuple):
        return tuple([_unwrap(i, *kept_for) for i in index])
    if isinstance(index, Tensor):
        if index.dtype.kind not in "biu":
            raise TensorIndexError(
                "getitem: tensors used as indices must have an integer or bool dtype, got "
                f"{index.dtype.name}"
            )
        array = index.data_array()
        if not index.shape and index.dtype.kind in "iu" and not varies(array):
            return int(index)
        return _unwrap(index.data_array(), *kept_for)
    if isinstance(index, slice):
        return slice(
            *(int(p) if isinstance(p, Tensor) else p for p in (index.start, index.stop, index.step))
        )
    if isinstance(index, list):
        return [_unwrap(i, *kept_for) for i in index]
    if not is_array(index) or (library_of(index).dtype(index).kind in "iu" and not varies(index)):
        index = to_builtin(index)
    if isinstance(index, (float, str, complex)):
        raise TensorIndexError(
            "getitem: only integers, slices, None, Ellipsis, lists and integer or bool arrays are "
            f"valid indices, got {type(index).__name__}"
        )
    if is_array(index) and STATE.get().grad and any(t.requires_grad for t in kept_for):
        return library_of(index).snapshot(index)
    return index


def getitem(x: Tensor, index: Any) -> Tensor:
    """Return ``x[index]``: a view for a basic index, a copy else."""
    return _read(x, index, _in_two_steps)


def numpy_getitem(x: Tensor, index: Any) -> Tensor:
    """Return ``x[index]`` as NumPy reads an index with integers and arrays, see `_in_two_steps`.

    An element stands for NumPy's scalar, which is no view; ``x[..., 0]`` is one.
    """
    result = _read(x, index, _in_one_step)
    if result._data.shape or index is Ellipsis:
        return result
    if index.__class__ is tuple and any(part is Ellipsis for part in index):
        return result
    return own_memory(result)  # type: ignore[no-any-return]


def _read(x: Tensor, index: Any, steps: Callable[[Any], tuple[Any, Any]]) -> Tensor:
    if index.__class__ is int or is_plain(index):
        return getitem_p.public(x, index=index)
    index = _unwrap(index, x)
    x = beside(x, *(index if isinstance(index, tuple) else (index,)))
    first, rest = steps(index)
    result = reader(first).public(x, index=first)
    return result if rest is None else index_p.public(result, index=rest)


def _in_one_step(index: Any) -> tuple[Any, Any]:
    return index, None


def _in_two_steps(index: Any) -> tuple[Any, Any]:
    """Return a basic index and the arrays to read its result by, None where one step does.

    An integer that stands away from an index array selects before the array does, as in PyTorch;
    NumPy takes it for an array that the other one is broadcast with.
    """
    if not isinstance(index, tuple):
        return index, None
    parts = index
    basic = [is_basic(part) for part in parts]
    numbers = [yes and hasattr(part, "__index__") for part, yes in zip(parts, basic, strict=True)]
    if all(basic) or not any(numbers) or sum(basic) == sum(numbers):
        return index, None
    first: list[Any] = []
    rest: list[Any] = []
    for part, simple, is_number in zip(parts, basic, numbers, strict=True):
        first += [part] if simple else [slice(None)] * _axes_read(part)
        if not is_number:
            rest.append(part if part is Ellipsis or not simple else slice(None))
    return tuple(first), tuple(rest)


def _axes_read(part: Any) -> int:
    """Return how many axes an index array reads: a mask as many as it has, another one."""
    array = part if is_array(part) else NUMPY.asarray(part)
    return len(array.shape) if library_of(array).dtype(array).kind == "b" else 1


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """Do ``x[index] = value`` in place, recorded; `value` is broadcast to the place."""
    _write(x, index, value, _in_two_steps)


def numpy_setitem(x: Tensor, index: Any, value: Any) -> None:
    """Do ``x[index] = value`` as NumPy reads an index with integers and arrays."""
    _write(x, index, value, _in_one_step)


def _write(x: Tensor, index: Any, value: Any, steps: Callable[[Any], tuple[Any, Any]]) -> None:
    if _set_unrecorded(x, index, value):
        return
    value = value_like(setitem_p, x, value)
    index = _unwrap(index, x, value)
    arrays = [part for part in (index if isinstance(index, tuple) else (index,)) if is_array(part)]
    if MAKING.get() is not None:
        adopt(setitem_p, x, (value, *arrays))
    if arrays and STATE.get().library is None and beside(x, *arrays) is not x:
        raise mixed_error(setitem_p, (x, value, *arrays))
    index, rest = steps(index)
    if _holds_nowhere(index, x) and not value.shape and not value.requires_grad:
        check_allowed("setitem_", x)
        return  # not a change: the array may be saved for a gradient
    if rest is not None:
        x, index = getitem_p.public(x, index=index), rest
    value = _leading(value, index, x)
    if is_basic(index) and not library_of(x._data).is_writeable(x.data_array()):
        x, index = getitem_p.public(x, index=index), ...  # the part itself may share no memory
    try:
        apply_inplace(setitem_p, x, (value,), {"index": index})
    except ShapeError:
        shape = tuple(library_of(x._data).getitem(x._data, index).shape)
        required = f"a value that broadcasts to the shape {shape} of the place required"
        came = str(value.shape)
        raise ShapeError(compose("setitem", required, came, ("x", x), ("value", value))) from None


def _set_unrecorded(x: Tensor, index: Any, value: Any) -> bool:
    """Write at a mask or a basic index where that is the common, unrecorded case."""
    if isinstance(index, Tensor):
        if index.dtype.kind != "b" or x._node is not None:  # it may hold nowhere: no change then
            return False
        index = index.data_array()
    elif not is_plain(index):
        return False

    def write(array: Any, values: Any, *, out: Any) -> None:
        out[index] = NUMPY.apart(out, values)

    return write_unrecorded(write, x, value)


def _holds_nowhere(index: Any, x: Tensor) -> bool:
    """Return whether an index of a tracked tensor is a mask that is False everywhere."""
    if not x.requires_grad or not is_array(index) or index.shape != x.shape:
        return False
    library = library_of(index)
    return library.dtype(index).kind == "b" and not holds_somewhere(index)


def value_like(op: Primitive, x: Tensor, value: Any, *between: Any) -> Tensor:
    """Return what is written into `x` as a tensor of its dtype; `between` are op's other inputs."""
    library, value = library_of(x._data), unwrap_escaped(value)
    if not isinstance(value, Tensor):
        if value is None:
            raise ArgumentTypeError(f"{op.name}: the value must be a Tensor or numbers, got None")
        if is_array(value):
            value = box(library_of(value).tidy(value))
        else:
            device = library.native_device(library.device(x._data))
            try:
                value = box(library.asarray(value, dtype=x.dtype, device=device))
            except (TypeError, ValueError, OverflowError) as error:
                raise ArgumentTypeError(
                    f"{op.name}: the value must be a Tensor, an array or numbers that dtype "
                    f"{x.dtype.name} can hold, got {type(value).__name__}: {error}"
                ) from None
    if join((library, library_of(value._data))) is None or value.device != x.device:
        raise mixed_error(op, (x, *between, value))
    needs_room(op.name, x, value)
    result: Tensor = value if value.dtype is x.dtype else astype(value, x.dtype)
    return result


def _leading(value: Tensor, index: Any, x: Tensor) -> Tensor:
    """Drop leading axes of length 1 that the place written to does not have, as PyTorch does."""
    if value.shape[:1] != (1,):
        return value
    array = x.data_array()
    keep = len(library_of(array).getitem(array, index).shape)
    shape = value.shape
    while len(shape) > keep and shape[0] == 1:
        shape = shape[1:]
    shorter: Tensor = value if shape == value.shape else reshape(value, shape)
    return shorter


@composition(
    sample((3,), shape=(2, 3)),
    sample((), shape=(4, 1, 2)),
    sample((0, 2), shape=(3,)),
    domain=integers(0, 2),
    differentiable=False,
    multi=True,
    result_dtype="int64",
)
def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Return, of numbers that count the elements of a shape, the index along each axis.

    Raises
    ------
    TensorIndexError, DTypeError
        If a number is negative or too large, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unravel_index(pb.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    lengths = shape_of("unravel_index", (shape,))
    needs_whole("unravel_index", "indices", indices)
    rest, size = tensor_of("unravel_index", indices, "indices"), math.prod(lengths)
    values = all_values(rest)
    xp = library_of(values).xp
    low, high = (int(xp.min(values)), int(xp.max(values))) if rest.numel() else (0, -1)
    if low < 0 or high >= size:
        required = f"numbers from 0 to {size - 1} required"
        came = str(low if low < 0 else high)
        raise TensorIndexError(compose("unravel_index", required, came, ("indices", indices)))
    result = []
    for n in reversed(lengths):
        result.append(remainder(rest, n))
        rest = floor_divide(rest, n)
    return tuple(reversed(result))


@composition(
    sample((3, 4)),
    sample((3,)),
    sample((0, 2)),
    domain=grid(-1, 1),
    differentiable=False,
    result_dtype="int64",
    scalars=False,
    methods="argwhere",
)
def argwhere(x: Any) -> Tensor:
    """Return the indices of what is not 0, a row each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.argwhere(pb.tensor([[0.0, 3.0], [4.0, 0.0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    x = tensor_of("argwhere", x)
    if x.shape:
        return stack(nonzero(x), axis=1)
    return stack(nonzero(reshape(x, (1,))), axis=1)[:, :0]  # so many rows of no index


# -- writing a part --------------------------------------------------------------------------------
def _with_part(op: str, input: Any, src: Any, position: tuple[Any, ...]) -> Tensor:
    """Return a copy of `input` with `src` at a basic index."""
    src = tensor_of(op, src, "src")
    needs_shape(op, input, src, input.detach()[position].shape)
    result: Tensor = clone(beside(input, src))
    result[position] = src
    return result


@composition(
    sample((2, 3), (2,), dim=-1, index=1),
    sample((3,), (), dim=0, index=-1),
    methods="select_scatter",
)
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:
    """Return `input` with `src` in the place of one slice along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.select_scatter(pb.zeros(2, 2), pb.tensor([1.0, 2.0]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """
    input = tensor_of("select_scatter", input, "input")
    axis = normalize_axis("select_scatter", dim, len(input.shape))
    return _with_part("select_scatter", input, src, (*(slice(None),) * axis, index))


@composition(
    sample((2, 4), (2, 2), dim=-1, start=1, step=2),
    sample((3,), (2,), end=2),
    sample((2,), (2,)),
    scalars=False,
    methods="slice_scatter",
)
def slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return `input` with `src` in the place of the slices ``start:end:step`` along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.slice_scatter(pb.zeros(3), pb.tensor([1.0, 2.0]), start=1)
    tensor([0., 1., 2.])
    """
    input = tensor_of("slice_scatter", input, "input")
    axis = normalize_axis("slice_scatter", dim, len(input.shape))
    position = (*(slice(None),) * axis, slice(start, end, step))
    return _with_part("slice_scatter", input, src, position)
