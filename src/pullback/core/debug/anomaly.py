"""Anomaly mode: which operation made the first NaN or infinity, and where it was called.

Owns the looking at numbers while `detect_anomaly` is on, at the results of operations
(`check_results`), at what backward starts from (`check_roots`) and at the gradients on their way
(`check_arrived`, `differentiate`), the record of the user's calls, and the wording of all that.
Whatever is called here outside of the mode is called because an error or a warning is on its way.
Must not know the engine.
"""

from __future__ import annotations

import cmath
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from traceback import FrameSummary, StackSummary
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from pullback.arrays import NUMPY, is_array, library_of
from pullback.core.backward.hooks import RUNNING
from pullback.core.custom.context import _STRIDE
from pullback.core.graph.modes import STATE, Mode
from pullback.core.graph.node import AccumulateGrad, CustomNode, Node, Output
from pullback.core.tensor.tensor import Tensor, as_array
from pullback.errors import CALLS, GradientError, describe

Named = tuple[str, Any]
_np = NUMPY.xp
# Operations that hand numbers on as they are: a NaN may well be left out again by the next.
_HANDS_ON = frozenset(
    (
        *("assign_view", "broadcast_to", "cat", "clone", "copy", "diag_embed", "diagonal"),
        *("fill", "flip", "gather", "getitem", "imag", "index_copy", "index_fill", "index_put"),
        *("masked_fill", "masked_put", "masked_select", "pad_constant", "permute", "real"),
        *("reshape", "roll", "setitem", "split", "stack", "take", "tile", "to", "toDevice"),
        *("to_complex", "tril", "triu", "unbind", "unfold", "where"),
    )
)
_INSIDE = object()  # in the notes of a pass: the first non-finite result within the running rule


# -- the user's lines ------------------------------------------------------------------------------
def _is_ours(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith("pullback.")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's call, the first frame that is not ours."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


class CallSite(NamedTuple):
    """Where the user called: quick to note down, and read as text only when it is shown."""

    code: CodeType
    instruction: int

    def __str__(self) -> str:
        """Return the line as a traceback shows it."""
        places = itertools.islice(self.code.co_positions(), self.instruction // 2, None)
        line, end_line, column, end_column = next(places)
        shown = FrameSummary(
            self.code.co_filename,
            line,
            self.code.co_name,
            end_lineno=end_line,
            colno=column,
            end_colno=end_column,
        )
        return "".join(StackSummary.from_list([shown]).format()).rstrip()


def call_site() -> CallSite:
    """Return where the user called what is running."""
    frame = sys._getframe(1)
    while _is_ours(frame) and frame.f_back is not None:
        frame = frame.f_back
    return CallSite(frame.f_code, frame.f_lasti)


def remember_call(node: Node) -> None:
    """Note down the call that recorded `node`."""
    node.extras().metadata["traceback"] = call_site()


def _origin(node: Node) -> CallSite | None:
    return None if node.extra is None else node.extra.metadata.get("traceback")


def _tell_origin(node: Node, error: Exception) -> None:
    """Add to an error in backward where the operation that failed was called."""
    site = _origin(node)
    if site is not None and str(site) not in str(error):
        error.add_note(f"{node.name()} was recorded at\n{site}")
    if not STATE.get().anomaly:
        return
    if site is None:
        text = "No forward pass information available: run the forward inside detect_anomaly too."
    else:
        text = f"Traceback of the forward call that caused the error:\n{site}"
    warn_user(f"Error detected in {node.name()}. {text}")


def told(node: Node, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` for a step of backward at `node`; an error tells where that was called."""
    try:
        return function(node, *args)
    except Exception as error:
        _tell_origin(node, error)
        raise


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
    if isinstance(value, Tensor):
        return value.data_array()
    if is_array(value):
        return value
    return as_array(value) if isinstance(value, _np.generic) else None


def _places(value: Any, kind: str) -> str:
    """Say how many elements of a value are `kind`, and where the first is."""
    array = _array_of(value)
    host = None if array is None else library_of(array).to_numpy(array)
    if host is None or host.size == 1:
        return kind
    bad = _np.isnan(host) if kind == "nan" else _np.isinf(host)
    first = tuple(map(int, _np.argwhere(bad)[0]))
    return f"{kind} in {_np.count_nonzero(bad)} of {host.size} elements, the first at index {first}"


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
def check_results(
    op: str,
    inputs: Sequence[Named],
    results: Iterable[Any],
    mode: Mode,
    settings: Mapping[str, Any] = {},
) -> None:
    """Raise where an operation made a NaN or an infinity, or a NaN came into the history.

    Within a rule or hook nothing is raised yet, for what is not finite may be masked; the
    first is kept, to be told if the gradient that comes out is not finite.
    """
    if not mode.check_nan:
        return
    kinds = [(non_finite(r, mode.allow_inf), r) for r in results]
    bad = next(((k, r) for wanted in ("nan", "inf") for k, r in kinds if k == wanted), None)
    if bad is None:
        return
    inputs = [*inputs, *((n, v) for n, v in settings.items() if isinstance(v, float))]
    came = {non_finite(value) for _, value in inputs}
    current = RUNNING.current
    if bad[0] not in came and "nan" not in came:
        if current is None:
            raise _made(op, *bad, inputs)
        if _INSIDE not in current.notes:
            current.notes[_INSIDE] = _framed(_made(op, *bad, inputs))
    elif bad[0] == "nan" and current is None and _uses(op, inputs, mode):
        raise _entered(op, inputs)


def _uses(op: str, inputs: Sequence[Named], mode: Mode) -> bool:
    """Return whether a recorded operation computes with its inputs."""
    if not mode.grad or op.removesuffix("_") in _HANDS_ON:
        return False
    return any(isinstance(value, Tensor) and value.requires_grad for _, value in inputs)


def _made(op: str, kind: str, result: Any, inputs: Sequence[Named]) -> GradientError:
    """Return the error for an operation that made a NaN or an infinity."""
    finite = not any(non_finite(value) for _, value in inputs)
    return _error(
        f"{_called(op)}: a finite result was required, got {_places(result, kind)}, from "
        f"{'finite inputs' if finite else 'inputs without nan'}.",
        *(f"  {profile(name, value)}" for name, value in inputs),
        f"  {profile('result', result)}",
        _at("called", call_site()),
        "hint: keep the inputs where the result is finite, for instance with clamp(); where() on "
        "the result alone leaves nan in the gradient"
        + ("; allow_inf=True lets infinities pass." if kind == "inf" else "."),
    )


def _entered(op: str, inputs: Sequence[Named]) -> GradientError:
    """Return the error for an operation that was given a NaN."""
    name, value = next((n, v) for n, v in inputs if non_finite(v) == "nan")
    node = value._node if isinstance(value, Tensor) else None
    site = None if node is None else _origin(_real(node))
    return _error(
        f"{_called(op)}: inputs without nan were required, got {_places(value, 'nan')} of "
        f"'{name}'; {op} did not make it: '{name}' is {_source(node)}.",
        *(f"  {profile(name, value)}" for name, value in inputs),
        _at("recorded", site),
        _at("called", call_site()),
    )


def _source(node: Node | None) -> str:
    """Say where a NaN came from that reached an operation with the input of this history."""
    if node is None:
        return "a constant, which requires no grad: look at the data it was made of"
    if node.__class__ is AccumulateGrad:
        return "a leaf: look at the data it was made of"
    of = _real(node)
    if _origin(of) is None:
        return f"the result of {node.name()}, which ran outside of detect_anomaly"
    if getattr(of.op, "name", "") not in _HANDS_ON:
        return f"the result of {node.name()}, and was changed since"
    if len(of.inputs) > 1:
        return f"the result of {node.name()}, which hands it on"
    return f"what {node.name()} takes of {_source(of.inputs[0])}"


def _real(node: Node) -> Node:
    return node.inputs[0] if isinstance(node, Output) else node


def _called(op: str) -> str:
    """Return the name of an operation, and of the function of ours that the user called for it."""
    outer = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        outer = frame if frame.f_code in CALLS else outer
        frame = frame.f_back
    if outer is None:
        return op
    variables = outer.f_locals
    names, _ = CALLS[outer.f_code](variables)
    if isinstance(variables, dict):  # before Python 3.13 a copy, which the frame keeps alive
        variables.clear()
    return op if op in names else f"{names[0]} (in its {op})"


def _framed(error: GradientError) -> GradientError:
    """Give an error that is only kept the traceback of the user's frames within the pass."""
    frames: TracebackType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    while frame is not None and not _is_ours(frame):
        frames = TracebackType(frames, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return error.with_traceback(frames)


def _at(what: str, site: CallSite | None) -> str:
    return "" if site is None else f"{what} at\n{site}"


def _error(*lines: str) -> GradientError:
    return GradientError("\n".join(line for line in lines if line))


# -- backward --------------------------------------------------------------------------------------
def check_roots(api: str, name: str, roots: Sequence[Tensor], seeds: Sequence[Tensor]) -> None:
    """Raise where backward is to start from what is not finite."""
    mode = STATE.get()
    if not (mode.anomaly and mode.check_nan):
        return
    for i, (root, seed) in enumerate(zip(roots, seeds, strict=True)):
        kind = non_finite(root, mode.allow_inf)
        if kind:
            assert root._node is not None
            node = _real(root._node)
            raise _error(
                f"{api}: a finite tensor to differentiate was required, got {_places(root, kind)}.",
                f"  {profile(f'tensor {i}, of {node.name()}', root)}",
                _at("recorded", _origin(node)),
                "hint: run the forward inside detect_anomaly too: it stops at the operation that "
                "made it.",
            )
        kind = non_finite(seed, mode.allow_inf)
        if kind:
            raise _error(
                f"{api}: finite gradients to start from were required, got {_places(seed, kind)} "
                f"of {name}[{i}].",
                f"  {profile(f'{name}[{i}]', seed)}",
            )


def check_arrived(node: Node, g: Any) -> None:
    """Raise where the gradient that reached a node is not finite: all its parts were."""
    mode = STATE.get()
    kind = non_finite(g, mode.allow_inf) if mode.check_nan else ""
    if not kind:
        return
    hooks = [] if node.extra is None else [*node.extra.tensor_hooks.values()]
    if hooks:
        raise _of_hooks("register_hook", node, hooks, g, kind)
    raise _error(
        f"backward: a finite gradient of {_label(node)} was required, got {_places(g, kind)}, in "
        "the sum of what came from its uses.",
        f"  {profile('gradient', g)}",
        _at("recorded", _origin(_real(node))),
    )


def check_hooked(node: Node, grads: Sequence[Any]) -> None:
    """Raise where a hook on `node` gave back a gradient that is not finite."""
    mode = STATE.get()
    for g in grads if mode.check_nan else ():
        kind = non_finite(g, mode.allow_inf)
        if kind:
            hooks = [*node.extras().prehooks.values(), *node.extras().posthooks.values()]
            raise _of_hooks("a hook of the node", node, hooks, g, kind)


def _label(node: Node) -> str:
    if node.__class__ is AccumulateGrad:
        leaf = node.variable
        return "a leaf" if leaf is None else f"the leaf of shape {leaf.shape}"
    return f"the result of {node.name()}"


def _of_hooks(api: str, node: Node, hooks: Sequence[Any], g: Any, kind: str) -> GradientError:
    return _error(
        f"{api}: a finite gradient of {_label(node)} was required, got {_places(g, kind)}, from "
        f"{' or '.join(map(_defined, hooks))}.",
        f"  {profile('gradient', g)}",
        _at("recorded", _origin(_real(node))),
    )


def _defined(hook: Any) -> str:
    """Say what a hook is called and where it is written."""
    name, code = getattr(hook, "__qualname__", repr(hook)), getattr(hook, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def differentiate(node: Node, g: Any, wanted: Any, recorded: bool) -> Any:
    """Run the rule of a node and look at the gradients that it gives."""
    return told(node, _differentiate, g, wanted, recorded)


def _differentiate(node: Node, g: Any, wanted: Any, recorded: bool) -> Any:
    if node.extra is not None and node.extra.prehooks:
        check_hooked(node, g if isinstance(g, list) else [g])
    notes = RUNNING.current.notes
    notes.pop(_INSIDE, None)  # of a hook
    try:
        grads = node.op.differentiate(node, g, wanted, recorded)
        _check_gradients(node, g, grads, notes.get(_INSIDE))
    finally:
        notes.pop(_INSIDE, None)
    return grads


def _check_gradients(node: Node, g: Any, grads: Sequence[Any], inside: Any) -> None:
    """Raise at the first gradient that is not finite."""
    mode = STATE.get()
    for i, r in enumerate(grads if mode.check_nan else ()):
        kind = non_finite(r, mode.allow_inf)
        if kind:
            raise _returned(node, i, kind, g, r, inside) from inside


def _returned(node: Node, i: int, kind: str, g: Any, r: Any, inside: Any) -> GradientError:
    """Return the error for a rule that gave a gradient with a NaN or an infinity."""
    incoming = list(g) if isinstance(g, list) else [g]
    names = [f"grad_output[{k}]" for k in range(len(incoming))] if len(incoming) > 1 else []
    given = [*zip(names or ["grad_output"], incoming, strict=True), *_saved(node)]
    bad = [name for name, value in given if non_finite(value)]
    site = _origin(node)
    return _error(
        f"Function '{node.name()}' returned {kind} values in its {i}th output.",
        f"It is the gradient of '{_input_name(node, i)}', with {_places(r, kind)}; "
        + (f"{', '.join(bad)}: not finite before." if bad else "the values below are finite."),
        *(f"  {profile(name, value)}" for name, value in given if value is not None),
        f"within it, {str(inside).partition(chr(10))[0]}" if inside is not None else "",
        _at("recorded", site),
        "hint: look at the ranges above: keep the forward away from where its derivative is "
        "infinite or undefined; where() on the result alone does not."
        + (
            ""
            if site is not None
            else " Run the forward inside detect_anomaly too, to see its line."
        ),
    )


def _saved(node: Node) -> list[Named]:
    """Return the floating values that a node kept for its rule, by name."""
    saved = node.saved
    if saved.__class__ is not tuple:  # packed by hooks, which are the user's to call
        return []
    if isinstance(node, CustomNode):
        names = [name or f"value {k}" for k, name in enumerate(node.names)]
        pairs = zip(names, saved[::_STRIDE], strict=False)
    else:
        pairs = zip(getattr(node.op, "layout", ()), saved, strict=False)
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
