"""Running the gradient rule of a user's operation.

Owns the function that the engine calls on a node of a user's operation. It is written from
forward's signature: in the common pass (unrecorded, gradients by name or by position that fit) it
makes the context, calls the rule and takes each gradient in straight lines; all else it leaves to
`differentiate`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter
from sys import getrefcount
from typing import Any

from pullback.arrays import is_array
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import BACKWARD_CONTEXT, Context, backward_context
from pullback.core.custom.gradients import read_gradients
from pullback.core.custom.memory import lent_to_rule, own
from pullback.core.function.codegen import Written, expand, register, tupled
from pullback.core.function.record import NodeOperation, new_node
from pullback.core.graph.modes import STATE, with_grad
from pullback.core.graph.node import CustomNode, Node, WideNode, zeros_for
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import RULES, Tensor, borrowed, box
from pullback.errors import (
    ArgumentTypeError,
    GraphError,
    MissingRuleError,
    UntrackedTensorWarning,
    compose,
    warn_user,
)

_BACKWARD = """
def backward(node, g, wanted, recorded):
    if (
        {misfit}
        or recorded
        or node.released
        or ($attributes := node.saved[-1]) is not None and '_structure' in $attributes
    ):
        return $differentiate(node, g, wanted, recorded)
    {context}
    {grad_outputs}
    try:
        $result = $rule($ctx, {each})
    except TypeError as $error:
        $check_rule_call(node.op, $error, {outputs})
        raise
    if $references($ctx) != $SOLE:
        $ctx._outlive(node)
    # What the rule keeps it may change in its next call: no count is that of something held once.
    $held_once = $SOLE + 1 if $references($result) == $SOLE else -1
    if $result.__class__ is dict:
        try:
            {by_name}
            else:  # names left out have no gradient
                $get = $result.get
                {grads} = {if_there}
                if $len($result) + {missing} != {count}:
                    return {read}
        except KeyError:
            return {read_early}
    elif $result.__class__ is tuple and $len($result) == {count}:
        {grads} = $result
    {alone}
    else:
        return {read_early}
    {edges} = node.record
    {metas} = node.input_metas
    {checks}
    return {grads}
"""

# Of a rule that takes one gradient, and of one that may take several.
_GRAD_OUTPUT = """
$t = $Tensor()  # the rule must not write to its memory
$t._data, $t._counter = g, $BORROWED
$t._node = $t._base = $t._grad = None
"""
_GRAD_OUTPUTS = "$t = $output_grads($ctx, node, g)"

_ALONE = """
elif $result.__class__ is $ndarray or $result.__class__ is $Tensor:
    {grads} = ($result,)
"""

_CHECK = """
if $g{i} is not None:
    if $edge{i} is None or (wanted is not None and $edge{i} not in wanted):
        if $meta{i} is $NO_TENSOR and $g{i} is not $MISSING:
            return {read}
        $g{i} = None
    elif (
        ($data := $g{i}._data if $g{i}.__class__ is $Tensor and $g{i}._base is None else $g{i})
        .__class__ is $ndarray
        and $data.shape == $meta{i}[0]
        and $data.dtype is $meta{i}[1]
    ):
        $once = (
            $references($data) == $references($g{i}) == $held_once
            if $data is not $g{i} else $references($data) == $held_once + 1
        )
        if $data is not g and ($data.base is not None or not $once):
            $data = $own_array($data, $once, $lent_to_rule(node, g))
        $g{i} = $data
    else:
        $data = None  # would be one more reference
        return {read}
"""
# How many variables hold each gradient: none before the lines that unpack them, then one.
_READ = (
    "$read_gradients(node.op, node, $own($result, {}, $lent_to_rule(node, g)), wanted, recorded)"
)


def written_backward(op: Any) -> Callable[..., Any]:
    """Return what runs the rule of `op` for one node; it knows `op` by its nodes alone."""
    if op.rule is None or op.in_loop or not op.signature.parameters:
        return differentiate
    lines = _lines(op.signature.parameters, op.takes_tuple)
    return Written(f"backward of {op.name}", lines, rule=op.rule).function()


def _lines(parameters: Sequence[Parameter], takes_one: bool) -> list[str]:
    """Return the lines of the function; no argument is a variable in it."""
    names, count = [p.name for p in parameters], len(parameters)

    def each(prefix: str) -> str:
        return tupled([f"{prefix}{i}" for i in range(count)])

    grads, by_name = each("$g"), _by_name(names, names)
    run = "$NO_PASS if wanted is None else (wanted, False)"
    required = [p.name for p in parameters if p.default is p.empty]
    if 0 < len(required) < count:
        test, *taken = _by_name(names, required)
        by_name += [f"el{test}", *taken]
    misfit = "g.__class__ is not $ndarray"
    return expand(
        _BACKWARD,
        misfit=misfit if takes_one else f"{misfit} and g.__class__ is not $list",
        grad_outputs=expand(_GRAD_OUTPUT if takes_one else _GRAD_OUTPUTS),
        each="$t" if takes_one else "*$t",
        outputs="1" if takes_one else "$len($t)",
        alone=expand(_ALONE, grads=grads) if count == 1 else [],
        context=expand(BACKWARD_CONTEXT, run=run, attributes=[]),
        by_name=by_name,
        grads=grads,
        if_there=tupled([f"$get({name!r}, $MISSING)" for name in names]),
        missing=" + ".join(f"($g{i} is $MISSING)" for i in range(count)),
        count=str(count),
        edges=each("$edge"),
        metas=each("$meta"),
        checks=[
            line for i in range(count) for line in expand(_CHECK, i=str(i), read=_READ.format(1))
        ],
        read=_READ.format(1),
        read_early=_READ.format(0),
    )


def _by_name(names: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return the lines for a mapping that has gradients of these names."""
    items = [f"$result[{n!r}]" if n in given else "$MISSING" for n in names]
    variables = tupled([f"$g{i}" for i in range(len(names))])
    return [f"if $len($result) == {len(given)}:", f"    {variables} = {tupled(items)}"]


def differentiate(node: CustomNode, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
    """Return one gradient an input from what the user's rule gives, in every case."""
    op = node.op
    if node.released:
        raise node.released_error()
    if op.rule is None:
        raise MissingRuleError(
            f"{op.name}: no gradient can be computed: you must implement either the backward "
            f"or vjp method for your custom operation '{op.name}' to use it in backward.\n"
            "hint: give it a backward, or detach() the result."
        )
    ctx = backward_context(node, wanted, recorded and not op.once)
    grads = output_grads(ctx, node, g)
    if op.once and recorded:
        return _differentiate_once(ctx, node, grads, wanted)
    result = _call_rule(op, ctx, grads)
    result = own(result, 0, lent_to_rule(node, g))
    if getrefcount(ctx) != SOLE:
        ctx._outlive(node)
    gradients = read_gradients(op, node, result, wanted, recorded)
    if recorded:
        _warn_of_detached(node, grads, gradients)
    return gradients


RULES.add(differentiate.__code__)


def _warn_of_detached(node: CustomNode, grads: list[Any], gradients: Sequence[Any]) -> None:
    """Warn of a gradient that is linear in tracked gradients, as every one is, but not tracked."""
    tensors = [g for g in tree.leaves(grads) if isinstance(g, Tensor)]
    if not tensors or any(g._node is None for g in tensors):
        return
    for i, r in enumerate(gradients):
        if r is not None and r._node is None and is_array(r._data) and bool((r._data != 0).any()):
            warn_user(
                f"{node.op.name}: backward computed the gradient of '{node.arguments.owner(i)}' "
                "from a detached grad_output, so derivatives of it will be wrong. Write the rule "
                "with tensor operations, or mark it with pb.once_differentiable.",
                UntrackedTensorWarning,
            )
            return


def _differentiate_once(
    ctx: Context, node: CustomNode, grads: list[Any], wanted: Any
) -> Sequence[Any]:
    """Run the rule unrecorded in a pass that is recorded: its gradients raise when used."""
    previous = STATE.get()
    try:
        STATE.set(with_grad(previous, False))
        bare = tree.map_leaves(lambda x: x._alias() if isinstance(x, Tensor) else x, grads)
        result = _call_rule(node.op, ctx, bare)
        result = own(result, 0, lent_to_rule(node, list(tree.leaves(bare))))
    finally:
        STATE.set(previous)
    return _poisoned(node, grads, read_gradients(node.op, node, result, wanted, True))


def _call_rule(op: Any, ctx: Context, grads: list[Any]) -> Any:
    if op.takes_tuple and len(grads) != 1:
        return op.rule(ctx, tuple(grads))
    try:
        return op.rule(ctx, *grads)
    except TypeError as error:
        check_rule_call(op, error, len(grads))
        raise


def check_rule_call(op: Any, error: TypeError, count: int) -> None:
    """Raise if an error is that the rule does not take as many gradients as there are outputs."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is not None:  # the rule ran
        return
    rule = inspect.unwrap(op.rule)
    name, code = getattr(rule, "__name__", "backward"), getattr(rule, "__code__", None)
    line = f", line {code.co_firstlineno} of {code.co_filename}" if code else ""
    names = ["grad_output"] if count == 1 else [f"grad_output_{i}" for i in range(count)]
    s = "" if count == 1 else "s"
    required = f"backward with ctx and one parameter for each of {count} output{s} required"
    hint = f"write def {name}(ctx, {', '.join(names)})"
    hint += "" if count == 1 else ", or one parameter for the tuple of them"
    came = f"{name}{inspect.signature(rule)}{line}"
    raise ArgumentTypeError(compose(op.name, required, came, hint=hint)) from None


def output_grads(ctx: Context, node: CustomNode, g: Any) -> list[Any]:
    """Return one gradient an output, as backward is given them."""
    metas = node.metas
    raw = [g] if len(metas) == 1 else g
    if raw is None:
        raw = [None] * len(metas)
    zeros = ctx._materialize
    grads = [
        box(zeros_for(meta)) if x is None and meta is not None and zeros else borrowed(x)
        for x, meta in zip(raw, metas, strict=True)
    ]
    return grads if ctx._structure is None else tree.refilled(ctx._structure, grads)


def _poisoned(node: CustomNode, grads: list[Any], gradients: Sequence[Any]) -> list[Any]:
    """Give gradients that were computed unrecorded a node that raises when it runs."""
    tensors = [g for g in tree.leaves(grads) if isinstance(g, Tensor)]
    sources = [t for t in (*node.edges, *(g._node for g in tensors)) if t is not None]
    poison = OncePoison(node.op)
    # A node each: the gradients of the gradients are added only where these are one tensor.
    return [
        None if r is None else box(r.data_array(), new_node(WideNode, poison, tuple(sources)))
        for r in gradients
    ]


class OncePoison(NodeOperation):
    """The operation of a gradient that must not be differentiated again."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.node_name = f"{op.name}OnceDifferentiable"

    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Raise."""
        raise GraphError(
            f"{self.op.name}: trying to differentiate twice a function that was marked with "
            "@once_differentiable.\nhint: write backward with differentiable operations and "
            "remove the mark."
        )


register(sys.modules[__name__], MISSING=object(), read_gradients=read_gradients)
