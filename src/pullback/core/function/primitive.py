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
from typing import Any

from pullback.core.graph.node import ITEMS
from pullback.core.tensor.tensor import Tensor

Rule = Callable[..., Any]


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
    vjp_all : callable, optional
        One rule for all inputs instead: returns a sequence of gradients.
    view, multi, holomorphic, differentiable : bool
        The result shows the input's memory (or a function of the settings that says so); there
        are several results; complex gradients are the conjugate of the rule on conjugates; a
        gradient is defined at all.
    floating, promotes, broadcasts, elementwise : bool
        Integers are converted to the default dtype; arguments are brought to one dtype; inputs
        are broadcast, which backward undoes; an element of the result depends on the same element
        of each input alone.
    symmetric : bool
        There are two inputs, and swapping them changes nothing: of one tensor that is given twice
        one rule runs, for both. What it gives is an array that nothing else holds.
    unchecked_forward : callable, optional
        The forward for float arrays alone, without the checks that other dtypes need.
    numpy_kernel : str or callable, optional
        The default library's function that does all the forward does for float arrays, or raises
        an error for which `apply` runs the forward instead: its name, or the function itself,
        ``numpy_kernel(*arrays, **settings)``.
    batch : str
        How it computes all samples of a batch at once: the rule of transforms/batch/rules.py.
        Empty: sample by sample, but for what works element by element.
    moves : bool
        The numbers of the result are numbers of the inputs, as they are.
    results : tuple of str
        The names under which rules ask for several results.
    inplace : callable, optional
        The forward in place on arrays, ``inplace(x, *others, **settings)``, returning the array.
    adds_into : callable, optional
        ``adds_into(buffer, g, ...)``, the other parameters as a rule's, adds the gradient of the
        one input into an array of its shape: for operations that read a part of their input.

    Attributes
    ----------
    layout : dict
        What a node saves: from a name that rules ask for to its place after the edges. Tensors
        come first; after all slots come a version counter and a version for each tensor, None
        twice where it was not saved.
    tensor_slots : tuple of str
        The names of the layout that are inputs or results.
    needed_by : dict
        From each of these to the numbers of the inputs whose rules ask for it.
    size : int
        How many items the record of a node has, unless the operation is variadic.
    is_small : bool
        Whether its nodes are small ones, see core/graph/node.py.
    """

    __slots__ = (
        "adds_into",
        "batch",
        "broadcasts",
        "conjugate_form",
        "declared",
        "differentiable",
        "differentiate",
        "elementwise",
        "floating",
        "forward",
        "holomorphic",
        "inplace",
        "inputs",
        "is_conjugate_form",
        "is_small",
        "kernels",
        "layout",
        "moves",
        "multi",
        "name",
        "needed_by",
        "node_name",
        "nondifferentiable_inputs",
        "numpy_kernel",
        "part_rule",
        "promotes",
        "public",
        "release",
        "results",
        "rules",
        "settings",
        "size",
        "symmetric",
        "takes_none",
        "tensor_slots",
        "unchecked_forward",
        "variadic",
        "view",
        "vjp_all",
        "width",
        "xp_name",
    )

    adds_into: Callable[..., Any] | None
    differentiate: Callable[..., Sequence[Any]]  # set by backward_codegen.py
    release: Callable[[Any], None]  # set by backward_codegen.py
    public: Callable[..., Tensor]  # set by whoever declares
    kernels: dict[type, tuple[Any, frozenset[Any]]]  # see `kernel_of` in dispatch.py
    conjugate_form: Primitive | None  # see backward_codegen.py
    is_conjugate_form: bool  # whether this is such a form
    xp_name: str | None  # of the one function of the namespace that is all forward calls
    takes_none: bool  # False: a gradient that is structurally zero skips the node

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        inputs: tuple[str, ...],
        settings: dict[str, Any],
        rules: dict[str, Rule | None],
        *,
        vjp_all: Rule | None = None,
        variadic: bool = False,
        view: bool | str | Callable[[dict[str, Any]], bool] = False,
        multi: bool = False,
        holomorphic: bool = True,
        differentiable: bool = True,
        floating: bool = False,
        promotes: bool = True,
        broadcasts: bool = False,
        elementwise: bool = False,
        symmetric: bool = False,
        batch: str = "",
        moves: bool = False,
        inplace: Callable[..., Any] | None = None,
        unchecked_forward: Callable[..., Any] | None = None,
        numpy_kernel: str | Callable[..., Any] | None = None,
        results: tuple[str, ...] = ("out",),
        adds_into: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self.node_name = name, f"{name[0].upper()}{name[1:]}Backward"
        self.forward, self.xp_name = forward, getattr(forward, "xp_name", None)
        self.unchecked_forward, self.numpy_kernel = unchecked_forward, numpy_kernel
        self.inputs, self.settings, self.declared, self.vjp_all = inputs, settings, rules, vjp_all
        self.variadic, self.multi, self.view, self.results = variadic, multi, view, results
        self.holomorphic, self.differentiable = holomorphic, differentiable
        self.floating, self.promotes, self.broadcasts = floating, promotes, broadcasts
        self.elementwise, self.symmetric, self.kernels = elementwise, symmetric, {}
        self.batch, self.moves, self.inplace = batch, moves, inplace
        self.part_rule, self.adds_into = adds_into, None  # see backward_codegen.py
        self.conjugate_form, self.is_conjugate_form, self.takes_none = None, False, False
        self._lay_out()

    def _lay_out(self) -> None:
        """Read the rules' parameters: what a node saves, and which rule asks for which of it."""
        named, rules = tuple(enumerate(self.inputs)), self.declared
        # Inputs whose gradient is structurally zero, such as a mask, keep their own dtype.
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
        for name in parameters(self.part_rule)[2:]:
            asked.setdefault(name, set()).add(0)
        if self.part_rule is not None:
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
