"""The call that is checked: which of its arguments are differentiated, its values and gradients.

The modules that use this one work on NumPy arrays on the host: a `Subject` turns them into tensors
of the call's own library and device, runs the function, and converts results and gradients back.
Must not know what a right gradient is.

Memory layouts are kept: a NumPy array reaches the function without a copy. Every run makes new
tensors.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.exceptions import ForwardError
from pullback.check.naming import labels_of, name_of, parameters_of
from pullback.check.values import Array, Arrays, Backend, backend_of, copies, holds_numbers, host
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
        The leaf tensors of the differentiated arguments.
    outputs : list of Tensor
        The differentiable results, in order.
    passed_arrays : list of Tensor or array
        All that were passed to the function.
    """

    def __init__(
        self, tensors: list[Tensor], outputs: list[Tensor], passed_arrays: list[Any]
    ) -> None:
        self.tensors = tensors
        self.outputs = outputs
        self.passed_arrays = passed_arrays

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
            One for each output; None leaves that output out.
        outputs : sequence of int, optional
            Which outputs the seeds are for; by default all.
        retain : bool, default False
            Whether the graph is retained for another pass.
        """
        chosen = self.outputs if outputs is None else [self.outputs[k] for k in outputs]
        pairs = [
            (out, g) for out, g in zip(chosen, seeds, strict=True) if g is not None and out._node
        ]
        wanted = [t for t in self.tensors if t.requires_grad]
        if not pairs:
            return [None] * len(wanted)
        roots, present = zip(*pairs, strict=True)
        cotangents = [
            g if isinstance(g, Tensor) else box(backend_of(out).from_numpy(g))
            for out, g in zip(roots, present, strict=True)
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
    is_flat : bool
        Whether these are the arguments: none is a container.
    labels : list of str
        The names of the leaves.
    tracked : list of int
        The indices of the leaves that are differentiated.
    is_op : bool
        Whether the function is an operation with a backward of its own.
    surrogate : str
        Why the gradient is meant to differ from the derivative; empty if it is not.
    keeps_arrays : bool
        Whether NumPy arrays among the other arguments stay arrays.
    constants : set of int
        The leaves that are tensors: those not differentiated stay tensors at other values.
    backend : Backend
        The library and device of its arrays.
    said : mapping of str to tuple of str
        The names of the lengths of arguments' axes, where they are known.
    base : Subject or None
        Another call of the function, of which the gradients are right.
    works_in_place : bool
        Whether it works in place on a differentiated argument; known after the first run.
    output_indices : list of int or None
        The indices of its results that are differentiated; known after the first run.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        surrogate: str = "",
    ) -> None:
        self.fn = fn
        self.name = name_of(fn)
        self.is_op = isinstance(fn, CustomOp)
        self.surrogate = surrogate or getattr(fn, "surrogate_reason", "")
        self.call = (args, kwargs or {})
        self.leaves = list(tree.leaves(self.call))
        whole = [*args, *self.call[1].values()]
        self.is_flat = len(whole) == len(self.leaves) and all(map(operator.is_, self.leaves, whole))
        self.labels = labels_of(fn, args, kwargs or {})
        self.tracked = self._tracked_leaves()
        self.names = [self.labels[i] for i in self.tracked]
        # Beside tensors that require grad, arrays are what forward is given: constants.
        self.keeps_arrays = any(
            getattr(self.leaves[i], "requires_grad", False) for i in self.tracked
        )
        self.constants = {i for i, value in enumerate(self.leaves) if isinstance(value, Tensor)}
        self.backend = backend_of(self.leaves[self.tracked[0]])
        self.arrays = [host(self.leaves[i]) for i in self.tracked]
        self.said: Mapping[str, tuple[str, ...]] = {}
        self.base: Subject | None = None
        self.works_in_place = False
        self.output_indices: list[int] | None = None

    # -- reading the call ----------------------------------------------------------------------
    def _tracked_leaves(self) -> list[int]:
        """Return the leaves to differentiate: those that require grad, or all that could."""
        reachable = set(range(len(self.leaves)))
        if self.is_op and not getattr(self.fn, "traverse", False):
            reachable = {
                i for i in reachable if self.labels[i].isidentifier() or self._is_whole_argument(i)
            }
        inexact = [
            i
            for i, value in enumerate(self.leaves)
            if i in reachable and holds_numbers(value) and host(value).dtype.kind in "fc"
        ]
        asked = [i for i in inexact if getattr(self.leaves[i], "requires_grad", False)]
        found = asked or inexact
        if not found:
            kinds = ", ".join(_described(v) for v in self.leaves) or "nothing"
            foreign = any(_is_foreign(value) for value in self.leaves)
            hint = "pass pb.asarray(t), or t.numpy(), in place of a tensor t of another library"
            raise ArgumentError(
                f"{self.name}: at least one floating or complex array to differentiate is "
                f"required, got {kinds}.\nhint: "
                f"{hint if foreign else 'pass arrays of dtype float64'}."
            )
        return found

    def _is_whole_argument(self, i: int) -> bool:
        """Return whether a leaf is an argument itself, not an item of a container."""
        args, kwargs = self.call
        return any(self.leaves[i] is value for value in (*args, *kwargs.values()))

    def array_arguments(self) -> list[tuple[str, Array]]:
        """Return every array among the arguments with its name, at the values of this point."""
        pairs = zip(self.labels, self.leaves_on_host(), strict=True)
        return [(label, value) for label, value in pairs if isinstance(value, np.ndarray)]

    def number_arguments(self) -> list[tuple[str, float]]:
        """Return every number among the arguments and the defaults, with its name."""
        found = [(self.labels[i], value) for i, value in enumerate(self.leaves)]
        parameters = parameters_of(self.fn) or []
        found += [(p.name, p.default) for p in parameters if p.name not in self.labels]
        kinds = (int, float, np.integer, np.floating)
        return [
            (name, float(v))
            for name, v in found
            if isinstance(v, kinds) and not isinstance(v, bool)
        ]

    # -- the same call at other values ---------------------------------------------------------
    def with_arrays(self, arrays: Arrays, backend: Backend | None = None) -> Subject:
        """Return the same call with other values of its differentiated arguments."""
        other: Subject = object.__new__(Subject)
        other.__dict__.update(self.__dict__)
        other.arrays = list(arrays)
        other.backend = backend or self.backend
        return other

    def leaves_on_host(self) -> list[Any]:
        """Return the leaves, with tensors and arrays as NumPy arrays at this point."""
        values = dict(zip(self.tracked, self.arrays, strict=True))
        return [
            values[i] if i in values else host(value) if holds_numbers(value) else value
            for i, value in enumerate(self.leaves)
        ]

    def with_leaves(self, leaves: Sequence[Any]) -> Subject:
        """Return the same call with other leaves; those at the same indices are differentiated."""
        other = self.with_arrays([np.asarray(leaves[i]) for i in self.tracked])
        pieces = iter(leaves)
        other.call = tree.map_leaves(lambda _: next(pieces), self.call)
        other.leaves = list(leaves)
        other.output_indices = None
        return other

    def settings(self) -> list[tuple[str, Any]]:
        """Return the arguments that are no arrays, and the defaults left as they are, by name."""
        parameters = parameters_of(self.fn) or []
        own = {p.name for p in parameters}
        found = [
            (label, value)
            for label, value in zip(self.labels, self.leaves, strict=True)
            if label in own and not holds_numbers(value)
        ]
        named = {label.split("[")[0] for label in self.labels}
        found += [
            (p.name, p.default)
            for p in parameters
            if p.name not in named and p.default is not p.empty
        ]
        return found

    def default_of(self, name: str) -> Any:
        """Return the default of a parameter; `inspect.Parameter.empty` if it has none."""
        defaults = {p.name: p.default for p in parameters_of(self.fn) or []}
        return defaults.get(name, inspect.Parameter.empty)

    def with_setting(self, name: str, value: Any) -> Subject | None:
        """Return the same call with another value of a setting; None if it would be another one."""
        args, kwargs = self.call
        positional = [p.name for p in parameters_of(self.fn) or []][: len(args)]
        if name in positional:
            k = positional.index(name)
            args = (*args[:k], value, *args[k + 1 :])
        else:
            kwargs = {**kwargs, name: value}
        try:
            other = Subject(self.fn, args, kwargs, self.surrogate)
        except ArgumentError:
            return None
        return other.with_arrays(self.arrays) if other.names == self.names else None

    # -- running it ----------------------------------------------------------------------------
    def tensors(self, arrays: Arrays, wanted: Sequence[int] | None) -> list[Any]:
        """Return all leaves of the call, with new tensors; those at `wanted` require grad."""
        values = dict(zip(self.tracked, arrays, strict=True))
        leaves: list[Any] = []
        for i, value in enumerate(self.leaves):
            if i in values:
                t = box(self.backend.from_numpy(values[i]))
                if wanted is None or self.tracked.index(i) in wanted:
                    t.requires_grad_()
                leaves.append(t)
            elif isinstance(value, np.ndarray) and self.keeps_arrays and i not in self.constants:
                leaves.append(value.copy())
            elif holds_numbers(value):
                leaves.append(box(self.backend.from_numpy(host(value).copy())))
            else:
                leaves.append(value)
        return leaves

    def run(self, arrays: Arrays | None = None, wanted: Sequence[int] | None = None) -> Run:
        """Run the function and record it.

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
        if self.output_indices is None:
            probed = self._probe()
            if arrays is None and wanted is None:
                return probed
        return self._run(self.arrays if arrays is None else arrays, wanted)

    def _probe(self) -> Run:
        """Find out whether the function works in place, and which results are differentiated.

        On copies: a function that works in place may write before it raises for a leaf.
        """
        if self.keeps_arrays:
            try:
                return self._run(copies(self.arrays), None)
            except ForwardError:  # perhaps since it takes tensors alone
                self.keeps_arrays = False
        try:
            return self._run(copies(self.arrays), None)
        except ForwardError as error:
            cause = error.__cause__
            if not isinstance(cause, InplaceError) or "leaf Variable" not in str(cause):
                raise
            self.works_in_place = True
            return self._run(copies(self.arrays), None)

    def _run(self, arrays: Arrays, wanted: Sequence[int] | None) -> Run:
        leaves = self.tensors(arrays, wanted)
        passed = list(leaves)
        if self.works_in_place:
            for i in self.tracked:
                passed[i] = _non_leaf(leaves[i])
        return self._run_on(leaves, passed)

    def run_leaves(self, leaves: Sequence[Any]) -> Run:
        """Run the function on these leaves of its arguments, as they are.

        Raises
        ------
        ForwardError
            If the function raises.
        """
        return self._run_on(leaves, leaves)

    def _run_on(self, leaves: Sequence[Any], passed: Sequence[Any]) -> Run:
        """Call the function on `passed`, which were computed from the leaves to differentiate."""
        results = self._call(passed)
        if self.output_indices is None:
            recorded = [k for k, out in enumerate(results) if out.requires_grad]
            self.output_indices = recorded or list(range(len(results)))
        outputs = [results[k] for k in self.output_indices]
        passed_arrays = [v for v in passed if isinstance(v, (Tensor, np.ndarray))]
        return Run([leaves[i] for i in self.tracked], outputs, passed_arrays)

    def values(self, arrays: Arrays) -> list[Array]:
        """Return the differentiable outputs at these values, computed without recording."""
        if self.output_indices is None:
            probed = self._probe()
            if arrays is self.arrays:
                return probed.values()
        if self.works_in_place:
            arrays = copies(arrays)
        with no_grad():
            results = self._call(self.tensors(arrays, ()))
        return [host(results[k]) for k in self.output_indices or ()]

    def results(self, leaves: Sequence[Any]) -> list[Tensor]:
        """Call the function on these leaves; return the tensors that could be differentiated."""
        if self.is_flat:
            count = len(self.call[0])
            keywords = dict(zip(self.call[1], leaves[count:], strict=True))
            found = tree.leaves(self.fn(*leaves[:count], **keywords))
        else:
            pieces = iter(leaves)
            args, kwargs = tree.map_leaves(lambda _: next(pieces), self.call)
            found = tree.leaves(self.fn(*args, **kwargs))
        return [t for t in found if isinstance(t, Tensor) and t.dtype.is_inexact]

    def _call(self, leaves: Sequence[Any]) -> list[Tensor]:
        """Call the function; its exceptions become a `ForwardError`."""
        try:
            # Trial inputs may lie outside of the domain: NumPy's warnings are expected.
            with deadline().call(), np.errstate(all="ignore"):
                return self.results(leaves)
        except Exception as error:
            raise ForwardError(f"{type(error).__name__}: {error}") from error


def _non_leaf(leaf: Tensor) -> Tensor:
    """Return a non-leaf on a copy of the leaf's memory: in-place operations refuse leaves."""
    array = leaf.data_array()
    copy = leaf.clone()
    if isinstance(array, np.ndarray):  # keep the memory layout
        array_copy = np.empty_like(array)
        array_copy[...] = array
        return box(array_copy, copy._node)
    return copy


def _described(value: Any) -> str:
    if holds_numbers(value):
        return f"an array of {host(value).dtype}"
    kind = type(value).__name__
    return f"a {type(value).__module__}.{kind} of {value.dtype}" if _is_foreign(value) else kind


def _is_foreign(value: Any) -> bool:
    """Return whether a value is an array of a library that is not among those known here."""
    return hasattr(value, "__array__") and hasattr(value, "dtype") and not holds_numbers(value)
