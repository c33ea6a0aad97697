"""Reading, writing and adding along one axis by index: what gathering and sorting are made of.

There are two ways of naming places. By *slices*, an index of any shape picks whole slices of an
axis; by *elements*, an index of the tensor's own rank picks elements, each from its own row along
the axis. Either way has four operations: reading; its gradient, which adds what was read back
into zeros; writing; adding. Places that are named several times add up.

Indices here are whole numbers within the axis and not negative: `index_for` sees to that, and
every public function calls it or makes its indices itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pullback.arrays import DTYPES, library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import DTypeError, ShapeError, TensorIndexError, compose
from pullback.ops import reductions, shape
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import (
    Operation,
    Sample,
    both,
    integers,
    needs_one_library,
    needs_tensor,
    on,
    operation,
    sample,
)

Place = Callable[[Any, int, int], tuple[Any, ...]]
Names = tuple[str, str]
_NAMES = ("input", "index")


class ValuesAndIndices(NamedTuple):
    """Chosen values along a dimension, and where they were."""

    values: Tensor
    indices: Tensor


# -- where an index points -------------------------------------------------------------------------
def whole(index: Any) -> Any:
    """Return an index as int64: itself, or a copy where it has another dtype."""
    return library_of(index).astype(index, DTYPES["int64"])


def _slices(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """Return the index of the slices that `index` names along `axis`; of a number, of it all."""
    if not ndim:
        return (Ellipsis,)
    return (*(slice(None),) * (axis % ndim), whole(index))


def _elements(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """Return the index of the element that each number of `index` names in its row along `axis`."""
    if not ndim:
        return (Ellipsis,)
    xp = library_of(index).xp
    places = [
        xp.reshape(xp.arange(n, device=index.device), (1,) * i + (n,) + (1,) * (ndim - i - 1))
        for i, n in enumerate(index.shape)
    ]
    places[axis] = whole(index)
    return tuple(places)


# -- the operations --------------------------------------------------------------------------------
def _take(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    if not x.shape:
        return library_of(x).copy(x)
    axis %= len(x.shape)
    taken = xp.take(x, xp.reshape(whole(index), (-1,)), axis=axis)
    return xp.reshape(taken, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _gather(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    library = library_of(x)
    taken = library.getitem(x, _elements(index, axis, len(x.shape)))
    return taken if x.shape else library.copy(taken)


_INDEX = {"index": integers(0, 2)}


def _reading(
    name: str, forward: Any, place: Place, samples: tuple[Sample, ...]
) -> tuple[Operation, Operation]:
    """Declare reading by an index, and its gradient: each is the gradient of the other."""

    def add_back(xp: Any, g: Any, index: Any, *, axis: int, shape: tuple[int, ...]) -> Any:
        library = library_of(g)
        device = library.native_device(library.device(g))
        zeros = library.zeros(shape, library.dtype(g), device)
        return library.add_at(zeros, place(index, axis, len(shape)), g)

    back = operation(
        f"{name}_back",
        add_back,
        rules={"g": lambda g, index, axis, xp: on(xp, read)(g, index, axis=axis), "index": None},
        holomorphic=False,
        domain={"g": both(-2, 2), **_INDEX},
        samples=(sample((2, 3), (2, 3), axis=1, shape=(2, 4)),)
        if place is _elements
        else (sample((4, 2), (4,), axis=0, shape=(3, 2)),),
        doc=f"Return zeros of `shape` with `g` added where {name} reads.",
    )
    read = operation(
        name,
        forward,
        rules={
            "x": lambda g, index, axis, x_shape, xp: on(xp, back)(
                g, index, axis=axis, shape=x_shape
            ),
            "index": None,
        },
        holomorphic=False,
        domain={"x": both(-2, 2), **_INDEX},
        samples=samples,
    )
    return read, back


def _writing(name: str, read: Operation, place: Place, samples: tuple[Sample, ...]) -> Operation:
    """Declare writing at an index: a tensor of the shape of the place, or one number."""

    def assign(x: Any, index: Any, src: Any, *, axis: int) -> Any:
        return library_of(x).assign(x, place(index, axis, len(x.shape)), src)

    def forward(xp: Any, x: Any, index: Any, src: Any, *, axis: int) -> Any:
        return assign(library_of(x).copy(x), index, src, axis=axis)

    def outside(g: Any, index: Any, axis: int, xp: Any) -> Any:
        """Return `g` with zeros at the index."""
        if xp is TENSORS:
            return write(g, index, 0, axis=axis)
        return forward(xp, g, index, 0, axis=axis)

    def inside(g: Any, index: Any, axis: int, src_shape: tuple[int, ...], xp: Any) -> Any:
        """Return `g` at the index; of one number, summed over the places, each of them once."""
        if src_shape:
            return on(xp, read)(g, index, axis=axis)
        array = array_of(g)
        library = library_of(array)
        device = library.native_device(library.device(array))
        written = library.full(array.shape, False, DTYPES["bool"], device)
        written = assign(written, array_of(index), True, axis=axis)
        chosen = box(written) if xp is TENSORS else written
        return xp.sum(xp.where(chosen, g, xp.zeros_like(g)))

    write = operation(
        name,
        forward,
        rules={"x": outside, "index": None, "src": inside},
        holomorphic=False,
        inplace=assign,
        domain={"x": both(-2, 2), "src": both(-2, 2), **_INDEX},
        samples=samples,
    )
    return write


def _adding(name: str, read: Operation, place: Place, samples: tuple[Sample, ...]) -> Operation:
    """Declare adding at an index."""

    def add(x: Any, index: Any, src: Any, *, axis: int) -> Any:
        return library_of(x).add_at(x, place(index, axis, len(x.shape)), src)

    return operation(
        name,
        lambda xp, x, index, src, *, axis: add(library_of(x).copy(x), index, src, axis=axis),
        rules={
            "x": lambda g: g,
            "index": None,
            "src": lambda g, index, axis, xp: on(xp, read)(g, index, axis=axis),
        },
        holomorphic=False,
        inplace=add,
        domain={"x": both(-2, 2), "src": both(-2, 2), **_INDEX},
        samples=samples,
    )


take_slices, take_back = _reading(
    "take",
    _take,
    _slices,
    (
        sample((3, 4), (2,), axis=0),
        sample((2, 3), (2, 2), axis=-1),
        sample((0, 3), (2,), axis=1),
        sample((3,), (), axis=0),
    ),
)
gather_elements, gather_back = _reading(
    "gather",
    _gather,
    _elements,
    (
        sample((3, 4), (2, 3), axis=0),
        sample((2, 1, 3), (2, 1, 4), axis=-1),
        sample((2, 3), (0, 2), axis=1),
        sample((3,), (1,), axis=0),
    ),
)
# Where an index of several names a place twice, what is written there is anyone's guess.
_WRITTEN = (
    sample((3, 2), (1,), (1, 2), axis=0),
    sample((2, 3), (1,), (2, 1), axis=-1),
    sample((0, 3), (1,), (0, 1), axis=1),
)
index_write = _writing("index_copy", take_slices, _slices, _WRITTEN)
index_fill_ = _writing(
    "index_fill",
    take_slices,
    _slices,
    (
        sample((3, 2), (2,), (), axis=0),
        sample((2, 3), (1,), (), axis=-1),
        sample((3,), (0,), (), axis=0),
    ),
)
scatter_write = _writing(
    "scatter",
    gather_elements,
    _elements,
    (
        sample((3, 4), (1, 3), (1, 3), axis=0),
        sample((2, 3), (2, 1), (), axis=-1),
        sample((3,), (0,), (0,), axis=0),
    ),
)
index_add_ = _adding(
    "index_add",
    take_slices,
    _slices,
    (
        sample((3, 2), (4,), (4, 2), axis=0),
        sample((2, 3), (2,), (2, 2), axis=-1),
        sample((0, 3), (2,), (0, 2), axis=1),
    ),
)
scatter_add_ = _adding(
    "scatter_add",
    gather_elements,
    _elements,
    (
        sample((3, 2), (4, 2), (4, 2), axis=0),
        sample((2, 3), (1, 4), (1, 4), axis=-1),
        sample((3,), (0,), (0,), axis=0),
    ),
)


# -- checking indices ------------------------------------------------------------------------------
def array_of(x: Any) -> Any:
    """Return the array of a tensor, brought up to date; an array itself."""
    return x.data_array() if isinstance(x, Tensor) else x


def axis_for(op: str, x: Any, dim: Any, name: str = "input") -> int:
    """Return the axis that `dim` names, or raise where `x` has none."""
    needs_tensor(op, x, name)
    axis = normalize_axis(op, dim, len(x.shape))
    if not x.shape:
        required = f"at least 1 dimension for axis {axis} required"
        raise ShapeError(compose(op, required, "a 0-d tensor", (name, x), hint="reshape it first"))
    return axis


def index_for(
    op: str, x: Any, axis: int, index: Any, *, names: Names = _NAMES, wraps: bool = False
) -> Tensor:
    """Return an index as a tensor of whole numbers within `axis` of `x`.

    Parameters
    ----------
    op : str
        The public function.
    x : Tensor or array
    axis : int
        Counted from the front.
    index : Tensor or array
    names : tuple of str
        What the function calls `x` and `index`.
    wraps : bool
        Whether negative numbers count from the end; they are refused else.

    Raises
    ------
    ArgumentTypeError, DTypeError, DeviceError, TensorIndexError
        If the index is no tensor, not of integers, of another array library, or out of range.
    """
    needs_whole(op, names[1], index)
    needs_one_library(op, *zip(names, (x, index), strict=True))
    array = array_of(index)
    library = library_of(array)
    tensor = index if isinstance(index, Tensor) else box(library.copy(array))
    if 0 in array.shape:
        return tensor
    n = x.shape[axis] if x.shape else 1
    low, high = int(library.xp.min(array)), int(library.xp.max(array))
    if high >= n or low < (-n if wraps else 0):
        required = f"indices within axis {axis} of length {n} required"
        wrong = high if high >= n else low
        hint = None if wraps or wrong >= 0 else "give indices from 0 on"
        named = zip(names, (x, index), strict=True)
        raise TensorIndexError(compose(op, required, str(wrong), *named, hint=hint))
    if low < 0:
        tensor = TENSORS.astype(tensor, DTYPES["int64"])
        tensor = TENSORS.where(tensor < 0, tensor + n, tensor)
    return tensor


def needs_whole(op: str, name: str, index: Any) -> None:
    """Raise where an index is not made of integers."""
    needs_tensor(op, index, name)
    array = array_of(index)
    dtype = library_of(array).dtype(array)
    if dtype.kind not in "iu":
        required = f"integers required as '{name}'"
        raise DTypeError(compose(op, required, dtype.name, (name, index)))


def same_rank(op: str, x: Any, index: Any, names: Names) -> None:
    """Raise where two have not as many dimensions."""
    if len(index.shape) != len(x.shape):
        required = f"as many dimensions of {names[1]} as {names[0]} has, {len(x.shape)}, required"
        named = zip(names, (x, index), strict=True)
        raise ShapeError(compose(op, required, str(len(index.shape)), *named))


def element_index(op: str, x: Any, dim: Any, index: Any) -> tuple[int, Tensor]:
    """Return the axis and the index of an operation that names elements."""
    needs_tensor(op, x, "input")
    axis = normalize_axis(op, dim, len(x.shape))
    index = index_for(op, x, axis, index)
    same_rank(op, x, index, _NAMES)
    if any(m > n for i, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if i != axis):
        required = f"an index no longer than {tuple(x.shape)}, but for axis {axis}, required"
        named = zip(_NAMES, (x, index), strict=True)
        raise ShapeError(compose(op, required, str(index.shape), *named))
    return axis, index


def scattered(op: str, x: Any, dim: Any, index: Any, src: Any) -> tuple[int, Tensor, Any]:
    """Return the axis, the index and what is written there, no longer than the index."""
    axis, index = element_index(op, x, dim, index)
    if isinstance(src, (int, float, complex)):
        return axis, index, src
    needs_tensor(op, src, "src")
    if not src.shape:
        return axis, index, src
    same_rank(op, index, src, ("index", "src"))
    if tuple(src.shape) == index.shape:
        return axis, index, src
    if any(m > n for n, m in zip(src.shape, index.shape, strict=True)):
        required = f"a src at least as long as the index, {index.shape}, required"
        came = str(tuple(src.shape))
        raise ShapeError(compose(op, required, came, ("input", x), ("index", index), ("src", src)))
    return axis, index, src[tuple(slice(m) for m in index.shape)]


def slice_index(op: str, x: Any, dim: Any, index: Any) -> tuple[int, Tensor]:
    """Return the axis and the index, of one dimension, of an operation that names slices."""
    needs_tensor(op, x, "input")
    axis = normalize_axis(op, dim, len(x.shape))
    index = index_for(op, x, axis, index)
    named = zip(_NAMES, (x, index), strict=True)
    if len(index.shape) > 1:
        required = "an index of one dimension required"
        raise ShapeError(compose(op, required, str(len(index.shape)), *named))
    index = shape.reshape(index, (-1,)) if not index.shape else index
    if not x.shape and index.shape != (1,):
        required = "an index of one element for a 0-d tensor required"
        raise ShapeError(compose(op, required, str(index.shape[0]), *named))
    return axis, index


def slices_for(op: str, x: Any, axis: int, index: Tensor, source: Any) -> Any:
    """Return what is written to slices, of the shape it must have."""
    needs_tensor(op, source, "source")
    wanted = (*x.shape[:axis], *index.shape[: len(x.shape)], *x.shape[axis + 1 :])
    if tuple(source.shape) != wanted:
        named = (("input", x), ("index", index), ("source", source))
        required = f"a source of shape {wanted} required"
        raise ShapeError(compose(op, required, str(tuple(source.shape)), *named))
    return source


def one_number(op: str, value: Any) -> Any:
    """Return a number, or a tensor of no dimensions."""
    if not isinstance(value, (int, float, complex)):
        needs_tensor(op, value, "value")
        if value.shape:
            required = "a number or a 0-d tensor required"
            raise ShapeError(compose(op, required, "more", ("value", value)))
    return value


# -- the largest, the smallest ---------------------------------------------------------------------
def at_places(x: Any, indices: Tensor, axis: int, keepdims: bool) -> ValuesAndIndices:
    """Return the elements that `indices` name along `axis`, and the indices."""
    values = gather_elements(x, indices, axis=axis)
    if keepdims:
        return ValuesAndIndices(values, indices)
    return ValuesAndIndices(values.squeeze(axis), indices.squeeze(axis))


def values_and_indices(x: Tensor, name: str, dim: int, keepdims: bool) -> ValuesAndIndices:
    """Return the largest or smallest elements along `dim` and their (first) places."""
    axis = normalize_axis(name, dim, len(x.shape))
    find = reductions.argmax if name == "max" else reductions.argmin
    if not x.shape:
        return ValuesAndIndices(x.clone(), find(x, axis=None, keepdims=False))
    return at_places(x, find(x, axis=axis, keepdims=True), axis, keepdims)
