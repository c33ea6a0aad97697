"""What other calls tell of a wrong gradient: other settings, values, places and sizes.

A rule that ignores a setting, inverts a mask or leaves out weights returns what would be right if
that argument were another; one that is right for symmetric or sorted arrays alone is right there.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.ending import ends
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError
from pullback.check.explain.candidates import multiples, ratio, subsets
from pullback.check.explain.evidence import Evidence, like
from pullback.check.naming import axes_text, quoted
from pullback.check.numerical import coordinates, joined
from pullback.check.report import Cause
from pullback.check.resizing import describe_axes, resized, session_with_leaves, symbols
from pullback.check.session import away_from_zero, direction_scales, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array

_MOST = 60  # other calls that are tried for one argument
_SECONDS, _LONGER = 0.2, 20  # that a call may take, and how many times as long as usual
_SAME, _CLOSE = 1e-9, 1e-5  # relative errors of a sum of derivatives
_SHIFTED = (
    "a mean, a maximum or a normalisation (softmax) is taken for a constant, or one of two "
    "opposite terms is left out or has the wrong sign?"
)
_SCALED = "a norm, a sum or a degree that normalises is taken for a constant?"
SIZE = "take the size from the saved shape, and average only where forward does"
_TURNED = "a kernel that is not flipped, a matrix not transposed?"


class Change(NamedTuple):
    """An array in place of another, in words; and what it means if backward takes it for that."""

    array: Array
    words: str
    cause: str = "other-value"
    hint: str = ""


class Call(NamedTuple):
    """Another call, and the cause if backward's gradient is the right one there."""

    subject: Subject
    cause: str
    text: str
    hint: str = ""


# -- the gradient of another call ------------------------------------------------------------------
def other_setting(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if one setting had another value."""
    return _that_of(e, i, _with_settings(e))


def other_value(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if one argument had another value."""
    calls = itertools.chain(_with_settings(e), _with_arrays(e, i), _exchanged(e, i))
    return _that_of(e, i, itertools.islice(calls, _MOST)) or _formula_of_output(e, i)


def _that_of(e: Evidence, i: int, calls: Iterator[Call]) -> Cause | None:
    found = (call for call in calls if e.is_that_of(call.subject, i))
    return next((Cause(c.cause, f"`{e.names[i]}`: {c.text}", c.hint) for c in found), None)


def _formula_of_output(e: Evidence, i: int) -> Cause | None:
    """Backward's formula is right for the output, but is given the argument."""
    for words, out in e.named_outputs:
        same = out.shape == e.arrays[i].shape and out.dtype == e.arrays[i].dtype
        arrays = [*e.arrays[:i], out, *e.arrays[i + 1 :]]
        there = e.of(e.session.subject.with_arrays(arrays)) if same else None
        if there is not None and e.matches(there.vjp(e.seeds)[i], e.expected[i]):
            text = f"`{e.names[i]}`: the formula for {words} is applied to `{e.names[i]}` itself"
            return Cause("other-value", text, f"save {words} instead of the input")
    return None


def _with_settings(e: Evidence) -> Iterator[Call]:
    for name, value, other, subject in changed_settings(e.session.subject):
        text = f"the gradient is that with `{name}` = {other!r}, not {value!r}"
        yield Call(subject, "other-value", text, f"does backward use the setting `{name}`?")


def changed_settings(subject: Subject) -> Iterator[tuple[str, Any, Any, Subject]]:
    """Yield a setting's name, its value, one that a rule may have used, and the call with that.

    A loop may never end with a step of 0, or back: such a call is tried first.
    """
    for name, value in subject.settings():
        for other in _values_of_setting(value, subject.default_of(name)):
            found = subject.with_setting(name, other)
            down = type(value) in (int, float) and type(other) in (int, float) and other <= 0
            seconds = _SECONDS + _LONGER * deadline().average()
            if found is not None and (not down or value <= 0 or ends(found.run, seconds)):
                yield name, value, other, found


def _values_of_setting(value: Any, default: Any) -> Iterator[Any]:
    """Yield other values of a setting."""
    found: list[Any] = [] if default is inspect.Parameter.empty else [default]
    if isinstance(value, bool):
        found.append(not value)
    elif isinstance(value, (int, float)) and np.isfinite(value):
        found += [-value, 0 * value, 0 * value + 1]
        found += [1 - value] if 0 < value < 1 else []
        found += [value + 1, value - 1] if isinstance(value, int) else []
    for k, other in enumerate(found):
        if (type(other), other) not in [(type(v), v) for v in (value, *found[:k])]:
            yield other


def _with_arrays(e: Evidence, i: int) -> Iterator[Call]:
    """Yield calls with other arrays, the likeliest mistakes first."""
    subject = e.session.subject
    for k, leaf in enumerate(subject.leaves_on_host()):
        own, label = k == subject.tracked[i], f"`{subject.labels[k]}`"
        if isinstance(leaf, np.ndarray) and leaf.size:
            for change in (*_in_place(e, k, leaf), *(() if own else _structured(leaf))):
                words = f"{label} is used as if it were {change.words}"
                if own:
                    words = f"the derivative is taken at {change.words} instead of {label}"
                for found in _changed(subject, k, change.array):
                    yield Call(found, change.cause, words, change.hint)


def _changed(subject: Subject, k: int, array: Array) -> Iterator[Subject]:
    """Yield the call with another array, if it is another of the same shape."""
    leaves = subject.leaves_on_host()
    if array.shape == leaves[k].shape and not np.array_equal(array, leaves[k]):
        leaves[k] = array.astype(leaves[k].dtype)
        yield subject.with_leaves(leaves)


def _in_place(e: Evidence, k: int, leaf: Array) -> Iterator[Change]:
    """Yield the outputs and the other arrays of the same kind in place of an array."""
    subject, hint = e.session.subject, "changed before it is used, or saved in its place?"
    found = [(name, out, hint) for name, out in e.named_outputs]
    for j, other in enumerate(subject.leaves_on_host()):
        if j != k and isinstance(other, np.ndarray):
            found.append((f"`{subject.labels[j]}`: the two are exchanged?", other, ""))
    for words, array, more in found:
        if array.dtype.kind == leaf.dtype.kind:
            yield Change(array, words, hint=more)


def _structured(a: Array) -> Iterator[Change]:
    """Yield an array rearranged, inverted, or without effect."""
    if a.dtype.kind == "b":
        yield Change(~a, "the inverse mask")
        yield Change(np.ones_like(a), "true everywhere")
        return
    square = a.ndim >= 2 and a.shape[-1] == a.shape[-2]
    if square and a.dtype.kind == "f":
        both = (a + a.swapaxes(-1, -2)) / 2
        yield Change(both, "symmetric", "transposed", _TURNED)
    if square:
        yield Change(a.swapaxes(-1, -2).copy(), "transposed", "transposed", _TURNED)
    axes = [axis for axis in range(a.ndim) if a.shape[axis] > 1]
    for some in subsets(axes):
        text = f"reversed along {axes_text(some)}"
        yield Change(np.flip(a, some).copy(), text, "misplaced", _TURNED)
    if a.ndim and a.shape[-1] > 1:
        hint = "put the gradient back in the inverse order"
        yield Change(np.sort(a, axis=-1), "sorted", "misplaced", hint)
        yield Change(np.sort(a, axis=-1)[..., ::-1].copy(), "sorted in descending order")
    for axis in axes:
        for step in (1, -1):
            text = f"shifted by one place along axis {axis}"
            yield Change(np.roll(a, step, axis), text, "misplaced", "off by one?")
    if a.dtype.kind in "iu" and a.ndim == 1:
        if np.array_equal(np.sort(a), np.arange(a.size)):
            yield Change(np.argsort(a), "its inverse permutation", "misplaced")
        yield Change(np.arange(a.size), "without repeated values (duplicates)", "elements")
    elif a.dtype.kind in "fc":
        yield Change(np.ones_like(a), "one everywhere", "extra-factor", "a factor left out?")
        yield Change(-a, "of the other sign", "sign", "it has the wrong sign in one term?")
        yield Change(a.conj(), "conjugated", "conjugated")


def _exchanged(e: Evidence, i: int) -> Iterator[Call]:
    """Yield calls in which two other arrays are exchanged."""
    subject = e.session.subject
    leaves = subject.leaves_on_host()
    arrays = [k for k, v in enumerate(leaves) if isinstance(v, np.ndarray)]
    for a, b in itertools.combinations([k for k in arrays if k != subject.tracked[i]], 2):
        if leaves[a].shape == leaves[b].shape and leaves[a].dtype == leaves[b].dtype:
            changed = list(leaves)
            changed[a], changed[b] = leaves[b], leaves[a]
            words = f"{quoted([subject.labels[a], subject.labels[b]], ' and ')} are used as if"
            yield Call(subject.with_leaves(changed), "swapped", f"{words} they were exchanged")


# -- where backward is right -----------------------------------------------------------------------
def condition(e: Evidence, i: int, kind: str = "") -> str:
    """Return under which condition the gradient of argument `i` is right, or ``""``.

    Parameters
    ----------
    kind : {"", "settings", "structure"}
        What alone is tried.

    Returns
    -------
    str
        The end of a sentence: ``"`A` is symmetric"``.
    """
    settings = (
        (f"the setting `{name}` is {other!r}, not {value!r}", subject)
        for name, value, other, subject in changed_settings(e.session.subject)
    )
    structure = _with_values(e, _structured)
    calls: dict[str, Iterator[tuple[str, Subject]]] = {
        "settings": settings,
        "structure": structure,
        "": itertools.chain(settings, structure, _of_sizes(e), _with_values(e, _simple)),
    }
    found = iter(()) if e.session.options.fast else calls[kind]
    return next((text for text, subject in found if e.is_right(subject, i)), "")


def _with_values(
    e: Evidence, changes: Callable[[Array], Iterator[Change]]
) -> Iterator[tuple[str, Subject]]:
    """Yield calls with another array, in words."""
    subject = e.session.subject
    for k, leaf in enumerate(subject.leaves_on_host()):
        for change in changes(leaf) if isinstance(leaf, np.ndarray) and leaf.size else ():
            for found in _changed(subject, k, change.array):
                yield f"`{subject.labels[k]}` is {change.words}", found


def _simple(a: Array) -> Iterator[Change]:
    """Yield arrays of the same shape with simpler values."""
    if a.dtype.kind == "c":
        yield Change(a.real + 0j, "real")
    if a.dtype.kind != "f":
        return
    ties = a + 1e-2 * np.linspace(-1, 1, a.size).reshape(a.shape)
    yield Change(ties if np.unique(a).size < a.size else a, "without ties (equal values)")
    yield Change(np.where(a == 0, 0.3, a), "not zero anywhere")
    yield Change(np.where(a == np.round(a), a + 0.21, a), "free of whole numbers")
    yield Change(np.abs(a), "positive")
    yield Change(-np.abs(a), "negative")
    yield Change(0.05 * a, "small")
    yield Change(20.0 * a, "large")


def _of_sizes(e: Evidence) -> Iterator[tuple[str, Subject]]:
    """Yield calls of other sizes, in words."""
    session, subject = e.session, e.session.subject
    found = symbols(session)
    for symbol in found:
        axes = describe_axes(session, symbol)
        arrays = [k for k, _ in symbol.axes]
        alone = [1] if len(set(arrays)) == len(arrays) else []
        for length in (*alone, symbol.length + 1, symbol.length - 1):
            words = f"{axes} has length 1"
            if length > 1:
                parity = "even (not odd)" if length % 2 == 0 else "odd (not even)"
                words = f"the length of {axes} is {parity}"
            yield words, subject.with_leaves(resized(session, symbol, length))
    for longer, shorter in itertools.permutations(found, 2):
        shared = {k for k, _ in longer.axes} & {k for k, _ in shorter.axes}
        if longer.length > shorter.length and shared:
            names = quoted(subject.labels[k] for k in sorted(shared))
            square = subject.with_leaves(resized(session, longer, shorter.length))
            yield f"{names} is square", square


# -- other sizes -----------------------------------------------------------------------------------
def size(e: Evidence, i: int) -> Cause | None:
    """The gradient is off by a factor that is different at another size."""
    if e.session.options.fast or multiples(e, i) is None:
        return None
    c = ratio(e, i)
    for symbol in symbols(e.session):
        for length in (symbol.length + 1, 2 * symbol.length):
            try:
                other = Evidence(session_with_leaves(e.session, resized(e.session, symbol, length)))
                there = ratio(other, i)
                same = other.matches(other.got[i], there * other.expected[i])
            except (InapplicableError, BackwardError, ForwardError):
                continue
            if same and abs(there - c) > e.pattern_rtol * abs(c):
                text = (
                    f"`{e.names[i]}` is off by the factor {c:.3f}, and by {there:.3f} with "
                    f"{describe_axes(e.session, symbol)} of length {length} instead of "
                    f"{symbol.length}: it depends on that size"
                )
                return Cause("size", text, SIZE)
            break
    return None


# -- other values ----------------------------------------------------------------------------------
def dependence(e: Evidence, i: int) -> Cause | None:
    """Of what the gradient ignores, or of what alone its error depends on."""
    if e.session.options.fast:
        return None
    found = list(_effects(e, i))
    ignored = [name for name, right, got, _ in found if right > _CLOSE and got <= _SAME]
    added = [name for name, right, got, _ in found if right <= _SAME and got > _CLOSE]
    good = [name for name, right, _, off in found if right > _CLOSE and off <= _CLOSE]
    bad = [name for name, _, _, off in found if off > _CLOSE]
    name = f"`{e.names[i]}`"
    if ignored and all(got <= _SAME for _, _, got, _ in found):
        text = (
            f"the gradient of {name} does not change when the values do: it belongs to an earlier "
            "call (a cache, stale state), or a factor that depends on them is missing"
        )
        return Cause("state", text, "save what backward needs with ctx.save_for_backward")
    if ignored:
        text = f"it does not change with {quoted(ignored)}, though it should"
    elif added:
        text = f"it changes with {quoted(added)}, though it should not"
    elif good and bad:
        text = f"it changes as it should with {quoted(good)}, but not with {quoted(bad)}"
    else:
        return None
    hint = "differentiate every place where forward uses it"
    return Cause("missing-term", f"a term is missing from {name} (or wrong): {text}", hint)


def _effects(e: Evidence, i: int) -> Iterator[tuple[str, float, float, float]]:
    """Yield arguments, and by how much another value of each changes the right gradient.

    And backward's, and the difference of both.
    """
    subject, rng = e.session.subject, e.session.rng(f"effects {i}")
    along = away_from_zero(coordinates(e.session.wide[i]).size, rng)
    base = _components(e, subject, i, along)
    calls: list[tuple[str, Subject]] = []
    for k, leaf in enumerate(subject.leaves_on_host()):
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc" and leaf.size:
            moved = leaf * rng.uniform(1.01, 1.1, leaf.shape)
            calls += [(subject.labels[k], found) for found in _changed(subject, k, moved)]
    settings = {name: found for name, _, _, found in changed_settings(subject)}
    for name, other in (*calls, *settings.items()) if base is not None else ():
        there = _components(e, other, i, along)
        if base is not None and there is not None:
            size = max(map(abs, (*base, *there)))
            right, got = (abs(b - a) / size for a, b in zip(base, there, strict=True))
            off = abs((there[1] - base[1]) - (there[0] - base[0])) / size
            yield name, right, got, off


def _components(e: Evidence, subject: Subject, i: int, along: Array) -> tuple[float, float] | None:
    """Return the components of the right gradient and of backward's along a direction."""
    session = e.session_of(subject)
    try:
        scales = direction_scales(np.abs(coordinates(session.wide[i])))
        line = session.measure(i, along / scales)
        if [out.shape for out in session.outputs] != [out.shape for out in e.outputs]:
            return None
        got = float(line.direction @ coordinates(zeros_for_none(session.vjp(e.seeds), e.arrays)[i]))
    except (BackwardError, ForwardError):
        return None
    right = float(joined(e.seeds) @ line.slope.value)
    return (right, got) if np.isfinite([right, got]).all() and (right or got) else None


def smaller(e: Evidence, i: int) -> Cause | None:
    """One number whose gradient is, at all values that are tried, a part of the right one."""
    if e.got[i].size != 1 or e.session.options.fast or e.got[i].dtype.kind == "c":
        return None
    rng, shares = e.session.rng(f"parts {i}"), []
    for k in range(4):
        moved = like([a * (1 + 0.2 * rng.uniform(-1, 1, a.shape)) for a in e.arrays], e.arrays)
        there = e if k == 0 else e.of(e.session.subject.with_arrays(moved))
        if there is not None and there.expected[i].any():
            shares.append(float((there.got[i] / there.expected[i]).reshape(())))
    if len(shares) < 3 or not all(1e-4 < share < 1 - 1e-4 for share in shares):
        return None
    low, high = (f"{100 * share:.0f} %" for share in (min(shares), max(shares)))
    name = f"`{e.names[i]}`"
    text = (
        f"a part of the gradient of {name} is missing: there is {low} to {high} of it, at "
        f"{len(shares)} different values"
    )
    hint = f"forward uses {name} in several places: differentiate each of them"
    return Cause("missing-term", text, hint)


def invariance(e: Evidence, i: int) -> Cause | None:
    """The outputs do not change as the argument is shifted or scaled; by backward they do."""
    x, name = e.arrays[i], f"`{e.names[i]}`"
    pairs = ((e.expected[i], e.got[i]), (e.expected_other[i], e.got_other[i]))
    if x.size < 2 or x.dtype.kind == "c" or not all(np.isfinite(a).all() for p in pairs for a in p):
        return None
    for axes in subsets([axis for axis, n in enumerate(x.shape) if n > 1]):
        along = f" along {axes_text(axes)}" if len(axes) < x.ndim else ""
        for factor, moved, what, hint in (
            (np.ones(()), _shifted(name, axes, x), "sums to zero", _SHIFTED),
            (x, f"{name} is scaled{along}", "is orthogonal to it", _SCALED),
        ):
            if all(_vanishes(r * factor, axes) > _vanishes(g * factor, axes) for r, g in pairs):
                text = (
                    f"{name}: a term is missing: the outputs do not change when {moved}, so its "
                    f"gradient {what} there, and backward's does not"
                )
                return Cause("missing-term", text, hint)
    return None


def _shifted(name: str, axes: tuple[int, ...], x: Array) -> str:
    """Return in words that a constant is added along some axes."""
    if len(axes) == x.ndim:
        return f"a constant is added to {name}"
    if x.ndim == 2:
        return f"all {('rows', 'columns')[axes[0]]} of {name} are moved alike"
    return f"a constant is added to {name} along {axes_text(axes)}"


def _vanishes(terms: Array, axes: tuple[int, ...]) -> bool:
    """Return whether the sums of some terms are zero up to rounding, and the terms are not."""
    size = np.abs(terms).sum(axis=axes)
    return bool(size.any() and (np.abs(terms.sum(axis=axes)) <= 1e-5 * size.max()).all())
