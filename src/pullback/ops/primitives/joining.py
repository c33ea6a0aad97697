"""Joining tensors, and splitting one into several.

The parts that split, chunk and unstack return are views; a part that got no gradient counts as
zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY, library_of
from pullback.errors import ShapeError, compose
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import operation
from pullback.ops.samples import sample

_np = NUMPY.xp


# -- several arrays --------------------------------------------------------------------------------
def _check_one_shape(xs: Sequence[Any]) -> None:
    if len({tuple(x.shape) for x in xs}) != 1:
        raise ShapeError(
            compose(
                "stack",
                "tensors of one shape required",
                "several",
                *((f"arrays[{i}]", x) for i, x in enumerate(xs)),
                hint="use concat to join tensors along an axis that they have",
            )
        )


def _concat(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    axis = normalize_axis("concat", axis, len(arrays[0].shape))
    shapes = [tuple(x.shape) for x in arrays]
    if not shapes[0] or len({(len(s), s[:axis], s[axis + 1 :]) for s in shapes}) != 1:
        raise ShapeError(
            compose(
                "concat",
                f"tensors of one shape except along axis {axis} required",
                "others",
                *((f"arrays[{i}]", x) for i, x in enumerate(arrays)),
                hint="use stack to join tensors along a new axis",
            )
        )
    return xp.concat(arrays, axis=axis)


def _concat_numpy(*arrays: Any, axis: int) -> Any:
    if axis.__class__ is not int:
        raise TypeError
    return _np.concatenate(arrays, axis)


def _concat_rule(g: Any, shapes: Any, axis: int, xp: Any) -> list[Any]:
    axis %= len(shapes[0])
    lead = (slice(None),) * axis
    parts = []
    start = 0
    for shape in shapes:
        end = start + shape[axis]
        parts.append(g[(*lead, slice(start, end), ...)])
        start = end
    return parts


_SEVERAL = (
    sample((3, 4), (2, 4), (0, 4), axis=0),
    sample((3, 4), (3, 1), axis=-1),
    sample((2,), axis=0),
)


cat_p = operation(
    "cat",
    _concat,
    numpy_kernel=_concat_numpy,
    vjp_all=_concat_rule,
    samples=_SEVERAL,
    reference=(lambda np, *arrays, axis: np.concatenate(arrays, axis)),
    scalars=False,
    doc="Join along an axis.",
    batch="concat",
    moves=True,
)


def _stack(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    _check_one_shape(arrays)
    return xp.stack(arrays, axis=normalize_axis("stack", axis, len(arrays[0].shape) + 1))


def _stack_numpy(*arrays: Any, axis: int) -> Any:
    if axis.__class__ is not int:
        raise TypeError
    return _np.stack(arrays, axis) if axis else _np.array(arrays)  # raises where shapes differ


def _stack_rule(g: Any, shapes: Any, axis: int, xp: Any) -> list[Any]:
    lead = (slice(None),) * (axis % (len(shapes[0]) + 1))
    return [g[(*lead, i, ...)] for i in range(len(shapes))]


stack_p = operation(
    "stack",
    _stack,
    numpy_kernel=_stack_numpy,
    vjp_all=_stack_rule,
    samples=(
        sample((3, 4), (3, 4), axis=0),
        sample((3, 4), (3, 4), axis=-1),
        sample((), (), (), axis=0),
    ),
    reference=(lambda np, *arrays, axis: np.stack(arrays, axis)),
    doc="Join along a new axis.",
    batch="stack",
    moves=True,
)


# -- several results -------------------------------------------------------------------------------
def _split(xp: Any, x: Any, *, sizes: tuple[int, ...], axis: int = 0) -> Any:
    lead = (slice(None),) * axis
    parts, start = [], 0
    for size in sizes:
        parts.append(x[(*lead, slice(start, start + size), ...)])
        start += size
    return parts


def _zeros_for(grads: Sequence[Any], shapes: Sequence[tuple[int, ...]], xp: Any) -> list[Any]:
    """Return the gradients of several results with zeros for those that got none."""
    like = next(g for g in grads if g is not None)
    return [
        xp.zeros(shape, dtype=like.dtype, device=getattr(like, "device", None)) if g is None else g
        for g, shape in zip(grads, shapes, strict=True)
    ]


def _split_rule(g: Any, x_shape: Any, sizes: Any, axis: int, xp: Any) -> Any:
    shapes = [(*x_shape[:axis], n, *x_shape[axis + 1 :]) for n in sizes]
    return xp.concat(_zeros_for(g, shapes, xp), axis=axis)


split_p: Any = operation(
    "split",
    _split,
    rules={"x": _split_rule},
    view=True,
    multi=True,
    samples=(sample((5, 4), sizes=(2, 3), axis=0), sample((3, 4), sizes=(1, 0, 3), axis=1)),
    scalars=False,
    doc="Return views of consecutive parts along an axis.",
    batch="axis",
    moves=True,
)


def _unbind_numpy(x: Any, *, axis: int) -> Any:
    lead = (slice(None),) * axis
    return [x[(*lead, i, ...)] for i in range(x.shape[axis])]


unbind_p: Any = operation(
    "unbind",
    lambda xp, x, *, axis=0: [
        library_of(x).getitem(x, ((slice(None),) * axis) + (i,)) for i in range(x.shape[axis])
    ],
    numpy_kernel=_unbind_numpy,
    rules={
        "x": lambda g, x_shape, axis, xp: xp.stack(
            _zeros_for(g, [x_shape[:axis] + x_shape[axis + 1 :]] * x_shape[axis], xp), axis=axis
        )
    },
    view=True,
    multi=True,
    samples=(sample((3, 4), axis=0), sample((3, 4), axis=1), sample((2,), axis=0)),
    reference="numpy.unstack",
    scalars=False,
    doc="Return views of the slices along an axis.",
    batch="axis",
    moves=True,
)
