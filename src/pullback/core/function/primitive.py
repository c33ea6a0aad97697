"""What a built-in operation is: a forward over arrays and one gradient rule an input.

Owns the reading of a declaration, done once when it is made: which slots a node of the operation
saves, which of them each rule needs, and how a rule is called. A rule's parameter names say what
it is given: ``g`` the gradient of the result, an input's name (its array), ``out`` or the name of
one of several results, a setting's name, ``<input>_shape``, ``shapes`` (of all inputs of a variadic
operation), ``xp``. The same rules run on arrays, and on tensors when the backward itself is
recorded.
Must not know how calls are made or nodes created (function.py) nor the mathematics (ops).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pullback.arrays import NUMPY, is_array, library_of
from pullback.core.graph.node import MultiNode, Node
from pullback.core.tensor.tensor import Tensor, as_array, box
from pullback.errors import ArgumentTypeError, InplaceError, MissingRuleError, compose

# The namespace of operations over tensors: `xp` of a rule whose backward is recorded.
TENSORS = SimpleNamespace()

_array_type = NUMPY.array_types[0]
_numpy = NUMPY.xp

Rule = Callable[[Any, Any, Any], Any]  # (gradient, saved slots, xp) -> gradient of an input


class Primitive:
    """One operation: its forward, its rules, and the layout of what its nodes save.

    Parameters
    ----------
    name : str
        The public name; nodes are called ``<Name>Backward``.
    forward : callable
        ``forward(xp, *arrays, **settings)``: positional parameters are arrays, keyword-only ones
        settings; ``*arrays`` takes any number of them.
    rules : dict
        From an input's name to its rule, or to None where the gradient is structurally zero.
        An input that is not named has no rule: asking for its gradient is an error.
    joint : callable, optional
        One rule for all inputs instead: returns a sequence of gradients.
    view, multi, holomorphic, differentiable : bool
        The result shows the input's memory (or a function of the settings that says so); there
        are several results; complex gradients are the conjugate of the rule on conjugates; a
        gradient is defined at all.
    floating, promotes, compares : bool
        Integers are converted to the default dtype; arguments are brought to one dtype; the
        result is never differentiable though the inputs may be tracked.
    kernel : callable, optional
        The forward for float arrays alone, without the checks that other dtypes need.
    quick : str, optional
        The default library's function that does all the forward does for float arrays, or raises.
    results : tuple of str
        The names under which rules ask for several results.
    inplace : callable, optional
        An in-place twin of the forward on arrays, ``inplace(x, *others)``, returning the array.
    """

    __slots__ = (
        "_context",
        "_joint_slots",
        "_plans",
        "_rule_slots",
        "_twin",
        "broadcasts",
        "declared",
        "differentiable",
        "floating",
        "forward",
        "holomorphic",
        "inplace",
        "inputs",
        "joint",
        "kernel",
        "layout",
        "masks",
        "multi",
        "name",
        "node_name",
        "promotes",
        "public",
        "quick",
        "results",
        "rules",
        "saves_inputs",
        "settings",
        "standard",
        "takes_none",
        "variadic",
        "view",
    )

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        inputs: tuple[str, ...],
        settings: dict[str, Any],
        rules: dict[str, Callable[..., Any] | None],
        *,
        joint: Callable[..., Any] | None = None,
        variadic: bool = False,
        view: bool | Callable[[dict[str, Any]], bool] = False,
        multi: bool = False,
        holomorphic: bool = True,
        differentiable: bool = True,
        floating: bool = False,
        promotes: bool = True,
        broadcasts: bool = False,
        inplace: Callable[..., Any] | None = None,
        kernel: Callable[..., Any] | None = None,
        quick: str | None = None,
        results: tuple[str, ...] = ("out",),
    ) -> None:
        self.name, self.node_name = name, f"{name[0].upper()}{name[1:]}Backward"
        self.forward, self.inplace, self.kernel, self.quick = forward, inplace, kernel, quick
        self.standard: str | None = getattr(forward, "standard_name", None)  # all it calls
        self.inputs, self.settings, self.declared = inputs, settings, rules
        self.variadic, self.multi, self.view, self.results = variadic, multi, view, results
        self.holomorphic, self.differentiable = holomorphic, differentiable
        self.floating, self.promotes, self.broadcasts = floating, promotes, broadcasts
        # Inputs whose gradient is structurally zero, such as a mask, keep their own dtype.
        self.masks = frozenset(i for i, n in enumerate(inputs) if n in rules and rules[n] is None)
        self.takes_none = False  # a gradient that is structurally zero skips the node
        self.saves_inputs = not variadic  # slot i of what a node saves is its input i
        self.public: Callable[..., Tensor] = self.forward
        self._plans: dict[tuple[bool, ...], tuple[int, ...]] = {}
        self._context: Callable[..., tuple[Any, ...]] | None = None
        self._twin: Primitive | None = None
        self._read(rules, joint)

    # -- reading the declaration --------------------------------------------------------------
    def _read(self, rules: dict[str, Any], joint: Any) -> None:
        self.layout = self._lay_out(rules, joint)
        self.rules = tuple(self._deferred(rules.get(n), i) for i, n in enumerate(self.inputs))
        self.joint = self._deferred(joint)
        self._rule_slots = {n: self._tensor_slots(rules.get(n)) for n in self.inputs}
        self._joint_slots = self._tensor_slots(joint)

    def _lay_out(self, rules: dict[str, Any], joint: Any) -> dict[str, int]:
        """Return slot numbers: inputs, results, then the settings and shapes rules ask for."""
        names = [*self.inputs, *self.results]
        for rule in (*rules.values(), joint):
            for name in _parameters(rule):
                if name not in names and name not in ("g", "xp"):
                    names.append(name)
        return {name: slot for slot, name in enumerate(names)}

    # What is called by slot is compiled by the first call: most operations are never used.
    def _deferred(self, rule: Callable[..., Any] | None, place: int | None = None) -> Rule | None:
        """Return the rule of the input at `place`, or of all: the compiled one takes its place."""
        if rule is None:
            return None

        def first_call(g: Any, s: Any, xp: Any) -> Any:
            compiled = self._compile(rule)
            if place is None:
                self.joint = compiled
            else:
                self.rules = (*self.rules[:place], compiled, *self.rules[place + 1 :])
            return compiled(g, s, xp)

        return first_call

    def context(self, tensors: Sequence[Any], settings: dict[str, Any]) -> tuple[Any, ...]:
        """Return, of one call, the slots after the results: settings, shapes, dtypes, devices."""
        if self._context is None:
            names = [*self.layout][len(self.inputs) + len(self.results) :]
            sources = "".join(f"{self._source(name)}, " for name in names)
            self._context = eval(f"lambda tensors, settings: ({sources})")
        return self._context(tensors, settings)

    def _source(self, name: str) -> str:
        if name in self.settings:
            return f"settings[{name!r}]"
        if name == "shapes":
            return "tuple([t._data.shape for t in tensors])"
        of, _, what = name.rpartition("_")
        attribute = "_data.shape" if what == "shape" else what
        return f"tensors[{self.inputs.index(of)}].{attribute}"

    def _compile(self, rule: Callable[..., Any]) -> Rule:
        """Return `rule` as a function of (g, slots, xp) that picks its arguments by slot."""
        picks = ", ".join(
            name if name in ("g", "xp") else f"s[{self.layout[name]}]" for name in _parameters(rule)
        )
        compiled: Rule = eval(f"lambda g, s, xp: rule({picks})", {"rule": rule})
        return compiled

    def _tensor_slots(self, rule: Any) -> frozenset[int]:
        end = len(self.inputs) + len(self.results)
        slots = (self.layout.get(name, end) for name in _parameters(rule))
        return frozenset(slot for slot in slots if slot < end)

    def plan(self, tracked: tuple[bool, ...]) -> tuple[int, ...]:
        """Return the slots of inputs and results to save when these inputs are tracked."""
        plan = self._plans.get(tracked)
        if plan is None:
            slots = set(self._joint_slots)
            for name, wanted in zip(self.inputs, tracked, strict=False):
                if wanted:
                    slots |= self._rule_slots[name]
            plan = self._plans[tracked] = tuple(sorted(slots))
        return plan

    @property
    def complex_twin(self) -> Primitive:
        """The operation with rules for complex results: conj(rule(conj(g), ...)).

        For a holomorphic function whose rule multiplies ``g`` by the derivative this is the
        conjugate Wirtinger gradient, PyTorch's convention.
        """
        if self._twin is None:
            self._twin = twin = copy.copy(self)
            twin.rules = tuple(rule and _conjugated(rule) for rule in self.rules)
            twin._twin = twin
        return self._twin

    # -- backward -----------------------------------------------------------------------------
    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return one gradient an input, None where none is wanted or it is zero."""
        saved = node.saved
        if saved.__class__ is not tuple:
            saved = saved.unpack(node)
        guard = node.guard
        if guard is not None and (guard[0][0] != guard[1] or len(guard) > 2):
            check_versions(node, guard)
        if recorded:
            saved = self._as_tensors(node, saved)
            xp: Any = TENSORS
        elif g.__class__ is _array_type:
            xp = _numpy
        elif self.multi:
            xp = library_of(as_array(next(x for x in g if x is not None))).xp
        else:
            g = as_array(g)
            xp = library_of(g).xp
        if self.joint is not None:
            found = self.joint(g, saved, xp)
            return [
                None if target is None or (wanted is not None and target not in wanted) else r
                for target, r in zip(node.inputs, found, strict=True)
            ]
        grads: list[Any] = []
        for target, rule in zip(node.inputs, self.rules):  # noqa: B905  (strict costs time here)
            if target is None or (wanted is not None and target not in wanted):
                grads.append(None)
            else:
                grads.append(rule(g, saved, xp) if rule else self._without_rule(len(grads)))
        if node.shapes is not None:
            return [
                r if r is None or r.shape == shape else unbroadcast(r, shape, xp)
                for r, shape in zip(grads, node.shapes, strict=True)
            ]
        return grads

    def _without_rule(self, i: int) -> Any:
        """Return the gradient that is structurally zero, or raise where a rule is missing."""
        name = self.inputs[i]
        if name in self.declared:
            return None
        raise MissingRuleError(
            compose(
                self.name,
                f"a gradient rule for the argument '{name}'",
                "an operation that has none",
                hint=f"detach() the argument '{name}' if its gradient is not needed",
            )
        )

    def _as_tensors(self, node: Node, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the saved slots with the arrays as tensors, each at its place in the history."""
        slots = list(saved)
        guard = iter((node.guard or ())[::2])
        limit = len(self.inputs)
        for i in range(limit + len(self.results)):
            if slots[i] is not None and is_array(slots[i]):
                if i < limit:
                    target = node.inputs[i]
                else:
                    target = node.output(i - limit) if isinstance(node, MultiNode) else node
                slots[i] = box(slots[i], target, next(guard, None))
        return tuple(slots)


class Packed:
    """Saved slots of which some were packed by `saved_tensors_hooks`."""

    __slots__ = ("slots", "tensors", "unpack_hook")

    def __init__(
        self, slots: list[Any], tensors: Sequence[int], counters: Sequence[Any], hooks: Any
    ) -> None:
        self.tensors = [i for i in tensors if is_array(slots[i])]
        for i, counter in zip(self.tensors, counters, strict=True):
            slots[i] = pack(hooks, slots[i], counter)
        self.slots = slots
        self.unpack_hook = hooks.unpack

    def unpack(self, node: Node) -> tuple[Any, ...]:
        """Return the slots with the packed ones unpacked."""
        slots = list(self.slots)
        for i in self.tensors:
            slots[i] = unpack(self.unpack_hook, slots[i], node)
        return tuple(slots)


def pack(hooks: Any, array: Any, counter: list[Any]) -> tuple[Any, list[Any], int]:
    """Return what the pack hook makes of a saved array, with the array's version."""
    version = counter[0]
    packed = hooks.pack(box(array, None, counter))
    if counter[0] != version:
        raise InplaceError(
            "saved_tensors_hooks: a saved tensor pack hook is modifying its input in place.\n"
            "hint: clone() the tensor in the hook first."
        )
    return packed, counter, version


def unpack(hook: Callable[[Any], Any], saved: tuple[Any, list[Any], int], node: Node) -> Any:
    """Return the array of the tensor that the unpack hook gives back."""
    packed, counter, version = saved
    tensor = hook(packed)
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"{node.name()}: the unpack hook of saved_tensors_hooks must return a Tensor, got "
            f"{type(tensor).__name__}"
        )
    if tensor._counter is counter and counter[0] != version:
        raise stale(node, counter[0], version)  # the hooks kept the memory itself
    return tensor.data_array()


def unbroadcast(g: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Sum `g` over the axes that broadcasting stretched, down to `shape`."""
    extra = len(g.shape) - len(shape)
    axes: tuple[int, ...] = tuple(range(extra))
    if 1 in shape:
        ones = [i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1]
        axes = (*axes, *ones)
    g = xp.sum(g, axis=axes, keepdims=len(axes) != extra)
    return g if g.shape == shape else xp.reshape(g, shape)


def check_versions(node: Node, guard: tuple[Any, ...]) -> None:
    """Raise where a saved tensor was changed in place since it was saved."""
    for counter, version in zip(guard[::2], guard[1::2], strict=True):
        if counter[0] != version:
            raise stale(node, counter[0], version)


def stale(node: Node, version: int, expected: int, what: str = "a saved tensor") -> InplaceError:
    """Return the error for a saved tensor that was changed in place since."""
    return InplaceError(
        f"{node.name()}: one of the variables needed for gradient computation has been modified "
        f"by an inplace operation: {what} is at version {version}; expected version {expected}.\n"
        "hint: use the operation that is not in place, or clone() the tensor before changing it."
    )


def _parameters(rule: Callable[..., Any] | None) -> tuple[str, ...]:
    if rule is None:
        return ()
    code = rule.__code__  # quicker than inspect.signature, and rules are plain functions
    return code.co_varnames[: code.co_argcount]


def _conjugated(rule: Rule) -> Rule:
    return lambda g, s, xp: xp.conj(rule(_conj(xp, g), s, xp))


def _conj(xp: Any, g: Any) -> Any:
    """Return the conjugate of an output gradient, of each where the operation has several."""
    if not isinstance(g, (tuple, list)):
        return xp.conj(g)
    return [None if part is None else xp.conj(part) for part in g]
