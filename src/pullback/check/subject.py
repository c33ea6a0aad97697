"""The call that is checked: its function and names, what is differentiated, values and gradients.

The modules that use this one work on NumPy arrays on the host: a `Subject` turns them into tensors
of the call's own library and device, runs the function, and converts results and gradients back.
Must not know what a right gradient is.

Memory layouts are kept: a NumPy array reaches the function without a copy. Every run makes new
tensors.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gc
import inspect
import sys
import sysconfig
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.values import Array, Arrays, backend_of, copies, holds_numbers, host
from pullback.core.backward.api import grad
from pullback.core.custom import pytree as tree
from pullback.core.custom.operation import CustomOp
from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, InplaceError

# Whose lines are not counted: this package, what it generates, and the standard library, where
# objects are finalized.
_OWN = (str(Path(__file__).parents[1]), "<pullback", sysconfig.get_path("stdlib"))


class ForwardError(Exception):
    """The function raised for these inputs; ``__cause__`` is its own exception."""


class BackwardError(Exception):
    """Backward raised; ``__cause__`` is its own exception."""


@contextlib.contextmanager
def calling(kind: type[BackwardError | ForwardError]) -> Iterator[None]:
    """Time a call of the function or of its backward; its exceptions become a `kind`."""
    try:
        # Trial inputs may lie outside of the domain: NumPy's warnings are expected.
        with deadline().call(), np.errstate(all="ignore"):
            yield
    except Exception as error:
        text = str(error)
        every = traceback.extract_tb(error.__traceback__)
        lines = [line for line in every if not line.filename.startswith(_OWN)]
        if lines and (not text or isinstance(error, (NameError, AttributeError))):
            where = f"(line {lines[-1].lineno} of {Path(lines[-1].filename).name})"
            first, *rest = (text or str(lines[-1].line)).split("\n")
            text = "\n".join([f"{first} {where}", *rest])
        raise kind(f"{type(error).__name__}: {text}") from error


@dataclasses.dataclass
class Run:
    """One run of the function."""

    tensors: list[Tensor]  # the leaves that are differentiated
    outputs: list[Tensor]  # the differentiable results, in order
    passed_arrays: list[Any]  # all tensors and arrays that were passed to the function

    def values(self) -> list[Array]:
        """Return copies of the outputs: a later call may write to their memory."""
        return [host(out).copy(order="K") for out in self.outputs]

    def vjp(self, seeds: Sequence[Any], *, retain: bool = False) -> list[Tensor | None]:
        """Return the gradient of each leaf that requires one.

        `seeds` are arrays or tensors; None leaves an output out. `retain` keeps the graph.
        """
        found = [
            (out, g if isinstance(g, Tensor) else box(backend_of(out).from_numpy(g)))
            for out, g in zip(self.outputs, seeds, strict=True)
            if g is not None and out._node
        ]
        if not found:
            return [None] * len(self.wanted)
        roots, cotangents = zip(*found, strict=True)
        return list(grad(roots, self.wanted, cotangents, retain, allow_unused=True))

    @property
    def wanted(self) -> list[Tensor]:
        """The leaves that require a gradient."""
        return [t for t in self.tensors if t.requires_grad]

    def gradients(self, seeds: Sequence[Any]) -> list[Array]:
        """Return copies of these gradients, zeros for None; the graph is kept.

        A `BackwardError` is raised if backward raises, or if a built-in rule, which the engine
        trusts, gives another shape.
        """
        with calling(BackwardError):
            found = self.vjp(seeds, retain=True)
        like = [host(t) for t in self.wanted]
        pairs = zip(found, like, strict=True)
        grads = [np.zeros_like(a) if g is None else host(g).copy(order="K") for g, a in pairs]
        if [g.shape for g in grads] != [a.shape for a in like]:
            raise BackwardError("a gradient has another shape than its argument")
        return grads


class Subject:
    """A function with the arguments of one call; `arrays` are those that are differentiated."""

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        surrogate: str = "",
    ) -> None:
        self.fn = fn
        self.name = name_of(fn)
        self.is_op = isinstance(fn, CustomOp)  # with a backward of its own
        # Why the gradient is meant to differ from the derivative; empty if it is not.
        self.surrogate = surrogate or getattr(fn, "surrogate_reason", "")
        self.call = (args, kwargs or {})
        self.leaves = list(tree.leaves(self.call))  # tensors, arrays and other values
        self.labels = labels_of(fn, args, kwargs or {})  # the names of these
        self.defaults = {p.name: p.default for p in parameters_of(fn) or []}  # `p.empty` for none
        self.tracked = self._tracked_leaves()  # the indices of those that are differentiated
        self.names = [self.labels[i] for i in self.tracked]
        # Beside tensors that require grad, arrays are what forward is given: constants.
        marked = any(getattr(self.leaves[i], "requires_grad", False) for i in self.tracked)
        arrays = {i for i, value in enumerate(self.leaves) if isinstance(value, np.ndarray)}
        self._constants = arrays - {*self.tracked} if marked else set[int]()
        self.backend = backend_of(self.leaves[self.tracked[0]])
        # Copies: forward may write to what it is given, and those are the caller's.
        self.arrays = [host(self.leaves[i]).copy(order="K") for i in self.tracked]
        self.said: Mapping[str, tuple[str, ...]] = {}  # names of lengths, by argument
        self.base: Subject | None = None  # another call, of which the gradients are right
        # Known after the first run: whether it works in place on a differentiated argument, and
        # which of its results are differentiated.
        self.works_in_place = False
        self.output_indices: list[int] | None = None

    # -- reading the call ----------------------------------------------------------------------
    def _tracked_leaves(self) -> list[int]:
        """Return the leaves to differentiate: those that require grad, or all that could."""
        args, kwargs = self.call
        whole = {id(value) for value in (*args, *kwargs.values())}
        inside = not self.is_op or getattr(self.fn, "traverse", False)  # containers are looked into
        pairs = zip(self.leaves, self.labels, strict=True)
        found = [
            i
            for i, (value, label) in enumerate(pairs)
            if (inside or label.isidentifier() or id(value) in whole)
            and holds_numbers(value)
            and host(value).dtype.kind in "fc"
        ]
        if not found:
            kinds = ", ".join(dict.fromkeys(map(_described, self.leaves))) or "nothing"
            raise ArgumentError(
                f"{self.name}: at least one floating or complex array to differentiate is "
                f"required, got {kinds}.\nhint: pass arrays of dtype float64: np.array(...) of a "
                "list, pb.asarray(t), or t.numpy(), in place of a tensor t of another library."
            )
        return [i for i in found if getattr(self.leaves[i], "requires_grad", False)] or found

    def leaves_on_host(self) -> list[Any]:
        """Return the leaves, with tensors and arrays as NumPy arrays at this point."""
        found = [host(value) if holds_numbers(value) else value for value in self.leaves]
        for i, array in zip(self.tracked, self.arrays, strict=True):
            found[i] = array
        return found

    def array_arguments(self) -> list[tuple[str, Array]]:
        """Return every array among the arguments with its name, at the values of this point."""
        pairs = zip(self.labels, self.leaves_on_host(), strict=True)
        return [(label, value) for label, value in pairs if isinstance(value, np.ndarray)]

    def settings(self) -> list[tuple[str, Any]]:
        """Return the arguments that are no arrays, and the defaults left as they are, by name."""
        found = dict(zip(self.labels, self.leaves, strict=True))
        args, kwargs = self.call
        given, empty = {*[*self.defaults][: len(args)], *kwargs}, inspect.Parameter.empty
        left = {n: v for n, v in self.defaults.items() if n not in given and v is not empty}
        return [(n, v) for n, v in (found | left).items() if not holds_numbers(v)]

    def number_arguments(self) -> list[tuple[str, float]]:
        """Return every number among the arguments and the defaults, with its name."""
        kinds = (int, float, np.integer, np.floating)
        named = [(n, v) for n, v in self.settings() if isinstance(v, kinds)]
        return [(name, float(v)) for name, v in named if not isinstance(v, bool)]

    # -- the same call at other values ---------------------------------------------------------
    def with_arrays(self, arrays: Arrays) -> Subject:
        """Return the same call with other values of its differentiated arguments."""
        other = copy.copy(self)
        other.arrays = list(arrays)
        return other

    def with_leaves(self, leaves: Sequence[Any]) -> Subject:
        """Return the same call with other leaves; those at the same indices are differentiated."""
        other = self.with_arrays([np.asarray(leaves[i]) for i in self.tracked])
        pieces = iter(leaves)
        other.call = tree.map_leaves(lambda _: next(pieces), self.call)
        other.leaves = list(leaves)
        other.output_indices = None
        return other

    def with_setting(self, name: str, value: Any) -> Subject | None:
        """Return the same call with another value of a setting; None if it would be another one."""
        args, kwargs = self.call
        positional = [*self.defaults][: len(args)]
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
        leaves: list[Any] = []
        for i, value in enumerate(self.leaves):
            if i in self.tracked:
                k = self.tracked.index(i)
                leaves.append(box(self.backend.from_numpy(arrays[k])))
                if wanted is None or k in wanted:
                    leaves[i].requires_grad_()
            elif i in self._constants:
                leaves.append(value.copy())
            elif holds_numbers(value):
                leaves.append(box(self.backend.from_numpy(host(value).copy())))
            else:
                leaves.append(value)
        return leaves

    def run(self, arrays: Arrays | None = None, wanted: Sequence[int] | None = None) -> Run:
        """Run the function and record it; raise `ForwardError` if it raises.

        At other values of the differentiated arguments if `arrays` are given, and with grad
        required for those `wanted`, by default for all.
        """
        if self.output_indices is None:
            probed = self._probe()
            if arrays is None and wanted is None:
                return probed
        return self.run_leaves(self.tensors(self.arrays if arrays is None else arrays, wanted))

    def _probe(self) -> Run:
        """Find out whether the function works in place, and which results are differentiated.

        On copies: a function that works in place may write before it raises for a leaf.
        """
        try:
            return self.run_leaves(self.tensors(copies(self.arrays), None))
        except ForwardError as error:
            of_leaf = isinstance(error.__cause__, InplaceError) and "leaf Variable" in str(error)
            if self._constants:  # perhaps it takes tensors alone
                self._constants = set()
            elif of_leaf and not self.works_in_place:
                self.works_in_place = True
            else:
                raise
        return self._probe()

    def run_leaves(self, leaves: Sequence[Any]) -> Run:
        """Run the function on these leaves of its arguments; raise `ForwardError` if it raises."""
        passed = list(leaves)
        for i in self.tracked if self.works_in_place else ():
            passed[i] = _non_leaf(leaves[i])
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

    def lines_run(self, arrays: Arrays) -> Counter[tuple[str, int]]:
        """Return how often each line runs at these values, but for those of the library itself."""
        found: Counter[tuple[str, int]] = Counter()

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                found[frame.f_code.co_filename, frame.f_lineno] += 1
            return None if frame.f_code.co_filename.startswith(_OWN) else trace

        before, collects = sys.gettrace(), gc.isenabled()
        gc.disable()  # what is finalized meanwhile runs lines of its own
        sys.settrace(trace)
        try:
            self.values(arrays)
        finally:
            sys.settrace(before)
            if collects:
                gc.enable()
        return found

    def results(self, leaves: Sequence[Any]) -> list[Tensor]:
        """Call the function on these leaves; return the tensors that could be differentiated."""
        pieces = iter(leaves)
        args, kwargs = tree.map_leaves(lambda _: next(pieces), self.call)
        found = tree.leaves(self.fn(*args, **kwargs))
        return [t for t in found if isinstance(t, Tensor) and t.dtype.is_inexact]

    def _call(self, leaves: Sequence[Any]) -> list[Tensor]:
        with calling(ForwardError):
            return self.results(leaves)


def _non_leaf(leaf: Tensor) -> Tensor:
    """Return a non-leaf on a copy of the leaf's memory: in-place operations refuse leaves."""
    array, copy = leaf.data_array(), leaf.clone()
    if isinstance(array, np.ndarray):  # keep the memory layout
        return box(array.copy(order="K"), copy._node)
    return copy


def _described(value: Any) -> str:
    if holds_numbers(value):
        return f"an array of {host(value).dtype}"
    name = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
    return f"a {name} of {value.dtype}" if hasattr(value, "dtype") else name


# -- its function, and names -----------------------------------------------------------------------
def name_of(fn: Any) -> str:
    """Return the name of a function in messages."""
    found = getattr(fn, "name", None) or getattr(fn, "__name__", None)
    owner = getattr(fn, "__self__", None)
    if found == "apply" and owner is not None:
        found = getattr(owner, "__name__", found)
    return str(found or type(fn).__name__)


def device_key(fn: Any) -> str:
    """Return the file and line of an operation's backward, or of a function; empty if unknown."""
    rule = getattr(fn, "given_rule", None) or inspect.unwrap(fn)
    code = getattr(inspect.unwrap(rule), "__code__", None)
    if code is None or code.co_filename.startswith("<"):  # generated
        return ""
    path, here = Path(code.co_filename), Path.cwd()
    path = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{path}:{code.co_firstlineno}"


def parameters_of(fn: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return the parameters of a function, None if it has no signature."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return None


def labels_of(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return a name for every leaf of the arguments of a call."""
    names: list[str] = []
    for p in parameters_of(fn) or ():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(len(args) - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    names += [f"input {i}" for i in range(len(names), len(args))]
    named = [*zip(names, args, strict=False), *kwargs.items()]
    return [label for name, value in named for label, _ in tree.named_leaves(name, value)]
