"""What a module takes for its parameters: leaf tensors that require grad, and frozen ones."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.nn.walking import is_parameter
from pullback.ops.functions.creation import asarray


class Frozen(Tensor):
    """What `Parameter` returns without grad, until a module has it."""

    __slots__ = ()


class _ParameterType(type):
    """Lets ``isinstance(x, Parameter)`` say whether a module takes a tensor for a parameter."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Frozen) or (isinstance(value, Tensor) and is_parameter(value))


class Parameter(metaclass=_ParameterType):
    """A leaf tensor that a `Module` takes for its parameter when it becomes its attribute.

    Any leaf that requires grad is one; this makes a leaf of other values, and frozen ones.

    Parameters
    ----------
    data : Tensor or array
        The values; the memory is shared.
    requires_grad : bool
        False for a parameter that is part of the state, and is not trained.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Parameter(pb.zeros(2))
    tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data: Any, requires_grad: bool = True) -> Any:
        """Return the tensor."""
        leaf = (data if isinstance(data, Tensor) else asarray(data)).detach()
        if requires_grad:
            return leaf.requires_grad_()
        leaf.__class__ = Frozen
        return leaf
