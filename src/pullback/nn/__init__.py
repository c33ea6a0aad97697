"""Neural networks: functions, so far; see `pullback.nn.functional`."""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.nn import functional

__all__ = ["functional"]


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
