"""The call that is checked: what of its arguments is differentiated, its values and gradients.

Everything above this module works on NumPy arrays on the host: a `Subject` turns them into tensors
of the library and device that the call was given in, runs the function, and brings results and
gradients back. Must not know what a right gradient is.

Layouts are kept: an array of NumPy reaches the function as it is. Every run makes its tensors anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.naming import labels_of, name_of, parameters_of
from pullback.check.values import Array, Arrays, Place, copies, holds_numbers, host, place_of
from pullback.core.backward.api import grad
from pullback.core.custom import pytree as tree
from pullback.core.custom.operation import CustomOp
from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, InplaceError


class Run:
    """One run of the function: its tensors, and the outputs that are differentiated.

    Attributes
    ----------
    tensors : list of Tensor
        The leaves at the differentiated arguments.
    outputs : list of Tensor
        The differentiable results, in order.
    everything : list of Tensor
        All tensors that the function was given.
    """

    def __init__(
        self, tensors: list[Tensor], outputs: list[Tensor], everything: list[Tensor]
    ) -> None:
        self.tensors = tensors
        self.outputs = outputs
        self.everything = everything

    def values(self) -> list[Array]:
        """Return the outputs as arrays."""
        return [host(out) for out in self.outputs]

    def vjp(
        self,
        seeds: Sequence[Any],
        outputs: Sequence[int] | None = None,
        *,
        retain: bool = False,
    ) -> list[Tensor | None]:
        """Return the gradient of each leaf that requires one, for these output gradients.

        Parameters
        ----------
        seeds : sequence of array or Tensor
            One an output; None leaves that output out.
        outputs : sequence of int, optional
            Which outputs the seeds are for; by default all.
        retain : bool, default False
            Whether what was saved is kept for another pass.
        """
        chosen = self.outputs if outputs is None else [self.outputs[k] for k in outputs]
        pairs = [
            (out, g) for out, g in zip(chosen, seeds, strict=True) if g is not None and out._node
        ]
        wanted = [t for t in self.tensors if t.requires_grad]
        if not pairs:
            return [None] * len(wanted)
        roots, given = zip(*pairs, strict=True)
        cotangents = [
            g if isinstance(g, Tensor) else box(place_of(out).put(g))
            for out, g in zip(roots, given, strict=True)
        ]
        return list(grad(roots, wanted, cotangents, retain, allow_unused=True))


class Subject:
    """A function with the arguments of one call.

    Attributes
    ----------
    name : str
        The function's name.
    names : list of str
        The names of the differentiated arguments.
    arrays : list of numpy.ndarray
        Their values.
    leaves : list
        All tensors, arrays and other values among the arguments, in order.
    labels : list of str
        The names of the leaves.
    tracked : list of int
        Which of the leaves are differentiated.
    is_op : bool
        Whether the function is an operation with a backward of its own.
    place : Place
        Where its arrays live.
    dirty : bool
        Whether it works in place on a differentiated argument; known after the first run.
    kept : list of int or None
        Which of its results are differentiated; known after the first run.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.name = name_of(fn)
        self.is_op = isinstance(fn, CustomOp)
        self.call = (args, kwargs or {})
        self.leaves = list(tree.leaves(self.call))
        self.labels = labels_of(fn, args, kwargs or {})
        self.tracked = self._choose()
        self.names = [self.labels[i] for i in self.tracked]
        self.place = place_of(self.leaves[self.tracked[0]])
        self.arrays = [host(self.leaves[i]) for i in self.tracked]
        self.dirty = False
        self.kept: list[int] | None = None

    # -- reading the call ----------------------------------------------------------------------
    def _choose(self) -> list[int]:
        """Return which leaves are differentiated: those that require grad, or all that could."""
        reachable = set(range(len(self.leaves)))
        if self.is_op and not getattr(self.fn, "traverse", False):
            reachable = {i for i in reachable if self.labels[i].isidentifier() or self._direct(i)}
        inexact = [
            i
            for i, value in enumerate(self.leaves)
            if i in reachable and holds_numbers(value) and host(value).dtype.kind in "fc"
        ]
        asked = [i for i in inexact if getattr(self.leaves[i], "requires_grad", False)]
        found = asked or inexact
        if not found:
            kinds = ", ".join(_described(v) for v in self.leaves) or "nothing"
            raise ArgumentError(
                f"{self.name}: at least one floating or complex array to differentiate is "
                f"required, got {kinds}.\nhint: pass arrays of dtype float64."
            )
        return found

    def _direct(self, i: int) -> bool:
        """Return whether a leaf is an argument itself, not an item of a container."""
        args, kwargs = self.call
        return any(self.leaves[i] is value for value in (*args, *kwargs.values()))

    def given_arrays(self) -> list[tuple[str, Array]]:
        """Return every array among the arguments with its name, as it is at this point."""
        pairs = zip(self.labels, self.leaves_on_host(), strict=True)
        return [(label, value) for label, value in pairs if isinstance(value, np.ndarray)]

    def given_numbers(self) -> list[tuple[str, float]]:
        """Return every number among the arguments, defaults of the function too, by name."""
        found = [(self.labels[i], value) for i, value in enumerate(self.leaves)]
        parameters = parameters_of(self.fn) or []
        found += [(p.name, p.default) for p in parameters if p.name not in self.labels]
        kinds = (int, float, np.integer, np.floating)
        return [
            (name, float(v))
            for name, v in found
            if isinstance(v, kinds) and not isinstance(v, bool)
        ]

    # -- the same call elsewhere ---------------------------------------------------------------
    def at(self, arrays: Arrays, place: Place | None = None) -> Subject:
        """Return the same call with other values of its differentiated arguments."""
        other: Subject = object.__new__(Subject)
        other.__dict__.update(self.__dict__)
        other.arrays = list(arrays)
        other.place = place or self.place
        return other

    def leaves_on_host(self) -> list[Any]:
        """Return the leaves, tensors and arrays as NumPy arrays with the values of this point."""
        values = dict(zip(self.tracked, self.arrays, strict=True))
        return [
            values[i] if i in values else host(value) if holds_numbers(value) else value
            for i, value in enumerate(self.leaves)
        ]

    def with_leaves(self, leaves: Sequence[Any]) -> Subject:
        """Return the same call with other leaves; those at the same places are differentiated."""
        other = self.at([np.asarray(leaves[i]) for i in self.tracked])
        pieces = iter(leaves)
        other.call = tree.map_leaves(lambda _: next(pieces), self.call)
        other.leaves = list(leaves)
        other.kept = None
        return other

    # -- running it ----------------------------------------------------------------------------
    def tensors(self, arrays: Arrays, wanted: Sequence[int] | None) -> list[Any]:
        """Return all leaves of the call, tensors made anew; those at `wanted` require grad."""
        values = dict(zip(self.tracked, arrays, strict=True))
        leaves: list[Any] = []
        for i, value in enumerate(self.leaves):
            if i in values:
                t = box(self.place.put(values[i]))
                if wanted is None or self.tracked.index(i) in wanted:
                    t.requires_grad_()
                leaves.append(t)
            elif holds_numbers(value):
                leaves.append(box(self.place.put(host(value).copy())))
            else:
                leaves.append(value)
        return leaves

    def run(self, arrays: Arrays | None = None, wanted: Sequence[int] | None = None) -> Run:
        """Run the function, recorded.

        Parameters
        ----------
        arrays : sequence of array, optional
            Values of the differentiated arguments; by default those of the call.
        wanted : sequence of int, optional
            Which of them require grad; by default all.

        Raises
        ------
        ForwardError
            If the function raises.
        """
        if self.kept is None:
            self._look()
        return self._run(self.arrays if arrays is None else arrays, wanted)

    def _look(self) -> None:
        """Find out whether the function works in place, and which results are differentiated.

        On copies: a function that works in place writes before it is refused a leaf.
        """
        try:
            self._run(copies(self.arrays), None)
        except ForwardError as error:
            cause = error.__cause__
            if not isinstance(cause, InplaceError) or "leaf Variable" not in str(cause):
                raise
            self.dirty = True
            self._run(copies(self.arrays), None)

    def _run(self, arrays: Arrays, wanted: Sequence[int] | None) -> Run:
        leaves = self.tensors(arrays, wanted)
        given = list(leaves)
        if self.dirty:
            for i in self.tracked:
                given[i] = _behind(leaves[i])
        return self._run_of(leaves, given)

    def run_leaves(self, leaves: Sequence[Any]) -> Run:
        """Run the function on these leaves of its arguments, as they are.

        Raises
        ------
        ForwardError
            If the function raises.
        """
        return self._run_of(leaves, leaves)

    def _run_of(self, leaves: Sequence[Any], given: Sequence[Any]) -> Run:
        """Call the function on `given`, which stand for the leaves to differentiate."""
        results = self._attempt(given)
        if self.kept is None:
            recorded = [k for k, out in enumerate(results) if out.requires_grad]
            self.kept = recorded or list(range(len(results)))
        outputs = [results[k] for k in self.kept]
        everything = [t for t in given if isinstance(t, Tensor)]
        return Run([leaves[i] for i in self.tracked], outputs, everything)

    def values(self, arrays: Arrays) -> list[Array]:
        """Return the differentiable outputs at these values, computed without recording."""
        if self.kept is None:
            self._look()
        if self.dirty:
            arrays = copies(arrays)
        with no_grad():
            results = self._attempt(self.tensors(arrays, ()))
        return [host(results[k]) for k in self.kept or ()]

    def results(self, leaves: Sequence[Any]) -> list[Tensor]:
        """Call the function on these leaves; return the tensors that could be differentiated."""
        pieces = iter(leaves)
        args, kwargs = tree.map_leaves(lambda _: next(pieces), self.call)
        found = tree.leaves(self.fn(*args, **kwargs))
        return [t for t in found if isinstance(t, Tensor) and t.dtype.is_inexact]

    def _attempt(self, leaves: Sequence[Any]) -> list[Tensor]:
        """Call the function; what it raises is a `ForwardError`."""
        try:
            # Trial inputs may lie outside of the domain: what NumPy says of that is no news.
            with np.errstate(all="ignore"):
                return self.results(leaves)
        except Exception as error:
            raise ForwardError(f"{type(error).__name__}: {error}") from error


def _behind(leaf: Tensor) -> Tensor:
    """Return a non-leaf on a copy of the leaf's memory: operations in place refuse leaves."""
    array = leaf.data_array()
    through = leaf.clone()
    if isinstance(array, np.ndarray):  # in the same layout
        laid = np.empty_like(array)
        laid[...] = array
        return box(laid, through._node)
    return through


def _described(value: Any) -> str:
    if holds_numbers(value):
        return f"an array of {host(value).dtype}"
    return type(value).__name__
