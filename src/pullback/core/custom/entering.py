"""The function that a user calls: written from forward's signature.

Owns its source. Python itself binds the arguments, as forward would; the written lines look at each
of them (a tracked tensor becomes an untracked one on the same memory, its node an edge), run
forward and record its one result. Arguments that have a name of their own are looked at one after
the other, those of ``*args``, ``**kwargs`` and of containers in a loop, by the same lines. What the
lines do not handle (other modes and array libraries, variable arguments, several results, marks,
changes in place) they leave to `call` and `results` (call.py).
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from types import FunctionType
from typing import Any

from pullback.arrays import INTERCEPTING, NUMPY
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import (
    NO_PASS,
    Context,
    items_of,
    kept_attributes,
    saved_names,
)
from pullback.core.custom.signature import Signature
from pullback.core.function.record import tensor_class
from pullback.core.function.source import MODULE, compiled
from pullback.core.graph.modes import RECORD, STATE, UNRECORDED
from pullback.core.graph.node import NO_TENSOR, UNKNOWN, UNTRACKED, CustomNode, next_seq
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor, box
from pullback.core.tensor.versions import EPOCH, counter_of
from pullback.core.tensor.views import sync
from pullback.errors import UntrackedTensorWarning, warn_user

_KINDS = inspect.Parameter


def written_call(op: Any, call: Callable[..., Any], uses: dict[str, Any]) -> FunctionType:
    """Return a function with forward's parameters that calls `op`, which it knows weakly.

    `uses` has what else its lines name.
    """
    signature: Signature = op.signature
    source = _Source(op)
    names = {**_COMMON, **uses, "call": call, "op": weakref.ref(op), "forward": op.forward}
    names |= {"setup_context": op.setup_context, "fixed": signature.fixed}
    names |= {"arguments": signature.arguments}
    named = {f"{source.prefix}{name}": value for name, value in names.items()}
    code = compiled(f"call of {op.name}", source.text())
    function = FunctionType(code, {"__name__": MODULE, **named}, op.name)
    function.__qualname__ = op.name
    empty = _KINDS.empty
    keywords = [p for p in signature.parameters if p.kind is _KINDS.KEYWORD_ONLY]
    positional = [p for p in signature.parameters if p.kind in Signature.POSITIONAL]
    function.__defaults__ = tuple([p.default for p in positional if p.default is not empty])
    function.__kwdefaults__ = {p.name: p.default for p in keywords if p.default is not empty}
    return function


class _Source:
    """Writes the source. Names of its own begin with a prefix that no parameter begins with."""

    def __init__(self, op: Any) -> None:
        self.signature: Signature = op.signature
        self.names = [p.name for p in self.signature.parameters]
        self.in_loop = op.in_loop
        self.splits = op.setup_context is not None
        self.prefix = prefix_for(self.names)

    def text(self) -> str:
        """Return the source of the function."""
        shown, values, names = self._parameters()
        given = f"({', '.join(values)}{',' if values else ''})"
        lines = [f"def call({', '.join(shown)}):", "    P_mode, P_self = P_mode_of(), P_op()"]
        lines += ["    P_cls, P_same = P_Tensor, True"]
        if self.in_loop:
            looked = "P_names, P_values, P_given, P_inner, P_edges, P_versions"
            lines += [f"    P_values = {given}", *self._loop(names)]
        else:
            inner, versions = self._each("P_in"), self._each("P_v")
            looked = f"{names}, {given}, {given}, {inner}, P_edges, {versions}"
            lines += self._one_by_one(given)
        left = f"    return P_call(P_self, {looked}, P_known if P_same else None, P_cls, P_mode)"
        if self.in_loop or not self.names:
            lines.append(left)
        else:
            untracked = " and ".join(f"P_e{i} is None" for i in range(len(self.names)))
            lines += [
                "    if (",
                f"        ({untracked})",
                "        or P_mode is not P_RECORD",
                "        or P_cls is not P_Tensor",
                "        or (P_INTERCEPTING and not P_same)",
                "    ):",
                f"    {left}",
                *self._run(),
                *self._record(given),
            ]
        return "\n".join(lines).replace("P_", self.prefix) + "\n"

    def _each(self, prefix: str) -> str:
        """Return a tuple of one variable an argument, as written."""
        return f"({''.join(f'{prefix}{i}, ' for i in range(len(self.names)))})"

    def _parameters(self) -> tuple[list[str], list[str], str]:
        """Return the parameters as written, the values in order, and the names of the arguments."""
        shown: list[str] = []
        values: list[str] = []
        variable: list[str] = []
        parameters = self.signature.parameters
        for p, after in zip(parameters, [*parameters[1:], None], strict=True):
            if p.kind is _KINDS.KEYWORD_ONLY and not any(s.startswith("*") for s in shown):
                shown.append("*")
            if p.kind is _KINDS.VAR_POSITIONAL:
                shown.append(f"*{p.name}")
                values.append(f"*{p.name}")
                each = f"f'{p.name}[{{P_i}}]' for P_i in P_range(P_len({p.name}))"
                variable.append(f"P_tuple([{each}])")
            elif p.kind is _KINDS.VAR_KEYWORD:
                shown.append(f"**{p.name}")
                values.append(f"*{p.name}.values()")
                variable.append(f"P_tuple({p.name})")
            else:
                shown.append(p.name)
                values.append(p.name)
            if p.kind is _KINDS.POSITIONAL_ONLY and (
                after is None or after.kind is not _KINDS.POSITIONAL_ONLY
            ):
                shown.append("/")
        fixed = self.signature.is_fixed
        return shown, values, "P_fixed" if fixed else f"P_arguments({', '.join(variable)})"

    def _one_by_one(self, given: str) -> list[str]:
        """Return the lines that look at arguments which all have a name of their own."""
        lines = [f"    {self._each('P_d')} = P_known = P_self.described"]
        for i, name in enumerate(self.names):
            lines += self._look("    ", name, str(i), "P_fixed", given)
        return [*lines, f"    P_edges = {self._each('P_e')}"]

    def _run(self) -> list[str]:
        """Return the lines that run forward unrecorded."""
        inner = [
            f"{p.name}=P_in{i}" if p.kind is _KINDS.KEYWORD_ONLY else f"P_in{i}"
            for i, p in enumerate(self.signature.parameters)
        ]
        ctx = [] if self.splits else ["P_ctx"]
        lines = [
            "P_ctx = P_Context()",
            "P_ctx._op, P_ctx._arguments, P_ctx._edges = P_self, P_fixed, P_edges",
            "P_ctx._node, P_ctx._pass = None, P_NO_PASS",
            "P_ctx._names = P_ctx._values = ()",
            "P_epoch = P_EPOCH[0]",
            "P_set_mode(P_UNRECORDED)",
            "try:",
            f"    P_out = P_forward({', '.join([*ctx, *inner])})",
        ]
        if self.splits:
            lines.append(f"    P_setup_context(P_ctx, {self._each('P_in')}, P_out)")
        lines += ["finally:", "    P_set_mode(P_RECORD)"]
        return [f"    {line}" for line in lines]

    def _record(self, given: str) -> list[str]:
        """Return the lines that record one new floating result of the default library."""
        inner, versions = self._each("P_in"), self._each("P_v")
        lines = [
            "P_metas = P_self.result_described",
            "if (",
            "    P_out.__class__ is not P_Tensor",
            "    or P_EPOCH[0] != P_epoch",
            "    or P_out._base is not None",
            "    or P_out._node is not None",
            *[f"    or P_out is P_in{i}" for i in range(len(self.names))],
            "    or P_ctx._marks",
            "    or (",
            "        ((P_data := P_out._data).__class__ is not P_ndarray",
            "        or P_data.dtype is not P_metas[0][1]",
            "        or P_data.shape != P_metas[0][0])",
            "        and (P_metas := P_ordinary(P_self, P_data)) is None",
            "    )",
            "):",
            f"    return P_results(P_self, P_ctx, {given}, {inner}, P_edges, {versions}, "
            "P_known if P_same else None, P_cls, P_mode, P_out)",
            *self._save(),
            *self._node(given),
            "if P_references(P_out) != P_SOLE:  # forward may have kept its own",
            "    return P_box(P_data, P_n, P_counter_of(P_out))",
            "P_out._node = P_n",
            "P_out._counter = P_out._counter or P_n",
            "return P_out",
        ]
        return [f"    {line}" for line in lines]

    def _save(self) -> list[str]:
        """Return the lines that take what forward saved out of its context."""
        rest = f"{self._each('P_in')}, (P_out,), None"
        lines = ["P_saved = []", "for P_a in P_ctx._values:"]
        for i in range(len(self.names)):
            lines += [
                f"    {'el' * (i > 0)}if P_a is P_in{i} and P_v{i} is not None:",
                f"        P_saved += (P_in{i}._data, P_c{i}, P_v{i}, {i})",
            ]
        return [
            *lines,
            "    else:",
            f"        P_saved += P_items_of(P_a, {rest})",
            "P_set = P_ctx.__dict__",
            f"P_saved.append(P_kept(P_set, {rest}) if P_set else None)",
            "P_ctx._values = P_a = ()",
        ]

    def _node(self, given: str) -> list[str]:
        """Return the lines that make the node."""
        return [
            "P_n = P_CustomNode()",
            f"P_n.op, P_n.seq, P_n.count = P_self, P_next_seq(), {len(self.names)}",
            "P_n.released, P_n.version, P_n.shapes, P_n.extra = False, 0, None, None",
            "P_n.record, P_n.saved = P_edges, P_saved",
            "P_n.arguments, P_n.metas = P_fixed, P_metas",
            f"P_n.given = P_known if P_same else P_describe(P_self, {given}, P_edges)",
            "P_n.names = P_named[P_tuple(P_ctx._names)]",
            "if P_references(P_ctx) != P_SOLE:",
            "    P_ctx._outlive(P_n)",
        ]

    def _loop(self, names: str) -> list[str]:
        """Return the lines that look at any number of arguments, or at the leaves of containers."""
        return [
            f"    P_names, P_given, P_known = P_leaves(P_self, {names}, P_values)",
            "    P_inner, P_edges, P_versions = [], [], []",
            "    for P_a, P_d in zip(P_given, P_known):",
            *self._look("        ", "P_a", "", "P_names", "P_given"),
            "        P_inner.append(P_in)",
            "        P_edges.append(P_e)",
            "        P_versions.append(P_v)",
            "    P_edges = P_tuple(P_edges)",
        ]

    @staticmethod
    def _look(indent: str, a: str, k: str, names: str, given: str) -> list[str]:
        """Return the lines that look at argument `a`, whose variables end in `k`.

        P_d is what a gradient of it had to fit in the last call: it is most often the same, and
        then shared by the nodes.
        """
        lines = (
            f"if {a}.__class__ is P_Tensor or {a}.__class__ in P_CLASSES:",
            f"    if {a}._base is not None:",
            f"        P_sync({a})",
            f"    P_e{k} = {a}._node",
            f"    P_c{k} = {a}._counter or P_counter_of({a})",
            f"    P_v{k} = P_c{k}.version",
            f"    if {a}.__class__ is not P_cls:",
            f"        P_cls = P_joined({a}, P_cls)",
            f"    if P_e{k} is None:",
            f"        P_in{k} = {a} if {a}.__class__ is P_Tensor else P_detached({a})",
            f"        if P_d{k} is not P_UNTRACKED or {a}._data.__class__ is not P_ndarray:",
            "            P_same = False",
            "    else:  # forward sees an untracked tensor on the same memory",
            f"        P_in{k} = P_Tensor()",
            f"        P_data = P_in{k}._data = {a}._data",
            f"        P_in{k}._counter = P_c{k}",
            f"        P_in{k}._node = P_in{k}._base = P_in{k}._grad = None",
            f"        if (P_d{k}[1] is not P_data.dtype or P_d{k}[0] != P_data.shape",
            "                or P_data.__class__ is not P_ndarray):",
            "            P_same = False",
            "else:",
            f"    if P_isinstance({a}, P_CONTAINERS) and P_mode.grad:",
            f"        P_warn(P_self, {names}, {given}, {a})",
            f"    P_in{k}, P_e{k}, P_v{k} = {a}, None, None",
            f"    P_same = P_same and P_d{k} is P_NO_TENSOR",
        )
        return [indent + line for line in lines]


def prefix_for(names: Sequence[str]) -> str:
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
    return tensor_class((a, cls()))


def _warn_of_untracked(op: Any, arguments: Any, given: Sequence[Any], value: Any) -> None:
    if op.traverse:
        return
    if any(isinstance(v, Tensor) and v.requires_grad for v in tree.leaves(value)):
        name = next(n for n, v in zip(arguments.names, given, strict=True) if v is value)
        warn_user(
            f"{op.name}: the argument '{name}' is a {type(value).__name__} holding a tensor "
            "that requires grad; containers are not searched, so no gradient flows to it. "
            "Pass the tensor itself, or define the operation with traverse=True.",
            UntrackedTensorWarning,
        )


_COMMON: dict[str, Any] = {
    "CLASSES": TENSOR_CLASSES,
    "CONTAINERS": (list, tuple, dict),
    "Context": Context,
    "CustomNode": CustomNode,
    "EPOCH": EPOCH,
    "INTERCEPTING": INTERCEPTING,
    "NO_PASS": NO_PASS,
    "NO_TENSOR": NO_TENSOR,
    "RECORD": RECORD,
    "SOLE": SOLE,
    "Tensor": Tensor,
    "UNRECORDED": UNRECORDED,
    "UNTRACKED": UNTRACKED,
    "box": box,
    "counter_of": counter_of,
    "detached": _detached,
    "isinstance": isinstance,
    "items_of": items_of,
    "joined": _joined_class,
    "kept": kept_attributes,
    "leaves": _leaves,
    "len": len,
    "mode_of": STATE.get,
    "named": saved_names,
    "ndarray": NUMPY.array_types[0],
    "next_seq": next_seq,
    "range": range,
    "references": getrefcount,
    "set_mode": STATE.set,
    "sync": sync,
    "tuple": tuple,
    "warn": _warn_of_untracked,
}
