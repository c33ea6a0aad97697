"""Operations that work element by element: arithmetic, and choosing.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: a maximum or
minimum of equals shares the gradient by halves, and NaN passes it to both; clamp passes the
gradient at its bounds; pow(x, 0) has 0; the branch that `where` did not take gets exactly 0.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, DTypeError, compose
from pullback.ops._declare import (
    both,
    elementwise,
    face,
    mask,
    needs_order,
    needs_tensor,
    operation,
    real,
    sample,
    standard,
)
from pullback.ops._examples import documented
from pullback.ops.comparison import greater, less, logical_or, not_equal

__all__ = [
    "add",
    "clamp",
    "clip",
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "lerp",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "neg",
    "negative",
    "positive",
    "pow",
    "remainder",
    "sub",
    "subtract",
    "where",
]

# -- arithmetic ------------------------------------------------------------------------------------
add_ = elementwise(
    "add",
    standard("add"),
    x=lambda g: g,
    y=lambda g: g,
    domain=both(-2, 2),
    doc="Return x + y.",
)
subtract = elementwise(
    "sub subtract",
    standard("subtract"),
    x=lambda g: g,
    y=lambda g: -g,
    domain=both(-2, 2),
    doc=documented(
        "Return x - y.",
        "pb.subtract(pb.tensor([1.0, 2.0]), 10)",
        "tensor([-9., -8.])",
    ),
)
multiply = elementwise(
    "mul multiply",
    standard("multiply"),
    x=lambda g, y: g * y,
    y=lambda g, x: g * x,
    domain=both(-2, 2),
    doc=documented(
        "Return x * y.",
        "pb.multiply(pb.tensor([1.0, 2.0]), 10)",
        "tensor([10., 20.])",
    ),
)
divide = elementwise(
    "div divide",
    standard("divide"),
    x=lambda g, y: g / y,
    y=lambda g, x, y: -(g / y * x / y),
    floating=True,
    domain={"x": both(-2, 2), "y": both(0.5, 2)},
    doc=documented(
        "Return x / y.",
        "pb.divide(pb.tensor([1.0, 2.0]), 4)",
        "tensor([0.2500, 0.5000])",
    ),
)
negative = elementwise(
    "neg negative",
    standard("negative"),
    x=lambda g: -g,
    domain=both(-2, 2),
    doc=documented("Return -x.", "pb.negative(pb.tensor([1.0, -2.0]))", "tensor([-1.,  2.])"),
)
positive = elementwise(
    "pos positive",
    standard("positive"),
    x=lambda g: g,
    domain=both(-2, 2),
    doc=documented("Return +x.", "pb.positive(pb.tensor([1.0, -2.0]))", "tensor([ 1., -2.])"),
)
floor_divide = elementwise(
    "floor_divide",
    standard("floor_divide", ordered=True),
    x=lambda g, xp: xp.zeros_like(g),
    y=lambda g, xp: xp.zeros_like(g),
    domain={"x": real(2.1, 2.9), "y": real(0.71, 0.72)},
    doc=documented(
        "Return x / y rounded down; its derivative is 0 everywhere.",
        "pb.floor_divide(pb.tensor([7.0, -7.0]), 2)",
        "tensor([ 3., -4.])",
    ),
)
remainder = elementwise(
    "remainder",
    standard("remainder", ordered=True),
    x=lambda g: g,
    y=lambda g, x, y, xp: -(g * xp.floor_divide(x, y)),
    domain={"x": real(2.2, 2.8), "y": real(0.71, 0.72)},
    doc=documented(
        "Return the remainder of x / y, with the sign of y.",
        "pb.remainder(pb.tensor([7.0, -7.0]), 3)",
        "tensor([1., 2.])",
    ),
)


def _pow_exponent(g: Any, x: Any, y: Any, out: Any, xp: Any) -> Any:
    """Return g * out * log(x), with 0 where x is 0 and y is not negative (its limit)."""
    at_zero = (x == 0) & _real_at_least_zero(y, xp)
    safe = xp.where(at_zero, xp.ones_like(x), x)
    return xp.where(at_zero, xp.zeros_like(out), g * out * xp.log(safe))


def _real_at_least_zero(y: Any, xp: Any) -> Any:
    return (xp.real(y) if "complex" in str(y.dtype) else y) >= 0


def _pow_base(g: Any, x: Any, y: Any, xp: Any) -> Any:
    """Return g * y * x**(y - 1), with 0 where y is 0."""
    if isinstance(y, (int, float, complex)):
        return xp.zeros_like(x) * g if y == 0 else g * (y * x ** (y - 1))
    constant = y == 0
    power = xp.where(constant, xp.ones_like(y), y - 1)
    return xp.where(constant, xp.zeros_like(g), g * (y * x**power))


power = elementwise(
    "pow",
    lambda xp, x, y: x**y,
    x=_pow_base,
    y=_pow_exponent,
    domain={"x": both(0.5, 2), "y": both(-2, 2)},
    doc=documented(
        "Return x ** y; the derivative at y = 0 is 0 for every x.",
        "pb.pow(pb.tensor([2.0, 3.0]), 2)",
        "tensor([4., 9.])",
    ),
)


def _toward_zero(xp: Any, x: Any, y: Any) -> Any:
    """Return x - trunc(x / y) * y, exactly: the remainder of the magnitudes is."""
    needs_order("fmod", x, y)
    rest = xp.remainder(xp.abs(x), xp.abs(y))
    return xp.where(x < 0, -rest, rest)


fmod = elementwise(
    "fmod",
    _toward_zero,
    kernel=lambda xp, x, y: xp.fmod(x, y),
    x=lambda g: g,
    y=lambda g, x, y, xp: -(g * xp.trunc(x / y)),
    domain={"x": real(2.2, 2.8), "y": real(0.71, 0.72)},
    doc=documented(
        "Return the remainder of x / y, with the sign of x.",
        "pb.fmod(pb.tensor([7.0, -7.0]), 3)",
        "tensor([ 1., -1.])",
    ),
)


# -- PyTorch's arguments -------------------------------------------------------------------------
@face(add_)
def add(x: Any, y: Any, /, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """Return x + alpha * y.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.add(pb.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    y = y if alpha == 1 else times(y, alpha)
    return add_(x, y) if out is None else add_(x, y, out=out)


@face(subtract)
def sub(x: Any, y: Any, /, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """Return x - alpha * y.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sub(pb.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([-19., -18.])
    """
    y = y if alpha == 1 else times(y, alpha)
    return subtract(x, y) if out is None else subtract(x, y, out=out)


def times(y: Any, alpha: Any) -> Any:
    """Return alpha * y, of numbers or tensors."""
    return y * alpha if isinstance(y, (int, float, complex)) else multiply(y, alpha)


@face(divide)
def div(x: Any, y: Any, /, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """Return x / y, rounded if so wished; the derivative of what is rounded is 0.

    Parameters
    ----------
    x, y : Tensor or number
    rounding_mode : str, optional
        ``"trunc"`` rounds towards 0, and ``"floor"`` down, as `floor_divide` does. Integers stay
        integers then.

    Raises
    ------
    ArgumentError
        If the mode is another.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.div(pb.tensor([7.0, -7.0]), 2, rounding_mode="trunc")
    tensor([ 3., -3.])
    """
    if rounding_mode is None:
        return divide(x, y) if out is None else divide(x, y, out=out)
    if rounding_mode == "floor":
        return floor_divide(x, y)
    if rounding_mode != "trunc":
        required = "'trunc', 'floor' or None required as 'rounding_mode'"
        raise ArgumentError(compose("div", required, repr(rounding_mode)))
    return truncated(x, y)


def _truncated(xp: Any, x: Any, y: Any) -> Any:
    needs_order("div", x, y)
    if "int" in str(x.dtype):  # exact, whatever the size
        return xp.floor_divide(x - _toward_zero(xp, x, y), y)
    return xp.trunc(x / y)


truncated = elementwise(
    "truncated",
    _truncated,
    x=lambda g, xp: xp.zeros_like(g),
    y=lambda g, xp: xp.zeros_like(g),
    domain={"x": real(2.2, 2.8), "y": real(0.71, 0.72)},
    doc="Return x / y rounded towards 0.",
)


# -- the larger and the smaller --------------------------------------------------------------------
def _halves(g: Any, lost: Any, not_won: Any, xp: Any) -> Any:
    """Return g where it won, half of it where it tied; comparing with NaN, neither is lost."""
    return (xp.where(lost, 0, g) + xp.where(not_won, 0, g)) / 2


maximum = elementwise(
    "maximum",
    standard("maximum", ordered=True),
    x=lambda g, x, y, xp: _halves(g, x < y, x <= y, xp),
    y=lambda g, x, y, xp: _halves(g, y < x, y <= x, xp),
    doc=documented(
        "Return the larger of x and y; equals share the gradient by halves.",
        "pb.maximum(pb.tensor([1.0, 5.0]), 3)",
        "tensor([3., 5.])",
    ),
)
minimum = elementwise(
    "minimum",
    standard("minimum", ordered=True),
    x=lambda g, x, y, xp: _halves(g, x > y, x >= y, xp),
    y=lambda g, x, y, xp: _halves(g, y > x, y >= x, xp),
    doc=documented(
        "Return the smaller of x and y; equals share the gradient by halves.",
        "pb.minimum(pb.tensor([1.0, 5.0]), 3)",
        "tensor([1., 3.])",
    ),
)

# -- choosing --------------------------------------------------------------------------------------
where_ = elementwise(
    "where",
    standard("where"),
    condition=None,
    x=lambda g, condition, xp: xp.where(condition, g, 0),
    y=lambda g, condition, xp: xp.where(condition, 0, g),
    inputs=("condition", "x", "y"),
    domain={"condition": mask(), "x": both(-2, 2), "y": both(-2, 2)},
    doc="Return x where condition holds, else y; the other branch gets a gradient of exactly 0.",
)


def needs_mask(op: str, name: str, condition: Any) -> None:
    """Raise where a condition is not made of bools."""
    dtype = getattr(condition, "dtype", type(condition).__name__)
    if getattr(dtype, "kind", None) != "b" and not str(dtype).endswith("bool"):
        came = str(dtype).rpartition(".")[2]
        hint = f"compare it, for instance {name} != 0"
        raise DTypeError(compose(op, f"a bool {name} required", came, (name, condition), hint=hint))


@face(where_)
def where(condition: Any, x: Any, y: Any, /) -> Tensor:
    """Return x where condition holds, else y; the other branch gets a gradient of exactly 0.

    Parameters
    ----------
    condition : Tensor of bool
    x, y : Tensor or number
        Broadcast with the condition and brought to one dtype.

    Raises
    ------
    DTypeError
        If the condition is not bool.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([-1.0, 2.0])
    >>> pb.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    needs_mask("where", "condition", condition)
    return where_(condition, x, y)


# -- intervals -------------------------------------------------------------------------------------
def _clamp(xp: Any, x: Any, *, min: Any = None, max: Any = None) -> Any:
    needs_order("clamp", x)
    if min is not None:
        x = xp.where(x < min, xp.full_like(x, min), x)
    if max is not None:
        x = xp.where(x > max, xp.full_like(x, max), x)
    return x


def _clamp_rule(g: Any, x: Any, min: Any, max: Any, xp: Any) -> Any:
    if min is None or max is None:
        return xp.where(x >= min if max is None else x <= max, g, 0)
    return xp.where((x >= min) & (x <= max), g, 0)


clamp_numbers = operation(
    "clamp",
    _clamp,
    kernel=lambda xp, x, *, min, max: xp.clip(x, min, max),
    rules={"x": _clamp_rule},
    domain=real(-2, 2, -0.5, 0.5),
    samples=(
        sample((3, 4), min=-0.5, max=0.5),
        sample((5,), min=-0.5),
        sample((), max=0.5),
        sample((0, 2), min=-0.5),
    ),
    doc="Return x limited to [min, max]; the gradient passes at the bounds.",
)


@face(clamp_numbers)
def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Return `x` limited to [min, max]; the bounds are numbers or tensors.

    Parameters
    ----------
    x : Tensor
    min, max : number or Tensor, optional
        Broadcast with `x`; without one, that side has no limit. The gradient passes at the bounds;
        a tensor bound gets the gradient where it is the result.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clip(pb.tensor([-1.0, 0.5, 2.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return positive(x) if min is None and max is None else clamp(x, min, max)


@face(clamp_numbers)
def clamp(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """Return `x` limited to [min, max]; bounds are numbers or tensors.

    Parameters
    ----------
    x : Tensor
    min, max : number or Tensor, optional
        Broadcast with `x`. The gradient passes at the bounds; a tensor bound gets the gradient
        where it is the result.

    Raises
    ------
    ArgumentError
        If neither bound is given.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clamp(pb.tensor([-1.0, 0.5, 2.0]), min=0.0, max=1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("clamp: at least one of min and max must be given, got neither")
    needs_tensor("clamp", x)
    if clamps_by_numbers(x, min, max):
        return clamp_numbers(x, min=min, max=max)
    result: Tensor = x if min is None else _limited(x, less(x, min), min)
    return result if max is None else _limited(result, greater(result, max), max)


def _limited(x: Tensor, beyond: Tensor, bound: Any) -> Tensor:
    """Return the bound where `x` is beyond it or it is NaN, else `x`."""
    if isinstance(bound, Tensor):
        beyond = logical_or(beyond, not_equal(bound, bound))
    return where(beyond, bound, x)


def clamps_by_numbers(x: Any, *bounds: Any) -> bool:
    """Return whether the bounds are numbers that the dtype of `x` can hold."""
    inexact = (x.dtype if isinstance(x, Tensor) else library_of(x).dtype(x)).is_inexact
    kinds = (int, float) if inexact else (int,)
    return all(b is None or isinstance(b, kinds) for b in bounds)


# -- between --------------------------------------------------------------------------------------
lerp_ = elementwise(
    "lerp",
    lambda xp, start, end, weight: start + weight * (end - start),
    start=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    weight=lambda g, start, end: g * (end - start),
    floating=True,
    domain=both(-2, 2),
    doc="Return start + weight * (end - start).",
)


@face(lerp_)
def lerp(start: Any, end: Any, weight: Any) -> Tensor:
    """Return start + weight * (end - start), the point between two at a share of the way.

    Parameters
    ----------
    start, end, weight : Tensor or number
        Broadcast with each other; at least one is a tensor.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.lerp(pb.tensor([0.0, 1.0]), pb.tensor([4.0, 2.0]), 0.25)
    tensor([1.0000, 1.2500])
    """
    return lerp_(start, end, weight)


# The names of functions that Python has too.
pow = power
mul, neg = multiply, negative
