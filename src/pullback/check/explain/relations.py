"""Gradients of another argument, scaled by a number, or independent of grad_output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.check.explain.alignment import multiple
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.explaining import explanation, wrong_elements
from pullback.check.report import Cause


def swapped(e: Evidence, i: int, others: Sequence[int]) -> tuple[int, Cause] | None:
    """Two arguments have each other's gradient."""
    for j in others:
        if e.fits(i, e.expected[j]) and e.fits(j, e.expected[i]):
            text = f"the gradients of `{e.names[i]}` and `{e.names[j]}` are swapped"
            return j, Cause("swapped", text, "return gradients by name")
        if _swapped_in_part(e, i, j):
            where = explanation(e, i, wrong_elements)
            text = (
                f"the gradients of `{e.names[i]}` and `{e.names[j]}` are swapped at "
                f"{int(e.wrong[i].sum())} of {e.wrong[i].size} elements"
            )
            hint = "a rule for one order of the two is used for the other one?"
            return j, Cause("swapped", f"{text}, all where {where}" if where else text, hint)
    return None


def _swapped_in_part(e: Evidence, i: int, j: int) -> bool:
    """Return whether two arguments have each other's gradient where these are wrong."""
    off = e.wrong[i]
    if off.shape != e.wrong[j].shape or not np.array_equal(off, e.wrong[j]) or not off.any():
        return False
    pairs = ((e.got[i], e.expected[j]), (e.got[j], e.expected[i]))
    return all(e.matches(got[off], right[off]) for got, right in pairs)


def none(e: Evidence, i: int) -> Cause | None:
    """There is no gradient, or only zeros."""
    name = f"`{e.names[i]}`"
    if e.raw[i] is None:
        return Cause("none", f"{name} gets no gradient (None), although the outputs depend on it")
    if not np.any(e.got[i]) and not np.any(e.got_other[i]):
        return Cause("none", f"the gradient of {name} is zero everywhere")
    return None


def another(e: Evidence, i: int) -> Cause | None:
    """The gradient is that of another argument."""
    for j, right in enumerate(e.expected):
        if j != i and e.fits(i, right):
            text = f"`{e.names[i]}` has the gradient of `{e.names[j]}`"
            hint = "return gradients by name"
            if right.ndim == 2:  # of A X B, one matrix stands on the left and one on the right
                hint += (
                    "; or do the factors of a product stand in the wrong order (left and right)?"
                )
            return Cause("swapped", text, hint)
    return None


# -- times a number --------------------------------------------------------------------------------
def factor(e: Evidence, i: int) -> Cause | None:
    """The gradient is the right one times a number, -1 among them."""
    c = ratio(e, i)
    if c is None:
        return None
    name = f"`{e.names[i]}`"
    if abs(c + 1) < e.pattern_rtol:
        return Cause("sign", f"{name} has the wrong sign everywhere")
    c = steady_ratio(e, i)
    if c is None or abs(c - 1) < e.pattern_rtol:  # the latter is left to `precision`
        return None
    return Cause("factor", f"{name} is off by the factor {c:.3f} everywhere{_origin(e, c)}")


def ratio(e: Evidence, i: int) -> complex | None:
    """Return the factor between a gradient and the right one, if there is one."""
    got, right = e.got[i], e.expected[i]
    seen = np.isfinite(right) & np.isfinite(got)
    c = multiple(got[seen], right[seen])
    if abs(c.imag) <= 1e-6 * abs(c):
        c = c.real
    if not e.matches(got, c * right) or not e.matches(e.got_other[i], c * e.expected_other[i]):
        return None
    return c


def steady_ratio(e: Evidence, i: int) -> complex | None:
    """Return the factor between a gradient and the right one, if other values do not change it.

    Any two numbers have a ratio.
    """
    c = ratio(e, i)
    if c is None or e.elsewhere is None:
        return c
    there = ratio(e.elsewhere, i)
    return None if there is None or abs(there - c) > e.pattern_rtol * abs(c) else c


def _origin(e: Evidence, c: complex) -> str:
    """Return which argument a factor may come from, in words."""
    for name, value in e.numbers:
        for v, words in ((value, "which is the argument"), (1 / value if value else 0, "1 over")):
            if v and abs(c - v) < e.pattern_rtol * abs(c) and abs(v) != 1:
                return f", {words} `{name}`"
    return ""


# -- grad_output -----------------------------------------------------------------------------------
def not_multiplied(e: Evidence, i: int) -> Cause | None:
    """The gradient does not depend on grad_output."""
    if e.matches(e.got[i], e.got_other[i]) and not e.matches(e.expected[i], e.expected_other[i]):
        text = f"`{e.names[i]}` is not multiplied by grad_output: the incoming gradient is ignored"
        return Cause("not-multiplied", text)
    return None


def nonlinear(e: Evidence, i: int) -> Cause | None:
    """The gradient is not linear in grad_output, or sees only a mean of it."""
    name = f"`{e.names[i]}`"
    doubled = e.vjp([2 * g for g in e.seeds])[i]
    if not e.matches(doubled, 2 * e.got[i]):
        head = f"{name} is not linear in grad_output"
        if e.matches(doubled, 4 * e.got[i]):
            return Cause("nonlinear", f"{head}: it is multiplied by it twice")
        if e.matches(doubled, e.got[i]):
            return Cause("nonlinear", f"{head}: only its sign or direction counts")
        return Cause("nonlinear", head)
    if not e.matches(e.vjp([-g for g in e.seeds])[i], -e.got[i]):
        text = (
            f"{name} is not linear in grad_output: its sign makes another difference than it should"
        )
        return Cause("nonlinear", text)
    for words, reduce in (("mean", np.mean), ("sum", np.sum)):
        if all(g.size > 1 for g in e.seeds):
            flat = [np.full_like(g, reduce(g)) for g in e.seeds]
            if e.fits(i, e.numerical(flat)[i]):
                return Cause("nonlinear", f"{name} sees only the {words} of grad_output")
    return None


def output_ignored(e: Evidence, i: int) -> Cause | None:
    """The gradient of one output is ignored, or those of two are exchanged."""
    count = len(e.seeds)
    name = f"`{e.names[i]}`"
    for k in range(count if count > 1 else 0):
        without = [np.zeros_like(g) if m == k else g for m, g in enumerate(e.seeds)]
        if e.fits(i, e.numerical(without)[i]):
            return Cause("output-ignored", f"{name} ignores the gradient of output {k}")
        negated = [-g if m == k else g for m, g in enumerate(e.seeds)]
        if e.fits(i, e.numerical(negated)[i]):
            return Cause("sign", f"{name} has the wrong sign in what comes from output {k}")
        for m in range(k + 1, count):
            if e.seeds[k].shape == e.seeds[m].shape:
                turned = list(e.seeds)
                turned[k], turned[m] = turned[m], turned[k]
                if e.fits(i, e.numerical(turned)[i]):
                    text = f"{name}: the gradients of outputs {k} and {m} are exchanged"
                    return Cause("output-ignored", text)
    return None


# -- complex numbers -------------------------------------------------------------------------------
def conjugated(e: Evidence, i: int) -> Cause | None:
    """A conjugate is missing or too many, or a part is dropped."""
    if not any(a.dtype.kind == "c" for a in (e.arrays[i], *e.outputs)):
        return None
    got, right, name = e.got[i], e.expected[i], f"`{e.names[i]}`"
    turned = e.numerical([np.conj(g) for g in e.seeds])[i]
    hint = "the gradient of a holomorphic function is grad_output * f'(z).conj()"
    patterns = [
        (np.conj(turned), f"{name}: the derivative is not conjugated", hint),
        (np.conj(right), f"{name} is conjugated", ""),
        (turned, f"{name}: grad_output is conjugated", ""),
    ]
    if not any(out.dtype.kind == "c" for out in e.outputs):
        del patterns[0]  # with a real grad_output it is the same as the next
    for pattern, text, more in patterns:
        if e.fits(i, pattern):
            return Cause("conjugated", text, more)
    if got.dtype.kind == "c" and e.fits(i, right.real + 0j):
        return Cause("conjugated", f"{name}: the imaginary part is missing")
    return None


def constant(e: Evidence, i: int) -> Cause | None:
    """The outputs do not depend on the argument, but it gets a gradient."""
    known = e.known(i)
    if not known.any() or np.any(e.expected[i][known]):
        return None
    text = (
        f"the outputs do not change with `{e.names[i]}` here, but backward gives it a gradient: "
        "it should be zero"
    )
    return Cause("formula", text, "a straight-through gradient is not one: leave it out of checks")


RELATIONS = (none, constant, not_multiplied, nonlinear, output_ignored)
