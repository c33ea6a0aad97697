"""Systems of equations and least squares: SciPy's methods, with Jacobians filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.errors import ShapeError, compose
from pullback.extras import optional
from pullback.optimize.bounds import bounds_of
from pullback.optimize.functions import Residual
from pullback.optimize.settings import call_scipy, refuse_derivatives
from pullback.optimize.vector import Vector
from pullback.transforms.api.arguments import name_of

__all__ = ["least_squares", "root"]

_WITH_JACOBIAN = ("hybr", "lm")
_METHODS = (
    *(*_WITH_JACOBIAN, "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden"),
    *("excitingmixing", "krylov", "df-sane"),
)


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    *,
    jac: None = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find x with ``fun(x, *args) = 0``, with SciPy, which gets the Jacobian.

    Parameters
    ----------
    fun : callable
        Returns as many real numbers as `x0` has, with lm or more: a Tensor, or a container of them.
    x0, args : any
        As in `minimize`.
    method : str
        One of SciPy's; hybr and lm get the Jacobian, the others need none.
    jac : None
        SciPy's; it is filled in, and an error says so where one is given.
    tol, options : optional
        SciPy's.
    callback : callable, optional
        Called after each iteration of a method other than hybr and lm with x and ``fun(x)``, both
        in their forms.

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x` has the form and dtypes of `x0`, `fun` the form of what `fun` returns.

    Raises
    ------
    MissingExtraError
        Without SciPy.
    ArgumentTypeError, DTypeError
        If `fun` returns nothing, what depends on no x, or complex numbers.
    ShapeError
        If `fun` returns another number of results than `x0` has.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def on_both_circles(p):
    ...     return {"first": p["x"] ** 2 + p["y"] ** 2 - 4, "second": p["x"] - p["y"]}
    >>> found = pb.optimize.root(on_both_circles, {"x": 1.0, "y": 0.5})
    >>> round(found.x["x"] ** 2, 6), round(found.x["y"] ** 2, 6)
    (2.0, 2.0)
    """
    scipy = optional("root", "scipy.optimize", "SciPy", "scipy")
    refuse_derivatives("root", jac=jac)
    function = _residual(root, fun, x0, args, str(method).lower() in _WITH_JACOBIAN)
    vector, form = function.vector, function.form
    if form is not None and form.size != vector.size and str(method).lower() != "lm":
        required = f"as many results of {name_of(fun)} as numbers in x0, {vector.size}, required"
        hint = "method='lm' or least_squares solves what has more equations"
        raise ShapeError(compose("root", required, str(form.size), ("x0", x0), hint=hint))
    settings: dict[str, Any] = {"method": method, "tol": tol, "options": options}
    if function.recorded:
        settings["jac"] = function.jacobian
    if callback is not None:
        settings["callback"] = lambda x, f: callback(vector.as_given(x), function.as_returned(f))
    solution = call_scipy(scipy.root, _METHODS, function.value, vector.start, **settings)
    return _finished(function, solution)


def least_squares(
    fun: Callable[..., Any], x0: Any, args: Any = (), *, bounds: Any = None, **settings: Any
) -> Any:
    """Minimise half the sum of squares of residuals with SciPy, which gets the Jacobian.

    Parameters
    ----------
    fun : callable
        Returns the residuals, real numbers: a Tensor of any shape, or a container of them.
    x0, args : any
        As in `minimize`.
    bounds : optional
        SciPy's ``Bounds`` or ``(low, high)``, each a number or one for each number of x; or the
        container with a pair in each place, as in `minimize`.
    **settings : any
        SciPy's others: `method`, `ftol`, `xtol`, `gtol`, `x_scale`, `loss`, `f_scale`,
        `max_nfev`, `verbose`, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x` and `grad` have the form and dtypes of `x0`, `fun` the form of what `fun` returns; `jac`
        is a matrix with a row for each residual and a column for each number of x, in order.

    Raises
    ------
    MissingExtraError
        Without SciPy.
    ArgumentTypeError, DTypeError
        If `fun` returns nothing, what depends on no x, or complex numbers.
    ArgumentError, ShapeError
        If bounds do not fit `x0`.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> t = np.array([0.0, 1.0, 2.0, 3.0])
    >>> y = 3.0 * np.exp(-0.5 * t)
    >>> def residuals(p):
    ...     return p["size"] * np.exp(-p["rate"] * t) - y
    >>> found = pb.optimize.least_squares(residuals, {"size": 1.0, "rate": 1.0})
    >>> round(found.x["size"], 6), round(found.x["rate"], 6)
    (3.0, 0.5)
    """
    api = "least_squares"
    scipy = optional(api, "scipy.optimize", "SciPy", "scipy")
    function = _residual(least_squares, fun, x0, args, recorded=True)
    vector = function.vector
    refuse_derivatives(api, jac=settings.get("jac"))
    if bounds is not None:
        settings["bounds"] = bounds_of(api, bounds, vector, scipy, low_and_high=True)
    settings["jac"] = function.jacobian
    result = call_scipy(scipy.least_squares, (), function.value, vector.start, **settings)
    return _finished(function, result)


def _residual(
    transform: Callable[..., Any], fun: Any, x0: Any, args: Any, recorded: bool
) -> Residual:
    vector = Vector(transform.__name__, "x0", x0)
    args = args if isinstance(args, tuple) else (args,)
    function = Residual(transform, fun, args, vector, recorded)
    function.begin()
    return function


def _finished(function: Residual, solution: Any) -> Any:
    """Return SciPy's result in the forms of x and of what the function returned."""
    solution.fun = function.as_returned(solution.fun)
    return function.vector.result(solution)
