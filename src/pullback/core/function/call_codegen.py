"""The public call of an operation, written from its declaration.

Owns the source of the function that users call: it looks at its arguments, calls the kernel, boxes
the result and records the node, all in straight lines; ``pullback source mul`` shows one. What
those lines do not handle (integers and complex numbers, mixed classes and dtypes, hooks, observers)
leaves for `apply` (record.py); the nodes are the same. Must not know any particular operation.

A call of two tensors that are broadcast, of which the first alone is tracked, so becomes:

    if ((cls := x.__class__) is Tensor or cls in CLASSES) and y.__class__ is cls:
        ...  # views are brought up to date, the kernel for these arrays is looked up
            data = kernel(x_data, y_data)
            t = cls()
            ...
            elif x_node is not None:
                t._node = n = SmallNode()
                n.op, n.seq, n.count = op, next_seq(), 2
                ...  # the edges, what the rules ask for, its versions
            return t
    return apply(op, (x, y), {})
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any

from pullback.arrays import NUMPY, DType, ndarray
from pullback.core.function import dispatch, inplace, record
from pullback.core.function.codegen import (
    Written,
    expand,
    indented,
    lazy_function,
    register,
    tupled,
    written_parameters,
)
from pullback.core.function.dispatch import own_word
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import STATE
from pullback.core.graph.node import FILL, ITEMS
from pullback.core.tensor.tensor import TENSOR_CLASSES, as_array


class _Interned(dict[Any, Any]):
    """Shapes, each kept once: a new tuple for every node would be one more tracked object."""

    def __missing__(self, shape: Any) -> Any:
        if len(self) > 10_000:
            self.clear()
        self[shape] = shape
        return shape


# What settings are made of; a number of NumPy's own would widen the dtype of the result.
_PLAIN = (type(None), bool, int, float, complex, str, tuple, list, slice, type(...), DType)

register(
    dispatch,
    inplace,
    record,
    CLASSES=TENSOR_CLASSES,
    PLAIN=frozenset(_PLAIN),
    SHAPES=_Interned(),
    asarray=NUMPY.xp.asarray,
    mode_of=STATE.get,
    ndarray=ndarray,
    number=NUMPY.xp.generic,  # what NumPy gives for 0 dimensions
    snapshot=NUMPY.snapshot,
    tidy=as_array,
)

# -- templates -------------------------------------------------------------------------------------
IS_TENSOR = "(($cls := {x}.__class__) is $Tensor or $cls in $CLASSES)"

UP_TO_DATE = """
if ($base := {x}._base) is not None and (
    $base._node is not {x}._base_node or $base._data is not {x}._base_data
):
    $refresh({x})
"""

# One class of arrays, one floating dtype, a plain mode: what a block handles.
_USABLE = """
try:
    $kernel, $floats = $kernels[{lead}.__class__]
except KeyError:  # a class of arrays that was not met before
    $kernel, $floats = $kernel_of($op, {lead}.__class__)
$dtype = {lead}.dtype
$mode = $mode_of()
if (
    $dtype in $floats
    and (
        $mode is $RECORD
        or ($mode is $FORWARD{untracked})  # of others, apply warns
        or $mode is $UNRECORDED or $mode is $NO_GRAD or $mode is $INFERENCE
    )
    {tests}
):
    {body}
"""

_COMPUTE = """
try:
    {target} = $kernel({operands})
except $UNFIT:  # says what is wrong, or does what the kernel cannot
    return {apply}
"""

_BOX = """
if $data.__class__ is not {lead}.__class__:
    $data = $asarray($data) if $isinstance($data, $number) else $tidy($data)
$t = $cls()
$t._data = $data
$t._base = $t._grad = $t._node = $t._counter = None
"""

_ARRAY_BESIDE = """
if {tensor}.__class__ in $CLASSES and {array}.__class__ is $ndarray:
    if {array}.dtype is {tensor}._data.dtype:
        return $op.public({arguments})
"""

# An argument of any kind, which becomes ${x}_data and ${x}_node.
_ANY_KIND = """
if {x}.__class__ is $cls:
    {up_to_date}
    ${x}_data, ${x}_node = {x}._data, {x}._node
    {counter}
    if ${x}_data.__class__ is not $lead_data.__class__{dtype}:
        return {apply}
{number}
elif {x}.__class__ is $ndarray{fits}:
    return $op.public({boxed})
else:
    return {apply}
"""

_NUMBER = """
elif {x}.__class__ is float and $lead_data.__class__ is $ndarray:
    ${x}_data = $asarray({x}, $dtype)
    ${x}_node = {counter}None
"""

_OPERANDS = """
$operands, $edges = [], []
for $x in {xs}:
    if $x.__class__ is not $cls:
        return {apply}
    {up_to_date}
    $data = $x._data
    if $data.__class__ is not $lead_data.__class__ or $data.dtype is not $dtype:
        return {apply}
    $operands.append($data)
    $edges.append($x._node)
"""

_PARTS = """
$tracked = $mode is $RECORD and {x}._node is not None
if $tracked:
    $n = $MultiNode()
    {node}
    $n.record = ({x}._node, {saved})
    $n.metas = []
$kind = $ONE_OF_MANY if $mode is $RECORD or {x}._node is None else $NO_GRAD_VIEW
$ts = []
for $i, $data in enumerate($results):
    $t = $cls()
    $t._data = $data
    $t._base = $t._grad = $t._node = $t._counter = None
    if $data.__class__ is not $ndarray:
        $data = $t._data = $tidy($data)
    $shown = {shows}
    if $shown and {x}._base is None:
        {view}
    elif $shown:
        $link($t, {x}, $op, $i, {values}, $kind)
    if $tracked:
        $t._node = $o = $Output()
        {output}
        $o.node, $o.index = $n, $i
        $n.metas.append($SHAPES[$meta_of($data)])
    $ts.append($t)
return $ts
"""

# The result is a view of {x}, which is none itself.
_VIEW = """
$t._base, $t._kind, $t._outer, $t._output = {x}, {kind}, None, {output}
$t._step, $t._settings = $op, {values}
$t._base_node, $t._base_data = {x}._node, ${x}_data
"""

_LINK = """
if {asked}{shows}:
    if {x}._base is None and ($mode is $RECORD or {x}._node is None):
        {view}
    else:
        $kind = $TRACKED if $mode is $RECORD or {x}._node is None else $NO_GRAD_VIEW
        $link($t, {x}, $op, None, {values}, $kind)
"""

# The node of a result; of one with another dtype the general way.
_NODE = """
if $data.dtype is not $dtype:
    $attach($op, {edges}, {args}, ($t,), {settings}, $mode)
    return $t
$t._node = $n = ${kind}()
{filled}
{record}
{counter}
"""


def public_call(op: Primitive, inputs: tuple[str, ...], *, out: bool = False) -> FunctionType:
    """Return the function that users call: ``name(inputs, /, *, settings)``, and ``out=``."""
    settings = {**op.settings, **({"out": None} if out else {})}
    refuses = () if op.variadic else _not_ours(op)
    return lazy_function(
        op.name,
        inputs,
        settings,
        lambda: _Writer(op, inputs, out).write(),  # one a call: threads may meet in the first
        variadic=op.variadic,
        refuses=refuses,
    )


def operator_call(op: Primitive, name: str, reflected: str) -> FunctionType:
    """Return the operator `name` of tensors, which runs `op` on two operands.

    An operand that no operation knows gets the operator instead, if it has the method `reflected`.
    """
    call = lazy_function(
        name, op.inputs, {}, lambda: _Writer(op, op.inputs, False, reflected).write()
    )
    call.__doc__ = op.public.__doc__
    return call


def inplace_call(op: Primitive) -> FunctionType:
    """Return the function that changes its first argument in place: ``name_(inputs, /)``."""

    def write() -> Written:
        x, *others = op.inputs
        kernel = None if op.xp_name is None else getattr(NUMPY.xp, op.xp_name)
        lines = [f"def {op.name}_({', '.join(op.inputs)}, /):"]
        if len(others) == 1 and kernel is not None:
            lines += [
                f"    if $write_unrecorded($kernel, {x}, {others[0]}):",
                f"        return {x}",
            ]
        lines.append(f"    return $apply_inplace($op, {x}, {tupled(others)}, {{}})")
        return Written(f"{op.name}_", lines, op.inputs, op=op, kernel=kernel)

    return lazy_function(f"{op.name}_", op.inputs, {}, write)


def _words(op: Primitive) -> dict[str, str]:
    """Return PyTorch's keywords for settings that may be left out, by ours."""
    pairs = {own_word(word, op.settings): word for word in ("dim", "keepdim", "unbiased")}
    own = [n for n, d in op.settings.items() if d is None or d is False or n == "correction"]
    return {n: pairs[n] for n in own if n in pairs and pairs[n] not in op.settings}


def _not_ours(op: Primitive) -> tuple[str, ...]:
    """Return the names of settings by position, which are an error, and of PyTorch's keywords."""
    return ("_more", *_words(op).values()) if op.settings else ()


class _Writer:
    """Writes the source of one operation's public call."""

    def __init__(
        self, op: Primitive, inputs: tuple[str, ...], out: bool, reflected: str | None = None
    ) -> None:
        self.op = op
        self.reflected = reflected
        self.inputs = inputs
        self.out = out
        has_star = not op.variadic and reflected is None
        self.refused = _not_ours(op) if has_star else ()
        self.args = inputs[0] if op.variadic else tupled(inputs)
        self.settings = f"{{{', '.join(f'{n!r}: {n}' for n in op.settings)}}}"
        self.keywords = "".join(f", {n}={n}" for n in op.settings)
        settings = f"$plain_settings({self.settings})" if op.settings else "{}"
        self.apply = f"$apply($op, {self.args}, {settings})"
        if reflected is not None:
            self.apply = f"$apply_operator($op, {self.args}, {reflected!r})"

    def write(self) -> Written:
        """Return the source with the names that it uses."""
        op = self.op
        blocks = self._several if op.multi else self._variadic if op.variadic else self._blocks
        body = [*self._refusing(), *blocks(), f"return {self.apply}"]
        lines = [f"def {op.name}{self._parameters()}:", *indented(body)]
        names = [*self.inputs, *op.settings, *self.refused]
        return Written(op.name, lines, names, op=op, kernels=op.kernels)

    def _parameters(self) -> str:
        kind = Parameter.VAR_POSITIONAL if self.op.variadic else Parameter.POSITIONAL_ONLY
        parameters = [Parameter(name, kind) for name in self.inputs]
        keywords = {**self.op.settings, **({"out": None} if self.out else {})}
        if self.refused:
            rest, *words = self.refused
            parameters.append(Parameter(rest, Parameter.VAR_POSITIONAL))
            keywords |= dict.fromkeys(words)
        last = Parameter.KEYWORD_ONLY
        parameters += [Parameter(name, last, default=value) for name, value in keywords.items()]
        return written_parameters(Signature(parameters))

    def _refusing(self) -> list[str]:
        """Return the lines that take PyTorch's keywords, refuse positions, and fill `out`."""
        lines = []
        if self.refused:
            rest, words = self.refused[0], _words(self.op)
            names = f"{self.op.name!r}, {self.inputs!r}, {tuple(self.op.settings)!r}"
            passed = ", ".join([rest, *(f"{n}={n}" for n in words.values())])
            lines += [f"if {rest}:", f"    raise $unlike_pytorch({names}, {passed})"]
            if words:
                settings = [f"{n}={self._merged(n, words.get(n))}" for n in self.op.settings]
                lines.append(f"if {' or '.join(f'{n} is not None' for n in words.values())}:")
                lines.append(f"    return $op.public({', '.join([*self.inputs, *settings])})")
        if self.out:
            lines += ["if out is not None:", f"    return $apply_out($op, {self.args}, {{}}, out)"]
        return lines

    def _merged(self, own: str, word: str | None) -> str:
        """Return the expression of a setting that may have come by another word."""
        if word is None:
            return own
        if self.op.settings[own] is None:
            return f"$merge_axis_args({self.op.name!r}, {word}, {own})"
        if word == "unbiased":
            return f"{own} if unbiased is None else int(unbiased)"
        return f"bool({own} or {word})"

    # -- which arguments -------------------------------------------------------------------------
    def _blocks(self) -> list[str]:
        """Return one block of lines for each kind of arguments."""
        if len(self.inputs) == 1:
            return self._straight("tensor")
        if len(self.inputs) == 2 and self.op.broadcasts:
            both = [("tensor", "tensor"), ("tensor", "number"), ("number", "tensor")]
            return [*(line for kinds in both for line in self._straight(*kinds)), *self._array()]
        return self._any_kinds()

    def _straight(self, *kinds: str) -> list[str]:
        """Return the block for arguments of these kinds: every branch is decided here."""
        pairs = list(zip(self.inputs, kinds, strict=True))
        tensors = [n for n, kind in pairs if kind == "tensor"]
        lead, *others = tensors
        tests = [IS_TENSOR.format(x=lead), *(f"{n}.__class__ is $cls" for n in others)]
        tests += [
            f"({n}.__class__ is float or {n}.__class__ is int)" for n, k in pairs if k == "number"
        ]
        up_to_date = [
            line for n in tensors for line in (*expand(UP_TO_DATE, x=n), f"${n}_data = {n}._data")
        ]
        operands = [f"${n}_data" if kind == "tensor" else n for n, kind in pairs]
        body = [*self._computed(f"${lead}_data", operands), *self._linked()]
        body += self._recorded_straight(kinds) if self.op.differentiable else []
        fit = [f"and ${n}_data.__class__ is ${lead}_data.__class__" for n in others]
        masks = [self.inputs[i] for i in self.op.nondifferentiable_inputs]
        fit += [f"and ${n}_data.dtype is $dtype" for n in others if n not in masks]
        usable = self._usable(f"${lead}_data", tensors, fit, [*body, "return $t"])
        return [f"if {' and '.join(tests)}:", *indented([*up_to_date, *usable])]

    def _usable(
        self, lead: str, tensors: Sequence[str], tests: Sequence[str], body: list[str]
    ) -> list[str]:
        """Return the lines that do `body` where arguments and mode are what a block handles."""
        untracked = "".join(f" and {n}._node is None" for n in tensors)
        tests = [*tests, *(f"and {n}.__class__ in $PLAIN" for n in self.op.settings)]
        return expand(_USABLE, lead=lead, untracked=untracked, tests=tests, body=body)

    def _computed(self, lead: str, operands: Sequence[str]) -> list[str]:
        """Return the lines that call the kernel and box its result."""
        called = f"{', '.join(operands)}{self.keywords}"
        lines = expand(_COMPUTE, target="$data", operands=called, apply=self.apply)
        return lines + expand(_BOX, lead=lead)

    def _array(self) -> list[str]:
        """Return what a bare array beside a tensor becomes: a tensor, of a snapshot if saved."""
        lines = []
        for name, other in (self.inputs[::-1], self.inputs):
            # The array is the caller's: a later change of it must not be seen by backward.
            copied = f"$snapshot({name}) if {other}.requires_grad else {name}"
            boxed = f"$box_beside({copied if name in self.op.needed_by else name}, {other})"
            passed = ", ".join(boxed if n == name else n for n in self.inputs)
            arguments = f"{passed}{self.keywords}"
            lines += expand(_ARRAY_BESIDE, tensor=other, array=name, arguments=arguments)
        return lines

    def _any_kinds(self) -> list[str]:
        """Return the block for three and more arguments, or two that are not broadcast."""
        first, *free = [
            n for i, n in enumerate(self.inputs) if i not in self.op.nondifferentiable_inputs
        ]
        lines = [f"$lead = {first}"]
        for name in free:
            lines += ["if $lead.__class__ not in $CLASSES:", f"    $lead = {name}"]
        body = [line for name in self.inputs for line in self._one_of_any_kind(name)]
        body += self._computed("$lead_data", [f"${n}_data" for n in self.inputs])
        body += self._linked()
        if self.op.differentiable:
            edges = [f"${n}_node" for n in self.inputs]
            any_is = f"not ({' is '.join([*edges, 'None'])})"
            body += self._recorded(any_is, edges, self._saved_if_needed())
        usable = self._usable("$lead_data", ["$lead"], [], [*body, "return $t"])
        inside = [*expand(UP_TO_DATE, x="$lead"), "$lead_data = $lead._data", *usable]
        return [*lines, f"if {IS_TENSOR.format(x='$lead')}:", *indented(inside)]

    def _recorded(self, tracked: str, edges: list[str], saved: list[str]) -> list[str]:
        """Return the lines that record a call some of whose arguments are tracked."""
        levels = "$levels_of($edges)" if self.op.variadic else levels_of_edges(edges)
        node = indented(self._node(edges, saved, levels, self._shapes()))
        recording, forward = (f"if $mode is ${m} and {tracked}:" for m in ("RECORD", "FORWARD"))
        return [recording, *node, f"el{forward}", f"    return {self.apply}"]

    def _one_of_any_kind(self, x: str) -> list[str]:
        own = (
            self.inputs.index(x) in self.op.nondifferentiable_inputs
        )  # a mask has a dtype of its own
        keeps = x in self.op.needed_by
        counter = [f"${x}_counter = {x}._counter or $counter_of({x})"] if keeps else []
        number: list[str] = []
        if not own and not any(n.startswith(f"{x}_") for n in self.op.layout):
            number = expand(_NUMBER, x=x, counter=f"${x}_counter = " if keeps else "")
        # The array is the caller's: a later change of it must not be seen by backward.
        boxed = f"$box_beside({f'$snapshot({x})' if keeps else x}, $lead)"
        return expand(
            _ANY_KIND,
            x=x,
            up_to_date=expand(UP_TO_DATE, x=x),
            counter=counter,
            dtype="" if own else f" or ${x}_data.dtype is not $dtype",
            number=number,
            fits="" if own else f" and {x}.dtype is $dtype",
            boxed=f"{', '.join(boxed if n == x else n for n in self.inputs)}{self.keywords}",
            apply=self.apply,
        )

    def _variadic(self) -> list[str]:
        """Return the block for any number of arrays."""
        xs, update = self.inputs[0], expand(UP_TO_DATE, x="$x")
        body = expand(_OPERANDS, xs=xs, up_to_date=update, apply=self.apply)
        body += self._computed("$lead_data", ["*$operands"])
        if self.op.differentiable:
            saved = [self._context(n) for n in self.op.layout]
            tracked = "$edges.count(None) != $len($edges)"
            body += self._recorded(tracked, ["*$edges"], saved)
        usable = self._usable("$lead_data", [], [], [*body, "return $t"])
        return [
            f"$cls = {xs}[0].__class__ if {xs} else None",
            "if $cls in $CLASSES:",
            *indented([f"$lead_data = {xs}[0]._data", *usable]),
        ]

    def _several(self) -> list[str]:
        """Return the block for several views of one tensor; of other results `apply` makes some."""
        if not self.op.view:
            return []
        (x,) = self.inputs
        operands = f"${x}_data{self.keywords}"
        body = expand(_COMPUTE, target="$results", operands=operands, apply=self.apply)
        body += self._parts(x)
        usable = self._usable(f"${x}_data", [x], [], body)
        inside = [*expand(UP_TO_DATE, x=x), f"${x}_data = {x}._data", *usable]
        return [f"if {IS_TENSOR.format(x=x)}:", *indented(inside)]

    def _parts(self, x: str) -> list[str]:
        """Return the lines that box, link and record results which are views of the argument."""
        return expand(
            _PARTS,
            x=x,
            node=filled("$n", "$op", "1", f"{x}._node.levels"),
            saved=", ".join(self._context(n) for n in self.op.layout),
            shows=self._shows(x),
            view=self._view(x, "$kind", "$i"),
            values=self._values(),
            output=filled("$o", "$op", "1", "$n.levels"),
        )

    # -- recording -------------------------------------------------------------------------------
    def _linked(self) -> list[str]:
        """Return the lines that link the result of a view operation to its base."""
        view, x = self.op.view, self.inputs[0]
        if not view:
            return []
        asked = f"$op.view({self.settings}) and " if callable(view) else ""
        shown, lines = self._shows(x), self._view(x, "$TRACKED", "None")
        return expand(_LINK, asked=asked, shows=shown, x=x, view=lines, values=self._values())

    @staticmethod
    def _shows(x: str) -> str:
        """Return the test whether the result shows the memory of `x`."""
        source = "$data.__class__ is $ndarray and ($source := $data.base) is not None"
        same = f"$source is ${x}_data or $source is ${x}_data.base"
        return f"({source} and ({same}) or $shows_memory($data, ${x}_data))"

    def _view(self, x: str, kind: str, output: str) -> list[str]:
        return expand(_VIEW, x=x, kind=kind, output=output, values=self._values())

    def _values(self) -> str:
        """Return the settings as a view keeps them, see core/tensor/views.py."""
        names = [*self.op.settings]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def _recorded_straight(self, kinds: Sequence[str]) -> list[str]:
        """Return the recording: for each set of tracked inputs, what their rules ask for."""
        tensors = [i for i, kind in enumerate(kinds) if kind == "tensor"]
        nodes = ", ".join(f"${self.inputs[i]}_node" for i in tensors)
        lines = [f"{nodes} = {', '.join(f'{self.inputs[i]}._node' for i in tensors)}"]
        sets = [(i,) for i in tensors] if len(tensors) == 1 else [(0, 1), (0,), (1,)]
        for number, tracked in enumerate(sets):
            test = " and ".join(f"${self.inputs[i]}_node is not None" for i in tracked)
            edges = [f"${n}_node" if i in tracked else "None" for i, n in enumerate(self.inputs)]
            lines.append(f"{'if' if number == 0 else 'elif'} {test}:")
            levels = " | ".join(f"${self.inputs[i]}_node.levels" for i in tracked)
            saved = self._saved(kinds, set(tracked))
            node = self._node(edges, saved, levels, self._shapes(kinds))
            lines += indented(node)
        return ["if $mode is $RECORD:", *indented(lines)]

    def _node(self, edges: list[str], saved: list[str], levels: str, shapes: str) -> list[str]:
        """Return the lines that make the node."""
        items = [*edges, *saved]
        count = "$len($edges)" if self.op.variadic else str(len(edges))
        slots = [f"$n.record = {tupled(items)}"]
        if self.op.is_small:
            slots = [f"$n.{i} = {e}" for i, e in zip(ITEMS, items, strict=False)]
        return expand(
            _NODE,
            edges=tupled(edges),
            args=self.args,
            settings=self.settings,
            kind="SmallNode" if self.op.is_small else "WideNode",
            filled=filled("$n", "$op", count, levels, shapes),
            record=slots,
            # The node counts the changes of its result; those of a view count for its base.
            counter=[] if self.op.view else ["$t._counter = $n"],
        )

    def _shapes(self, kinds: Sequence[str] = ()) -> str:
        """Return the expression of the shapes that backward must sum down to, if any."""
        if not self.op.broadcasts or "number" in kinds:  # the result has the tensor's shape then
            return "None"
        shapes = [f"${n}_data.shape" for n in self.inputs]
        return f"None if {' == '.join(shapes)} else $SHAPES[({', '.join(shapes)})]"

    def _saved(self, kinds: Sequence[str], tracked: set[int]) -> list[str]:
        """Return the expressions of what is saved when exactly these inputs are tracked."""
        slots, versions = [], []
        for name in self.op.layout:
            if name not in self.op.tensor_slots:
                slots.append(self._context(name))
                continue
            needed = bool(self.op.needed_by[name] & tracked)
            is_number = name in self.inputs and kinds[self.inputs.index(name)] == "number"
            data = f"${name}_data" if name in self.inputs else "$data"
            slots.append((name if is_number else data) if needed else "None")
            is_saved = needed and not is_number
            versions += self._version(name) if is_saved else ["None", "None"]
        return slots + versions

    def _version(self, name: str) -> list[str]:
        """Return the expressions of the counter and the version of an input or the result."""
        if name in self.inputs:
            return [
                f"(${name}_counter := {name}._counter or $counter_of({name}))",
                f"${name}_counter.version",
            ]
        if self.op.view:
            return ["($counter := $counter_of($t))", "$counter.version"]
        return ["$ITSELF", "0"]

    def _saved_if_needed(self) -> list[str]:
        """Return the expressions of what is saved, each with the test of who needs it."""
        slots, versions = [], []
        for name in self.op.layout:
            if name not in self.op.tensor_slots:
                slots.append(self._context(name))
                continue
            needing = sorted(self.op.needed_by[name])
            test = " or ".join(f"${self.inputs[i]}_node is not None" for i in needing)
            if name not in self.inputs:
                slots.append(f"$data if {test} else None")
                versions += [f"{what} if {test} else None" for what in self._version(name)]
                continue
            slots.append(f"${name}_data if {test} else None")
            condition = f"({test}) and ${name}_counter is not None"
            versions.append(f"${name}_counter if {condition} else None")
            versions.append(f"${name}_counter.version if {condition} else None")
        return slots + versions

    def _context(self, name: str) -> str:
        """Return the expression of a setting, or of a shape, dtype or device, that is saved."""
        if name in self.op.settings:
            return name
        if name == "shapes":
            return "$SHAPES[$tuple([d.shape for d in $operands])]"
        of, _, what = name.rpartition("_")
        return f"$SHAPES[${of}_data.shape]" if what == "shape" else f"{of}.{what}"


def filled(n: str, op: str, count: str, levels: str, shapes: str = "None") -> list[str]:
    """Return the lines that fill the slots of a node, but for its record."""
    return expand(FILL, n=n, op=op, count=count, levels=levels, shapes=shapes)


def levels_of_edges(edges: Sequence[str]) -> str:
    """Return the expression of the levels that edges lead to, each of which may be None."""
    return " | ".join(f"(0 if {edge} is None else {edge}.levels)" for edge in edges)


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
