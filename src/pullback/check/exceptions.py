"""The exceptions that interrupt a check; none of them reaches the caller."""

from __future__ import annotations


class ForwardError(Exception):
    """The function raised for these inputs; ``__cause__`` is its own exception."""


class BackwardError(Exception):
    """Backward raised; ``__cause__`` is its own exception."""


class InapplicableError(Exception):
    """A part of the check does not apply to this function; the message says why."""


class NotComparedError(InapplicableError):
    """A part ran without comparing gradients with differences; the message says why."""


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, without hints."""
    return str(error).split("\n")[0]
