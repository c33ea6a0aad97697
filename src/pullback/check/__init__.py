"""The gradient checker: is backward right, and if not, why."""

from pullback.check.api import PARTS, gradcheck
from pullback.check.ops import check_op
from pullback.check.report import Cause, Failure, PartResult, Report
from pullback.check.strategies import arguments, tensors

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
