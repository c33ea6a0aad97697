"""Where the tests of an operation draw its inputs, and the calls they make."""

from __future__ import annotations

from typing import Any

from pullback.ops.declare import Domain, Sample


def real(low: float, high: float, *away: float) -> Domain:
    """Return a domain of real samples."""
    return Domain(low, high, away)


def both(low: float, high: float, *away: float) -> Domain:
    """Return a domain of real and complex samples."""
    return Domain(low, high, away, complex=True)


def only_complex(low: float, high: float) -> Domain:
    """Return a domain of complex samples."""
    return Domain(low, high, complex=True, kind="c")


def grid(low: float, high: float) -> Domain:
    """Return a domain of real samples that are whole numbers, some of them equal."""
    return Domain(low, high, step=1.0)


def integers(low: int, high: int) -> Domain:
    """Return a domain of integer samples."""
    return Domain(low, high, kind="i")


def mask() -> Domain:
    """Return the domain of bool samples."""
    return Domain(0, 1, kind="b")


def sample(*shapes: tuple[int, ...], **settings: Any) -> Sample:
    """Return a sample of these shapes and settings."""
    return Sample(shapes, settings)


# Samples of reductions: usual axes, empty tensors, no axes at all.
AXES = (
    sample((3, 4), axis=None, keepdims=False),
    sample((3, 4), axis=1, keepdims=False),
    sample((3, 4), axis=-2, keepdims=True),
    sample((2, 3, 4), axis=(0, 2), keepdims=False),
    sample((), axis=None, keepdims=False),
    sample((1,), axis=0, keepdims=True),
)


EMPTY = (
    sample((0, 3), axis=0, keepdims=False),
    sample((0, 3), axis=1, keepdims=False),
    sample((2, 0), axis=None, keepdims=False),
)


NO_AXIS = (sample((2, 3), axis=(), keepdims=False), sample((2, 3), axis=(), keepdims=True))
