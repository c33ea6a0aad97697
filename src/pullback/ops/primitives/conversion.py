"""Copies, casts and moves between devices: operations that change no value."""

from __future__ import annotations

from typing import Any

from pullback.arrays import DType, as_dtype, library_for, library_of
from pullback.ops.axes import sum_to_shape
from pullback.ops.declare import Primitive, elementwise, op_for, operation
from pullback.ops.examples import documented
from pullback.ops.samples import both, real, sample


def _cast(xp: Any, x: Any, *, dtype: DType) -> Any:
    library = library_of(x)
    if library.dtype(x).is_complex and not dtype.is_complex:
        x = library.xp.real(x)
    return library.astype(x, dtype, copy=True)


astype_p: Primitive = operation(
    "to",
    _cast,
    rules={"x": lambda g, x_dtype, xp: op_for(xp, astype_p)(g, dtype=x_dtype)},
    holomorphic=False,
    domain=real(-2, 2),
    samples=(sample((3, 4), dtype=as_dtype("float64")), sample((), dtype=as_dtype("complex128"))),
    reference=(lambda x, dtype: x.astype(dtype.dtype)),
    doc="Return x in another dtype; the gradient comes back in the dtype of x.",
    batch="leading",
    moves=True,
)


clone_p = elementwise(
    "clone",
    lambda xp, x: library_of(x).copy(x),
    x=lambda g: g,
    domain=both(-2, 2),
    reference="numpy.copy",
    methods="clone",
    doc=documented(
        "Return a copy that is differentiable.", "pb.clone(pb.tensor([1.0]))", "tensor([1.])"
    ),
    numpy="copy: a=x",
    moves=True,
)
clone = clone_p.public


def _move(xp: Any, x: Any, *, device: str) -> Any:
    return library_of(x).moved(x, device, *library_for(device))


move_p: Primitive = operation(
    "toDevice",
    _move,
    rules={"x": lambda g, x_device, xp: op_for(xp, move_p)(g, device=x_device)},
    samples=(sample((3, 4), device="cpu"),),
    reference=(lambda x, device: x),
    scalars=False,
    doc="Return x on another device; the gradient comes back on the device of x.",
    batch="leading",
    moves=True,
)


copy_p = operation(
    "copy",
    lambda xp, x, src: library_of(x).assign(library_of(x).copy(x), ..., src),
    rules={
        "x": lambda g, xp: xp.zeros_like(g),
        "src": lambda g, src_shape, xp: sum_to_shape(g, src_shape, xp),
    },
    promotes=False,
    inplace=lambda x, src: library_of(x).assign(x, ..., src),
    samples=(sample((3, 4), (4,)), sample((3, 4), (3, 4)), sample((), ())),
    reference=(lambda np, x, src: np.broadcast_to(src, x.shape)),
    doc="Return src broadcast to the shape of x.",
    batch="copy",
    moves=True,
)


fill_p = operation(
    "fill",
    lambda xp, x, *, value: xp.full_like(x, value),
    rules={"x": lambda g, xp: xp.zeros_like(g)},
    inplace=lambda x, *, value: library_of(x).assign(x, ..., value),
    samples=(sample((3, 4), value=2.0),),
    reference=(lambda np, x, value: np.full(x.shape, value, x.dtype)),
    scalars=False,
    doc="Return value in the shape of x.",
    batch="leading",
    moves=True,
)
