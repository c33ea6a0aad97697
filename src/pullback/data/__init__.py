"""Batches of data, in an order that can be gone on with."""

from typing import Never as _Never

from pullback.data.batches import Batches as Batches, batches as batches
from pullback.hints import absent as _absent
from pullback.public_names import listed as _listed

__all__ = ["Batches", "batches"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
