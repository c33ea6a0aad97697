"""Running an operation's gradient rules: the backward of a primitive, written from its declaration.

Owns the function ``differentiate(node, g, wanted, recorded)`` of each primitive: it takes the
node's record apart, checks the versions of what was saved, calls the rules whose gradients are
wanted and undoes broadcasting. The same rules run on arrays, and on tensors when the backward
itself is recorded. That of ``exp``, whose rule is ``lambda g, out: g * out``:

    def exp_backward(node, g, wanted, recorded):
        x_edge = node.i0
        out_saved = node.i1
        ...
        if out_counter is not None and out_counter.version != out_version:
            raise stale(node, out_counter.version, out_version)
        return (rule_0(g, out_saved),)
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NoReturn

from pullback.arrays import NUMPY, Library, is_array, join, library_of, ndarray
from pullback.core.function.codegen import Written, define, expand, register, tupled
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.function.primitive import Primitive, parameters
from pullback.core.graph.node import ITEMS, MultiNode, Node, release
from pullback.core.tensor.saved import stale, unpacked
from pullback.core.tensor.tensor import as_array, box
from pullback.core.tensor.versions import ITSELF
from pullback.errors import MissingRuleError, compose


def backward_source(op: Primitive) -> str:
    """Return the source of an operation's `differentiate`; empty if it has no gradient."""
    return _written(op).source if op.differentiable else ""


def _written(op: Primitive) -> Written:
    rules: dict[str, Any] = {f"rule_{i}": rule for i, rule in enumerate(op.rules)}
    return Written(f"{op.name}_backward", _lines(op), op=op, vjp_all=op.vjp_all, **rules)


def prepare(op: Primitive) -> None:
    """Give an operation its `differentiate`, which is written when it is first called."""

    def first_call(node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        op.differentiate = differentiate = _written(op).function()
        grads: Sequence[Any] = differentiate(node, g, wanted, recorded)
        return grads

    op.differentiate = first_call
    op.release = _releaser(len(op.inputs), op.size) if op.is_small else release
    if op.adds_into is not None:
        op.add_part = _part_adder(op)


@functools.cache  # there are few layouts of many operations
def _releaser(edges: int, size: int) -> Callable[[Node], None]:
    """Return what drops the saved values of a small node; its edges, which come first, stay."""
    names = [f"node.{item}" for item in ITEMS[edges:size]]
    dropped = [f"{' = '.join(names)} = None"] if names else []
    return define("release(node)", [*dropped, "node.released = True"])


def _part_adder(op: Primitive) -> Callable[[Node, Any, Any], Any]:
    """Return what adds a gradient into the buffer of the array that a part was read of."""
    rule: Any = op.adds_into
    shape_of = attrgetter(ITEMS[1 + op.layout[f"{op.inputs[0]}_shape"]])
    arguments = [attrgetter(ITEMS[1 + op.layout[name]]) for name in parameters(rule)[2:]]

    def add(node: Node, buffer: Any, g: Any) -> Any:
        if buffer is None:
            buffer = NUMPY.xp.zeros(shape_of(node), g.dtype)
        rule(buffer, g, *[argument(node) for argument in arguments])
        return buffer

    return add


def conjugate_form(op: Primitive) -> Primitive:
    """Return the operation with rules for complex results: conj(rule(conj(g), ...)).

    For a holomorphic function whose rule multiplies ``g`` by the derivative this is the conjugate
    Wirtinger gradient, PyTorch's convention.
    """
    if op.conjugate_form is None:
        op.conjugate_form = form = copy.copy(op)
        form.conjugate_form = form
        form.is_conjugate_form = True
        prepare(form)
    return op.conjugate_form


# -- writing the function --------------------------------------------------------------------------
_BACKWARD = """
def {name}_backward(node, g, wanted, recorded):
    {released}
    {record}
    {twice}
    {prepared}
    {checks}
    {conjugate}
    {grads}
"""

# The rules run on arrays, or on what `prepared` makes of the record where these are not NumPy's.
_PREPARED = """
if (
    recorded
    or node.released
    or g.__class__ is not $ndarray
    {others}
):
    {result} = $prepared($op, node, g, recorded)
else:
    $xp = $numpy
"""

_CHECK = """
{itself}
if ${n}_counter is not None and ${n}_counter.version != ${n}_version:
    raise $stale(node, ${n}_counter.version, ${n}_version)
"""

# Of two inputs that are one tensor.
_TWICE = """
if $twice:
    $r = {call}
    if recorded or node.extra is not None:  # whose hooks see both
        return $r, $r
    $r += $r  # new memory, as a symmetric rule gives
    return $r, None
"""


def _lines(op: Primitive) -> list[str]:
    """Return the lines of an operation's `differentiate`."""
    edges = [] if op.variadic else [f"${n}_edge" for n in op.inputs]
    versions = [f"${n}_{what}" for n in op.tensor_slots for what in ("counter", "version")]
    names = [*edges, *(f"${n}_saved" for n in op.layout), *versions]
    target = tupled(names)
    if op.variadic:
        record = ["$edges = node.record[: node.count]"]
        record += [f"{target} = node.record[node.count :]"] if names else []
    elif op.is_small:
        record = [f"{n} = node.{item}" for n, item in zip(names, ITEMS, strict=False)]
    else:
        record = [f"{target} = node.record"]
    twice = []
    if op.symmetric:  # before the saved arrays become tensors, each one of its own
        same = "{0}_edge is {1}_edge and {0}_saved is {1}_saved".format(
            *(f"${n}" for n in op.inputs)
        )
        twice = [f"$twice = {same} and node.shapes is None"]
    result = f"g, {'$_' if op.variadic else target}, $xp"
    others = [f"or ${n}_saved.__class__ not in $ARRAYS" for n in op.tensor_slots]
    prepared = expand(_PREPARED, others=others, result=result)
    checks = []
    for n in op.tensor_slots:
        itself = [f"if ${n}_counter is $ITSELF:", f"    ${n}_counter = node"]
        checks += expand(_CHECK, n=n, itself=itself if n in op.results else [])
    return expand(
        _BACKWARD,
        name=op.name,
        # Nothing can be taken out of the record of a released node.
        released=[] if op.is_small else ["if node.released:", "    raise node.released_error()"],
        record=record,
        twice=twice,
        # Of several gradients any may be missing.
        prepared=[f"{result} = $prepared($op, node, g, recorded)"] if op.multi else prepared,
        checks=checks,
        conjugate=["g = $conjugate(g, $xp)"] if op.is_conjugate_form else [],
        grads=_returned(op, edges),
    )


def _returned(op: Primitive, edges: list[str]) -> list[str]:
    """Return the lines that call the rules whose gradients are wanted."""
    if op.vjp_all is not None:
        targets = "$edges" if op.variadic else tupled(edges)
        result = f"$vjp_all({_arguments(op, op.vjp_all)})"
        result = f"$conjugate({result}, $xp)" if op.is_conjugate_form else result
        return [f"return $only_wanted({targets}, {result}, wanted)"]
    calls = [_call(op, i) for i in range(len(op.inputs))]
    if len(calls) == 1:  # a node that runs has an edge that is wanted
        return [f"return ({calls[0]},)"]
    lines = expand(_TWICE, call=calls[0]) if op.symmetric else []
    lines.append("$grads = (")
    for edge, call in zip(edges, calls, strict=True):
        wanted = f"{edge} is not None and (wanted is None or {edge} in wanted)"
        lines.append(f"    {call} if {wanted} else None,")
    summed = "$unbroadcast_all($grads, node.shapes, $xp)"
    result = f"$grads if node.shapes is None else {summed}" if op.broadcasts else "$grads"
    return [*lines, ")", f"return {result}"]


def _call(op: Primitive, i: int) -> str:
    """Return the expression for the gradient of input `i`."""
    rule = op.rules[i]
    if rule is None:
        return "None" if op.inputs[i] in op.declared else f"$missing_rule($op, {i})"
    call = f"$rule_{i}({_arguments(op, rule)})"
    if op.broadcasts and parameters(rule) == ("g",):  # of the sum, which is often much smaller
        call = f"$rule_{i}(g if node.shapes is None else $fitted(g, node.shapes[{i}], $xp))"
    return f"$conjugate({call}, $xp)" if op.is_conjugate_form else call


def _arguments(op: Primitive, rule: Any) -> str:
    own = {"g": "g", "xp": "$xp"}
    return ", ".join(own.get(n, f"${n}_saved") for n in parameters(rule))


# -- what the written function uses ----------------------------------------------------------------
def prepared(op: Primitive, node: Node, g: Any, recorded: bool) -> tuple[Any, Any, Any]:
    """Return gradient, record and namespace for a backward that is not on plain NumPy arrays."""
    if node.released:  # by a pass within this one
        raise node.released_error()
    record = unpacked(node.record, node)
    if recorded:
        return g, _as_tensors(op, node, record), TENSOR_XP
    if not op.multi and is_array(g):
        library = library_of(g)
        lifted = _lifted(op, node, record, g.__class__, library)
        if lifted is not None:
            return g, lifted, library.xp
    gradients = [as_array(x) for x in (g if op.multi else (g,)) if x is not None]
    slots = [node.count + op.layout[name] for name in op.tensor_slots]
    slots = [i for i in slots if is_array(record[i])]
    libraries = {library_of(a) for a in (*gradients, *[record[i] for i in slots])}
    library = join(libraries) or library_of(gradients[0])
    if len(libraries) > 1 and library.level:  # one of gradient and saved values is wrapped
        gradients = [library.wrap(a) for a in gradients]
        record = tuple([library.wrap(a) if i in slots else a for i, a in enumerate(record)])
    if not op.multi:
        return gradients[0], record, library.xp
    result = iter(gradients)
    return [None if x is None else next(result) for x in g], record, library.xp


def _lifted(
    op: Primitive, node: Node, record: tuple[Any, ...], cls: type, library: Library
) -> tuple[Any, ...] | None:
    """Return the record with the saved arrays in the class of the gradient's.

    None where that takes more than to wrap arrays of the default library.
    """
    slots = None
    for i in range(node.count, node.count + len(op.tensor_slots)):
        a = record[i]
        if a is None or a.__class__ is cls or not is_array(a):
            continue
        if a.__class__ is not ndarray or not library.level:
            return None
        slots = list(record) if slots is None else slots
        slots[i] = library.wrap(a)
    return record if slots is None else tuple(slots)


def _as_tensors(op: Primitive, node: Node, record: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the record with the saved arrays as tensors, each with its node in the graph."""
    slots = list(record)
    versions = node.count + op.width
    for name in op.tensor_slots:
        at = node.count + op.layout[name]
        if slots[at] is not None and is_array(slots[at]):
            if name in op.inputs:
                target = record[op.inputs.index(name)]
            else:
                output = op.results.index(name)
                target = node.output(output) if isinstance(node, MultiNode) else node
            counter = target if slots[versions] is ITSELF else slots[versions]
            slots[at] = box(slots[at], target, counter)
        versions += 2
    return tuple(slots)


def only_wanted(edges: Sequence[Any], gradients: Sequence[Any], wanted: Any) -> list[Any]:
    """Return the gradients of the inputs that have an edge that is wanted, None for the others."""
    return [
        None if edge is None or (wanted is not None and edge not in wanted) else r
        for edge, r in zip(edges, gradients, strict=True)
    ]


def missing_rule(op: Primitive, i: int) -> NoReturn:
    """Raise: an input that has no rule is asked for its gradient."""
    required = f"a gradient rule for the argument '{op.inputs[i]}' required"
    hint = f"detach() the argument '{op.inputs[i]}' if its gradient is not needed"
    raise MissingRuleError(compose(op.name, required, "an operation that has none", hint=hint))


def unbroadcast(g: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Sum `g` over the axes that broadcasting stretched, down to `shape`."""
    extra = len(g.shape) - len(shape)
    axes: tuple[int, ...] = tuple(range(extra))
    if 1 in shape:
        ones = [i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1]
        axes = (*axes, *ones)
    g = xp.sum(g, axis=axes, keepdims=len(axes) != extra)
    return g if g.shape == shape else xp.reshape(g, shape)


def fitted(g: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Return a gradient, or None, summed down to a shape."""
    return g if g is None or g.shape == shape else unbroadcast(g, shape, xp)


def unbroadcast_all(grads: Sequence[Any], shapes: Sequence[Any], xp: Any) -> list[Any]:
    """Return gradients summed down to shapes."""
    return [fitted(r, shape, xp) for r, shape in zip(grads, shapes, strict=True)]


def conjugate(g: Any, xp: Any) -> Any:
    """Return the conjugate of a gradient, of each of several, None for none."""
    if isinstance(g, (tuple, list)):
        return [conjugate(part, xp) for part in g]
    if g is None:
        return None
    return xp.conj(g) if xp is TENSOR_XP else as_array(xp.conj(g))


register(
    sys.modules[__name__],
    ARRAYS=frozenset((ndarray, type(None), int, float, bool, complex)),
    numpy=NUMPY.xp,
    stale=stale,
)
