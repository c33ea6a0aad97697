"""How an operation is called and recorded; the only creator of nodes.

Owns the general way: `apply` coerces, promotes, checks, links views and honours every mode. The
quick ways of fastpath.py leave to it whatever is unusual, and record the same nodes. A user's
operation is recorded by `record_outputs` (custom.py). Must not know any particular operation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeVar

from pullback.arrays import (
    DTYPES,
    NUMPY,
    get_default_dtype,
    is_array,
    library_of,
    promote_scalar,
    promote_tensors,
)
from pullback.core.debug.anomaly import check_results, remember_call
from pullback.core.function.primitive import TENSORS, Packed, Primitive
from pullback.core.graph.modes import RECORD, STATE, Mode
from pullback.core.graph.node import MultiNode, Node, meta_of, next_seq
from pullback.core.tensor.tensor import Tensor, apart, as_array, box, bump
from pullback.core.tensor.views import NO_GRAD_VIEW, ONE_OF_MANY, TRACKED, Step, sync, view_of
from pullback.errors import (
    CALLS,
    ArgumentError,
    ArgumentTypeError,
    AutogradError,
    DeviceError,
    DTypeError,
    GraphError,
    ShapeError,
    TensorIndexError,
    compose,
    describe,
)

_array = NUMPY.array_types[0]
_asarray = NUMPY.xp.asarray
_F32 = DTYPES["float32"].dtype
_F64 = DTYPES["float64"].dtype

N = TypeVar("N", bound=Node)


def apply(op: Primitive, args: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Run `op` on tensors, arrays and Python scalars, and record it where a gradient is needed."""
    tensors, library = coerce(op, args)
    arrays = [t._data for t in tensors]
    try:
        result = op.forward(library.xp, *arrays, **settings)
    except AutogradError:
        raise
    except THEIRS as error:
        raise kernel_error(op, args, error) from error
    outs = [box(as_array(r)) for r in (result if op.multi else (result,))]
    mode = STATE.get()
    if mode is not RECORD and mode.anomaly:
        check_results(op.name, named(op, args), outs, mode, settings)
    if op.view:
        link_views(op, tensors[0], outs, settings, mode, library)
    if mode.grad and op.differentiable:
        targets = tuple([t._node for t in tensors])
        if targets.count(None) != len(targets):
            place(op, targets, tensors, outs, settings, mode)
    return outs if op.multi else outs[0]


def _called(variables: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
    """Return, for errors, the operation that a running `apply` calls, and its arguments."""
    op, args = variables["op"], variables["args"]
    return (op.public.__name__, op.name), named(op, args)


CALLS[apply.__code__] = _called


def place(
    op: Primitive,
    targets: tuple[Any, ...],
    tensors: Sequence[Tensor],
    outs: Sequence[Tensor],
    settings: dict[str, Any],
    mode: Mode,
) -> None:
    """Give the results their places in the history; integers and bools have none."""
    inexact = [t.dtype.is_inexact for t in outs]
    if True not in inexact:
        return
    node = record(op, targets, tensors, outs, settings, mode)
    if isinstance(node, MultiNode):
        node.metas = [meta_of(t._data) for t in outs]
        for i, (t, has_place) in enumerate(zip(outs, inexact, strict=True)):
            if has_place:
                t._node = node.output(i)
    else:
        note_shapes(op, node, tensors, outs[0]._data.shape)
        outs[0]._node = node


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
        shapes = tuple([t._data.shape if isinstance(t, Tensor) else shape for t in tensors])
        if shapes.count(shape) != len(shapes):
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
    plan = op.plan(tuple([target is not None for target in targets]))
    limit = len(op.inputs)
    slots: list[Any] = [None] * (limit + len(op.results))
    guard: list[Any] = []
    for slot in plan:
        tensor = tensors[slot] if slot < limit else outs[slot - limit]
        if isinstance(tensor, Tensor):
            slots[slot] = tensor._data
            guard += (tensor._counter, tensor._counter[0])
        else:
            slots[slot] = tensor  # a Python number
    slots += op.context(tensors, settings)
    if plan and op.holomorphic and outs[0].dtype.is_complex:
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


def new_node(kind: type[N], op: Any, targets: tuple[Any, ...]) -> N:
    """Return a node of `op` with edges to `targets` that has saved nothing yet."""
    node = kind()
    node.op = op
    node.inputs = targets
    node.seq = next_seq()
    node.saved = ()
    node.guard = node.shapes = node.extra = None
    return node


def link_views(
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
    tensors: list[Any] | None = alike(op, args)
    if tensors is not None:
        return tensors, NUMPY
    tensors = []
    library = like = None
    borrowed = []
    for i, a in enumerate(args):
        if not isinstance(a, Tensor) and is_array(a):
            borrowed.append(i)
            a = box(library_of(a).asarray(a))
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
    for i in borrowed:
        # The array is the caller's: a later change of it must not be seen by backward.
        if op.view or op.variadic or _is_kept(op, i, tensors):
            tensors[i] = apart(tensors[i])
    return _promoted(op, tensors, library, like), library


def _is_kept(op: Primitive, i: int, tensors: list[Any]) -> bool:
    """Return whether the node of a call on these arguments will keep the one at `i`."""
    if not op.differentiable or not STATE.get().grad:
        return False
    tracked = [isinstance(t, Tensor) and t._node is not None for t in tensors]
    return True in tracked and i in op.plan(tuple(tracked))


def alike(op: Primitive, args: Sequence[Any]) -> list[Tensor] | None:
    """Return the arguments where they are tensors of the default library and one float dtype.

    None where they are not, and `coerce` has to look closer. Python's floats count as alike.
    """
    dtype = None
    for i, a in enumerate(args):
        if a.__class__ is Tensor:
            if a._view is not None:
                sync(a)
            array = a._data
            if array.__class__ is not _array:
                return None
            if i in op.masks:
                continue
            if dtype is None:
                dtype = array.dtype
            elif array.dtype is not dtype:
                return None
        elif a.__class__ is not float or i in op.masks:
            return None
    if dtype is not _F32 and dtype is not _F64:
        return None
    return [a if a.__class__ is Tensor else box(_asarray(a, dtype)) for a in args]


def _promoted(op: Primitive, tensors: list[Any], library: Any, like: Tensor) -> list[Tensor]:
    """Bring tensors and Python scalars to one dtype, by recorded casts."""
    if not op.promotes:
        return [
            t if isinstance(t, Tensor) else _scalar(op, t, like.dtype, library, like)
            for t in tensors
        ]
    for i in op.masks:
        if not isinstance(tensors[i], Tensor):  # one of Python's, of a dtype of its own
            device = library.native_device(library.device(like._data))
            tensors[i] = box(library.asarray(tensors[i], device=device))
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


def _result_dtype(arrays: list[Any], library: Any) -> Any:
    full = dict.fromkeys(library.dtype(a) for a in arrays if a.shape)
    zero = dict.fromkeys(library.dtype(a) for a in arrays if not a.shape)
    return promote_tensors(full, zero)


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
    return mixed(op.name, named(op, args))


def mixed(op: str, inputs: Sequence[tuple[str, Any]]) -> DeviceError:
    """Return the error for tensors and arrays on different devices or of different libraries."""
    lines = "".join(
        f"\n  {describe(name, a)}, "
        f"{library_of(a._data if isinstance(a, Tensor) else a).name}"
        f" on {library_of(a._data).device(a._data) if isinstance(a, Tensor) else 'its device'}"
        for name, a in inputs
        if isinstance(a, Tensor) or is_array(a)
    )
    return DeviceError(
        f"{op}: all tensors must be on one device and of one array library, got{lines}\n"
        "hint: move them first, for instance with x.to(device) or x.cpu()."
    )


def _argument_error(op: Primitive, i: int, value: Any) -> ArgumentTypeError:
    name = _names(op, range(i + 1))[i]
    return ArgumentTypeError(
        f"{op.name}: the argument '{name}' must be a Tensor, an array or a Python number, got "
        f"{type(value).__name__}.\nhint: make a tensor of it with pullback.tensor."
    )


def named(op: Primitive, args: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the arguments of an operation, each with its name."""
    return list(zip(_names(op, args), args, strict=True))


def _names(op: Primitive, args: Sequence[Any]) -> list[str]:
    if op.variadic:
        return [f"{op.inputs[0] if op.inputs else 'arrays'}[{i}]" for i in range(len(args))]
    return [op.inputs[i] if i < len(op.inputs) else f"argument {i}" for i in range(len(args))]


_OURS: dict[type[Exception], type[AutogradError]] = {
    IndexError: TensorIndexError,
    TypeError: DTypeError,
    ValueError: ShapeError,
}
THEIRS = tuple(_OURS)


def kernel_error(op: Primitive, args: Sequence[Any], error: Exception) -> AutogradError:
    """Return the array library's error as one of ours, naming the operation and its inputs."""
    ours = next(mine for theirs, mine in _OURS.items() if isinstance(error, theirs))
    shapes = [tuple(getattr(a, "shape", ())) for a in args]
    says = str(error).strip()
    if ours is DTypeError:
        required = "a dtype that it is defined for"
        dtypes = [str(getattr(a, "dtype", type(a).__name__)) for a in args]
        came = " and ".join(dtype.rpartition(".")[2] for dtype in dtypes)
    elif op.broadcasts and not _broadcast(shapes):
        required, came, says = "shapes that broadcast", " and ".join(map(str, shapes)), ""
    else:
        required, came, says = "arguments that the array library takes", says, ""
        ours = ArgumentError if op.broadcasts else ours
    message = compose(op.name, f"{required} required", came, *named(op, args))
    return ours(f"{message}\nthe array library: {says}" if says else message)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether shapes can be broadcast together."""
    axes = itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return all(len({*lengths} - {1}) < 2 for lengths in axes)
