"""One check in progress: what the parts share, each quantity measured once.

Owns the tolerances, the random numbers, the base point (the arguments as C-contiguous arrays, and
in double precision for the differences) and the bounds that differences set on a gradient. The
parts read it and report to it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.exceptions import BackwardError, ForwardError, first_line
from pullback.check.iterating import lines_of
from pullback.check.numerical import (
    Slope,
    coordinates,
    direction_scales,
    double,
    from_coordinates,
    joined,
    scales_of,
    slope,
    ties,
    typical_scale,
)
from pullback.check.report import Cause, Failure, Report
from pullback.check.subject import Run, Subject
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.tensor.tensor import Tensor

# Relative tolerance of a gradient computed in a dtype against differences taken in float64.
RTOL = {"float64": 2e-8, "complex128": 2e-8, "float32": 2e-3, "complex64": 2e-3, "float16": 5e-2}
# The elements that are moved one by one where random directions tell of the argument.
MAX_SAMPLE = 24
# The entries of a numerical Jacobian: of a larger one only some columns are measured.
MAX_NUMBERS = 4_000_000
# The calls of forward for one slope, and the elements that are moved however long that takes.
_CALLS = 8
_FEWEST = 4
_SIGNS = np.array([-1.0, 1.0])
_ELSEWHERE = (1.0, 1.3, 0.6, 3.0, 0.1)  # times the arguments, where an iteration may take longer


@dataclasses.dataclass(frozen=True)
class Options:
    """What the user chose."""

    seed: int = 0
    fast: bool = False
    rtol: float | None = None
    atol: float | None = None
    max_elements: int = 256  # elements moved one by one
    order: int = 1  # whether second derivatives are asked for: 2
    ignore: Mapping[str, str] = dataclasses.field(default_factory=dict)  # parts that may fail: why
    repair: bool = True  # whether changes of the source may be sought that make a gradient right
    guessed: bool = False  # whether nobody gave the inputs, so that backward may not be for them


@dataclasses.dataclass
class Line:
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
    tied : bool
        Whether only equal values move, so that it tells nothing of the others.
    """

    argument: int
    direction: Array
    element: int | None
    slope: Slope
    scale: float
    tied: bool = False


class Session:
    """What the parts of one check share."""

    def __init__(self, subject: Subject, options: Options, report: Report) -> None:
        self.subject = subject
        self.options = options
        self.report = report
        self.part = ""
        self.hidden: Array | None = None  # the outputs' coordinates that no seed is drawn for
        self.refusals: dict[int, list[str]] = {}  # why forward raised near each argument's values
        self._gradients: dict[tuple[str, bytes], list[Array]] = {}  # for the seeds of a purpose

    # -- reporting -----------------------------------------------------------------------------
    def fail(self, cause: Cause, argument: str = "", **more: Any) -> None:
        """Report a failure of the current part."""
        self.report.failures.append(Failure(self.part, argument, cause, **more))

    def note(self, text: str) -> None:
        """Report an observation that is not a failure, once."""
        if text not in self.report.notes:
            self.report.notes.append(text)

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
        if all(a.dtype == w.dtype for a, w in zip(self.arrays, wide, strict=True)):
            return self.arrays
        try:
            values = self.subject.values(wide)
        except ForwardError:
            return self.arrays
        fits = [v.shape == out.shape for v, out in zip(values, self.outputs, strict=True)]
        return wide if all(fits) else self.arrays

    @cached_property
    def center(self) -> Array:
        """The outputs' coordinates at the base point, in the function's best precision."""
        return joined(self.subject.values(self.wide))

    @cached_property
    def eps(self) -> float:
        """The rounding unit of the function: of its dtype, or of the dtype it computes in."""
        dtypes = [np.dtype(np.float64)] if self.wide is not self.arrays else []
        dtypes = dtypes or [np.finfo(a.dtype).dtype for a in self.arrays]
        eps = max(float(np.finfo(d).eps) for d in dtypes)
        try:  # at a nearby point: round numbers would look like low precision
            values = joined(self.subject.values([a * 1.00012345678 for a in self.wide]))
        except ForwardError:
            return eps
        values = values[np.isfinite(values) & (values != np.round(values))]
        for narrow in (np.float16, np.float32):
            with np.errstate(all="ignore"):
                same = np.array_equal(values.astype(narrow).astype(np.float64), values)
            if values.size and same:
                return max(eps, float(np.finfo(narrow).eps))
        return eps

    @cached_property
    def precision(self) -> str:
        """The least precise dtype among the arguments."""
        return max([str(a.dtype) for a in self.arrays], key=lambda name: RTOL.get(name, 1.0))

    def seeds(self, purpose: str = "seeds", outputs: Sequence[Array] | None = None) -> list[Array]:
        """Draw an output gradient for each output: 0 where the output is not finite."""
        rng = self.rng(purpose)
        found = [
            (out, random_like(out, rng)) for out in (self.outputs if outputs is None else outputs)
        ]
        drawn = [np.where(np.isfinite(out), g, np.zeros_like(g)) for out, g in found]
        if self.hidden is None or outputs is not None:
            return drawn
        return self.split(np.where(self.hidden, 0.0, joined(drawn)))

    def split(self, flat: Array) -> list[Array]:
        """Return joined coordinates of the outputs as one array for each output."""
        found, start = [], 0
        for out in self.outputs:
            count = out.size * (2 if out.dtype.kind == "c" else 1)
            found.append(from_coordinates(flat[start : start + count], out))
            start += count
        return found

    # -- differences ---------------------------------------------------------------------------
    def measure(self, i: int, direction: Array, element: int | None = None) -> Line:
        """Measure the slope of the outputs as argument `i` moves along `direction`."""
        size = np.abs(coordinates(self.wide[i]))
        if element is not None:
            scales = scales_of(float(size[element]), typical_scale(size))
        else:
            direction, scales = direction * direction_scales(size), [1.0, 0.1]
        found = slope(self.curve((i,), direction), scales, self.eps)
        return Line(i, direction, element, found, scales[0])

    def measure_together(self, arguments: Sequence[int], direction: Array) -> Line:
        """Measure the slope as several equal arguments move along one direction."""
        first = arguments[0]
        direction = direction * direction_scales(np.abs(coordinates(self.wide[first])))
        found = slope(self.curve(arguments, direction), [1.0, 0.1], self.eps)
        return Line(first, direction, None, found, 1.0)

    def curve(self, arguments: Sequence[int], direction: Array) -> Callable[[float], Array | None]:
        """Return the outputs as a function of how far some arguments moved along a direction."""

        def at(t: float) -> Array | None:
            if t == 0:
                return self.center
            moved = list(self.wide)
            for i in arguments:
                flat = coordinates(self.wide[i]) + t * direction
                moved[i] = from_coordinates(flat, self.wide[i])
            try:
                found = joined(self.subject.values(moved))
            except ForwardError as error:
                self.refusals.setdefault(arguments[0], []).append(first_line(error))
                return None
            return found if found.size == self.center.size else None

        return at

    def elements(self, i: int) -> list[int]:
        """Return the coordinates of argument `i` that are moved one by one, or a sample of them."""
        flat = coordinates(self.wide[i])
        count = flat.size
        most = min(self.options.max_elements, 3 * max(2, MAX_NUMBERS // max(1, self.center.size)))
        most = min(most, max(_FEWEST, self._affordable))
        if count <= most:
            chosen = list(range(count))
        else:
            inner = max(most // 4, _FEWEST - 2)
            sample = self.rng(f"elements {i}").choice(count, inner, replace=False)
            chosen = sorted({0, count - 1, *sample.tolist()})
        return [k for k in chosen if np.isfinite(flat[k])]

    @property
    def _affordable(self) -> int:
        """How many elements of each argument can be moved in the usual time."""
        found = deadline().affords(_CALLS * len(self.arrays))
        return int(min(found, self.options.max_elements))

    @cached_property
    def directions(self) -> list[Line]:
        """The slopes along random directions, two for each argument, and along equal values.

        One direction for each argument has to do where calls take long, and where the time limit is
        reached, those that were measured.
        """
        found: list[Line] = []
        random = [self._random_directions(i) for i in range(len(self.wide))]
        try:
            for i, (direction, _) in enumerate(random):
                found.append(self.measure(i, direction))
        except OutOfTimeError:
            if not found:
                raise
        with deadline().as_time_allows():
            for i, (_, direction) in enumerate(random):
                found.append(self.measure(i, direction))
                for together in ties(coordinates(self.wide[i])):
                    found.append(dataclasses.replace(self.measure(i, together), tied=True))
        return sorted(found, key=lambda line: line.argument)

    def _random_directions(self, i: int) -> list[Array]:
        """Return two random directions of argument `i`, along which NaN stays NaN."""
        rng, flat = self.rng(f"directions {i}"), coordinates(self.wide[i])
        return [np.where(np.isfinite(flat), away_from_zero(flat.size, rng), 0.0) for _ in range(2)]

    @cached_property
    def columns(self) -> list[list[Line]]:
        """For each argument the slopes along single elements: its Jacobian by columns."""
        return [self.along(i, self.elements(i)) for i in range(len(self.wide))]

    def sample(self, i: int) -> list[Line]:
        """Return the slopes along some elements of argument `i`, among them the first and last.

        Random directions tell of every element. A few alone show kinks and edges as well.
        """
        every, most = self.elements(i), min(MAX_SAMPLE, max(_FEWEST, self._affordable))
        if len(every) > most:
            inner = self.rng(f"sample {i}").choice(every[1:-1], most - 2, replace=False)
            every = [every[0], *sorted(inner.tolist()), every[-1]]
        return self.along(i, every)

    def along(self, i: int, elements: Sequence[int]) -> list[Line]:
        """Measure the slopes along single elements, each once."""
        known = self.along_elements[i]
        for k in elements:
            if k not in known:
                known[k] = self.measure(i, _unit(self.wide[i], k), k)
        return [known[k] for k in elements]

    @cached_property
    def along_elements(self) -> list[dict[int, Line]]:
        """For each argument the slopes along single elements that were measured."""
        return [{} for _ in self.wide]

    def discard_inconsistent(self) -> None:
        """Discard the slopes of outputs that are not differentiable though smooth on each line.

        A median of equal values is an example: its slope along a sum of directions is not the sum
        of its slopes along them. Such outputs have no gradient to compare with.
        """
        for line in self.directions:
            if len(self.elements(line.argument)) < line.direction.size:
                continue
            columns = self.columns[line.argument]
            steps = line.direction
            with np.errstate(all="ignore"):
                low, high, error, size = (
                    sum(np.abs(d) * np.asarray(end) for d, end in zip(steps, ends, strict=True))
                    for ends in _ends(columns, steps)
                )
                error = 10 * (error + line.slope.error) + 1e-5 * size
                off = (line.slope.low < low - error) | (line.slope.high > high + error)
                off &= np.isfinite(line.slope.low) & np.isfinite(line.slope.high)
            for other in (*columns, *(d for d in self.directions if d.argument == line.argument)):
                other.slope.low[off], other.slope.high[off] = -np.inf, np.inf
                other.slope.kink[off] = True

    # -- comparing -----------------------------------------------------------------------------
    def bounds(self, line: Line, seeds: Arrays) -> tuple[float, float, float]:
        """Return the range of the derivative of <seeds, outputs> along a line, and its error."""
        g = joined(seeds)
        used = g != 0
        g, found = g[used], line.slope
        with np.errstate(invalid="ignore", over="ignore"):
            ends = np.stack([g * found.low[used], g * found.high[used]])
            low, high = float(np.sum(np.min(ends, axis=0))), float(np.sum(np.max(ends, axis=0)))
        weight = np.abs(g)
        error = 10 * float(weight @ found.error[used])
        # A slope of 0 may be one that rounding hides, as where a sigmoid is 1.
        hidden = np.where(found.value[used] != 0, 1.0, 1 / 16)
        moved = np.abs(self.center[used]) * hidden
        error += 16 * self._unit_roundoff * float(weight @ moved) / line.scale
        return low, high, error

    def agrees(
        self, line: Line, got: Array, seeds: Arrays, slack: float = 0.0, noise: float = 0.0
    ) -> bool:
        """Return whether a gradient's component along a line lies within the measured range.

        Parameters
        ----------
        line : Line
        got : array
            The coordinates of the gradient of its argument, for the output gradients `seeds`.
        seeds : sequence of array
        slack, noise : float, default 0
            What is tolerated beyond the usual, relative to the terms and absolute.
        """
        low, high, error = self.bounds(line, seeds)
        if not is_range(low, high):
            return True
        with np.errstate(all="ignore"):
            terms = np.where(line.direction != 0, line.direction * got, 0.0)
            value = float(np.sum(terms))
            size = self.magnitude(line, seeds)
            if line.element is None:  # rounding of the single elements adds up
                size += float(np.sum(np.abs(terms))) / 4
        tolerance = (self.rtol + slack) * size + error + noise + self.atol
        return bool(low - tolerance <= value <= high + tolerance)

    def is_known(self, line: Line, seeds: Arrays) -> bool:
        """Return whether the derivative of <seeds, outputs> along a line was measured."""
        low, high, _ = self.bounds(line, seeds)
        return bool(is_range(low, high)) and bool(joined(seeds).any())

    def is_kinked(self, line: Line, seeds: Arrays) -> bool:
        """Return whether <seeds, outputs> has a kink or a jump along a line."""
        return bool(line.slope.kink[joined(seeds) != 0].any())

    def magnitude(self, line: Line, seeds: Arrays) -> float:
        """Return the sum of the absolute terms of the derivative along a line."""
        values = np.nan_to_num(np.abs(line.slope.value), nan=0.0, posinf=0.0)
        return float(np.abs(joined(seeds)) @ values)

    @cached_property
    def _unit_roundoff(self) -> float:
        return max(float(np.finfo(a.dtype).eps) for a in self.arrays)

    @cached_property
    def rtol(self) -> float:
        """The relative tolerance of the arguments' dtype, or of the dtype forward computes in."""
        if self.options.rtol is not None:
            return self.options.rtol
        inside = [t for name, t in RTOL.items() if np.finfo(name).eps <= self.eps]
        return max(RTOL.get(self.precision, 0.1), *inside)

    @property
    def atol(self) -> float:
        """The absolute tolerance, added to the error of the differences."""
        return self.options.atol or 0.0

    @cached_property
    def iterates(self) -> bool:
        """Whether forward repeats a step as often as its values ask for: it approximates.

        Then some line runs several times, and another number of times at other values.
        """
        runs, _ = [], self.center  # the first run of all does more than others
        for by in _ELSEWHERE:
            arrays = [(a * by).astype(a.dtype) for a in self.wide]
            with contextlib.suppress(ForwardError), deadline().as_time_allows():
                runs.append(lines_of(functools.partial(self.subject.values, arrays)))
        lines = {line for run in runs for line, times in run.items() if times > 1}
        return any(len({run[line] for run in runs}) > 1 for line in lines)

    def loosen(self, rtol: float) -> None:
        """Use a larger relative tolerance from now on."""
        self.options = dataclasses.replace(self.options, rtol=max(rtol, self.rtol))
        del self.rtol

    # -- gradients -----------------------------------------------------------------------------
    def vjp(
        self,
        seeds: Sequence[Any],
        arrays: Arrays | None = None,
        *,
        wanted: Sequence[int] | None = None,
        subject: Subject | None = None,
    ) -> list[Array | None]:
        """Return backward's gradients as NumPy arrays.

        Raises
        ------
        ForwardError, BackwardError
            If the function or its backward raises.
        """
        run = (subject or self.subject).run(self.arrays if arrays is None else arrays, wanted)
        return grads_on_host(run_backward(lambda: run.vjp(seeds)))

    def gradients(self, purpose: str = "seeds") -> list[Array]:
        """Return backward's gradients for the seeds of that purpose, zeros for None."""
        key = purpose, b"" if self.hidden is None else self.hidden.tobytes()
        if key not in self._gradients:
            found = zeros_for_none(self.vjp(self.seeds(purpose)), self.arrays)
            self._gradients[key] = found
        return self._gradients[key]


def _ends(columns: Sequence[Line], steps: Array) -> Iterator[list[Array]]:
    """Yield the bounds that the columns set on a step along each: low, high, error and size."""
    forward = [d > 0 for d in steps]
    slopes = [line.slope for line in columns]
    yield [s.low if up else -s.high for s, up in zip(slopes, forward, strict=True)]
    yield [s.high if up else -s.low for s, up in zip(slopes, forward, strict=True)]
    yield [s.error for s in slopes]
    yield [np.abs(s.value) for s in slopes]


def is_range(low: Any, high: Any) -> Any:
    """Return whether two bounds say anything, or where those of several do."""
    return ~(np.isnan(low) | np.isnan(high) | (np.isinf(low) & np.isinf(high)))


def run_backward(backward: Callable[[], Any]) -> Any:
    """Run a backward pass; its exceptions become a `BackwardError`."""
    try:
        with deadline().call(), np.errstate(all="ignore"):
            return backward()
    except Exception as error:
        raise BackwardError(f"{type(error).__name__}: {error}") from error


def grads_on_host(grads: Sequence[Tensor | None]) -> list[Array | None]:
    """Return gradients as NumPy arrays; None stays None."""
    return [None if g is None else host(g) for g in grads]


def zeros_for_none(grads: Sequence[Array | None], like: Arrays) -> list[Array]:
    """Return gradients with zeros for None."""
    return [np.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True)]


def gradients(run: Run, seeds: Sequence[Any], like: Arrays, **options: Any) -> list[Array]:
    """Return the gradients of a run, zeros for None; its graph is retained."""
    return zeros_for_none(
        grads_on_host(run_backward(lambda: run.vjp(seeds, retain=True, **options))), like
    )


def away_from_zero(shape: int | tuple[int, ...], rng: np.random.Generator) -> Any:
    """Draw numbers between 0.5 and 1.5 and their negatives."""
    return rng.uniform(0.5, 1.5, shape) * _SIGNS[rng.integers(0, 2, shape)]


def random_like(array: Array, rng: np.random.Generator) -> Array:
    """Draw numbers away from zero, of the shape and dtype of `array`."""
    values = away_from_zero(array.shape, rng)
    if array.dtype.kind == "c":
        values = values + 1j * rng.uniform(0.5, 1.5, array.shape)
    return np.asarray(values).astype(array.dtype)


def _unit(array: Array, k: int) -> Array:
    direction = np.zeros(coordinates(array).size)
    direction[k] = 1.0
    return direction
