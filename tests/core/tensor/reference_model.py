"""A naive model of tensors, views, in-place changes and gradients, in plain NumPy.

Nothing here works backward. Every number in memory carries its own dense Jacobian with respect
to every leaf, computed the moment the number is (forward mode), so a gradient is one product.
Memory is a flat buffer, and a tensor is an array of positions in it: a view is a selection of
positions, and an in-place change simply overwrites numbers and their Jacobians, whoever looks
at them. A detached tensor shares the numbers but not the Jacobians.

Beside the numbers the model keeps the bare outline of the graph (which step came from which,
and which memory each step has to find unchanged), only to foretell which errors must be raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Jacobian = dict["Leaf", Array]  # from a leaf to an array of shape (*shape, leaf size)

NO_HISTORY = "does not require grad and does not have a grad_fn"
SECOND_TIME = "backward through the graph a second time"
MODIFIED = "modified by an inplace operation"
LEAF = "leaf Variable that requires grad"
SEVERAL_VIEWS = "multiple views"
OVERLAP = "single memory location"


@dataclass(eq=False)
class Storage:
    """Numbers in memory and how often they were changed."""

    values: Array
    version: int = 0


@dataclass(eq=False)
class Leaf:
    """Where graphs end."""

    shape: tuple[int, ...]
    grad: Array | None = None


@dataclass(eq=False)
class Saved:
    """Memory that a step must find unchanged to differentiate its input number `serves`.

    Where it is not `sure`, a step may have kept a copy instead.
    """

    storage: Storage
    serves: int
    sure: bool = True
    version: int = -1

    def __post_init__(self) -> None:
        self.version = self.storage.version

    @property
    def stale(self) -> bool:
        return self.storage.version != self.version


@dataclass(eq=False)
class Step:
    """One recorded operation."""

    inputs: tuple[Step | Leaf | None, ...]
    saved: Sequence[Saved] = ()
    released: bool = False
    lost: bool = False  # a failed pass may or may not have released it


Node = Step | Leaf | None


@dataclass(eq=False)
class Owner:
    """What a tensor and its views share: memory, the Jacobian of each number, the node."""

    storage: Storage
    node: Node = None
    jacobian: Jacobian = field(default_factory=dict)


class Ref:
    """One tensor of the model."""

    def __init__(
        self, owner: Owner, where: Array, *, view: bool = False, one_of_many: bool = False
    ) -> None:
        self.owner = owner
        self.where = where
        self.view = view
        self.one_of_many = one_of_many
        self._own = Step((owner.node,)) if view and owner.node is not None else None
        self._seen = owner.node

    @property
    def values(self) -> Array:
        return self.owner.storage.values[self.where]

    @property
    def jacobian(self) -> Jacobian:
        return {leaf: rows[self.where] for leaf, rows in self.owner.jacobian.items()}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.where.shape

    @property
    def node(self) -> Node:
        if not self.view:
            return self.owner.node
        if self._seen is not self.owner.node:  # the base or a sibling was changed in place
            self._seen = self.owner.node
            self._own = Step((self._seen,))
        return self._own

    @property
    def requires_grad(self) -> bool:
        return self.owner.node is not None

    @property
    def is_leaf(self) -> bool:
        return self.node is None or isinstance(self.node, Leaf)

    @property
    def overlaps(self) -> bool:
        """Whether two of the elements are one number in memory."""
        return np.unique(self.where).size != self.where.size

    def select(self, where: Array) -> Ref:
        """Return a view of the positions `where`."""
        return self.select_all([where])[0]

    def select_all(self, parts: Iterable[Array], *, one_of_many: bool = False) -> list[Ref]:
        """Return views of the given positions that come from one step."""
        step = Step((self.node,)) if self.requires_grad else None
        several = one_of_many or self.one_of_many
        views = [Ref(self.owner, where, view=True, one_of_many=several) for where in parts]
        for view in views:
            view._own = step
        return views

    def detach(self) -> Ref:
        """Return a tensor over the same memory without a node."""
        return Ref(Owner(self.owner.storage), self.where)


def constant(values: Array) -> Ref:
    """Return a tensor over new memory."""
    return Ref(Owner(Storage(values.ravel().copy())), np.arange(values.size).reshape(values.shape))


def new_leaf(values: Array) -> Ref:
    """Return a leaf that requires grad."""
    made = constant(values)
    leaf = Leaf(values.shape)
    made.owner.node = leaf
    made.owner.jacobian = {leaf: np.eye(values.size)}
    return made


# --- operations ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """An elementwise operation: its value, its partial derivatives, and what it must save.

    ``saves`` has one entry an input: the input whose value its derivative needs, "out", or None.
    """

    value: Callable[..., Array]
    partials: Callable[..., tuple[Array, ...]]
    saves: tuple[int | str | None, ...]


def _ones(*arrays: Array) -> Array:
    return np.ones(np.broadcast_shapes(*(a.shape for a in arrays)))


OPERATIONS = {
    "neg": Operation(lambda x: -x, lambda x, out: (-_ones(x),), (None,)),
    "scale": Operation(lambda x: x * 3.0, lambda x, out: (3.0 * _ones(x),), (None,)),
    "shift": Operation(lambda x: x + 1.5, lambda x, out: (_ones(x),), (None,)),
    "sin": Operation(np.sin, lambda x, out: (np.cos(x),), (0,)),
    "square": Operation(lambda x: x**2, lambda x, out: (2 * x,), (0,)),
    "exp": Operation(np.exp, lambda x, out: (out,), ("out",)),
    "tanh": Operation(np.tanh, lambda x, out: (1 - out**2,), ("out",)),
    "relu": Operation(
        lambda x: np.maximum(x, 0.0), lambda x, out: ((out > 0).astype(float),), ("out",)
    ),
    "add": Operation(np.add, lambda x, y, out: (_ones(x, y), _ones(x, y)), (None, None)),
    "sub": Operation(np.subtract, lambda x, y, out: (_ones(x, y), -_ones(x, y)), (None, None)),
    "mul": Operation(np.multiply, lambda x, y, out: (y, x), (1, 0)),
}


def chain_rule(operation: Operation, inputs: Sequence[Ref], out: Array) -> Jacobian:
    """Return the Jacobian of the result `out`."""
    result: Jacobian = {}
    partials = operation.partials(*(x.values for x in inputs), out)
    for partial, x in zip(partials, inputs, strict=True):
        for leaf, rows in x.jacobian.items():
            term = np.broadcast_to(partial, out.shape)[..., None] * _spread(rows, out.shape)
            result[leaf] = result.get(leaf, 0.0) + term
    return result


def _spread(rows: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast a Jacobian over the shape of the result."""
    missing = len(shape) - (rows.ndim - 1)
    rows = rows.reshape((1,) * missing + rows.shape)
    return np.broadcast_to(rows, (*shape, rows.shape[-1]))


def compute(name: str, inputs: Sequence[Ref], *, grad_mode: bool) -> Ref:
    """Return the result of an elementwise operation."""
    operation = OPERATIONS[name]
    out = np.asarray(operation.value(*(x.values for x in inputs)))
    made = constant(out)
    if grad_mode and any(x.requires_grad for x in inputs):
        saved = []
        for serves, what in enumerate(operation.saves):
            if what is not None and inputs[serves].requires_grad:
                storage = made.owner.storage if what == "out" else inputs[what].owner.storage
                saved.append(Saved(storage, serves))
        _set_node(made, Step(tuple(x.node for x in inputs), saved))
        made.owner.jacobian = _flat(chain_rule(operation, inputs, out), out.size)
    return made


def copied(x: Ref, shape: tuple[int, ...]) -> Ref:
    """Return a reshaped copy."""
    made = constant(x.values.reshape(shape))
    if x.requires_grad:
        _set_node(made, Step((x.node,)))
        made.owner.jacobian = _flat(x.jacobian, x.where.size)
    return made


def _flat(jacobian: Jacobian, size: int) -> Jacobian:
    return {leaf: rows.reshape(size, -1).copy() for leaf, rows in jacobian.items()}


def _set_node(x: Ref, node: Step) -> None:
    x.owner.node = node


# --- in place --------------------------------------------------------------------------------


def refusal(x: Ref, others: Sequence[Ref], *, grad_mode: bool) -> str | None:
    """Return the phrase of the error that an in-place change of `x` must raise, if any."""
    tracked = x.requires_grad or any(o.requires_grad for o in others)
    if grad_mode and tracked:
        if isinstance(x.owner.node, Leaf):
            return f"{LEAF}|{SEVERAL_VIEWS}" if x.one_of_many else LEAF
        if x.one_of_many:
            return SEVERAL_VIEWS
    return OVERLAP if x.overlaps else None


def change(name: str, x: Ref, others: Sequence[Ref], *, grad_mode: bool) -> None:
    """Change `x` to the result of an elementwise operation on it, in place."""
    operation = OPERATIONS[name]
    inputs = (x, *others)
    out = np.asarray(operation.value(*(t.values for t in inputs)))
    rows = chain_rule(operation, inputs, out)
    saved = []
    for serves, what in enumerate(operation.saves):
        # the old value of x itself is kept as a copy; another operand as it is
        if what not in (None, 0, "out") and inputs[serves].requires_grad:
            other = inputs[what].owner.storage
            saved.append(Saved(other, serves, sure=other is not x.owner.storage))
    if _write(x, out, rows, inputs, grad_mode):
        if "out" in operation.saves:
            saved = [Saved(x.owner.storage, 0, sure=False)]
        _rebase(x, Step(tuple(t.node for t in inputs), saved))


def assign(x: Ref, value: Ref, *, grad_mode: bool) -> None:
    """Overwrite `x` with `value`, broadcast over it."""
    out = np.broadcast_to(value.values, x.shape).copy()
    rows = {leaf: _spread(r, x.shape).copy() for leaf, r in value.jacobian.items()}
    if _write(x, out, rows, (x, value), grad_mode):
        _rebase(x, Step((value.node,)))


def _write(x: Ref, out: Array, rows: Jacobian, inputs: Sequence[Ref], grad_mode: bool) -> bool:
    """Write values, and where the change is recorded Jacobians; return whether it is."""
    owner = x.owner
    owner.storage.values[x.where] = out
    owner.storage.version += 1
    if not (grad_mode and any(t.requires_grad for t in inputs)):
        return False
    for leaf in {**owner.jacobian, **rows}:
        size = int(np.prod(leaf.shape))
        kept = owner.jacobian.setdefault(leaf, np.zeros((owner.storage.values.size, size)))
        kept[x.where] = rows.get(leaf, 0.0)
    return True


def _rebase(x: Ref, step: Step) -> None:
    # whether a base leaves the rest of itself alone or replaces all, it comes from its old node
    x.owner.node = Step((x.owner.node, step))


# --- backward --------------------------------------------------------------------------------


@dataclass
class Pass:
    """What one backward pass does: the steps it runs and the errors it must or may raise."""

    steps: list[Step]
    leaves: list[Leaf]
    must: set[str]
    may: set[str]


def plan(root: Ref, wanted: Sequence[Leaf] | None = None) -> Pass:
    """Foretell a backward pass from `root` to all leaves, or to the `wanted` ones."""
    result = Pass([], [], set(), set())
    if not root.requires_grad:
        result.must.add(NO_HISTORY)
        return result
    useful: dict[Node, bool] = {None: False}
    for node in _inputs_first(root.node):
        if isinstance(node, Leaf):
            useful[node] = wanted is None or node in wanted
            if useful[node]:
                result.leaves.append(node)
        else:
            useful[node] = any(useful[i] for i in node.inputs)
            if useful[node]:
                result.steps.append(node)
    for step in result.steps:
        if step.released:
            result.must.add(SECOND_TIME)
        for saved in step.saved:
            if saved.stale:
                certain = saved.sure and useful[step.inputs[saved.serves]]
                (result.must if certain else result.may).add(MODIFIED)
    return result


def _inputs_first(root: Node) -> Iterator[Step | Leaf]:
    """Yield what `root` comes from, each once and after its inputs."""
    done: set[Step | Leaf] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if node is None or node in done:
            continue
        if expanded or isinstance(node, Leaf):
            done.add(node)
            yield node
        else:
            stack.append((node, True))
            stack.extend((i, False) for i in node.inputs)


def gradients(root: Ref, grad_output: Array, foretold: Pass) -> dict[Leaf, Array]:
    """Return the gradient that reaches each leaf of the pass."""
    rows = root.jacobian
    return {
        leaf: np.tensordot(grad_output, rows[leaf], grad_output.ndim).reshape(leaf.shape)
        if leaf in rows
        else np.zeros(leaf.shape)
        for leaf in foretold.leaves
    }


def is_lost(x: Ref) -> bool:
    """Return whether a failed pass left the graph of `x` in a state nobody promises."""
    return any(isinstance(n, Step) and n.lost for n in _inputs_first(x.node))
