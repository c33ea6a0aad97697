"""The gradient checker: is backward right, and if not, why.

A map, for a reader with an hour. A module imports from the groups above its own, and within a group
from those named before it.

What everything works on
    values (arrays on the host, and the library and device they came from), naming (what messages
    call things), exceptions (how a check is interrupted), deadline (when it has to end), ending
    (whether a call does), progress (how far it is).
Measurements and the report
    numerical (derivatives by differences), subject (the call, its values and gradients), plot (the
    picture of a report), report (causes, failures, notes), rounding (what is forward's own).
One check
    session (one check in progress: tolerances, random numbers, each thing measured once),
    comparison (two results, up to rounding), resizing (the same call at other sizes), nearby
    (gradients around a point without a derivative).
explain/
    Why a gradient is wrong: hypotheses about the numbers, the most specific first.
repair/
    A change of the source that makes a wrong gradient right: source (functions as syntax trees),
    sites (hooks at every expression), quoting, atoms (values at hand), regrouping, edits,
    combining, statements and terms (what may have been meant), trials (what a change has to do),
    needed (what value an expression would have to have), search; held (parts of forward through
    which a gradient is wrong), settling (whether what forward repeats has come to rest).
properties/
    The parts of the check: one table of properties in the order in which they run. variants (the
    engine: makes the variants of a call, compares, reports), first (derivatives against
    differences), calls, arguments, sizes, arrays (what varies). api runs them: `gradcheck`.
inputs/
    The arguments of a call: described in a text, drawn by strategies of Hypothesis, or guessed from
    the signature. first_look (whether a call is right to all appearance, at little cost); ops
    checks an operation with them: `check_op`.
Finding operations
    loading (importing what is to be checked), discovery (of a module, file or folder).

The public names are loaded when they are first used: a program that only computes gradients does
not wait for the checker.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.check.api import gradcheck
    from pullback.check.inputs.strategies import arguments, tensors
    from pullback.check.ops import check_op
    from pullback.check.properties import PARTS
    from pullback.check.report import Cause, Failure, PartResult, Report

__all__ = [
    "PARTS",
    "Cause",
    "Failure",
    "PartResult",
    "Report",
    "arguments",
    "check_op",
    "gradcheck",
    "tensors",
]

_HOMES = {
    "api": ("gradcheck",),
    "inputs.strategies": ("arguments", "tensors"),
    "ops": ("check_op",),
    "properties": ("PARTS",),
    "report": ("Cause", "Failure", "PartResult", "Report"),
}


def __getattr__(name: str) -> Any:
    """Load a public name."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
