"""Dual numbers as an array library: values with tangents, for a dozen functions.

Nothing in `src` knows of it; a function of tensors that is run on duals gives its jvp.
"""

from types import SimpleNamespace

import numpy as np

import pullback as pb
from pullback.arrays import WrappingLibrary, dtype_of, is_array, register
from pullback.core.function.tensor_library import library_of_part, on_parts


class Dual:
    """An array and its tangent; both arrays, or both tensors."""

    __array_ufunc__ = None
    __slots__ = ("tangent", "value")
    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: dtype_of(self.value.dtype))
    device = property(lambda self: LIBRARY.device(self))

    def __init__(self, value, tangent):
        self.value, self.tangent = value, tangent


def derived(value, tangent):
    """Return a function of duals: its value, and its tangent by all values, then all tangents."""

    def call(*args, **kwargs):
        args = [np.asarray(a) if isinstance(a, np.generic) else a for a in args]
        duals = [LIBRARY.lift(a) if is_array(a) or isinstance(a, pb.Tensor) else a for a in args]
        values = [getattr(a, "value", a) for a in duals]
        tangents = [getattr(a, "tangent", 0.0) for a in duals]
        xp = library_of_part(next(a for a in duals if isinstance(a, Dual)).value).xp

        def both():
            out = value(xp, *values, **kwargs)
            return Dual(tidy(out), tidy(tangent(xp, out, *values, *tangents, **kwargs)))

        return on_parts(both)

    return call


def linear(function):
    def call(x, *settings, **more):
        def apply(xp, part):
            return function(xp, part, *settings, **more)

        return derived(apply, lambda xp, out, x, t: apply(xp, t))(x)

    return call


def tidy(value):
    return np.asarray(value) if isinstance(value, np.generic) else value  # of 0 dimensions


def named(name):
    return lambda xp, *args, **settings: getattr(xp, name)(*args, **settings)


XP = SimpleNamespace(
    add=derived(lambda xp, x, y: x + y, lambda xp, out, x, y, s, t: s + t),
    subtract=derived(lambda xp, x, y: x - y, lambda xp, out, x, y, s, t: s - t),
    multiply=derived(lambda xp, x, y: x * y, lambda xp, out, x, y, s, t: s * y + x * t),
    divide=derived(lambda xp, x, y: x / y, lambda xp, out, x, y, s, t: (s - out * t) / y),
    exp=derived(named("exp"), lambda xp, out, x, t: out * t),
    log=derived(named("log"), lambda xp, out, x, t: t / x),
    sin=derived(named("sin"), lambda xp, out, x, t: xp.cos(x) * t),
    cos=derived(named("cos"), lambda xp, out, x, t: -xp.sin(x) * t),
    tanh=derived(named("tanh"), lambda xp, out, x, t: (1 - out * out) * t),
    sqrt=derived(named("sqrt"), lambda xp, out, x, t: t / (2 * out)),
    negative=linear(named("negative")),
    sum=linear(named("sum")),
    reshape=linear(named("reshape")),
    broadcast_to=linear(named("broadcast_to")),
)
Dual.__add__, Dual.__radd__ = XP.add, lambda x, y: XP.add(y, x)
Dual.__sub__, Dual.__rsub__ = XP.subtract, lambda x, y: XP.subtract(y, x)
Dual.__mul__, Dual.__rmul__ = XP.multiply, lambda x, y: XP.multiply(y, x)
Dual.__truediv__, Dual.__rtruediv__ = XP.divide, lambda x, y: XP.divide(y, x)
Dual.__neg__ = XP.negative


class DualLibrary(WrappingLibrary):
    array_types = (Dual,)

    def part(self, a):
        return a.value

    def lift(self, a):
        return a if self.has(a) else Dual(a, library_of_part(a).xp.zeros_like(a))

    def copy(self, a):
        inner = library_of_part(a.value)
        return Dual(on_parts(inner.copy, a.value), on_parts(inner.copy, a.tangent))


LIBRARY = DualLibrary("dual", XP)
register(LIBRARY)


def jvp(function, x, v):
    """Return the value and the tangent of a function of one tensor: tensors, with their graph."""
    out = function(pb.asarray(Dual(x, v))).data_array()
    return pb.asarray(out.value), pb.asarray(out.tangent)
