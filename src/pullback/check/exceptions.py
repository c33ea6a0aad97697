"""How a check is interrupted; none of these exceptions leaves it."""

from __future__ import annotations


class ForwardError(Exception):
    """The function does not take these inputs; the cause is its own exception."""


class BackwardError(Exception):
    """Backward raised; the cause is its own exception."""


class InapplicableError(Exception):
    """A part of the check makes no sense for this function; the text says why."""


def first_line(error: BaseException) -> str:
    """Return an exception's message without its hints."""
    return str(error).split("\n")[0]
