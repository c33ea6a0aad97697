"""Drawing described arguments: sizes for the symbols, then values.

The same generator draws the same values. The strategies of Hypothesis draw differently, within the
same bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.check.inputs.domains import DOMAINS, from_end_to_end
from pullback.check.inputs.shape_text import ArgumentSpec, Interval, evaluate
from pullback.check.values import Array
from pullback.errors import ArgumentError

# Kinds of values: of scale 1 and all different; with zeros and equal values; of many magnitudes.
GENERAL, SPECIAL, LARGE = PROFILES = ("general", "special", "large")

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
    described: ArgumentSpec,
    sizes: dict[str, int],
    rng: np.random.Generator,
    profile: str = GENERAL,
    phase: int = 0,
) -> Any:
    """Draw an argument: an array, or the literal.

    Special arrays with different phases, modulo 3, have their zeros at different indices: 0 / 0 is
    not a mistake of the operation.

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
        return _integers(described, between, shape, shortest, rng, profile).astype(dtype)
    if described.domain in DOMAINS:
        return _structured(described, between, shape, rng, profile).astype(dtype)
    real = _reals(described, between, shape, rng, profile, phase)
    if dtype.kind == "c":
        real = real + 1j * _reals(described, between, shape, rng, profile, phase + 1)
    return np.asarray(real).astype(dtype)


def _integers(
    described: ArgumentSpec,
    between: tuple[float, float] | None,
    shape: tuple[int, ...],
    shortest: int,
    rng: np.random.Generator,
    profile: str,
) -> Array:
    """Draw integers: by default indices of the shortest axis, negative ones among special."""
    count, domain = int(np.prod(shape)), described.domain
    if domain == "permutation":
        return np.asarray(np.argsort(rng.random(shape), axis=-1) + int((between or (0, 0))[0]))
    if domain == "pointers":
        first, last = between or (0, count)
        even = np.linspace(first, last, count).astype(int)
        inner = rng.integers(int(first), int(last) + 1, max(count - 2, 0))
        return np.sort([even[0], *inner, even[-1]]) if profile == SPECIAL else even
    start = -shortest if profile == SPECIAL and described.dtype.startswith("int") else 0
    low, high = map(int, between or (start if not domain else 0, shortest - 1))
    if domain == "positive" and described.interval is None:
        low, high = 1, 4
    if domain == "sorted":  # each once along the last axis, if there are so many
        high = high if described.interval else max(high, low + shape[-1] - 1)
        every = np.resize(np.arange(low, high + 1), (*shape[:-1], max(high - low + 1, shape[-1])))
        return np.asarray(np.sort(rng.permuted(every, axis=-1)[..., : shape[-1]], axis=-1))
    if domain == "distinct":
        high = high if described.interval else max(high, low + count - 1)
        if high - low + 1 < count:
            raise ArgumentError(
                f"check_op: at least {count} integers for `{described.name}` to be distinct are "
                f"required, got {high - low + 1}.\nhint: widen its interval."
            )
        return (low + rng.permutation(high - low + 1)[:count]).reshape(shape)
    return np.asarray(rng.integers(low, high + 1, shape))


def _reals(
    described: ArgumentSpec,
    between: tuple[float, float] | None,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    profile: str,
    phase: int,
) -> Array:
    """Draw real numbers of a domain."""
    count = int(np.prod(shape))
    if described.domain == "distinct":
        low, high = between or (-2.0, 2.0)
        steps = rng.permutation(count) + rng.uniform(0.3, 0.7, count)
        return (low + (high - low) * steps / count).reshape(shape)
    if between is None:
        values = rng.normal(size=shape)
        if profile == SPECIAL:  # along each axis a third is 0, a third is 1 or -1
            third = (np.indices(shape).sum(axis=0) + phase) % 3
            values = np.where(third == 0, 0.0, np.where(third == 1, np.sign(values), values))
        return np.asarray(values * (8 if profile == LARGE else 1))
    low, high = between
    if profile == SPECIAL:
        interval = described.interval or Interval("", "")
        grid = np.linspace(low, high, 5)[interval.without_low : 5 - interval.without_high]
        return np.asarray(rng.choice(grid, shape))
    if profile == LARGE and described.domain == "positive":
        return np.asarray(np.exp(rng.uniform(-3, 3, shape)))
    margin = 0.05 * (high - low)
    return np.asarray(rng.uniform(low + margin, high - margin, shape))


def _structured(
    described: ArgumentSpec,
    between: tuple[float, float] | None,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    profile: str,
) -> Array:
    """Draw an array with a structure; sorted ones reach from end to end of their interval."""
    domain, normal = DOMAINS[described.domain], rng.normal(size=shape)
    if described.dtype.startswith("complex"):
        normal = normal + 1j * rng.normal(size=shape)
    if profile == SPECIAL and domain.scales:
        normal = np.round(normal)
    drawn = domain.draw(normal)
    if between and described.domain == "sorted":
        return from_end_to_end(drawn, *between)
    return np.asarray(drawn * (8 if profile == LARGE and domain.scales else 1))
