"""The names of ``pullback.cuda``."""

from typing import Never as _Never

from pullback.arrays import cuda_is_available as is_available
from pullback.hints import absent as _absent

__all__ = ["is_available"]


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
