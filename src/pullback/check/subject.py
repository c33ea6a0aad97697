"""The call that is checked: what of its arguments is differentiated, its values and gradients.

Everything above this module works on NumPy arrays on the host: a `Subject` turns them into tensors
of the library and device that the call was given in, runs the function, and brings results and
gradients back. Layouts are kept: an array of NumPy reaches the function as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.arrays import NUMPY, Library, is_array, library_of
from pullback.core import tree
from pullback.core.api import grad
from pullback.core.custom import CustomOp
from pullback.core.modes import no_grad
from pullback.core.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, InplaceError

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


class ForwardError(Exception):
    """The function does not take these inputs; the cause is its own exception."""


class Place(NamedTuple):
    """Where arrays of the call live: the library, the device's name."""

    library: Library
    device: str

    def put(self, array: Array) -> Any:
        """Return a NumPy array as one of this place."""
        if self.library is NUMPY:
            return np.asarray(array)
        return self.library.from_numpy(array, self.library.native_device(self.device))


CPU = Place(NUMPY, "cpu")


def host(value: Any) -> Array:
    """Return the values of a tensor or an array as a NumPy array."""
    array = value.data_array() if isinstance(value, Tensor) else value
    return array if isinstance(array, np.ndarray) else library_of(array).to_numpy(array)


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
        recorded: bool = False,
    ) -> list[Tensor | None]:
        """Return the gradient of each leaf that requires one, for these output gradients.

        Parameters
        ----------
        seeds : sequence of array or Tensor
            One an output; None leaves that output out.
        outputs : sequence of int, optional
            Which outputs the seeds are for; by default all.
        retain, recorded : bool
            As retain_graph and create_graph of `pullback.autograd.grad`.
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
        return list(grad(roots, wanted, cotangents, retain, recorded, allow_unused=True))


def place_of(tensor: Tensor) -> Place:
    """Return where a tensor lives."""
    return Place(library_of(tensor.data_array()), tensor.device)


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
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        *,
        every_array: bool = True,
    ) -> None:
        self.fn = fn
        self.name = name_of(fn)
        self.is_op = isinstance(fn, CustomOp)
        self.call = (args, kwargs or {})
        self._leaves = list(tree.leaves(self.call))
        self.labels = self._labels()
        self.tracked = self._choose(every_array)
        self.names = [self.labels[i] for i in self.tracked]
        self.place = self._find_place()
        self.arrays = [host(self._leaves[i]) for i in self.tracked]
        self.dirty = False  # whether it works in place on a differentiated argument
        self.kept: list[int] | None = None  # which results are differentiated

    # -- reading the call ---------------------------------------------------------------------
    def _labels(self) -> list[str]:
        """Name every leaf of the arguments."""
        args, kwargs = self.call
        try:
            bound = inspect.signature(self.fn).bind(*args, **kwargs)
            positional = _positional_names(bound, len(args))
        except (TypeError, ValueError):
            positional = [f"input {i}" for i in range(len(args))]
        labels: list[str] = []
        for name, value in [*zip(positional, args, strict=True), *kwargs.items()]:
            labels += _paths(name, value)
        return labels

    def _choose(self, every_array: bool) -> list[int]:
        """Return which leaves are differentiated: those that require grad, or all that could."""
        reachable = set(range(len(self._leaves)))
        if self.is_op and not getattr(self.fn, "traverse", False):
            reachable = {i for i in reachable if self.labels[i].isidentifier() or self._direct(i)}
        inexact = [
            i
            for i, value in enumerate(self._leaves)
            if i in reachable
            and (isinstance(value, Tensor) or (every_array and is_array(value)))
            and host(value).dtype.kind in "fc"
        ]
        asked = [i for i in inexact if getattr(self._leaves[i], "requires_grad", False)]
        found = asked or inexact
        if not found:
            kinds = ", ".join(_described(v) for v in self._leaves) or "nothing"
            raise ArgumentError(
                f"{self.name}: at least one floating or complex array to differentiate is "
                f"required, got {kinds}.\nhint: pass arrays of dtype float64."
            )
        return found

    def _direct(self, i: int) -> bool:
        """Return whether a leaf is an argument itself, not an item of a container."""
        args, kwargs = self.call
        return any(self._leaves[i] is value for value in (*args, *kwargs.values()))

    def _find_place(self) -> Place:
        value = self._leaves[self.tracked[0]]
        if isinstance(value, Tensor):
            return place_of(value)
        library = library_of(value)
        return Place(library, library.device(value))

    def given_arrays(self) -> list[tuple[str, Array]]:
        """Return every array among the arguments with its name, as it is at this point."""
        values = dict(zip(self.tracked, self.arrays, strict=True))
        return [
            (self.labels[i], values[i] if i in values else host(value))
            for i, value in enumerate(self._leaves)
            if isinstance(value, Tensor) or is_array(value)
        ]

    def given_numbers(self) -> list[tuple[str, float]]:
        """Return every number among the arguments, defaults of the function too, by name."""
        found = [(self.labels[i], value) for i, value in enumerate(self._leaves)]
        try:
            for p in inspect.signature(self.fn).parameters.values():
                if p.name not in self.labels:
                    found.append((p.name, p.default))
        except (TypeError, ValueError):
            pass
        kinds = (int, float, np.integer, np.floating)
        return [
            (name, float(v))
            for name, v in found
            if isinstance(v, kinds) and not isinstance(v, bool)
        ]

    def at(self, arrays: Arrays, place: Place | None = None) -> Subject:
        """Return the same call with other values of its differentiated arguments."""
        other: Subject = object.__new__(Subject)
        other.__dict__.update(self.__dict__)
        other.arrays = list(arrays)
        other.place = place or self.place
        return other

    # -- running it ---------------------------------------------------------------------------
    def tensors(self, arrays: Arrays, wanted: Sequence[int] | None) -> list[Any]:
        """Return all leaves of the call, tensors made anew; those at `wanted` require grad."""
        values = dict(zip(self.tracked, arrays, strict=True))
        leaves: list[Any] = []
        for i, value in enumerate(self._leaves):
            if i in values:
                t = box(self.place.put(values[i]))
                if wanted is None or self.tracked.index(i) in wanted:
                    t.requires_grad_()
                leaves.append(t)
            elif isinstance(value, Tensor) or is_array(value):
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
            self._run([a.copy() for a in self.arrays], None)
        except ForwardError as error:
            cause = error.__cause__
            if not isinstance(cause, InplaceError) or "leaf Variable" not in str(cause):
                raise
            self.dirty = True
            self._run([a.copy() for a in self.arrays], None)

    def _run(self, arrays: Arrays, wanted: Sequence[int] | None) -> Run:
        leaves = self.tensors(arrays, wanted)
        tracked = [leaves[i] for i in self.tracked]
        given = list(leaves)
        if self.dirty:
            for i in self.tracked:
                given[i] = _behind(leaves[i])
        results = self._tensors_of(self._call(given))
        if self.kept is None:
            recorded = [k for k, out in enumerate(results) if out.requires_grad]
            self.kept = recorded or list(range(len(results)))
        everything = [t for t in given if isinstance(t, Tensor)]
        return Run(tracked, [results[k] for k in self.kept], everything)

    def values(self, arrays: Arrays) -> list[Array]:
        """Return the differentiable outputs at these values, computed without recording."""
        if self.kept is None:
            self._look()
        if self.dirty:
            arrays = [a.copy() for a in arrays]
        with no_grad():
            results = self._tensors_of(self._call(self.tensors(arrays, ())))
        return [host(results[k]) for k in self.kept or ()]

    def call_with(self, leaves: Sequence[Any]) -> Any:
        """Call the function on these leaves of its arguments."""
        pieces = iter(leaves)
        args, kwargs = tree.map_leaves(lambda _: next(pieces), self.call)
        return self.fn(*args, **kwargs)

    def _call(self, leaves: Sequence[Any]) -> Any:
        try:
            # Trial inputs may lie outside of the domain: what NumPy says of that is no news.
            with np.errstate(all="ignore"):
                return self.call_with(leaves)
        except Exception as error:
            raise ForwardError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def _tensors_of(result: Any) -> list[Tensor]:
        return [t for t in tree.leaves(result) if isinstance(t, Tensor) and t.dtype.is_inexact]


def _behind(leaf: Tensor) -> Tensor:
    """Return a non-leaf on a copy of the leaf's memory: operations in place refuse leaves."""
    array = leaf.data_array()
    through = leaf.clone()
    if isinstance(array, np.ndarray):  # in the same layout
        laid = np.empty_like(array)
        laid[...] = array
        return box(laid, through._node)
    return through


def name_of(fn: Any) -> str:
    """Return how messages name a function."""
    found = getattr(fn, "name", None) or getattr(fn, "__name__", None)
    owner = getattr(fn, "__self__", None)
    if found == "apply" and owner is not None:
        found = getattr(owner, "__name__", found)
    return str(found or type(fn).__name__)


def _positional_names(bound: inspect.BoundArguments, count: int) -> list[str]:
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(value))]
        elif kind is not inspect.Parameter.VAR_KEYWORD:
            names.append(name)
    return names[:count]


def _paths(name: str, value: Any) -> Iterator[str]:
    """Yield a name for each leaf of an argument."""
    items = tree.children(value)
    if items is None:
        yield name
        return
    for key, item in items:
        yield from _paths(f"{name}[{key!r}]", item)


def _described(value: Any) -> str:
    if isinstance(value, Tensor) or is_array(value):
        return f"an array of {host(value).dtype}"
    return type(value).__name__


def as_arguments(api: str, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments from what a user calls the inputs."""
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    if isinstance(inputs, Tensor) or is_array(inputs):
        return (inputs,), {}
    raise ArgumentTypeError(
        f"{api}: inputs must be a tensor, a tuple of arguments or a dict of them by name, got "
        f"{type(inputs).__name__}"
    )
