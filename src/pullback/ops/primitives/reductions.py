"""Reductions: sums, products, extremes, and what holds of any or all elements.

Edge values: elements that tie for a maximum or minimum share its gradient evenly; prod is right
with any number of zeros; an empty sum is 0 and an empty prod 1.

A norm that is 0 has the derivative 0; elements that tie for the largest or smallest size share the
gradient evenly.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import NUMPY, add_up, library_of
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, compose
from pullback.ops.arguments import all_values
from pullback.ops.axes import (
    broadcast_back,
    keep_axes,
    normalize_axes,
    normalize_axis,
    reduced_shape,
    reduced_size,
)
from pullback.ops.declare import Primitive, needs_order, op_for, operation
from pullback.ops.matrices import is_complex
from pullback.ops.primitives.cones import toward_p
from pullback.ops.samples import AXES, EMPTY, NO_AXIS, both, grid, real, sample

_INF = math.inf
# The default library's own reductions, which do all that the forwards do for floats.
_of_numpy = NUMPY.xp


# -- sums and means --------------------------------------------------------------------------------
def _axes_of(x: Any, op: str, axis: Any) -> Any:
    return None if axis is None else normalize_axes(op, axis, len(x.shape))


def _sum(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return xp.sum(x, axis=_axes_of(x, "sum", axis), keepdims=keepdims)


sum_p = operation(
    "sum",
    _sum,
    numpy_kernel=add_up,
    rules={
        "x": lambda g, x_shape, axis, keepdims, xp: broadcast_back(g, x_shape, axis, keepdims, xp),
    },
    samples=(*AXES, *EMPTY, *NO_AXIS),
    doc="Return the sum over axes.",
    batch="reduction",
)


def _mean(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    if not library_of(x).dtype(x).is_inexact:
        raise DTypeError(
            f"mean: needs a floating point or complex dtype, got {x.dtype}.\n"
            "hint: convert it first, for instance with .float()."
        )
    return xp.mean(x, axis=_axes_of(x, "mean", axis), keepdims=keepdims)


mean_p = operation(
    "mean",
    _mean,
    numpy_kernel="mean",
    rules={
        "x": lambda g, x_shape, axis, keepdims, xp: broadcast_back(
            g / reduced_size(x_shape, axis), x_shape, axis, keepdims, xp
        ),
    },
    samples=(*AXES, *NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
    methods="mean",
    doc="""Return the mean over `axis`, all axes by default.

    Raises
    ------
    DTypeError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mean(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([2., 3.])
    """,
    batch="reduction",
)
mean = mean_p.public


# -- spread ----------------------------------------------------------------------------------------
def _var(
    xp: Any, x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Any:
    axes = _axes_of(x, "var", axis)
    deviation = x - _mean(xp, x, axis=axes, keepdims=True)
    if "complex" in str(x.dtype):
        squares = xp.real(deviation * xp.conj(deviation))
    else:
        squares = deviation * deviation
    n = reduced_size(x.shape, axis) - correction
    return xp.sum(squares, axis=axes, keepdims=keepdims) / (n if n > 0 else math.nan)


def _var_numpy(x: Any, *, axis: Any, correction: float, keepdims: bool) -> Any:
    if not x.size:
        raise TypeError
    center = add_up(x, axis, True)
    n = x.size // center.size
    center /= n
    squares = x - center
    squares *= squares
    total = add_up(squares, axis, keepdims)
    n -= correction
    total /= n if n > 0 else math.nan
    return total


def _var_rule(g: Any, x: Any, axis: Any, correction: float, keepdims: bool, xp: Any) -> Any:
    """Return g times twice the deviations over their count, less the correction."""
    n = reduced_size(x.shape, axis) - correction
    g = keep_axes(g, x.shape, axis, keepdims, xp) * (2 / n if n > 0 else math.nan)
    axes = axis if axis.__class__ is int and x.shape else _axes_of(x, "var", axis)
    return g * (x - xp.mean(x, axis=axes, keepdims=True))


def _measure(name: str, forward: Any, numpy_kernel: Any, rule: Any, summary: str) -> Primitive:
    """Declare a measure of how far elements are from their mean."""
    return operation(
        name,
        forward,
        numpy_kernel=numpy_kernel,
        rules={"x": rule},
        holomorphic=False,
        samples=(*AXES, sample((4, 3), axis=0, correction=1.0)),
        reference=lambda np, x, axis=None, correction=0, keepdims=False: getattr(np, name)(
            x, axis=axis, ddof=correction, keepdims=keepdims
        ),
        result_dtype="real",
        batch="reduction",
        doc=f"""{summary}

    Raises
    ------
    DTypeError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """,
    )


var_p = _measure(
    "var",
    _var,
    _var_numpy,
    _var_rule,
    "Return the variance over `axis`: squared deviations over (count - correction).",
)
var = var_p.public


def _std_rule(
    g: Any, x: Any, out: Any, axis: Any, correction: float, keepdims: bool, xp: Any
) -> Any:
    g, out = (keep_axes(v, x.shape, axis, keepdims, xp) for v in (g, out))
    n = reduced_size(x.shape, axis) - correction
    if n + correction == 1:  # of one number it is 0, whatever the number
        return g * (0.0 if n > 0 else math.nan) * xp.ones_like(x)
    deviation = x - xp.mean(x, axis=_axes_of(x, "std", axis), keepdims=True)
    return op_for(xp, toward_p)(g * (1 / n if n > 0 else math.nan), deviation, out)


def _std(
    xp: Any, x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Any:
    root = xp.sqrt(_var(xp, x, axis=axis, correction=correction, keepdims=keepdims))
    n = reduced_size(x.shape, axis) - correction
    if n <= 0 or not _is_out_of_range(root, 2):
        return root
    deviation = x - _mean(xp, x, axis=_axes_of(x, "std", axis), keepdims=True)
    return _vector_norm(xp, deviation, axis=axis, keepdims=keepdims) / math.sqrt(n)


def _std_numpy(x: Any, **settings: Any) -> Any:
    root = _of_numpy.sqrt(_var_numpy(x, **settings))
    if _is_out_of_range(root, 2):
        raise TypeError
    return root


std_p = _measure(
    "std",
    _std,
    _std_numpy,
    _std_rule,
    "Return the standard deviation over `axis`, the root of `var`.",
)
std = std_p.public


# -- products --------------------------------------------------------------------------------------
def _prod(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normalize_axes("prod", axis, len(x.shape))
    if not axes:  # only the dtype of small integers changes
        return xp.prod(x, axis=()) if x.shape else xp.prod(x)
    for a in axes:  # some libraries' prod takes one axis at a time
        x = xp.prod(x, axis=a, keepdims=True)
    return x if keepdims else xp.reshape(x, reduced_shape(x.shape, axis))


def _prod_rule(g: Any, x: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
    """Return g times the product of the other elements: right with any number of zeros.

    The reduced axes become one; the products before and after each element are cumulative
    products, so nothing is divided by.
    """
    shape = x.shape
    axes = normalize_axes("prod", axis, len(shape))
    if not axes:
        return g
    if 0 in shape:
        return xp.zeros_like(x)
    others = [i for i in range(len(shape)) if i not in axes]
    order = (*others, *axes)
    rows = tuple(shape[i] for i in others)
    flat = xp.reshape(xp.permute_dims(x, order), (*rows, reduced_size(shape, axis)))
    n = flat.shape[-1]
    one = xp.ones_like(flat[..., :1])
    before = xp.cumulative_prod(xp.concat([one, flat[..., : n - 1]], axis=-1), axis=-1)
    back = xp.flip(flat, axis=-1)
    after = xp.cumulative_prod(xp.concat([one, back[..., : n - 1]], axis=-1), axis=-1)
    after = xp.flip(after, axis=-1)
    product = xp.reshape(before * after, tuple(shape[i] for i in order))
    inverse = tuple(order.index(i) for i in range(len(shape)))
    return keep_axes(g, shape, axis, keepdims, xp) * xp.permute_dims(product, inverse)


prod_p = operation(
    "prod",
    _prod,
    numpy_kernel=_of_numpy.multiply.reduce,
    rules={"x": _prod_rule},
    samples=(*AXES, *EMPTY, *NO_AXIS),
    doc="Return the product over axes; its gradient is right with any number of zeros.",
    batch="reduction",
)


# -- extremes --------------------------------------------------------------------------------------
def _extreme_rule(g: Any, x: Any, out: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
    """Return g where x is the extreme, shared evenly by those that tie."""
    # A NaN is the result wherever there is one, and ties with the others.
    if axis is None and not keepdims:
        ties = (x == out) | (x != x)
        count = xp.count_nonzero(ties)  # NumPy's is one of Python's numbers
        return xp.where(
            ties, g / (count if count.__class__ is int else xp.astype(count, g.dtype)), 0
        )
    ties = (x == keep_axes(out, x.shape, axis, keepdims, xp)) | (x != x)
    count = xp.count_nonzero(ties, axis=_axes_of(x, "max", axis), keepdims=True)
    share = keep_axes(g, x.shape, axis, keepdims, xp) / xp.astype(count, g.dtype)
    return xp.where(ties, share, 0)


def _extreme(name: str) -> Primitive:
    kind, result = ("largest", "3") if name == "max" else ("smallest", "1")

    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if reduced_size(x.shape, _axes_of(x, name, axis)) == 0:
            required = "at least one element to compare required"
            raise ArgumentError(compose(name, required, "none", ("x", x)))
        needs_order(name, x)
        return getattr(xp, name)(x, axis=_axes_of(x, name, axis), keepdims=keepdims)

    return operation(
        name,
        forward,
        rules={"x": _extreme_rule},
        numpy_kernel=getattr(_of_numpy, f"{name}imum").reduce,
        samples=(*AXES, *NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
        domain=real(-2, 2),
        distinct=True,
        methods=f"a{name}",
        batch="reduction",
        doc=f"""Return the {kind} element over `axis`; elements that tie share the gradient evenly.

    Raises
    ------
    ArgumentError
        If there is no element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([1.0, 3.0, 2.0]))
    tensor({result}.)
    """,
    )


max_p, min_p = _extreme("max"), _extreme("min")
max = max_p.public
min = min_p.public


# -- any, all, where and how many ------------------------------------------------------------------
def _whole(name: str, doc: str) -> Primitive:
    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return getattr(xp, name)(x, axis=_axes_of(x, name, axis), keepdims=keepdims)

    return operation(
        name,
        forward,
        numpy_kernel=name,
        differentiable=False,
        samples=(*AXES, *EMPTY, *NO_AXIS),
        domain=grid(-1, 1),
        result_dtype="bool",
        methods=name,
        batch="reduction",
        doc=f"""{doc}

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([True, False]))
    tensor({name == "any"})
    """,
    )


any_p = _whole("any", "Return whether any element over `axis`, all axes by default, is true.")
any = any_p.public
all_p = _whole("all", "Return whether all elements over `axis`, all axes by default, are true.")
all = all_p.public


_ONE_AXIS = (
    sample((3, 4), axis=None, keepdims=False),
    sample((3, 4), axis=None, keepdims=True),
    sample((3, 4), axis=1, keepdims=True),
    sample((2, 3, 4), axis=-2, keepdims=False),
    sample((0, 3), axis=1, keepdims=False),
    sample((), axis=None, keepdims=False),
)


def _position(name: str) -> Primitive:
    def forward(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        axis = None if axis is None else normalize_axis(name, axis, len(x.shape))
        needs_order(name, x)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return operation(
        name,
        forward,
        numpy_kernel=name,
        differentiable=False,
        domain=grid(-2, 2),
        samples=_ONE_AXIS,
        result_dtype="int64",
        methods=name,
        numpy=f"{name}: a=x axis keepdims",
        batch="argmax",
        doc=f"""Return the index of the {name[3:]}imum along an axis, the first of several.

    Without an axis it is the index in `x` made flat.

    Raises
    ------
    ShapeError
        If there is no element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([2.0, 3.0, 1.0]))
    tensor({1 if name == "argmax" else 2})
    """,
    )


argmax_p, argmin_p = _position("argmax"), _position("argmin")
argmax = argmax_p.public
argmin = argmin_p.public


def _count_nonzero(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return xp.count_nonzero(x, axis=_axes_of(x, "count_nonzero", axis), keepdims=keepdims)


count_nonzero_p = operation(
    "count_nonzero",
    _count_nonzero,
    differentiable=False,
    samples=(*AXES[1:5], *EMPTY[:1], *NO_AXIS[:1]),
    domain=grid(-1, 1),
    result_dtype="int64",
    methods="count_nonzero",
    doc="""Return how many elements over `axis`, all axes by default, are not 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.count_nonzero(pb.tensor([0.0, 3.0, -1.0]))
    tensor(2)
    """,
    batch="reduction",
)
count_nonzero = count_nonzero_p.public


# -- norms -----------------------------------------------------------------------------------------


def _vector_norm(
    xp: Any,
    x: Any,
    *,
    axis: Any = None,
    keepdims: bool = False,
    ord: Any = 2,
    least: float = 0.0,
) -> Any:
    if least:
        norm = _vector_norm(xp, x, axis=axis, keepdims=keepdims, ord=ord)
        return xp.where(norm < least, least, norm)
    axes = normalize_axes("vector_norm", axis, len(x.shape))
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        came = type(ord).__name__
        raise ArgumentTypeError(compose("vector_norm", "a number as ord required", came))
    if not axes or not reduced_size(x.shape, axis):
        if ord < 0 and axes:
            required = f"elements to take the norm of order {ord} of required"
            raise ArgumentError(compose("vector_norm", required, "none", ("x", x)))
        sizes = xp.abs(x)  # of one number it is the size, or whether it is not 0
        sizes = xp.where(sizes == 0, sizes, xp.ones_like(sizes)) if ord == 0 else sizes
        return xp.sum(sizes, axis=axes, keepdims=keepdims) if axes else sizes
    norm = xp.linalg.vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
    if ord in (0, 1) or ord < 0 or ord == _INF or not _is_out_of_range(norm, ord):
        return norm
    top = xp.max(xp.abs(x), axis=axes, keepdims=True)
    top = xp.where((top > 0) & xp.isfinite(top), top, xp.ones_like(top))
    norm = xp.linalg.vector_norm(x / top, axis=axes, keepdims=True, ord=ord) * top
    return norm if keepdims else xp.reshape(norm, reduced_shape(norm.shape, axis))


class _Squares(dict[Any, float]):
    """By dtype: the least sum of squares of which underflow took nothing that counts."""

    def __missing__(self, dtype: Any) -> float:
        limits = _of_numpy.finfo(dtype)
        self[dtype] = least = float(limits.smallest_normal) / float(limits.eps)
        return least


_SQUARES = _Squares()


def _is_out_of_range(norm: Any, ord: float) -> bool:
    """Return whether the powers that a norm is the root of may have overflowed or underflowed."""
    values = all_values(norm)
    library = library_of(values)
    limits = library.xp.finfo(values.dtype)
    least = (float(limits.smallest_normal) / float(limits.eps)) ** (1 / ord)
    return not bool(library.xp.all((values >= least) & library.xp.isfinite(values)))


def _vector_norm_numpy(x: Any, *, axis: Any, keepdims: bool, ord: Any, least: float) -> Any:
    if not x.size or not x.shape or axis == () or ord.__class__ is bool:
        raise TypeError
    if axis is None:
        if ord != 2 or keepdims or least:
            raise TypeError
        square = _of_numpy.vdot(x, x).real
        if not _SQUARES[x.dtype] <= square < _INF:
            raise TypeError
        return _of_numpy.sqrt(square)
    # NumPy adds one by one here, whatever the axis.
    if ord == 2:
        norm = _of_numpy.sqrt(add_up(x * x, axis, keepdims))
        if _is_out_of_range(norm, 2):
            raise TypeError
        return _of_numpy.maximum(norm, least) if least else norm
    if ord == 1 and not least:
        return add_up(_of_numpy.abs(x), axis, keepdims)
    raise TypeError


def _vector_norm_rule(
    g: Any, x: Any, out: Any, axis: Any, keepdims: bool, ord: Any, least: float, xp: Any
) -> Any:
    """Return g sign(x) (|x| / norm)^(ord - 1), or what that tends to."""
    if ord == 0 or 0 in x.shape:
        return xp.zeros_like(x)
    g = keep_axes(g, x.shape, axis, keepdims, xp)
    norm = keep_axes(out, x.shape, axis, keepdims, xp)
    if least:
        g = xp.where(norm > least, g, 0)
    toward, single = op_for(xp, toward_p), reduced_size(x.shape, axis) == 1
    if ord == 2 and not single:
        return toward(g, x, norm)
    size = xp.abs(x)
    kinked = not is_complex(x) and (ord == 1 or math.isinf(ord) or single)
    if ord == 1 or single:
        return xp.sign(x) * g if kinked else toward(g, x, size)
    if math.isinf(ord):
        ties = (size == norm) | ((size != size) & (norm != norm))  # all NaN: every element ties
        ties = xp.where(ties, xp.ones_like(norm), xp.zeros_like(norm))
        axes = normalize_axes("vector_norm", axis, len(x.shape))
        g = ties * (g / xp.sum(ties, axis=axes, keepdims=True))
        return xp.sign(x) * g if kinked else toward(g, x, size)
    # Below 2 each element of 0 is a tip, or has an infinite slope; above, the whole vector of 0 is.
    zero, flat = x == 0, norm == 0
    weight = xp.where(zero, 1, size / xp.where(flat, 1, norm)) ** (ord - 2)
    if ord < 2:
        return toward(g * weight, x, xp.where(zero, 0, norm))
    return toward(g * xp.where(zero & ~flat, 0, weight), x, norm)


vector_norm_p = operation(
    "vector_norm",
    _vector_norm,
    numpy_kernel=_vector_norm_numpy,
    rules={"x": _vector_norm_rule},
    holomorphic=False,
    floating=True,
    domain=both(-2, 2, 0.0),
    samples=(
        sample((3, 2), axis=None, keepdims=False, ord=2),
        sample((3, 2), axis=-1, keepdims=True, ord=1),
        sample((2, 2, 2), axis=(0, 2), keepdims=False, ord=3),
        sample((2, 3), axis=1, keepdims=False, ord=_INF),
        sample((2, 3), axis=0, keepdims=True, ord=-_INF),
        sample((4,), axis=0, keepdims=False, ord=0.5),
        sample((2, 2), axis=None, keepdims=False, ord=0),
        sample((), axis=None, keepdims=False, ord=2),
        sample((2, 0), axis=1, keepdims=False, ord=_INF),
    ),
    reference=(
        lambda np, x, axis, keepdims, ord: np.linalg.vector_norm(
            x, axis=axis, keepdims=keepdims, ord=ord
        )
    ),
    result_dtype="real",
    doc="Return the norms of vectors.",
    batch="reduction",
)
