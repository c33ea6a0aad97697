"""The error where one value, or one shape, is asked of a batch: every sample has its own."""

from __future__ import annotations

from typing import Any

from pullback.core.debug.anomaly import call_site
from pullback.errors import BatchedValueError, compose

__all__ = ["closed_over", "refused"]


def refused(library: Any, required: str, came: str, hint: str) -> BatchedValueError:
    """Return the error, which names the user's line and can call a function for each sample."""
    error = _at_call(required, came, hint)
    error.each = library.each
    return error


def closed_over() -> BatchedValueError:
    """Return the error of a function that is called for each sample and closes over a batch."""
    required = (
        "what differs between samples required among the arguments of what is called for each of "
        "them"
    )
    came = "a function that closes over it"
    return _at_call(required, came, "hand it over as an argument, as theta where there is that")


def _at_call(required: str, came: str, hint: str) -> BatchedValueError:
    """Return the error with the user's line below what is required."""
    first, _, rest = compose("vmap", required, came, hint=hint).partition("\n")
    return BatchedValueError(f"{first}\n{call_site()}\n{rest}")
