"""What `solve_ivp` is given: errors that name the argument, where SciPy's own would be raw.

SciPy chooses lengths of steps by comparing numbers. A NaN makes each comparison false, and the
steps do not end: nothing that is not finite gets where a length is chosen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    AutogradError,
    DTypeError,
    ShapeError,
    compose,
)
from pullback.interop.scipy.reading import named

__all__ = ["Watch", "bounds_of", "check_jacobian", "check_start", "slope_like", "span_of"]

_ONLY_REAL = ("Radau", "LSODA")


def real_number(name: str, number: Any) -> Tensor:
    """Return an argument as a tensor of real numbers."""
    value = named("solve_ivp", name, number)
    if value.is_complex():
        raise DTypeError(compose("solve_ivp", f"real numbers required as {name}", value.dtype.name))
    return value


# -- before the first step -------------------------------------------------------------------------
def span_of(t_span: Any, events: Any) -> list[Any]:
    """Return the first and the last time."""
    try:
        ends = list(t_span)
    except (TypeError, AutogradError):
        came = f"{type(t_span).__name__}"
        raise ArgumentTypeError(
            compose("solve_ivp", "two times required as t_span", came)
        ) from None
    if len(ends) != 2:
        hint = "t_span=(first, last); times between them go in t_eval"
        required = "two times required as t_span"
        raise ShapeError(compose("solve_ivp", required, f"{len(ends)}", hint=hint))
    times = [real_number("t_span", t) for t in ends]
    if any(t.numel() != 1 for t in times):
        came = " and ".join(f"shape {tuple(t.shape)}" for t in times)
        raise ShapeError(compose("solve_ivp", "single numbers required in t_span", came))
    first, last = (float(t.detach()) for t in times)
    if math.isfinite(first) and math.isinf(last) and _may_end(events):
        return ends
    if not math.isfinite(first) or not math.isfinite(last):
        hint = "the last time may be infinite where an event is terminal"
        required = "finite times required in t_span"
        raise ArgumentError(compose("solve_ivp", required, f"{first:g}, {last:g}", hint=hint))
    pairs = zip(ends, times, strict=True)
    return [t.reshape(()) if isinstance(t, Tensor) else float(t_.detach()) for t, t_ in pairs]


def _may_end(events: Any) -> bool:
    listed = [events] if callable(events) else list(events or ())
    return any(getattr(event, "terminal", False) for event in listed)


def check_start(y: Tensor, method: str) -> None:
    """Raise where SciPy's method does not begin at these values."""
    if y.ndim != 1:
        raise ShapeError(compose("solve_ivp", "y0 of one axis required", f"{tuple(y.shape)}"))
    if not bool(np.all(np.isfinite(y.detach().numpy()))):
        raise ArgumentError(compose("solve_ivp", "finite y0 required", "others", ("y0", y)))
    if y.is_complex() and method in _ONLY_REAL:
        hint = "method='BDF' takes complex y0; or solve for the real and the imaginary parts"
        required = f"a real y0 required by the method {method}"
        raise DTypeError(compose("solve_ivp", required, y.dtype.name, hint=hint))


def bounds_of(options: dict[str, Any], span: list[Any], n: int) -> dict[str, Any]:
    """Return the options that say how long steps are, as values; SciPy has defaults for others."""
    result = {}
    for name in ("rtol", "atol", "first_step", "max_step"):
        if options.get(name) is None:
            continue
        result[name] = value = real_number(name, options[name]).detach().numpy()
        is_step = name.endswith("_step")
        # SciPy takes a rtol that is too small for the smallest one, with a warning.
        fits = value > 0 if is_step else np.isfinite(value) & ((value >= 0) | (name == "rtol"))
        if not np.all(fits):
            required = f"{'a positive number' if is_step else 'finite tolerances of 0 or more'}"
            raise ArgumentError(compose("solve_ivp", f"{required} required as {name}", f"{value}"))
        if value.shape not in ((), () if is_step else (n,)):
            required = f"one number{'' if is_step else ' or one of each of y0'} required as {name}"
            raise ShapeError(compose("solve_ivp", required, f"shape {value.shape}"))
    first, last = (float(real_number("t_span", t).detach()) for t in span)
    if "first_step" in result and result["first_step"] > abs(last - first):
        required = f"a first_step of {abs(last - first):g} or less required, as long as t_span"
        raise ArgumentError(compose("solve_ivp", required, f"{result['first_step']:g}"))
    return {name: value if value.ndim else float(value) for name, value in result.items()}


# -- what the functions return ---------------------------------------------------------------------
def slope_like(returned: Any, y: Tensor, is_explicit: bool) -> Tensor:
    """Return a slope of the shape of y; an explicit method of SciPy repeats one number."""
    if returned is None:
        required, hint = "numbers required of fun", "return the slope: fun has no return"
        raise ArgumentTypeError(compose("solve_ivp", required, "None", hint=hint))
    slope = (
        returned
        if isinstance(returned, Tensor)
        else named("solve_ivp", "what fun returns", returned)
    )
    if slope.is_complex() and not y.is_complex():
        hint = "give y0 as complex numbers, as y0 + 0j"
        required = "real slopes required of fun for a real y0"
        raise DTypeError(compose("solve_ivp", required, slope.dtype.name, hint=hint))
    if slope.shape == y.shape:
        return slope
    if is_explicit and slope.shape in ((), (1,)):
        return slope.expand(y.shape)
    required = f"a slope of shape {tuple(y.shape)}, that of y0, required of fun"
    hint = "return one array or tensor of a number for each of y0: pb.stack of the slopes"
    raise ShapeError(compose("solve_ivp", required, f"shape {tuple(slope.shape)}", hint=hint))


def check_jacobian(name: str, matrix: Any, n: int, where: str = "") -> Any:
    """Return the values of a Jacobian or of its pattern, a sparse one as it is."""
    values = matrix.detach().numpy() if isinstance(matrix, Tensor) else matrix
    values = values if hasattr(values, "tocsc") else np.asarray(values)
    if values.shape != (n, n):
        required = f"{name} of shape {(n, n)} required"
        raise ShapeError(compose("solve_ivp", required, f"shape {tuple(values.shape)}"))
    elements = values.tocsc().data if hasattr(values, "tocsc") else values
    if not np.all(np.isfinite(elements)):
        required = f"finite elements of {name} required{where}"
        raise ArgumentError(compose("solve_ivp", required, f"{_first_bad(elements)}"))
    return values


def _first_bad(elements: Any) -> Any:
    elements = np.ravel(elements)
    return elements[~np.isfinite(elements)][0]


class Watch:
    """Notes where the slope was last NaN or infinite, and raises where steps cannot go on."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.seen: tuple[float, Any] | None = None

    def note(self, t: float, slope: Any) -> None:
        """Note a slope that is not finite."""
        if math.isfinite(t) and not np.all(np.isfinite(slope)):
            self.seen = (float(t), _first_bad(slope))

    def check(self, what: str, values: Any, t: float) -> None:
        """Raise unless all values that follow from slopes are finite."""
        elements = values.data if hasattr(values, "tocsc") else values
        if np.all(np.isfinite(elements)):
            return
        t, bad = self.seen or (float(t), _first_bad(elements))
        required = f"finite {what} required by the method {self.method}"
        hint = "look in fun for a division by 0, and a root or a logarithm of a negative number"
        raise ArgumentError(compose("solve_ivp", required, f"{bad} at t = {t:.6g}", hint=hint))
