"""Names that Tensor does not have, though PyTorch's or NumPy's arrays do: errors say what to use.

Each is a descriptor: a ``__getattr__`` of Tensor would slow down every other attribute.
"""

from __future__ import annotations

from typing import Any, Never

from pullback.core.tensor.tensor import Tensor
from pullback.hints import absent

__all__ = ["ABSENT"]

_NAMES = """
    apply_ argpartition as_strided astype at bfloat16 block_until_ready choose compress
    conjugate copy data_ptr devices dump dumps fill flags flat indices is_sparse layout lstsq lu
    lu_solve map2_ map_ new partition pin_memory record_stream resize_ searchsorted set_
    share_memory_ solve storage storage_offset stride strides to_dense to_sparse tobytes tofile
    untyped_storage values
"""
ABSENT = _NAMES.split()


class Absent:
    """A name that is not there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tensor: Any, cls: Any) -> Never:
        raise absent("Tensor", self._name)


for _name in ABSENT:
    setattr(Tensor, _name, Absent(_name))


def _names(self: Tensor) -> list[str]:
    """Return the names that a tensor has, for completion; a subclass may have more of them."""
    return [n for n in object.__dir__(self) if n not in ABSENT or hasattr(type(self), n)]


Tensor.__dir__ = _names  # type: ignore[assignment]
