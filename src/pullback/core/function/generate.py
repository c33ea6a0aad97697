"""The public call of an operation, written from its declaration.

Owns the source of the function that users call: it looks at its arguments, calls the kernel, boxes
the result and records the node, all in straight lines. What those lines do not handle (integers
and complex numbers, mixed classes and dtypes, hooks, observers) leaves for `apply` (record.py); the
nodes are the same. Must not know any particular operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter
from types import FunctionType
from typing import Any

from pullback.arrays import NUMPY, DType
from pullback.core.function.dispatch import (
    UNFIT,
    box_beside,
    kernel_of,
    plain_settings,
    refused,
    unlike_pytorch,
)
from pullback.core.function.inplace import apply_inplace, standard_kernel, write_unrecorded
from pullback.core.function.primitive import Primitive
from pullback.core.function.record import (
    apply,
    apply_operator,
    apply_out,
    attach,
    shows_memory,
)
from pullback.core.function.source import lazy_function
from pullback.core.graph.modes import FORWARD, INFERENCE, NO_GRAD, RECORD, STATE, UNRECORDED
from pullback.core.graph.node import (
    ITEMS,
    MultiNode,
    Output,
    SmallNode,
    WideNode,
    meta_of,
    next_seq,
)
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor, as_array, box
from pullback.core.tensor.versions import ITSELF, counter_of
from pullback.core.tensor.views import NO_GRAD_VIEW, ONE_OF_MANY, TRACKED, link, sync

# What settings are made of; a number of NumPy's own would widen the dtype of the result.
_PLAIN = frozenset(
    (type(None), bool, int, float, complex, str, tuple, list, slice, type(...), DType)
)


class _Interned(dict[Any, Any]):
    """Shapes, each kept once: a new tuple for every node would be one more tracked object."""

    def __missing__(self, shape: Any) -> Any:
        if len(self) > 10_000:
            self.clear()
        self[shape] = shape
        return shape


_COMMON: dict[str, Any] = {
    "CLASSES": TENSOR_CLASSES,
    "FORWARD": FORWARD,
    "INFERENCE": INFERENCE,
    "NO_GRAD": NO_GRAD,
    "MultiNode": MultiNode,
    "NO_GRAD_VIEW": NO_GRAD_VIEW,
    "ONE_OF_MANY": ONE_OF_MANY,
    "Output": Output,
    "ITSELF": ITSELF,
    "SmallNode": SmallNode,
    "WideNode": WideNode,
    "counter_of": counter_of,
    "PLAIN": _PLAIN,
    "RECORD": RECORD,
    "SHAPES": _Interned(),
    "TRACKED": TRACKED,
    "Tensor": Tensor,
    "UNRECORDED": UNRECORDED,
    "UNFIT": UNFIT,
    "apply": apply,
    "apply_operator": apply_operator,
    "apply_out": apply_out,
    "array": NUMPY.array_types[0],
    "asarray": NUMPY.xp.asarray,
    "attach": attach,
    "box": box,
    "box_beside": box_beside,
    "kernel_of": kernel_of,
    "link": link,
    "meta_of": meta_of,
    "mode_of": STATE.get,
    "next_seq": next_seq,
    "number": NUMPY.xp.generic,  # what NumPy gives for 0 dimensions
    "plain_settings": plain_settings,
    "snapshot": NUMPY.snapshot,
    "shows_memory": shows_memory,
    "sync": sync,
    "tidy": as_array,
    "unlike_pytorch": unlike_pytorch,
}


def public_call(op: Primitive, inputs: tuple[str, ...], *, out: bool = False) -> FunctionType:
    """Return the function that users call: ``name(inputs, /, *, settings)``.

    Parameters
    ----------
    op : Primitive
    inputs : tuple of str
        The names of the arrays; of a variadic operation the one name of all of them.
    out : bool
        Whether it takes ``out=`` as well.
    """
    settings = {**op.settings, **({"out": None} if out else {})}

    def write() -> tuple[str, dict[str, Any]]:
        return _Writer(op, inputs, out).write()  # one a call: threads may meet in the first

    refuses = () if op.variadic else refused(op.settings)
    return lazy_function(op.name, inputs, settings, write, variadic=op.variadic, refuses=refuses)


def operator_call(op: Primitive, name: str, reflected: str) -> FunctionType:
    """Return the operator `name` of tensors, which runs `op` on two operands.

    An operand that no operation knows gets the operator instead, if it has the method `reflected`.
    """

    def write() -> tuple[str, dict[str, Any]]:
        return _Writer(op, op.inputs, False, reflected).write()

    call = lazy_function(name, op.inputs, {}, write)
    call.__doc__ = op.public.__doc__
    return call


def inplace_call(op: Primitive) -> FunctionType:
    """Return the function that changes its first argument in place: ``name_(inputs, /)``."""

    def write() -> tuple[str, dict[str, Any]]:
        x, *others = op.inputs
        kernel = standard_kernel(op)
        lines = [f"def {op.name}_({', '.join(op.inputs)}, /):"]
        if len(others) == 1 and kernel is not None:
            lines += [f"    if write_unrecorded(kernel, {x}, {others[0]}):", f"        return {x}"]
        rest = f"({', '.join(others)}{',' if others else ''})"
        lines.append(f"    return apply_inplace(op, {x}, {rest}, {{}})")
        uses = {"op": op, "kernel": kernel, "apply_inplace": apply_inplace}
        return "\n".join(lines) + "\n", {**uses, "write_unrecorded": write_unrecorded}

    return lazy_function(f"{op.name}_", op.inputs, {}, write)


def _shown(default: Any) -> str:
    """Return a default as the source shows it; the function has the object itself."""
    return repr(default) if type(default) in (type(None), bool, int, float, str, tuple) else "..."


def _is_tensor(name: str) -> str:
    """Return the test whether `name` is a tensor, whose class is then ``_cls``."""
    return f"((_cls := {name}.__class__) is Tensor or _cls in CLASSES)"


class _Writer:
    """Writes the source of one operation's public call."""

    def __init__(
        self, op: Primitive, inputs: tuple[str, ...], out: bool, reflected: str | None = None
    ) -> None:
        self.op = op
        self.reflected = reflected
        self.inputs = inputs
        self.out = out
        self.lines: list[str] = []
        given = ", ".join(inputs)
        self.args = inputs[0] if op.variadic else f"({given}{',' if len(inputs) == 1 else ''})"
        self.settings = f"{{{', '.join(f'{n!r}: {n}' for n in op.settings)}}}"

    def write(self) -> tuple[str, dict[str, Any]]:
        """Return the source and the global names that it uses."""
        op = self.op
        self.add(0, f"def {op.name}({self._parameters()}):")
        if self._has_star():
            rest, *keywords = refused(op.settings)
            self.add(1, f"if {' or '.join([rest, *(f'{n} is not None' for n in keywords)])}:")
            given = ", ".join([rest, *(f"{n}={n}" for n in keywords)])
            names = f"{op.name!r}, {self.inputs!r}, {tuple(op.settings)!r}"
            self.add(2, f"raise unlike_pytorch({names}, {given})")
        if self.out:
            self.add(1, "if out is not None:", f"    return apply_out(op, {self.args}, {{}}, out)")
        if op.multi:
            self._several()
            self.add(3, *(self._parts() if op.view else self._results()), "return _ts")
        elif op.variadic:
            self._variadic()
        else:
            self._blocks()
        self.add(1, f"return {self._apply()}")
        return "\n".join(self.lines) + "\n", {**_COMMON, "op": op, "kernels": op.kernels}

    def add(self, depth: int, *lines: str) -> None:
        """Add lines, indented."""
        self.lines += ["    " * depth + line for line in lines]

    def _parameters(self) -> str:
        arrays = f"*{self.inputs[0]}" if self.op.variadic else f"{', '.join(self.inputs)}, /"
        keywords = [
            name if default is Parameter.empty else f"{name}={_shown(default)}"
            for name, default in self.op.settings.items()
        ]
        keywords += ["out=None"] if self.out else []
        star = ["*"] if keywords and not self.op.variadic else []
        if self._has_star():
            rest, *more = refused(self.op.settings)
            star, keywords = [f"*{rest}"], [*keywords, *(f"{name}=None" for name in more)]
        return ", ".join([arrays, *star, *keywords])

    def _has_star(self) -> bool:
        """Return whether settings as PyTorch takes them are an error of ours, which names them."""
        return bool(self.op.settings) and not self.op.variadic and self.reflected is None

    def _apply(self) -> str:
        if self.reflected is not None:
            return f"apply_operator(op, {self.args}, {self.reflected!r})"
        settings = f"plain_settings({self.settings})" if self.op.settings else "{}"
        return f"apply(op, {self.args}, {settings})"

    # -- which arguments -------------------------------------------------------------------------
    def _blocks(self) -> None:
        """Write one block of lines for each kind of arguments."""
        if len(self.inputs) == 1:
            self._straight(("tensor",))
        elif len(self.inputs) == 2 and self.op.broadcasts:
            self._straight(("tensor", "tensor"))
            self._straight(("tensor", "number"))
            self._straight(("number", "tensor"))
            self._with_array()
        else:
            self._any_kinds()

    def _straight(self, kinds: tuple[str, ...]) -> None:
        """Write the block for arguments of these kinds: every branch is decided here."""
        pairs = list(zip(self.inputs, kinds, strict=True))
        tensors = [n for n, kind in pairs if kind == "tensor"]
        lead, *others = tensors
        tests = [_is_tensor(lead)]
        tests += [f"{n}.__class__ is _cls" for n in others]
        tests += [
            f"({n}.__class__ is float or {n}.__class__ is int)" for n, k in pairs if k == "number"
        ]
        self.add(1, f"if {' and '.join(tests)}:")
        for name in tensors:
            self._up_to_date(2, name)
            self.add(2, f"{name}_data = {name}._data")
        self._usable(
            2, lead, [n for n in others if self.inputs.index(n) not in self.op.masks], others
        )
        self._compute(3, [f"{n}_data" if kind == "tensor" else n for n, kind in pairs], lead)
        self._link(3)
        if self.op.differentiable:
            self._record_straight(kinds)
        self.add(3, "return _t")

    def _up_to_date(self, depth: int, name: str) -> None:
        self.add(
            depth,
            f"if (_base := {name}._base) is not None and (",
            f"    _base._node is not {name}._base_node or _base._data is not {name}._base_data",
            "):",
            f"    sync({name})",
        )

    def _usable(self, depth: int, lead: str, of_its_dtype: list[str], others: list[str]) -> None:
        """Write the test for what the block handles: one class of arrays, dtype, plain mode."""
        self.add(
            depth,
            "try:",
            f"    _kernel, _floats = kernels[{lead}_data.__class__]",
            "except KeyError:  # a class of arrays that was not met before",
            f"    _kernel, _floats = kernel_of(op, {lead}_data.__class__)",
            f"_dtype = {lead}_data.dtype",
            "_mode = mode_of()",
        )
        known = () if self.op.variadic else (lead, *others)
        untracked = " and ".join(["_mode is FORWARD", *(f"{n}._node is None" for n in known)])
        tests = [
            "_dtype in _floats",
            "and (",
            "    _mode is RECORD",
            f"    or ({untracked})  # of others, apply warns",
            "    or _mode is UNRECORDED or _mode is NO_GRAD or _mode is INFERENCE",
            ")",
        ]
        tests += [f"and {n}_data.__class__ is {lead}_data.__class__" for n in others]
        tests += [f"and {n}_data.dtype is _dtype" for n in of_its_dtype]
        tests += [f"and {n}.__class__ in PLAIN" for n in self.op.settings]
        self.add(depth, "if (")
        self.add(depth + 1, *tests)
        self.add(depth, "):")

    def _compute(self, depth: int, operands: list[str], lead: str) -> None:
        """Write the call of the kernel and the box around its result."""
        settings = [f"{n}={n}" for n in self.op.settings]
        self.add(
            depth,
            "try:",
            f"    _data = _kernel({', '.join([*operands, *settings])})",
            "except UNFIT:  # says what is wrong, or does what the kernel cannot",
            f"    return {self._apply()}",
            f"if _data.__class__ is not {lead}_data.__class__:",
            "    _data = asarray(_data) if isinstance(_data, number) else tidy(_data)",
            "_t = _cls()",
            "_t._data = _data",
            "_t._base = _t._grad = _t._node = _t._counter = None",
        )

    def _with_array(self) -> None:
        """Write what a bare array beside a tensor becomes: a tensor, of a snapshot if saved."""
        x, y = self.inputs
        settings = "".join(f", {n}={n}" for n in self.op.settings)
        for name, other in ((y, x), (x, y)):
            # The array is the caller's: a later change of it must not be seen by backward.
            kept = f"{other}.requires_grad" if name in self.op.needed_by else "False"
            boxed = f"box_beside(snapshot({name}) if {kept} else {name}, {other})"
            both = f"{x}, {boxed}" if name == y else f"{boxed}, {y}"
            self.add(
                1,
                f"if {other}.__class__ in CLASSES and {name}.__class__ is array:",
                f"    if {name}.dtype is {other}._data.dtype:",
                f"        return op.public({both}{settings})",
            )

    def _any_kinds(self) -> None:
        """Write the block for three and more arguments, or two that are not broadcast."""
        free = [n for i, n in enumerate(self.inputs) if i not in self.op.masks]
        self.add(1, f"_lead = {free[0]}")
        for name in free[1:]:
            self.add(1, "if _lead.__class__ not in CLASSES:", f"    _lead = {name}")
        self.add(1, f"if {_is_tensor('_lead')}:")
        self._up_to_date(2, "_lead")
        self.add(2, "_lead_data = _lead._data")
        self._usable(2, "_lead", [], [])
        for name in self.inputs:
            described = any(n.startswith(f"{name}_") for n in self.op.layout)
            self._one_of_any_kind(name, name in free and not described)
        self._compute(3, [f"{n}_data" for n in self.inputs], "_lead")
        self._link(3)
        if self.op.differentiable:
            edges = [f"{n}_node" for n in self.inputs]
            self.add(3, f"if _mode is RECORD and not ({' is '.join([*edges, 'None'])}):")
            self._node(4, edges, self._saved_if_needed())
            self.add(3, f"elif _mode is FORWARD and not ({' is '.join([*edges, 'None'])}):")
            self.add(4, f"return {self._apply()}")
        self.add(3, "return _t")

    def _one_of_any_kind(self, name: str, number: bool) -> None:
        self.add(3, f"if {name}.__class__ is _cls:")
        self._up_to_date(4, name)
        self.add(
            4,
            f"{name}_data, {name}_node = {name}._data, {name}._node",
            *([f"{name}_counter = {name}._counter or counter_of({name})"] * self._keeps(name)),
        )
        own = self.inputs.index(name) in self.op.masks  # a mask has a dtype of its own
        dtype = "" if own else f" or {name}_data.dtype is not _dtype"
        self.add(
            4,
            f"if {name}_data.__class__ is not _lead_data.__class__{dtype}:",
            f"    return {self._apply()}",
        )
        if number:
            self.add(
                3,
                f"elif {name}.__class__ is float and _lead_data.__class__ is array:",
                f"    {name}_data = asarray({name}, _dtype)",
                f"    {name}_node = {f'{name}_counter = ' * self._keeps(name)}None",
            )
        # The array is the caller's: a later change of it must not be seen by backward.
        kept = f"snapshot({name})" if self._keeps(name) else name
        boxed, fits = f"box_beside({kept}, _lead)", "" if own else f" and {name}.dtype is _dtype"
        given = [boxed if n == name else n for n in self.inputs]
        given += [f"{n}={n}" for n in self.op.settings]
        self.add(
            3,
            f"elif {name}.__class__ is array{fits}:",
            f"    return op.public({', '.join(given)})",
        )
        self.add(3, "else:", f"    return {self._apply()}")

    def _keeps(self, name: str) -> bool:
        """Return whether some rule asks for an input."""
        return name in self.op.needed_by

    def _variadic(self) -> None:
        """Write the block for any number of arrays."""
        name = self.inputs[0]
        self.add(
            1,
            f"_cls = {name}[0].__class__ if {name} else None",
            "if _cls in CLASSES:",
            f"    _lead_data = {name}[0]._data",
        )
        self._usable(2, "_lead", [], [])
        self.add(
            3,
            "_operands, _edges = [], []",
            f"for _x in {name}:",
            "    if _x.__class__ is not _cls:",
        )
        self.add(5, f"return {self._apply()}")
        self._up_to_date(4, "_x")
        self.add(
            4,
            "_data = _x._data",
            "if _data.__class__ is not _lead_data.__class__ or _data.dtype is not _dtype:",
            f"    return {self._apply()}",
            "_operands.append(_data)",
            "_edges.append(_x._node)",
        )
        self._compute(3, ["*_operands"], "_lead")
        if self.op.differentiable:
            self.add(3, "if _mode is RECORD and _edges.count(None) != len(_edges):")
            self._node(4, ["*_edges"], [self._context(n) for n in self.op.layout])
            self.add(3, "elif _mode is FORWARD and _edges.count(None) != len(_edges):")
            self.add(4, f"return {self._apply()}")
        self.add(3, "return _t")

    def _several(self) -> None:
        """Write the block for several results, of one tensor."""
        (x,) = self.inputs
        settings = "".join(f", {n}={n}" for n in self.op.settings)
        self.add(1, f"if {_is_tensor(x)}:")
        self._up_to_date(2, x)
        self.add(2, f"{x}_data = {x}._data")
        self._usable(2, x, [], [])
        self.add(
            3,
            "try:",
            f"    _results = _kernel({x}_data{settings})",
            "except UNFIT:  # says what is wrong, or does what the kernel cannot",
            f"    return {self._apply()}",
        )

    def _results(self) -> list[str]:
        """Return the lines that box and record results with memory of their own."""
        lines = ["_ts = [box(tidy(_data), cls=_cls) for _data in _results]"]
        if not self.op.differentiable:
            return lines
        (x,) = self.inputs
        return [
            *lines,
            f"if _mode is RECORD and {x}._node is not None:",
            f"    attach(op, ({x}._node,), ({x},), _ts, {self.settings}, _mode)",
        ]

    def _parts(self) -> list[str]:
        """Return the lines that box, link and record results which are views of the argument."""
        (x,) = self.inputs
        saved = [self._context(n) for n in self.op.layout]
        return [
            f"_tracked = _mode is RECORD and {x}._node is not None",
            "if _tracked:",
            "    _n = MultiNode()",
            "    _n.op, _n.seq, _n.count = op, next_seq(), 1",
            "    _n.released, _n.version, _n.shapes, _n.extra = False, 0, None, None",
            f"    _n.record = ({', '.join([f'{x}._node', *saved])},)",
            "    _n.metas = []",
            f"_kind = ONE_OF_MANY if _mode is RECORD or {x}._node is None else NO_GRAD_VIEW",
            "_ts = []",
            "for _i, _data in enumerate(_results):",
            "    _t = _cls()",
            "    _t._data = _data",
            "    _t._base = _t._grad = _t._node = _t._counter = None",
            "    if _data.__class__ is not array:",
            "        _data = _t._data = tidy(_data)",
            f"    _shown = {self._shows(x)}",
            f"    if _shown and {x}._base is None:",
            *[f"        {line}" for line in self._view(x, "_kind", "_i")],
            "    elif _shown:",
            f"        link(_t, {x}, op, _i, {self._values()}, _kind)",
            "    if _tracked:",
            "        _t._node = _o = Output()",
            "        _o.op, _o.seq, _o.count, _o.node, _o.index = op, next_seq(), 1, _n, _i",
            "        _o.released, _o.version, _o.shapes, _o.extra = False, 0, None, None",
            "        _n.metas.append(SHAPES[meta_of(_data)])",
            "    _ts.append(_t)",
        ]

    # -- recording -------------------------------------------------------------------------------
    def _link(self, depth: int) -> None:
        """Write how the result of a view operation is linked to its base."""
        view, x = self.op.view, self.inputs[0]
        if not view:
            return
        asked = f"op.view({self.settings}) and " if callable(view) else ""
        self.add(
            depth,
            f"if {asked}{self._shows(x)}:",
            f"    if {x}._base is None and (_mode is RECORD or {x}._node is None):",
        )
        self.add(depth + 2, *self._view(x, "TRACKED", "None"))
        self.add(
            depth,
            "    else:",
            f"        _kind = TRACKED if _mode is RECORD or {x}._node is None else NO_GRAD_VIEW",
            f"        link(_t, {x}, op, None, {self._values()}, _kind)",
        )

    @staticmethod
    def _shows(x: str) -> str:
        """Return the test whether the result shows the memory of `x`."""
        source = "_data.__class__ is array and (_source := _data.base) is not None"
        same = f"_source is {x}_data or _source is {x}_data.base"
        return f"({source} and ({same}) or shows_memory(_data, {x}_data))"

    def _view(self, x: str, kind: str, output: str) -> list[str]:
        """Return the lines that make the result a view of `x`, which is none."""
        return [
            f"_t._base, _t._kind, _t._outer, _t._output = {x}, {kind}, None, {output}",
            f"_t._step, _t._settings = op, {self._values()}",
            f"_t._base_node, _t._base_data = {x}._node, {x}_data",
        ]

    def _values(self) -> str:
        """Return the settings as a view keeps them, see core/tensor/views.py."""
        names = [*self.op.settings]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def _record_straight(self, kinds: tuple[str, ...]) -> None:
        """Write the recording: for each set of tracked inputs, what their rules ask for."""
        tensors = [i for i, kind in enumerate(kinds) if kind == "tensor"]
        nodes = ", ".join(f"{self.inputs[i]}_node" for i in tensors)
        self.add(3, "if _mode is RECORD:")
        values = ", ".join(f"{self.inputs[i]}._node" for i in tensors)
        self.add(4, f"{nodes} = {values}")
        sets = [(i,) for i in tensors] if len(tensors) == 1 else [(0, 1), (0,), (1,)]
        for number, tracked in enumerate(sets):
            test = " and ".join(f"{self.inputs[i]}_node is not None" for i in tracked)
            self.add(4, f"{'if' if number == 0 else 'elif'} {test}:")
            edges = [f"{n}_node" if i in tracked else "None" for i, n in enumerate(self.inputs)]
            self._node(5, edges, self._saved(kinds, set(tracked)), kinds)

    def _node(
        self, depth: int, edges: list[str], saved: list[str], kinds: Sequence[str] = ()
    ) -> None:
        """Write the making of the node; of a result of another dtype the general way."""
        items = [*edges, *saved]
        count = "len(_edges)" if self.op.variadic else str(len(edges))
        targets = f"({', '.join(edges)},)"
        self.add(
            depth,
            "if _data.dtype is not _dtype:",
            f"    attach(op, {targets}, {self.args}, (_t,), {self.settings}, _mode)",
            "    return _t",
            f"_t._node = _n = {'SmallNode' if self.op.is_small else 'WideNode'}()",
            f"_n.op, _n.seq, _n.count = op, next_seq(), {count}",
            "_n.released, _n.version, _n.extra = False, 0, None",
            f"_n.shapes = {self._shapes(kinds)}",
        )
        if self.op.is_small:
            self.add(depth, *(f"_n.{i} = {e}" for i, e in zip(ITEMS, items, strict=False)))
        else:
            self.add(depth, f"_n.record = ({', '.join(items)},)")
        if not self.op.view:  # the node counts the changes of its result
            self.add(depth, "_t._counter = _n")

    def _shapes(self, kinds: Sequence[str]) -> str:
        """Return the expression of the shapes that backward must sum down to, if any."""
        if not self.op.broadcasts or "number" in kinds:  # the result has the tensor's shape then
            return "None"
        shapes = [f"{n}_data.shape" for n in self.inputs]
        return f"None if {' == '.join(shapes)} else SHAPES[({', '.join(shapes)})]"

    def _saved(self, kinds: tuple[str, ...], tracked: set[int]) -> list[str]:
        """Return the expressions of what is saved when exactly these inputs are tracked."""
        slots, versions = [], []
        for name in self.op.layout:
            if name not in self.op.tensor_slots:
                slots.append(self._context(name))
                continue
            needed = bool(self.op.needed_by[name] & tracked)
            is_number = name in self.inputs and kinds[self.inputs.index(name)] == "number"
            data = f"{name}_data" if name in self.inputs else "_data"
            slots.append((name if is_number else data) if needed else "None")
            kept = needed and not is_number
            versions += self._version(name) if kept else ["None", "None"]
        return slots + versions

    def _version(self, name: str) -> list[str]:
        """Return the expressions of the counter and the version of an input or the result."""
        if name in self.inputs:
            return [
                f"({name}_counter := {name}._counter or counter_of({name}))",
                f"{name}_counter.version",
            ]
        if self.op.view:
            return ["(_counter := counter_of(_t))", "_counter.version"]
        return ["ITSELF", "0"]

    def _saved_if_needed(self) -> list[str]:
        """Return the expressions of what is saved, each with the test of who needs it."""
        slots, versions = [], []
        for name in self.op.layout:
            if name not in self.op.tensor_slots:
                slots.append(self._context(name))
                continue
            needing = sorted(self.op.needed_by[name])
            test = " or ".join(f"{self.inputs[i]}_node is not None" for i in needing)
            if name not in self.inputs:
                slots.append(f"_data if {test} else None")
                versions += [f"{what} if {test} else None" for what in self._version(name)]
                continue
            slots.append(f"{name}_data if {test} else None")
            kept = f"({test}) and {name}_counter is not None"
            versions.append(f"{name}_counter if {kept} else None")
            versions.append(f"{name}_counter.version if {kept} else None")
        return slots + versions

    def _context(self, name: str) -> str:
        """Return the expression of a setting, or of a shape, dtype or device, that is saved."""
        if name in self.op.settings:
            return name
        if name == "shapes":
            return "SHAPES[tuple([d.shape for d in _operands])]"
        of, _, what = name.rpartition("_")
        return f"SHAPES[{of}_data.shape]" if what == "shape" else f"{of}.{what}"


def exported(
    op: Primitive, names: tuple[str, ...], doc: str, call: FunctionType
) -> Callable[..., Any]:
    """Give a generated call its public name, documentation and module, and return it."""
    call.__name__ = call.__qualname__ = names[0]
    call.__doc__ = doc or None
    call.__module__ = "pullback"
    call.primitive = op  # type: ignore[attr-defined]
    op.public = call
    return call
