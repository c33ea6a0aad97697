"""Less memory for one more run: `checkpoint`.

Owns the two runs of a checkpointed function: what is kept of the arguments, the context and the
draws of the first, and the second. The first is recorded, to learn where its results lead; the node
that then stands for its graph is in rerunning.py.

Invariants: the second run decides as the first did: its arguments lead to where the first's led in
the graph, in the context of the first, and what became a constant since is none to it. Nested
checkpoints are nodes of the run around them: n levels make n + 1 runs of the innermost function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import copy_context
from typing import Any

from pullback.core.custom.pytree import leaves, map_leaves
from pullback.core.function.record import PassThrough, new_node
from pullback.core.graph.modes import STATE, run_in_mode
from pullback.core.graph.node import Node, WideNode, levels_of, next_seq
from pullback.core.tensor.saved import Packed
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import shared_counter, version_of
from pullback.errors import GraphError, InplaceError, compose
from pullback.ops.functions.random import replayed, watched
from pullback.transforms.api.arguments import Function, Transformed, name_of
from pullback.transforms.api.recording import run_noting_writes, written_outside
from pullback.transforms.api.rerunning import (
    Fingerprint,
    GlobalDraws,
    computed_layers,
    layers_of,
    replace_graph,
    replayed_globals,
    watched_globals,
)

__all__ = ["checkpoint"]


def checkpoint(fun: Function, *, check: bool = True) -> Function:
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
        If `fun` is no function.
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
        self._drawn_globally: GlobalDraws = []
        self._check = check
        self._of_results: Fingerprint | None = None
        self._of_arguments: Fingerprint | None = None  # where hooks around the call may round them
        self._context = copy_context()  # modes, forward mode and whatever else the call stood in
        self.began = next_seq()  # the graph of the first run is younger

    def first(self) -> Any:
        """Return the results, which a node leads from."""
        args, kwargs = self._given
        tensors = [x for x in leaves(self._given) if isinstance(x, Tensor)]
        versions = [version_of(t) for t in tensors]
        levels = levels_of([t._node for t in tensors if t.requires_grad])
        with watched(self._drawn), watched_globals(self._drawn_globally):
            result, left = run_noting_writes(
                levels, run_in_mode, _CHANGES, self._fun, *args, **kwargs
            )
        if versions != [version_of(t) for t in tensors]:
            required = f"a function that changes no argument in place required, {self._name} does"
            raise InplaceError(f"checkpoint: {required}.\nhint: clone() the argument first.")
        if left:  # the second run would write once more
            raise written_outside("checkpoint", self._fun, left[0])
        if layers := computed_layers(result, self.began):
            if self._check:
                self._of_results = Fingerprint(result)
                self._of_arguments = None if STATE.get().hooks is None else Fingerprint(self._given)
            self._given = _kept(self._given)
            replace_graph(self, layers)
        return result

    def again(self) -> tuple[Any, Collection[Node], int]:
        """Run the function in its old context.

        Returns the results, the nodes that stand for the arguments, and when the run began.
        """
        return self._context.copy().run(self._again)  # another run may stand in it now

    def _again(self) -> tuple[Any, Collection[Node], int]:
        began = next_seq()
        args, kwargs = given = _put_back(self._given, self)
        tensors = [x for x in leaves(given) if isinstance(x, Tensor)]
        stand_ins = {t._node for t in tensors if t.requires_grad}
        with (
            replayed(self._drawn),
            replayed_globals(self._drawn_globally),
        ):
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
        if hooks is not None and len([*layers_of(tensor)]) > 1:
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


def _kept(given: Any) -> Any:
    """Return the arguments with what is kept of tensors in their place, one for each tensor."""
    seen: dict[int, _Argument] = {}

    def kept(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) not in seen:
            seen[id(leaf)] = _Argument(leaf)
        return seen[id(leaf)]

    return map_leaves(kept, given)


def _put_back(given: Any, run: _Run) -> Sequence[Any]:
    stand_ins: dict[int, Tensor] = {}

    def put(leaf: Any) -> Any:
        if not isinstance(leaf, _Argument):
            return leaf
        if id(leaf) not in stand_ins:
            stand_ins[id(leaf)] = leaf.tensor(run)
        return stand_ins[id(leaf)]

    result: Sequence[Any] = map_leaves(put, given)
    return result
