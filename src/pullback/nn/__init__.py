"""Neural networks: functions, so far; see `pullback.nn.functional`."""

from pullback.nn import functional

__all__ = ["functional"]
