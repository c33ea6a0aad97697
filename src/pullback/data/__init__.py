"""Batches of data, in an order that can be gone on with."""

from pullback.data.batches import Batches as Batches, batches as batches
