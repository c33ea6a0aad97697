"""The minimum of a scalar function of a container: SciPy's methods, with derivatives filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.errors import ArgumentTypeError, compose
from pullback.extras import optional
from pullback.optimize.bounds import bounds_of
from pullback.optimize.constraints import constraints_of
from pullback.optimize.functions import Objective
from pullback.optimize.settings import call_scipy, refuse_derivatives
from pullback.optimize.vector import Vector
from pullback.optimize.watching import Bar, watching

__all__ = ["minimize"]

_WITHOUT_DERIVATIVES = ("nelder-mead", "powell", "cobyla", "cobyqa")
_WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_WITH_HESSIAN = ("dogleg", "trust-exact")
_METHODS = (
    *("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "Nelder-Mead", "Powell"),
    *("COBYLA", "COBYQA", *_WITH_PRODUCTS[1:], *_WITH_HESSIAN),
)


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    *,
    jac: None = None,
    hess: None = None,
    hessp: None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    progress: bool = False,
) -> Any:
    """Minimise a scalar function with SciPy, which gets the derivatives that the method wants.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a real scalar Tensor; `x` has the form of `x0`, with tensors in
        place of arrays and numbers, as in `grad`. A method without derivatives takes a number as
        well. An infinite number says that x is outside of the domain.
    x0 : any
        Where to start: a Tensor, an array or a number of any shape, or a tuple, list, dict,
        NamedTuple or dataclass of those. Integers and None stay as they are.
    args : tuple, optional
        Further arguments of `fun`.
    method : str or callable, optional
        One of SciPy's: BFGS by default, L-BFGS-B with bounds, SLSQP with constraints. All but
        Nelder-Mead, Powell, COBYLA and COBYQA get the gradient; Newton-CG, trust-ncg, trust-krylov
        and trust-constr get products with the Hessian, dogleg and trust-exact the Hessian. A
        callable gets all of them, as SciPy's custom methods do.
    jac, hess, hessp : None
        SciPy's; they are filled in, and an error says so where one is given.
    bounds : optional
        SciPy's ``Bounds`` or a pair (low, high) for each number of x; or the container with a pair
        in each place. None is no bound, and a dict may leave items out.
    constraints : optional
        SciPy's, one or a list: dicts, ``NonlinearConstraint`` (their functions take the container,
        and their derivatives are filled in) and ``LinearConstraint``, whose matrix has a column
        for each number of x.
    tol : float, optional
        SciPy's tolerance.
    callback : callable, optional
        Called after each iteration with x in the form of `x0`, or as
        ``callback(intermediate_result)``; StopIteration ends the search, but not that of TNC.
    options : dict, optional
        SciPy's options of the method.
    progress : bool, default False
        Whether to show a bar of progress (tqdm, the extra `progress`).

    Returns
    -------
    scipy.optimize.OptimizeResult
        `x`, the gradient `jac`, and for trust-constr `grad` and `lagrangian_grad`, have the form
        and dtypes of `x0`. Matrices have a row and a column for each number of x, in order.

    Raises
    ------
    MissingExtraError
        Without SciPy, or with `progress` without tqdm.
    ArgumentTypeError, DTypeError, GraphError
        If `fun` returns nothing, a number that depends on no x, a complex number, or more than one.
    ArgumentError, ShapeError
        If bounds or constraints do not fit `x0`.

    Notes
    -----
    SciPy computes in float64, and so does `fun`, whatever the dtypes of `x0`. `fun` runs once for
    each point: its gradient, if it is asked for, is pulled through that call. The result carries no
    gradient to what `fun` closes over: `pullback.implicit.argmin` has a solution that does.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def cost(model):
    ...     return (model["w"] ** 2).sum() + (model["w"].sum() + model["b"] - 6.0) ** 2
    >>> found = pb.optimize.minimize(cost, {"w": np.zeros(2), "b": 1.0}, bounds={"b": (None, 2.0)})
    >>> found.success, found.x["w"].round(3), round(found.x["b"], 3)
    (True, array([1.333, 1.333]), 2.0)
    """
    api = "minimize"
    scipy = optional(api, "scipy.optimize", "SciPy", "scipy")
    refuse_derivatives(api, jac=jac, hess=hess, hessp=hessp)
    name = _name_of(api, method)
    vector = Vector(api, "x0", x0)
    order = _order(name, callable(method))
    args = args if isinstance(args, tuple) else (args,)
    objective = Objective(minimize, fun, args, vector, order > 0)
    objective.begin()
    settings = {"method": method, "tol": tol, "options": options}
    if bounds is not None:
        settings["bounds"] = bounds_of(api, bounds, vector, scipy)
    settings |= _derivatives(objective, name, order)
    settings["constraints"] = constraints_of(minimize, constraints, vector, scipy, order)
    bar = Bar(api, (options or {}).get("maxiter"), objective) if progress else None
    settings["callback"] = watching(callback, name, vector, objective, bar, scipy)
    try:
        call = scipy.minimize, _METHODS, objective.value, vector.start
        return vector.result(call_scipy(*call, **settings))
    finally:
        if bar is not None:
            bar.close()


def _name_of(api: str, method: Any) -> str:
    """Return the name of a method in small letters; "" for the default and for a function."""
    if isinstance(method, str) and method:
        return method.lower()
    if method is None or callable(method):
        return ""
    required = "the name of a method or a function required as method"
    raise ArgumentTypeError(compose(api, required, type(method).__name__))


def _order(method: str, own: bool) -> int:
    """Return the order of the highest derivatives that a method takes, a callable one all."""
    if own or method in (*_WITH_PRODUCTS, *_WITH_HESSIAN):
        return 2
    return 0 if method in _WITHOUT_DERIVATIVES else 1


def _derivatives(objective: Objective, method: str, order: int) -> dict[str, Any]:
    """Return the derivatives that a method takes."""
    result: dict[str, Any] = {"jac": objective.gradient} if order else {}
    if order == 2 and method not in _WITH_HESSIAN:
        result["hessp"] = objective.product
    if order == 2 and method not in _WITH_PRODUCTS:
        result["hess"] = objective.hessian
    return result
