"""Random tensors, drawn by the array library's own generator.

One default generator a device; `manual_seed` seeds them all, those not made yet too.
"""

from __future__ import annotations

import threading
from typing import Any

from pullback.arrays import RandomSource, as_dtype, get_default_dtype, library_for
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError
from pullback.ops.filled import shape_of

__all__ = [
    "Generator",
    "manual_seed",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
]

_lock = threading.Lock()
_defaults: dict[str, Generator] = {}
_seed: int | None = None


class Generator:
    """A source of random numbers on one device.

    Parameters
    ----------
    device : str
        ``"cpu"`` or ``"cuda"``.
    seed : int, optional
        The same seed gives the same numbers; by default from the operating system.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.rand(2, generator=pb.Generator(seed=1))
    >>> b = pb.rand(2, generator=pb.Generator(seed=1))
    >>> bool((a == b).all())
    True
    """

    def __init__(self, device: str = "cpu", seed: int | None = None) -> None:
        self.device = device
        self._source: RandomSource
        self.manual_seed(seed)

    def manual_seed(self, seed: int | None) -> Generator:
        """Start again from `seed` and return this generator."""
        if seed is not None and (not isinstance(seed, int) or seed < 0):
            raise ArgumentError(f"manual_seed: seed must be a non-negative integer, got {seed!r}")
        library, native = library_for(self.device)
        self._source = library.generator(seed, native)
        return self

    def get_state(self) -> Any:
        """Return the state, to be put back with `set_state`."""
        return self._source.get_state()

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` returned."""
        self._source.set_state(state)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator of every device and return the CPU's.

    Examples
    --------
    >>> import pullback as pb
    >>> _ = pb.manual_seed(0)
    >>> a = pb.randn(3)
    >>> _ = pb.manual_seed(0)
    >>> bool((pb.randn(3) == a).all())
    True
    """
    global _seed
    with _lock:
        for generator in _defaults.values():
            generator.manual_seed(seed)
        _seed = seed
    return _default("cpu")


def _default(device: str) -> Generator:
    with _lock:
        if device not in _defaults:
            _defaults[device] = Generator(device, _seed)
        return _defaults[device]


def _source(generator: Generator | None, device: Any) -> RandomSource:
    if generator is None:
        return _default("cpu" if device is None else str(device))._source
    if not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"generator must be a pullback.Generator, got {type(generator).__name__}"
        )
    return generator._source


def _finish(array: Any, requires_grad: bool) -> Tensor:
    result = box(array)
    return result.requires_grad_() if requires_grad else result


def randn(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return numbers from the standard normal distribution.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.randn(2, 3).shape
    (2, 3)
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    drawn = _source(generator, device).normal(shape_of("randn", shape), kind)
    return _finish(drawn, requires_grad)


def rand(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return numbers from the uniform distribution on [0, 1).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rand((2, 3)).shape
    (2, 3)
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    drawn = _source(generator, device).uniform(shape_of("rand", shape), kind)
    return _finish(drawn, requires_grad)


def randint(
    low: int,
    high: int | None = None,
    size: Any = (),
    *,
    dtype: Any = "int64",
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return integers from `low` (0 if only one is given) up to, not including, `high`.

    Examples
    --------
    >>> import pullback as pb
    >>> int(pb.randint(3, 4, (1,)))
    3
    """
    if isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    begin, end = (0, low) if high is None else (low, high)
    if begin >= end:
        raise ArgumentError(f"randint: low must be below high, got {begin} and {end}")
    source = _source(generator, device)
    return box(source.integers(begin, end, shape_of("randint", (tuple(size),)), as_dtype(dtype)))


def randperm(
    n: int, *, dtype: Any = "int64", device: Any = None, generator: Generator | None = None
) -> Tensor:
    """Return the integers below `n` in random order.

    Examples
    --------
    >>> import pullback as pb
    >>> sorted(pb.randperm(3).tolist())
    [0, 1, 2]
    """
    return box(_source(generator, device).permutation(n, as_dtype(dtype)))


def randn_like(x: Tensor, **options: Any) -> Tensor:
    """Return standard normal numbers in the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.randn_like(pb.zeros(2)).shape
    (2,)
    """
    return randn(x.shape, **{"dtype": x.dtype, "device": x.device, **options})


def rand_like(x: Tensor, **options: Any) -> Tensor:
    """Return uniform numbers in the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rand_like(pb.zeros(2)).shape
    (2,)
    """
    return rand(x.shape, **{"dtype": x.dtype, "device": x.device, **options})
