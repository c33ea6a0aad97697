"""Reading, writing and adding along one axis by index: what gathering and sorting are made of.

There are two ways of naming positions. By *slices*, an index of any shape picks whole slices of an
axis; by *elements*, an index of the tensor's own rank picks elements, each from its own row along
the axis. Either way has four operations: reading; its gradient, which adds what was read back
into zeros; writing; adding. What is named several times adds up.

Indices here are whole numbers within the axis and not negative: the public functions see to that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.arrays import library_of
from pullback.ops.arguments import unless_overwritten, whole
from pullback.ops.declare import Primitive, Sample, op_for, operation
from pullback.ops.samples import both, integers, sample

Locate = Callable[[Any, int, int], tuple[Any, ...]]


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
    positions = [
        xp.reshape(xp.arange(n, device=index.device), (1,) * i + (n,) + (1,) * (ndim - i - 1))
        for i, n in enumerate(index.shape)
    ]
    positions[axis] = whole(index)
    return tuple(positions)


# -- the operations --------------------------------------------------------------------------------
def _take(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    if not x.shape:
        return library_of(x).copy(x)
    axis %= len(x.shape)
    elements = xp.take(x, xp.reshape(whole(index), (-1,)), axis=axis)
    return xp.reshape(elements, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _gather(xp: Any, x: Any, index: Any, *, axis: int) -> Any:
    library = library_of(x)
    elements = library.getitem(x, _elements(index, axis, len(x.shape)))
    return elements if x.shape else library.copy(elements)


_INDEX = {"index": integers(0, 2)}


_BATCH: dict[Locate, str] = {_slices: "slices", _elements: "elements"}
_BACK: dict[Locate, tuple[Sample, ...]] = {
    _slices: (sample((4, 2), (4,), axis=0, shape=(3, 2)),),
    _elements: (sample((2, 3), (2, 3), axis=1, shape=(2, 4)),),
}


def _reading(
    name: str, forward: Any, locate: Locate, samples: tuple[Sample, ...]
) -> tuple[Primitive, Primitive]:
    """Declare reading by an index, and its gradient: each is the gradient of the other."""

    def add_back(xp: Any, g: Any, index: Any, *, axis: int, shape: tuple[int, ...]) -> Any:
        library = library_of(g)
        device = library.native_device(library.device(g))
        zeros = library.zeros(shape, library.dtype(g), device)
        return library.add_at(zeros, locate(index, axis, len(shape)), g)

    shared: Any = {"holomorphic": False, "scalars": False, "batch": _BATCH[locate]}
    back = operation(
        f"{name}_back",
        add_back,
        rules={
            "g": lambda g, index, axis, xp: op_for(xp, read)(g, index, axis=axis),
            "index": None,
        },
        domain={"g": both(-2, 2), **_INDEX},
        samples=_BACK[locate],
        **shared,
        doc=f"Return zeros of `shape` with `g` added where {name} reads.",
    )
    read = operation(
        name,
        forward,
        rules={
            "x": lambda g, index, axis, x_shape, xp: op_for(xp, back)(
                g, index, axis=axis, shape=x_shape
            ),
            "index": None,
        },
        domain={"x": both(-2, 2), **_INDEX},
        samples=samples,
        **shared,
        moves=True,
    )
    return read, back


def _writing(name: str, read: Primitive, locate: Locate, samples: tuple[Sample, ...]) -> Primitive:
    """Declare writing at an index: a tensor of the shape that is read there, or one number."""

    def assign(x: Any, index: Any, src: Any, *, axis: int) -> Any:
        return library_of(x).assign(x, locate(index, axis, len(x.shape)), src)

    def forward(xp: Any, x: Any, index: Any, src: Any, *, axis: int) -> Any:
        return assign(library_of(x).copy(x), index, src, axis=axis)

    def outside(g: Any, index: Any, axis: int, xp: Any) -> Any:
        """Return `g` with zeros at the index."""
        return op_for(xp, write)(g, index, 0, axis=axis)

    def inside(g: Any, index: Any, axis: int, src_shape: tuple[int, ...], xp: Any) -> Any:
        """Return `g` at the index; of one number, summed over the index, each element once."""
        if src_shape:
            return unless_overwritten(
                op_for(xp, read)(g, index, axis=axis),
                g,
                lambda x, numbers: op_for(xp, write)(x, index, numbers, axis=axis),
                lambda x: op_for(xp, read)(x, index, axis=axis),
                xp,
            )
        zeros = xp.zeros_like(g)
        chosen = op_for(xp, write)(zeros, index, 1, axis=axis) != 0
        return xp.sum(xp.where(chosen, g, zeros))

    write = operation(
        name,
        forward,
        rules={"x": outside, "index": None, "src": inside},
        holomorphic=False,
        inplace=assign,
        domain={"x": both(-2, 2), "src": both(-2, 2), **_INDEX},
        samples=samples,
        scalars=False,
        batch=_BATCH[locate],
        moves=True,
    )
    return write


def _adding(name: str, read: Primitive, locate: Locate, samples: tuple[Sample, ...]) -> Primitive:
    """Declare adding at an index."""

    def add(x: Any, index: Any, src: Any, *, axis: int) -> Any:
        return library_of(x).add_at(x, locate(index, axis, len(x.shape)), src)

    return operation(
        name,
        lambda xp, x, index, src, *, axis: add(library_of(x).copy(x), index, src, axis=axis),
        rules={
            "x": lambda g: g,
            "index": None,
            "src": lambda g, index, axis, xp: op_for(xp, read)(g, index, axis=axis),
        },
        holomorphic=False,
        inplace=add,
        domain={"x": both(-2, 2), "src": both(-2, 2), **_INDEX},
        samples=samples,
        scalars=False,
        batch=_BATCH[locate],
    )


take_p, take_back_p = _reading(
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


gather_p, gather_back_p = _reading(
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


_WRITTEN = (
    sample((3, 2), (1,), (1, 2), axis=0),
    sample((2, 3), (1,), (2, 1), axis=-1),
    sample((0, 3), (1,), (0, 1), axis=1),
)


index_copy_p = _writing("index_copy", take_p, _slices, _WRITTEN)


index_fill_p = _writing(
    "index_fill",
    take_p,
    _slices,
    (
        sample((3, 2), (2,), (), axis=0),
        sample((2, 3), (1,), (), axis=-1),
        sample((3,), (0,), (), axis=0),
    ),
)


scatter_p = _writing(
    "scatter",
    gather_p,
    _elements,
    (
        sample((3, 4), (1, 3), (1, 3), axis=0),
        sample((2, 3), (2, 1), (), axis=-1),
        sample((3,), (0,), (0,), axis=0),
    ),
)


index_add_p = _adding(
    "index_add",
    take_p,
    _slices,
    (
        sample((3, 2), (4,), (4, 2), axis=0),
        sample((2, 3), (2,), (2, 2), axis=-1),
        sample((0, 3), (2,), (0, 2), axis=1),
    ),
)


scatter_add_p = _adding(
    "scatter_add",
    gather_p,
    _elements,
    (
        sample((3, 2), (4, 2), (4, 2), axis=0),
        sample((2, 3), (1, 4), (1, 4), axis=-1),
        sample((3,), (0,), (0,), axis=0),
    ),
)
