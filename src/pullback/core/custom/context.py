"""ctx: what forward and backward of a user's operation have to say to each other.

Owns saving by name, reading back with the checks, needs_input_grad and the marks. When forward has
returned, what it left in its context moves to the node; a context that somebody keeps knows the
node weakly from then on, so it reads as freed once the graph is gone. Invariant: a node keeps
arrays and version counters, never a tensor of the caller or a result, so there is no reference
cycle.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import ref

from pullback.arrays import dtype_of, is_array
from pullback.core.custom import pytree as tree
from pullback.core.custom.memory import (
    IN_CONTAINER,
    counter_among,
    kept_array,
    kept_tensor,
    position_of,
)
from pullback.core.custom.saved_variables import (
    POSITION,
    STRIDE,
    InputFlags,
    Named,
    SavedArray,
    SavedContainer,
    SavedItem,
    SavedResult,
    saved_names,
)
from pullback.core.function.codegen import define, expand, register
from pullback.core.graph.node import CustomNode
from pullback.core.tensor.ownership import IN_SLOT
from pullback.core.tensor.saved import Packed, stale
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import Counter, counter_of
from pullback.errors import ArgumentTypeError, GraphError, NameNotFoundError, ReleasedError, nearest


class Context:
    """The first argument of forward and backward of a user's operation.

    Each backward gets a context of its own on what forward's left in the node. Attributes that
    start with an underscore are the library's; any other may be set, and a tensor among them is
    kept like a saved one.

    Examples
    --------
    >>> import pullback as pb
    >>> @pb.autograd_function
    ... def power(ctx: pb.Context, x, n):
    ...     ctx.save_for_backward(x=x)
    ...     ctx.n = n
    ...     return x**n
    >>> @power.backward
    ... def _(ctx: pb.Context, g):
    ...     return {"x": g * ctx.n * ctx.saved_variables.x ** (ctx.n - 1)}
    >>> x = pb.tensor(3.0, requires_grad=True)
    >>> power(x, 2).backward()
    >>> x.grad
    tensor(6.)
    """

    __slots__ = (
        *("__dict__", "__weakref__", "_arguments", "_edges", "_marks"),
        *("_named", "_node", "_op", "_pass", "_values"),
    )
    _hint_as_argument = "forward takes ctx first: write def forward(ctx, x)"
    # Set on the instance where forward says otherwise.
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize = True
    _structure: Any = None  # of the outputs, where containers are nested
    _attributes: Mapping[str, Any] = {}  # tensors that were set as attributes in forward

    _marks: bool  # whether forward marked tensors
    _op: Any
    _arguments: Any  # names, groups and skeleton of the call
    _edges: Sequence[Any]  # one an input, None where untracked; not in backward, if nobody keeps it
    _node: Any  # None in forward, in backward the node; a weak reference to it in what is kept
    _pass: Any  # (wanted, recorded) of the backward that this context is for
    _values: tuple[Any, ...]  # what forward saves without a name
    _named: dict[str, Any] | tuple[()]  # and by name

    if TYPE_CHECKING:  # any attribute may be set; one that is not there may not be read

        def __setattr__(self, name: str, value: Any) -> None:
            """Set an attribute."""

    # -- forward's side -----------------------------------------------------------------------
    def save_for_backward(self, /, *values: Any, **named: Any) -> None:
        """Keep values for backward: by position, by name, or both; again replaces the first.

        Tensors are checked for changes in place when they are read. Of an array that the caller
        may write to, such as an argument, the values are kept; other objects are kept as they are.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def product(ctx, x, y):
        ...     ctx.save_for_backward(x=x, y=y)
        ...     return x * y
        >>> @product.backward
        ... def _(ctx, g):
        ...     x, y = ctx.saved_variables
        ...     return {"x": g * y, "y": g * x}
        >>> pb.grad(product, argnum=("x", "y"))(2.0, 3.0)
        (3.0, 2.0)
        """
        self._values, self._named = values, named

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward changed these inputs in place; forward must return them.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def double_(ctx, x):
        ...     ctx.mark_dirty(x)
        ...     return x.mul_(2)
        >>> @double_.backward
        ... def _(ctx, g):
        ...     return {"x": 2 * g}
        >>> pb.grad(lambda x: double_(x.clone()))(3.0)
        2.0
        """
        self._check_tensors("mark_dirty", tensors)
        self._dirty = tensors
        self._marks = True

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient; backward receives zeros for them.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def largest(ctx, x):
        ...     place = x.argmax()
        ...     ctx.save_for_backward(x=x, place=place)
        ...     ctx.mark_non_differentiable(place)
        ...     return x.max(), place
        >>> @largest.backward
        ... def _(ctx, g, _):
        ...     grad = pb.zeros_like(ctx.saved_variables.x)
        ...     grad[ctx.saved_variables.place] = g
        ...     return {"x": grad}
        >>> pb.grad(largest, has_aux=True)(pb.tensor([1.0, 3.0]))[0]
        tensor([0., 1.])
        """
        self._check_tensors("mark_non_differentiable", tensors)
        self._non_differentiable = tensors
        self._marks = True

    def _check_tensors(self, api: str, tensors: tuple[Any, ...]) -> None:
        for t in tensors:
            if not isinstance(t, Tensor):
                raise ArgumentTypeError(
                    f"{self._op.name}: ctx.{api} takes tensors, got {type(t).__name__}"
                )

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what stands for the gradient of an unused output: zeros (True) or None.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def both(ctx, x):
        ...     ctx.set_materialize_grads(False)
        ...     return 2 * x, 3 * x
        >>> @both.backward
        ... def _(ctx, g, h):
        ...     return {"x": 2 * g if h is None else 2 * g + 3 * h}
        >>> pb.grad(lambda x: both(x)[0])(1.0)
        2.0
        """
        self._materialize = bool(value)

    # -- both sides ---------------------------------------------------------------------------
    @property
    def needs_input_grad(self) -> InputFlags:
        """One boolean an argument of forward, by attribute, key or position.

        In backward, narrowed to what the call in progress needs.

        Examples
        --------
        >>> import pullback as pb
        >>> @pb.autograd_function
        ... def add(ctx, x, y):
        ...     return x + y
        >>> @add.backward
        ... def _(ctx, g):
        ...     print([*ctx.needs_input_grad], ctx.needs_input_grad.y)
        ...     return {"x": g, "y": g}
        >>> pb.grad(add, argnum="x")(1.0, 2.0)
        [True, False] False
        1.0
        """
        return InputFlags(self._arguments, self._needed(), self._op.name)

    def _needed(self) -> list[bool]:
        """Return one boolean an input."""
        node, wanted = self._node, self._pass[0]
        edges = node.record if node.__class__ is CustomNode else self._edges
        if wanted is None:
            return [edge is not None for edge in edges]
        return [edge in wanted for edge in edges]

    def _outlive(self, node: Any) -> None:
        """Let go of the graph: somebody keeps this context."""
        self._edges = [flag or None for flag in self._needed()]
        self._pass = (None, self._pass[1])
        self._node = ref(node)

    # -- backward's side ----------------------------------------------------------------------
    @property
    def saved_variables(self) -> Named:
        """The saved values, by attribute, key or position."""
        if self._node is None:
            values = (*self._values, *dict(self._named).values())
            return Named((None,) * len(self._values) + tuple(self._named), values, self._op.name)
        node = self._node
        if node.__class__ is not CustomNode or node.released:
            node = self._alive()
        return node.names._filled(self, node)  # type: ignore[no-any-return]

    saved_variable = saved_variables

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values that are tensors, None included, as a tuple.

        Arguments of forward are among them where they came as arrays, too: how an operation is
        called moves no value to another place.
        """
        values = list(self.saved_variables)
        places: Sequence[Any] = [None] * len(values)
        if self._node is not None:
            places = self._alive().saved[POSITION::STRIDE]
        return tuple(
            v
            for v, place in zip(values, places, strict=True)
            if v is None or isinstance(v, Tensor) or (place is not None and is_array(v))
        )

    def _alive(self) -> Any:
        """Return the node, or raise where its saved values are gone."""
        node = self._node
        if node.__class__ is ref:
            node = node()
        if node is None or node.released:
            raise ReleasedError(
                f"{self._op.name}: Trying to access saved tensors after they have already been "
                "freed: backward through the graph a second time, or the graph is gone.\n"
                "hint: call backward with retain_graph=True the first time."
            )
        return node

    def _read(self, items: Sequence[Any], name: str | int) -> Any:
        """Return a saved value, a tensor with its node in the graph, after the checks."""
        array, counter, version, position = items
        if array.__class__ is SavedContainer:
            return tree.map_leaves(
                lambda leaf: self._read(leaf.items, name) if leaf.__class__ is SavedItem else leaf,
                array.structure,
            )
        if counter is None:
            if position is None and is_array(array):
                self._check_origin(array, name)
            return array
        node = self._alive()
        own = bare = None
        if array.__class__ is SavedResult:
            array, own = array
        elif array.__class__ is SavedArray:
            array = bare = array.array
        if array.__class__ is Packed:
            array, counter, version = array.unpack(node), Counter(), 0
        if counter.version != version:
            what = f"the saved tensor '{name}'" if isinstance(name, str) else "a saved tensor"
            raise stale(node, counter.version, version, what)
        if position is None:
            self._check_origin(array, name)
            if bare is not None:
                return bare
            return box(array, None, counter) if own is None else own
        target = node.record[position] if position >= 0 else node.output(-1 - position)
        return box(array, target, counter)

    def _check_origin(self, array: Any, name: str | int) -> None:
        """Refuse a floating value of unknown origin where backward itself is recorded."""
        if not self._pass[1] or not dtype_of(array.dtype).is_inexact:
            return
        raise GraphError(
            f"{self._op.name}: the saved value {name!r} is neither an input nor an output of "
            "forward that has a gradient, so a second derivative through it would be silently "
            "wrong.\n"
            "hint: return it from forward as a further output, not marked with "
            "mark_non_differentiable, or recompute it in backward from saved inputs; if it does "
            "not depend on the inputs, pass it to forward as an argument; or mark backward with "
            "once_differentiable."
        )

    def _attribute(self, name: str) -> Any:
        """Return a tensor that was set as an attribute in forward: `__dict__` has none."""
        if name[0] == "_":
            raise AttributeError(name)
        stored = self._attributes
        if name in stored:
            self._alive()
            return self._read(stored[name], name)
        near = nearest(name, [*stored, *(n for n in dir(type(self)) if n[0] != "_")])
        hint = f"\nhint: did you mean ctx.{near}?" if near else ""
        raise NameNotFoundError(
            f"{self._op.name}: ctx has no attribute '{name}'; set it in forward, or save it by "
            f"name with ctx.save_for_backward{hint}"
        )

    if not TYPE_CHECKING:
        __getattr__ = _attribute


NO_PASS = (None, False)

# The context that one call's forward gets, and that one backward through a node gets.
FORWARD_CONTEXT = """
$ctx = $Context()
$ctx._op, $ctx._arguments, $ctx._edges = {op}, {arguments}, {edges}
$ctx._node, $ctx._pass = None, $NO_PASS
$ctx._values, $ctx._named, $ctx._marks = (), (), False
"""
BACKWARD_CONTEXT = """
$ctx = $Context()
$ctx._op, $ctx._arguments, $ctx._node = node.op, node.arguments, node
$ctx._pass = {run}
{attributes}
if $attributes is not None:
    $ctx.__dict__ = $attributes
"""
register(sys.modules[__name__])


_parts = {name: name for name in ("op", "arguments", "edges")}
_lines = [*expand(FORWARD_CONTEXT, **_parts), "return $ctx"]
forward_context = define("forward_context(op, arguments, edges)", _lines)
_read = ["$attributes = node.saved[-1]"]
_lines = [*expand(BACKWARD_CONTEXT, run="(wanted, recorded)", attributes=_read), "return $ctx"]
backward_context = define("backward_context(node, wanted, recorded)", _lines)


# -- what forward saved moves to the node ----------------------------------------------------------
def saved_by(
    ctx: Context, detached: Sequence[Any], outs: Sequence[Any], hooks: Any
) -> tuple[list[Any], Any]:
    """Take what forward left in its context out of it: what a node saves, and its names."""
    names = saved_names[(None,) * len(ctx._values) + tuple(dict(ctx._named))]
    values = [*ctx._values, *dict(ctx._named).values()]
    ctx._values = ctx._named = ()  # who keeps ctx does not keep what it saved
    marked = ctx._non_differentiable if ctx._marks or len(outs) > 1 else None
    saved: list[Any] = []
    for i in range(len(values)):  # a variable would be one more reference, see `items_of`
        saved += items_of(values[i], detached, outs, hooks, marked)
    saved.append(kept_attributes(ctx.__dict__, detached, outs, hooks, marked))
    return saved, names


def _is_constant(out: Any, marked: Sequence[Tensor] | None) -> bool:
    """Return whether no gradient flows through a result of forward: no edge leads to it."""
    return marked is not None and (not out.dtype.is_inexact or position_of(out, marked) is not None)


def kept_attributes(
    attributes: dict[str, Any],
    detached: Sequence[Any],
    outs: Sequence[Any],
    hooks: Any,
    marked: Sequence[Tensor] | None = None,
) -> dict[str, Any] | None:
    """Return what forward set on ctx, with what is kept of tensors in their place, or None."""
    for mark in ("_dirty", "_non_differentiable"):
        attributes.pop(mark, None)
    copies = {}
    for name in list(attributes):
        if not _is_plain(attributes[name]):
            items = items_of(attributes[name], detached, outs, hooks, marked)
            if items[0] is not attributes[name] or is_array(items[0]):
                copies[name] = items
    for name in copies:
        del attributes[name]
    if copies:
        attributes["_attributes"] = copies
    return attributes or None


def items_of(
    value: Any,
    detached: Sequence[Any],
    outs: Sequence[Any],
    hooks: Any,
    marked: Sequence[Tensor] | None = None,
) -> tuple[Any, ...]:
    """Return the four items that are kept of a value that forward saved.

    It is to be given as the slot that holds it: of arrays the references are counted.
    """
    if not isinstance(value, Tensor):
        if _is_plain(value):
            return (value, None, 0, None)
        held_once = getrefcount(value) == IN_SLOT
        if is_array(value):
            return kept_array(value, held_once, detached, outs)
        return (_without_tensors(value, held_once, detached, outs, hooks, marked), None, 0, None)
    array: Any = value._data if value._base is None else value.data_array()
    counter = counter_among(detached, counter_of(value))
    position = position_of(value, detached)
    output = position_of(value, outs)
    if output is not None and not _is_constant(value, marked):
        position = -1 - output
    if position is None:
        held_once = value._base is None and getrefcount(value) == IN_SLOT
        array, counter = kept_tensor(array, counter, held_once, detached, outs)
    if hooks is not None:
        array = Packed(hooks, array, counter)
    if position is None and value._node is not None:
        array = SavedResult(array, value)
    return (array, counter, counter.version, position)


def _without_tensors(
    value: Any,
    held_once: bool,
    detached: Sequence[Any],
    outs: Sequence[Any],
    hooks: Any,
    marked: Any,
) -> Any:
    """Return a saved object that is no tensor; of a container, one with items for its tensors."""
    items = tree.children(value)
    if not items or not any(isinstance(v, Tensor) or is_array(v) for v in tree.leaves(value)):
        return value
    held_once = held_once and all(tree.children(item) is None for _, item in items)
    del items

    def saved(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return SavedItem(items_of(leaf, detached, outs, hooks, marked))
        if not is_array(leaf):
            return leaf
        alone = held_once and getrefcount(leaf) == IN_CONTAINER
        return SavedItem(kept_array(leaf, alone, detached, outs))

    return SavedContainer(tree.map_leaves(saved, value))


_PLAIN = frozenset((int, float, bool, str, type(None)))


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a word or a tuple of such, as a shape is."""
    return value.__class__ in _PLAIN or (
        value.__class__ is tuple and _PLAIN.issuperset(map(type, value))
    )


def saved_values(node: CustomNode) -> Iterator[tuple[str, Any]]:
    """Yield the arrays that a node saved, each with what to call it; not those that are packed."""
    return (pair for pair in saved_items(node) if not isinstance(pair[1], Packed))


def saved_items(node: CustomNode) -> Iterator[tuple[str, Any]]:
    """Yield the arrays that a node saved, packed ones too, each with what to call it."""
    if not node.saved:
        return
    for slot, name in enumerate(node.names._names):
        array, _, _, position = node.saved[slot * STRIDE : (slot + 1) * STRIDE]
        label = name or f"saved_tensors[{slot}]"
        if not name and position is not None:
            label = node.arguments.owner(position) if position >= 0 else f"output {-1 - position}"
        yield from ((label, array) for array in _arrays_of(array))
    for key, value in (node.saved[-1] or {}).items():
        if key == "_attributes":
            for name, items in value.items():
                yield from ((name, array) for array in _arrays_of(items[0]))
        else:
            yield from ((key, array) for array in _arrays_of(value))


def _arrays_of(value: Any) -> Iterator[Any]:
    """Yield the arrays of a saved value."""
    if isinstance(value, (SavedArray, SavedResult)):
        value = value.array
    elif isinstance(value, SavedContainer):
        value = value.structure
    for leaf in tree.leaves(value):
        if isinstance(leaf, SavedItem):
            yield from _arrays_of(leaf.items[0])
        elif is_array(leaf) or isinstance(leaf, Packed):
            yield leaf
