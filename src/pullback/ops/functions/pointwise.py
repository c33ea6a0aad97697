"""Pointwise functions that are made of others, or look at their arguments first.

Nearly all is made of other operations. Edge values: fmax and fmin take the number where the other
is NaN, and share the gradient of equals by halves, as maximum and minimum do.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import DTYPES, library_of, real_of
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_tensor, wrapper_of
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.manipulation import reshape
from pullback.ops.primitives.arithmetic import (
    add_p,
    clamp_p,
    div_p,
    divide,
    floor_divide,
    lerp_p,
    maximum,
    minimum,
    multiply,
    positive,
    pow,
    sub_p,
    subtract,
    truncated_p,
    where_p,
)
from pullback.ops.primitives.comparison import (
    greater,
    isnan,
    less,
    less_equal,
    logical_or,
    not_equal,
)
from pullback.ops.primitives.complex_numbers import sgn_p
from pullback.ops.primitives.exponential import exp2, logaddexp
from pullback.ops.primitives.indexing import masked_fill_p
from pullback.ops.primitives.rounding import absolute, nan_to_num_p, round_p, sign_p
from pullback.ops.samples import both, real, sample


# -- PyTorch's arguments -------------------------------------------------------------------------
@wrapper_of(add_p, methods="add")
def add(x: Any, y: Any, /, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """Return x + alpha * y.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.add(pb.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    y = y if alpha == 1 else times(y, alpha)
    return add_p.public(x, y) if out is None else add_p.public(x, y, out=out)


@wrapper_of(sub_p, methods="sub subtract")
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


@wrapper_of(div_p, methods="div divide")
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
    return truncated_p.public(x, y)


def needs_mask(op: str, name: str, condition: Any) -> None:
    """Raise where a condition is not made of bools."""
    dtype = getattr(condition, "dtype", type(condition).__name__)
    if getattr(dtype, "kind", None) != "b" and not str(dtype).endswith("bool"):
        came = str(dtype).rpartition(".")[2]
        hint = f"compare it, for instance {name} != 0"
        raise DTypeError(compose(op, f"a bool {name} required", came, (name, condition), hint=hint))


# -- choosing --------------------------------------------------------------------------------------
@wrapper_of(where_p)
def where(condition: Any, x: Any, y: Any, /) -> Tensor:
    """Return x where condition holds, else y; the other branch gets a gradient of exactly 0.

    Parameters
    ----------
    condition : Tensor of bool
    x, y : Tensor or number
        Broadcast with the condition and brought to one dtype. A number takes that of the tensor;
        of two floats the result has the default dtype, float32 unless `set_default_dtype` says
        otherwise, as in PyTorch. NumPy gives float64: for that, make one of them a tensor.

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
    >>> pb.where(x > 0, 0.9, -0.1).dtype, pb.where(x > 0, pb.tensor(0.9, dtype="f8"), -0.1).dtype
    (pullback.float32, pullback.float64)
    """
    needs_mask("where", "condition", condition)
    return where_p.public(condition, x, y)


@wrapper_of(clamp_p)
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


_WHOLE = frozenset((int, type(None)))


@wrapper_of(clamp_p, methods="clamp clip")
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
    if x.__class__ not in TENSOR_CLASSES:
        needs_tensor("clamp", x)
    whole = min.__class__ in _WHOLE and max.__class__ in _WHOLE
    if whole or clamps_by_numbers(x, min, max):
        return clamp_p.public(x, min=min, max=max)
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


# -- between ---------------------------------------------------------------------------------------
@wrapper_of(lerp_p, methods="lerp lerp_")
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
    return lerp_p.public(start, end, weight)


_THREE = (sample((3, 4), (4,), (3, 1), value=0.5), sample((), (), ()))


# -- sums of products ------------------------------------------------------------------------------
@composition(
    *_THREE, reference=(lambda x, a, b, value=1: x + value * a * b), methods="addcmul addcmul_"
)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addcmul(pb.tensor([1.0]), pb.tensor([2.0]), pb.tensor([3.0]), value=10)
    tensor([61.])
    """
    product = multiply(tensor1, tensor2)
    return add(input, product if value == 1 else times(product, value))


@composition(
    *_THREE,
    domain={"input": both(-2, 2), "tensor1": both(-2, 2), "tensor2": both(0.5, 2)},
    reference=(lambda x, a, b, value=1: x + value * a / b),
    methods="addcdiv addcdiv_",
)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addcdiv(pb.tensor([1.0]), pb.tensor([6.0]), pb.tensor([3.0]), value=10)
    tensor([21.])
    """
    quotient = divide(tensor1, tensor2)
    return add(input, quotient if value == 1 else times(quotient, value))


@composition(
    sample((3, 4), (4,), alpha=2), sample((), ()), reference=(lambda x, y, alpha=1: y - alpha * x)
)
def rsub(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """Return y - alpha * x.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rsub(pb.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    needs_tensor("rsub", x)
    return subtract(y, x if alpha == 1 else times(x, alpha))


# -- bounds ----------------------------------------------------------------------------------------
def _needs_bound(op: str, name: str, bound: Any) -> None:
    if bound is None:
        raise ArgumentTypeError(compose(op, f"a number or a Tensor required as '{name}'", "None"))


@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain=real(-2, 2),
    reference="numpy.maximum",
    methods="clamp_min clamp_min_",
)
def clamp_min(x: Any, min: Any) -> Tensor:
    """Return `x`, and `min` where it is below; the gradient passes at the bound.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clamp_min(pb.tensor([-1.0, 2.0]), 0.0)
    tensor([0., 2.])
    """
    _needs_bound("clamp_min", "min", min)
    return clamp(x, min=min)


@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain=real(-2, 2),
    reference="numpy.minimum",
    methods="clamp_max clamp_max_",
)
def clamp_max(x: Any, max: Any) -> Tensor:
    """Return `x`, and `max` where it is above; the gradient passes at the bound.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clamp_max(pb.tensor([-1.0, 2.0]), 0.0)
    tensor([-1.,  0.])
    """
    _needs_bound("clamp_max", "max", max)
    return clamp(x, max=max)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2), methods="fmax")
def fmax(x: Any, y: Any) -> Tensor:
    """Return the larger of x and y, and the number where the other is NaN.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fmax(pb.tensor([1.0, pb.nan]), pb.tensor([pb.nan, 2.0]))
    tensor([1., 2.])
    """
    return _numbers_first(maximum, "fmax", x, y)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2), methods="fmin")
def fmin(x: Any, y: Any) -> Tensor:
    """Return the smaller of x and y, and the number where the other is NaN.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fmin(pb.tensor([1.0, 5.0]), pb.tensor([pb.nan, 2.0]))
    tensor([1., 2.])
    """
    return _numbers_first(minimum, "fmin", x, y)


def _numbers_first(chosen: Any, op: str, x: Any, y: Any) -> Tensor:
    x, y = tensor_of(op, x, "x"), tensor_of(op, y, "y")
    return where(isnan(x), y, where(isnan(y), x, chosen(x, y)))


# -- powers and logarithms -------------------------------------------------------------------------
@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain={"x": both(0.5, 2), "y": both(-2, 2)},
    methods="float_power float_power_",
)
def float_power(x: Any, y: Any) -> Tensor:
    """Return x ** y, computed in float64 or complex128.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.float_power(pb.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=float64)
    """
    return pow(_wide(x), _wide(y))


def _wide(x: Any) -> Any:
    if isinstance(x, (int, float, complex)):
        return x
    x = tensor_of("float_power", x)
    return astype(x, DTYPES["complex128" if x.dtype.is_complex else "float64"], copy=False)


@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain=real(-2, 2),
    reference=(lambda x, y: x * 2**y),
    methods="ldexp ldexp_",
    numpy="ldexp: x1=x x2=other",
)
def ldexp(x: Any, other: Any) -> Tensor:
    """Return x * 2 ** other, exactly for integers `other` even where 2 ** other is not finite.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ldexp(pb.tensor([1.5]), pb.tensor([3]))
    tensor([12.])
    """
    if not isinstance(other, Tensor) or other.dtype.kind not in "iu":
        return multiply(x, exp2(other))
    x = tensor_of("ldexp", x)
    double = x.dtype in (DTYPES["float64"], DTYPES["complex128"])
    bound = 2100 if double else 300  # from the largest number to below the smallest
    power = clip(astype(other, "int64", copy=False), -bound, bound)
    third = floor_divide(power, 3)
    scale, last = (exp2(astype(p, real_of(x.dtype))) for p in (third, power - third * 2))
    return multiply(multiply(multiply(x, scale), scale), last)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2), methods="logaddexp2")
def logaddexp2(x: Any, y: Any) -> Tensor:
    """Return log2(2 ** x + 2 ** y), without overflow.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logaddexp2(pb.tensor([3.0]), pb.tensor([3.0]))
    tensor([4.])
    """
    ln2 = math.log(2)
    x, y = (v * ln2 if isinstance(v, (int, float)) else multiply(v, ln2) for v in (x, y))
    return divide(logaddexp(x, y), ln2)


# -- signs and rounding ----------------------------------------------------------------------------
@wrapper_of(sign_p, methods="sign sgn")
def sign(x: Any, /) -> Tensor:
    """Return the sign of real numbers, x / abs(x) of complex ones; 0 where x is 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sign(pb.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    is_complex = x.dtype.is_complex if isinstance(x, Tensor) else "complex" in str(_dtype(x))
    return sgn_p.public(x) if is_complex else sign_p.public(x)


sgn = sign


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", "")


@wrapper_of(round_p, methods="round", numpy="rint")
def round(x: Any, /, *, decimals: int = 0, out: Any = None) -> Tensor:
    """Return x rounded to the nearest integer, halves to the even one; the derivative is 0.

    With `decimals` that many digits after the point stay, or before it as many become 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.round(pb.tensor([-1.5, 0.5, 2.5]))
    tensor([-2.,  0.,  2.])
    >>> pb.round(pb.tensor([1234.567]), decimals=-2)
    tensor([1200.])
    """
    if decimals == 0:
        return round_p.public(x) if out is None else round_p.public(x, out=out)
    there, back = multiply, divide
    if decimals < 0:
        there, back = back, there
    unit = 10.0 ** (decimals if decimals > 0 else -decimals)
    result: Tensor = back(round_p.public(there(x, unit)), unit)
    return result


@wrapper_of(nan_to_num_p, methods="nan_to_num")
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Return `x` with numbers in place of NaN and infinities, which get no gradient.

    Parameters
    ----------
    x : Tensor
    nan : float
        In place of NaN.
    posinf, neginf : float, optional
        In place of inf and -inf; the largest and the smallest number of the dtype by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nan_to_num(pb.tensor([1.0, pb.nan, pb.inf]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    return nan_to_num_p.public(x, nan=nan, posinf=posinf, neginf=neginf)


# -- activations -----------------------------------------------------------------------------------
@composition(
    sample((3, 4), lambd=0.7),
    sample(()),
    domain=real(-2, 2, -0.5, 0.5, -0.7, 0.7),
    reference=(lambda np, x, lambd=0.5: x * (np.abs(x) > lambd)),
    methods="hardshrink",
)
def hardshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """Return x where abs(x) > lambd, else 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hardshrink(pb.tensor([-1.0, 0.3]))
    tensor([-1.,  0.])
    """
    x = tensor_of("hardshrink", x)
    return where(less_equal(absolute(x.detach()), lambd), 0, x)  # NaN stays


@composition(
    sample((2, 3, 2), (3,)),
    sample((2, 3), (1,)),
    sample((), ()),
    domain={"x": real(-2, 2, 0), "weight": real(-2, 2)},
    methods="prelu",
)
def prelu(x: Any, weight: Any) -> Tensor:
    """Return x where it is positive, else weight * x.

    Parameters
    ----------
    x : Tensor
    weight : Tensor
        One number, or one for each channel: each place along axis 1.

    Raises
    ------
    ShapeError
        If there are not as many.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prelu(pb.tensor([-1.0, 2.0]), pb.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    x, weight = tensor_of("prelu", x), tensor_of("prelu", weight, "weight")
    count = weight.numel()
    if count == 1:
        slope = reshape(weight, ())
    elif len(weight.shape) != 1 or x.shape[1:2] != (count,):
        required = "one weight or one a channel required"
        came = f"shape {weight.shape}"
        raise ShapeError(compose("prelu", required, came, ("x", x), ("weight", weight)))
    else:
        slope = reshape(weight, (count, *(1,) * (len(x.shape) - 2)))
    return where(greater(x, 0), x, multiply(x, slope))


# -- methods as functions --------------------------------------------------------------------------
@wrapper_of(masked_fill_p, methods="masked_fill")
def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """Return x with value where mask holds.

    Raises
    ------
    DTypeError
        If the mask is not of bools.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, -2.0])
    >>> pb.masked_fill(x, x < 0, 0.0)
    tensor([1., 0.])
    """
    needs_mask("masked_fill", "mask", mask)
    return masked_fill_p.public(x, mask, value)
