"""`scipy.special`: the functions of `pullback.special`, and those that are no ufuncs."""

from __future__ import annotations

import functools
import math
from typing import Any

import scipy.special

from pullback import special
from pullback.core.custom.define import autograd_function
from pullback.core.tensor.tensor import Tensor
from pullback.interop.scipy.reading import are_scipys, as_given, floating, in_one_dtype, refuse
from pullback.ops.functions import reductions
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.pointwise import where
from pullback.ops.functions.special import mvlgamma
from pullback.ops.primitives.comparison import isfinite
from pullback.ops.primitives.complex_numbers import conj
from pullback.ops.primitives.exponential import exp, log
from pullback.ops.primitives.reductions import max as largest
from pullback.ops.primitives.rounding import absolute

_OWN = ("erf", "erfc", "log_softmax", "logsumexp", "multigammaln", "softmax")
__all__ = sorted({*_OWN, *special.__all__})


@as_given
def multigammaln(a: Any, d: int) -> Any:
    """Return the logarithm of the gamma function of `d` variables, as SciPy's.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.special.multigammaln(pb.tensor([3.0]), 2)
    tensor([1.5502])
    """
    return mvlgamma(floating(a), d)


@as_given
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """Return log(sum(b * exp(a))) without overflow, and its sign if `return_sign`, as SciPy's.

    It has derivatives in `a` and in the weights `b`. A negative sum gives NaN without its sign.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.tensor([0.0, 1.0])
    >>> pb.interop.scipy.special.logsumexp(a, b=pb.tensor([1.0, 2.0]))
    tensor(1.8620)
    """
    if b is None and not return_sign:
        return reductions.logsumexp(floating(a), axis=axis, keepdims=keepdims)
    a, b = in_one_dtype(a, 1.0 if b is None else b)
    # Where b is 0 the exponential may overflow, and counts for nothing.
    a = where(b == 0, float("-inf"), a)
    top = largest(a.detach(), axis=axis, keepdims=True)
    top = where(isfinite(top), top, 0.0)
    total = reductions.sum(b * exp(a - top), axis=axis, keepdims=keepdims)
    top = top if keepdims else reductions.sum(top, axis=axis)
    if not return_sign:
        return log(total) + top
    return log(absolute(total)) + top, total.detach().sign()


@as_given
def softmax(x: Any, axis: Any = None) -> Any:
    """Return exp(x) / sum(exp(x)), as SciPy's; over all elements without `axis`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.special.softmax(pb.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """
    return exp(log_softmax(floating(x), axis))


@as_given
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return the logarithm of `softmax`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.special.log_softmax(pb.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """
    x = floating(x)
    return x - reductions.logsumexp(x, axis=axis, keepdims=True)


def _of_complex_numbers(name: str, sign: int) -> Any:
    """Return an error function of complex numbers; of real ones it is pullback's."""
    of_reals, values = _either(name), getattr(scipy.special, name)

    @functools.partial(autograd_function, name=name)
    def of_complex(ctx: Any, z: Any) -> Any:
        ctx.save_for_backward(z=z)
        return asarray(values(z.numpy()))

    @of_complex.backward
    def _(ctx: Any, g: Any) -> Any:
        z = ctx.saved_variables.z
        return {"z": g * conj(exp(-(z * z)) * (sign * 2 / math.sqrt(math.pi)))}

    @functools.wraps(of_reals)
    def call(z: Any, /) -> Any:
        return of_complex(z) if isinstance(z, Tensor) and z.is_complex() else of_reals(z)

    return call


def _either(name: str) -> Any:
    """Return a function of `pullback.special`; where there is no tensor, SciPy's own is called."""
    ours, theirs = getattr(special, name), getattr(scipy.special, name)

    @functools.wraps(ours)
    def call(*args: Any, **settings: Any) -> Any:
        return (theirs if are_scipys([*args, settings]) else ours)(*args, **settings)

    return call


erf, erfc = _of_complex_numbers("erf", 1), _of_complex_numbers("erfc", -1)


def __getattr__(name: str) -> Any:
    """Return a function of `pullback.special`."""
    if name in special.__all__:
        return globals().setdefault(name, _either(name))
    return refuse(__name__, __all__, name)
