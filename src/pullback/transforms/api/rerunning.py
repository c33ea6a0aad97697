"""What a function that runs twice must repeat, and whether it did.

Owns the states of NumPy's and Python's global generators around a run, and fingerprints of results:
sums of rows that do not hold the arrays. pullback's own generators say themselves that they are
drawn from, see ops/functions/random.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pullback.arrays import NUMPY, innermost, library_of
from pullback.core.custom.pytree import leaves
from pullback.core.tensor.tensor import Tensor

__all__ = [
    "Fingerprint",
    "GlobalDraws",
    "kept_globals",
    "replayed_globals",
    "watched_globals",
]

# -- repeating -------------------------------------------------------------------------------------
_np = NUMPY.xp

# Functions that return and put back a generator's state, and where it stood before a run.
GlobalDraws = list[tuple[Callable[[], Any], Callable[[Any], None], Any]]


def _standing() -> GlobalDraws:
    """Return where the global generators stand; they are loaded when they are first asked for."""
    import random

    def numpys() -> Any:
        return _np.random.get_state(legacy=False)

    return [
        (numpys, _np.random.set_state, numpys()),
        (random.getstate, random.setstate, random.getstate()),
    ]


@contextmanager
def watched_globals(drawn: GlobalDraws) -> Iterator[None]:
    """Note in `drawn` where the global generators stood that are drawn from inside the block."""
    before = _standing()
    try:
        yield
    finally:
        drawn += [(get, put, state) for get, put, state in before if not _is_same(get(), state)]


@contextmanager
def replayed_globals(drawn: GlobalDraws) -> Iterator[None]:
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
    return replayed_globals(_standing())


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    return bool(_np.all(a == b))


# -- results ---------------------------------------------------------------------------------------
_ROW = 1024
_WEIGHTS = _np.sin(_np.arange(1.0, _ROW + 1))  # another order gives another sum


class Fingerprint:
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
