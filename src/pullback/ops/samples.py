"""Where the tests of an operation draw its inputs, and the calls they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Domain(NamedTuple):
    """Where samples of an input are drawn: uniformly from [low, high], less what is excluded.

    Attributes
    ----------
    low, high : float
        The interval.
    away : tuple of float
        Kinks and poles that samples keep a distance of 0.1 from.
    complex : bool
        Whether complex samples are meaningful too.
    kind : str
        ``"f"`` floating samples, ``"c"`` complex ones only, ``"i"`` integers, ``"b"`` bools.
    step : float
        If not 0, samples are multiples of it, so that equal ones occur.
    within : callable, optional
        ``within(x)`` of a tensor: brings any sample to where the operation is defined, for
        instance to a symmetric matrix; derivatives are taken through it.
    """

    low: float
    high: float
    away: tuple[float, ...] = ()
    complex: bool = False
    kind: str = "f"
    step: float = 0.0
    within: Callable[..., Any] | None = None


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


class Sample(NamedTuple):
    """One call to test: the shapes of the arrays, and the settings."""

    shapes: tuple[tuple[int, ...], ...]
    settings: dict[str, Any]


def sample(*shapes: tuple[int, ...], **settings: Any) -> Sample:
    """Return a sample of these shapes and settings."""
    return Sample(shapes, settings)


# Of an element-wise operation, by its number of inputs.
ELEMENTWISE = {
    1: (sample((3, 4)), sample(()), sample((0, 3)), sample((1,))),
    2: (
        sample((3, 4), (3, 4)),
        sample((3, 4), (4,)),
        sample((3, 1), (1, 4)),
        sample((), (2, 3)),
        sample((), ()),
        sample((0, 3), (1, 3)),
    ),
    3: (sample((3, 4), (3, 4), (3, 4)), sample((3, 1), (4,), ()), sample((), (), ())),
}


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
