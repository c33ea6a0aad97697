"""How an operation is called and recorded; the only creator of nodes.

Owns the call paths. `unary` and `binary` make the fast path of an operation on float arrays of
the default library; everything else goes through `apply`, which coerces, promotes, checks, links
views and honours every mode. Both record the same nodes. A user's operation is recorded by
`record_outputs` (custom.py). Must not know any particular operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, TypeVar

from pullback.arrays import (
    DTYPES,
    NUMPY,
    complex_of,
    get_default_dtype,
    is_array,
    library_of,
    promote,
    promote_scalar,
)
from pullback.core.anomaly import remember_call
from pullback.core.modes import RECORD, STATE, Mode
from pullback.core.node import MultiNode, Node, meta_of, next_seq
from pullback.core.primitive import TENSORS, Packed, Primitive
from pullback.core.tensor import Tensor, as_array, box, bump
from pullback.core.views import NO_GRAD_VIEW, ONE_OF_MANY, TRACKED, Step, sync, view_of
from pullback.errors import (
    ArgumentTypeError,
    AutogradError,
    DeviceError,
    DTypeError,
    GraphError,
    ShapeError,
    TensorIndexError,
    describe,
)

_array = NUMPY.array_types[0]
_tidy = NUMPY.tidy
_F32 = DTYPES["float32"].dtype
_F64 = DTYPES["float64"].dtype
_mode = STATE.get

N = TypeVar("N", bound=Node)


def kernel_of(op: Primitive) -> Callable[..., Any]:
    """Return the forward of `op` on arrays of the default library."""
    forward, xp = op.forward, NUMPY.xp
    if op.kernel is not None:
        return functools.partial(op.kernel, xp)
    if op.standard is not None:
        kernel: Callable[..., Any] = getattr(xp, op.standard)
        return kernel
    return functools.partial(forward, xp)


def unary(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an element-wise operation of one array."""
    kernel = kernel_of(op)
    plan = op.plan((True,))
    keeps_x, keeps_out = 0 in plan, 1 in plan

    def call(x: Any, /, *, out: Any = None) -> Any:
        if x.__class__ is Tensor and out is None:
            if x._view is not None:
                sync(x)
            xd = x._data
            if xd.__class__ is _array and ((dtype := xd.dtype) is _F32 or dtype is _F64):
                node = x._node
                if node is None or (mode := _mode()) is RECORD or not mode.grad:
                    result = kernel(xd)
                    t = Tensor()
                    t._data = result if result.__class__ is _array else _tidy(result)
                    t._counter = counter = [0]
                    t._view = t._grad = None
                    if node is None or mode is not RECORD:
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


def binary(op: Primitive) -> Callable[..., Any]:
    """Return the public function of an operation of two arrays without settings."""
    kernel, record_pair = kernel_of(op), pair_recorder(op)

    def call(x: Any, y: Any, /, *, out: Any = None) -> Any:
        # Arrays of one float dtype in, one kernel call; whatever is unusual leaves for `apply`.
        if x.__class__ is Tensor and out is None:
            if x._view is not None:
                sync(x)
            xd = x._data
            if xd.__class__ is _array and ((dtype := xd.dtype) is _F32 or dtype is _F64):
                if y.__class__ is Tensor:
                    if y._view is not None:
                        sync(y)
                    yd, yn = y._data, y._node
                    plain = yd.__class__ is _array and yd.dtype is dtype
                else:
                    yd, yn = y, None
                    plain = y.__class__ is float or y.__class__ is int
                xn = x._node
                untracked = xn is None and yn is None
                if plain and (untracked or (mode := _mode()) is RECORD or not mode.grad):
                    try:
                        result = kernel(xd, yd)
                    except AutogradError:
                        raise
                    except _THEIRS as error:
                        raise kernel_error(op, (x, y), error) from error
                    t = Tensor()
                    t._data = result if result.__class__ is _array else _tidy(result)
                    t._counter = [0]
                    t._view = t._grad = None
                    if untracked or mode is not RECORD:
                        t._node = None
                    else:
                        record_pair(t, x, y, xd, yd, xn, yn)
                    return t
        return apply(op, (x, y), {}) if out is None else apply_out(op, (x, y), {}, out)

    return call


def pair_recorder(op: Primitive) -> Callable[..., None]:
    """Return what gives the result of `binary` its node."""
    plans = {(a, b): op.plan((a, b)) for a in (False, True) for b in (False, True)}
    keeps = {key: tuple(slot in plan for slot in range(3)) for key, plan in plans.items()}
    left, right, both = keeps[True, False], keeps[False, True], keeps[True, True]
    broadcasts = op.broadcasts

    def record_pair(t: Any, x: Any, y: Any, xd: Any, yd: Any, xn: Any, yn: Any) -> None:
        t._node = n = Node()
        n.op = op
        n.inputs = (xn, yn)
        n.seq = next_seq()
        n.extra = n.shapes = None
        keep_x, keep_y, keep_out = left if yn is None else right if xn is None else both
        if broadcasts:
            shape = t._data.shape
            if xn is not None and xd.shape != shape:
                n.shapes = (xd.shape, None if yn is None else yd.shape)
            elif yn is not None and yd.shape != shape:
                n.shapes = (None if xn is None else xd.shape, yd.shape)
        guard: tuple[Any, ...] | None = None
        if keep_x:
            v = x._counter
            guard = (v, v[0])
        if keep_y and y.__class__ is Tensor:
            v = y._counter
            guard = (v, v[0]) if guard is None else (*guard, v, v[0])
        if keep_out:
            guard = (*(guard or ()), t._counter, 0)
        n.guard = guard
        n.saved = (
            xd if keep_x else None,
            yd if keep_y else None,
            t._data if keep_out else None,
        )

    return record_pair


# -- the general path ------------------------------------------------------------------------------
def apply(op: Primitive, args: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Run `op` on tensors, arrays and Python scalars, and record it where a gradient is needed."""
    tensors, library = coerce(op, args)
    arrays = [t._data for t in tensors]
    try:
        result = op.forward(library.xp, *arrays, **settings)
    except AutogradError:
        raise
    except _THEIRS as error:
        raise kernel_error(op, args, error) from error
    results = [as_array(r) for r in result] if op.multi else [as_array(result)]
    outs = [box(r) for r in results]
    mode = STATE.get()
    if op.view:
        _link_views(op, tensors[0], outs, settings, mode, library)
    if mode.grad and op.differentiable:
        targets = tuple([t._node for t in tensors])
        if any(target is not None for target in targets) and library.dtype(results[0]).is_inexact:
            node = record(op, targets, tensors, outs, settings, mode)
            if not op.multi:
                note_shapes(op, node, tensors, results[0].shape)
            _attach(node, outs)
    return outs if op.multi else outs[0]


def apply_out(op: Primitive, args: Sequence[Any], settings: dict[str, Any], out: Tensor) -> Tensor:
    """Run `op` and write the result into `out`, which no gradient can flow through."""
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{op.name}: out= must be a Tensor, got {type(out).__name__}")
    if STATE.get().grad and any(isinstance(a, Tensor) and a.requires_grad for a in (*args, out)):
        raise GraphError(
            f"{op.name}: functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad.\n"
            "hint: leave out= away, or call it inside `with no_grad():`."
        )
    result = apply(op, args, settings)
    if result.shape != out.shape or result.dtype is not out.dtype:
        raise ShapeError(
            f"{op.name}: out= must have the shape {result.shape} and dtype {result.dtype.name} of "
            f"the result, got shape {out.shape}, dtype {out.dtype.name}"
        )
    array = out.data_array()
    out._data = library_of(array).assign(array, ..., result._data)
    bump(out)
    return out


def note_shapes(op: Primitive, node: Node, tensors: Sequence[Any], shape: tuple[int, ...]) -> None:
    """Let backward undo the broadcasting of inputs to `shape`, where there was any."""
    if op.broadcasts:
        shapes = tuple(t._data.shape if isinstance(t, Tensor) else shape for t in tensors)
        if any(s != shape for s in shapes):
            node.shapes = shapes


def record(
    op: Primitive,
    targets: tuple[Any, ...],
    tensors: Sequence[Any],
    outs: Sequence[Tensor],
    settings: dict[str, Any],
    mode: Mode,
) -> Node:
    """Return the node of one call: its edges, and of its tensors what the rules will need."""
    plan = op.plan(tuple(target is not None for target in targets))
    limit = len(op.inputs)
    slots: list[Any] = [None] * len(op.layout)
    guard: list[Any] = []
    for slot in plan:
        tensor = tensors[slot] if slot < limit else outs[0]
        if isinstance(tensor, Tensor):
            slots[slot] = tensor._data
            guard += (tensor._counter, tensor._counter[0])
        else:
            slots[slot] = tensor  # a Python number
    for name, slot in list(op.layout.items())[limit + 1 :]:
        slots[slot] = _context(op, name, tensors, settings)
    if plan and op.holomorphic and library_of(outs[0]._data).dtype(outs[0]._data).is_complex:
        op = op.complex_twin
    node = new_node(MultiNode if op.multi else Node, op, targets)
    if mode.hooks is not None and plan:
        node.saved = Packed(slots, plan, guard[::2], mode.hooks)
    else:
        node.saved = tuple(slots)
        node.guard = tuple(guard) or None
    if mode.anomaly:
        remember_call(node)
    return node


def _context(op: Primitive, name: str, tensors: Sequence[Tensor], settings: dict[str, Any]) -> Any:
    """Return what a rule may ask for beside arrays: a setting, an input's shape, dtype, device."""
    if name in settings:
        return settings[name]
    if name == "shapes":
        return tuple(t._data.shape for t in tensors)
    of, _, what = name.rpartition("_")
    tensor = tensors[op.inputs.index(of)]
    return tensor._data.shape if what == "shape" else getattr(tensor, what)


def new_node(kind: type[N], op: Any, targets: tuple[Any, ...]) -> N:
    """Return a node of `op` with edges to `targets` that has saved nothing yet."""
    node = kind()
    node.op = op
    node.inputs = targets
    node.seq = next_seq()
    node.saved = ()
    node.guard = node.shapes = node.extra = None
    return node


def _attach(node: Node, outs: Sequence[Tensor]) -> None:
    """Give the results their places in the history."""
    if isinstance(node, MultiNode):
        node.metas = [meta_of(t._data) for t in outs]
        for i, t in enumerate(outs):
            t._node = node.output(i)
    else:
        outs[0]._node = node


def _link_views(
    op: Primitive,
    source: Tensor,
    outs: Sequence[Tensor],
    settings: dict[str, Any],
    mode: Mode,
    library: Any,
) -> None:
    """Tell each result that shares the source's memory whose view it is."""
    if callable(op.view) and not op.view(settings):
        return
    kind = ONE_OF_MANY if op.multi else TRACKED
    if not mode.grad and source.requires_grad:
        kind = NO_GRAD_VIEW
    for i, out in enumerate(outs):
        if library.shares(out._data, source._data):
            out._view = view_of(source, Step(op, settings, i if op.multi else None), kind)
            out._counter = source._counter


# -- arguments -------------------------------------------------------------------------------------
def coerce(op: Primitive, args: Sequence[Any]) -> tuple[list[Tensor], Any]:
    """Return the arguments as up-to-date tensors of one library and dtype, and the library."""
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor) and not op.floating:
        if first._view is not None:
            sync(first)
        return [first], library_of(first._data)
    tensors: list[Any] = []
    library = like = None
    for i, a in enumerate(args):
        if not isinstance(a, Tensor) and is_array(a):
            # The array is the caller's: a later change of it must not be seen by backward.
            a = box(library_of(a).copy(library_of(a).asarray(a)))
        if isinstance(a, Tensor):
            if a._view is not None:
                sync(a)
            if like is None:
                like = a
                library = library_of(a._data)
            elif library_of(a._data) is not library or not library.same_device(a._data, like._data):
                raise mixed_error(op, args)
        elif not isinstance(a, Number):
            raise _argument_error(op, i, a)
        tensors.append(a)
    if like is None:
        raise _argument_error(op, 0, first)
    return _promoted(op, tensors, library, like), library


def _promoted(op: Primitive, tensors: list[Any], library: Any, like: Tensor) -> list[Tensor]:
    """Bring tensors and Python scalars to one dtype, by recorded casts."""
    if not op.promotes:
        return [
            t if isinstance(t, Tensor) else _scalar(op, t, like.dtype, library, like)
            for t in tensors
        ]
    joining = [t for i, t in enumerate(tensors) if i not in op.masks]
    arrays = [t._data for t in joining if isinstance(t, Tensor)] or [like._data]
    dtype = _result_dtype(arrays, library)
    for t in joining:
        if not isinstance(t, Tensor):
            dtype = promote_scalar(dtype, t)
    if op.floating and not dtype.is_inexact:
        dtype = get_default_dtype()
    native = library.native(dtype)
    return [
        _scalar(op, t, dtype, library, like)
        if not isinstance(t, Tensor)
        else t
        if i in op.masks or t._data.dtype == native
        else TENSORS.astype(t, dtype)
        for i, t in enumerate(tensors)
    ]


_KINDS = "biufc"


def _result_dtype(arrays: list[Any], library: Any) -> Any:
    """Return the dtype of PyTorch's promotion: 0-d arrays only count with a higher kind."""
    full = dict.fromkeys(library.dtype(a) for a in arrays if a.shape)
    zero = dict.fromkeys(library.dtype(a) for a in arrays if not a.shape)
    if not full:
        return promote(*zero)
    dtype = promote(*full)
    for other in zero:
        if level_of(other) > level_of(dtype):
            dtype = complex_of(dtype) if dtype.is_inexact else other
    return dtype


def level_of(dtype: Any) -> int:
    """Return the rank of a dtype's kind: bool, integer, floating, complex."""
    return 1 if dtype.kind in "iu" else 3 * _KINDS.index(dtype.kind)


def _scalar(op: Primitive, value: Any, dtype: Any, library: Any, like: Tensor) -> Tensor:
    device = library.native_device(library.device(like._data))
    try:
        return box(library.asarray(value, dtype=dtype, device=device))
    except OverflowError as error:
        raise DTypeError(
            f"{op.name}: a Python number must fit the dtype it is used with, {dtype.name}, got "
            f"{value}.\nhint: convert the tensor to a wider dtype first."
        ) from error


def mixed_error(op: Any, args: Sequence[Any]) -> DeviceError:
    """Return the error for arguments on different devices or of different libraries."""
    lines = "".join(
        f"\n  {describe(name, a)}, "
        f"{library_of(a._data if isinstance(a, Tensor) else a).name}"
        f" on {library_of(a._data).device(a._data) if isinstance(a, Tensor) else 'its device'}"
        for name, a in zip(_names(op, args), args, strict=True)
        if isinstance(a, Tensor) or is_array(a)
    )
    return DeviceError(
        f"{op.name}: all tensors must be on one device and of one array library, got{lines}\n"
        "hint: move them first, for instance with x.to(device) or x.cpu()."
    )


def _argument_error(op: Primitive, i: int, value: Any) -> ArgumentTypeError:
    name = _names(op, range(i + 1))[i]
    return ArgumentTypeError(
        f"{op.name}: the argument '{name}' must be a Tensor, an array or a Python number, got "
        f"{type(value).__name__}.\nhint: make a tensor of it with pullback.tensor."
    )


def _names(op: Primitive, args: Sequence[Any]) -> list[str]:
    if op.variadic:
        return [f"{op.inputs[0] if op.inputs else 'arrays'}[{i}]" for i in range(len(args))]
    return [op.inputs[i] if i < len(op.inputs) else f"argument {i}" for i in range(len(args))]


_OURS: dict[type[Exception], type[AutogradError]] = {
    IndexError: TensorIndexError,
    TypeError: DTypeError,
    ValueError: ShapeError,
}
_THEIRS = tuple(_OURS)


def kernel_error(op: Primitive, args: Sequence[Any], error: Exception) -> AutogradError:
    """Return the array library's error as one of ours, naming the operation and its inputs."""
    ours = next(mine for theirs, mine in _OURS.items() if isinstance(error, theirs))
    names = zip(_names(op, args), args, strict=True)
    return ours(
        f"{op.name}: {str(error).strip()}"
        + "".join(f"\n  {describe(name, a)}" for name, a in names)
    )
