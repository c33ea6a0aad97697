"""How a distribution is asked: SciPy's arguments, its support, and what follows from the density.

Owns the reading of shapes, `loc` and `scale`, and the values outside of the support. What the
distributions are is in `stats`.

Invariant: no formula sees a number outside of its domain, so that gradients are never NaN there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy

from pullback.arrays import NUMPY, library_of
from pullback.errors import compose
from pullback.interop.scipy.reading import are_scipys, in_one_dtype
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.exponential import exp, log, log1p
from pullback.ops.primitives.rounding import floor

__all__ = ["Continuous", "Discrete", "Distribution"]

# Functions of one standard variable and shapes.
Formula = Callable[..., Any]
_INF = math.inf


class Distribution:
    """A distribution of `scipy.stats`: its functions, or one with shapes, loc and scale given.

    Parameters
    ----------
    name : str
    shapes : str
        The names of the shape parameters, separated by spaces; each with a number at which
        formulas may be evaluated where a shape is invalid: ``"a=1"``.
    valid : callable
        Whether shapes are valid, given them.
    support : callable
        The ends of the support, given the shapes, and a number inside.
    starts_open : bool
        Whether the lower end is no part of the support.
    density : callable
        The logarithm of density or mass.
    formulas : callable
        ``cdf`` and those of ``sf``, ``logcdf`` and ``logsf`` that have a formula of their own; of a
        continuous one ``ppf``, and ``isf`` if it is not that of 1 - q.
    """

    location: tuple[str, ...] = ()
    logarithm = ""  # the name of the logarithm of density or mass
    density = ""
    inverses: tuple[str, ...] = ()  # of cdf and sf

    def __init__(
        self,
        name: str,
        density: Formula,
        *,
        shapes: str = "",
        valid: Callable[..., Any] = lambda: True,
        support: Callable[..., Any] = lambda *shapes: (-_INF, _INF, 0.5),
        starts_open: bool = False,
        **formulas: Formula,
    ) -> None:
        pairs = [pair.split("=") for pair in shapes.split()]
        self.name, self.shapes = name, tuple(name for name, _ in pairs)
        self._defaults = [float(number) for _, number in pairs]
        self._density, self._valid, self._support = density, valid, support
        self._starts_open, self._formulas = starts_open, formulas
        for method in self._methods():
            setattr(self, method, self._method(method))

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Return the distribution with its parameters given; its functions take x alone."""
        return Frozen(self, args, settings)

    def __repr__(self) -> str:
        return f"<pullback.interop.scipy.stats.{self.name}>"

    def __getattr__(self, name: str) -> NoReturn:
        has = ", ".join(self._methods())
        label = f"pullback.interop.scipy.stats.{vars(self).get('name')}"
        hint = f"for values alone: scipy.stats.{vars(self).get('name')}.{name}"
        raise AttributeError(compose(label, f"one of {has} required", repr(name), hint=hint))

    def _methods(self) -> tuple[str, ...]:
        return (self.logarithm, self.density, "cdf", "sf", "logcdf", "logsf", *self.inverses)

    def _method(self, method: str) -> Any:
        """Return the function of one name, with SciPy's signature."""
        first = "x" if isinstance(self, Continuous) else "k"
        first = "q" if method in self.inverses else first

        def function(*args: Any, **settings: Any) -> Any:
            if not args and first not in settings:
                raise TypeError(f"{self.name}.{method} requires {first!r}")
            x, args = (settings.pop(first), args) if first in settings else (args[0], args[1:])
            parameters = self._bound(args, settings)
            if are_scipys([x, *parameters]):
                return getattr(getattr(scipy.stats, self.name), method)(x, *parameters)
            with np.errstate(all="ignore"):  # poles at the ends of the support, as in SciPy
                return self._evaluated(method, x, parameters)

        names = (first, *self.shapes, *self.location)
        function.__name__ = method
        function.__qualname__ = f"{self.name}.{method}"
        function.__doc__ = f"Return `scipy.stats.{self.name}.{method}({', '.join(names)})`."
        return function

    def _bound(self, args: Any, settings: dict[str, Any]) -> list[Any]:
        """Return shapes, loc and scale."""
        names = (*self.shapes, *self.location)
        if len(args) > len(names):
            raise TypeError(f"{self.name} takes {names}, but {len(args)} values were given")
        values = dict(zip(names, args, strict=False))
        wrong = [key for key in settings if key not in names or key in values]
        if wrong:
            raise TypeError(f"{self.name}: {wrong[0]!r} is given twice or no one of {names}")
        values.update(settings)
        missing = [name for name in self.shapes if name not in values]
        if missing:
            raise TypeError(f"{self.name} requires the shape {missing[0]!r}")
        return [values.get(name, 1.0 if name == "scale" else 0.0) for name in names]

    def _evaluated(self, method: str, x: Any, parameters: list[Any]) -> Any:
        raise NotImplementedError

    def _standard(self, method: str, y: Any, shapes: Any, valid: Any, between: Any) -> Any:
        """Return what a method gives at a standard variable, before loc and scale count.

        `between`: where the logarithm of a mass is asked between whole numbers.
        """
        low, high, middle = self._support(*shapes)
        below, above = self._outside(y, low, high)
        safe = y
        for mask in (below, above, between):
            if mask is not None:
                safe = where(mask, middle, safe)
        if method == self.logarithm:
            result = self._density(safe, *shapes)
            ends = (-_INF, -_INF)
        else:
            result = self._probability(method, safe, shapes)
            ends = _ENDS[method]
        for mask, end in zip((below, above), ends, strict=True):
            if mask is not None:
                result = where(mask, end, result)
        if between is not None:
            result = where(between, -_INF, result)
        return result if valid is True else where(valid, result, math.nan)

    def _outside(self, y: Any, low: Any, high: Any) -> tuple[Any, Any]:
        is_low = isinstance(low, float) and low == -_INF
        is_high = isinstance(high, float) and high == _INF
        below = y <= low if self._starts_open else y < low
        return None if is_low else below, None if is_high else y > high

    def _probability(self, method: str, y: Any, shapes: Any) -> Any:
        """Return a distribution function by its formula, or by that of another."""
        own = self._formulas.get(method)
        if own is not None:
            return own(y, *shapes)
        if method == "sf":
            return 1 - self._probability("cdf", y, shapes)
        # The logarithm of a probability near 1 is that of 1 less the other, which is small.
        names = ("cdf", "sf") if method == "logcdf" else ("sf", "cdf")
        wanted, other = (self._probability(name, y, shapes) for name in names)
        small, none = wanted < 0.5, wanted == 0
        left = log(where(small & ~none, wanted, 1.0))
        result = where(small, left, log1p(-where(small, 0.0, other)))
        return where(none, -_INF, result)

    def _checked(self, shapes: list[Any]) -> tuple[list[Any], Any]:
        """Return the shapes, harmless numbers for invalid ones, and which are valid."""
        valid = self._valid(*shapes)
        valid = True if valid is True else _unless_all(valid)
        if valid is True:
            return shapes, True
        pairs = zip(shapes, self._defaults, strict=True)
        return [where(valid, shape, default) for shape, default in pairs], valid


def _unless_all(mask: Any) -> Any:
    """Return a mask, or True where it is one of NumPy's, whose values are known, and all hold."""
    array = mask.data_array()
    return True if library_of(array) is NUMPY and array.all() else mask


_ENDS = {
    "cdf": (0.0, 1.0),
    "sf": (1.0, 0.0),
    "logcdf": (-_INF, 0.0),
    "logsf": (0.0, -_INF),
}


class Continuous(Distribution):
    """A distribution with a density, moved by `loc` and stretched by `scale`."""

    location = ("loc", "scale")
    logarithm, density = "logpdf", "pdf"
    inverses = ("ppf", "isf")

    def _evaluated(self, method: str, x: Any, parameters: list[Any]) -> Any:
        if method == "pdf":
            return exp(self._evaluated("logpdf", x, parameters))
        is_standard = parameters[-2].__class__ is parameters[-1].__class__ is float
        is_standard = is_standard and parameters[-2:] == [0.0, 1.0]
        x, *rest = in_one_dtype(x, *parameters)
        *shapes, loc, scale = rest
        shapes, valid = self._checked(shapes)
        if is_standard and method not in self.inverses:
            return self._standard(method, x, shapes, valid, None)
        positive = _unless_all(scale > 0)
        if positive is not True:
            valid = positive if valid is True else valid & positive
            scale = where(positive, scale, 1.0)
        if method in self.inverses:
            return loc + scale * self._quantile(method, x, shapes, valid)
        result = self._standard(method, (x - loc) / scale, shapes, valid, None)
        return result - log(scale) if method == "logpdf" else result

    def _quantile(self, method: str, q: Any, shapes: Any, valid: Any) -> Any:
        """Return where the distribution function, or what is left of 1, is q."""
        inside = (q > 0) & (q < 1)
        safe = where(inside, q, 0.5)
        own = self._formulas.get(method)
        value = self._formulas["ppf"](1 - safe, *shapes) if own is None else own(safe, *shapes)
        first, last, _ = self._support(*shapes)
        first, last = (first, last) if method == "ppf" else (last, first)
        value = where(inside, value, where(q == 0, first, where(q == 1, last, math.nan)))
        return value if valid is True else where(valid, value, math.nan)


class Discrete(Distribution):
    """A distribution on whole numbers, moved by `loc`; k and `loc` have no derivative."""

    location = ("loc",)
    logarithm, density = "logpmf", "pmf"

    def _evaluated(self, method: str, x: Any, parameters: list[Any]) -> Any:
        if method == "pmf":
            return exp(self._evaluated("logpmf", x, parameters))
        x, *rest = in_one_dtype(x, *parameters)
        *shapes, loc = rest
        shapes, valid = self._checked(shapes)
        k = (x - loc).detach()
        between = floor(k) != k if method == "logpmf" else None
        return self._standard(
            method, k if between is not None else floor(k), shapes, valid, between
        )


class Frozen:
    """A distribution with its parameters given: its functions take x alone."""

    def __init__(self, of: Distribution, args: Any, settings: dict[str, Any]) -> None:
        self._of, self._args, self._settings = of, args, settings
        of._bound(args, settings)  # says what is wrong at once

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._of, name)
        return lambda x: function(x, *self._args, **self._settings)
