"""Comparison functions: what is near, what is infinite."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_order
from pullback.ops.functions.pointwise import add, times
from pullback.ops.primitives.arithmetic import subtract
from pullback.ops.primitives.comparison import (
    equal,
    isfinite,
    isnan,
    less_equal,
    logical_and,
    logical_or,
)
from pullback.ops.primitives.rounding import absolute
from pullback.ops.samples import both, real, sample


# -- what is near ----------------------------------------------------------------------------------
@composition(
    sample((3, 4), (4,), rtol=0.5),
    sample((), (), equal_nan=True),
    domain=both(0.5, 2),
    differentiable=False,
    result_dtype="bool",
    methods="isclose",
)
def isclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether abs(input - other) <= atol + rtol * abs(other), element by element.

    Infinities are close to themselves alone, and NaN to NaN if `equal_nan`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isclose(pb.tensor([1.0, 2.0]), pb.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    input = tensor_of("isclose", input, "input").detach()
    other = tensor_of("isclose", other, "other").detach()
    limit = add(times(absolute(other), rtol), atol)
    near = less_equal(absolute(subtract(input, other)), limit)
    near = logical_or(equal(input, other), logical_and(near, isfinite(other)))
    if equal_nan:
        near = logical_or(near, logical_and(isnan(input), isnan(other)))
    return near


def allclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close; the arguments are those of `isclose`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.allclose(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 2.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@composition(
    sample((3,)),
    sample(()),
    domain=real(-2, 2),
    differentiable=False,
    result_dtype="bool",
    methods="isposinf",
)
def isposinf(x: Any) -> Tensor:
    """Return whether each element is inf.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isposinf(pb.tensor([1.0, pb.inf, -pb.inf]))
    tensor([False,  True, False])
    """
    x = tensor_of("isposinf", x)
    needs_order("isposinf", x.data_array())
    return equal(x, math.inf)


@composition(
    sample((3,)),
    sample(()),
    domain=real(-2, 2),
    differentiable=False,
    result_dtype="bool",
    methods="isneginf",
)
def isneginf(x: Any) -> Tensor:
    """Return whether each element is -inf.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isneginf(pb.tensor([1.0, pb.inf, -pb.inf]))
    tensor([False, False,  True])
    """
    x = tensor_of("isneginf", x)
    needs_order("isneginf", x.data_array())
    return equal(x, -math.inf)
