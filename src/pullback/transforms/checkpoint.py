"""Less memory for one more run: `checkpoint`.

Owns the two runs of a checkpointed function. The graph is that of an ordinary call, but where its
nodes would keep arrays they keep a place for one; when backward asks for the first, the function
runs again and fills all places. So gradients of what the function closes over, hooks and
derivatives of any order need nothing of their own.

Invariants: the second run decides as the first did: its arguments lead to where the first's led in
the graph, in the context of the first, and what became a constant since is none to it. A place that
its node has let go of is never filled. A run knows its places weakly: no reference cycle goes
through a graph. Nested checkpoints give their arguments to the places of the
run around them, which fills those by running again itself: n levels make n + 1 runs of the
innermost function.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any, NoReturn

from pullback.core.custom.pytree import leaves, map_leaves
from pullback.core.function.record import Through, new_node
from pullback.core.graph.modes import STATE, SavedTensorHooks, run_in_mode
from pullback.core.graph.node import WideNode, next_seq
from pullback.core.tensor.endings import run_in_call
from pullback.core.tensor.saved import Packed
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import Counter, counter_of, shared_counter, version_of
from pullback.core.tensor.writes import WRITES, Writes
from pullback.errors import GraphError, InplaceError, compose
from pullback.ops.functions.random import replayed, watched
from pullback.transforms.constants import as_of
from pullback.transforms.recording import written_outside
from pullback.transforms.repeating import (
    Fingerprint,
    GlobalDraws,
    replayed_globals,
    watched_globals,
)
from pullback.transforms.transformed import Function, Transformed, name_of

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
        By backward, if the second run saved other tensors than the first, or returned others.

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


class _Place:
    """Where a saved tensor stands while it exists: until the first run ends, and from the second.

    A counter that is a node which the run made is not kept: it belongs to the graph of the run.
    """

    __slots__ = ("__weakref__", "changed", "like", "run", "tensor", "version")

    def __init__(self, run: _Run, tensor: Tensor, began: int) -> None:
        self.run = run
        self.like = (tuple(tensor.shape), tensor.dtype)
        self.changed = False  # in place, after it was saved
        self.fill(tensor, began)

    def fill(self, tensor: Tensor, began: int) -> None:
        """Keep a tensor that a run saved; nodes are numbered, those of the run from `began`."""
        counter = tensor._counter
        if counter.__class__ is not Counter and counter is not None and counter.seq > began:
            counter = None
        self.tensor: Tensor | None = box(tensor.data_array(), None, counter)
        self.version = version_of(self.tensor)


class _Run:
    """One call of a checkpointed function: what it takes to run it again."""

    def __init__(
        self, fun: Function, args: tuple[Any, ...], kwargs: dict[str, Any], check: bool
    ) -> None:
        self._fun = fun
        self._given = (args, kwargs)
        self._places: list[weakref.ref[_Place]] = []
        self._versions: list[tuple[Any, int]] = []  # of what was saved, while the first run lasts
        self._drawn: Any = {}  # the generators that were drawn from, and where they stood
        self._drawn_globally: GlobalDraws = []
        self._check = check
        self._of_results: Fingerprint | None = None
        self._of_arguments: Fingerprint | None = None  # where hooks around the call may round them
        self._context = copy_context()  # modes, forward mode and whatever else the call stood in
        self._began = next_seq()

    # -- the first run -----------------------------------------------------------------------------
    def first(self) -> Any:
        """Return the results; their graph keeps places instead of arrays."""
        args, kwargs = self._given
        tensors = [x for x in leaves(self._given) if isinstance(x, Tensor)]
        versions = [version_of(t) for t in tensors]
        hooks = SavedTensorHooks(self._made, _tensor_in)
        outer = WRITES.get()
        writes = Writes(outer)
        places = {t._node for t in tensors if t.requires_grad}
        changes = {"hooks": hooks}
        try:
            WRITES.set(writes)
            with watched(self._drawn), watched_globals(self._drawn_globally):
                result = run_in_call(places, run_in_mode, changes, self._fun, *args, **kwargs)
        finally:
            WRITES.set(outer)
            self._let_go()
        if versions != [version_of(t) for t in tensors]:
            required = f"a function that changes no argument in place required, {self._name} does"
            raise InplaceError(f"checkpoint: {required}.\nhint: clone() the argument first.")
        returned = {id(leaf) for leaf in leaves(result)}
        for tensor in writes.left():  # the second run would write once more
            if id(tensor) not in returned:
                raise written_outside("checkpoint", self._fun, tensor)
        if self._check and self._places:
            self._of_results = Fingerprint(result)
            self._of_arguments = None if STATE.get().hooks is None else Fingerprint(self._given)
        self._given = _kept(self._given)
        return result

    def _made(self, tensor: Tensor) -> _Place:
        place = _Place(self, tensor, self._began)
        self._places.append(weakref.ref(place))
        self._versions.append((counter_of(tensor), version_of(tensor)))
        return place

    def _let_go(self) -> None:
        for ref, (counter, version) in zip(self._places, self._versions, strict=True):
            if (place := ref()) is not None:
                place.tensor, place.changed = None, counter.version != version
        self._versions = []

    # -- the second --------------------------------------------------------------------------------
    def again(self) -> None:
        """Fill the places that are still held, by running the function in its old context."""
        # A copy: another run may stand in the same context now.
        try:
            self._context.copy().run(self._again)
        except BaseException:  # what is not the same is not left to the next backward
            for place in filter(None, (ref() for ref in self._places)):
                place.tensor = None
            raise

    def _again(self) -> None:
        began = next_seq()
        args, kwargs = _put_back(self._given, self)
        count = 0

        def fill(tensor: Tensor) -> _Place:
            nonlocal count
            place = self._places[count]() if count < len(self._places) else None
            count += 1
            if count > len(self._places):
                self._differs(f"{count} or more", f"{len(self._places)} tensors")
            if place is None:  # its node is gone, as in a gradient that the function computes
                return _Place(self, tensor, began)
            came = (tuple(tensor.shape), tensor.dtype)
            if came != place.like:
                self._differs(_shown(count, came), _shown(count, place.like))
            place.fill(tensor, began)
            return place

        hooks = SavedTensorHooks(fill, _tensor_in)
        with (
            replayed(self._drawn),
            replayed_globals(self._drawn_globally),
            as_of(self._began),
        ):
            result = run_in_mode({"hooks": hooks}, self._fun, *args, **kwargs)
        if count != len(self._places):
            self._differs(str(count), f"{len(self._places)} tensors")
        self._check_results((args, kwargs), result)

    def _check_results(self, given: Any, result: Any) -> None:
        """Raise where the second run returned other numbers, though it was given the same."""
        other = "" if self._of_results is None else self._of_results.difference(result)
        if other and not (self._of_arguments and self._of_arguments.difference(given)):
            required = f"a second run of {self._name} that returns what the first did required"
            raise GraphError(compose("checkpoint", required, other, hint=_HINT))

    def _differs(self, came: str, required: str) -> NoReturn:
        message = compose(
            "checkpoint",
            f"a second run of {self._name} that saves what the first saved required, {required}",
            came,
            hint=_HINT,
        )
        raise GraphError(message)

    @property
    def _name(self) -> str:
        return name_of(self._fun)

    def name(self) -> str:
        """Return what errors call the node that keeps the arguments."""
        return f"checkpoint of {self._name}"


def _tensor_in(place: _Place) -> Tensor:
    """Return the tensor that belongs in a place."""
    if place.tensor is None and not place.changed:
        place.run.again()
    tensor: Any = place.tensor
    # A graph that is retained keeps what the second run saved.
    if place.changed or version_of(tensor) != place.version:
        raise InplaceError(
            f"{place.run.name()}: one of the variables needed for gradient computation has been "
            f"modified by an inplace operation: a tensor of shape {place.like[0]} that it saved.\n"
            "hint: use the operation that is not in place, or clone() the tensor first."
        )
    return tensor  # type: ignore[no-any-return]


_HINT = (
    "what it computes must depend on nothing but its arguments and what stays as it is: a counter "
    "or a Generator of NumPy's that it closes over goes on. Draw with pullback, np.random or "
    "random, whose draws are repeated, or make the Generator inside, from a seed among the "
    "arguments; check=False leaves the results unchecked"
)


def _shown(count: int, like: tuple[Any, Any]) -> str:
    return f"shape {like[0]}, dtype {like[1].name} for number {count}"


# -- the arguments ---------------------------------------------------------------------------------
class _Argument:
    """What is kept of a tensor among the arguments, packed by the hooks around the call.

    With its edge target, which the results hold anyway: transforms inside of the function look at
    the graph.
    """

    __slots__ = ("array", "cls", "counter", "node", "version")

    def __init__(self, tensor: Tensor) -> None:
        hooks = STATE.get().hooks
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


_THROUGH = Through("CheckpointBackward")


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
    made: dict[int, Tensor] = {}

    def put(leaf: Any) -> Any:
        if not isinstance(leaf, _Argument):
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = leaf.tensor(run)
        return made[id(leaf)]

    result: Sequence[Any] = map_leaves(put, given)
    return result
