"""Ready-made hooks for saved tensors: `save_on_cpu` and `save_as`."""

from __future__ import annotations

from typing import Any

from pullback.arrays import DType, as_dtype
from pullback.core.graph.modes import saved_tensors_hooks
from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, compose
from pullback.ops.functions.data_types import to


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  (as in PyTorch)
    """Keep what operations save in the memory of the CPU, and bring it back in backward.

    A ``with`` block, or a decorator. What is on the CPU already is kept as it is.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> with pb.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self) -> None:
        super().__init__(
            lambda tensor: (to(tensor, device="cpu"), tensor.device),
            lambda packed: to(packed[0], device=packed[1]),
        )


class save_as(saved_tensors_hooks):  # noqa: N801  (a block, like the other)
    """Keep what operations save in a smaller dtype, and widen it again in backward.

    A ``with`` block, or a decorator. Gradients are as precise as what was kept. Tensors of the same
    size or smaller, integers, and complex numbers without a counterpart are kept as they are.

    Parameters
    ----------
    dtype : dtype
        ``float16`` or ``float32``; complex numbers are kept with parts of that dtype.

    Raises
    ------
    DTypeError
        If the dtype is not a real floating one.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    >>> with pb.save_as(pb.float32):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.], dtype=float64)
    """

    def __init__(self, dtype: Any) -> None:
        kind = as_dtype(dtype)
        if not kind.is_inexact or kind.is_complex:
            hint = "write float16 or float32"
            raise DTypeError(
                compose("save_as", "a real floating dtype required", kind.name, hint=hint)
            )
        complex_kind = as_dtype("complex64") if kind.name == "float32" else None

        def narrowed(tensor: Tensor) -> tuple[Tensor, DType]:
            goal = complex_kind if tensor.is_complex() else kind
            own = tensor.dtype
            if not own.is_inexact or goal is None or goal.itemsize >= own.itemsize:
                return tensor, own
            return to(tensor, dtype=goal), own

        super().__init__(narrowed, lambda packed: to(packed[0], dtype=packed[1]))
