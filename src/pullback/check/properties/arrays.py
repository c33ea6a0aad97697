"""The properties of calls with the same numbers in other arrays: of layouts, dtypes and libraries.

An array of another layout is put in the middle of a buffer of its own that is filled with another
number, so that code which takes any array for contiguous reads wrong numbers, but never outside of
the buffer.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pullback.arrays import CUPY, NUMPY, cuda_is_available
from pullback.check.comparison import rounding_noise
from pullback.check.deadline import ends
from pullback.check.numerical import max_abs
from pullback.check.properties.variants import RAISED, Variant, fits
from pullback.check.report import InapplicableError
from pullback.check.session import RTOL, Session
from pullback.check.subject import BackwardError, Subject
from pullback.check.values import Array, Arrays, Backend, backend_of, copies, in_place_of

_FILLER = 7
_POLE = 1e4  # times as large as at the user's values
_LARGEST = {"float32": 1e12, "float16": 30.0}  # whose squares and cubes are still representable
_INSTALLED, _IN_USE = ("array_api_strict",), ("jax.numpy", "dask.array")


# -- memory layouts --------------------------------------------------------------------------------
def _laid_out(array: Array, step: int = 1) -> Array:
    """Return an array in the middle of a buffer, with a step along each axis."""
    shape, margin = [n * abs(step) for n in array.shape], max(array.size, 1)
    filler = _FILLER if array.dtype.kind in "fc" else 0  # valid as an index
    memory = np.full(math.prod(shape) + 2 * margin, filler, array.dtype)[margin:-margin]
    steps: Any = (..., *(slice(None, None, step) for _ in shape))
    laid: Array = memory.reshape(shape)[steps]
    laid[...] = array
    return laid


def layouts_of(array: Array, fast: bool = False) -> dict[str, Array]:
    """Return an array in each distinct layout, by name; along an expanded axis the first counts."""
    long = [k for k, n in enumerate(array.shape) if n > 1]
    found = {"transposed": _laid_out(array.T).T} if len(long) > 1 else {}
    if long:
        found["sliced with steps"] = _laid_out(array, step=2)
    for k in long[:1] if fast else long:
        laid = _laid_out(array)
        strides = [0 if axis == k else by for axis, by in enumerate(laid.strides)]
        found[f"expanded along axis {k}"] = as_strided(laid, laid.shape, strides)
    if not fast:
        memory = bytearray(array.nbytes + array.itemsize)
        misaligned = np.frombuffer(memory, array.dtype, array.size, offset=1).reshape(array.shape)
        misaligned[...] = array
        fixed = _laid_out(array)
        fixed.flags.writeable = False
        found["reversed"], found["inside a larger storage"] = _laid_out(array, -1), _laid_out(array)
        found |= {"misaligned": misaligned, "read-only": fixed}
    return found


def layouts(session: Session) -> Iterator[Variant]:
    """Lay out all arrays and output gradients in each way that memory can have.

    Each alone where they make a difference together, or where their numbers repeat.
    """
    subject = session.subject
    if subject.backend.library is not NUMPY:
        raise InapplicableError("only arrays of NumPy have layouts that a caller can choose")
    seeds, leaves = session.seeds("layouts"), session.leaves()
    plain = _contiguous([*leaves, *seeds])
    names = [*(f"`{label}`" for label in subject.labels), *("grad_output" for _ in seeds)]
    varied = subject.tracked if subject.works_in_place else range(len(leaves))
    base = _results(subject, plain)
    laid: dict[str, dict[int, Array]] = {}
    for k in (*range(len(leaves), len(plain)), *varied):
        if isinstance(plain[k], np.ndarray):
            for name, array in layouts_of(plain[k], session.options.fast).items():
                laid.setdefault(name, {})[k] = array
    for name, arrays in laid.items():
        each = (({k: array}, f"{names[k]} {name}") for k, array in arrays.items())
        alone = (v for one in each for v in _laid_out_call(session, plain, base, *one))
        if name.startswith("expanded"):
            yield from alone
            continue
        (whole,) = _laid_out_call(session, plain, base, arrays, f"all arrays {name}")
        if not fits(session, whole):
            yield next((v for v in alone if not fits(session, v)), whole)


def _laid_out_call(
    session: Session, plain: Sequence[Any], base: Arrays, arrays: dict[int, Array], what: str
) -> Iterator[Variant]:
    """Yield the variant with some arrays laid out, if repeated numbers are near no pole."""
    subject = session.subject
    names = [*subject.names, *(f"output {k}" for k in range(len(session.outputs)))]
    hint = "call contiguous(), or numpy.ascontiguousarray(...) of its memory, before relying on it"
    given = [arrays.get(k, value) for k, value in enumerate(plain)]
    values = _contiguous(given)
    with contextlib.suppress(*RAISED):  # it may not be defined for equal values
        expected = _results(subject, values) if "expanded" in what else base
        near = zip(expected, base, strict=True)
        if all(max_abs(e) < _POLE * (max_abs(b) or 1.0) for e, b in near):
            run, noise = partial(_results, subject, given), partial(_noise, subject, values)
            made = Variant(f"with {what} in memory", run, expected, "layout", hint, names)
            yield made._replace(noise=noise, raised=(BackwardError,))


def _contiguous(values: Sequence[Any]) -> list[Any]:
    return [np.array(v, order="C") if isinstance(v, np.ndarray) else v for v in values]


def _results(subject: Subject, given: Sequence[Any]) -> list[Array]:
    """Return the gradients and outputs for these leaves and, behind them, output gradients."""
    leaves = subject.tensors([given[k] for k in subject.tracked], None)
    for k, value in enumerate(leaves):
        if isinstance(given[k], np.ndarray) and k not in subject.tracked:
            leaves[k] = in_place_of(value, given[k])
    run = subject.run_leaves(leaves)
    return [*run.gradients(given[len(leaves) :]), *run.values()]


def _noise(subject: Subject, values: Sequence[Any]) -> list[Array]:
    """Return how much rounding may change the results."""
    count = len(subject.leaves)

    def compute(arrays: Arrays, seeds: Arrays) -> list[Array]:
        given = [*values[:count], *copies(seeds)]
        for k, array in zip(subject.tracked, copies(arrays), strict=True):
            given[k] = array
        return _results(subject, given)

    return rounding_noise(compute, [values[k] for k in subject.tracked], values[count:])


# -- other dtypes and libraries --------------------------------------------------------------------
def dtypes(session: Session) -> Iterator[Variant]:
    """Compare gradients in float32 and float16 with those in float64 at the same rounded values."""
    if any(a.dtype not in (np.float64, np.complex128) for a in session.arrays):
        raise InapplicableError("the arguments are not in double precision")
    if session.eps > 1e-14:
        raise InapplicableError(
            "forward has no more than float32's precision, whatever it is given"
        )
    for dtype in _LARGEST:
        narrow = _cast(session.leaves(), dtype)
        exact = session.subject.with_leaves(_cast(narrow, "float64"))
        there = session.subject.with_leaves(narrow)
        if session.iterates and not ends(there.run):
            session.note(f"forward does not end in {dtype}: it waits for what never holds there")
            continue
        found = _beside(session, there, exact, dtype)
        if found is not None:
            # Many a kernel has no half precision; who needs it sees the error.
            raised = RAISED if dtype == "float32" else ()
            found = found._replace(when=f"in {dtype} alone", raised=raised)
            hint = "an intermediate overflows: write it so that none is larger than the result"
            finite = partial(_expected_where_finite, found)
            yield found._replace(run=finite, wrong="is not finite", hint=hint)
            hint = "cancellation, or another formula than for float64? subtract no near numbers"
            yield found._replace(cause="cancellation", hint=hint)


def _expected_where_finite(variant: Variant) -> list[Array]:
    pairs = zip(variant.run(), variant.expected, strict=True)
    return [np.where(np.isfinite(g), e, g) for g, e in pairs]


def libraries(session: Session) -> Iterator[Variant]:
    """Compare the gradients on every other array library and device there is.

    A library is tried if it is installed, a large one only if the program has imported it anyway. A
    forward that differs between libraries is outside of what a gradient checker checks.
    """
    if session.subject.backend.library is not NUMPY:
        raise InapplicableError("the arguments are no NumPy arrays")
    backends = list(_backends())
    if not backends:
        raise InapplicableError("no other array library is installed")
    for backend in backends:
        there = session.subject.with_arrays(session.arrays)
        there.backend = backend
        found = _beside(session, there, session.subject, session.precision)
        if found is not None:
            yield found._replace(when=f"on arrays of {backend.library.name} alone")


def _backends() -> Iterator[Backend]:
    modules = [importlib.import_module(n) for n in _INSTALLED if importlib.util.find_spec(n)]
    modules += [sys.modules[name] for name in _IN_USE if name in sys.modules]
    for module in modules:
        try:
            yield backend_of(module.asarray(np.zeros(1)))
        except Exception:  # its arrays cannot be tensors
            continue
    if cuda_is_available():
        yield Backend(CUPY, "cuda")


def _cast(leaves: Sequence[Any], dtype: str) -> list[Any]:
    """Return leaves with the floating and complex arrays in a dtype."""
    dtypes = {"f": np.dtype(dtype), "c": np.result_type(dtype, np.complex64)}
    with np.errstate(all="ignore"):
        return [
            v.astype(dtypes.get(v.dtype.kind, v.dtype)) if isinstance(v, np.ndarray) else v
            for v in leaves
        ]


def _beside(session: Session, there: Subject, exact: Subject, dtype: str) -> Variant | None:
    """Return the variant that compares two calls; None where forward does not take or keep a dtype.

    A value far from 1 is out of the range of a narrow dtype. Where an output itself is off, it has
    no gradient that is compared.
    """
    try:
        run = there.run()
        outs, wide = run.values(), exact.run().values()
    except Exception:  # a function may raise anything for a dtype it does not support
        return None
    most, eps = _LARGEST.get(dtype, np.inf), float(np.finfo(dtype).eps)
    kept = all(backend_of(out) == there.backend for out in run.outputs)
    kept &= dtype != "float16" or all(a.dtype == dtype for a in (*there.arrays, *outs))
    sizes = [np.abs(a).max() for a in (*there.arrays, *outs, *wide) if a.size]
    kept &= all(np.isfinite(s) and (s == 0 or 1 / most < s < most) for s in sizes)
    if not kept or [out.shape for out in outs] != [out.shape for out in wide]:
        return None
    seeds = [
        np.where(np.abs(o - e) <= 256 * eps * np.abs(e) + 16 * eps * max_abs(e), g, 0)
        for g, o, e in zip(session.seeds(dtype, outs), outs, wide, strict=True)
    ]
    narrow = [g.astype(o.dtype) for g, o in zip(seeds, outs, strict=True)]
    given = [g.astype(e.dtype) for g, e in zip(narrow, wide, strict=True)]

    def compute(subject: Subject, xs: Arrays, gs: Arrays) -> list[Array]:
        return subject.run(xs).gradients(gs)

    def noise() -> list[Array | float]:
        moves = rounding_noise(partial(compute, exact), exact.arrays, given, eps)
        terms = max_abs(*(g * e for g, e in zip(given, wide, strict=True)))
        pieces = zip(expected, exact.arrays, moves, strict=True)
        return [_limit(e, max_abs(a) or 1.0, terms, dtype) + move for e, a, move in pieces]

    expected = compute(exact, exact.arrays, given)
    found = partial(compute, there, there.arrays, narrow)
    return Variant("", found, expected, "dtype", noise=noise, raised=())


def _limit(expected: Array, length: float, terms: float, dtype: str) -> Array | float:
    """Return how far a gradient may be off in a dtype, beside the terms of <g, outputs>.

    Infinite where it is lost in rounding anyway, or out of the dtype's range.
    """
    size, info = max_abs(expected), np.finfo(dtype)
    if not 1e6 * 2e-16 * terms / length < size < _LARGEST.get(dtype, np.inf):
        return np.inf
    floor = 64 * info.eps * (size + terms / max(length, 1.0)) + 1e3 * float(info.tiny)
    return RTOL[dtype] * np.abs(expected) + floor
