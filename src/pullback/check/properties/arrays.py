"""The properties of calls with the same numbers in other arrays: of layouts, dtypes and libraries.

An array of another layout is put in the middle of a buffer of its own that is filled with another
number, so that code which takes any array for contiguous reads wrong numbers, but never outside of
the buffer.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.arrays import CUPY, NUMPY, cuda_is_available
from pullback.check.comparison import rounding_noise
from pullback.check.deadline import deadline
from pullback.check.exceptions import BackwardError, InapplicableError
from pullback.check.iterating import ends
from pullback.check.numerical import max_abs
from pullback.check.properties.variants import RAISED, Variant, compared
from pullback.check.report import Cause
from pullback.check.session import RTOL, Session, gradients, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, Backend, backend_of, copies
from pullback.core.tensor.tensor import box

_FILLER = 7
_POLE = 1e4  # times as large as at the user's values
_LARGEST = {"float32": 1e12, "float16": 30.0}  # whose squares and cubes are still representable
_PATIENCE, _SLOWER = 0.5, 20  # seconds, and times as long as other calls, that forward may take
_INSTALLED, _IN_USE = ("array_api_strict",), ("jax.numpy", "dask.array")


# -- memory layouts --------------------------------------------------------------------------------
def laid_out(
    array: Array, order: Sequence[int] = (), step: int = 1, repeated: Sequence[int] = ()
) -> Array:
    """Return an array in a buffer: its axes in an order, with a step along each, or repeated.

    The axes that are `repeated` have the stride 0, and along them the first element counts.
    """
    order = [k % array.ndim for k in order] or range(array.ndim)
    one = array[(..., *(slice(0, 1 if k in repeated else None) for k in range(array.ndim)))]
    shape = [one.shape[k] * abs(step) for k in order]
    count, margin = math.prod(shape), max(array.size, 1)
    filler = _FILLER if array.dtype.kind in "fc" else 0  # valid as an index
    memory = np.full(count + 2 * margin, filler, array.dtype)[margin : margin + count]
    every: list[Any] = [slice(None, None, step) for _ in order]
    laid = memory.reshape(shape)[(..., *every)]
    laid = laid.transpose(np.argsort(order))
    laid[...] = one
    strides = [0 if k in repeated else laid.strides[k] for k in range(array.ndim)]
    return np.lib.stride_tricks.as_strided(laid, array.shape, strides)


def misaligned(array: Array) -> Array:
    """Return an array that starts at an odd address."""
    memory = bytearray(array.nbytes + array.itemsize)
    laid = np.frombuffer(memory, array.dtype, array.size, offset=1).reshape(array.shape)
    laid[...] = array
    return laid


def read_only(array: Array) -> Array:
    """Return a read-only array."""
    laid = laid_out(array)
    laid.flags.writeable = False
    return laid


def layouts_of(array: Array, fast: bool = False) -> dict[str, Array]:
    """Return an array in each distinct layout, by name.

    Examples
    --------
    >>> import numpy as np
    >>> list(layouts_of(np.zeros((2, 3)), fast=True))
    ['transposed', 'sliced with steps', 'expanded along axis 0']
    """
    found = {}
    long = [k for k, n in enumerate(array.shape) if n > 1]
    if len(long) > 1:
        found["transposed"] = laid_out(array, order=range(array.ndim)[::-1])
    if long:
        found["sliced with steps"] = laid_out(array, step=2)
    for k in long[:1] if fast else long:
        found[f"expanded along axis {k}"] = laid_out(array, repeated=(k,))
    if not fast:
        found |= {"reversed": laid_out(array, step=-1), "inside a larger storage": laid_out(array)}
        found |= {"misaligned": misaligned(array), "read-only": read_only(array)}
    return found


def layouts(session: Session) -> Iterator[Variant]:
    """Lay out grad_output and all inputs in each way that memory can have.

    Where that fails for all inputs together, each of them alone tells more.
    """
    subject = session.subject
    if subject.backend.library is not NUMPY:
        raise InapplicableError("only arrays of NumPy have layouts that a caller can choose")
    plain: dict[Any, Array] = dict(zip(subject.tracked, copies(session.arrays), strict=True))
    for k, leaf in enumerate(() if subject.works_in_place else session.leaves()):
        if isinstance(leaf, np.ndarray):
            plain.setdefault(k, np.array(leaf, order="C"))
    leaves = list(plain)
    seeds = {("grad_output", k): g for k, g in enumerate(session.seeds("layouts"))}
    failing = partial(_failing, session, plain | seeds)
    found = failing("grad_output", list(seeds))
    if found is None and (every := failing("all inputs", leaves)):
        alone = (failing(f"`{subject.labels[k]}`", [k]) for k in leaves)
        found = next(filter(None, alone), every)
    if found is not None:
        yield found


def _failing(
    session: Session, plain: dict[Any, Array], what: str, keys: Sequence[Any]
) -> Variant | None:
    """Return a variant with some arrays in a layout that fails, with all layouts that do in words.

    Repeated numbers have another result, which is compared unless it is near a pole.
    """
    subject, base = session.subject, _results(session.subject, plain)
    names = [*subject.names, *(f"output {k}" for k in range(len(session.outputs)))]
    hint = "call contiguous(), or numpy.ascontiguousarray(...) of its memory, before relying on it"
    when = f"with {what} in memory that is not contiguous, aligned and writeable"
    laid: dict[str, dict[Any, Array]] = {}
    for key in keys:
        for name, array in layouts_of(plain[key], session.options.fast).items():
            laid.setdefault(name, plain.copy())[key] = array
    found: dict[str, Variant] = {}
    for name, given in laid.items():
        values = {k: np.array(v, order="C") for k, v in given.items()}
        try:
            expected = _results(subject, values) if name.startswith("expanded") else base
        except RAISED:  # it is not defined for equal values
            continue
        near = zip(expected, base, strict=True)
        run, noise = partial(_results, subject, given), partial(_noise, subject, values)
        variant = Variant(f"{when} ({name})", run, expected, "layout", hint, names, noise=noise)
        variant = variant._replace(raised=(BackwardError,))
        regular = all(max_abs(e) < _POLE * (max_abs(b) or 1.0) for e, b in near)
        if regular and compared(session, variant):
            found[name] = variant
    when += f"; it fails where that is {', '.join(found)}"
    return next((variant._replace(when=when) for variant in found.values()), None)


def _results(subject: Subject, given: dict[Any, Array]) -> list[Array]:
    """Return the gradients and outputs for arrays given by leaf, and output gradients."""
    arrays = [given[k] for k in subject.tracked]
    leaves = subject.tensors(arrays, None)
    others = [k for k in given if not isinstance(k, tuple) and k not in subject.tracked]
    for k in others:
        leaves[k] = given[k] if isinstance(leaves[k], np.ndarray) else box(given[k])
    run = subject.run_leaves(leaves) if others else subject.run(arrays)
    seeds = [g for k, g in given.items() if isinstance(k, tuple)]
    return [*gradients(run, seeds, arrays), *run.values()]


def _noise(subject: Subject, values: dict[Any, Array]) -> list[Array]:
    """Return how much rounding may change the results."""
    count = len(subject.tracked)
    moved: list[Any] = [*subject.tracked, *(k for k in values if isinstance(k, tuple))]

    def compute(arrays: Arrays, seeds: Arrays) -> list[Array]:
        fresh = {k: v.copy() for k, v in values.items()}
        return _results(subject, fresh | dict(zip(moved, copies([*arrays, *seeds]), strict=True)))

    arrays = [values[k] for k in moved]
    return rounding_noise(compute, arrays[:count], arrays[count:])


# -- other dtypes and libraries --------------------------------------------------------------------
def dtypes(session: Session) -> Iterator[Variant]:
    """Compare gradients in float32 and float16 with those in float64 at the same rounded values."""
    if any(a.dtype not in (np.float64, np.complex128) for a in session.arrays):
        raise InapplicableError("the arguments are not in double precision")
    for dtype in _LARGEST if session.eps < 1e-14 else ():
        if session.iterates:  # it may wait for what never holds
            call = session.subject.with_leaves(_cast(session.leaves(), dtype))
            if not ends(call.run, max(_PATIENCE, _SLOWER * deadline().average())):
                text = f"forward does not end in {dtype}: it waits for what never holds there"
                session.note(text)
                continue
        narrow = _cast(session.leaves(), dtype)
        exact = session.subject.with_leaves(_cast(narrow, "float64"))
        there = session.subject.with_leaves(narrow)
        found = _beside(session, there, exact, dtype)
        if found is not None:
            # Many a kernel has no half precision; who needs it sees the error.
            raised = RAISED if dtype == "float32" else ()
            cause, when = partial(_cause_of_dtype, dtype), f"in {dtype} alone"
            yield found._replace(when=when, cause=cause, raised=raised)


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
        return zeros_for_none(session.vjp(gs, xs, subject=subject), xs)

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


def _cause_of_dtype(dtype: str, got: Array, expected: Array, wrong: Array) -> Cause:
    """Return why a gradient that is right in float64 is wrong in a narrower dtype."""
    with np.errstate(all="ignore"):
        off = np.abs(got - expected)
        relative = np.where(wrong, off / np.abs(expected), 0.0)
    bad = int((~np.isfinite(off)).sum())
    if bad:
        what = f"not finite in {dtype} at {bad} of {off.size} elements, where it is in float64: an"
        hint = "write it so that no intermediate is larger than the result"
        return Cause("dtype", f"the gradient is {what} intermediate overflows", hint)
    text = (
        f"{dtype} cancellation, or another formula for {dtype} than for float64, which is right: "
        f"the worst relative error is {np.max(relative):.2g}"
    )
    return Cause("cancellation", text, "write it without differences of nearly equal numbers")
