"""The gradient checker: is backward right, and if not, why.

docs/checker-internals.md tells its principles, and how to add to it. A map; a module imports from
the groups above its own, and within a group from those named before it:

What everything works on
    values, naming (names, parameters and source of a function), deadline (when a check, and a call,
    has to end, and how far it is).
Measurements and the report
    numerical (derivatives by differences), subject (the call, its values and gradients), report
    (what is asked, and what is found: causes, failures, notes; in words and drawn).
One check
    session (the slopes of a call, each measured once, and its gradients beside them), comparison
    (whether results are equal, and gradients wrong at a call that nobody gave, as measurements
    tell), sizes (calls at other lengths).
explain/, repair/
    Why a gradient is wrong, and a change of the source that makes it right.
properties/
    The parts of the check: one table of properties in the order in which they run. variants (the
    engine: makes the variants of a call, compares, reports), first (derivatives against
    differences), calls, arguments, arrays (what varies).
inputs/
    The arguments of a call: described in a text, drawn by strategies of Hypothesis, or guessed from
    the signature; settings and vary draw others.
runner, api, discovery
    The check of an operation on one set of inputs or several; `check_op` and `gradcheck`; the
    operations of a module, file or folder.

The public names are loaded when they are first used: a program that only computes gradients does
not wait for the checker.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.check.api import check_op, gradcheck
    from pullback.check.inputs.strategies import arguments, tensors
    from pullback.check.properties import PARTS
    from pullback.check.report import Cause, Failure, PartResult, Report

__all__ = ["PARTS", "arguments", "check_op", "gradcheck", "tensors"]
__all__ += ["Cause", "Failure", "PartResult", "Report"]
_HOMES = {"PARTS": "properties", "arguments": "inputs.strategies", "tensors": "inputs.strategies"}
_HOMES |= {"check_op": "api", "gradcheck": "api"}


def __getattr__(name: str) -> Any:
    """Load a public name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'report')}")
    globals()[name] = value = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
