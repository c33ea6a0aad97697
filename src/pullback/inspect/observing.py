"""What is noted of nodes while a program runs: lines, times, values and gradients.

Owns the observer that `record` puts into the mode, and the facts it leaves with each node. Small
arrays are copied and looked at when a graph is read; of larger ones the numbers are taken at once,
in at most five passes over an array. Notes go with their nodes: nothing is kept alive.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import ref

from pullback.arrays import NUMPY, innermost, is_array, library_of, ndarray
from pullback.core.debug.anomaly import CallSite, user_frame
from pullback.core.graph.node import Node
from pullback.core.graph.observer import Observer
from pullback.core.tensor.tensor import Tensor

_np = NUMPY.xp
_SMALL = 64  # elements of an array that is copied and looked at later
_KEY = "pullback.record"  # of a node's metadata
_MANY = 1_000


class Facts:
    """What was noted of one node."""

    __slots__ = (
        "backward_seconds",
        "code",
        "dtype",
        "grad",
        "instruction",
        "seconds",
        "shape",
        "values",
    )

    def __init__(self, frame: FrameType, seconds: float | None, first: Any, values: Any) -> None:
        self.code, self.instruction = frame.f_code, frame.f_lasti
        self.seconds, self.values = seconds, values
        self.shape: Any = None if first is None else first.shape
        self.dtype: Any = None if first is None else first.dtype
        self.grad: Any = None
        self.backward_seconds: float | None = None


def _facts(node: Node) -> Facts | None:
    found = None if node.extra is None else node.extra.metadata.get(_KEY)
    return found if isinstance(found, Facts) else None


def facts_of(node: Node) -> dict[str, Any]:
    """Return what was noted of a node, by the names that `GraphNode` has for it."""
    if (facts := _facts(node)) is None:
        return {}
    low, high, bad, infinite = _numbers(facts.values, _extremes)
    norm, bad_grads, infinite_grads = _numbers(facts.grad, _norm)
    shape = None if facts.shape is None else tuple(facts.shape)
    return {
        "shape": shape,
        "dtype": None if shape is None else _name_of(facts.dtype),
        "line": _line_of(CallSite(facts.code, facts.instruction)),
        "seconds": facts.seconds,
        "backward_seconds": facts.backward_seconds,
        "grad_norm": norm,
        "min": low,
        "max": high,
        "nan_count": bad,
        "grad_nan_count": bad_grads,
        "inf_count": infinite,
        "grad_inf_count": infinite_grads,
    }


_name_of = functools.cache(str)


@functools.lru_cache(maxsize=10_000)
def _line_of(site: CallSite) -> str:
    return f"{Path(site.code.co_filename).name}:{site.line}"


# -- numbers ---------------------------------------------------------------------------------------
def _kept(value: Any, look: Any) -> Any:
    """Return what is kept to look at a value: a copy of a small array, else the numbers."""
    array = value._data if isinstance(value, Tensor) else value
    if array.__class__ is not ndarray:
        if not is_array(array):
            return None
        array = innermost(array)
        array = library_of(array).to_numpy(array)
    return array.copy() if array.size <= _SMALL else look(array)


def _all_kept(values: Sequence[Any], look: Any) -> Any:
    if len(values) == 1:
        return _kept(values[0], look)
    return [_kept(each, look) for each in values]


def _numbers(kept: Any, look: Any) -> tuple[Any, ...]:
    """Return the numbers of what `_kept` kept, one or a list of several."""
    if kept is None:
        return (None,) * (4 if look is _extremes else 3)
    if kept.__class__ is list:
        return _merged([_numbers(each, look) for each in kept if each is not None], look)
    found: tuple[Any, ...] = look(kept) if kept.__class__ is ndarray else kept
    return found


def _merged(found: Sequence[tuple[Any, ...]], look: Any) -> tuple[Any, ...]:
    found = [each for each in found if each[-1] is not None]
    if not found:
        return _numbers(None, look)
    if look is _norm:
        norms, bad, infinite = zip(*found, strict=True)
        return math.hypot(*norms), sum(bad), sum(infinite)
    lows, highs, bad, infinite = zip(*found, strict=True)
    known = [x for x in lows if x is not None], [x for x in highs if x is not None]
    return min(known[0], default=None), max(known[1], default=None), sum(bad), sum(infinite)


def _extremes(array: Any) -> tuple[float | None, float | None, int | None, int | None]:
    """Return the least and the largest number but NaN, and how many NaN and infinities there are.

    The least and the largest tell whether there is anything to count.
    """
    if array.dtype.kind not in "fciub":
        return None, None, None, None
    array = abs(array) if array.dtype.kind == "c" else array
    if not array.size:
        return None, None, 0, 0
    low, high = float(array.min()), float(array.max())
    count = 0
    if low != low:
        bad = _np.isnan(array)
        count = int(bad.sum())
        if count == array.size:
            return None, None, count, 0
        array = array[~bad]
        low, high = float(array.min()), float(array.max())
    infinite = int(_np.isinf(array).sum()) if math.isinf(low) or math.isinf(high) else 0
    return low, high, count, infinite


def _norm(array: Any) -> tuple[float | None, int | None, int | None]:
    """Return the norm of a gradient, and how many NaN and infinities it has."""
    if array.dtype.kind not in "fc":
        return None, None, None
    with _np.errstate(all="ignore"):
        wide = array.astype(_np.float64) if array.dtype.itemsize == 2 else array
        square = float(_np.vdot(wide, wide).real)
        norm = square**0.5
        if square in (0.0, math.inf):  # perhaps out of the range of squares
            largest = float(abs(wide).max(initial=0.0))
            if 0.0 < largest < math.inf:
                norm = largest * float(_np.linalg.norm((wide / largest).ravel()))
    if math.isfinite(norm):
        return norm, 0, 0
    bad = 0 if norm == norm else int(_np.isnan(array).sum())
    return norm, bad, int(_np.isinf(array).sum())


# -- the observer ----------------------------------------------------------------------------------
class Recorder(Observer):
    """Notes lines, times and values with the nodes."""

    def __init__(self) -> None:
        self.kind = object()  # several may record at once
        self.nodes: list[ref[Node]] = []
        self._most = _MANY  # of these, before those that are gone are left out

    def recorded(self, node: Node, results: Sequence[Any], seconds: float | None = None) -> None:
        """Leave a node its line, its time, and what it made."""
        first = results[0]._data if results and isinstance(results[0], Tensor) else None
        facts = Facts(user_frame(), seconds, first, _all_kept(results, _extremes))
        node.extras().metadata[_KEY] = facts
        if len(self.nodes) >= self._most:
            self.nodes = [each for each in self.nodes if each() is not None]
            self._most = 2 * len(self.nodes) + _MANY
        self.nodes.append(ref(node))

    def arrived(self, node: Node, g: Any) -> None:
        """Leave a node the gradient that arrived for its results."""
        if (facts := _facts(node)) is not None:
            facts.grad = _all_kept(g, _norm) if g.__class__ is list else _kept(g, _norm)

    def computed(self, node: Node, g: Any, grads: Sequence[Any], seconds: float) -> None:
        """Leave a node how long its rule took."""
        if (facts := _facts(node)) is not None:
            facts.backward_seconds = seconds
