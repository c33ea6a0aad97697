"""The names of ``pullback.cuda``."""

from typing import Never as _Never

from pullback.arrays import cuda_is_available as is_available
from pullback.hints import absent as _absent
from pullback.public_names import listed as _listed

__all__ = ["is_available"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
