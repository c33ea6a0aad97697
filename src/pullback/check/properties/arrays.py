"""The properties of calls with the same numbers in other arrays: of layouts, dtypes and libraries.

An array of another layout is put in the middle of a buffer of its own that is filled with another
number, so that code which takes any array for contiguous reads wrong numbers, but never outside of
the buffer.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.arrays import CUPY, NUMPY, cuda_is_available
from pullback.check.comparison import beside, max_abs, rounding_noise
from pullback.check.deadline import deadline
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError
from pullback.check.iterating import ends
from pullback.check.properties.variants import Finding, Variant
from pullback.check.report import Cause
from pullback.check.session import RTOL, Session, gradients, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, Backend, backend_of, copies
from pullback.core.tensor.tensor import box

_FILLER = 7
_POLE = 1e12  # times as large as at the user's values
_LARGEST = {"float32": 1e12, "float16": 30.0}  # whose squares and cubes are still representable
_PATIENCE, _SLOWER = 0.5, 20  # seconds, and times as long as other calls, that forward may take
_INSTALLED, _IN_USE = ("array_api_strict",), ("jax.numpy", "dask.array")

Apply = Callable[[Array], Array]


# -- memory layouts --------------------------------------------------------------------------------
class Layout(NamedTuple):
    """A memory layout: its name, what lays an array out, the axes along which it is repeated."""

    name: str
    apply: Apply
    axes: tuple[int, ...] = ()

    def values(self, array: Array) -> Array:
        """Return the values of the laid out array, C-contiguous."""
        return np.array(np.broadcast_to(_first(array, self.axes), array.shape), order="C")


def layouts_of(array: Array, fast: bool = False) -> list[Layout]:
    """Return the layouts that are distinct for an array.

    Examples
    --------
    >>> import numpy as np
    >>> [layout.name for layout in layouts_of(np.zeros((2, 3)), fast=True)]
    ['transposed', 'expanded along axis 0', 'sliced with steps']
    """
    long, every = [k for k in range(array.ndim) if array.shape[k] > 1], tuple(range(array.ndim))
    pairs = [*itertools.pairwise(long)][:3]
    orders = [Layout(f"axes {i} and {j} transposed", ordered(i, j)) for i, j in pairs]
    if len(long) == 2:
        orders = [Layout("transposed", ordered(*long))]
    elif orders:
        orders = [Layout("Fortran order", fortran), *orders]
    zero = [Layout(f"expanded along axis {k}", expanded((k,)), (k,)) for k in long[:3]]
    steps = [Layout("sliced with steps", stepped)] if long else []
    if fast:
        return [*orders[:1], *zero[:1], *steps]
    found = [*orders, *zero, *steps]
    if len(long) > 1:
        found.append(Layout("expanded along every axis", expanded(every), every))
        found.append(Layout("rows of a wider array", rows))
    if long:
        found.append(Layout("reversed", reversed_))
    others = ("inside a larger storage", inside), ("misaligned", misaligned)
    return [*found, *(Layout(*row) for row in others), Layout("read-only", read_only)]


def _first(array: Array, axes: tuple[int, ...]) -> Array:
    return array[tuple(slice(0, 1) if k in axes else slice(None) for k in range(array.ndim))]


def _in_buffer(shape: Callable[[Array], tuple[int, ...]], view: Apply) -> Apply:
    """Return the layout of a view of a buffer of some shape, filled around it."""

    def apply(array: Array, size: int = 1) -> Array:
        count, margin = int(np.prod(shape(array))), max(array.size, size)
        filler = _FILLER if array.dtype.kind in "fc" else 0  # valid as an index
        memory = np.full(count + 2 * margin, filler, array.dtype)
        laid = view(memory[margin : margin + count].reshape(shape(array)))
        laid[...] = array
        return laid

    return apply


def ordered(i: int, j: int) -> Apply:
    """Return the layout with two axes exchanged in memory."""
    return _in_buffer(lambda a: np.swapaxes(a, i, j).shape, lambda m: np.swapaxes(m, i, j))


def expanded(axes: tuple[int, ...]) -> Apply:
    """Return the layout with stride 0 along some axes."""

    def apply(array: Array) -> Array:
        buffer = np.full(
            3 * array.size + 1, _FILLER if array.dtype.kind in "fc" else 0, array.dtype
        )
        first = _first(array, axes)
        laid = buffer[array.size : array.size + first.size].reshape(first.shape)
        laid[...] = first
        strides = [0 if k in axes else laid.strides[k] for k in range(array.ndim)]
        return np.lib.stride_tricks.as_strided(laid, array.shape, strides)

    return apply


fortran = _in_buffer(lambda a: a.shape[::-1], lambda m: m.T)
stepped = _in_buffer(
    lambda a: tuple(2 * n + 1 for n in a.shape), lambda m: m[(slice(1, None, 2),) * m.ndim]
)
reversed_ = _in_buffer(lambda a: a.shape, lambda m: m[(slice(None, None, -1),) * m.ndim])
rows = _in_buffer(lambda a: (*a.shape[:-1], a.shape[-1] + 2), lambda m: m[..., 1:-1])
inside = _in_buffer(lambda a: a.shape, lambda m: m)


def misaligned(array: Array) -> Array:
    """Return an array that starts at an odd address."""
    memory = bytearray(array.nbytes + array.itemsize)
    laid = np.frombuffer(memory, array.dtype, array.size, offset=1).reshape(array.shape)
    laid[...] = array
    return laid


def read_only(array: Array) -> Array:
    """Return a read-only array."""
    laid = inside(array)
    laid.flags.writeable = False
    return laid


def layouts(session: Session) -> Iterator[Variant]:
    """Lay out grad_output, each array and all of them in each way that memory can have."""
    if session.subject.backend.library is not NUMPY:
        raise InapplicableError("only arrays of NumPy have layouts that a caller can choose")
    subject, seeds, fast = session.subject, session.seeds("layouts"), session.options.fast
    plain: dict[Any, Array] = dict(zip(subject.tracked, copies(session.arrays), strict=True))
    others = enumerate(() if subject.works_in_place else session.leaves())
    arrays = {k: v for k, v in others if isinstance(v, np.ndarray) and k not in plain}
    plain |= {k: np.array(v, order="C") for k, v in arrays.items()}
    leaves: list[Any] = list(plain)
    cotangents: list[Any] = [("grad_output", k) for k in range(len(seeds))]
    plain |= dict(zip(cotangents, seeds, strict=True))
    groups: list[tuple[str, Sequence[Any]]] = [(f"`{subject.labels[k]}`", [k]) for k in leaves]
    groups += [("all inputs", leaves)] * (len(leaves) > 1)
    groups += [("all inputs and grad_output", [*leaves, *cotangents])]
    base = _results(subject, plain)
    names = [*subject.names, *(f"output {k}" for k in range(len(seeds)))]
    same = partial(Variant, cause="layout", names=names, failures=(BackwardError,))
    hint = "call contiguous(), or numpy.ascontiguousarray(...) of its memory, before relying on it"
    groups.insert(0, ("grad_output", cotangents))
    for what, keys in groups[:1] if fast else groups:
        cases: dict[str, dict[Any, Layout]] = {}
        for key, layout in ((k, v) for k in keys for v in layouts_of(plain[k], fast)):
            cases.setdefault(layout.name, {})[key] = layout
        when = f"with {what} in memory that is not contiguous, aligned and writeable"
        for name, chosen in cases.items():
            laid = plain | {k: layout.apply(plain[k]) for k, layout in chosen.items()}
            values = plain | {k: layout.values(plain[k]) for k, layout in chosen.items()}
            expected = _expanded(subject, chosen, values, base)
            if expected is not None:
                noise = partial(_noise, subject, values, expected is not base)
                run = partial(_results, subject, laid)
                yield same(when, run, expected, hint=hint, noise=noise, case=name)


def _expanded(
    subject: Subject, chosen: dict[Any, Layout], values: dict[Any, Array], base: Arrays
) -> Arrays | None:
    """Return the results for values that a layout repeats; None where these are not defined."""
    if not any(layout.axes for layout in chosen.values()):
        return base
    try:
        found = _results(subject, values)
    except (ForwardError, BackwardError):
        return None
    pairs = zip(found, base, strict=True)
    return None if any(max_abs(e) > _POLE * (max_abs(b) or 1.0) for e, b in pairs) else found


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


def _noise(subject: Subject, values: dict[Any, Array], apart: bool) -> list[Array]:
    """Return how much rounding may change the results."""
    count = len(subject.tracked)
    moved: list[Any] = [*subject.tracked, *(k for k in values if isinstance(k, tuple))]

    def compute(arrays: Arrays, seeds: Arrays) -> list[Array]:
        fresh = {k: v.copy() for k, v in values.items()}
        return _results(subject, fresh | dict(zip(moved, copies([*arrays, *seeds]), strict=True)))

    arrays = [values[k] for k in moved]
    return rounding_noise(compute, arrays[:count], arrays[count:], apart)


# -- other dtypes and libraries --------------------------------------------------------------------
def dtypes(session: Session) -> Iterator[Variant]:
    """Compare gradients in float32 and float16 with those in float64 at the same rounded values."""
    if any(a.dtype not in (np.float64, np.complex128) for a in session.arrays):
        raise InapplicableError("the arguments are not in double precision")
    for dtype in _LARGEST if session.eps < 1e-14 else ():
        if session.iterates:  # it may wait for what never holds
            call = session.subject.with_leaves(_cast(session.leaves(), dtype))
            if not ends(call.run, max(_PATIENCE, _SLOWER * deadline().average())):
                session.note(
                    f"forward does not end in {dtype}: it waits for what never holds there"
                )
                continue
        found = _elsewhere(session, session.leaves(), dtype)
        if found is not None:
            near = _perturbed(session, 64 * float(np.finfo(dtype).eps))
            again = partial(_elsewhere, session, near, dtype)
            # Many a kernel has no half precision; who needs it sees the error.
            failures = (ForwardError, BackwardError) if dtype == "float32" else ()
            cause = partial(_cause_of_dtype, dtype)
            yield found._replace(again=again, failures=failures, cause=cause)


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
        found = _elsewhere(session, session.leaves(), session.precision, backend)
        if found is not None:
            near = _perturbed(session, 1e-3)
            again = partial(_elsewhere, session, near, session.precision, backend)
            yield found._replace(again=again)


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


def _perturbed(session: Session, step: float) -> list[Any]:
    """Return the leaves of the call with the differentiated arguments moved a little."""
    leaves = session.leaves()
    for i in session.subject.tracked:
        leaves[i] = beside(leaves[i], step, apart=True)
    return leaves


def _cast(leaves: Sequence[Any], dtype: str) -> list[Any]:
    """Return leaves with the floating and complex arrays in a dtype."""
    dtypes = {"f": np.dtype(dtype), "c": np.result_type(dtype, np.complex64)}
    with np.errstate(all="ignore"):
        return [
            v.astype(dtypes.get(v.dtype.kind, v.dtype)) if isinstance(v, np.ndarray) else v
            for v in leaves
        ]


def _elsewhere(
    session: Session, leaves: Sequence[Any], dtype: str, backend: Backend | None = None
) -> Variant | None:
    """Return the variant in a dtype or a library; None where forward does not take it or keep it.

    A value far from 1 is out of the range of a narrow dtype. Where an output itself is off, it has
    no gradient that is compared.
    """
    most = _LARGEST.get(dtype, np.inf)
    rounded = leaves if backend else _cast(leaves, dtype)
    there = session.subject.with_leaves(rounded)
    there.backend = backend or there.backend
    plain = session.subject.with_leaves(rounded if backend else _cast(rounded, "float64"))
    try:
        run = there.run()
        outs, exact = run.values(), plain.run().values()
    except Exception:  # a function may raise anything for a dtype it does not support
        return None
    arrays = [*there.arrays, *outs, *exact]
    kept = all(backend_of(out) == there.backend for out in run.outputs)
    kept &= dtype != "float16" or all(a.dtype == dtype for a in (*there.arrays, *outs))
    sizes = [np.abs(a).max() for a in arrays if a.size]
    kept &= all(np.isfinite(s) and (s == 0 or 1 / most < s < most) for s in sizes)
    if not kept or [out.shape for out in outs] != [out.shape for out in exact]:
        return None
    when = f"in {dtype} alone"
    when = f"on arrays of {there.backend.library.name} alone" if backend else when
    return _beside(session, there, plain, outs, exact, when=when, dtype=dtype)


def _beside(
    session: Session,
    there: Subject,
    plain: Subject,
    outs: Arrays,
    exact: Arrays,
    *,
    when: str,
    dtype: str,
) -> Variant:
    """Return the variant that compares the gradients of two calls, of which one is exact."""
    eps = float(np.finfo(dtype).eps)
    seeds = [
        np.where(np.abs(o - e) <= 256 * eps * np.abs(e) + 16 * eps * max_abs(e), g, 0)
        for g, o, e in zip(session.seeds(dtype, outs), outs, exact, strict=True)
    ]
    given = [g.astype(o.dtype) for g, o in zip(seeds, outs, strict=True)]
    wide = [g.astype(e.dtype) for g, e in zip(given, exact, strict=True)]

    def compute(xs: Arrays, gs: Arrays, subject: Subject = plain) -> list[Array]:
        return zeros_for_none(session.vjp(gs, xs, subject=subject), xs)

    def noise() -> list[Array | float]:
        moves = rounding_noise(compute, plain.arrays, wide, eps=eps)
        terms = max_abs(*(g * e for g, e in zip(wide, exact, strict=True)))
        return _limits(plain.arrays, expected, terms, dtype, moves)

    expected = compute(plain.arrays, wide)
    run = partial(compute, there.arrays, given, there)
    return Variant(when, run, expected, "dtype", noise=noise, failures=())


def _limits(
    arrays: Arrays, expected: Arrays, terms: float, dtype: str, moves: Arrays
) -> list[Array | float]:
    """Return how far gradients may be off in a dtype, from how far rounded inputs move them.

    Infinite where the gradient is lost in rounding anyway, or out of the dtype's range.
    """
    found: list[Array | float] = []
    for e, a, move in zip(expected, arrays, moves, strict=True):
        size, length, info = max_abs(e), max_abs(a) or 1.0, np.finfo(dtype)
        known = 1e6 * 2e-16 * terms / length < size < _LARGEST.get(dtype, np.inf)
        floor = 64 * info.eps * (size + terms / max(length, 1.0)) + 1e3 * float(info.tiny)
        found.append(RTOL[dtype] * np.abs(e) + floor + move if known else np.inf)
    return found


def _cause_of_dtype(dtype: str, found: Finding, i: int) -> Cause:
    """Return why a gradient that is right in float64 is wrong in a narrower dtype."""
    wrong = dict(found.wrong)[i]
    with np.errstate(all="ignore"):
        off = np.abs(found.got[i] - found.expected[i])
        worst = float(np.max(np.where(wrong, off / np.abs(found.expected[i]), 0.0)))
    bad = int((~np.isfinite(off)).sum())
    if bad:
        what = f"not finite in {dtype} at {bad} of {off.size} elements, where it is in float64: an"
        hint = "write it so that no intermediate is larger than the result"
        return Cause("dtype", f"the gradient is {what} intermediate overflows", hint)
    text = (
        f"{dtype} cancellation, or another formula for {dtype} than for float64, which is right: "
    )
    hint = "write it without differences of nearly equal numbers"
    return Cause("cancellation", f"{text}the worst relative error is {worst:.2g}", hint)
