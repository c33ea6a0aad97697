"""Backward raises: the cause that the exception indicates."""

from __future__ import annotations

from pullback.check.exceptions import BackwardError, ForwardError, first_line
from pullback.check.naming import axes_text
from pullback.check.report import Cause
from pullback.errors import GradientError


def cause_of_exception(error: BackwardError | ForwardError) -> Cause:
    """Return the cause of an exception in backward."""
    text, cause = first_line(error), error.__cause__
    if isinstance(cause, GradientError) and cause.unsummed:
        return Cause(
            "missing-sum",
            f"`{cause.argument}`: sum over {axes_text(cause.unsummed)} is missing ({text})",
            f"write pb.sum_to_size(grad, {cause.argument}.shape)",
        )
    return Cause("raised", f"backward raises: {text}")
