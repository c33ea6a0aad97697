"""Backward raises: what the exception says of the cause."""

from __future__ import annotations

import re

from pullback.check.exceptions import BackwardError, ForwardError, first_line
from pullback.check.report import Cause


def cause_of_exception(error: BackwardError | ForwardError) -> Cause:
    """Return the cause of an exception in backward."""
    text = first_line(error)
    shape = re.search(r"the gradient of '(.+?)' has the wrong shape", str(error))
    axes = re.search(r"hint: (sum over (?:axis \d+|axes \([\d, ]+\)))", str(error))
    if shape and axes:
        return Cause(
            "missing-sum",
            f"`{shape[1]}`: {axes[1]} is missing ({text})",
            f"write pb.sum_to_size(grad, {shape[1]}.shape)",
        )
    return Cause("raised", f"backward raises: {text}")
