"""The function that a user calls: written from forward's signature.

Owns its source. Python itself binds the arguments, as forward would; the written lines look at each
of them (a tracked tensor becomes an untracked one on the same memory, its node an edge) and hand
all on to `call` (call.py). Arguments that have a name of their own are looked at one after the
other, those of ``*args``, ``**kwargs`` and of containers in a loop, by the same lines.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from pullback.arrays import NUMPY
from pullback.core.custom import pytree as tree
from pullback.core.custom.signature import Signature
from pullback.core.function.record import tensor_class
from pullback.core.function.source import MODULE, compiled
from pullback.core.graph.modes import STATE
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor
from pullback.core.tensor.versions import counter_of
from pullback.core.tensor.views import sync
from pullback.errors import UntrackedTensorWarning, warn_user

_KINDS = inspect.Parameter


def written_call(op: Any, call: Callable[..., Any]) -> FunctionType:
    """Return a function with forward's parameters that calls `op`, which it knows weakly."""
    signature: Signature = op.signature
    source = _Source(signature, op.traverse)
    uses = {
        "call": call,
        "op": weakref.ref(op),
        "fixed": signature.fixed,
        "Tensor": Tensor,
        "CLASSES": TENSOR_CLASSES,
        "CONTAINERS": (list, tuple, dict),
        "isinstance": isinstance,
        "ndarray": NUMPY.array_types[0],
        "mode_of": STATE.get,
        "counter_of": counter_of,
        "sync": sync,
        "joined": _joined_class,
        "warn": _warn_of_untracked,
        "tuple": tuple,
        "leaves": _leaves,
        "arguments": signature.arguments,
        "len": len,
        "range": range,
    }
    named = {f"{source.prefix}{name}": value for name, value in uses.items()}
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

    def __init__(self, signature: Signature, traverse: bool) -> None:
        self.signature = signature
        self.names = [p.name for p in signature.parameters]
        self.in_loop = traverse or not signature.is_fixed
        self.prefix = "_"
        while any(name.startswith(self.prefix) for name in self.names):
            self.prefix += "_"

    def text(self) -> str:
        """Return the source of the function."""
        shown, values, names = self._parameters()
        given = f"({', '.join(values)}{',' if values else ''})"
        lines = [f"def call({', '.join(shown)}):", "    P_mode, P_self = P_mode_of(), P_op()"]
        lines += ["    P_cls, P_same = P_Tensor, True", f"    P_values = {given}"]
        if self.in_loop:
            lines += self._loop(names)
        else:
            lines += self._one_by_one(names)
        lines.append(
            "    return P_call(P_self, P_names, P_values, P_given, P_inner, P_edges, P_versions, "
            "P_known if P_same else None, P_cls, P_mode)"
        )
        return "\n".join(lines).replace("P_", self.prefix) + "\n"

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

    def _one_by_one(self, names: str) -> list[str]:
        """Return the lines that look at arguments which all have a name of their own."""
        lines = [f"    P_names, P_given = {names}, P_values"]
        described = "".join(f"P_d{i}, " for i in range(len(self.names)))
        lines.append(f"    {f'{described}= ' if described else ''}P_known = P_self.described")
        for i, name in enumerate(self.names):
            lines += self._look("    ", name, f"P_d{i}", f"P_in{i}", f"P_e{i}", f"P_v{i}")
        for target, prefix in (("inner", "P_in"), ("edges", "P_e"), ("versions", "P_v")):
            items = "".join(f"{prefix}{i}, " for i in range(len(self.names)))
            lines.append(f"    P_{target} = ({items})")
        return lines

    def _loop(self, names: str) -> list[str]:
        """Return the lines that look at any number of arguments, or at the leaves of containers."""
        return [
            f"    P_names, P_given, P_known = P_leaves(P_self, {names}, P_values)",
            "    P_inner, P_edges, P_versions = [], [], []",
            "    for P_a, P_d in zip(P_given, P_known):",
            *self._look("        ", "P_a", "P_d", "P_in", "P_e", "P_v"),
            "        P_inner.append(P_in)",
            "        P_edges.append(P_e)",
            "        P_versions.append(P_v)",
            "    P_edges = P_tuple(P_edges)",
        ]

    @staticmethod
    def _look(indent: str, a: str, known: str, inner: str, edge: str, version: str) -> list[str]:
        """Return the lines that look at one argument.

        `known` is what a gradient of it had to fit in the last call: True for an untracked
        tensor, None for no tensor. It is most often the same, and then shared by the nodes.
        """
        return [
            indent + line
            for line in (
                f"if {a}.__class__ in P_CLASSES:",
                f"    if {a}._base is not None:",
                f"        P_sync({a})",
                f"    {edge} = {a}._node",
                f"    P_counter = {a}._counter or P_counter_of({a})",
                f"    {version} = P_counter.version",
                f"    if {a}.__class__ is not P_cls:",
                f"        P_cls = P_joined({a}, P_cls)",
                f"    if {edge} is None and {a}.__class__ is P_Tensor:",
                f"        {inner} = {a}",
                "    else:  # forward sees an untracked tensor on the same memory",
                f"        {inner} = P_Tensor()",
                f"        {inner}._data, {inner}._counter = {a}._data, P_counter",
                f"        {inner}._node = {inner}._base = {inner}._grad = None",
                f"    if {edge} is None:",
                f"        P_same = P_same and {known} is True",
                "    else:",
                f"        P_data = {a}._data",
                "        if (",
                f"            {known}.__class__ is not P_tuple",
                "            or P_data.__class__ is not P_ndarray",
                f"            or {known}[1] is not P_data.dtype",
                f"            or {known}[0] != P_data.shape",
                "        ):",
                "            P_same = False",
                "else:",
                f"    if P_isinstance({a}, P_CONTAINERS) and P_mode.grad:",
                f"        P_warn(P_self, P_names, P_given, {a})",
                f"    {inner}, {edge}, {version} = {a}, None, None",
                f"    P_same = P_same and {known} is None",
            )
        ]


# -- what the written function uses ----------------------------------------------------------------
def _leaves(op: Any, arguments: Any, values: Sequence[Any]) -> tuple[Any, Sequence[Any], Any]:
    """Return the names of arguments, what to look at, and what is known of it."""
    given = values
    if op.traverse:
        arguments = arguments.traversed(tree.map_leaves(lambda _: None, list(values)))
        given = list(tree.leaves(list(values)))
    known = op.described
    return arguments, given, known if len(known) == len(given) else (False,) * len(given)


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
