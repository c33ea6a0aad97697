"""Calls of SciPy, and settings that SciPy has and a call here has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.errors import ArgumentTypeError, at_user_line, compose, nearest

__all__ = ["call_scipy", "refuse_derivatives"]


def refuse_derivatives(api: str, **derivatives: Any) -> None:
    """Raise if a derivative is given, as SciPy's functions take it."""
    for name, value in derivatives.items():
        if value is not None:
            required = f"no {name} required, which is filled in"
            hint = "leave it out, and let fun return the value alone"
            raise ArgumentTypeError(compose(api, required, "one", hint=hint))


def call_scipy(
    solver: Callable[..., Any], methods: Sequence[str], *args: Any, **settings: Any
) -> Any:
    """Call a function of SciPy's; warnings show the user's line, errors the method."""
    try:
        return at_user_line(solver, *args, **settings)
    except ValueError as error:
        if str(error).startswith("Unknown solver"):
            plain = {name.lower().replace("-", ""): name for name in methods}
            near = nearest(str(settings["method"]).lower().replace("-", ""), plain)
            known = f"the methods are {', '.join(methods)}"
            error.add_note(f"hint: {f'did you mean {plain[near]!r}?' if near else known}")
        raise
