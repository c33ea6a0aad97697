"""The quick ways to call an operation: on tensors of the default library and one float dtype.

`unary` and `binary` make the public function of an element-wise operation, `reduction` and
`single` that of an operation of one array with settings, `several` that of one of more arrays.
What is unusual, another library or dtype, hooks, a number where an array should be, leaves for
`apply` (function.py); the nodes are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import Parameter
from numbers import Number
from typing import Any

from pullback.arrays import DTYPES, NUMPY, DType
from pullback.core.function.dispatch import (
    THEIRS,
    alike,
    apply,
    apply_out,
    link_views,
    note_shapes,
    place,
)
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import QUICK_WAYS, RECORD, STATE
from pullback.core.graph.node import Node, next_seq
from pullback.core.tensor.tensor import Tensor, as_array, box
from pullback.core.tensor.views import sync
from pullback.errors import ArgumentTypeError, compose

_array = NUMPY.array_types[0]
_quick: Any = _array  # what may go the quick ways: see QUICK_WAYS
QUICK_WAYS.append(globals())
_tidy = NUMPY.tidy
_F32 = DTYPES["float32"].dtype
_F64 = DTYPES["float64"].dtype
# What settings are made of; a number of NumPy's own would widen the dtype of the result.
_SETTINGS = frozenset((type(None), bool, int, float, complex, str, tuple, list, slice, DType))
_mode = STATE.get
_UNFIT: tuple[type[Exception], ...] = (OverflowError, *THEIRS)
_BOXED, _PLAIN = frozenset((Tensor, _array)), frozenset((float, int, Tensor, _array))


def kernel_of(op: Primitive) -> Callable[..., Any]:
    """Return the forward of `op` on arrays of the default library."""
    xp = NUMPY.xp
    name = op.quick or op.standard
    if name is not None:
        kernel: Callable[..., Any] = getattr(xp, name)
        return kernel
    return functools.partial(op.kernel or op.forward, xp)


def unary(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an element-wise operation of one array."""
    kernel, differentiable = kernel_of(op), op.differentiable
    plan = op.plan((True,))
    keeps_x, keeps_out = 0 in plan, 1 in plan

    def call(x: Any, /, *, out: Any = None) -> Any:
        if x.__class__ is Tensor and out is None:
            if x._view is not None:
                sync(x)
            xd = x._data
            if xd.__class__ is _quick and ((dtype := xd.dtype) is _F32 or dtype is _F64):
                node = x._node
                if node is None or (mode := _mode()) is RECORD or not mode.grad:
                    result = kernel(xd)
                    t = Tensor()
                    t._data = result if result.__class__ is _array else _tidy(result)
                    t._counter = counter = [0]
                    t._view = t._grad = None
                    if node is None or mode is not RECORD or not differentiable:
                        t._node = None
                        return t
                    t._node = n = Node()
                    n.op = op
                    n.inputs = (node,)
                    n.seq = next_seq()
                    n.saved = (xd if keeps_x else None, t._data if keeps_out else None)
                    if keeps_x:
                        v = x._counter
                        n.guard = (v, v[0], counter, 0) if keeps_out else (v, v[0])
                    else:
                        n.guard = (counter, 0) if keeps_out else None
                    n.shapes = n.extra = None
                    return t
        return apply(op, (x,), {}) if out is None else apply_out(op, (x,), {}, out)

    return call


_PAIRS = ((True, False), (False, True), (True, True))  # which of two inputs are tracked


def binary(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an operation of two arrays without settings."""
    kernel, with_plain, differentiable = kernel_of(op), _with_plain(op), op.differentiable
    left, right, both = (_keeper(op, w) if op.plan(w) else None for w in _PAIRS)

    def call(x: Any, y: Any, /, *, out: Any = None) -> Any:
        if x.__class__ is Tensor and y.__class__ is Tensor and out is None:
            if x._view is not None:
                sync(x)
            if y._view is not None:
                sync(y)
            xd, xn, yd, yn = x._data, x._node, y._data, y._node
            plain = xd.__class__ is _quick and ((dtype := xd.dtype) is _F32 or dtype is _F64)
            if plain and yd.__class__ is _array and yd.dtype is dtype:
                untracked = xn is None and yn is None
                if untracked or (mode := _mode()) is RECORD or not mode.grad:
                    try:
                        result = kernel(xd, yd)
                    except THEIRS:
                        return apply(op, (x, y), {})  # says what is wrong
                    t = Tensor()
                    t._data = result if result.__class__ is _array else _tidy(result)
                    t._counter = [0]
                    t._view = t._grad = t._node = None
                    if untracked or mode is not RECORD or not differentiable:
                        return t
                    t._node = n = Node()
                    n.op, n.inputs, n.seq, n.saved = op, (xn, yn), next_seq(), (None, None, None)
                    n.guard = n.extra = n.shapes = None
                    keep = left if yn is None else right if xn is None else both
                    if keep is not None:
                        n.saved, n.guard = keep(x, y, t)
                    if op.broadcasts and xd.shape != yd.shape:
                        n.shapes = (xn and xd.shape, yn and yd.shape)
                    return t
        elif out is None and (x.__class__ in _BOXED and y.__class__ in _PLAIN):
            return with_plain(x, y)
        return apply(op, (x, y), {}) if out is None else apply_out(op, (x, y), {}, out)

    return call


def _with_plain(op: Primitive) -> Callable[[Any, Any], Any]:
    """Return what calls an operation of two arrays where one is a number or a bare array."""
    with_number = _with_number(op)
    keep_left, keep_right = 0 in op.plan((False, True)), 1 in op.plan((True, False))

    def own(array: Any, kept: bool, other: Any) -> Tensor:
        # The array is the caller's: a later change of it must not be seen by backward.
        return box(array.copy() if kept and getattr(other, "_node", None) is not None else array)

    def call(x: Any, y: Any) -> Any:
        if x.__class__ is _array:
            return op.public(own(x, keep_left, y), y)
        if y.__class__ is _array:
            return op.public(x, own(y, keep_right, x))
        return with_number(x, y)

    return call


def _with_number(op: Primitive) -> Callable[[Any, float], Any]:
    """Return what calls an operation of two arrays where the second is one of Python's numbers."""
    kernel = kernel_of(op)
    keep_x, keep_y, keep_out = (slot in op.plan((True, False)) for slot in range(3))

    def call(x: Any, y: float) -> Any:
        if x.__class__ is Tensor:
            if x._view is not None:
                sync(x)
            xd, xn = x._data, x._node
            plain = xd.__class__ is _quick and ((dtype := xd.dtype) is _F32 or dtype is _F64)
            if plain and (xn is None or (mode := _mode()) is RECORD or not mode.grad):
                try:
                    result = kernel(xd, y)
                except _UNFIT:
                    return apply(op, (x, y), {})  # says what is wrong
                t = Tensor()
                t._data = data = result if result.__class__ is _array else _tidy(result)
                t._counter = counter = [0]
                t._view = t._grad = t._node = None
                if xn is None or mode is not RECORD or not op.differentiable:
                    return t
                t._node = n = Node()
                n.op, n.inputs, n.seq = op, (xn, None), next_seq()
                n.saved = (
                    xd if keep_x else None,
                    y if keep_y else None,
                    data if keep_out else None,
                )
                n.guard = n.extra = n.shapes = None
                if keep_x:
                    v = x._counter
                    n.guard = (v, v[0], counter, 0) if keep_out else (v, v[0])
                elif keep_out:
                    n.guard = (counter, 0)
                return t
        return apply(op, (x, y), {})

    return call


def _keeper(op: Primitive, tracked: tuple[bool, ...]) -> Callable[..., tuple[Any, Any]]:
    """Return what gives, called with the inputs and the result, the saved slots and the guard."""
    plan = op.plan(tracked)
    places = [*(f"x{i}" for i in range(len(op.inputs))), "t"]
    slots = "".join(f"{p}._data, " if i in plan else "None, " for i, p in enumerate(places))
    guard = "".join(f"{places[i]}._counter, {places[i]}._counter[0], " for i in plan)
    keep: Callable[..., Any] = eval(f"lambda {', '.join(places)}: (({slots}), ({guard}) or None)")
    return keep


def reduction(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an operation of one array with the settings of a reduction."""
    kernel, keep = kernel_of(op), _keeper(op, (True,))

    def call(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
        if x.__class__ is Tensor:
            if x._view is not None:
                sync(x)
            xd, node = x._data, x._node
            plain = xd.__class__ is _quick and ((dtype := xd.dtype) is _F32 or dtype is _F64)
            if plain and (node is None or (mode := _mode()) is RECORD or not mode.grad):
                try:
                    result = kernel(xd, axis=axis, keepdims=keepdims)
                except THEIRS:  # `apply` says what is wrong, or does what the kernel cannot
                    return apply(op, (x,), {"axis": axis, "keepdims": keepdims})
                t = Tensor()
                t._data = result if result.__class__ is _array else _tidy(result)
                t._counter = [0]
                t._view = t._grad = t._node = None
                if node is None or mode is not RECORD or not op.differentiable:
                    return t
                t._node = n = Node()
                n.op, n.inputs, n.seq = op, (node,), next_seq()
                saved, n.guard = keep(x, t)
                n.saved = saved + op.context((x,), {"axis": axis, "keepdims": keepdims})
                n.shapes = n.extra = None
                return t
        return apply(op, (x,), {"axis": axis, "keepdims": keepdims})

    return call


def single(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an operation of one array with settings."""
    kernel, names, keep = kernel_of(op), op.settings.keys(), _keeper(op, (True,))

    def call(*args: Any, **settings: Any) -> Any:
        if len(args) != 1:
            raise wrong_count(op, len(args))
        if settings.keys() != names or not _SETTINGS.issuperset(map(type, settings.values())):
            settings = complete(op, settings)
        x = args[0]
        if x.__class__ is Tensor:
            if x._view is not None:
                sync(x)
            xd, node = x._data, x._node
            plain = xd.__class__ is _quick and ((dtype := xd.dtype) is _F32 or dtype is _F64)
            if plain and (node is None or (mode := _mode()) is RECORD or not mode.grad):
                try:
                    result = kernel(xd, **settings)
                except THEIRS:
                    return apply(op, args, settings)  # says what is wrong
                t = box(result if result.__class__ is _array else as_array(result))
                if op.view:
                    link_views(op, x, (t,), settings, _mode(), NUMPY)
                if node is None or mode is not RECORD or not op.differentiable:
                    return t
                if t._data.dtype is dtype:
                    t._node = n = Node()
                    n.op, n.inputs, n.seq = op, (node,), next_seq()
                    saved, n.guard = keep(x, t)
                    n.saved = saved + op.context(args, settings)
                    n.shapes = n.extra = None
                else:
                    place(op, (node,), args, (t,), settings, RECORD)
                return t
        return apply(op, args, settings)

    return call


def several(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an operation of several arrays, with settings or without."""
    kernel, names, count = kernel_of(op), op.settings.keys(), len(op.inputs)
    keepers: dict[tuple[bool, ...], Callable[..., Any]] = {}  # by which inputs are tracked

    def call(*args: Any, **settings: Any) -> Any:
        if len(args) != count:
            raise wrong_count(op, len(args))
        if settings.keys() != names or not _SETTINGS.issuperset(map(type, settings.values())):
            settings = complete(op, settings)
        tensors = alike(op, args)
        mode = _mode()
        if tensors is None or (mode is not RECORD and (mode.grad or mode.anomaly)):
            return apply(op, args, settings)
        try:
            result = kernel(*[x._data for x in tensors], **settings)
        except THEIRS:
            return apply(op, args, settings)  # says what is wrong
        t = box(result if result.__class__ is _array else _tidy(result))
        if mode is not RECORD or not op.differentiable:
            return t
        targets = tuple([x._node for x in tensors])
        if targets.count(None) == count:
            return t
        dtype = t._data.dtype
        if dtype is not _F32 and dtype is not _F64:
            place(op, targets, tensors, (t,), settings, RECORD)
            return t
        tracked = tuple([target is not None for target in targets])
        keep = keepers.get(tracked) or keepers.setdefault(tracked, _keeper(op, tracked))
        t._node = n = Node()
        n.op, n.inputs, n.seq = op, targets, next_seq()
        saved, n.guard = keep(*tensors, t)
        n.saved = saved + op.context(tensors, settings)
        n.shapes = n.extra = None
        note_shapes(op, n, tensors, t._data.shape)
        return t

    return call


def general(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an operation that goes the general way."""
    names = op.settings.keys()

    def call(*args: Any, **settings: Any) -> Any:
        if settings.keys() != names or not _SETTINGS.issuperset(map(type, settings.values())):
            settings = complete(op, settings)
        if not args or not (op.variadic or len(args) == len(op.inputs)):
            raise wrong_count(op, len(args))
        return apply(op, args, settings)

    return call


def complete(op: Primitive, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a call with the defaults of those that were not given.

    Numbers of NumPy become Python's, which leave the dtype of the tensor beside them alone.
    """
    result = {**op.settings, **settings}
    if len(result) != len(op.settings):
        unknown = next(k for k in settings if k not in op.settings)
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{unknown}'")
    for name, value in result.items():
        if value is Parameter.empty:
            raise ArgumentTypeError(f"{op.name}: the keyword argument '{name}' is required")
        is_number = isinstance(value, Number) or (value.__class__ is _array and not value.shape)
        if is_number and hasattr(value, "item"):
            result[name] = value.item()
    return result


def wrong_count(op: Primitive, came: int) -> ArgumentTypeError:
    """Return the error for too many or too few arrays."""
    wanted = "at least 1" if op.variadic else len(op.inputs)
    return ArgumentTypeError(
        compose(
            op.name,
            f"{wanted} array(s) ({', '.join(op.inputs)}) required",
            str(came),
            hint=f"give {', '.join(op.settings)} by keyword" if op.settings else None,
        )
    )
