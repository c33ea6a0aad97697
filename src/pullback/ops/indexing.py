"""Indexing: reading, writing, and the scatter that is the gradient of reading.

Basic indices (integers, slices, None, Ellipsis) read a view; integer and bool arrays a copy. An
element that is read several times gets the sum of its gradients.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, NUMPY, is_array, library_of
from pullback.core.function.dispatch import mixed_error
from pullback.core.function.handed import TENSORS
from pullback.core.function.inplace import apply_inplace, check_allowed
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import STATE
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentTypeError, ShapeError, TensorIndexError, compose
from pullback.ops._declare import Operation, both, elementwise, mask, on, operation, sample
from pullback.ops.conversion import needs_room
from pullback.ops.shape import sum_to_shape

_PLAIN = frozenset((int, type(None), type(Ellipsis)))


def _is_plain(index: Any) -> bool:
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


def _is_basic(index: Any) -> bool:
    if _is_plain(index):
        return True
    items = index if isinstance(index, tuple) else (index,)
    return all(
        i is None
        or i is Ellipsis
        or isinstance(i, slice)
        or (hasattr(i, "__index__") and not _dims(i))
        for i in items
        if not isinstance(i, bool)
    ) and not any(isinstance(i, bool) for i in items)


def _dims(i: Any) -> bool:
    return hasattr(i, "shape")


def _unwrap(index: Any, *kept_for: Any) -> Any:
    """Return an index with tensors as arrays and 0-d integer tensors as numbers.

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
        if not index.shape and index.dtype.kind in "iu":
            return int(index)
        return _unwrap(index.data_array(), *kept_for)
    if isinstance(index, slice):
        return slice(
            *(int(p) if isinstance(p, Tensor) else p for p in (index.start, index.stop, index.step))
        )
    if isinstance(index, list):
        return [_unwrap(i, *kept_for) for i in index]
    if isinstance(index, (float, str, complex)):
        raise TensorIndexError(
            "getitem: only integers, slices, None, Ellipsis, lists and integer or bool arrays are "
            f"valid indices, got {type(index).__name__}"
        )
    if is_array(index) and STATE.get().grad and any(t.requires_grad for t in kept_for):
        return library_of(index).copy(index)
    return index


def _scatter(xp: Any, g: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
    library = library_of(g)
    device = library.native_device(library.device(g))
    zeros = library.zeros(shape, library.dtype(g), device)
    if _is_basic(index):  # no element is named twice
        return library.assign(zeros, index, g)
    return library.add_at(zeros, index, g)


_INDICES = (
    sample((4, 3), index=1),
    sample((4, 3), index=(slice(1, None, 2), -1)),
    sample((4, 3), index=(Ellipsis, None, slice(None, None, -1))),
    sample((4, 3), index=([0, 2, 2],)),
    sample((4, 3), index=([0, 2, 2], slice(0, 2))),
    sample((4, 3), index=([[0, 1], [3, 3]], [[0, 2], [1, 1]])),
    sample((), index=()),
    sample((0, 3), index=slice(0, 0)),
    sample((3,), index=[]),
)
scatter_to = operation(
    "index_put",
    _scatter,
    rules={"g": lambda g, index, xp: on(xp, getitem_)(g, index=index)},
    samples=(sample((3,), index=1, shape=(4, 3)), sample((3, 3), index=([0, 2, 2],), shape=(4, 3))),
    doc="Return zeros of `shape` with `g` added at `index`.",
)


def _read(xp: Any, x: Any, *, index: Any) -> Any:
    return library_of(x).getitem(x, index)


getitem_: Operation = operation(
    "getitem",
    _read,
    rules={"x": lambda g, index, x_shape, xp: on(xp, scatter_to)(g, index=index, shape=x_shape)},
    view=lambda settings: _is_basic(settings["index"]),
    samples=_INDICES,
    doc="Return x[index].",
)


def getitem(x: Tensor, index: Any) -> Tensor:
    """Return ``x[index]``: a view for a basic index, a copy else."""
    if _is_plain(index):
        element: Tensor = getitem_(x, index=index)
        return element
    first, rest = _in_two_steps(_unwrap(index, x))
    result: Tensor = getitem_(x, index=first)
    return result if rest is None else getitem_(result, index=rest)


def _in_two_steps(index: Any) -> tuple[Any, Any]:
    """Return a basic index and the arrays to read its result by, None where one step does.

    An integer apart from an index array selects before the array is looked at, as in PyTorch;
    NumPy takes it for an array that the other one is broadcast with.
    """
    parts = index if isinstance(index, tuple) else (index,)
    basic = [_is_basic(part) for part in parts]
    numbers = [yes and hasattr(part, "__index__") for part, yes in zip(parts, basic, strict=True)]
    if all(basic) or not any(numbers) or sum(basic) == sum(numbers):
        return index, None
    first: list[Any] = []
    rest: list[Any] = []
    for part, is_basic, is_number in zip(parts, basic, numbers, strict=True):
        first += [part] if is_basic else [slice(None)] * _axes_read(part)
        if not is_number:
            rest.append(part if part is Ellipsis or not is_basic else slice(None))
    return tuple(first), tuple(rest)


def _axes_read(part: Any) -> int:
    """Return how many axes an index array reads: a mask as many as it has, another one."""
    array = part if is_array(part) else NUMPY.asarray(part)
    return len(array.shape) if library_of(array).dtype(array).kind == "b" else 1


def _written(xp: Any, x: Any, value: Any, *, index: Any) -> Any:
    library = library_of(x)
    return library.assign(library.copy(x), index, value)


def _write(x: Any, value: Any, *, index: Any) -> Any:
    return library_of(x).assign(x, index, value)


def _without(g: Any, index: Any, xp: Any) -> Any:
    """Return `g` with zeros at `index`."""
    if xp is not TENSORS:
        library = library_of(g)
        return library.assign(library.copy(g), index, 0)
    array = g.data_array()
    library = library_of(array)
    device = library.native_device(library.device(array))
    mask = library.full(array.shape, True, DTYPES["bool"], device)
    return where_(box(library.assign(mask, index, False)), g)


where_ = elementwise(
    "keep_where",
    lambda xp, condition, x: xp.where(condition, x, 0),
    condition=None,
    x=lambda g, condition, xp: xp.where(condition, g, 0),
    inputs=("condition", "x"),
    domain={"condition": mask(), "x": both(-2, 2)},
    doc="Return x where condition holds, else 0.",
)

setitem_ = operation(
    "setitem",
    _written,
    rules={
        "x": _without,
        "value": lambda g, index, value_shape, xp: sum_to_shape(
            on(xp, getitem_)(g, index=index), value_shape, xp
        ),
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
)


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """Do ``x[index] = value`` in place, recorded; `value` is broadcast to the place."""
    value = value_like(setitem_.primitive, x, value)
    index, rest = _in_two_steps(_unwrap(index, x, value))
    if _holds_nowhere(index, x) and not value.shape and not value.requires_grad:
        check_allowed("setitem_", x)
        return  # not a change: the array may be saved for a gradient
    if rest is not None:
        x, index = getitem_(x, index=index), rest
    value = _leading(value, index, x)
    if _is_basic(index) and not library_of(x._data).is_writeable(x.data_array()):
        x, index = getitem_(x, index=index), ...  # the part itself may share no memory
    try:
        apply_inplace(setitem_.primitive, x, (value,), {"index": index})
    except ShapeError:
        place = tuple(library_of(x._data).getitem(x._data, index).shape)
        required = f"a value that broadcasts to the shape {place} of the place required"
        came = str(value.shape)
        raise ShapeError(compose("setitem", required, came, ("x", x), ("value", value))) from None


def _holds_nowhere(index: Any, x: Tensor) -> bool:
    """Return whether an index of a tensor with a history is a mask that is False everywhere."""
    if not x.requires_grad or not is_array(index) or index.shape != x.shape:
        return False
    library = library_of(index)
    return library.dtype(index).kind == "b" and not bool(library.xp.any(index))


def value_like(op: Primitive, x: Tensor, value: Any, *between: Any) -> Tensor:
    """Return what is written into `x` as a tensor of its dtype; `between` are op's other inputs."""
    library = library_of(x._data)
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
    if library_of(value._data) is not library or value.device != x.device:
        raise mixed_error(op, (x, *between, value))
    needs_room(op.name, x, value)
    result: Tensor = value if value.dtype is x.dtype else TENSORS.astype(value, x.dtype)
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
    shorter: Tensor = value if shape == value.shape else TENSORS.reshape(value, shape)
    return shorter


masked_fill_ = elementwise(
    "masked_fill",
    lambda xp, x, mask, value: xp.where(mask, value, x),
    x=lambda g, mask, xp: xp.where(mask, 0, g),
    mask=None,
    value=lambda g, mask, xp: xp.where(mask, g, 0),
    inputs=("x", "mask", "value"),
    domain={"x": both(-2, 2), "mask": mask(), "value": both(-2, 2)},
    doc="Return x with value where mask holds.",
)
