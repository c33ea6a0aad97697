"""Anomaly mode: which operation made the first NaN or infinity, and where it was called.

Owns `detect_anomaly` and its observer, which looks at the results of operations, at what backward
starts from and at the gradients on their way, notes down the user's calls, and words all that.
"""

from __future__ import annotations

import cmath
import itertools
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from traceback import FrameSummary, StackSummary
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from pullback.arrays import NUMPY, innermost, is_array, library_of
from pullback.core.backward.hooks import RUNNING
from pullback.core.custom.context import saved_values
from pullback.core.graph.modes import STATE, ImmediateMode, ModeContext
from pullback.core.graph.node import AccumulateGrad, CustomNode, Node, Output
from pullback.core.graph.observer import Observer
from pullback.core.tensor.tensor import Tensor, as_array
from pullback.errors import ERROR_CONTEXT, AnomalyError, describe, warn_user

Named = tuple[str, Any]
_np = NUMPY.xp
_INSIDE = object()  # in the notes of a pass: the first non-finite result within the running rule


# -- the user's lines ------------------------------------------------------------------------------
def _is_ours(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith("pullback.")


class CallSite(NamedTuple):
    """Where the user called: quick to note down, and read as text only when it is shown."""

    code: CodeType
    instruction: int

    @property
    def _place(self) -> tuple[int | None, ...]:
        return next(itertools.islice(self.code.co_positions(), self.instruction // 2, None))

    @property
    def line(self) -> int | None:
        """The number of the line in its file."""
        return self._place[0]

    def __str__(self) -> str:
        """Return the line as a traceback shows it."""
        line, end, column, end_column = self._place
        columns: dict[str, Any] = {"end_lineno": end, "colno": column, "end_colno": end_column}
        shown = FrameSummary(self.code.co_filename, line, self.code.co_name, **columns)
        return "".join(StackSummary.from_list([shown]).format()).rstrip()


def user_frame() -> FrameType:
    """Return the frame of the user's call that an observer looks at."""
    frame = sys._getframe(4)  # an observer, who asks, is called two calls below a public one
    while _is_ours(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def call_site() -> CallSite:
    """Return where that is."""
    frame = user_frame()
    return CallSite(frame.f_code, frame.f_lasti)


def _origin(node: Node) -> CallSite | None:
    return None if node.extra is None else node.extra.metadata.get("traceback")


def _tell_origin(node: Node, error: Exception) -> None:
    """Add to an error in backward where the operation that failed was called."""
    site = _origin(node)
    if site is not None and str(site) not in str(error):
        error.add_note(f"{node.name()} was recorded at\n{site}")
    if site is None:
        text = "No forward pass information available: run the forward inside detect_anomaly too."
    else:
        text = f"Traceback of the forward call that caused the error:\n{site}"
    warn_user(f"Error detected in {node.name()}. {text}")


# -- looking at numbers ----------------------------------------------------------------------------
def non_finite(value: Any, allow_inf: bool = False) -> str:
    """Return "nan" or "inf" where a value has one, else the empty text.

    Whatever has no floating numbers is finite. "nan" comes first; with `allow_inf`, alone.
    """
    if isinstance(value, list):
        kinds = {non_finite(v, allow_inf) for v in value}
        return "nan" if "nan" in kinds else "inf" if "inf" in kinds else ""
    if isinstance(value, (float, complex)):
        if cmath.isfinite(value):
            return ""
        return "nan" if cmath.isnan(value) else "" if allow_inf else "inf"
    array = _array_of(value)
    if array is None:
        return ""
    library = library_of(array)
    xp = library.xp
    if not library.dtype(array).is_inexact or bool(xp.all(xp.isfinite(array))):
        return ""
    return "nan" if bool(xp.any(xp.isnan(array))) else "" if allow_inf else "inf"


def _array_of(value: Any) -> Any:
    """Return the array of a tensor, an array or one of NumPy's numbers; None for all else."""
    array = value.data_array() if isinstance(value, Tensor) else value
    if is_array(array):
        return innermost(array)
    return as_array(value) if isinstance(value, _np.generic) else None


def _host_array_of(value: Any) -> Any:
    array = None if isinstance(value, list) else _array_of(value)
    return None if array is None else library_of(array).to_numpy(array)


def _places(value: Any, kind: str) -> str:
    """Say how many elements of a value are `kind`, and where the first is."""
    host = _host_array_of(value)
    if host is None or host.size == 1:
        return kind
    bad = _np.isnan(host) if kind == "nan" else _np.isinf(host)
    first = tuple(map(int, _np.argwhere(bad)[0]))
    return f"{kind} in {_np.count_nonzero(bad)} of {host.size} elements, the first at index {first}"


def _first_place(value: Any) -> tuple[int, ...] | None:
    """Return the index of the first number of an array that is not finite, NaN before infinity."""
    host = _host_array_of(value)
    if host is None or host.dtype.kind not in "fc":
        return None
    for bad in (_np.isnan(host), _np.isinf(host)):
        if bad.any():
            return tuple(map(int, _np.argwhere(bad)[0]))
    return None


def profile(name: str, value: Any) -> str:
    """Say in one line what a value is and what numbers it holds."""
    array = _array_of(value)
    if array is None:
        return describe(name, value)
    host = library_of(array).to_numpy(array)
    line = describe(name, array)
    if host.dtype.kind not in "fciu" or not host.size:
        return line
    finite = host[_np.isfinite(host)]
    if finite.size:
        sizes = abs(finite) if host.dtype.kind == "c" else finite
        what = "absolute values" if host.dtype.kind == "c" else "values"
        low, high, zeros = sizes.min(), sizes.max(), finite.size - _np.count_nonzero(finite)
        line += f", {what} from {low:.4g} to {high:.4g}" if low < high else f", {what} {low:.4g}"
        line += f", {zeros} zero{'s' if zeros > 1 else ''}" if zeros else ""
    for kind, count in (("nan", _np.isnan(host).sum()), ("inf", _np.isinf(host).sum())):
        line += f", {count} {kind}" if count else ""
    return line


# -- forward ---------------------------------------------------------------------------------------
def _uses(inputs: Sequence[Named], moves: bool) -> bool:
    """Return whether a recorded operation computes with its inputs.

    Where numbers are handed on as they are, a NaN may well be left out again by the next.
    """
    if not STATE.get().grad or moves:
        return False
    return any(isinstance(value, Tensor) and value.requires_grad for _, value in inputs)


def _nonfinite_result(op: str, kind: str, result: Any, inputs: Sequence[Named]) -> AnomalyError:
    """Return the error for an operation that made a NaN or an infinity."""
    finite = not any(non_finite(value) for _, value in inputs)
    return _error(
        f"{_called(op)}: a finite result was required, got {_places(result, kind)}, from "
        f"{'finite inputs' if finite else 'inputs without nan'}.",
        [*inputs, ("result", result)],
        hint="keep the inputs where the result is finite, for instance with clamp(); where() on "
        "the result alone leaves nan in the gradient"
        + ("; allow_inf=True lets infinities pass." if kind == "inf" else "."),
        operation=op,
        value=result,
    )


def _entered(op: str, inputs: Sequence[Named]) -> AnomalyError:
    """Return the error for an operation that was given a NaN."""
    name, value = next((n, v) for n, v in inputs if non_finite(v) == "nan")
    node = value._node if isinstance(value, Tensor) else None
    return _error(
        f"{_called(op)}: inputs without nan were required, got {_places(value, 'nan')} of "
        f"'{name}'; {op} did not make it: '{name}' is {_source(node)}.",
        inputs,
        node=_real(node),
        operation=op,
        argument=name,
        value=value,
    )


def _source(node: Node | None) -> str:
    """Say where a NaN came from that reached an operation with the input of this node."""
    if node is None:
        return "a constant, which requires no grad: look at the data it was made of"
    if node.__class__ is AccumulateGrad:
        return "a leaf: look at the data it was made of"
    of = _real(node)
    if _origin(of) is None:
        return f"the result of {node.name()}, which ran outside of detect_anomaly"
    if not getattr(of.op, "moves", False):
        return f"the result of {node.name()}, and was changed since"
    if of.count > 1:
        return f"the result of {node.name()}, which hands it on"
    return f"what {node.name()} takes of {_source(of.record[0])}"


def _real(node: Any) -> Any:
    """Return the node that ran: of an output that of all."""
    return node.node if isinstance(node, Output) else node


def _called(op: str) -> str:
    """Return the name of an operation, and of the function of ours that the user called for it."""
    outer = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        outer = frame if frame.f_code in ERROR_CONTEXT else outer
        frame = frame.f_back
    if outer is None:
        return op
    variables = outer.f_locals
    names, _ = ERROR_CONTEXT[outer.f_code](variables)
    if isinstance(variables, dict):  # before Python 3.13 a copy, which the frame keeps alive
        variables.clear()
    return op if op in names else f"{names[0]} (in its {op})"


def _framed(error: AnomalyError) -> AnomalyError:
    """Give an error that is only kept the traceback of the user's frames within the pass."""
    frames: TracebackType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    while frame is not None and not _is_ours(frame):
        frames = TracebackType(frames, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return error.with_traceback(frames)


def _error(
    text: str,
    values: Iterable[Named],
    *,
    inside: str = "",
    hint: str = "",
    node: Node | None = None,
    operation: str = "",
    argument: str = "",
    value: Any = None,
) -> AnomalyError:
    """Return the error of a text, lines on `values` and of where the node was recorded, and a hint.

    `operation` is one that is being called; else the error is one of backward.
    """
    recorded = None if node is None else _origin(_real(node))
    called = call_site() if operation else None
    lines = [text, *(f"  {profile(name, v)}" for name, v in values), inside]
    lines += [] if recorded is None else [f"recorded at\n{recorded}"]
    lines += [] if called is None else [f"called at\n{called}"]
    lines += [f"hint: {hint}"] if hint else []
    error = AnomalyError("\n".join(filter(None, lines)))
    error.node, error.argument, error.index = node, argument, _first_place(value)
    error.phase = "forward" if operation else "backward"
    error.operation = operation or ("" if node is None else getattr(node.op, "name", node.name()))
    error.line = str(called or recorded or "")
    return error


# -- backward ------------------------------------------------------------------------------------
def _label(node: Node) -> str:
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        return "a leaf" if leaf is None else f"the leaf of shape {leaf.shape}"
    return f"the result of {node.name()}"


def _bad_gradient(api: str, node: Node, g: Any, kind: str, source: str) -> AnomalyError:
    return _error(
        f"{api}: a finite gradient of {_label(node)} was required, got {_places(g, kind)}, "
        f"{source}.",
        [("gradient", g)],
        node=node,
        value=g,
    )


def _of_hooks(hooks: Iterable[Any]) -> str:
    return f"from {' or '.join(map(_defined, hooks))}"


def _defined(hook: Any) -> str:
    """Say what a hook is called and where it is written."""
    name, code = getattr(hook, "__qualname__", repr(hook)), getattr(hook, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def _returned(node: Node, i: int, kind: str, g: Any, r: Any, inside: Any) -> AnomalyError:
    """Return the error for a rule that gave a gradient with a NaN or an infinity."""
    incoming = list(g) if isinstance(g, list) else [g]
    names = [f"grad_output[{k}]" for k in range(len(incoming))] if len(incoming) > 1 else []
    named = [*zip(names or ["grad_output"], incoming, strict=True), *_saved(node)]
    bad = [name for name, value in named if non_finite(value)]
    hint = (
        "look at the ranges above: keep the forward away from where its derivative is "
        "infinite or undefined; where() on the result alone does not."
    )
    if _origin(node) is None:
        hint += " Run the forward inside detect_anomaly too, to see its line."
    return _error(
        f"Function '{node.name()}' returned {kind} values in its {i}th output.\n"
        f"It is the gradient of '{_input_name(node, i)}', with {_places(r, kind)}; "
        + (f"{', '.join(bad)}: not finite before." if bad else "the values below are finite."),
        [(name, value) for name, value in named if value is not None],
        inside="" if inside is None else f"within it, {str(inside).partition(chr(10))[0]}",
        hint=hint,
        node=node,
        argument=_input_name(node, i),
        value=r,
    )


def _saved(node: Node) -> list[Named]:
    """Return the floating values that a node kept for its rule, by name."""
    if isinstance(node, CustomNode):
        pairs: Iterable[Named] = saved_values(node)
    else:
        pairs = zip(getattr(node.op, "layout", ()), node.record[node.count :], strict=False)
    return [
        (f"saved {name}", value)
        for name, value in pairs
        if is_array(value) or isinstance(value, (float, complex))
    ]


def _input_name(node: Node, i: int) -> str:
    """Return the name of the input at `i`."""
    if isinstance(node, CustomNode):
        owner: str = node.arguments.owner(i)
        return owner
    names = getattr(node.op, "inputs", ())  # fewer than inputs where there may be any number
    return names[i] if i < len(names) else f"input {i}"


# -- the observer ----------------------------------------------------------------------------------
class AnomalyObserver(Observer):
    """Raises at the first number that is not finite, and notes down the calls of operations."""

    kind = "anomaly"

    def __init__(self, check_nan: bool, allow_inf: bool) -> None:
        self.check_nan = check_nan
        self.allow_inf = allow_inf

    def _kind(self, value: Any) -> str:
        return non_finite(value, self.allow_inf) if self.check_nan else ""

    def result(
        self,
        op: str,
        inputs: Sequence[Named],
        results: Iterable[Any],
        settings: Mapping[str, Any] = {},
        moves: bool = False,
    ) -> None:
        """Raise where an operation made a NaN or an infinity, or a NaN came into the graph.

        Within a rule or hook nothing is raised yet, for what is not finite may be masked; the
        first is kept, and reported if the gradient that comes out is not finite.
        """
        kinds = [(self._kind(r), r) for r in results]
        bad = next(((k, r) for wanted in ("nan", "inf") for k, r in kinds if k == wanted), None)
        if bad is None:
            return
        inputs = [*inputs, *((n, v) for n, v in settings.items() if isinstance(v, float))]
        came = {non_finite(value) for _, value in inputs}
        current = RUNNING.current
        if bad[0] not in came and "nan" not in came:
            if current is None:
                raise _nonfinite_result(op, *bad, inputs)
            if _INSIDE not in current.notes:
                current.notes[_INSIDE] = _framed(_nonfinite_result(op, *bad, inputs))
        elif bad[0] == "nan" and current is None and _uses(inputs, moves):
            raise _entered(op, inputs)

    def recorded(self, node: Node, results: Sequence[Any], seconds: float | None = None) -> None:
        """Note down the call that recorded `node`."""
        node.extras().metadata["traceback"] = call_site()

    def roots(self, api: str, name: str, roots: Sequence[Any], seeds: Sequence[Any]) -> None:
        """Raise where backward is to start from what is not finite."""
        for i, (root, seed) in enumerate(zip(roots, seeds, strict=True)):
            if kind := self._kind(root):
                node = _real(root._node)
                raise _error(
                    f"{api}: a finite tensor to differentiate was required, got "
                    f"{_places(root, kind)}.",
                    [(f"tensor {i}, of {node.name()}", root)],
                    hint="run the forward inside detect_anomaly too: it stops at the operation "
                    "that made it.",
                    node=node,
                    value=root,
                )
            if kind := self._kind(seed):
                which = f"{name}[{i}]"
                raise _error(
                    f"{api}: finite gradients to start from were required, got "
                    f"{_places(seed, kind)} of {which}.",
                    [(which, seed)],
                    value=seed,
                    argument=which,
                )

    def arrived(self, node: Node, g: Any) -> None:
        """Raise where the gradient that reached a node is not finite: all its parts were."""
        if kind := self._kind(g):
            if node.extra is not None and (hooks := node.extra.tensor_hooks):
                raise _bad_gradient("register_hook", node, g, kind, _of_hooks(hooks.values()))
            source = "in the sum of what came from its uses"
            raise _bad_gradient("backward", node, g, kind, source)

    def entering(self, node: Node, g: Any) -> None:
        """Raise where a pre-hook gave back what is not finite."""
        if node.extra is not None and node.extra.prehooks:
            self.hooked(node, g if isinstance(g, list) else [g])
        RUNNING.current.notes.pop(_INSIDE, None)  # of a hook

    def computed(self, node: Node, g: Any, grads: Sequence[Any], seconds: float) -> None:
        """Raise at the first gradient that is not finite."""
        inside = RUNNING.current.notes.pop(_INSIDE, None)
        for i, r in enumerate(grads):
            if kind := self._kind(r):
                raise _returned(node, i, kind, g, r, inside) from inside

    def failed(self, node: Node, error: Exception) -> None:
        """Add to an error where the operation was called."""
        if RUNNING.current is not None:  # None before the first node has run
            RUNNING.current.notes.pop(_INSIDE, None)
        _tell_origin(node, error)

    def hooked(self, node: Node, grads: Sequence[Any]) -> None:
        """Raise where a hook on `node` gave back a gradient that is not finite."""
        for g in grads:
            if kind := self._kind(g):
                hooks = [*node.extras().prehooks.values(), *node.extras().posthooks.values()]
                raise _bad_gradient("a hook of the node", node, g, kind, _of_hooks(hooks))


# -- the mode --------------------------------------------------------------------------------------
def _observed(anomaly: bool, check_nan: bool, allow_inf: bool) -> dict[str, Any]:
    observer = AnomalyObserver(bool(check_nan), bool(allow_inf))
    observer.watches = anomaly
    return {"observer": observer}


class detect_anomaly(ModeContext):  # noqa: N801
    """Stop at the first operation that makes a NaN or an infinity, and name it.

    Inside the block every result of an operation and every gradient is looked at. The first that
    is not finite though what it was computed from is raises, naming the operation, its inputs'
    ranges and the user's line; see docs/anomaly.md. An error in backward also shows the line of
    the forward that recorded the operation. Slow: for debugging.

    Parameters
    ----------
    check_nan : bool, default True
        Whether to look at the numbers; if False, only the lines are remembered.
    allow_inf : bool, keyword-only, default False
        Whether infinities are in order, so that only NaN raises.

    Raises
    ------
    AnomalyError
        Inside the block, where a NaN or an infinity comes up.

    Examples
    --------
    >>> import warnings, numpy as np, pullback as pb
    >>> x = pb.tensor([1.0, 0.0], requires_grad=True)
    >>> with warnings.catch_warnings(), np.errstate(divide="ignore"):
    ...     warnings.simplefilter("ignore")
    ...     with pb.detect_anomaly():
    ...         x.log()
    Traceback (most recent call last):
        ...
    pullback.errors.AnomalyError: log: a finite result was required, got inf ...
    """

    def __init__(self, check_nan: bool = True, *, allow_inf: bool = False) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. It makes every operation slower and is meant "
            "only for debugging.",
            stacklevel=2,
        )
        super().__init__(_observed(True, check_nan, allow_inf))


class set_detect_anomaly(ImmediateMode):  # noqa: N801
    """Switch anomaly detection on or off at once, and back when used as a ``with`` block.

    Parameters
    ----------
    mode : bool
        Whether anomalies are detected from here on.
    check_nan, allow_inf : bool
        As for `detect_anomaly`.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.set_detect_anomaly(False):
    ...     pass
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, allow_inf: bool = False) -> None:
        super().__init__(_observed(mode, check_nan, allow_inf))
