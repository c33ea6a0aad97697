"""The methods that the Array API standard asks of a tensor beside operators."""

from __future__ import annotations

import sys
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops.functions.data_types import _VERSIONS, __array_api_version__, to


class NamespaceMethods:
    """What the standard asks of a tensor beside operators."""

    __slots__ = ()

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Return `pullback`, which has the functions of the Array API standard over tensors."""
        if api_version not in (None, *_VERSIONS):
            required = f"a version up to {__array_api_version__} required"
            raise ArgumentError(compose("__array_namespace__", required, repr(api_version)))
        return sys.modules["pullback"]  # which imports this module, and so cannot be imported here

    def to_device(self: Any, device: Any, /, stream: Any = None) -> Tensor:
        """Return this tensor on another device; itself where it is there already."""
        if stream is not None:
            required = "stream=None required, as copies run on the device's current stream"
            raise ArgumentError(compose("to_device", required, repr(stream)))
        return to(self, device=device)
