"""Running an operation in general, and recording it: the only creator of nodes.

Owns `apply`, which takes any arguments in any mode, and shows an observer the call: `_apply` brings
them to one library and dtype, runs forward, links views and gives the results their nodes. `attach`
makes the node of a call of a built-in operation; `new_node` any node that is not written out by a
generated call, of a primitive or of a `NodeOperation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from pullback.arrays import join, library_of, ndarray
from pullback.core.function.backward_codegen import conjugate_form
from pullback.core.function.dispatch import (
    THEIRS,
    coerce,
    is_left_to,
    kernel_error,
    mixed_error,
    named,
)
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import STATE, Mode, without_observer
from pullback.core.graph.node import (
    MultiNode,
    N,
    Node,
    SmallNode,
    WideNode,
    fill,
    levels_of,
    meta_of,
    release,
)
from pullback.core.tensor import views
from pullback.core.tensor.saved import Packed
from pullback.core.tensor.tensor import Tensor, as_array, box, tensor_class
from pullback.core.tensor.versions import bump, counter_of
from pullback.errors import (
    ERROR_CONTEXT,
    ArgumentTypeError,
    AutogradError,
    GraphError,
    ShapeError,
    UntrackedTensorWarning,
    warn_user,
)


def apply(op: Primitive, args: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Run `op` on tensors, arrays and Python scalars, and record it where a gradient is needed."""
    mode = STATE.get()
    observer = mode.observer
    if observer is None:
        return _apply(op, args, settings, mode)
    begun = perf_counter()
    if mode.library is None and _are_plain(args):  # no other call is made within this one
        try:
            STATE.set(without_observer(mode))
            result: Any = op.public(*args, **settings)
        finally:
            STATE.set(mode)
    else:
        result = _apply(op, args, settings, mode)
    seconds = perf_counter() - begun
    outs = result if op.multi else (result,)
    observer.result(op.name, named(op, args), outs, settings, op.moves)
    for t in outs:
        if (node := t._node) is not None:
            observer.recorded(node if node.runs else node.node, outs, seconds)
            break
    return result


def _are_plain(args: Sequence[Any]) -> bool:
    """Return whether arguments are numbers, and tensors whose arrays no library wraps."""
    for value in args:
        if isinstance(value, Tensor):
            array = value._data
            if array.__class__ is not ndarray and library_of(array).run is not None:
                return False
        elif value.__class__ is not float and value.__class__ is not int:
            return False
    return True


def _apply(op: Primitive, args: Sequence[Any], settings: dict[str, Any], mode: Mode) -> Any:
    tensors, library = coerce(op, args)
    arrays = [t._data for t in tensors]
    try:
        if library.run is None:
            result = op.forward(library.xp, *arrays, **settings)
        else:
            result = library.run(op, arrays, settings)
    except AutogradError:
        raise
    except THEIRS as error:
        shown = [
            t if isinstance(a, (list, tuple)) else a for a, t in zip(args, tensors, strict=True)
        ]
        raise kernel_error(op, shown, error) from error
    cls = tensor_class(args)
    outs = [box(as_array(r), cls=cls) for r in (result if op.multi else (result,))]
    if op.view:  # of the argument itself, where that was lifted too
        source = args[0] if isinstance(args[0], Tensor) else tensors[0]
        link_views(op, source, outs, settings, mode)
    if (mode.grad or mode.forward) and op.differentiable:
        edges = tuple([t._node for t in tensors])
        if not mode.grad:
            warn_of_lost(op.name, edges)
        elif edges.count(None) != len(edges):
            attach(op, edges, tensors, outs, settings, mode)
    return outs if op.multi else outs[0]


def _called(variables: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
    """Return, for errors, the operation that a running `apply` calls, and its arguments."""
    op, args = variables["op"], variables["args"]
    return (op.public.__name__, op.name), named(op, args)


ERROR_CONTEXT[_apply.__code__] = _called


def warn_of_lost(name: str, edges: Sequence[Any]) -> None:
    """Warn where a user's forward, which is not recorded, computes with tracked tensors.

    Its arguments are not tracked in it: these are tensors that it closes over.
    """
    if edges.count(None) != len(edges):
        warn_user(
            f"{name}: forward of an operation uses a tensor that requires grad and is none of its "
            "arguments, so no gradient flows to it. Pass it as an argument, or detach() it.",
            UntrackedTensorWarning,
        )


def apply_operator(op: Primitive, args: tuple[Any, Any], reflected: str) -> Any:
    """Run the operation of an operator, or leave it to the other operand's method `reflected`."""
    if is_left_to(args[0], reflected) or is_left_to(args[1], reflected):
        return NotImplemented
    return apply(op, args, {})


def apply_out(op: Primitive, args: Sequence[Any], settings: dict[str, Any], out: Tensor) -> Tensor:
    """Run `op` and write the result into `out`, which no gradient can flow through."""
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"{op.name}: out= must be a Tensor, got {type(out).__name__}")
    views.refuse_read_only(op.name, out)
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
    library = library_of(array)
    if join((library, library_of(result._data))) is not library:
        raise mixed_error(op, (*args, out))
    out._data = library.assign(array, ..., library.wrap(result._data))
    bump(out)
    return out


def attach(
    op: Primitive,
    edges: tuple[Any, ...],
    tensors: Sequence[Any],
    outs: Sequence[Tensor],
    settings: dict[str, Any],
    mode: Mode,
) -> None:
    """Give the results of a call their node; integers and bools have none."""
    inexact = [t.dtype.is_inexact for t in outs]
    if True not in inexact:
        return
    node = record(op, edges, tensors, outs, settings, mode)
    if isinstance(node, MultiNode):
        node.metas = [meta_of(t._data) for t in outs]
        for i, (t, differentiable) in enumerate(zip(outs, inexact, strict=True)):
            if differentiable:
                t._node = node.output(i)
    else:
        outs[0]._node = node


def record(
    op: Primitive,
    edges: tuple[Any, ...],
    tensors: Sequence[Any],
    outs: Sequence[Tensor],
    settings: dict[str, Any],
    mode: Mode,
) -> Node:
    """Return the node of one call: its edges, and of its tensors what the rules will need."""
    slots: list[Any] = []
    versions: list[Any] = []
    for name in op.layout:
        is_tensor, value = name in op.needed_by, None
        if not is_tensor or op.saves(name, edges):
            value = asked_for(op, name, tensors, outs, settings)
        if isinstance(value, Tensor):
            counter = counter_of(value)
            slots.append(value._data)
            versions += (counter, counter.version)
        else:  # not needed, no tensor, or one of Python's numbers for one
            slots.append(value)
            versions += (None, None) if is_tensor else ()
    if op.tensor_slots and op.holomorphic and outs[0].dtype.is_complex:
        op = conjugate_form(op)
    kind = MultiNode if op.multi else SmallNode if op.is_small else WideNode
    items = [*edges, *slots, *versions]
    if mode.hooks is not None:
        _pack(op, items, len(edges), mode.hooks)
    node = new_node(kind, op, edges, tuple(items[len(edges) :]))
    if op.broadcasts:  # which backward undoes
        shape = outs[0]._data.shape
        shapes = tuple([t._data.shape if isinstance(t, Tensor) else shape for t in tensors])
        node.shapes = None if shapes.count(shape) == len(shapes) else shapes
    return node


def asked_for(
    op: Primitive, name: str, tensors: Sequence[Any], outs: Sequence[Tensor], settings: Any
) -> Any:
    """Return what a rule of `op` asks for by this name, on tensors."""
    if name in op.inputs:
        return tensors[op.inputs.index(name)]
    if name in op.needed_by:
        return outs[op.results.index(name)]
    if name in settings:
        return settings[name]
    if name == "shapes":
        return tuple([t._data.shape for t in tensors])
    of, _, what = name.rpartition("_")
    tensor = tensors[op.inputs.index(of)]
    return tensor._data.shape if what == "shape" else getattr(tensor, what)


def _pack(op: Primitive, record: list[Any], count: int, hooks: Any) -> None:
    """Put what a pack hook makes of the saved tensors in their place in a record."""
    for k, name in enumerate(op.tensor_slots):
        at, versions = count + op.layout[name], count + op.width + 2 * k
        counter = record[versions]
        if counter is not None:
            record[at] = Packed(hooks, record[at], counter)
            record[versions] = record[versions + 1] = None


def new_node(kind: type[N], op: Any, edges: tuple[Any, ...], saved: tuple[Any, ...] = ()) -> N:
    """Return a node of `op` with these edges and saved values."""
    node = fill(kind(), op, len(edges), levels_of(edges))
    node.record = edges + saved  # type: ignore[misc]
    return node


class NodeOperation:
    """What the engine asks of the operation of a node that is no call of a primitive.

    A subclass has ``node_name`` and ``differentiate``.
    """

    takes_none = False
    add_part = None
    release = staticmethod(release)

    def saves_input(self, i: int, record: tuple[Any, ...]) -> bool:
        """Return whether backward reads the input again."""
        return False

    @staticmethod
    def kept(node: Any) -> Any:
        """Return what a node keeps after its tensors; raise if it was released."""
        if node.released:
            raise node.released_error()
        return node.record[node.count]


class PassThrough(NodeOperation):
    """The operation from a tensor to one that stands for it: the gradient goes through."""

    def __init__(self, node_name: str) -> None:
        self.node_name = node_name

    def saves_input(self, i: int, record: tuple[Any, ...]) -> bool:
        """Return True: the values are used again."""
        return True

    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return the gradient as it is."""
        return (g,)


def link_views(
    op: Primitive, source: Tensor, outs: Sequence[Tensor], settings: dict[str, Any], mode: Mode
) -> None:
    """Tell each result that shares the source's memory whose view it is."""
    if callable(op.view) and not op.view(settings):
        return
    kind = views.ONE_OF_MANY if op.multi else views.TRACKED
    if not mode.grad and source.requires_grad:
        kind = views.NO_GRAD_VIEW
    values, array = views.settings_of(op, settings), source._data
    for i, out in enumerate(outs):
        if shows_memory(out._data, array):
            views.link(out, source, op, i if op.multi else None, values, kind)


def shows_memory(array: Any, source: Any) -> bool:
    """Return whether the result of a view operation shows the memory of its source."""
    return library_of(array).shares(array, source)
