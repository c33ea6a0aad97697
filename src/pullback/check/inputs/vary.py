"""Calls that differ from the user's: other settings one by one, then several things at random.

What was drawn is taken apart again, so that a report names only what matters. Must not know how a
call is checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.inputs.arguments import Inputs, try_forward
from pullback.check.inputs.redrawing import ZERO, ArrayDrawer, Drawer, drawers_of
from pullback.check.inputs.settings import Setting, other_settings
from pullback.check.naming import labels_of
from pullback.check.values import holds_numbers, host, in_place_of
from pullback.core.custom import pytree as tree

_DRAWS = 80
_OFTEN, _SELDOM = 0.6, 0.15
_SETTINGS = (0.4, 0.45, 0.15)  # how often none, one and two of them differ
_ROW = "a row of another argument in"


class Variation(NamedTuple):
    """A call with other settings and values.

    Attributes
    ----------
    base : Inputs
        The call whose arrays are changed.
    settings : tuple of Setting
    values : dict of str
        By the name of an argument, what is different and its other value.
    """

    base: Inputs
    settings: tuple[Setting, ...]
    values: Mapping[str, tuple[str, Any]] = {}

    @property
    def what(self) -> str:
        """What is different."""
        parts = [setting.what for setting in self.settings]
        return ", ".join(parts + [f"{what} `{name}`" for name, (what, _) in self.values.items()])

    @property
    def slack(self) -> float:
        """How far off gradients may be, relative to their terms."""
        return max((setting.slack for setting in self.settings), default=0.0)

    def inputs(self, fn: Callable[..., Any]) -> Inputs:
        """Return the call."""
        call = self.base
        for setting in self.settings:
            changed = {k: _slots(setting.inputs)[k] for k in _changed(self.base, setting.inputs)}
            args = tuple(changed.get(k, v) for k, v in enumerate(call.args))
            named = {k: v for k, v in changed.items() if isinstance(k, str)}
            call = call._replace(args=args, kwargs={**call.kwargs, **named})
        labels = iter(labels_of(fn, call.args, call.kwargs))

        def other(value: Any) -> Any:
            found = self.values.get(next(labels))
            return value if found is None else _like(value, found[1])

        args, kwargs = tree.map_leaves(other, (call.args, call.kwargs))
        return call._replace(args=args, kwargs=kwargs)

    def simpler(self) -> Iterator[Variation]:
        """Yield the calls in which one thing less is different."""
        if len(self.settings) + len(self.values) < 2:
            return
        for k in range(len(self.settings)):
            yield self._replace(settings=self.settings[:k] + self.settings[k + 1 :])
        for name in self.values:
            yield self._replace(values={n: v for n, v in self.values.items() if n != name})


def vary(
    fn: Callable[..., Any],
    parameters: Sequence[Any],
    inputs: Inputs,
    seed: int = 0,
    zeros: bool = True,
) -> Iterator[Variation]:
    """Yield calls with one other setting each, then some with several differences.

    Parameters
    ----------
    fn : callable
    parameters : sequence of inspect.Parameter
        Those of `fn`.
    inputs : Inputs
        The user's call.
    seed : int, default 0
    zeros : bool, default True
        Whether there may be zeros among values of both signs.
    """
    outputs = try_forward(fn, inputs)
    if isinstance(outputs, str):
        return
    settings = []
    for setting in other_settings(fn, parameters, inputs, outputs):
        settings.append(setting)
        yield Variation(inputs, (setting,))
    rng = np.random.default_rng(seed)
    drawers = drawers_of(fn, inputs, zeros, rng)
    for _ in range(_DRAWS if settings or drawers else 0):
        count = int(rng.choice(len(_SETTINGS), p=_SETTINGS)) if settings else 0
        chosen = _compatible(inputs, [settings[k] for k in rng.permutation(len(settings))[:count]])
        numbers = [
            float(v)
            for call in (inputs, *(s.inputs for s in chosen))
            for v in _slots(call).values()
            if type(v) in (int, float) and np.isfinite(v)
        ]
        values, zero = {}, False
        for name, drawer in drawers.items():
            found = drawer(numbers, zero) if rng.random() < _OFTEN else None
            if found is not None:
                values[name] = found
                zero |= found[0] == ZERO  # 0 / 0 is not the operation's mistake
        if rng.random() < _SELDOM:
            values |= _alike(drawers, values, rng)
        if chosen or values:
            yield Variation(inputs, chosen, values)


def _alike(
    drawers: dict[str, Drawer], values: dict[str, tuple[str, Any]], rng: np.random.Generator
) -> dict[str, tuple[str, Any]]:
    """Return an argument with a row of another of its shape: points that coincide."""
    free = {n: d for n, d in drawers.items() if isinstance(d, ArrayDrawer) and d.is_free}
    pairs = [
        (free[a], free[b], a, b)
        for a, b in itertools.permutations(free, 2)
        if free[a].array.shape == free[b].array.shape
    ]
    if not pairs:
        return {}
    own, other, name, source = pairs[rng.integers(len(pairs))]
    if source in values and values[source][0] == ZERO:
        return {}
    found, row = (
        np.array(values[n][1] if n in values else d.array)
        for n, d in ((name, own), (source, other))
    )
    found[0] = row[0]
    fits = own.low <= found.min() and found.max() <= own.high and own.keeps(found)
    return {name: (_ROW, found)} if fits else {}


def _like(value: Any, other: Any) -> Any:
    """Return another value as a tensor, array or number as the first is."""
    if not holds_numbers(value):  # left out, with another setting
        return other if isinstance(value, float) and isinstance(other, float) else value
    own = host(value)
    if np.size(other) != own.size:
        return value
    return in_place_of(value, np.array(other, dtype=own.dtype).reshape(own.shape))


def _slots(inputs: Inputs) -> dict[Any, Any]:
    return {**dict(enumerate(inputs.args)), **inputs.kwargs}


def _changed(base: Inputs, other: Inputs) -> set[Any]:
    before = _slots(base)
    return {key for key, v in _slots(other).items() if key not in before or v is not before[key]}


def _compatible(base: Inputs, settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Leave out settings that change the argument that another changes."""
    found: list[Setting] = []
    taken: set[Any] = set()
    for setting in settings:
        slots = _changed(base, setting.inputs)
        if not slots & taken:
            found.append(setting)
            taken |= slots
    return tuple(found)
