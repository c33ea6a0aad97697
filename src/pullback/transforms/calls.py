"""A call of an operation on a batch, as its batching rule sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.function.primitive import Primitive
from pullback.core.tensor.tensor import Tensor
from pullback.transforms.wrapped import results_of

__all__ = ["Call"]


class Call:
    """One call of an operation on what batches hold.

    Parameters
    ----------
    op : Primitive
    tensors : sequence
        Its inputs: tensors, and Python's numbers.
    batched : sequence of bool
        Whether the first axis of each is that of the samples.
    settings : dict
    size : int
        The number of samples.
    """

    __slots__ = ("batched", "op", "settings", "size", "tensors")

    def __init__(
        self,
        op: Primitive,
        tensors: Sequence[Any],
        batched: Sequence[bool],
        settings: dict[str, Any],
        size: int,
    ) -> None:
        self.op, self.tensors, self.batched = op, tensors, batched
        self.settings = (
            settings if len(settings) == len(op.settings) else {**op.settings, **settings}
        )
        self.size = size

    def with_settings(self, **changed: Any) -> Call:
        """Return the call with other settings."""
        settings = {**self.settings, **changed}
        return Call(self.op, self.tensors, self.batched, settings, self.size)

    def results(self, *tensors: Any, **changed: Any) -> list[Tensor]:
        """Return the results of the operation on these tensors, with some settings changed."""
        return results_of(self.op, tensors, {**self.settings, **changed})

    def result(self, *tensors: Any, **changed: Any) -> Tensor:
        """Return the one result."""
        return self.results(*tensors, **changed)[0]

    def ndim(self, i: int) -> int:
        """Return the number of axes that an input has in one sample."""
        value = self.tensors[i]
        return len(value.shape) - self.batched[i] if isinstance(value, Tensor) else 0

    def with_leading_ones(self, x: Tensor, batched: bool, ndim: int) -> Any:
        """Return a tensor with as many axes in a sample, those that are new in front."""
        if not batched or len(x.shape) > ndim:
            return x
        return x.reshape((x.shape[0], *(1,) * (ndim + 1 - len(x.shape)), *x.shape[1:]))

    def aligned(self, ndim: int | None = None, only: int | None = None) -> list[Any]:
        """Return the inputs such that they broadcast as those of one sample do."""
        places = range(len(self.tensors)) if only is None else (only,)
        if ndim is None:
            ndim = max(map(self.ndim, places)) if len(self.tensors) > 1 else 0
        return [
            self.with_leading_ones(self.tensors[i], self.batched[i], ndim)
            if isinstance(self.tensors[i], Tensor)
            else self.tensors[i]
            for i in places
        ]

    def whole(self) -> list[Any]:
        """Return the inputs, each tensor with an axis of samples; numbers stay."""
        return [
            t if b or not isinstance(t, Tensor) else TENSORS.broadcast_to(t, (self.size, *t.shape))
            for t, b in zip(self.tensors, self.batched, strict=True)
        ]
