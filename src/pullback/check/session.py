"""One check in progress: what the parts share, each quantity measured once.

Owns the base point (the arguments as C-contiguous arrays, and in double precision for the
differences), the lines through it along which slopes are measured, the output gradients, the
tolerances and the bounds that slopes set on a gradient. The parts read it and report to it.
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
from pullback.check.numerical import (
    Slope,
    away_from_zero,
    beside,
    coordinates,
    direction_scales,
    double,
    from_coordinates,
    is_range,
    joined,
    kept_equal,
    random_like,
    slope,
)
from pullback.check.report import Cause, Failure, Options, Report, first_line
from pullback.check.subject import ForwardError, Subject
from pullback.check.values import Array, Arrays, copies

# The entries of a numerical Jacobian: of a larger one only some columns are measured.
_MAX_NUMBERS = 4_000_000
# The calls of forward for one slope, and the elements that are moved however long that takes.
_CALLS = 8
_FEWEST = 4
# Relative tolerance of a gradient computed in a dtype against differences taken in float64.
RTOL = {"float64": 2e-8, "complex128": 2e-8, "float32": 2e-3, "complex64": 2e-3, "float16": 5e-2}
_APPROXIMATE = 3e-3  # the largest error, relative to the terms of a slope, that is forward's own
_VANISHING = 1e-2  # of the largest element of a gradient
_ELSEWHERE = (1.0, 1.3, 0.6, 3.0, 0.1)  # times the arguments, where an iteration may take longer


class Line(NamedTuple):
    """A direction in the space of one differentiated argument, and the slope along it."""

    argument: int
    direction: Array  # in real coordinates of that argument
    element: int | None  # the coordinate that is moved, if only one is
    slope: Slope
    scale: float  # the length scale of the argument


class Component(NamedTuple):
    """The derivative of <seeds, outputs> along a line."""

    low: float
    high: float  # at a kink; else the same as `low`
    error: float
    size: float  # the sum of its absolute terms
    measured: bool


class Session:
    """What the parts of one check share."""

    def __init__(self, subject: Subject, options: Options, report: Report) -> None:
        self.subject, self.options, self.report = subject, options, report
        self.refusals: dict[int, str] = {}  # why forward last raised near an argument's values
        self.part = ""
        self.own_error = 0.0  # that forward shows, relative to the terms of a slope
        self.hidden: Array | None = None  # the outputs' coordinates that no seed is drawn for
        self._gradients: dict[str, list[Array]] = {}  # for the seeds of a purpose

    def on(self, subject: Subject, **options: Any) -> Session:
        """Return a session on another call, with some other options and a report of its own."""
        chosen = dataclasses.replace(self.options, **options)
        return Session(subject, chosen, Report(subject.name, chosen.seed))

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
    def measure(self, i: int, direction: Array, element: int | None = None) -> Line:
        """Measure the slope of the outputs as argument `i` moves along `direction`."""
        size = np.abs(coordinates(self.wide[i]))
        scales, every = [1.0, 0.1], direction_scales(size)
        if element is None:
            direction = direction * every
        else:
            scales = [float(every[element]), float(size[element]) or 1.0]
        found = slope(self.curve({i: direction}), scales, self.eps)
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
        found = []

        def add(i: int, direction: Array) -> None:  # NaN stays NaN
            found.append(self.measure(i, np.where(np.isfinite(flats[i]), direction, 0.0)))

        for i, rng in enumerate(draws):
            add(i, away_from_zero(flats[i].size, rng))
        with deadline().as_time_allows():
            for i, rng in enumerate(draws):
                add(i, kept_equal(flats[i], rng))
        return sorted(found, key=lambda line: line.argument)

    def elements(self, i: int, most: float = float("inf")) -> list[int]:
        """Return the coordinates of argument `i` that are moved one by one, `most` at most.

        Of too many, and where calls take long, the first, the last and some drawn at random.
        """
        flat = coordinates(self.wide[i])
        whole = min(self.options.max_elements, 3 * max(2, _MAX_NUMBERS // max(1, self.center.size)))
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

    # -- reporting -----------------------------------------------------------------------------
    def fail(self, cause: Cause, argument: str = "", **more: Any) -> None:
        """Report a failure of the current part."""
        self.report.failures.append(Failure(self.part, argument, cause, **more))

    def note(self, text: str) -> None:
        """Report an observation that is not a failure, once."""
        if text not in self.report.notes:
            self.report.notes.append(text)

    # -- output gradients ----------------------------------------------------------------------
    def seeds(self, purpose: str = "seeds", outputs: Sequence[Array] | None = None) -> list[Array]:
        """Draw an output gradient for each output: 0 where the output is not finite."""
        rng, like = self.rng(purpose), self.outputs if outputs is None else outputs
        drawn = [
            np.where(np.isfinite(out), random_like(out, rng), out.dtype.type(0)) for out in like
        ]
        if self.hidden is None or outputs is not None:
            return drawn
        return self.split(np.where(self.hidden, 0.0, joined(drawn)))

    def hide(self, outputs: Array) -> None:
        """Draw no output gradients from now on for these of the outputs' coordinates."""
        if outputs.any():
            self.hidden = outputs
            self._gradients.clear()

    def sizes(self) -> list[Array]:
        """Draw the output gradients of a function of complex outputs' sizes, not of their phases.

        A rule may be right but for the phases, which forward may choose, as those of eigenvectors.
        """
        rng = self.rng("sizes")
        return [
            rng.uniform(0.5, 1.5, out.shape) * out
            if out.dtype.kind == "c"
            else random_like(out, rng)
            for out in self.outputs
        ]

    def split(self, flat: Array) -> list[Array]:
        """Return joined coordinates of the outputs as one array for each output."""
        ends = np.cumsum([coordinates(out).size for out in self.outputs])[:-1]
        pairs = zip(np.split(flat, ends), self.outputs, strict=True)
        return [from_coordinates(part, out) for part, out in pairs]

    # -- comparing -----------------------------------------------------------------------------
    def component(self, line: Line, seeds: Arrays) -> Component:
        """Return the derivative of <seeds, outputs> along a line."""
        g = joined(seeds)
        used, unit = g != 0, max(float(np.finfo(a.dtype).eps) for a in self.arrays)
        g, center = g[used], np.abs(self.center[used])
        low, high, error, _ = (each[used] for each in line.slope)
        with np.errstate(invalid="ignore", over="ignore"):
            low, high = g * low, g * high
            sizes = np.nan_to_num(np.abs(low + high) / 2, nan=0.0, posinf=0.0)
            low, high = np.minimum(low, high).sum(), np.maximum(low, high).sum()
        error = np.abs(g) @ (10 * error + 16 * unit * center / line.scale)
        measured = bool(used.any() and is_range(low, high))
        return Component(float(low), float(high), float(error), float(sizes.sum()), measured)

    def agrees(self, line: Line, got: Array, seeds: Arrays, noise: float = 0.0) -> bool:
        """Return whether a gradient's component along a line lies within the measured range.

        `got` has the coordinates of the gradient for the output gradients `seeds`; `noise` is
        tolerated beyond the usual. Where forward approximates its result, the gradient may be as
        far off, which is noted in `own_error`. An element whose own gradient nearly vanishes has
        the error of the others.
        """
        low, high, error, size, measured = self.component(line, seeds)
        if not measured:
            return True
        with np.errstate(all="ignore"):
            terms = np.where(line.direction != 0, line.direction * got, 0.0)
            value = float(np.sum(terms))
            if line.element is None:  # rounding of the single elements adds up
                size += float(np.sum(np.abs(terms))) / 4
            off = max(low - value, value - high) - error - noise - self.options.atol
            largest = np.max(np.abs(got), initial=0.0) * np.max(np.abs(line.direction), initial=0.0)
        if off <= self.rtol * size:
            return True
        size += _VANISHING * float(largest)
        if not off <= _APPROXIMATE * size or not self.iterates:
            return False
        self.own_error = max(self.own_error, off / size)
        return True

    @cached_property
    def precision(self) -> str:
        """The least precise dtype among the arguments."""
        return max([str(a.dtype) for a in self.arrays], key=lambda name: RTOL.get(name, 1.0))

    @cached_property
    def rtol(self) -> float:
        """The relative tolerance of the arguments' dtype, or of the dtype forward computes in."""
        if self.options.rtol is not None:
            return self.options.rtol
        inside = [t for name, t in RTOL.items() if np.finfo(name).eps <= self.eps]
        return max(RTOL.get(self.precision, 0.1), *inside)

    @cached_property
    def iterates(self) -> bool:
        """Whether forward repeats a step as often as its values ask for: it approximates.

        Then some line runs several times, and another number of times at other values.
        """
        runs, _ = [], self.center  # the first run of all does more than others
        for by in _ELSEWHERE:
            arrays = [(a * by).astype(a.dtype) for a in self.wide]
            with contextlib.suppress(ForwardError), deadline().as_time_allows():
                runs.append(self.subject.lines_run(arrays))
        lines = {line for run in runs for line, times in run.items() if times > 1}
        return any(len({run[line] for run in runs}) > 1 for line in lines)

    # -- gradients -----------------------------------------------------------------------------
    def vjp(self, seeds: Sequence[Any]) -> list[Array]:
        """Return backward's gradients as NumPy arrays, zeros for None."""
        return self.subject.run(self.arrays).gradients(seeds)

    def gradients(self, purpose: str = "seeds") -> list[Array]:
        """Return backward's gradients for the seeds of that purpose."""
        if purpose not in self._gradients:
            self._gradients[purpose] = self.vjp(self.seeds(purpose))
        return self._gradients[purpose]
