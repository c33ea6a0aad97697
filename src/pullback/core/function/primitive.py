"""What a built-in operation is: a forward over arrays and one gradient rule an input.

Owns the reading of a declaration, done once when it is made: what a node of the operation saves,
and which rule needs which of it. A rule's parameter names say what it is given: ``g`` the gradient
of the result, an input's name (its array), ``out`` or the name of one of several results, a
setting's name, ``<input>_shape``, ``<input>_dtype``, ``<input>_device``, ``shapes`` (of all inputs
of a variadic operation), ``xp``. Must not know how calls are made (call_codegen.py, record.py), how
rules are run (backward_codegen.py), nor the mathematics (ops).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from pullback.core.graph.node import ITEMS
from pullback.core.tensor.tensor import Tensor

Rule = Callable[..., Any]


@dataclass(slots=True, eq=False, repr=False)
class Primitive:
    """One operation: its forward, its rules, and the layout of what its nodes save."""

    name: str  # the public one
    # forward(xp, *arrays, **settings): positional parameters are arrays, any number with a star,
    # and keyword-only ones settings.
    forward: Callable[..., Any]
    inputs: tuple[str, ...]
    settings: dict[str, Any]  # with their defaults
    # From an input's name to its rule, or to None where the gradient is structurally zero. An input
    # that is not named has no rule: asking for its gradient is an error.
    declared: dict[str, Rule | None]
    _: KW_ONLY
    vjp_all: Rule | None = None  # one rule for all inputs instead: returns their gradients
    variadic: bool = False  # there may be any number of inputs
    # The result shows the input's memory, or a function of the settings says whether it does.
    view: bool | str | Callable[[dict[str, Any]], bool] = False
    multi: bool = False  # there are several results
    holomorphic: bool = True  # complex gradients are the conjugate of the rule on conjugates
    differentiable: bool = True  # a gradient is defined at all
    floating: bool = False  # integers are converted to the default dtype
    promotes: bool = True  # arguments are brought to one dtype
    broadcasts: bool = False  # inputs are broadcast, which backward undoes
    elementwise: bool = False  # an element depends on the same element of each input alone
    # There are two inputs, and swapping them changes nothing: of one tensor that is given twice one
    # rule runs, for both. What it gives is an array that nothing else holds.
    symmetric: bool = False
    # How it computes all samples of a batch at once: the rule of transforms/batch/rules.py. Empty:
    # sample by sample, but for what works element by element.
    batch: str = ""
    moves: bool = False  # the numbers of the result are numbers of the inputs, as they are
    # inplace(x, *others, **settings): the forward in place on arrays, returns the array.
    inplace: Callable[..., Any] | None = None
    # The forward for float arrays alone, without the checks that other dtypes need.
    unchecked_forward: Callable[..., Any] | None = None
    # numpy_kernel(*arrays, **settings), or the name of a function of the default library: does all
    # the forward does for float arrays, or raises an error for which `apply` runs the forward.
    numpy_kernel: str | Callable[..., Any] | None = None
    results: tuple[str, ...] = ("out",)  # the names under which rules ask for several results
    # adds_into(buffer, g, ...), the other parameters as a rule's, adds the gradient of the one
    # input into an array of its shape: for operations that read a part of their input.
    adds_into: Callable[..., Any] | None = None

    node_name: str = field(init=False)
    xp_name: str | None = field(init=False)  # of the one function that is all forward calls
    kernels: dict[type, tuple[Any, frozenset[Any]]] = field(init=False)  # see `kernel_of`
    public: Callable[..., Tensor] = field(init=False)  # set by whoever declares
    # What backward_codegen.py makes.
    differentiate: Callable[..., Sequence[Any]] = field(init=False)
    release: Callable[[Any], None] = field(init=False)
    add_part: Callable[..., Any] | None = field(init=False, default=None)
    conjugate_form: Primitive | None = field(init=False, default=None)
    is_conjugate_form: bool = field(init=False, default=False)  # whether this is such a form
    # False: a gradient that is structurally zero skips the node.
    takes_none: bool = field(init=False, default=False)

    # What a node saves: from a name that rules ask for to its place after the edges. Tensors come
    # first; after all slots come a version counter and a version for each tensor, None twice where
    # it was not saved.
    layout: dict[str, int] = field(init=False)
    tensor_slots: tuple[str, ...] = field(init=False)  # the names in it of inputs and results
    # From each of these to the numbers of the inputs whose rules ask for it.
    needed_by: dict[str, frozenset[int]] = field(init=False)
    rules: tuple[Rule | None, ...] = field(init=False)  # one an input
    # Inputs whose gradient is structurally zero, such as a mask, keep their own dtype.
    nondifferentiable_inputs: frozenset[int] = field(init=False)
    width: int = field(init=False)  # how many names the layout has
    size: int = field(init=False)  # how many items a node's record has, unless variadic
    is_small: bool = field(init=False)  # whether its nodes are `SmallNode`

    def __post_init__(self) -> None:
        self.node_name = f"{self.name[0].upper()}{self.name[1:]}Backward"
        self.xp_name, self.kernels = getattr(self.forward, "xp_name", None), {}
        self._lay_out()

    def _lay_out(self) -> None:
        """Read the rules' parameters: what a node saves, and which rule asks for which of it."""
        named, rules = tuple(enumerate(self.inputs)), self.declared
        self.nondifferentiable_inputs = frozenset(
            i for i, n in named if n in rules and rules[n] is None
        )
        self.rules = tuple(rules.get(n) for n in self.inputs)
        asked: dict[str, set[int]] = {}
        everyone = set(range(len(self.inputs)))
        for i, rule in enumerate(self.rules):
            for name in parameters(rule):
                asked.setdefault(name, set()).add(i)
        for name in parameters(self.vjp_all):
            asked[name] = everyone
        for name in parameters(self.adds_into)[2:]:
            asked.setdefault(name, set()).add(0)
        if self.adds_into is not None:
            asked.setdefault(f"{self.inputs[0]}_shape", set())
        asked.pop("g", None)
        asked.pop("xp", None)
        tensors = [n for n in (*self.inputs, *self.results) if n in asked]
        self.tensor_slots = tuple(tensors)
        self.layout = {
            n: i for i, n in enumerate([*tensors, *(n for n in asked if n not in tensors)])
        }
        self.needed_by = {n: frozenset(asked[n]) for n in tensors}
        self.width = len(self.layout)
        self.size = len(self.inputs) + self.width + 2 * len(tensors)
        self.is_small = self.size <= len(ITEMS) and not self.variadic and not self.multi

    def saves(self, name: str, tracked: Sequence[Any]) -> bool:
        """Return whether a call saves the tensor of that name.

        `tracked` has one item an input: its edge or another true value where it is tracked.
        """
        for i in self.needed_by.get(name, ()):  # noqa: SIM110  (a generator costs a call)
            if tracked[i]:
                return True
        return False

    def saves_input(self, i: int, record: tuple[Any, ...]) -> bool:
        """Return whether a node with this record saved its input `i`."""
        if self.variadic or i >= len(self.inputs) or self.inputs[i] not in self.needed_by:
            return False
        return record[len(self.inputs) + self.layout[self.inputs[i]]] is not None


def parameters(rule: Rule | None) -> tuple[str, ...]:
    """Return the names of a rule's parameters; quicker than `inspect.signature`."""
    if rule is None:
        return ()
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]
