"""The function that a user calls: written from forward's signature.

Owns its source. Python itself binds the arguments, as forward would; the written lines look at each
of them (a tracked tensor becomes an untracked one on the same memory, its node an edge), run
forward and record its one result. Arguments that have a name of their own are looked at one after
the other, those of ``*args``, ``**kwargs`` and of containers in a loop, by the same lines. What the
lines do not handle (other modes and array libraries, variable arguments, several results, marks,
changes in place) they leave to `call` and `Results` (call.py).
"""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from types import FunctionType
from typing import Any

from pullback.arrays import INTERCEPTING, NUMPY, carries_gradient, refuse_gradient
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import (
    NO_PASS,
    Context,
    items_of,
    kept_attributes,
    saved_by,
)
from pullback.core.custom.memory import count_together
from pullback.core.custom.named import COUNTER, MANY, POSITION, STRIDE
from pullback.core.custom.signature import Signature
from pullback.core.function.source import compiled, written_function
from pullback.core.graph.locks import fork_safe_locks
from pullback.core.graph.modes import FORWARD, RECORD, STATE, Mode
from pullback.core.graph.node import NO_TENSOR, UNKNOWN, UNTRACKED, CustomNode, next_seq
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor, box
from pullback.core.tensor.versions import EPOCH, counter_of
from pullback.core.tensor.views import sync
from pullback.errors import GraphError, UntrackedTensorWarning, warn_user

_KINDS = inspect.Parameter
_PLAIN = (int, float, bool, str, type(None))
_CONTAINERS = (list, tuple, dict)
# The classes of most arguments that are no tensors: they carry no gradient.
_KNOWN = frozenset((*_PLAIN, complex, NUMPY.array_types[0]))


def written_call(op: Any, call: Callable[..., Any], uses: dict[str, Any]) -> FunctionType:
    """Return a function with forward's parameters that calls `op`, which it knows weakly.

    The class of `op` has it, and is freed by the garbage collector alone: what forward captured
    must not wait for that. `uses` has what else its lines name.
    """
    signature: Signature = op.signature
    source = _Source(op)
    names = {**_COMMON, **uses, "call": call, "fixed": signature.fixed}
    names["arguments"] = signature.arguments
    named = {f"{source.prefix}{name}": value for name, value in names.items()}
    named.update(
        {f"{source.prefix}default{i}": p.default for i, p in enumerate(signature.parameters)}
    )
    function = written_function(f"call of {op.name}", source.text(), named)
    _know_weakly(op, function.__globals__, f"{source.prefix}op")
    function.__name__ = op.name
    function.__qualname__ = op.name if op.takes_ctx_by_name else _without_ctx(op)
    empty = _KINDS.empty
    keywords = [p for p in signature.parameters if p.kind is _KINDS.KEYWORD_ONLY]
    positional = [p for p in signature.parameters if p.kind in Signature.POSITIONAL]
    function.__defaults__ = tuple([p.default for p in positional if p.default is not empty])
    function.__kwdefaults__ = {p.name: p.default for p in keywords if p.default is not empty}
    return function


def _without_ctx(op: Any) -> str:
    """Return what Python's error for a wrong call calls an operation whose ctx may be forgotten."""
    first = next(iter(inspect.signature(op.forward).parameters))
    return f"{op.name}: forward takes ctx first, and so its {first!r} is ctx; {op.name}"


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


def _learned(op: Any, ctx: Context, inner: Any, outs: Any, hooks: Any) -> tuple[list[Any], Any]:
    """Take what forward saved out of its context, and write the lines again for such values.

    That is done once: an operation mostly saves the same of its inputs.
    """
    saved, kind = saved_by(ctx, inner, outs, hooks)
    with _learning[0]:
        if op.learned or len(kind._names) > MANY:
            return saved, kind
        op.learned = True
        pairs = zip(saved[COUNTER:-1:STRIDE], saved[POSITION:-1:STRIDE], strict=True)
        positions = [-1 if c is None or p is None else p for c, p in pairs]
        source = _Source(op, kind._names, positions)
        function = type(op).__call__
        function.__globals__[f"{source.prefix}kind"] = kind
        function.__code__ = compiled(f"call of {op.name}", source.text())
    return saved, kind


class _Source:
    """Writes the source. Names of its own begin with a prefix that no parameter begins with."""

    def __init__(
        self, op: Any, saved: Sequence[str | None] | None = None, inputs: Sequence[int] = ()
    ) -> None:
        self.saved = saved  # the names of what forward saves, if that is known
        self.inputs = inputs  # which input each of these is, or a negative number
        self.signature: Signature = op.signature
        self.names = [p.name for p in self.signature.parameters]
        self.in_loop = op.in_loop
        self.splits = op.setup_context is not None
        self.prefix = _prefix_for(self.names)

    def text(self) -> str:
        """Return the source of the function."""
        shown, values, names = self._parameters()
        given = f"({', '.join(values)}{',' if values else ''})"
        lines = [f"def call({', '.join(shown)}):", "    $mode, $self = $mode_of(), $op()"]
        lines += ["    $cls, $same = $Tensor, True"]
        if self.in_loop:
            looked = "$names, $values, $given, $inner, $edges, $versions"
            lines += [f"    $values = {given}", *self._loop(names)]
        else:
            inner, versions = self._each("$in"), self._each("$v")
            looked = f"{names}, {given}, {given}, {inner}, $edges, {versions}"
            lines += self._one_by_one(given)
        left = f"    return $call($self, {looked}, $known if $same else None, $cls, $mode)"
        if self.in_loop or not self.names:
            lines.append(left)
        else:
            untracked = " and ".join(f"$e{i} is None" for i in range(len(self.names)))
            lines += [
                "    if (",
                f"        ({untracked})",
                "        or $mode is not $RECORD",
                "        or ($INTERCEPTING and not $same)",
                "    ):",
                f"    {left}",
                *self._run(),
                *self._record(given),
            ]
        return "\n".join(lines).replace("$", self.prefix) + "\n"

    def _each(self, prefix: str) -> str:
        """Return a tuple of one variable an argument, as written."""
        return f"({''.join(f'{prefix}{i}, ' for i in range(len(self.names)))})"

    def _parameters(self) -> tuple[list[str], list[str], str]:
        """Return the parameters as written, the values in order, and the names of the arguments."""
        shown: list[str] = []
        values: list[str] = []
        variable: list[str] = []
        parameters = self.signature.parameters
        for p, after in itertools.zip_longest(parameters, parameters[1:]):
            if p.kind is _KINDS.KEYWORD_ONLY and not any(s.startswith("*") for s in shown):
                shown.append("*")
            if p.kind is _KINDS.VAR_POSITIONAL:
                shown.append(f"*{p.name}")
                values.append(f"*{p.name}")
                each = f"f'{p.name}[{{$i}}]' for $i in $range($len({p.name}))"
                variable.append(f"$tuple([{each}])")
            elif p.kind is _KINDS.VAR_KEYWORD:
                shown.append(f"**{p.name}")
                values.append(f"*{p.name}.values()")
                variable.append(f"$tuple({p.name})")
            else:
                shown.append(p.name)
                values.append(p.name)
            if p.kind is _KINDS.POSITIONAL_ONLY and (
                after is None or after.kind is not _KINDS.POSITIONAL_ONLY
            ):
                shown.append("/")
        fixed = self.signature.is_fixed
        return shown, values, "$fixed" if fixed else f"$arguments({', '.join(variable)})"

    def _one_by_one(self, given: str) -> list[str]:
        """Return the lines that look at arguments which all have a name of their own."""
        lines = [f"    {self._each('$d')} = $known = $self.described"]
        for i, p in enumerate(self.signature.parameters):
            looked = self._look("    ", p.name, str(i), "$fixed", given)
            if p.default.__class__ in _PLAIN:  # mostly left out
                lines += [
                    f"    if {p.name} is $default{i}:",
                    f"        $in{i}, $e{i}, $v{i} = {p.name}, None, None",
                    f"        $same = $same and $d{i} is $NO_TENSOR",
                    f"    el{looked[0].lstrip()}",
                    *looked[1:],
                ]
            else:
                lines += looked
        return [*lines, f"    $edges = {self._each('$e')}"]

    def _run(self) -> list[str]:
        """Return the lines that run forward unrecorded."""
        inner = [
            f"{p.name}=$in{i}" if p.kind is _KINDS.KEYWORD_ONLY else f"$in{i}"
            for i, p in enumerate(self.signature.parameters)
        ]
        ctx = [] if self.splits else ["$ctx"]
        lines = [
            "$ctx = $Context()",
            "$ctx._op, $ctx._arguments, $ctx._edges = $self, $fixed, $edges",
            "$ctx._node, $ctx._pass = None, $NO_PASS",
            "$ctx._values, $ctx._named, $ctx._marks = (), (), False",
            "$epoch = $EPOCH[0]",
            "try:",
            "    $set_mode($FORWARD)",
            f"    $out = $self.forward({', '.join([*ctx, *inner])})",
        ]
        if self.splits:
            lines.append(f"    $self.setup_context($ctx, {self._each('$in')}, $out)")
        lines += ["finally:", "    $set_mode($RECORD)"]
        return [f"    {line}" for line in lines]

    def _record(self, given: str) -> list[str]:
        """Return the lines that record one new floating result of the default library."""
        inner, versions = self._each("$in"), self._each("$v")
        lines = [
            "$metas = $self.result_described",
            "if (",
            "    $out.__class__ is not $Tensor",
            "    or $EPOCH[0] != $epoch",
            "    or $out._base is not None",
            "    or $out._node is not None",
            *[f"    or $out is $in{i}" for i in range(len(self.names))],
            "    or $ctx._marks",
            "    or (",
            "        (($data := $out._data).__class__ is not $ndarray",
            "        or $data.dtype is not $metas[0][1]",
            "        or $data.shape != $metas[0][0])",
            "        and ($metas := $ordinary($self, $data)) is None",
            "    )",
            "):",
            "    $known = $known if $same else None",
            f"    $found = $Results($self, $ctx, {given}, $edges, $known, {inner}, $mode, $cls)",
            f"    return $found.of($out, {versions})",
            "if $data.base is not None or $references($data) != $SOLE + 1:",
            f"    $count_together({given}, {inner}, ($out,))",
            *self._save(),
            *self._node(given),
            "if $references($out) != $SOLE:  # forward may have kept its own",
            "    return $box($data, $n, $counter_of($out), $cls)",
            "if $cls is not $Tensor:",
            "    $out = $box($data, $n, $out._counter, $cls)",
            "$out._node = $n",
            "$out._counter = $out._counter or $n",
            "return $out",
        ]
        return [f"    {line}" for line in lines]

    def _save(self) -> list[str]:
        """Return the lines that take what forward saved out of its context."""
        rest = f"{self._each('$in')}, ($out,), None"
        general = f"$saved, $names = $learned($self, $ctx, {rest})"
        if self.saved is None:
            return [general]
        names = self.saved
        unnamed = sum(name is None for name in names)
        values = [f"$ctx._values[{i}]" for i in range(unnamed)]
        values += [f"$ctx._named[{name!r}]" for name in names[unnamed:]]
        tests, items = [], []
        for value, i in zip(values, self.inputs, strict=True):
            if i < 0:
                items.append(f"*$items_of({value}, {rest}), ")
            else:
                tests.append(f"    and {value} is $in{i} and $v{i} is not None")
                items.append(f"$in{i}._data, $c{i}, $v{i}, {i}, ")
        return [
            "if (  # the same values as in the first call",
            f"    $len($ctx._values) == {unnamed}",
            f"    and (*$ctx._named,) == {tuple(names[unnamed:])!r}",
            *tests,
            "):",
            f"    $saved, $names = [{''.join(items)}None], $kind",
            "    if $set := $ctx.__dict__:",
            f"        $saved[-1] = $kept($set, {rest})",
            "    $ctx._values = $ctx._named = ()",
            f"else:\n        {general}",
        ]

    def _node(self, given: str) -> list[str]:
        """Return the lines that make the node."""
        return [
            "$n = $CustomNode()",
            f"$n.op, $n.seq, $n.count = $self, $next_seq(), {len(self.names)}",
            "$n.released, $n.version, $n.shapes, $n.extra = False, 0, None, None",
            "$n.record, $n.saved = $edges, $saved",
            "$n.arguments, $n.metas = $fixed, $metas",
            f"$n.given = $known if $same else $describe($self, {given}, $edges)",
            "$n.names = $names",
            "if $references($ctx) != $SOLE:",
            "    $ctx._outlive($n)",
        ]

    def _loop(self, names: str) -> list[str]:
        """Return the lines that look at any number of arguments, or at the leaves of containers."""
        return [
            f"    $names, $given, $known = $leaves($self, {names}, $values)",
            "    $inner, $edges, $versions = [], [], []",
            "    for $a, $d in zip($given, $known):",
            *self._look("        ", "$a", "", "$names", "$given"),
            "        $inner.append($in)",
            "        $edges.append($e)",
            "        $versions.append($v)",
            "    $edges = $tuple($edges)",
        ]

    @staticmethod
    def _look(indent: str, a: str, k: str, names: str, given: str) -> list[str]:
        """Return the lines that look at argument `a`, whose variables end in `k`.

        $d is what a gradient of it had to fit in the last call: it is most often the same, and
        then shared by the nodes.
        """
        lines = (
            f"if {a}.__class__ is $Tensor or {a}.__class__ in $CLASSES:",
            f"    if {a}._base is not None:",
            f"        $sync({a})",
            f"    $e{k} = {a}._node",
            f"    $c{k} = {a}._counter or $counter_of({a})",
            f"    $v{k} = $c{k}.version",
            f"    if {a}.__class__ is not $cls:",
            f"        $cls = $joined({a}, $cls)",
            f"    if $e{k} is None:",
            f"        $in{k} = {a} if {a}.__class__ is $Tensor else $detached({a})",
            f"        if $d{k} is not $UNTRACKED or {a}._data.__class__ is not $ndarray:",
            "            $same = False",
            "    else:  # forward sees an untracked tensor on the same memory",
            f"        $in{k} = $Tensor()",
            f"        $data = $in{k}._data = {a}._data",
            f"        $in{k}._counter = $c{k}",
            f"        $in{k}._node = $in{k}._base = $in{k}._grad = None",
            f"        if ($d{k}[1] is not $data.dtype or $d{k}[0] != $data.shape",
            "                or $data.__class__ is not $ndarray):",
            "            $same = False",
            "else:",
            f"    if {a}.__class__ not in $KNOWN:",
            f"        $examine($self, {names}, {given}, {a}, $mode)",
            f"    $in{k}, $e{k}, $v{k} = {a}, None, None",
            f"    $same = $same and $d{k} is $NO_TENSOR",
        )
        return [indent + line for line in lines]


def _prefix_for(names: Sequence[str]) -> str:
    """Return what the names of written lines begin with, so that none of `names` does."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


# -- what the written function uses ----------------------------------------------------------------
def _leaves(op: Any, arguments: Any, values: Sequence[Any]) -> tuple[Any, Sequence[Any], Any]:
    """Return the names of arguments, what to look at, and what is known of it."""
    given = values
    if op.traverse:
        arguments = arguments.traversed(tree.map_leaves(lambda _: None, list(values)))
        given = list(tree.leaves(list(values)))
    known = op.described
    return arguments, given, known if len(known) == len(given) else (UNKNOWN,) * len(given)


def _detached(a: Tensor) -> Tensor:
    return box(a._data, None, counter_of(a))


def _joined_class(a: Tensor, cls: type[Tensor]) -> type[Tensor]:
    return a.__class__ if issubclass(a.__class__, cls) else cls


def _examine(op: Any, arguments: Any, given: Sequence[Any], value: Any, mode: Mode) -> None:
    """Refuse, or warn of, an argument that is no tensor whose gradient would be lost."""
    if isinstance(value, _CONTAINERS) and (op.traverse or not mode.grad):
        return
    tracked = False
    for leaf in tree.leaves(value):
        if isinstance(leaf, Tensor):
            tracked = tracked or leaf.requires_grad
        elif leaf.__class__ not in _KNOWN and carries_gradient(leaf):
            refuse_gradient(op.name, _name_of(value, arguments, given), leaf)
    if tracked:
        warn_user(
            f"{op.name}: the argument '{_name_of(value, arguments, given)}' is a "
            f"{type(value).__name__} holding a tensor that requires grad; containers are not "
            "searched, so no gradient flows to it. Pass the tensor itself, or define the operation "
            "with traverse=True.",
            UntrackedTensorWarning,
        )


def _name_of(value: Any, arguments: Any, given: Sequence[Any]) -> str:
    name: str = next(arguments.owner(i) for i, v in enumerate(given) if v is value)
    return name


_COMMON: dict[str, Any] = {
    "CLASSES": TENSOR_CLASSES,
    "Context": Context,
    "CustomNode": CustomNode,
    "EPOCH": EPOCH,
    "KNOWN": _KNOWN,
    "INTERCEPTING": INTERCEPTING,
    "NO_PASS": NO_PASS,
    "NO_TENSOR": NO_TENSOR,
    "RECORD": RECORD,
    "SOLE": SOLE,
    "Tensor": Tensor,
    "FORWARD": FORWARD,
    "UNTRACKED": UNTRACKED,
    "box": box,
    "count_together": count_together,
    "counter_of": counter_of,
    "detached": _detached,
    "examine": _examine,
    "items_of": items_of,
    "joined": _joined_class,
    "kept": kept_attributes,
    "leaves": _leaves,
    "learned": _learned,
    "len": len,
    "mode_of": STATE.get,
    "ndarray": NUMPY.array_types[0],
    "next_seq": next_seq,
    "range": range,
    "references": getrefcount,
    "set_mode": STATE.set,
    "sync": sync,
    "tuple": tuple,
}
