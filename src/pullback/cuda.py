"""The names of ``pullback.cuda``."""

from pullback.arrays import cuda_is_available as is_available

__all__ = ["is_available"]
