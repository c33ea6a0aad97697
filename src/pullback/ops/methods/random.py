"""The methods of Tensor that fill it with random numbers; what was there gets no gradient."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops.functions import random
from pullback.ops.methods.inplace import written


def _needs(op: str, holds: bool, required: str, came: Any) -> None:
    if not holds:
        raise ArgumentError(compose(op, f"{required} required", repr(came)))


class RandomMethods:
    """The draws among `TensorMethods`; each takes a `generator`."""

    __slots__ = ()

    bernoulli, multinomial = random.bernoulli, random.multinomial

    def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Write 1 with probability `p`, a number or a tensor, and else 0; return this tensor."""
        chances = p.expand(self.shape) if isinstance(p, Tensor) else self
        drawn = random.bernoulli(chances, None if isinstance(p, Tensor) else p, generator=generator)
        return written("bernoulli_", self, drawn.to(self.dtype))

    def uniform_(self: Any, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
        """Write numbers from the uniform distribution on ``[from_, to)`` and return this tensor."""
        _needs("uniform_", from_ <= to, "from_ up to to", (from_, to))
        drawn = random.rand(self.shape, dtype=self.dtype, device=self.device, generator=generator)
        return written("uniform_", self, drawn * (to - from_) + from_)

    def normal_(self: Any, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
        """Write numbers from the normal distribution and return this tensor."""
        _needs("normal_", std >= 0, "a std of at least 0", std)
        drawn = random.randn(self.shape, dtype=self.dtype, device=self.device, generator=generator)
        return written("normal_", self, drawn * std + mean)

    def log_normal_(self: Any, mean: float = 1, std: float = 2, *, generator: Any = None) -> Tensor:
        """Write numbers whose logarithms are of a normal distribution; return this tensor."""
        _needs("log_normal_", std > 0, "a positive std", std)
        drawn = random.randn(self.shape, dtype=self.dtype, device=self.device, generator=generator)
        return written("log_normal_", self, (drawn * std + mean).exp())

    def exponential_(self: Any, lambd: float = 1, *, generator: Any = None) -> Tensor:
        """Write numbers from the exponential distribution of a rate; return this tensor."""
        _needs("exponential_", lambd > 0, "a positive rate", lambd)
        return written("exponential_", self, random.uniform_like(self, generator).log() / -lambd)

    def geometric_(self: Any, p: float, *, generator: Any = None) -> Tensor:
        """Write the number of the first success of probability `p`; return this tensor."""
        _needs("geometric_", 0 < p < 1, "a probability p between 0 and 1", p)
        tries = (random.uniform_like(self, generator).log() / math.log1p(-p)).floor() + 1
        return written("geometric_", self, tries.to(self.dtype))

    def cauchy_(self: Any, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Tensor:
        """Write numbers from the Cauchy distribution and return this tensor."""
        _needs("cauchy_", sigma > 0, "a positive sigma", sigma)
        angle = (random.uniform_like(self, generator) - 0.5) * math.pi
        return written("cauchy_", self, angle.tan() * sigma + median)

    def random_(
        self: Any, from_: int = 0, to: int | None = None, *, generator: Any = None
    ) -> Tensor:
        """Write integers from `from_` up to, not including, `to`; return this tensor.

        Of one number, it is `to`; of none, the integers are below 2 ** 31, or what fits.
        """
        begin, end = (0, from_) if to is None else (from_, to)
        if to is None and from_ == 0:
            bits = {"int8": 7, "uint8": 8, "int16": 15, "float16": 11, "float32": 24, "bool": 1}
            end = 2 ** bits.get(self.dtype.name, 31)
        drawn = random.randint(begin, end, self.shape, device=self.device, generator=generator)
        return written("random_", self, drawn.to(self.dtype))
