"""Batches of data, in an order that can be gone on with."""

from pullback.data.batches import Batches as Batches, batches as batches
from pullback.public_names import listed as _listed

__all__ = ["Batches", "batches"]
__dir__ = _listed(__name__)
