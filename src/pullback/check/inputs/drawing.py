"""Drawing described arguments: sizes for the symbols, then values.

The same generator draws the same values. The strategies of Hypothesis draw differently, within the
same bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.check.inputs.domains import DOMAINS, from_end_to_end
from pullback.check.inputs.shape_text import ArgumentSpec, evaluate
from pullback.check.values import Array
from pullback.errors import ArgumentError

_BOUNDS = {"positive": (0.5, 2.0), "unit": (0.1, 0.9)}


def draw_sizes(
    described: Sequence[ArgumentSpec], rng: np.random.Generator, most: int = 4
) -> dict[str, int]:
    """Draw small sizes for the symbols, all different unless there are more than `most`."""
    symbols = list(dict.fromkeys(name for d in described for name in d.symbols))
    sizes = 2 + (rng.permutation(4) if len(symbols) <= most else rng.integers(2, size=len(symbols)))
    return {name: int(size) for name, size in zip(symbols, sizes, strict=False)}


def shape_of(described: ArgumentSpec, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of an argument for these sizes."""
    return tuple(int(evaluate(size, sizes)) for size in described.shape or ())


def bounds(described: ArgumentSpec, sizes: dict[str, int]) -> tuple[float, float] | None:
    """Return the bounds of an argument, None if there are none; open ends are not excluded."""
    interval = described.interval
    if interval is None:
        return _BOUNDS.get(described.domain)
    low, high = float(evaluate(interval.low, sizes)), float(evaluate(interval.high, sizes))
    low = high - 4 if low == -np.inf else low
    high = low + 4 if high == np.inf else high
    if np.dtype(described.dtype).kind in "iu":
        return low + interval.without_low, high - interval.without_high
    return low, high


def draw(
    described: ArgumentSpec, sizes: dict[str, int], rng: np.random.Generator, scale: float = 1.0
) -> Any:
    """Draw an argument: an array, whose values are of a scale unless they have bounds; or a value.

    Examples
    --------
    >>> d = ArgumentSpec("x", ("n", "n"), domain="spd")
    >>> a = draw(d, {"n": 3}, np.random.default_rng(0))
    >>> a.shape, bool(np.all(np.linalg.eigvalsh(a) > 0))
    ((3, 3), True)
    """
    if described.size:
        return evaluate(described.size, sizes)
    if described.shape is None:
        return described.value
    shape, dtype = shape_of(described, sizes), np.dtype(described.dtype)
    if dtype.kind == "b":
        return rng.permutation(np.arange(int(np.prod(shape))) % 2 == 0).reshape(shape)
    between = bounds(described, sizes)
    if dtype.kind in "iu":
        shortest = min([*sizes.values(), 4])
        return np.asarray(_integers(described, between, shape, shortest, rng)).astype(dtype)
    domain = DOMAINS.get(described.domain)
    drawn = _reals(described, None if domain else between, shape, rng, scale)
    if dtype.kind == "c":
        drawn = drawn + 1j * _reals(described, None if domain else between, shape, rng, scale)
    if domain is not None:
        drawn = domain.draw(drawn)
        if between and described.domain == "sorted":
            drawn = from_end_to_end(drawn, *between)
    return np.asarray(drawn).astype(dtype)


def _integers(
    described: ArgumentSpec,
    between: tuple[float, float] | None,
    shape: tuple[int, ...],
    shortest: int,
    rng: np.random.Generator,
) -> Array:
    """Draw integers: by default indices of the shortest axis."""
    count, domain, free = int(np.prod(shape)), described.domain, described.interval is None
    if domain == "pointers":
        first, last = between or (0, count)
        return np.linspace(first, last, count, dtype=int)
    low, high = map(int, between or (0, shortest - 1))
    if domain == "permutation":
        return np.argsort(rng.random(shape), axis=-1) + (0 if free else low)
    if domain == "positive" and free:
        low, high = 1, 4
    if domain == "sorted":  # each once along the last axis, if there are so many
        high = max(high, low + shape[-1] - 1) if free else high
        every = np.resize(np.arange(low, high + 1), (*shape[:-1], max(high - low + 1, shape[-1])))
        return np.sort(rng.permuted(every, axis=-1)[..., : shape[-1]], axis=-1)
    if domain == "distinct":
        high = max(high, low + count - 1) if free else high
        if high - low + 1 < count:
            raise ArgumentError(
                f"check_op: at least {count} integers for `{described.name}` to be distinct are "
                f"required, got {high - low + 1}.\nhint: widen its interval."
            )
        return (low + rng.permutation(high - low + 1)[:count]).reshape(shape)
    return rng.integers(low, high + 1, shape)


def _reals(
    described: ArgumentSpec,
    between: tuple[float, float] | None,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    scale: float,
) -> Array:
    """Draw real numbers, normal ones of a scale or between bounds."""
    if described.domain == "distinct":
        low, high = between or (-2.0, 2.0)
        count = int(np.prod(shape))
        steps = rng.permutation(count) + rng.uniform(0.3, 0.7, count)
        return np.asarray((low + (high - low) * steps / count).reshape(shape))
    if between is None:
        return scale * rng.normal(size=shape)
    margin = 0.05 * (between[1] - between[0])
    return rng.uniform(between[0] + margin, between[1] - margin, shape)
