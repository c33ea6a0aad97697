"""Checks of derivatives against differences, along random directions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.compat.autograd.core import make_jvp, make_vjp, vspace
from pullback.compat.autograd.wrap_util import unary_to_nary

__all__ = [
    "check_equivalent",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "combo_check",
    "make_numerical_jvp",
    "scalar_close",
]

Function = Callable[..., Any]
TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Return whether two numbers are equal to six digits.

    Examples
    --------
    >>> scalar_close(1.0, 1.0 + 1e-9), scalar_close(1.0, 1.1)
    (True, False)
    """
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Function, x: Any) -> Function:
    """Return the function from tangents to differences of `f` along them.

    Examples
    --------
    >>> round(float(make_numerical_jvp(lambda x: x**2, 3.0)(1.0)), 4)
    6.0
    """
    space, out_space = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        above, below = (f(space.add(x, space.scalar_mul(v, d))) for d in (EPS / 2, -EPS / 2))
        difference = out_space.add(above, out_space.scalar_mul(below, -1.0))
        return out_space.scalar_mul(difference, 1 / EPS)

    return jvp


def check_vjp(f: Function, x: Any) -> None:
    """Check `make_vjp` of `f` at `x`.

    Examples
    --------
    >>> check_vjp(lambda x: x**2, 3.0)
    """
    vjp, y = make_vjp(f, x)
    space, out_space = vspace(x), vspace(y)
    tangent, cotangent = space.randn(), out_space.randn()
    gradient = space.covector(vjp(out_space.covector(cotangent)))
    assert vspace(gradient) == space, f"{vspace(gradient)} is not {space}"
    exact = space.inner_prod(tangent, gradient)
    numeric = out_space.inner_prod(cotangent, make_numerical_jvp(f, x)(tangent))
    message = f"Derivative (VJP) check of {_name(f)} failed with arg {x}:\n"
    message += f"analytic: {exact}\nnumeric:  {numeric}"
    assert scalar_close(numeric, exact), message


def check_jvp(f: Function, x: Any) -> None:
    """Check `make_jvp` of `f` at `x`.

    Examples
    --------
    >>> check_jvp(lambda x: x**2, 3.0)
    """
    tangent = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(tangent)[1], make_numerical_jvp(f, x)(tangent))


def check_equivalent(x: Any, y: Any) -> None:
    """Check that two values are equal, by their products with a random vector.

    Examples
    --------
    >>> check_equivalent([1.0, 2.0], [1.0, 2.0])
    """
    space = vspace(x)
    assert space == vspace(y), f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}"
    v = space.randn()
    close = scalar_close(space.inner_prod(x, v), space.inner_prod(y, v))
    assert close, f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f: Function, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Check the derivatives of `f` up to an order, in forward and reverse mode.

    Examples
    --------
    >>> import numpy as np
    >>> check_grads(np.sin)(1.0)
    """
    further = [(check_jvp, _jvp_of, x)] if "fwd" in modes else []
    further += [(check_vjp, _vjp_of, f(x))] if "rev" in modes else []
    for check, derivative, like in further:
        check(f, x)
        if order > 1:
            check_grads(derivative(f), (0, 1), modes, order=order - 1)(x, vspace(like).randn())


def _name(f: Function) -> str:
    return getattr(f, "__name__", repr(f))


def _jvp_of(f: Function) -> Function:
    def jvp(x: Any, v: Any) -> Any:
        return make_jvp(f, x)(v)[1]

    jvp.__name__ = f"jvp_{_name(f)}"
    return jvp


def _vjp_of(f: Function) -> Function:
    def vjp(x: Any, v: Any) -> Any:
        return make_vjp(f, x)[0](v)

    vjp.__name__ = f"vjp_{_name(f)}"
    return vjp


def combo_check(fun: Function, *args: Any, **kwargs: Any) -> Function:
    """Return `check_grads` for all combinations of values of the arguments and keywords.

    Examples
    --------
    >>> combo_check(pow, modes=["rev"], order=1)([2.0, 3.0], [2, 3])
    """

    def check(*values: Any, **settings: Any) -> None:
        keywords = [[(key, value) for value in found] for key, found in settings.items()]
        for chosen in itertools.product(*values):
            for options in itertools.product(*keywords):
                check_grads(fun, *args, **kwargs)(*chosen, **dict(options))

    return check
