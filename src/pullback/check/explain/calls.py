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
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError
from pullback.check.explain.candidates import multiples, ratio, subsets
from pullback.check.explain.evidence import Evidence, like
from pullback.check.iterating import ends
from pullback.check.naming import axes_text, quoted
from pullback.check.numerical import coordinates, direction_scales, joined
from pullback.check.report import Cause
from pullback.check.resizing import describe_axes, resized, session_with_leaves, symbols
from pullback.check.session import away_from_zero, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array

_MOST = 60  # other calls that are tried for one argument
_SECONDS, _LONGER = 0.2, 20  # that a call may take, and how many times as long as usual
_SAME, _SEEN, _CLOSE = 1e-9, 1e-7, 1e-5  # relative errors of a sum of derivatives
_PAIRS, _STEP = 3, 1e-5  # of directions, and along them, of a derivative of the gradient
SIZE = "take the size from the saved shape, and average only where forward does"
_SAVE = "save what backward needs with ctx.save_for_backward"
_PLACES = "differentiate every place where forward uses it"
_TURNED = "a kernel that is not flipped, a matrix not transposed?"
_CHANGED = "changed before it is used, or saved in its place?"


class Change(NamedTuple):
    """An array in place of another, in words; and what it means if backward takes it for that."""

    array: Array
    words: str
    cause: str = "other-value"
    hint: str = ""


# -- the gradient of another call ------------------------------------------------------------------
def other_setting(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if one setting had another value."""
    for name, value, other, subject in changed_settings(e.session.subject):
        if e.is_right_for(subject, i, own=False):
            text = f"`{e.names[i]}`: the gradient is that with `{name}` = {other!r}, not {value!r}"
            return Cause("other-value", text, f"does backward use the setting `{name}`?")
    return None


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


def other_array(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if one array had other values."""
    subject, name = e.session.subject, f"`{e.names[i]}`"
    calls = itertools.chain(_with_values(e, _structured), _with_values(e, lambda a: _saved(e, a)))
    for k, change, other in itertools.islice(calls, _MOST):
        own, label = k == subject.tracked[i], f"`{subject.labels[k]}`"
        saved = change.hint == _CHANGED
        if (own and not saved) or not e.is_right_for(other, i, own=False):
            continue
        text = f"{name}: {label} is used as if it were {change.words}"
        if own:
            text = f"{name}: the derivative is taken at {change.words} instead of {label}"
        return Cause(change.cause, text, change.hint)
    leaves = subject.leaves_on_host()
    arrays = [k for k, v in enumerate(leaves) if isinstance(v, np.ndarray)]
    for a, b in itertools.combinations([k for k in arrays if k != subject.tracked[i]], 2):
        changed = [leaves[{a: b, b: a}.get(k, k)] for k in range(len(leaves))]
        same = leaves[a].shape == leaves[b].shape and leaves[a].dtype == leaves[b].dtype
        if same and e.is_right_for(subject.with_leaves(changed), i, own=False):
            names = quoted([subject.labels[a], subject.labels[b]], " and ")
            return Cause("swapped", f"{name}: {names} are used as if they were exchanged")
    return _formula_of_output(e, i)


def _formula_of_output(e: Evidence, i: int) -> Cause | None:
    """Backward's formula is right for the output, but is given the argument."""
    subject, name = e.session.subject, f"`{e.names[i]}`"
    for words, out in e.named_outputs:
        same = out.shape == e.arrays[i].shape and out.dtype == e.arrays[i].dtype
        arrays = [*e.arrays[:i], out, *e.arrays[i + 1 :]]
        there = e.of(subject.with_arrays(arrays)) if same else None
        if there is not None and e.matches(there.vjp(e.seeds)[i], e.expected[i]):
            text = f"{name}: the formula for {words} is applied to {name} itself"
            return Cause("other-value", text, f"save {words} instead of the input")
    return None


def _with_values(
    e: Evidence, changes: Callable[[Array], Iterator[Change]]
) -> Iterator[tuple[int, Change, Subject]]:
    """Yield calls with one array changed: which, how, and the call."""
    subject = e.session.subject
    for k, leaf in enumerate(subject.leaves_on_host()):
        for change in changes(leaf) if isinstance(leaf, np.ndarray) and leaf.size else ():
            if change.array.shape == leaf.shape and not np.array_equal(change.array, leaf):
                leaves = subject.leaves_on_host()
                leaves[k] = change.array.astype(leaf.dtype)
                yield k, change, subject.with_leaves(leaves)


def _saved(e: Evidence, leaf: Array) -> Iterator[Change]:
    """Yield the outputs and the other arrays of the same kind in place of an array."""
    arrays = [(f"`{name}`", array) for name, array in e.session.subject.array_arguments()]
    for words, array in (*e.named_outputs, *arrays):
        if array.dtype.kind == leaf.dtype.kind:
            yield Change(array, words, hint=_CHANGED)


def _structured(a: Array) -> Iterator[Change]:
    """Yield an array rearranged, inverted, or without effect."""
    axes = [axis for axis in range(a.ndim) if a.shape[axis] > 1]
    if a.dtype.kind == "b":
        yield Change(~a, "the inverse mask")
        yield Change(np.ones_like(a), "true everywhere")
        return
    if a.ndim >= 2 and a.shape[-1] == a.shape[-2]:
        turned = a.swapaxes(-1, -2)
        yield Change((a + turned) / 2, "symmetric", "transposed", _TURNED)
        yield Change(turned, "transposed", "transposed", _TURNED)
    for some in subsets(axes):
        yield Change(np.flip(a, some), f"reversed along {axes_text(some)}", "misplaced", _TURNED)
    if a.ndim:
        hint = "put the gradient back in the inverse order"
        yield Change(np.sort(a, axis=-1), "sorted", "misplaced", hint)
        yield Change(np.flip(np.sort(a, axis=-1), -1), "sorted in descending order", "misplaced")
    for axis, step in itertools.product(axes, (1, -1)):
        text = f"shifted by one place along axis {axis}"
        yield Change(np.roll(a, step, axis), text, "misplaced", "off by one?")
    if a.dtype.kind in "iu":
        if a.ndim == 1 and np.array_equal(np.sort(a), np.arange(a.size)):
            yield Change(np.argsort(a), "its inverse permutation", "misplaced")
        yield Change(np.arange(a.size), "without repeated values (duplicates)", "elements")
    elif a.dtype.kind in "fc":
        yield Change(np.ones_like(a), "one everywhere", "extra-factor", "a factor left out?")
        yield Change(-a, "of the other sign", "sign", "it has the wrong sign in one term?")
        yield Change(a.conj(), "conjugated", "conjugated")


# -- where backward is right -----------------------------------------------------------------------
def condition(e: Evidence, i: int, kind: str = "") -> str:
    """Return under which condition the gradient is right, as "`A` is symmetric", or "".

    Among other settings alone, or other structures (`kind`), or among all.
    """
    labels = e.session.subject.labels
    settings = (
        (f"the setting `{name}` is {other!r}, not {value!r}", subject)
        for name, value, other, subject in changed_settings(e.session.subject)
    )
    structure, simple = (
        ((f"`{labels[k]}` is {change.words}", subject) for k, change, subject in calls)
        for calls in (_with_values(e, _structured), _with_values(e, _simple))
    )
    calls: Iterator[tuple[str, Subject]] = settings if kind == "settings" else structure
    if not kind:
        calls = itertools.chain(settings, structure, _of_sizes(e), simple)
    found = iter(()) if e.session.options.fast else calls
    return next((text for text, subject in found if e.is_right_for(subject, i, own=True)), "")


def _simple(a: Array) -> Iterator[Change]:
    """Yield arrays of the same shape with simpler values."""
    if a.dtype.kind == "c":
        yield Change(a.real + 0j, "real")
    elif a.dtype.kind == "f":
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
        axes, arrays = describe_axes(session, symbol), [k for k, _ in symbol.axes]
        if len(set(arrays)) == len(arrays):
            yield f"{axes} has length 1", subject.with_leaves(resized(session, symbol, 1))
        for length in (symbol.length + 1, symbol.length - 1):
            parity = "even (not odd)" if length % 2 == 0 else "odd (not even)"
            other = subject.with_leaves(resized(session, symbol, length))
            yield f"the length of {axes} is {parity}", other
    for longer, shorter in itertools.permutations(found, 2):
        shared = {k for k, _ in longer.axes} & {k for k, _ in shorter.axes}
        if longer.length > shorter.length and shared:
            square = subject.with_leaves(resized(session, longer, shorter.length))
            yield f"{quoted(subject.labels[k] for k in sorted(shared))} is square", square


def size(e: Evidence, i: int) -> Cause | None:
    """The gradient is off by a factor that is different at another size."""
    c = ratio(e, i)
    if e.session.options.fast or multiples(e, i) is None:
        return None
    for symbol in symbols(e.session):
        for length in (symbol.length + 1, 2 * symbol.length):
            try:
                leaves = resized(e.session, symbol, length)
                other = Evidence(session_with_leaves(e.session, leaves))
                there = ratio(other, i)
                same = other.matches(other.got[i], there * other.expected[i])
            except (InapplicableError, BackwardError, ForwardError):
                continue
            if same and abs(there - c) > e.pattern_rtol * abs(c):
                axes = describe_axes(e.session, symbol)
                text = (
                    f"`{e.names[i]}` is off by the factor {c:.3f}, and by {there:.3f} with {axes} "
                    f"of length {length} instead of {symbol.length}: it depends on that size"
                )
                return Cause("size", text, SIZE)
            break
    return None


# -- other values ----------------------------------------------------------------------------------
class Effect(NamedTuple):
    """How far another value of an argument changes a component of the right gradient.

    And backward's, their difference, and their ratio.
    """

    name: str
    right: float
    got: float
    off: float
    ratio: float


def dependence(e: Evidence, i: int) -> Cause | None:
    """Of what the gradient ignores, or of what alone its error, or its factor, depends on."""
    if e.session.options.fast:
        return None
    rng, name = e.session.rng(f"effects {i}"), f"`{e.names[i]}`"
    along = away_from_zero(coordinates(e.session.wide[i]).size, rng)
    found = list(_effects(e, i, along))
    ignored = [f.name for f in found if f.right > _CLOSE and f.got <= _SAME]
    added = [f.name for f in found if f.right <= _SAME and f.got > _CLOSE]
    good = [f.name for f in found if f.right > _CLOSE and f.off <= _CLOSE]
    bad = [f.name for f in found if f.off > _CLOSE]
    if ignored and all(f.got <= _SAME for f in found):
        text = (
            f"the gradient of {name} does not change when the values do: it belongs to an earlier "
            "call (a cache, stale state), or a factor that depends on them is missing"
        )
        return Cause("state", text, _SAVE)
    if ignored:
        text = f"it does not change with {quoted(ignored)}, though it should"
    elif added:
        text = f"it changes with {quoted(added)}, though it should not"
    elif good and bad:
        text = f"it changes as it should with {quoted(good)}, but not with {quoted(bad)}"
    else:
        element = np.eye(1, along.size, int(np.argmax(np.abs(e.got[i] - e.expected[i]))))[0]
        found = list(_effects(e, i, element))
        good = [f.name for f in found if f.right > _SEEN and f.ratio <= _CLOSE]
        bad = [f.name for f in found if f.ratio > _CLOSE]
        text = f"{name} is off by a factor that changes with {quoted(bad)}, not with {quoted(good)}"
        return Cause("extra-factor", text, _PLACES) if good and bad else None
    return Cause("missing-term", f"a term is missing from {name} (or wrong): {text}", _PLACES)


def _effects(e: Evidence, i: int, along: Array) -> Iterator[Effect]:
    """Yield what other values of each argument and setting change along a direction."""
    subject, rng = e.session.subject, e.session.rng(f"values {i}")

    def moved(a: Array) -> Iterator[Change]:
        if a.dtype.kind in "fc":
            yield Change(a * rng.uniform(1.01, 1.1, a.shape), "")

    calls = {subject.labels[k]: found for k, _, found in _with_values(e, moved)}
    calls |= {name: found for name, _, _, found in changed_settings(subject)}
    base = np.array(_components(e, subject, i, along))
    for name, other in calls.items():
        there = np.array(_components(e, other, i, along))
        size = np.abs([base, there]).max() or 1.0
        right, got = np.abs(there - base) / size
        with np.errstate(all="ignore"):
            share = abs(base[1] * there[0] / (base[0] * there[1]) - 1)
        if np.isfinite([right, got]).all():
            yield Effect(name, right, got, abs(np.subtract(*(there - base))) / size, share)


def _components(e: Evidence, subject: Subject, i: int, along: Array) -> tuple[float, float]:
    """Return the components of the right gradient and of backward's along a direction, or NaN."""
    session = e.session_of(subject)
    try:
        if [out.shape for out in session.outputs] != [out.shape for out in e.outputs]:
            return np.nan, np.nan
        scales = direction_scales(np.abs(coordinates(session.wide[i])))
        line = session.measure(i, along / scales)
        got = zeros_for_none(session.vjp(e.seeds), e.arrays)[i]
    except (BackwardError, ForwardError):
        return np.nan, np.nan
    with np.errstate(all="ignore"):
        right = float(joined(e.seeds) @ line.slope.value)
        return right, float(line.direction @ coordinates(got))


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
    text = f"a part of the gradient of `{e.names[i]}` is missing: there is {low} to {high} of it, "
    return Cause("missing-term", f"{text}at {len(shares)} different values", _PLACES)


def other_function(e: Evidence, i: int) -> Cause | None:
    """The gradient is that of another function, or of none: its derivative is not symmetric."""
    x, rng, sides = e.arrays[i], e.session.rng(f"fields {i}"), []
    if e.session.options.fast or x.dtype != np.float64 or x.size < 2:
        return None
    for _ in range(_PAIRS):
        u, v = (away_from_zero(x.shape, rng) for _ in range(2))
        for along, moved in ((u, v), (v, u)):
            step = _STEP * float(np.sqrt(np.mean(x**2)) or 1.0) * moved
            try:
                after, before = (_vjp_at(e, i, x + d) for d in (step, -step))
            except (BackwardError, ForwardError):
                return None
            sides.append(float(np.sum(along * (after - before))))
    one, other = np.array(sides[::2]), np.array(sides[1::2])
    size, name = max(map(abs, sides)), f"`{e.names[i]}`"
    if not np.isfinite(sides).all() or size <= _STEP**2 * np.abs(e.got[i]).max():
        return None  # one that is linear is symmetric
    text = (
        f"a part of forward is taken for a constant in the gradient of {name}, or has the wrong "
        "sign or place in it: no function has the gradient that backward returns"
    )
    if (np.abs(one - other) <= 1e-4 * size).all():
        text = (
            f"a term is missing from {name} (or too many): what backward returns is the gradient "
            "of a function, but of another one than forward"
        )
    return Cause("missing-term", text, _PLACES)


def _vjp_at(e: Evidence, i: int, x: Array) -> Array:
    found = e.session.vjp(e.seeds, [*e.arrays[:i], x, *e.arrays[i + 1 :]])
    return zeros_for_none(found, e.arrays)[i]
