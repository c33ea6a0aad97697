"""Transforms: functions that take a function and compute its derivatives."""

from pullback.transforms.api.checkpoint import checkpoint
from pullback.transforms.api.grad import elementwise_grad, grad, value_and_grad, vjp
from pullback.transforms.api.jacobian import (
    hessian,
    hessian_vector_product,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    vhp,
)
from pullback.transforms.api.jvp import jvp, linearize
from pullback.transforms.api.saved_tensors import save_as, save_on_cpu
from pullback.transforms.api.vmap import vmap

__all__ = [
    "checkpoint",
    "elementwise_grad",
    "grad",
    "hessian",
    "hessian_vector_product",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "save_as",
    "save_on_cpu",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]
