"""What other calls tell of a wrong gradient: other settings, values and sizes.

A rule that ignores a setting, inverts a mask or leaves out weights returns what would be right if
that argument were another.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.check.deadline import ends
from pullback.check.explain.candidates import PLACES, multiple, multiples, rearranged
from pullback.check.explain.evidence import Evidence
from pullback.check.report import Cause, quoted
from pullback.check.sizes import SIZE, describe_axes, symbols, with_other_length
from pullback.check.subject import BackwardError, ForwardError, Subject
from pullback.check.values import Array

_MOST = 80  # other calls that are tried for one argument
_TURNED = "a kernel that is not flipped, a matrix not transposed, an order not inverted?"
_IGNORED = "does backward use it?"
_CHANGED = "changed before it is used, or saved in its place?"
# A call with another value of an argument, that in words, and the cause and hint if it is used.
Change = tuple[Subject, str, str, str, str]


def other_value(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if a setting or an array had another value."""
    name = f"`{e.names[i]}`"
    for subject, label, words, cause, hint in itertools.islice(_changes(e), _MOST):
        own = label == name
        there = e.of(subject) if not own or hint == _CHANGED else None
        if there is None:
            continue
        if own and e.matches(there.vjp(e.seeds)[i], e.expected[i]):
            text = f"{name}: the formula for {words} is applied to {name} itself"
            return Cause(cause, text, f"save {words} instead of the input")
        if e.is_right_in(there, i):
            used = f"{label} is used as if it were {words}"
            taken = f"the derivative is taken at {words} instead of {name}"
            return Cause(cause, f"{name}: {taken if own else used}", hint)
    return None


def _changes(e: Evidence) -> Iterator[Change]:
    """Yield calls with another value of a setting, or of an array: rearranged, or another one's."""
    subject, leaves = e.session.subject, e.session.subject.leaves_on_host()
    for label, value, other, found in _changed_settings(subject):
        yield found, f"`{label}`", f"{other!r}, not {value!r}", "other-value", _IGNORED
    labels = [f"`{label}`" for label in subject.labels]
    arrays = [(k, a) for k, a in enumerate(leaves) if isinstance(a, np.ndarray) and a.size]
    others = [*e.named_outputs, *((labels[k], a) for k, a in arrays)]
    rows = [(k, *row) for k, a in arrays for row in _rearrangements(a)]
    for (k, a), (words, other) in itertools.product(arrays, others):
        if a.dtype.kind == other.dtype.kind:
            rows.append((k, other, words, "other-value", _CHANGED))
    for k, array, words, cause, hint in rows:
        if array.shape == leaves[k].shape and not np.array_equal(array, leaves[k]):
            changed = [*leaves[:k], np.asarray(array, leaves[k].dtype), *leaves[k + 1 :]]
            yield subject.with_leaves(changed), labels[k], words, cause, hint


def _changed_settings(subject: Subject) -> Iterator[tuple[str, Any, Any, Subject]]:
    """Yield a setting's name, its value, one that a rule may have used, and the call with that.

    A loop may never end with a step of 0, or back: such a call is tried first.
    """
    for name, value in subject.settings():
        if name not in subject.defaults:  # of a container, or of no parameter of its own
            continue
        for other in _values_of_setting(value, subject.defaults[name]):
            found = subject.with_setting(name, other)
            down = type(value) in (int, float) and type(other) in (int, float) and other <= 0
            if found is not None and (not down or value <= 0 or ends(found.run)):
                yield name, value, other, found


def _values_of_setting(value: Any, default: Any) -> list[Any]:
    """Return other values of a setting."""
    found = [] if default is inspect.Parameter.empty else [default]
    if isinstance(value, bool):
        found.append(not value)
    elif isinstance(value, (int, float)) and np.isfinite(value):
        found += [-value, 0 * value, 0 * value + 1, 1 - value, value + 1, value - 1]
    return list({repr(v): v for v in found if repr(v) != repr(value)}.values())


def _rearrangements(a: Array) -> Iterator[tuple[Array, str, str, str]]:
    """Yield arrays in place of one, in words, with the cause and a hint."""
    if a.dtype.kind == "b":
        yield ~a, "the inverse mask", "other-value", _IGNORED
        yield np.ones_like(a), "true everywhere", "other-value", _IGNORED
        return
    if a.ndim >= 2 and a.shape[-1] == a.shape[-2]:
        turned = a.swapaxes(-1, -2)
        yield (a + turned) / 2, "symmetric", "transposed", _TURNED
        yield turned, "transposed", "transposed", _TURNED
    for words, other in rearranged(a, farthest=1):
        yield other, words, "misplaced", _TURNED
    if a.ndim:
        yield np.sort(a, axis=-1), "sorted", "misplaced", _TURNED
    if a.dtype.kind in "fc":
        yield np.ones_like(a), "one everywhere", "extra-factor", "a factor left out?"
        yield -a, "of the other sign", "sign", "it has the wrong sign in one term?"
        yield a.conj(), "conjugated", "conjugated", _IGNORED


def size(e: Evidence, i: int) -> Cause | None:
    """The gradient is off by a factor that is different at another size."""
    c = multiple(e.got[i], e.expected[i])
    for symbol in symbols(e.session) if multiples(e, i) else ():
        found = with_other_length(e.session, symbol)
        with contextlib.suppress(BackwardError, ForwardError):
            if found is None:
                continue
            length, other = found[0], Evidence(found[1])
            there = multiple(other.got[i], other.expected[i])
            same = other.matches(other.got[i], there * other.expected[i])
            if same and abs(there - c) > e.pattern_rtol * abs(c):
                axes = describe_axes(e.session, symbol)
                text = (
                    f"`{e.names[i]}` is off by the factor {c:.3f}, and by {there:.3f} with {axes} "
                    f"of length {length} instead of {symbol.length}: it depends on that size"
                )
                return Cause("size", text, SIZE)
    return None


def dependence(e: Evidence, i: int) -> Cause | None:
    """The gradient does not change as it should with other values of an argument or setting."""
    rng, leaves, labels = e.session.rng("values"), e.session.leaves(), e.session.subject.labels
    calls = [(name, subject) for name, _, _, subject in _changed_settings(e.session.subject)]
    for k, a in enumerate(leaves):
        if isinstance(a, np.ndarray) and a.dtype.kind in "fc":
            moved = np.asarray(a * rng.uniform(1.01, 1.1, a.shape), a.dtype)
            changed = [*leaves[:k], moved, *leaves[k + 1 :]]
            calls.append((labels[k], e.session.subject.with_leaves(changed)))
    ignored, good, bad = list[str](), list[str](), list[str]()
    for name, subject in calls:
        there = e.of(subject)
        if there is not None and not e.matches(there.expected[i], e.expected[i]):
            changes = there.got[i] - e.got[i], there.expected[i] - e.expected[i]
            same = e.matches(there.got[i], e.got[i])
            (ignored if same else good if e.matches(*changes) else bad).append(name)
    if ignored and not good and not bad:
        text = (
            f"the gradient of `{e.names[i]}` does not change when the values do: it belongs to an "
            "earlier call (a cache, stale state), or a factor that depends on them is missing"
        )
        return Cause("state", text, "save what backward needs with ctx.save_for_backward")
    if not ignored and not bad:
        return None
    text = f"a term is missing from `{e.names[i]}` (or wrong): it does not change as it should with"
    text += f" {quoted(dict.fromkeys(ignored or bad))}"
    return Cause("missing-term", text, PLACES, vague=True)
