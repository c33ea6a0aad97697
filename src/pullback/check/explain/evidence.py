"""What is known about a wrong gradient: measured once, read by every explanation.

All gradients are NumPy arrays of the shape of their argument. What explains a gradient has to fit
at each look: for two output gradients, and at two points.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from pullback.check.deadline import OutOfTimeError
from pullback.check.numerical import coordinates, double, from_coordinates, joined
from pullback.check.session import Session
from pullback.check.subject import BackwardError, ForwardError, Subject
from pullback.check.values import Array, Arrays

_TOTALS: dict[str, Callable[..., Array]] = {"sum": np.sum, "norm": np.linalg.norm}
_ENOUGH = 64  # elements that are moved one by one at other points


class Evidence:
    """Backward's gradients beside the numerical ones, for one output gradient and for any other.

    Of each differentiated argument (`names`, `arrays`) there is the gradient of backward in `got`
    and the numerical one in `expected`, both for the output gradients `seeds`.
    """

    def __init__(self, session: Session, purpose: str = "seeds") -> None:
        self.session = session
        self.names = session.subject.names
        self.arrays = session.arrays
        self.outputs = session.outputs
        self.named_outputs = [(f"output {k}", out) for k, out in enumerate(self.outputs)]
        if len(self.outputs) == 1:
            self.named_outputs = [("the output", self.outputs[0])]
        self.pattern_rtol = min(0.05, 30 * session.rtol)  # looser than that of the check
        self.seeds = session.seeds(purpose)
        self.got = self.vjp(self.seeds)
        self.expected = [self.numerical(i, self.seeds) for i in range(len(self.arrays))]

    def vjp(self, seeds: Arrays) -> list[Array]:
        """Return backward's gradients in double precision; zeros for None."""
        return [g.astype(double(g.dtype)) for g in self.session.vjp(seeds)]

    @cached_property
    def slopes(self) -> list[tuple[list[int], Array]]:
        """For each argument which coordinates were moved, and the outputs' slopes along each."""
        found, total = [], self.session.center.size
        for lines in self.session.columns:
            values = np.reshape([line.slope.value for line in lines], (len(lines), total))
            found.append(([line.element or 0 for line in lines], values.T))
        return found

    def jacobian(self, i: int) -> Array | None:
        """Return the numerical Jacobian, a row for each output; None if not all was measured."""
        moved, slopes = self.slopes[i]
        return slopes if 0 < len(moved) == coordinates(self.arrays[i]).size else None

    def numerical(self, i: int, seeds: Arrays) -> Array:
        """Return the numerical gradient of an argument for any output gradients; NaN if unknown."""
        g, (moved, slopes), array = joined(seeds), self.slopes[i], self.arrays[i]
        used, flat = g != 0, np.full(coordinates(array).size, np.nan)
        with np.errstate(all="ignore"):
            flat[moved] = g @ slopes if used.all() else g[used] @ slopes[used]
        return from_coordinates(flat, array.astype(double(array.dtype)))

    def given(self, i: int, changed: dict[int, Array]) -> Array:
        """Return the right gradient of an argument if some output gradients were others."""
        return self.numerical(i, [changed.get(k, g) for k, g in enumerate(self.seeds)])

    @cached_property
    def tolerance(self) -> list[Array]:
        """The tolerance of each element of a gradient."""
        found = []
        for i, array in enumerate(self.arrays):
            flat = np.full(coordinates(array).size, np.inf)
            for line in self.session.columns[i]:
                low, high, error, size, _ = self.session.component(line, self.seeds)
                flat[line.element] = (high - low) / 2 + error + self.session.rtol * size
            flat = flat + self.session.options.atol
            if array.dtype.kind == "c":
                flat = flat.reshape(-1, 2).max(axis=1)
            found.append(flat.reshape(array.shape))
        return found

    @cached_property
    def wrong(self) -> list[Array]:
        """Where backward's gradient is wrong for `seeds`, one array of bool for each argument."""
        pairs = zip(self.got, self.expected, strict=True)
        return [self.differs(g, e, i) for i, (g, e) in enumerate(pairs)]

    def on(self, subject: Subject) -> Evidence:
        """Return the evidence on another call, in which fewer elements are moved one by one."""
        most = min(_ENOUGH, self.session.options.max_elements)
        return Evidence(self.session.on(subject, max_elements=most))

    def of(self, subject: Subject) -> Evidence | None:
        """Return the evidence on another call; None where the function is not defined there."""
        try:
            found = self.on(subject)
        except (BackwardError, ForwardError):
            return None
        same = [out.shape for out in found.outputs] == [out.shape for out in self.outputs]
        values = [*(slopes for _, slopes in found.slopes), *found.got]
        return found if same and all(np.isfinite(v).all() for v in values) else None

    @cached_property
    def other(self) -> Evidence:
        """The evidence for other output gradients."""
        return Evidence(self.session, "other seeds")

    @cached_property
    def elsewhere(self) -> Evidence | None:
        """The evidence at slightly different values, if there is time for it."""
        moved = [np.asarray(a * (1.06 + 0.03 * k), a.dtype) for k, a in enumerate(self.arrays)]
        with contextlib.suppress(OutOfTimeError):
            return self.of(self.session.subject.with_arrays(moved))
        return None

    def is_right_in(self, there: Evidence, i: int) -> bool:
        """Return whether backward's gradient of argument `i` is the right one of another call.

        And not also of this.
        """
        pairs = [(look, there.numerical(i, look.seeds)) for look in (self, self.other)]
        same = all(self.matches(look.got[i], right) for look, right in pairs)
        return same and not all(self.matches(look.expected[i], right) for look, right in pairs)

    def looks(self) -> Iterator[Evidence]:
        """Yield what an explanation has to fit: two output gradients, and another point."""
        yield from (self, self.other)
        if not self.session.options.fast and self.elsewhere is not None:
            yield self.elsewhere

    def differs(self, got: Array, expected: Array, i: int) -> Array:
        """Return where two gradients of argument `i` differ; False where nothing is known."""
        with np.errstate(all="ignore"):
            off = np.abs(got - expected)
            return np.asarray((~(off <= self.tolerance[i])) & np.isfinite(expected))

    def matches(self, a: Array, b: Array) -> bool:
        """Return whether two arrays are equal up to rounding where both are known, and not 0."""
        if a.shape != b.shape or not a.size:
            return False
        seen = np.isfinite(a) & np.isfinite(b)
        if not seen.any() or not np.isfinite(a[np.isfinite(b)]).all():
            return False
        size = float(np.max(np.abs(b[seen])))
        close = np.abs(a[seen] - b[seen]) <= self.pattern_rtol * (np.abs(b[seen]) + 1e-3 * size)
        return size > 0 and bool(close.all())


# -- arrays that the call knows --------------------------------------------------------------------
def quantities(e: Evidence, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield arrays of a shape that the call knows, and simple functions of them, in words."""
    plain: list[tuple[str, Array]] = []
    arrays = [(f"`{name}`", array) for name, array in e.session.subject.array_arguments()]
    for name, a in (*arrays, *e.named_outputs):
        if a.dtype.kind not in "fciu" or not a.size:
            continue
        for x in aligned(a + 0.0, shape):
            plain.append((name, x))
            yield name, x
            yield f"{name} ** 2", x**2
            yield f"(1 - {name})", 1 - x
            yield f"(1 + {name})", 1 + x
            yield f"sqrt({name})", np.sqrt(x)
            yield f"exp({name})", np.exp(x)
            yield f"{name} * (1 - {name})", x * (1 - x)
            yield f"(1 - {name} ** 2)", 1 - x**2
        axes = (None, *range(a.ndim)) if a.ndim and a.dtype.kind == "f" else ()
        for axis, (word, total) in itertools.product(axes, _TOTALS.items()):
            along = "" if axis is None else f" along axis {axis}"
            for fitted in aligned(total(a, axis=axis, keepdims=True), shape):
                yield f"the {word} of {name}{along}", fitted
    for (a_name, x), (b_name, y) in itertools.permutations(plain, 2):
        yield f"{a_name} / {b_name}", x / y
        yield f"{a_name} * {b_name}", x * y
    for axis, index in enumerate(np.indices(shape)):
        yield f"the index (from 1) along axis {axis}", index + 1.0


def aligned(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array broadcast to a shape: unchanged, and with a reduced axis restored."""
    reduced = range(len(shape)) if 0 < array.ndim == len(shape) - 1 else ()
    for fitted in (array, *(np.expand_dims(array, axis) for axis in reduced)):
        sizes = zip(reversed(fitted.shape), reversed(shape), strict=False)
        if fitted.ndim <= len(shape) and all(m in (1, n) for m, n in sizes):
            yield np.broadcast_to(fitted, shape)
