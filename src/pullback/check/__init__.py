"""The gradient checker: is backward right, and if not, why."""

from pullback.check.api import PARTS, gradcheck
from pullback.check.report import Cause, Failure, PartResult, Report

__all__ = ["PARTS", "Cause", "Failure", "PartResult", "Report", "gradcheck"]
