"""Backward raises: what the exception says of the cause."""

from __future__ import annotations

from pullback.check.exceptions import BackwardError, ForwardError, first_line
from pullback.check.report import Cause
from pullback.errors import GradientError


def cause_of_exception(error: BackwardError | ForwardError) -> Cause:
    """Return the cause of an exception in backward."""
    text, cause = first_line(error), error.__cause__
    if isinstance(cause, GradientError) and cause.unsummed:
        axes = cause.unsummed
        where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes}"
        return Cause(
            "missing-sum",
            f"`{cause.argument}`: sum over {where} is missing ({text})",
            f"write pb.sum_to_size(grad, {cause.argument}.shape)",
        )
    return Cause("raised", f"backward raises: {text}")
