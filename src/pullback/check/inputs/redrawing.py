"""Calls that differ from the user's in several ways at once, drawn at random.

A mistake may show only where two things meet: another mode, and values beyond its limit. What was
drawn is taken apart again, so that a report names only what matters. Must not know how a call is
checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.inputs.arguments import Inputs, keeps_bounds
from pullback.check.inputs.changes import is_free, is_order, is_unit, moved_around
from pullback.check.inputs.domains import recognised
from pullback.check.inputs.settings import STOPPING
from pullback.check.iterating import said_of
from pullback.check.naming import labels_of
from pullback.check.values import Array, holds_numbers, host, in_place_of
from pullback.core.custom import pytree as tree

_OTHER, _ORDERED, _MOVED = "other values of", "another order of", "moved values of"
_SIGNS = "other signs of"
_SIZES = ("smaller values of", "larger values of")
_EQUAL = ("a row of another argument in", "two equal rows in", "the same first row in")
_OFTEN, _SELDOM, _RARELY = 0.6, 0.2, 0.1
_SMALL = 1e-4  # of a share: what is less is as good as nothing
_SIGNED = (0.4, 0.15)  # what is positive may have to be
_PROBABILITY = re.compile(
    r"prob|frac|share|weight|ratio|percent|opacity|albedo|cover|mix|\bp\b|between 0 and 1|\[0, ?1\]"
)

Setting = tuple[str, Inputs]  # what is different, and the call


class Redrawn(NamedTuple):
    """A call with other settings and values.

    Attributes
    ----------
    base : Inputs
        The call whose arrays are changed.
    settings : tuple of (str, Inputs)
        Other settings: what is different, and the user's call with it.
    values : dict of str
        By the name of an argument, what is different and its other value.
    edge : bool
        Whether values that were positive are not: they may have to be.
    """

    base: Inputs
    settings: tuple[Setting, ...]
    values: dict[str, tuple[str, Any]]
    edge: bool = False

    def what(self) -> str:
        """Return what is different."""
        parts = [what for what, _ in self.settings]
        parts += [f"{what} `{name}`" for name, (what, _) in self.values.items()]
        return ", ".join(parts)

    def is_tied(self) -> bool:
        """Return whether values that differed are equal."""
        return any(what in _EQUAL for what, _ in self.values.values())

    def inputs(self, fn: Callable[..., Any]) -> Inputs:
        """Return the call."""
        call = self.base
        for _, other in self.settings:
            call = _merged(self.base, other, call)
        labels = iter(labels_of(fn, call.args, call.kwargs))

        def changed(value: Any) -> Any:
            found = self.values.get(next(labels))
            return value if found is None else _like(value, found[1])

        args, kwargs = tree.map_leaves(changed, (call.args, call.kwargs))
        return call._replace(args=args, kwargs=kwargs)

    def simpler(self) -> Iterator[Redrawn]:
        """Yield the calls in which one thing less is different."""
        if len(self.settings) + len(self.values) < 2:
            return
        for k in range(len(self.settings)):
            yield self._replace(settings=self.settings[:k] + self.settings[k + 1 :])
        for name in self.values:
            rest = {other: v for other, v in self.values.items() if other != name}
            yield self._replace(values=rest)


def redrawn(
    fn: Callable[..., Any], inputs: Inputs, settings: Sequence[Setting], repeats: bool
) -> Iterator[Redrawn]:
    """Yield calls without end; whether forward takes them is not known.

    Parameters
    ----------
    fn : callable
    inputs : Inputs
        The user's call.
    settings : sequence of (str, Inputs)
        The same call with other settings.
    repeats : bool
        Whether forward repeats a step: with other settings or signs it may lead nowhere.
    """
    rng = np.random.default_rng(0)
    unit = bool(_PROBABILITY.search(said_of(fn).lower()))
    labels = labels_of(fn, inputs.args, inputs.kwargs)
    leaves = dict(zip(labels, tree.leaves((inputs.args, inputs.kwargs)), strict=False))
    if not settings and not any(map(_can_change, leaves.values())):
        return
    drawers = {name: _Drawer(name, leaves, unit, repeats, rng) for name in leaves}
    while True:
        count = int(rng.choice(3, p=(0.4, 0.45, 0.15))) if settings and not repeats else 0
        chosen = [settings[k] for k in rng.permutation(len(settings))[:count]]
        numbers = [v for call in (inputs, *(c for _, c in chosen)) for v in _numbers(call)]
        values: dict[str, tuple[str, Any]] = {}
        for name, drawer in drawers.items():
            if rng.random() < _OFTEN:
                what, other = drawer(numbers)
                if what and _keeps(inputs, name, leaves[name], other):
                    values[name] = (what, other)
        if rng.random() < _RARELY:
            values |= _alike(leaves)
        arrays = {name: v for name, (_, v) in values.items() if holds_numbers(v)}
        edge = not all(_suits(array, host(leaves[name])) for name, array in arrays.items())
        yield Redrawn(inputs, _compatible(inputs, chosen), values, edge)


def _alike(leaves: dict[str, Any]) -> dict[str, tuple[str, Array]]:
    """Return arrays of one shape with the same first row: points that coincide."""
    found: dict[str, tuple[str, Array]] = {}
    first: dict[tuple[int, ...], Array] = {}
    for name, value in leaves.items():
        array = host(value) if holds_numbers(value) else np.empty(0)
        if array.ndim and array.size > 1 and is_free(array) and not recognised(array):
            row = first.setdefault(array.shape, array[0])
            if not np.array_equal(row, array[0]) and _suits(row, array):
                other = array.copy()
                other[0] = row
                found[name] = (_EQUAL[2], other)
    return found


def _suits(other: Array, array: Array) -> bool:
    """Return whether what is positive stays so with other values."""
    return bool((other > 0).all() or not (array > 0).all())


def _can_change(value: Any) -> bool:
    return holds_numbers(value) and host(value).size > 0


def _keeps(inputs: Inputs, name: str, value: Any, other: Any) -> bool:
    return not holds_numbers(value) or keeps_bounds(inputs, name, host(value), other)


def _like(value: Any, other: Any) -> Any:
    """Return another value as a tensor, array or number as the first is."""
    if not holds_numbers(value):  # left out, with another setting
        return other if isinstance(value, float) and isinstance(other, float) else value
    own = host(value)
    if np.size(other) != own.size:
        return value
    return in_place_of(value, np.array(other, dtype=own.dtype).reshape(own.shape))


# -- settings --------------------------------------------------------------------------------------
def _slots(inputs: Inputs) -> dict[Any, Any]:
    return {**dict(enumerate(inputs.args)), **inputs.kwargs}


def _numbers(inputs: Inputs) -> list[float]:
    """Return the numbers among the settings at which a formula may change."""
    found = [v for v in _slots(inputs).values() if type(v) in (int, float)]
    return [float(v) for v in found if np.isfinite(v)]


def _changed_slots(base: Inputs, other: Inputs) -> set[Any]:
    before = _slots(base)
    return {key for key, v in _slots(other).items() if key not in before or v is not before[key]}


def _compatible(base: Inputs, settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Leave out settings that change the argument that another changes."""
    found: list[Setting] = []
    taken: set[Any] = set()
    for setting in settings:
        slots = _changed_slots(base, setting[1])
        if not slots & taken:
            found.append(setting)
            taken |= slots
    return tuple(found)


def _merged(base: Inputs, other: Inputs, call: Inputs) -> Inputs:
    """Return a call with what is different in another."""
    changed = {key: _slots(other)[key] for key in _changed_slots(base, other)}
    args = tuple(changed.get(k, v) for k, v in enumerate(call.args))
    kwargs = {**call.kwargs, **{k: v for k, v in changed.items() if isinstance(k, str)}}
    return call._replace(args=args, kwargs=kwargs)


# -- values ----------------------------------------------------------------------------------------
class _Drawer:
    """Draws other values of one argument; what holds for its own is looked up once."""

    def __init__(
        self,
        name: str,
        leaves: dict[str, Any],
        unit: bool,
        repeats: bool,
        rng: np.random.Generator,
    ) -> None:
        self.name = name
        self.value = value = leaves[name]
        self.unit = unit or bool(_PROBABILITY.search(name.lower()))
        self.repeats = repeats
        self.rng = rng
        self.can_change = _can_change(value)
        if not self.can_change:
            return
        self.array = array = np.atleast_1d(host(value))
        self.word, self.is_free = recognised(array), is_free(array)
        self.is_unit = self.is_free and is_unit(array)
        self.is_positive = self.is_free and bool((array > 0).all())
        others = [host(v) for k, v in leaves.items() if k != name and holds_numbers(v)]
        alike = [v for v in others if v.shape == array.shape and v.dtype == array.dtype]
        self.alike = [other for other in alike if _suits(other[:1], array)]

    def __call__(self, numbers: Sequence[float]) -> tuple[str, Any]:
        """Return what is different, and the value; nothing where it has to stay."""
        value = self.value
        if isinstance(value, float):
            keep = STOPPING.fullmatch(self.name) or not np.isfinite(value) or not value
            keep = keep or "[" in self.name  # of several numbers, which may have an order
            return ("", value) if keep else (_OTHER, value * self.rng.lognormal(0.0, 0.5))
        if not self.can_change:
            return "", value
        with np.errstate(all="ignore"):
            what, other = self._array(self.array, numbers)
        kind = self.array.dtype.kind
        if kind == "f" and not np.isfinite(other.astype(self.array.dtype)).all():
            return "", value
        return ("", value) if np.array_equal(other, self.array) else (what, other)

    def _array(self, array: Array, numbers: Sequence[float]) -> tuple[str, Array]:
        kind, word = array.dtype.kind, self.word
        if kind == "b":
            other = self.rng.random(array.shape) < self.rng.choice([0.3, 0.7])
            both = other.any() and not other.all()  # of nothing, a mean is not defined
            return _OTHER, other if both or array.all() or not array.any() else array
        if kind in "iu":
            return self._integers(array)
        if kind == "c":
            return _OTHER, array * np.exp(1j * self.rng.normal(size=array.shape))
        if word == "sorted":
            steps = np.diff(array, axis=-1)
            steps = self.rng.permuted(steps, axis=-1) * self._stretch(steps.shape)
            return _OTHER, np.cumsum(np.concatenate([array[..., :1], steps], -1), -1)
        if word == "simplex":
            power = array ** self.rng.lognormal(0.0, 0.6)
            return _OTHER, self.rng.permuted(power / power.sum(-1, keepdims=True), axis=-1)
        if word == "spd" and array.ndim == 2:
            d = self._stretch(len(array))
            return _OTHER, d[:, None] * array * d
        if not self.is_free:
            return "", array
        if self.is_unit and (self.unit or self.rng.random() < 0.5):
            return _OTHER, self._between_0_and_1(array)
        if numbers and array.size > 1 and self.rng.random() < _RARELY:
            return _MOVED, moved_around(self.rng.choice(numbers), array)
        return self._real(array)

    def _integers(self, array: Array) -> tuple[str, Array]:
        """Return other indices; what differs within a row of a table still does."""
        low, high = int(array.min()), int(array.max())
        if array.ndim > 1 or is_order(self.name, array):
            numbers, places = np.unique(array, return_inverse=True)
            other = self.rng.permuted(numbers)[places].reshape(array.shape)
            ordered = bool((np.diff(array, axis=-1) >= 0).all())  # from, to
            return _OTHER, np.sort(other, axis=-1) if ordered else other
        if self.rng.random() < 0.5:
            return _ORDERED, self.rng.permuted(array)
        other = np.asarray(self.rng.integers(low, high + 1, array.shape))
        ordered = array.ndim == 1 and bool((np.diff(array) >= 0).all())
        return _OTHER, np.sort(other) if ordered else other

    def _between_0_and_1(self, array: Array) -> Array:
        if self.rng.random() < 0.5:
            return np.asarray(self.rng.random(array.shape))
        power = array ** self.rng.lognormal(0.0, 1.0)
        return np.asarray(self.rng.permuted(np.maximum(power, np.minimum(array, _SMALL))))

    def _real(self, array: Array) -> tuple[str, Array]:
        """Return real values that are stretched, moved, in another order or of another size."""
        rng = self.rng
        if self.alike and rng.random() < _SELDOM:  # one row is that of another argument
            other = array.copy()
            other[0] = self.alike[0][0]
            return _EQUAL[0], other
        if array.ndim > 1 and len(array) > 1 and rng.random() < _SELDOM:
            other = array.copy()
            other[1] = other[0]
            return _EQUAL[1], other
        other = rng.permuted(array) if array.size > 1 and rng.random() < 0.5 else array
        what = _OTHER
        if rng.random() < 0.5:
            other = other * self._stretch(array.shape)
        if not self.repeats and rng.random() < 0.4:
            factor = 10.0 ** rng.uniform(-1.0, 1.0)
            what, other = _SIZES[factor > 1], other * factor
        if rng.random() < 0.4:
            spread = float(np.ptp(array)) or float(np.abs(array).max()) or 1.0
            what, other = _MOVED, other + spread * rng.uniform(-1.0, 1.0)
        if self.is_positive and array.size == 1 and other.min() <= 0:  # a mass, a length, a rate
            other = array
        may_flip = not self.repeats and (array.size > 1 or not self.is_positive)
        if may_flip and rng.random() < _SIGNED[self.is_positive]:
            what, other = _SIGNS, other * rng.choice([-1.0, 1.0], array.shape)
        return what, other

    def _stretch(self, shape: int | tuple[int, ...]) -> Any:
        return self.rng.lognormal(0.0, 0.7, shape)
