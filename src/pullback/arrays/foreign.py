"""Values of other libraries that carry gradients of their own.

Owns how they are recognised, by their classes: no library is imported for it. What computes with
such a value is recorded by its library, which knows no gradient rule of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from pullback.errors import GraphError, compose

__all__ = ["carries_gradient", "refuse_gradient"]


class _Kind(NamedTuple):
    """A class of values that may carry a gradient."""

    what: str
    way: str  # out
    carries: Callable[[Any], bool]


def _torch_carries(tensor: Any) -> bool:
    if tensor.requires_grad:
        return True
    torch = sys.modules["torch"]
    functorch = torch._C._functorch
    if functorch.is_batchedtensor(tensor):  # of torch.func.vmap
        return _torch_carries(functorch.get_unwrapped(tensor))
    return torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


# By the top-level module and the name of the class, or of one that it is derived from.
_KINDS = {
    ("torch", "Tensor"): _Kind(
        "a torch tensor that requires grad",
        "pass pb.asarray(t.detach()), a tensor of its values in a graph of pullback's",
        _torch_carries,
    ),
    ("jax", "Tracer"): _Kind(
        "a JAX tracer",
        "call it outside of jax.jit, jax.grad and jax.vmap; pb.grad and pb.vmap transform it",
        lambda tracer: True,
    ),
    ("autograd", "Box"): _Kind(
        "a traced value of HIPS autograd",
        "call it outside of autograd's transforms; pb.grad differentiates it",
        lambda box: True,
    ),
    ("mygrad", "Tensor"): _Kind(
        "a MyGrad tensor that is not constant",
        "pass pb.asarray(t.data), a tensor of its values in a graph of pullback's",
        lambda tensor: not tensor.constant,
    ),
}


@lru_cache(maxsize=1024)
def _kind_of(cls: type) -> _Kind | None:
    keys = ((base.__module__.partition(".")[0], base.__name__) for base in cls.__mro__)
    return next((_KINDS[key] for key in keys if key in _KINDS), None)


def carries_gradient(value: Any) -> bool:
    """Say whether a value of another library carries a gradient there.

    Examples
    --------
    >>> carries_gradient(1.0)
    False
    """
    kind = _kind_of(value.__class__)
    return kind is not None and kind.carries(value)


def refuse_gradient(op: str, name: str, value: Any) -> None:
    """Raise where an argument carries a gradient in another library, which would be lost.

    Raises
    ------
    GraphError

    Examples
    --------
    >>> refuse_gradient("op", "x", 1.0)
    """
    kind = _kind_of(value.__class__)
    if kind is not None and kind.carries(value):
        required = f"`{name}` without a gradient of another library required"
        raise GraphError(compose(op, required, kind.what, hint=kind.way))
