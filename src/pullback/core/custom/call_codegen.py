"""The function that a user calls, written from forward's signature.

Owns its source. Python itself binds the arguments, as forward would; the written lines look at each
of them (a tracked tensor becomes an untracked one on the same memory, its node an edge), run
forward and record its results. Arguments that have a name of their own are looked at one after
the other, those of ``*args``, ``**kwargs`` and of containers in a loop, by the same lines. What the
lines do not handle (other modes and array libraries, variable arguments, results that are views or
in other containers than tuples and lists, marks, changes in place) they leave to `Call` (call.py).
Of ``forward(ctx, x)`` they are, in short:

    def call(x):
        mode, self = mode_of(), op()
        ...  # arg0 is x as forward sees it
        if edge0 is None or mode is not RECORD or (INTERCEPTING and not same):
            return Call(self, fixed, (x,), (x,), (arg0,), edges, (version0,), ..., cls, mode).run()
        ctx = Context()
        ...
            out = self.forward(ctx, arg0)
        ...  # what forward saved moves to the node
        n = CustomNode()
        n.op, n.seq, n.count = self, next_seq(), 1
        ...
        out._node = n
        return out
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Sequence
from sys import getrefcount
from types import FunctionType
from typing import Any

from pullback.arrays import INTERCEPTING, carries_gradient, ndarray, refuse_gradient
from pullback.core.custom import call, context, memory, pytree as tree
from pullback.core.custom.context import FORWARD_CONTEXT, Context, saved_by
from pullback.core.custom.saved_variables import COUNTER, MANY, POSITION, STRIDE
from pullback.core.custom.signature import Signature
from pullback.core.function.call_codegen import UP_TO_DATE, filled, levels_of_edges
from pullback.core.function.codegen import (
    Written,
    compiled,
    expand,
    give_defaults,
    register,
    tupled,
    written_parameters,
)
from pullback.core.graph.locks import fork_safe_locks
from pullback.core.graph.modes import STATE, Mode
from pullback.core.graph.node import UNKNOWN
from pullback.core.tensor.tensor import Tensor
from pullback.errors import GraphError, UntrackedTensorWarning, warn_user

_KINDS = inspect.Parameter
_PLAIN = (int, float, bool, str, type(None))
_CONTAINERS = (list, tuple, dict)
# The classes of most arguments that are no tensors: they carry no gradient.
_KNOWN = frozenset((*_PLAIN, complex, ndarray))


def written_call(op: Any) -> FunctionType:
    """Return a function with forward's parameters that calls `op`, which it knows weakly.

    The class of `op` has it, and is freed by the garbage collector alone: what forward captured
    must not wait for that.
    """
    written = _written(op)
    function = written.function()
    _know_weakly(op, function.__globals__, f"{written.prefix}op")
    function.__name__ = function.__qualname__ = op.name
    if not op.takes_ctx_by_name:  # it may be forgotten, which Python's error for a wrong call says
        first = next(iter(inspect.signature(op.forward).parameters))
        note = f"{op.name}: forward takes ctx first, and so its {first!r} is ctx"
        function.__qualname__ = f"{note}; {op.name}"
    give_defaults(function, op.signature.full)
    return function


def _know_weakly(op: Any, uses: dict[str, Any], key: str) -> None:
    """Give written lines, under `key`, a function that returns `op`, or raises once it is gone."""
    name = op.name

    def gone() -> None:
        raise GraphError(
            f"{name}: the operation is gone, and its __call__ does not keep it.\n"
            "hint: keep the operation itself."
        )

    def leave(_: Any) -> None:
        uses[key] = gone

    uses[key] = weakref.ref(op, leave)


_learning = fork_safe_locks(1)


def learned(op: Any, ctx: Context, detached: Any, outs: Any, hooks: Any) -> tuple[list[Any], Any]:
    """Take what forward saved out of its context, and write the lines again for such values.

    That is done once: an operation mostly saves the same of its inputs.
    """
    saved, kind = saved_by(ctx, detached, outs, hooks)
    with _learning[0]:
        if op.learned or len(kind._names) > MANY:
            return saved, kind
        op.learned = True
        pairs = zip(saved[COUNTER:-1:STRIDE], saved[POSITION:-1:STRIDE], strict=True)
        positions = [-1 if c is None or p is None else p for c, p in pairs]
        written = _written(op, kind._names, positions, kind=kind)
        function, own = type(op).__call__, f"{written.prefix}op"
        function.__globals__.update(written.names)
        if own not in function.__globals__:
            _know_weakly(op, function.__globals__, own)
        function.__code__ = compiled(written.name, written.source)
    return saved, kind


# -- templates -------------------------------------------------------------------------------------
_CALL = """
def call{parameters}:
    $mode, $self = $mode_of(), $op()
    $cls, $same = $Tensor, True
    {look}
    {run}
"""

_ONE_BY_ONE = """
{known} = $known = $self.described
{arguments}
$edges = {edges}
"""

_IN_LOOP = """
$values = {values}
$names, $args, $known = $leaves($self, {names}, $values)
$detached, $edges, $versions = [], [], []
for $a, $meta in $zip($args, $known):
    {arguments}
    $detached.append($arg)
    $edges.append($edge)
    $versions.append($version)
$edges = $tuple($edges)
"""

# What becomes of argument {a}, whose variables end in {k}: forward sees an untracked tensor on the
# same memory. $meta is what a gradient of it had to fit in the last call: it is most often the
# same, and then shared by the nodes.
_LOOK = """
if {a}.__class__ is $Tensor or {a}.__class__ in $CLASSES:
    {up_to_date}
    $edge{k} = {a}._node
    $counter{k} = {a}._counter or $counter_of({a})
    $version{k} = $counter{k}.version
    if {a}.__class__ is not $cls:
        $cls = $joined_class({a}, $cls)
    if $edge{k} is None:
        $arg{k} = {a} if {a}.__class__ is $Tensor else $box({a}._data, None, $counter{k})
        if $meta{k} is not $UNTRACKED or {a}._data.__class__ is not $ndarray:
            $same = False
    else:
        $arg{k} = $Tensor()
        $data = $arg{k}._data = {a}._data
        $arg{k}._counter = $counter{k}
        $arg{k}._node = $arg{k}._base = $arg{k}._grad = None
        if ($meta{k}[1] is not $data.dtype or $meta{k}[0] != $data.shape
                or $data.__class__ is not $ndarray):
            $same = False
else:
    if {a}.__class__ not in $KNOWN:
        $examine($self, {names}, {args}, {a}, $mode)
    $arg{k}, $edge{k}, $version{k} = {a}, None, None
    $same = $same and $meta{k} is $NO_TENSOR
"""

_DEFAULT = """
if {a} is $default{k}:  # mostly left out
    $arg{k}, $edge{k}, $version{k} = {a}, None, None
    $same = $same and $meta{k} is $NO_TENSOR
el{look}
"""

# Forward runs unrecorded; its new floating results, of the default library, get a node.
_RECORD = """
if $mode is not $RECORD or ($INTERCEPTING and not $same):
    return {call}.run()
{context}
$epoch = $EPOCH[0]
try:
    $set_mode($FORWARD)
    $out = $self.forward({arguments})
    {setup}
except AttributeError as $error:
    $hint_at_tensors($self, {names}, {detached}, $error)
    raise
finally:
    $set_mode($RECORD)
$metas, $outs = $self.result_described, None
if $out.__class__ in $BARE and ({tensors}):
    $out = $as_result($out)
if ($out.__class__ is $tuple or $out.__class__ is $list) and ({tensors}):
    if $EPOCH[0] == $epoch and not $ctx._marks:
        $outs, $metas = $new_results({args}, {detached}, $out, $ctx)
    if $outs is None:
        return {call}.results($ctx, $out, $epoch)
elif (
    $out.__class__ is not $Tensor
    or $EPOCH[0] != $epoch
    or $out._base is not None
    or $out._node is not None
    {handed_on}
    or $ctx._marks
    or (
        (($data := $out._data).__class__ is not $ndarray
        or $data.dtype is not $metas[0][1]
        or $data.shape != $metas[0][0])
        and ($metas := $ordinary($self, $data)) is None
    )
):
    return {call}.results($ctx, $out, $epoch)
elif $data.base is not None or $references($data) != $SOLE + 1:
    $out = $count_together({args}, {detached}, ($out,), $ctx, (1,))[0]
    $data = $out._data
$n = None
if {tracked}:
    {save}
    $n = $CustomNode()
    {filled}
    $n.record, $n.saved, $n.names = $edges, $saved, $names
    $n.arguments, $n.metas = $fixed, $metas
    $n.input_metas = $known if $same else $describe($self, {args}, $edges)
    if $references($ctx) != $SOLE:
        $ctx._outlive($n)
elif $cls is $Tensor:
    $cls = $class_for_arrays({args})
if $outs is not None:
    return $out.__class__($own_results($outs, $n, $cls))
if $references($out) != $SOLE:  # forward may have kept its own
    return $box($data, $n, $counter_of($out), $cls)
if $cls is not $Tensor:
    $out = $box($data, $n, $out._counter, $cls)
$out._node = $n
$out._counter = $out._counter or $n
return $out
"""

_SAVE = """
if (  # the same values as in the first call
    $len($ctx._values) == {unnamed}
    and (*$ctx._named,) == {names}
    {tests}
):
    $saved, $names = [{items}None], $kind
    if $set := $ctx.__dict__:
        $saved[-1] = $kept_attributes($set, {rest})
    $ctx._values = $ctx._named = ()
else:
    {general}
"""


def _written(
    op: Any, saved: Sequence[str | None] | None = None, inputs: Sequence[int] = (), **uses: Any
) -> Written:
    """Return the source of a call.

    Once they are known, `saved` has the names of what forward saves, and `inputs` which input each
    of these is, or a negative number.
    """
    signature: Signature = op.signature
    writer = _Writer(op)
    lines = expand(
        _CALL,
        parameters=written_parameters(signature.full),
        look=writer.looking(),
        run=writer.running(saved, inputs) if writer.records else [f"return {writer.call}.run()"],
    )
    uses |= {f"default{i}": p.default for i, p in enumerate(signature.parameters)}
    uses |= {"fixed": signature.fixed, "arguments": signature.arguments}
    names = [p.name for p in signature.parameters]
    return Written(f"call of {op.name}", lines, names, **uses)


class _Writer:
    """Writes the lines of one operation's call."""

    def __init__(self, op: Any) -> None:
        self.op, self.parameters = op, op.signature.parameters
        self.count = len(self.parameters)
        self.records = not op.in_loop and self.count > 0
        values, variable = self._read()
        self.args = tupled(values)
        fixed = op.signature.is_fixed
        self.names = "$fixed" if fixed else f"$arguments({', '.join(variable)})"
        detached, versions = self.each("$arg"), self.each("$version")
        looked = f"{self.names}, {self.args}, {self.args}, {detached}, $edges, {versions}"
        if op.in_loop:
            looked = "$names, $values, $args, $detached, $edges, $versions"
        self.call = f"$Call($self, {looked}, $known if $same else None, $cls, $mode)"

    def each(self, prefix: str) -> str:
        """Return a tuple of one variable an argument, as written."""
        return tupled([f"{prefix}{i}" for i in range(self.count)])

    def _read(self) -> tuple[list[str], list[str]]:
        """Return the values in order, and the names of variable ones."""
        values: list[str] = []
        variable: list[str] = []
        for p in self.parameters:
            if p.kind is _KINDS.VAR_POSITIONAL:
                each = f"f'{p.name}[{{$i}}]' for $i in $range($len({p.name}))"
                variable.append(f"$tuple([{each}])")
                values.append(f"*{p.name}")
            elif p.kind is _KINDS.VAR_KEYWORD:
                variable.append(f"$tuple({p.name})")
                values.append(f"*{p.name}.values()")
            else:
                values.append(p.name)
        return values, variable

    def looking(self) -> list[str]:
        """Return the lines that look at the arguments."""
        if self.op.in_loop:
            arguments = self._look("$a", "", "$names", "$args")
            names, values = self.names, self.args
            return expand(_IN_LOOP, values=values, names=names, arguments=arguments)
        arguments = []
        for i, p in enumerate(self.parameters):
            look = self._look(p.name, str(i), "$fixed", self.args)
            if p.default.__class__ in _PLAIN:
                first, *rest = look
                arguments += [*expand(_DEFAULT, a=p.name, k=str(i), look=first), *rest]
            else:
                arguments += look
        known, edges = self.each("$meta"), self.each("$edge")
        return expand(_ONE_BY_ONE, known=known, arguments=arguments, edges=edges)

    @staticmethod
    def _look(a: str, k: str, names: str, args: str) -> list[str]:
        update = expand(UP_TO_DATE, x=a)
        return expand(_LOOK, a=a, k=k, names=names, args=args, up_to_date=update)

    def running(self, saved: Sequence[str | None] | None, inputs: Sequence[int]) -> list[str]:
        """Return the lines that run forward and record its result."""
        detached = self.each("$arg")
        arguments = [
            f"{p.name}=$arg{i}" if p.kind is _KINDS.KEYWORD_ONLY else f"$arg{i}"
            for i, p in enumerate(self.parameters)
        ]
        splits = self.op.setup_context is not None
        edges = [f"$edge{i}" for i in range(self.count)]
        return expand(
            _RECORD,
            call=self.call,
            context=expand(FORWARD_CONTEXT, op="$self", arguments="$fixed", edges="$edges"),
            arguments=", ".join(arguments if splits else ["$ctx", *arguments]),
            setup=[f"$self.setup_context($ctx, {detached}, $out)"] if splits else [],
            handed_on=[f"or $out is $arg{i}" for i in range(self.count)],
            args=self.args,
            names=self.names,
            detached=detached,
            tracked=" or ".join(f"{edge} is not None" for edge in edges),
            tensors=" or ".join(f"$version{i} is not None" for i in range(self.count)),
            save=self._saving(saved, inputs),
            filled=filled("$n", "$self", str(self.count), levels_of_edges(edges)),
        )

    def _saving(self, saved: Sequence[str | None] | None, inputs: Sequence[int]) -> list[str]:
        """Return the lines that take what forward saved out of its context."""
        rest = f"{self.each('$arg')}, $outs or ($out,), None"
        general = f"$saved, $names = $learned($self, $ctx, {rest})"
        if saved is None:
            return [general]
        unnamed = sum(name is None for name in saved)
        values = [f"$ctx._values[{i}]" for i in range(unnamed)]
        values += [f"$ctx._named[{name!r}]" for name in saved[unnamed:]]
        tests, items = [], []
        for value, i in zip(values, inputs, strict=True):
            if i < 0:
                items.append(f"*$items_of({value}, {rest}), ")
            else:
                tests.append(f"and {value} is $arg{i} and $version{i} is not None")
                items.append(f"$arg{i}._data, $counter{i}, $version{i}, {i}, ")
        return expand(
            _SAVE,
            unnamed=str(unnamed),
            names=repr(tuple(saved[unnamed:])),
            tests=tests,
            items="".join(items),
            rest=rest,
            general=general,
        )


# -- what the written function uses ----------------------------------------------------------------
def leaves(op: Any, arguments: Any, values: Sequence[Any]) -> tuple[Any, Sequence[Any], Any]:
    """Return the names of arguments, what to look at, and what is known of it."""
    flat = values
    if op.traverse:
        arguments = arguments.traversed(tree.map_leaves(lambda _: None, list(values)))
        flat = list(tree.leaves(list(values)))
    known = op.described
    return arguments, flat, known if len(known) == len(flat) else (UNKNOWN,) * len(flat)


def joined_class(a: Tensor, cls: type[Tensor]) -> type[Tensor]:
    """Return the class of the results of `a` and of arguments whose results have class `cls`."""
    return a.__class__ if issubclass(a.__class__, cls) else cls


def examine(op: Any, arguments: Any, values: Sequence[Any], value: Any, mode: Mode) -> None:
    """Refuse, or warn of, an argument that is no tensor whose gradient would be lost."""
    if isinstance(value, _CONTAINERS) and (op.traverse or not mode.grad):
        return
    tracked = False
    for leaf in tree.leaves(value):
        if isinstance(leaf, Tensor):
            tracked = tracked or leaf.requires_grad
        elif leaf.__class__ not in _KNOWN and carries_gradient(leaf):
            refuse_gradient(op.name, _name_of(value, arguments, values), leaf)
    if tracked:
        warn_user(
            f"{op.name}: the argument '{_name_of(value, arguments, values)}' is a "
            f"{type(value).__name__} holding a tensor that requires grad; containers are not "
            "searched, so no gradient flows to it. Pass the tensor itself, or define the operation "
            "with traverse=True.",
            UntrackedTensorWarning,
        )


def _name_of(value: Any, arguments: Any, values: Sequence[Any]) -> str:
    name: str = next(arguments.owner(i) for i, v in enumerate(values) if v is value)
    return name


register(
    call,
    context,
    memory,
    sys.modules[__name__],
    INTERCEPTING=INTERCEPTING,
    KNOWN=_KNOWN,
    references=getrefcount,
    set_mode=STATE.set,
)
