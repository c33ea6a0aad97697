"""Missing or extra terms and factors of the rule, found among the call's own arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.check.explain.alignment import aligned, multiple
from pullback.check.explain.evidence import Evidence
from pullback.check.report import Cause
from pullback.check.values import Array

_SMALL = (1.0, 2.0, 0.5, 3.0, 1 / 3, 4.0, 0.25)  # the factors of derivatives of powers
_FEW = 2  # elements that another formula may have by accident


def diagonal(e: Evidence, i: int) -> Cause | None:
    """Backward treats the operation as element-wise, though its elements are coupled."""
    matrix, ours = e.jacobians(i)
    if ours is None or matrix is None or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        return None
    off = ~np.eye(len(matrix), dtype=bool)
    right = np.nan_to_num(matrix)
    size = np.max(np.abs(right))
    if np.any(np.abs(ours[off]) > 1e-9 * size) or not np.any(np.abs(right[off]) > 1e-6 * size):
        return None
    if not e.matches(np.diag(ours), np.diag(matrix)):
        return None
    text = (
        f"`{e.names[i]}`: the terms that couple the elements are missing: only the diagonal of "
        "the Jacobian is there"
    )
    return Cause("diagonal", text)


# -- factors ---------------------------------------------------------------------------------------
def extra_factor(e: Evidence, i: int) -> Cause | None:
    """The right gradient times an array of the call, or divided by one."""
    name = f"`{e.names[i]}`"
    for words, values in _candidates(e, e.arrays[i].shape):
        if np.ptp(np.abs(values)) <= 1e-9 * np.max(np.abs(values), initial=0.0) < np.inf and (
            values.size > 1
        ):
            continue  # a constant factor is not due to an array
        if np.isin(values, (0, 1)).all():
            continue  # a mask: `elements` reports where it is 0
        with np.errstate(all="ignore"):
            times, over = e.expected[i] * values, e.expected[i] / values
            c = _factor(e, i, times)
            if c is not None and _both(e, i, c * times, c * (e.expected_other[i] * values)):
                text = f"the gradient of {name} has the factor {_times(c)}{words} too many"
                return Cause("extra-factor", text)
            c = _factor(e, i, over)
            if c is not None and _both(e, i, c * over, c * (e.expected_other[i] / values)):
                text = f"the factor {_times(1 / c)}{words} is missing from the gradient of {name}"
                return Cause("extra-factor", text)
    return None


def _factor(e: Evidence, i: int, pattern: Array) -> float | None:
    """Return the small number, or one over it, by which a pattern is the gradient."""
    seen = np.isfinite(pattern) & np.isfinite(e.got[i])
    c = multiple(e.got[i][seen], pattern[seen]).real
    return next((n for n in _SMALL if abs(abs(c) - n) <= e.pattern_rtol * n and c > 0), None)


def _times(c: float) -> str:
    return "" if c == 1 else f"{c:g} * "


def factor_of_grad_output(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right for grad_output times an array of the call, or divided by it."""
    if len(e.seeds) != 1:
        return None
    (seed,), name = e.seeds, f"`{e.names[i]}`"
    for words, values in _candidates(e, seed.shape):
        values = np.asarray(values)
        if not np.isfinite(values).all() or not np.ptp(np.abs(values)):
            continue
        scaled = np.asarray(seed * values, seed.dtype if seed.dtype.kind == "c" else None)
        if scaled.dtype != seed.dtype:
            continue
        is_mask = bool(np.isin(values, (0, 1)).all())
        if e.matches(e.vjp([scaled])[i], e.expected[i]):
            return _not_multiplied(name, words, is_mask)
        if not is_mask and e.fits(i, e.numerical([scaled])[i]):
            return Cause("extra-factor", f"{name}: grad_output is multiplied by {words} too often")
    return None


def _not_multiplied(name: str, words: str, is_mask: bool) -> Cause:
    text = f"grad_output is not multiplied by {words}"
    if is_mask:
        return Cause(
            "elements", f"{name} is right except for what comes where {words} is 0: {text}"
        )
    hint = "the derivative of the last step is left out?"
    return Cause("extra-factor", f"{name}: {text}", hint)


def _both(e: Evidence, i: int, pattern: Array, other: Array) -> bool:
    return e.fits(i, pattern) and e.matches(e.got_other[i], other)


def _candidates(e: Evidence, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield arrays that a rule could have multiplied by, with their names."""
    for name, array in e.operands:
        if array.dtype.kind not in "fciub" or not array.size:
            continue
        values = next(aligned(array + np.zeros((), np.float64), shape), None)
        if values is None:
            continue
        with np.errstate(all="ignore"):
            yield name, values
            yield f"{name} ** 2", values**2
            yield f"(1 - {name})", 1 - values
            yield f"(1 + {name})", 1 + values
            yield f"abs({name})", np.abs(values) + 0.0 * values
            yield f"sqrt({name})", np.sqrt(values)
            yield f"exp({name})", np.exp(values)
            if values.dtype.kind != "c":
                yield f"({name} > 0)", np.asarray(values > 0, np.float64)
            yield f"{name} * (1 - {name})", values * (1 - values)
            yield f"(1 - {name} ** 2)", 1 - values**2


# -- terms -----------------------------------------------------------------------------------------
def missing_term(e: Evidence, i: int) -> Cause | None:
    """The error is constant along an axis, or a multiple of an array of the call."""
    got, right, name = e.got[i], e.expected[i], f"`{e.names[i]}`"
    off = got - right
    if not np.isfinite(off).all() or not np.any(off):
        return None
    ones = np.ones(off.shape)
    axes = [axis for axis in range(off.ndim) if off.shape[axis] > 1]
    for axis in reversed(axes):
        if _spanned(e, off, [ones], axis):
            text = f"a term is missing from {name} (or too many) that is constant along axis {axis}"
            hint = (
                "a mean or sum that is not differentiated, but taken for a constant, or whose "
                "derivative has the wrong sign?"
            )
            return Cause("missing-term", text, hint)
    for j, other in enumerate(e.expected):
        if j != i and other.shape == off.shape and _is_multiple_of(e, i, j):
            text = f"a term is missing from {name} (or too many): a multiple of the gradient of "
            return Cause("missing-term", f"{text}`{e.names[j]}`")
    seed = e.seeds[0] if len(e.seeds) == 1 and e.seeds[0].shape == off.shape else None
    for words, values in [("grad_output", seed), *_candidates(e, off.shape)]:
        for axis in reversed(axes) if values is not None else ():
            for basis, more in (([values], ""), ([ones, values], " and a constant")):
                if _spanned(e, off, [np.asarray(b) for b in basis], axis):
                    text = (
                        f"a term is missing from {name} (or too many): a multiple of {words}{more} "
                        f"along axis {axis}"
                    )
                    return Cause("missing-term", text)
    return _product_term(e, i)


def missing_product(e: Evidence, i: int) -> Cause | None:
    """The error is an outer product, as of one of the two terms of a product rule for matrices."""
    pairs = ((e.expected[i], e.got[i]), (e.expected_other[i], e.got_other[i]))
    shape = e.arrays[i].shape
    if len(shape) != 2 or min(shape) < 2 or not all(np.isfinite(a).all() for p in pairs for a in p):
        return None
    ranks = [[_rank(m) for m in (right, got, got - right)] for right, got in pairs]
    if not all(off == 1 < right and off < min(shape) for right, _, off in ranks):
        return None
    text = (
        f"a term is missing from `{e.names[i]}` (or too many): what is wrong is one outer product, "
        f"where the right gradient is a sum of {ranks[0][0]}"
    )
    return Cause("missing-term", text, "differentiate every place where forward uses it")


def _rank(matrix: Array) -> int:
    return int(np.linalg.matrix_rank(matrix, rtol=1e-5))


def _is_multiple_of(e: Evidence, i: int, j: int) -> bool:
    """Return whether the error of a gradient is the gradient of another argument times a number."""
    pairs = [
        (e.got[i] - e.expected[i], e.expected[j]),
        (e.got_other[i] - e.expected_other[i], e.expected_other[j]),
    ]
    if e.got[i].size <= _FEW:
        if e.elsewhere is None:
            return False
        pairs.append((e.elsewhere.got[i] - e.elsewhere.expected[i], e.elsewhere.expected[j]))
    factors = [multiple(off, other).real for off, other in pairs]
    return all(
        abs(factors[0] - c) <= e.pattern_rtol * abs(c) and e.matches(off, c * other)
        for (off, other), c in zip(pairs, factors, strict=True)
    )


def _product_term(e: Evidence, i: int) -> Cause | None:
    """The gradient lacks grad_output times an array, as when half of a product rule is left out."""
    calls = [e] if e.elsewhere is None else [e, e.elsewhere]
    if len(calls) == 1 and e.got[i].size <= _FEW:
        return None
    found = [dict(_product_terms(call, i)) for call in calls]
    for words, c in found[0].items():
        if all(abs(other.get(words, np.inf) - c) <= e.pattern_rtol * abs(c) for other in found):
            size = {1.0: "", -1.0: "-"}.get(-c, f"{-c:g} * ")
            text = f"the term {size}grad_output {words} is missing from `{e.names[i]}`"
            return Cause("missing-term", text + (" (or its opposite is too many)" if c > 0 else ""))
    return None


def _product_terms(e: Evidence, i: int) -> Iterator[tuple[str, float]]:
    """Yield what the error may be but for grad_output, in words, with a simple coefficient."""
    if e.got[i].size == 1 and len(e.outputs) == 1 and e.outputs[0].size > _FEW:
        yield from _terms_of_one(e, i)
        return
    off = e.got[i] - e.expected[i]
    if len(e.seeds) != 1 or (e.seeds[0].shape != off.shape and e.seeds[0].size != 1):
        return
    seed = e.seeds[0] if e.seeds[0].shape == off.shape else e.seeds[0].reshape(())
    for words, values in [("1", np.ones(off.shape)), *_candidates(e, off.shape)]:
        with np.errstate(all="ignore"):
            for sign, term in (("*", seed * values), ("/", seed / values)):
                c = _simple_multiple(e, off, term)
                if c is not None:
                    yield f"{sign} {words}", c


def _terms_of_one(e: Evidence, i: int) -> Iterator[tuple[str, float]]:
    """Yield the same for a number, from what each output element contributes to its gradient."""
    (right, ours), x = e.jacobians(i), e.arrays[i].reshape(())
    if right is None or ours is None or x.dtype.kind == "c" or e.outputs[0].dtype.kind == "c":
        return
    off, name = (ours - right).reshape(e.outputs[0].shape), f"`{e.names[i]}`"
    for words, values in [("1", np.ones(off.shape)), *_candidates(e, off.shape)]:
        with np.errstate(all="ignore"):
            for more, term in (
                ("", values),
                (f" * {name}", values * x),
                (f" / {name}", values / x),
            ):
                c = _simple_multiple(e, off, term)
                if c is not None:
                    yield f"* {words}{more}", c


def _simple_multiple(e: Evidence, off: Array, term: Array) -> float | None:
    """Return the simple number by which a term is the error; None if there is none."""
    if not np.isfinite(term).all():
        return None
    c, simple = multiple(off, term).real, _simple_numbers(e)
    near = simple[np.argmin(np.abs(simple - abs(c)))]
    if abs(near - abs(c)) <= e.pattern_rtol * near and e.matches(off, c * term):
        return float(np.copysign(near, c))
    return None


def _simple_numbers(e: Evidence) -> Array:
    """Return the numbers by which a term may be multiplied: small ones, and lengths of axes."""
    lengths = {float(n) for a in (*e.arrays, *e.outputs) for n in (*a.shape, a.size) if n > 0}
    few = {1.0, 2.0, 3.0, 4.0} | lengths
    return np.array(sorted({c for n in few for c in (n, n / 2, 1 / n)}))


def _spanned(e: Evidence, off: Array, basis: list[Array], axis: int) -> bool:
    """Return whether each line of `off` along an axis is a combination of the basis' lines."""
    n = off.shape[axis]
    lines = off.size // n
    if n < len(basis) + 2 and (n < len(basis) + 1 or lines < 2):
        return False
    basis = [b + np.zeros((), np.float64) for b in basis]
    rows = np.moveaxis(off, axis, -1).reshape(-1, n)
    columns = [np.moveaxis(b, axis, -1).reshape(-1, n) for b in basis]
    fitted = np.zeros_like(rows)
    for k, row in enumerate(rows):
        matrix = np.stack([c[k] for c in columns], axis=1)
        if not np.isfinite(matrix).all():
            return False
        fitted[k] = matrix @ np.linalg.lstsq(matrix, row, rcond=None)[0]
    return e.matches(rows, fitted)


FACTORS = (extra_factor, factor_of_grad_output)
