"""Docstrings of declared operations: what they compute, and one example of it."""

from __future__ import annotations


def documented(summary: str, call: str, printed: str) -> str:
    """Return the docstring of an operation: a summary, and what one call of it prints.

    Examples
    --------
    >>> text = documented("Return x + 1.", "pb.tensor([1.0]) + 1", "tensor([2.])")
    >>> text.splitlines()[-1]
    'tensor([2.])'
    """
    head = f"{summary}\n\nExamples\n--------\n>>> import pullback as pb\n"
    return f"{head}>>> {call}\n{printed}\n"
