"""What the zoo is made of: an operation with its backward, and how each library runs it.

Forward and backward are written once, for ctx as PyTorch and pullback both have it
(``ctx.save_for_backward``, ``ctx.saved_tensors``, ``ctx.needs_input_grad[i]``, gradients by
position), with tensor methods that both have; `xp(t)` is the library of a tensor where a function
of its module is needed, `raw(t)` its memory as a NumPy array, `wrap(t, array)` the way back.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb


@dataclasses.dataclass(frozen=True)
class Entry:
    """One operation, right or wrong in one known way.

    Attributes
    ----------
    name, family : str
        Family: elementwise, reduction, matmul, conv, softmax, norm, indexing, scatter, scan,
        complex, inplace.
    forward, backward : callable
        ``forward(ctx, *args)`` and ``backward(ctx, *grads)``.
    inputs : callable
        ``inputs(rng)`` gives forward's arguments: NumPy arrays (the floating ones are
        differentiated) and other objects.
    cause : str
        The name of the cause that the checker has to give; empty where backward is right.
    words : tuple of str
        What the report has to say of it.
    source : str
        The address of the report this mistake was taken from; empty for a common slip.
    once : bool
        Whether backward is marked once_differentiable.
    options : dict
        For `pb.check.check_op`.
    """

    name: str
    family: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    cause: str = ""
    words: tuple[str, ...] = ()
    source: str = ""
    once: bool = False
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def xp(tensor):
    """Return the library of a tensor: the module torch or pullback."""
    return pb if isinstance(tensor, pb.Tensor) else sys.modules["torch"]


def raw(tensor):
    """Return a tensor's memory as a NumPy array, strides as they are."""
    return tensor.detach().numpy()


def wrap(like, array):
    """Return a NumPy array as a tensor of the library of `like`."""
    array = np.asarray(array)
    return pb.asarray(array) if isinstance(like, pb.Tensor) else xp(like).from_numpy(array.copy())


def as_pullback(entry):
    """Return the entry as an operation of pullback."""
    rule = pb.once_differentiable(entry.backward) if entry.once else entry.backward
    return pb.autograd_function(entry.forward, rule, name=entry.name)


def as_torch(entry):
    """Return the entry as a function of PyTorch."""
    import torch
    from torch.autograd.function import once_differentiable

    rule = once_differentiable(entry.backward) if entry.once else entry.backward
    members = {"forward": staticmethod(entry.forward), "backward": staticmethod(rule)}
    return type(entry.name, (torch.autograd.Function,), members).apply
