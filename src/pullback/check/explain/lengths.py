"""Gradients that are right at the call's own size and wrong at another."""

from __future__ import annotations

from pullback.check.explain import cause_of
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.relations import steady_ratio
from pullback.check.report import Cause
from pullback.check.resizing import Symbol, describe_axes, resized
from pullback.check.session import Session


def cause_of_size(session: Session, e: Evidence, symbol: Symbol, i: int, length: int) -> Cause:
    """Return why a gradient that is right in a session is wrong at another length.

    Parameters
    ----------
    session : Session
        That of the call.
    e : Evidence
        The evidence at the other length.
    symbol : Symbol
        The axes of that length.
    i : int
        The argument.
    length : int
    """
    batch = {axis for _, axis in symbol.axes} == {0}
    factor, name = steady_ratio(e, i), f"`{e.names[i]}`"
    text = (
        f"right for {describe_axes(session, symbol, bare=batch)} of length {symbol.length} but "
        f"wrong for length {length}"
    )
    hint = "take the size from the saved shape, and average only where forward does"
    if factor is not None:
        size = "the batch size" if batch else "that length"
        text += f": the gradient of {name} depends on {size}"
        return Cause("size", f"{text}; there it is off by the factor {factor:.3f} everywhere", hint)
    parity = _parity(session, e, symbol, i)
    if parity:
        text, hint = f"the gradient of {name} is {parity}", ""
    found = cause_of(e, i)
    return Cause("size", f"{text}: {found.text}", found.hint or hint)


def _parity(session: Session, e: Evidence, symbol: Symbol, i: int) -> str:
    """Return in words that a gradient is right for even lengths only, or for odd ones."""
    right: dict[int, set[bool]] = {0: set(), 1: set()}
    for length in range(max(2, symbol.length - 1), symbol.length + 5):
        other = session.subject.with_leaves(resized(session, symbol, length))
        right[length % 2].add(e.is_right(other, i))
    for rest, word, others in ((0, "even", "odd"), (1, "odd", "even")):
        if right[rest] == {True} and right[1 - rest] == {False}:
            return f"right for {word} lengths and wrong for {others} ones"
    return ""
