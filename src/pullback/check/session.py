"""One check in progress: what the parts share, each quantity measured once.

Owns the tolerances, the output gradients and the bounds that differences set on a gradient. The
parts read it and report to it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.exceptions import ForwardError
from pullback.check.iterating import lines_of
from pullback.check.numerical import (
    coordinates,
    from_coordinates,
    joined,
    random_like,
)
from pullback.check.report import Cause, Failure, Report
from pullback.check.slopes import Line, Options, Slopes
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays

# Relative tolerance of a gradient computed in a dtype against differences taken in float64.
RTOL = {"float64": 2e-8, "complex128": 2e-8, "float32": 2e-3, "complex64": 2e-3, "float16": 5e-2}
_APPROXIMATE = 3e-3  # the largest error, relative to the terms of a slope, that is forward's own
_VANISHING = 1e-2  # of the largest element of a gradient
_ELSEWHERE = (1.0, 1.3, 0.6, 3.0, 0.1)  # times the arguments, where an iteration may take longer


class Component(NamedTuple):
    """The derivative of <seeds, outputs> along a line."""

    low: float
    high: float  # at a kink; else the same as `low`
    error: float
    size: float  # the sum of its absolute terms
    measured: bool


class Session(Slopes):
    """What the parts of one check share."""

    def __init__(self, subject: Subject, options: Options, report: Report) -> None:
        super().__init__(subject, options)
        self.report = report
        self.part = ""
        self.own_error = 0.0  # that forward shows, relative to the terms of a slope
        self.hidden: Array | None = None  # the outputs' coordinates that no seed is drawn for
        self._gradients: dict[str, list[Array]] = {}  # for the seeds of a purpose

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

        Where forward approximates its result, the gradient may be as far off, which is noted in
        `own_error`. An element whose own gradient nearly vanishes has the error of the others.

        Parameters
        ----------
        line : Line
        got : array
            The coordinates of the gradient of its argument, for the output gradients `seeds`.
        seeds : sequence of array
        noise : float, default 0
            What is tolerated beyond the usual.
        """
        low, high, error, size, measured = self.component(line, seeds)
        if not measured:
            return True
        with np.errstate(all="ignore"):
            terms = np.where(line.direction != 0, line.direction * got, 0.0)
            value = float(np.sum(terms))
            if line.element is None:  # rounding of the single elements adds up
                size += float(np.sum(np.abs(terms))) / 4
            off = max(low - value, value - high) - error - noise - self.atol
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

    # -- gradients -----------------------------------------------------------------------------
    def vjp(self, seeds: Sequence[Any]) -> list[Array]:
        """Return backward's gradients as NumPy arrays, zeros for None."""
        return self.subject.run(self.arrays).gradients(seeds)

    def gradients(self, purpose: str = "seeds") -> list[Array]:
        """Return backward's gradients for the seeds of that purpose."""
        if purpose not in self._gradients:
            self._gradients[purpose] = self.vjp(self.seeds(purpose))
        return self._gradients[purpose]


def is_range(low: Any, high: Any) -> Any:
    """Return whether two bounds say anything, or where those of several do."""
    return ~(np.isnan(low) | np.isnan(high) | (np.isinf(low) & np.isinf(high)))
