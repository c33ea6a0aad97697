"""Less memory for one more run: `checkpoint`.

Owns the two runs of a checkpointed function: what is kept of the arguments, the context and the
draws of the first, a fingerprint of its results (sums of rows that do not hold the arrays), and the
node that stands for its graph. The first run is recorded, to learn where its results lead, and its
graph is dropped: the node leads to the targets outside of it. Backward runs the function again,
recorded, and pulls the gradients of the results through that graph to the same targets; recorded,
if the pass is. So gradients of what the function closes over, hooks and derivatives of any order
need nothing of their own. pullback's own generators say themselves that they are drawn from, see
ops/functions/random.py.

Invariants: the second run decides as the first did: its arguments lead to where the first's led in
the graph, in the context of the first, and what became a constant since is none to it. Nested
checkpoints are nodes of the run around them: n levels make n + 1 runs of the innermost function.
What somebody else holds of the first graph, as a tensor that the function gave to somebody does,
stays part of the whole: the node leads there, and no gradient goes on from the doubles of these
nodes. No reference cycle goes through a node.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from typing import Any, NamedTuple, Never
from weakref import ref

from pullback.arrays import NUMPY, innermost, library_of
from pullback.core.backward.collect import since
from pullback.core.backward.engine import run as run_backward
from pullback.core.custom.pytree import leaves, map_leaves
from pullback.core.function.record import NodeOperation, PassThrough, new_node
from pullback.core.graph.modes import STATE, run_in_mode
from pullback.core.graph.node import (
    AccumulateGrad,
    CustomNode,
    MultiNode,
    Node,
    Output,
    WideNode,
    edges_of,
    levels_of,
    meta_of,
    next_seq,
    release,
)
from pullback.core.tensor.saved import Packed, stale
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import ITSELF, Counter, shared_counter, version_of
from pullback.core.tensor.views import ONE_OF_MANY, TRACKED, move_retained
from pullback.errors import ArgumentTypeError, GraphError, InplaceError, compose
from pullback.ops.functions.random import replayed, watched
from pullback.transforms.api.arguments import Function, Transformed, name_of
from pullback.transforms.api.recording import run_noting_writes, written_outside
from pullback.transforms.levels import resumed
from pullback.transforms.wrapped import Wrapped


def checkpoint(fun: Function, *args: Never, check: bool = True, **more: Never) -> Function:
    """Return `fun` as a function that keeps its arguments only and runs once more in backward.

    Parameters
    ----------
    fun : callable
        Takes and returns any objects. It must compute the same when it runs again: what it closes
        over and its arguments must not have changed until backward. Draws of pullback's generators
        and of the global ones of NumPy and Python are repeated, and the generators stand afterwards
        where they would have without. What else it does to the outside happens twice: a hook that
        it gives to a tensor that it closes over.
    check : bool, default True
        Whether backward compares the results of the second run with those of the first, by sums of
        every 1024 elements, and raises if they differ: by a generator or a counter that `fun`
        closes over, for instance.

    Returns
    -------
    callable
        A function of the same arguments, results and gradients, those of closed-over leaves
        included. Nested checkpoints run the innermost function once for each level, and once.

    Raises
    ------
    ArgumentTypeError
        If `fun` is no function, or its arguments are passed as well.
    InplaceError
        If `fun` changes an argument in place; by backward, if one was changed since.
    GraphError
        By backward, if the second run returned other tensors than the first, or such that lead
        elsewhere in the graph.

    Notes
    -----
    Of n equal layers in checkpointed segments of k, n / k + k are kept, least for k = sqrt(n):
    Chen et al. (2016), Training deep nets with sublinear memory cost, arXiv:1604.06174.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> pb.checkpoint(lambda x: (x * x).exp())(x).sum().backward()
    >>> x.grad
    tensor([  5.4366, 218.3926])
    """
    if args or more:
        classes = [cls.__name__ for cls in map(type, args)]
        came = f"{', '.join([*classes, *more])} as well"
        hint = "write checkpoint(fun)(x): what it returns takes the arguments"
        raise ArgumentTypeError(compose("checkpoint", "a function alone required", came, hint=hint))
    return _Checkpointed(checkpoint, fun, check=check)


class _Checkpointed(Transformed):
    """What `checkpoint` returns."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the function, and again in backward."""
        if not STATE.get().grad:
            return self._fun(*args, **kwargs)
        return _Run(self._fun, args, kwargs, self._settings["check"]).first()


_CHANGES = {"hooks": None}  # of the mode: those around the call pack the arguments alone


class _Run:
    """One call of a checkpointed function: what it takes to run it again."""

    def __init__(
        self, fun: Function, args: tuple[Any, ...], kwargs: dict[str, Any], check: bool
    ) -> None:
        self._fun = fun
        self._given = (args, kwargs)
        self._drawn: Any = {}  # the generators that were drawn from, and where they stood
        self._drawn_globally: _GlobalDraws = []
        self._versions: dict[Any, int] = {}  # of what the first run saved, by what counts them
        self._check = check
        self._of_results: _Fingerprint | None = None
        self._of_arguments: _Fingerprint | None = None  # where hooks around the call may round them
        self._context = copy_context()  # modes, forward mode and whatever else the call stood in
        self.began = next_seq()  # the graph of the first run is younger

    def first(self) -> Any:
        """Return the results, which a node leads from."""
        args, kwargs = self._given
        tensors = [x for x in leaves(self._given) if isinstance(x, Tensor)]
        versions = [version_of(t) for t in tensors]
        levels = levels_of([t._node for t in tensors if t.requires_grad])
        with watched(self._drawn), _watched_globals(self._drawn_globally):
            result, left = run_noting_writes(
                levels, run_in_mode, _CHANGES, self._fun, *args, **kwargs
            )
        if versions != [version_of(t) for t in tensors]:
            required = f"a function that changes no argument in place required, {self._name} does"
            raise InplaceError(f"checkpoint: {required}.\nhint: clone() the argument first.")
        if left:  # the second run would write once more
            raise written_outside("checkpoint", self._fun, left[0])
        if layers := _computed_layers(result, self.began):
            if self._check:
                self._of_results = _Fingerprint(result)
                self._of_arguments = (
                    None if STATE.get().hooks is None else _Fingerprint(self._given)
                )
            self._given = _each_once(Tensor, _Argument, self._given)
            nodes = [_connected(self, layer) for layer in layers]
            for node, roots in nodes:  # what wraps tensors, and keeps them, comes first
                _drop_graph(node, roots, self.began)
        return result

    def note_versions(self, nodes: Sequence[Node]) -> None:
        """Note the versions of the tensors that nodes of the first run saved.

        Those of its own results are counted by the nodes that are dropped.
        """
        for node in nodes:
            for counter, version in itertools.pairwise(node.record[node.count :]):
                is_counter = counter.__class__ is Counter and counter is not ITSELF
                if is_counter or (isinstance(counter, Node) and counter.seq < self.began):
                    self._versions.setdefault(counter, version)

    def again(self) -> tuple[Any, Collection[Node], int]:
        """Run the function in its old context.

        Returns the results, the nodes that stand for the arguments, and when the run began.
        """
        return self._context.copy().run(self._again)  # another run may stand in it now

    def _again(self) -> tuple[Any, Collection[Node], int]:
        began = next_seq()
        args, kwargs = given = _each_once(_Argument, lambda a: a.tensor(self), self._given)
        for counter, version in self._versions.items():
            if counter.version != version:
                raise stale(self, counter.version, version, "a tensor that the function reads")
        tensors = [x for x in leaves(given) if isinstance(x, Tensor)]
        stand_ins = {t._node for t in tensors if t.requires_grad}
        with resumed(), replayed(self._drawn), _replayed_globals(self._drawn_globally):
            result = run_in_mode(_CHANGES, self._fun, *args, **kwargs)
        # Kernels may round what was given to them rounded by hooks around the call.
        other = "" if self._of_results is None else self._of_results.difference(result)
        if other and not (self._of_arguments and self._of_arguments.difference(given)):
            raise self.differs("returns what the first did", other)
        for node in stand_ins:
            node.extra = None  # hooks on them are those of the arguments
        return result, stand_ins, began

    def differs(self, required: str, came: str) -> GraphError:
        """Return the error of a second run that is not as the first."""
        required = f"a second run of {self._name} that {required} required"
        return GraphError(compose("checkpoint", required, came, hint=_HINT))

    @property
    def _name(self) -> str:
        return name_of(self._fun)

    def name(self) -> str:
        """Return what errors call the node that keeps the arguments."""
        return f"checkpoint of {self._name}"


_HINT = (
    "what it computes must depend on nothing but its arguments and what stays as it is: a counter "
    "or a Generator of NumPy's that it closes over goes on. Draw with pullback, np.random or "
    "random, whose draws are repeated, or make the Generator inside, from a seed among the "
    "arguments; check=False leaves the results unchecked"
)


# -- the arguments ---------------------------------------------------------------------------------
class _Argument:
    """What is kept of a tensor among the arguments, packed by the hooks around the call.

    With its edge target, which the results hold anyway: transforms inside of the function look at
    the graph. What wraps recorded tensors is kept as it is: what a hook makes of them is recorded.
    """

    __slots__ = ("array", "cls", "counter", "node", "version")

    def __init__(self, tensor: Tensor) -> None:
        hooks = STATE.get().hooks
        if hooks is not None and len([*_layers_of(tensor)]) > 1:
            hooks = None
        self.counter = shared_counter(tensor)
        self.version = version_of(tensor)
        array = tensor.data_array()
        self.cls, self.node = type(tensor), tensor._node
        self.array = array if hooks is None else Packed(hooks, array, self.counter)

    def tensor(self, run: _Run) -> Tensor:
        """Return a tensor that stands for the argument: hooks on it are none on the argument."""
        node = None if self.node is None else new_node(WideNode, _THROUGH, (self.node,))
        if self.array.__class__ is Packed:
            return box(self.array.unpack(run), node, None, self.cls)
        if self.counter.version != self.version:
            raise InplaceError(
                f"{run.name()}: one of the variables needed for gradient computation has been "
                f"modified by an inplace operation: an argument is at version "
                f"{self.counter.version}; expected version {self.version}.\n"
                "hint: call backward first, or clone() the tensor before changing it."
            )
        return box(self.array, node, self.counter, self.cls)


_THROUGH = PassThrough("CheckpointBackward")


def _each_once(kind: type, replace: Callable[[Any], Any], given: Any) -> Any:
    """Return the arguments with another object for each of a class, one for each object."""
    others: dict[int, Any] = {}

    def other(leaf: Any) -> Any:
        if not isinstance(leaf, kind):
            return leaf
        if id(leaf) not in others:
            others[id(leaf)] = replace(leaf)
        return others[id(leaf)]

    return map_leaves(other, given)


# -- the graph of a run ----------------------------------------------------------------------------
def _layers_of(result: Any) -> Iterator[list[Tensor]]:
    """Yield the tensors of a result, those that their arrays wrap, and so on."""
    tensors = [x for x in leaves(result) if isinstance(x, Tensor)]
    while tensors:
        yield tensors
        arrays = [a for t in tensors if isinstance(a := t._shown(), Wrapped)]
        parts = [part for a in arrays for part in a.library.parts(a)]
        tensors = [part for part in parts if isinstance(part, Tensor)]


def _owner(tensor: Tensor) -> Tensor:
    """Return the tensor whose node a tensor's own follows: for a view its base."""
    base = tensor._base
    return tensor if base is None or tensor._kind not in (TRACKED, ONE_OF_MANY) else base


def _is_computed(target: Any, began: int) -> bool:
    """Return whether a run that began then made the node of an edge target, which is no leaf."""
    node = target.node if target.__class__ is Output else target
    return node is not None and node.seq > began and node.__class__ is not AccumulateGrad


class _Layer(NamedTuple):
    """The tensors of a result at one depth of wrapping."""

    depth: int
    tensors: Sequence[Tensor]
    places: Sequence[int]  # of those that the run computed, or the first view of each such base


class _Second:
    """The graph of a second run, while that of its results is retained."""

    def __init__(self, nodes: list[Node], roots: list[Node], targets: list[Node], began: int):
        self.nodes, self.began = nodes, began
        self.roots = roots  # for each output of the node of the results
        self.targets = targets  # for each of its edges
        self._records: list[tuple[Any, ...]] = []

    def is_whole(self) -> bool:
        """Return whether it can be used."""
        return bool(self._records) or not any(node.released for node in self.nodes)

    @contextmanager
    def used(self, recorded: bool) -> Iterator[None]:
        """Use it inside of the block.

        Where recorded gradients lead to it, other passes release its nodes.
        """
        if recorded and not self._records:
            self._records = [(n, n.record, getattr(n, "saved", ())) for n in self.nodes]
        released = [record for record in self._records if record[0].released]
        for node, record, saved in released:
            node.released = False
            if node.__class__ is not Output:
                node.record = record
            if node.__class__ is CustomNode:
                node.saved = saved
        try:
            yield
        finally:
            for node, *_ in released:
                node.released = True
                if node.__class__ is not Output:
                    node.op.release(node)


class _Results:
    """What the node of the results at one depth of wrapping keeps."""

    __slots__ = ("count", "depth", "dropped", "held", "places", "pulled", "run", "second")

    def __init__(self, run: _Run, layer: _Layer) -> None:
        self.run, self.depth, self.places = run, layer.depth, layer.places
        self.count = self.dropped = 0  # nodes of the first graph; of them those it stands for
        self.held: list[int] = []  # which of these the last edges lead to
        self.second: _Second | None = None
        self.pulled: set[int] = set()  # the outputs whose gradients were

    def run_again(self, node: MultiNode) -> _Second:
        """Return the graph of another run that leads from the results where the node leads."""
        result, stand_ins, began = self.run.again()
        layer = next(itertools.islice(_layers_of(result), self.depth, None), [])
        owners = [_owner(layer[k]) for k in self.places if k < len(layer)]
        roots = [t._node for t in owners if _is_computed(t._node, began)]
        if len(roots) < len(self.places) or [meta_of(t._data) for t in owners] != node.metas:
            raise self.run.differs("returns what the first did", "others")
        first = node.count - len(self.held)
        held = list(node.edges[first:])
        nodes, older = since(roots, began)
        inner = [n for n in nodes if n not in stand_ins and n.__class__ is not AccumulateGrad]
        if not {*held} <= {*older} and len(inner) == self.count:  # this run computed them anew
            inner.sort(key=_SEQ)
            held = [inner[k] for k in self.held]
            for double in held:
                double.extra = None  # its hooks are those of the first run's
            nodes, older = since(roots, began, held)
            left = {*nodes} - {*held}
            inner = [n for n in inner if n in left]
        targets = [*node.edges[:first], *held]
        if {*older, *held} != {*targets} or len(inner) != self.dropped:
            raise self.run.differs("leads to what the first led to in the graph", "another graph")
        return _Second(nodes, roots, targets, began)


def _computed_layers(result: Any, began: int) -> list[_Layer]:
    """Return what a run that began then computed of a result, at each depth that has such."""
    layers = []
    for depth, tensors in enumerate(_layers_of(result)):
        places: dict[int, int] = {}
        for k, owner in enumerate(map(_owner, tensors)):
            if _is_computed(owner._node, began):
                places.setdefault(id(owner), k)
        if places:
            layers.append(_Layer(depth, tensors, [*places.values()]))
    return layers


def _connected(run: _Run, layer: _Layer) -> tuple[MultiNode, list[Node]]:
    """Make the tensors of a layer results of a new node; return it, and the nodes they had."""
    owners = [_owner(layer.tensors[k]) for k in layer.places]
    roots = [t._node for t in owners]
    node = new_node(MultiNode, _CHECKPOINT, (), (_Results(run, layer),))
    node.levels = levels_of(roots)
    node.metas = [meta_of(t._data) for t in owners]
    for i, (t, old) in enumerate(zip(owners, roots, strict=True)):
        shared_counter(t)  # the old node must not count for it any more, and be kept
        t._node = node.output(i)
        move_retained(t, old, t._node)
    now = {old: t._node for old, t in zip(roots, owners, strict=True)}
    for t in layer.tensors:
        if t._base is not None and _owner(t) is t:
            t._base_node = now.get(t._base_node, t._base_node)
        t._shown()  # the other views follow their bases
    if (observer := STATE.get().observer) is not None:
        observer.recorded(node, owners)
    return node, roots


def _drop_graph(node: MultiNode, roots: list[Node], began: int) -> None:
    """Let a node lead where the graph of the first run did, and drop that: `roots` are emptied.

    What somebody else holds of it stays, and the node leads there instead of beyond.
    """
    results: _Results = node.record[0]
    nodes, older = since(roots, began)
    results.run.note_versions(nodes)
    nodes.sort(key=_SEQ)
    k = results.count = sum(n.__class__ is not AccumulateGrad for n in nodes)
    reached = {*map(id, roots)}
    roots.clear()
    edges: list[Node] = []
    held: list[Node] = []
    while nodes:  # the youngest first: nothing but others can hold it
        is_reached = id(nodes[-1]) in reached
        is_leaf = nodes[-1].__class__ is AccumulateGrad
        behind = [*map(id, edges_of(nodes[-1]))] if is_reached else []
        alive = ref(nodes.pop())
        k -= not is_leaf
        if not is_reached:
            continue
        target = alive()
        if target is None or (isinstance(target, MultiNode) and target.output(0) is not target):
            reached.update(behind)
            results.dropped += not is_leaf
        elif is_leaf:
            edges.append(target)
        else:
            held.append(target)
            results.held.append(k)
    edges += [target for target in older if id(target) in reached]
    node.record, node.count = (*edges, *held, results), len(edges) + len(held)


class _Checkpoint(NodeOperation):
    """The operation of a call's node."""

    node_name = "CheckpointBackward"

    def differentiate(
        self, node: MultiNode, g: Sequence[Any], wanted: set[Node] | None, recorded: bool
    ) -> Sequence[Any]:
        """Return the gradient of each edge's target; tensors where the pass is recorded."""
        results: _Results = self.kept(node)
        second = results.second
        if second is None or not second.is_whole():
            second = results.second = results.run_again(node)
        came = [i for i, s in enumerate(g) if s is not None]
        results.pulled.update(came)
        pairs = zip(node.edges, second.targets, strict=True)
        targets = [target for edge, target in pairs if wanted is None or edge in wanted]
        with second.used(recorded):
            result = run_backward(
                [second.roots[i] for i in came],
                [g[i] for i in came],
                targets,
                retain=True,
                recorded=recorded,
                accumulate=False,
                begun=second.began,
                ends={*second.targets},
            )
        return [result.get(target) for target in second.targets]

    @staticmethod
    def release(node: MultiNode) -> None:
        """Drop what the node keeps, once all results were pulled that are left."""
        pulled = () if node.released else node.record[node.count].pulled
        for i in pulled:
            node.output(i).released = True
        left = [output() for output in node._outputs.values()]
        if all(output is None or output.released for output in left):
            release(node)


_CHECKPOINT = _Checkpoint()
_SEQ = operator.attrgetter("seq")


# -- repeating -------------------------------------------------------------------------------------
_np = NUMPY.xp

# Functions that return and put back a generator's state, and where it stood before a run.
_GlobalDraws = list[tuple[Callable[[], Any], Callable[[Any], None], Any]]


def _standing() -> _GlobalDraws:
    """Return where the global generators stand; they are loaded when they are first asked for."""
    import random

    def numpys() -> Any:
        return _np.random.get_state(legacy=False)

    return [
        (numpys, _np.random.set_state, numpys()),
        (random.getstate, random.setstate, random.getstate()),
    ]


@contextmanager
def _watched_globals(drawn: _GlobalDraws) -> Iterator[None]:
    """Note in `drawn` where the global generators stood that are drawn from inside the block."""
    before = _standing()
    try:
        yield
    finally:
        drawn += [(get, put, state) for get, put, state in before if not _is_same(get(), state)]


@contextmanager
def _replayed_globals(drawn: _GlobalDraws) -> Iterator[None]:
    """Repeat these draws inside the block; the generators stand as before then."""
    standing = [get() for get, _, _ in drawn]
    try:
        for _, put, state in drawn:
            put(state)
        yield
    finally:
        for (_, put, _), state in zip(drawn, standing, strict=True):
            put(state)


def kept_globals() -> AbstractContextManager[None]:
    """Leave the global generators as they stand, whatever is drawn inside the block."""
    return _replayed_globals(_standing())


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    return bool(_np.all(a == b))


# -- results ---------------------------------------------------------------------------------------
_ROW = 1024
_WEIGHTS = _np.sin(_np.arange(1.0, _ROW + 1))  # another order gives another sum


class _Fingerprint:
    """What is kept of the tensors in a result that require grad, to be compared with another's.

    For each a weighted sum of every 1024 elements. Kernels may round anew each time: what differs
    by some units in the last place is the same.
    """

    def __init__(self, result: Any) -> None:
        self._kept = [(tuple(t.shape), t.dtype, _sums(_flat(t))) for t in _tracked(result)]

    def difference(self, result: Any) -> str:
        """Say how another result differs; an empty text if it does not."""
        others = _tracked(result)
        if len(others) != len(self._kept):
            return f"{len(others)} results that require grad instead of {len(self._kept)}"
        for tensor, (shape, dtype, sums) in zip(others, self._kept, strict=True):
            if (tuple(tensor.shape), tensor.dtype) != (shape, dtype):
                came = f"shape {tuple(tensor.shape)}, dtype {tensor.dtype.name}"
                return f"a result of {came} instead of shape {shape}, dtype {dtype.name}"
            flat = _flat(tensor)
            now = _sums(flat)
            if _np.array_equal(now, sums, equal_nan=True):
                continue
            room = 100 * float(_np.finfo(dtype.dtype).eps) * _sums(_np.abs(flat), _np.abs(_WEIGHTS))
            with _np.errstate(invalid="ignore"):
                same = (
                    (_np.abs(now - sums) <= room)
                    | (now == sums)
                    | (_np.isnan(now) & _np.isnan(sums))
                )
            if not same.all():
                return f"other numbers in a result of shape {shape}"
        return ""


def _tracked(result: Any) -> list[Tensor]:
    return [x for x in leaves(result) if isinstance(x, Tensor) and x.requires_grad]


def _flat(tensor: Tensor) -> Any:
    """Return all values of a tensor as one row of real numbers, in NumPy's memory."""
    array = innermost(tensor.data_array())
    flat = library_of(array).to_numpy(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _sums(flat: Any, weights: Any = _WEIGHTS) -> Any:
    """Return the weighted sum of each row of 1024 elements."""
    whole = len(flat) - len(flat) % _ROW
    weights = weights.astype(flat.dtype)
    with _np.errstate(all="ignore"):
        rows = flat[:whole].reshape(-1, _ROW) @ weights
        return _np.append(rows, flat[whole:] @ weights[: len(flat) - whole])
