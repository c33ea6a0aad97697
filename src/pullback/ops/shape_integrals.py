"""Derivatives of distribution functions by their shapes, which have no closed form.

The derivative of ``P(x) = integral of p from the lower end to x`` by a shape is the integral of
``p`` times the derivative of ``log p``, the score, over either side of x: the two are opposite.
The side is taken on which the score keeps its sign, so that nothing cancels. The variable is a
logarithm or a logit, in which p has one peak and falls exponentially: ``p = exp(-phi)`` with a
convex phi, which Newton's method follows to where p is negligible. The rule of Gauss and Legendre
is taken from x to there. Everything is a sum of elementary functions, and has derivatives itself.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from pullback.core.tensor.tensor import Tensor

__all__ = ["by_beta_shape", "by_gamma_shape", "by_student_shape", "student_series"]

_FALL = 38.0  # phi there, where exp(-phi) is below rounding
_NODES = 64
_STEPS = 16  # of Newton's method; from the right of a convex function it converges from there


@functools.cache
def _rule() -> list[tuple[float, float]]:
    """Return places in [0, 1], denser near 0, and weights."""
    result = []
    for i in range(_NODES):
        z = math.cos(math.pi * (i + 0.75) / (_NODES + 0.5))
        for _ in range(5):  # Newton's method on Legendre's polynomial
            below, value = 1.0, z
            for k in range(2, _NODES + 1):
                below, value = value, ((2 * k - 1) * z * value - (k - 1) * below) / k
            slope = _NODES * (z * value - below) / (z * z - 1)
            z -= value / slope
        share = (z + 1) / 2
        result.append((share * share, 2 * share / ((1 - z * z) * slope * slope)))
    return result


def _still(x: Any) -> Any:
    """Return a value without its history: an end beyond which nothing counts may be anywhere."""
    return x.detach() if isinstance(x, Tensor) else x


def _or_at_ends(value: Any, inside: Any, at_end: Any, xp: Any) -> Any:
    """Return a derivative inside of the domain, 0 at its ends and NaN outside."""
    zero = xp.zeros_like(value)
    return xp.where(inside, value, xp.where(at_end, zero, xp.full_like(value, float("nan"))))


def by_gamma_shape(a: Any, x: Any, xp: Any, digamma: Any, lgamma: Any) -> Any:
    """Return the derivative of gammainc(a, x) by a."""
    like = xp.zeros_like(a + x)
    a, x = a + like, x + like
    inside, at_end = (x > 0) & (x < float("inf")), (x == 0) | (x == float("inf"))
    x = xp.where(inside, x, xp.ones_like(x))
    log_x, psi = xp.log(x), digamma(a)
    is_left = log_x < psi
    way = xp.where(is_left, -xp.ones_like(log_x - psi), xp.ones_like(log_x - psi))
    end = _gamma_end(_still(a), _still(x), is_left, way, xp)
    total: Any = 0.0
    for share, weight in _rule():
        s = way * end * share
        phi = x * xp.expm1(s) - a * s
        total = total + xp.exp(-phi) * (log_x + s - psi) * weight
    result = -way * end * total * xp.exp(a * log_x - x - lgamma(a))
    return _or_at_ends(result, inside, at_end, xp)


def _gamma_end(a: Any, x: Any, is_left: Any, way: Any, xp: Any) -> Any:
    """Return how far it is to where the density is negligible."""
    right = xp.where(is_left, a, x)
    beyond = 2 * (_FALL + right - a + a * xp.log(2 * a / right))
    end = xp.where(is_left, (_FALL + x) / a, xp.log(beyond / right))
    for _ in range(_STEPS):
        rise = x * xp.expm1(way * end) - a * way * end - _FALL
        end = end - rise / (way * (x * xp.exp(way * end) - a))
    return end


def by_beta_shape(a: Any, b: Any, x: Any, which: str, xp: Any, digamma: Any, betaln: Any) -> Any:
    """Return the derivative of betainc(a, b, x) by its first or second shape."""
    like = xp.zeros_like(a + b + x)
    a, b, x = a + like, b + like, x + like
    mean = digamma(a if which == "a" else b) - digamma(a + b)
    inside, at_end = (x > 0) & (x < 1), (x == 0) | (x == 1)
    x = xp.where(inside, x, xp.full_like(x, 0.5))

    def score(log_x: Any, log_rest: Any) -> Any:
        return (log_x if which == "a" else log_rest) - mean

    falls = which == "b"
    result = _beta_integral(a, b, (x, xp.log(x)), (1 - x, xp.log1p(-x)), score, falls, xp, betaln)
    return _or_at_ends(result, inside, at_end, xp)


def student_series(share: Any) -> Any:
    """Return the logarithm of Student's density at 0 over the normal one, for 1 / df < 1 / 40.

    Stirling's series: differences of lgamma are lost in rounding where they are large.
    """
    square = share * share
    return (-1 / 4 + (1 / 24 + (-1 / 20 + square * (17 / 112)) * square) * square) * share


def by_student_shape(df: Any, t: Any, xp: Any, digamma: Any, betaln: Any) -> Any:
    """Return the derivative of stdtr(df, t) by df."""
    like = xp.zeros_like(df + t)
    df, t = df + like, t + like
    # Beyond 1e150, its fourth root for float32, the derivative is 0: it falls as 1 / df**2.
    is_normal = xp.sqrt(xp.sqrt(df)) > 3e37
    at_end = (t == 0) | (xp.abs(t) == float("inf")) | (is_normal & (t == t))
    inside = (t == t) & ~at_end
    t, df = (xp.where(inside, value, xp.ones_like(value)) for value in (t, df))
    a, half = df / 2, xp.full_like(df, 0.5)
    large = xp.where(df > 40, df, xp.full_like(df, 40.0))
    small = xp.where(df > 40, xp.ones_like(df), df)
    series = (0.5 + (-0.25 + (0.5 - 2.125 / large**2) / large**2) / large**2) / large**2
    closed = digamma((small + 1) / 2) - digamma(small / 2) - 1 / small
    mean = xp.where(df > 40, series, closed)

    def score(log_x: Any, log_rest: Any) -> Any:
        return (mean + log_x - (1 + 1 / df) * xp.expm1(log_x)) / 2

    root = xp.abs(t) / xp.sqrt(df)  # its square, which may overflow, is (1 - x) / x
    is_far = root > 1
    ratio = xp.where(is_far, 1 / root, root) ** 2
    none, one, log_ratio = xp.zeros_like(t), xp.ones_like(t), 2 * xp.log(root)
    x = xp.where(is_far, ratio, one) / (1 + ratio), xp.where(is_far, -log_ratio, none)
    rest = xp.where(is_far, one, ratio) / (1 + ratio), xp.where(is_far, none, log_ratio)
    x, rest = ((value, log - xp.log1p(ratio)) for value, log in (x, rest))
    # Both tails count: the score and the density are the same for -t.
    tails = _beta_integral(a, half, x, rest, score, False, xp, betaln)
    result = xp.where(t < 0, tails, -tails) / 2
    return _or_at_ends(result, inside, at_end, xp)


def _beta_integral(
    a: Any, b: Any, at: Any, beyond: Any, score: Any, falls: bool, xp: Any, betaln: Any
) -> Any:
    """Return the integral from 0 to x of the beta density times a score.

    The score is given the logarithms of the variable and of 1 less it. It has one root, and is
    negative below it, or above it where it `falls`. `at` is x and its logarithm, `beyond` are
    1 - x and its logarithm.
    """
    (x, log_x), (rest, log_rest) = at, beyond
    here = score(log_x, log_rest)
    is_left = here > 0 if falls else here < 0
    power = xp.where(is_left, a + 0 * here, b + 0 * here)
    near = xp.where(is_left, x, rest)
    log_far = xp.where(is_left, log_rest, log_x)
    end = _beta_end(_still(power), _still(a + b), _still(near), _still(log_far), xp)
    turn = _still(xp.where(is_left, log_x - log_rest, log_rest - log_x))
    turn = xp.where(turn > 0, turn, xp.zeros_like(turn))
    turn = xp.where(turn < end, turn, end)
    total: Any = 0.0
    for start, length in ((turn, -turn), (turn, end - turn)):  # to both sides of the bend of phi
        part: Any = 0.0
        for share, weight in _rule():
            s = start + length * share
            bend = xp.log1p(near * xp.expm1(-s))
            low = log_x - bend - xp.where(is_left, s, xp.zeros_like(s))
            high = log_rest - bend - xp.where(is_left, xp.zeros_like(s), s)
            part = part + xp.exp(-(power * s + (a + b) * bend)) * score(low, high) * weight
        total = total + xp.abs(length) * part
    result = total * xp.exp(a * log_x + b * log_rest - betaln(a, b))
    return xp.where(is_left, result, -result)


def _beta_end(power: Any, both: Any, near: Any, log_far: Any, xp: Any) -> Any:
    """Return how far it is to where the density is negligible."""
    end = (_FALL - both * log_far) / power
    for _ in range(_STEPS):
        rise = power * end + both * xp.log1p(near * xp.expm1(-end)) - _FALL
        slope = power - both * near * xp.exp(-end) / (1 + near * xp.expm1(-end))
        end = end - rise / slope
    return end
