"""Calls that differ from the user's: other settings one by one, then several things at random.

Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Change, Inputs
from pullback.check.inputs.redrawing import ZERO, Drawer, drawers_of, replaced
from pullback.check.inputs.settings import other_settings
from pullback.check.values import Array

_DRAWS = 80
_OFTEN, _SELDOM = 0.6, 0.15
_SETTINGS = (0.4, 0.45, 0.15)  # how often none, one and two of them differ
_ROW = "a row of another argument in"


def changed(inputs: Inputs, changes: Sequence[Change]) -> Inputs:
    """Return a call with some changes."""
    return functools.reduce(lambda call, change: change.put(call), changes, inputs)


def vary(fn: Callable[..., Any], inputs: Inputs, seed: int = 0) -> Iterator[tuple[Change, ...]]:
    """Yield the changes of a call: of one setting each, then of several and of values."""
    settings = []
    for change in other_settings(fn, inputs):
        settings.append(change)
        yield (change,)
    rng = np.random.default_rng(seed)
    drawers = drawers_of(fn, inputs, rng)
    for _ in range(_DRAWS if settings or drawers else 0):
        count = int(rng.choice(len(_SETTINGS), p=_SETTINGS)) if settings else 0
        chosen: dict[str, Change] = {}
        for k in rng.permutation(len(settings))[:count]:
            chosen.setdefault(settings[k].name, settings[k])
        numbers = _numbers([inputs, *(change.put(inputs) for change in chosen.values())])
        values: dict[str, tuple[str, Array]] = {}
        for name, drawer in drawers.items():
            zero = any(what == ZERO for what, _ in values.values())  # 0 / 0 is no mistake
            found = drawer(numbers, zero) if rng.random() < _OFTEN else None
            if found is not None:
                values[name] = found
        if rng.random() < _SELDOM:
            values |= _alike(drawers, values, rng)
        others = [
            Change(f"{what} `{name}`", name, partial(replaced, fn, name, other))
            for name, (what, other) in values.items()
            if name not in chosen
        ]
        if chosen or others:
            yield (*chosen.values(), *others)


def _numbers(calls: Sequence[Inputs]) -> list[float]:
    """Return the numbers among the settings of some calls."""
    values = [v for call in calls for v in (*call.args, *call.kwargs.values())]
    return [float(v) for v in values if type(v) in (int, float) and np.isfinite(v)]


def _alike(
    drawers: dict[str, Drawer], values: dict[str, tuple[str, Array]], rng: np.random.Generator
) -> dict[str, tuple[str, Array]]:
    """Return an argument with a row of another of its shape: points that coincide."""
    free = {n: values[n][1] if n in values else d.array for n, d in drawers.items() if d.is_free}
    pairs = [p for p in itertools.permutations(free, 2) if free[p[0]].shape == free[p[1]].shape]
    if not pairs:
        return {}
    name, source = pairs[rng.integers(len(pairs))]
    found, row, own = free[name].copy(), free[source][0], drawers[name]
    found[0] = row
    fits = (row != 0).all() and own.low <= row.min() and row.max() <= own.high
    return {name: (_ROW, found)} if fits else {}
