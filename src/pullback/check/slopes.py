"""Slopes of the outputs of one call along lines through its arguments, each measured once.

Owns the base point (the arguments as C-contiguous arrays, and in double precision for the
differences) and the choice of the lines. Must not know of gradients.
"""

from __future__ import annotations

import contextlib
import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.exceptions import ForwardError, first_line
from pullback.check.numerical import (
    Slope,
    away_from_zero,
    beside,
    coordinates,
    direction_scales,
    double,
    from_coordinates,
    joined,
    kept_equal,
    slope,
)
from pullback.check.subject import Subject
from pullback.check.values import Array, copies

# The entries of a numerical Jacobian: of a larger one only some columns are measured.
MAX_NUMBERS = 4_000_000
# The calls of forward for one slope, and the elements that are moved however long that takes.
_CALLS = 8
_FEWEST = 4


@dataclasses.dataclass(frozen=True)
class Options:
    """What the user chose."""

    seed: int = 0
    fast: bool = False
    only: Sequence[str] | None = None
    skip: Sequence[str] = ()
    rtol: float | None = None
    atol: float | None = None
    time_limit: float = 60.0
    surrogate: str = ""  # why the gradient may differ from the derivative
    order: int = 1  # whether second derivatives are asked for: 2
    ignore: Mapping[str, str] = dataclasses.field(default_factory=dict)  # parts that may fail: why
    repair: bool = True  # whether changes of the source may be sought that make a gradient right
    guessed: bool = False  # whether nobody gave the inputs, so that backward may not be for them
    max_elements: int = 256  # elements moved one by one

    def chooses(self, part: str) -> bool:
        """Return whether a part of the check, given by name, is to be run."""
        return part not in self.skip and (not self.only or part in self.only)


class Line(NamedTuple):
    """A direction in the space of one differentiated argument, and the slope along it.

    Attributes
    ----------
    argument : int
    direction : array
        In real coordinates of that argument.
    element : int or None
        The coordinate that is moved, if only one is.
    slope : Slope
    scale : float
        The length scale of the argument.
    """

    argument: int
    direction: Array
    element: int | None
    slope: Slope
    scale: float


class Slopes:
    """The slopes at one call."""

    def __init__(self, subject: Subject, options: Options) -> None:
        self.subject = subject
        self.options = options
        self.refusals: dict[int, str] = {}  # why forward last raised near an argument's values

    def rng(self, purpose: str) -> np.random.Generator:
        """Return a generator for one purpose: parts do not share random streams."""
        return np.random.default_rng([self.options.seed, zlib.crc32(purpose.encode())])

    # -- the base point ------------------------------------------------------------------------
    @cached_property
    def arrays(self) -> list[Array]:
        """The differentiated arguments, C-contiguous."""
        return copies(self.subject.arrays)

    def leaves(self) -> list[Any]:
        """Return all leaves of the call's arguments, with tensors and arrays on the host."""
        return self.subject.with_arrays(self.arrays).leaves_on_host()

    @cached_property
    def outputs(self) -> list[Array]:
        """The outputs at the base point."""
        return self.subject.run(self.arrays).values()

    @cached_property
    def wide(self) -> list[Array]:
        """The arguments in double precision if the function accepts that, else `arrays`."""
        wide = [a.astype(double(a.dtype)) for a in self.arrays]
        if [a.dtype for a in self.arrays] == [w.dtype for w in wide]:
            return self.arrays
        with contextlib.suppress(ForwardError):
            shapes = [out.shape for out in self.subject.values(wide)]
            if shapes == [out.shape for out in self.outputs]:
                return wide
        return self.arrays

    @cached_property
    def center(self) -> Array:
        """The outputs' coordinates at the base point, in the function's best precision."""
        return joined(self.subject.values(self.wide))

    @cached_property
    def eps(self) -> float:
        """The rounding unit of the function: of its dtype, or of the dtype it computes in."""
        eps = max(float(np.finfo(a.dtype).eps) for a in self.wide)
        # At a nearby point: round numbers would look like low precision.
        nearby = [beside(a, 1e-4, apart=True) for a in self.wide]
        with contextlib.suppress(ForwardError), np.errstate(all="ignore"):
            values = joined(self.subject.values(nearby))
            values = values[np.isfinite(values) & (values != np.round(values))]
            for narrow in (np.float16, np.float32):
                if values.size and np.array_equal(values.astype(narrow), values):
                    return max(eps, float(np.finfo(narrow).eps))
        return eps

    # -- one line ------------------------------------------------------------------------------
    def measure(
        self, i: int, direction: Array, element: int | None = None, also: Sequence[int] = ()
    ) -> Line:
        """Measure the slope of the outputs as argument `i` moves along `direction`.

        Other arguments, which have to be equal to it, `also` move along it.
        """
        size = np.abs(coordinates(self.wide[i]))
        scales, every = [1.0, 0.1], direction_scales(size)
        if element is None:
            direction = direction * every
        else:
            scales = [float(every[element]), float(size[element]) or 1.0]
        found = slope(self.curve(dict.fromkeys((i, *also), direction)), scales, self.eps)
        return Line(i, direction, element, found, scales[0])

    def at(self, steps: Mapping[int, Array], t: float) -> Array:
        """Return the outputs' coordinates where arguments moved `t` times so many steps."""
        moved = list(self.wide)
        for i, step in steps.items():
            moved[i] = from_coordinates(coordinates(moved[i]) + t * step, moved[i])
        return joined(self.subject.values(moved))

    def curve(self, steps: Mapping[int, Array]) -> Callable[[float], Array | None]:
        """Return the outputs as a function of how far arguments moved."""

        def at(t: float) -> Array | None:
            if t == 0:
                return self.center
            try:
                found = self.at(steps, t)
            except ForwardError as error:
                self.refusals[next(iter(steps))] = first_line(error)
                return None
            return found if found.size == self.center.size else None

        return at

    # -- those that are measured ---------------------------------------------------------------
    @cached_property
    def directions(self) -> list[Line]:
        """The slopes along two random directions of each argument; equal values share the second.

        One direction for each argument has to do where calls take long.
        """
        flats = [coordinates(a) for a in self.wide]
        draws = [self.rng(f"directions {i}") for i in range(len(flats))]
        pairs = list(zip(flats, draws, strict=True))
        found = [self._along(i, away_from_zero(x.size, rng)) for i, (x, rng) in enumerate(pairs)]
        with deadline().as_time_allows():
            for i, (x, rng) in enumerate(pairs):
                found.append(self._along(i, kept_equal(x, rng)))
        return sorted(found, key=lambda line: line.argument)

    def _along(self, i: int, direction: Array) -> Line:
        """Measure the slope of argument `i` along a direction, along which NaN stays NaN."""
        return self.measure(i, np.where(np.isfinite(coordinates(self.wide[i])), direction, 0.0))

    def elements(self, i: int, most: float = float("inf")) -> list[int]:
        """Return the coordinates of argument `i` that are moved one by one, `most` at most.

        Of too many, and where calls take long, the first, the last and some drawn at random.
        """
        flat = coordinates(self.wide[i])
        whole = min(self.options.max_elements, 3 * max(2, MAX_NUMBERS // max(1, self.center.size)))
        affordable = max(_FEWEST, deadline().affords(_CALLS * len(self.arrays)))
        whole = int(min(whole, affordable))
        if flat.size > whole:
            most = min(most, max(whole // 4, _FEWEST))
        chosen = list(range(flat.size))
        if flat.size > most:
            drawn = self.rng(f"elements {i}").permutation(flat.size).tolist()
            chosen = sorted(list(dict.fromkeys([0, flat.size - 1, *drawn]))[: int(most)])
        return [k for k in chosen if np.isfinite(flat[k])]

    @cached_property
    def columns(self) -> list[list[Line]]:
        """For each argument the slopes along single elements: its Jacobian by columns."""
        return [self.along(i, self.elements(i)) for i in range(len(self.wide))]

    @cached_property
    def along_elements(self) -> list[dict[int, Line]]:
        """For each argument the slopes along single elements that were measured."""
        return [{} for _ in self.wide]

    def along(self, i: int, elements: Sequence[int]) -> list[Line]:
        """Measure the slopes along single elements, each once."""
        known, count = self.along_elements[i], coordinates(self.wide[i]).size
        for k in elements:
            if k not in known:
                known[k] = self.measure(i, np.eye(1, count, k)[0], k)
        return [known[k] for k in elements]

    def discard_inconsistent(self) -> None:
        """Discard the slopes of outputs that are not differentiable though smooth on each line.

        A median of equal values is an example: its slope along a sum of directions is not the sum
        of its slopes along them. Such outputs have no gradient to compare with.
        """
        for line in self.directions:
            i, steps = line.argument, line.direction
            if not len(self.elements(i)) == steps.size > 0:
                continue
            slopes = [column.slope for column in self.columns[i]]
            with np.errstate(all="ignore"):
                off = np.abs(steps @ np.stack([s.value for s in slopes]) - line.slope.value)
                off = off > np.abs(steps) @ np.stack([s.room for s in slopes]) + line.slope.room
            for other in (*self.columns[i], *(d for d in self.directions if d.argument == i)):
                other.slope.low[off], other.slope.high[off] = -np.inf, np.inf
                other.slope.kink[off] = True
