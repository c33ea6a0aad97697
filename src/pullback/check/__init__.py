"""The gradient checker: is backward right, and if not, why.

docs/checker-internals.md tells its principles, and how to add to it. A map; a module imports from
the groups above its own, and within a group from those named before it; each says what it owns:

    values, deadline                what everything works on
    numerical, subject, report      measurements of a call, and what is told in the end
    session, comparison, sizes      one check, and calls beside it
    explain/, repair/               why a gradient is wrong, and a change that makes it right
    properties/                     the parts of the check: one table; variants is its engine
    inputs/                         arguments: described, drawn, guessed, varied
    runner, api, discovery          an operation on one set of inputs or several; all of a module

The public names are loaded when they are first used: a program that only computes gradients does
not wait for the checker.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pullback.public_names import listed as _listed

if TYPE_CHECKING:
    from pullback.check.api import check_op, gradcheck
    from pullback.check.inputs.strategies import arguments, tensors
    from pullback.check.properties import PARTS
    from pullback.check.report import Cause, Failure, PartResult, Report

__all__ = ["PARTS", "arguments", "check_op", "gradcheck", "tensors"]
__all__ += ["Cause", "Failure", "PartResult", "Report"]
__dir__ = _listed(__name__)
_HOMES = {"PARTS": "properties", "arguments": "inputs.strategies", "tensors": "inputs.strategies"}
_HOMES |= {"check_op": "api", "gradcheck": "api"}


def __getattr__(name: str) -> Any:
    """Load a public name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'report')}")
    globals()[name] = value = getattr(home, name)
    return value
