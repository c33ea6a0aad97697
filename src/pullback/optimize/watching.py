"""What happens after each iteration: the user's callback, and the bar that shows progress."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pullback.errors import ArgumentTypeError, compose
from pullback.extras import optional
from pullback.optimize.functions import Objective
from pullback.optimize.vector import Vector

__all__ = ["Bar", "watching"]

# Methods that know no callback by the name of its argument.
_BY_POSITION = ("tnc", "cobyla")


class Bar:
    """A bar of progress, drawn with tqdm.

    Parameters
    ----------
    api : str
    total : int or None
        The number of iterations, where it is limited.
    objective : Objective
        The bar shows its lowest value.
    """

    def __init__(self, api: str, total: int | None, objective: Objective) -> None:
        module = optional(api, "tqdm", "tqdm", "progress")
        self._bar = module.tqdm(total=total, desc=api)
        self._objective = objective

    def advance(self) -> None:
        """Count an iteration."""
        self._bar.set_postfix(fun=f"{self._objective.lowest:.6g}", refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


def watching(
    callback: Any, method: str, vector: Vector, objective: Objective, bar: Bar | None, scipy: Any
) -> Callable[..., Any] | None:
    """Return SciPy's callback for that of the user, which gets containers.

    As with SciPy, a callback whose only parameter is `intermediate_result` gets a result, any other
    gets x, and with trust-constr a result beside it.
    """
    if callback is not None and not callable(callback):
        required = "a function required as callback"
        raise ArgumentTypeError(compose(objective.api, required, type(callback).__name__))
    if callback is None and bar is None:
        return None
    call: Callable[..., Any] = callback or (lambda *_: None)

    def advanced() -> None:
        if bar is not None:
            bar.advance()

    def with_result(intermediate_result: Any) -> Any:
        advanced()
        return call(intermediate_result=vector.result(intermediate_result))

    def with_value(x: Any) -> Any:
        return with_result(scipy.OptimizeResult(x=x, fun=objective.value(x)))

    def with_x(x: Any, *state: Any) -> Any:
        advanced()
        return call(vector.as_given(x), *map(vector.result, state))

    if callback is None or not _takes_a_result(callback):
        return with_x
    return with_value if method in _BY_POSITION else with_result


def _takes_a_result(callback: Callable[..., Any]) -> bool:
    try:
        return set(inspect.signature(callback).parameters) == {"intermediate_result"}
    except (TypeError, ValueError):  # some functions written in C have no signature
        return False
