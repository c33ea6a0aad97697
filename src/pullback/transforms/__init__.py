"""Transforms: functions that take a function and compute its derivatives."""

from pullback.transforms.checkpoint import checkpoint
from pullback.transforms.grad import elementwise_grad, grad, value_and_grad
from pullback.transforms.hessian import hessian, hessian_vector_product, hvp, vhp
from pullback.transforms.jacobian import jacfwd, jacobian, jacrev
from pullback.transforms.jvp import jvp, linearize
from pullback.transforms.packing import save_as, save_on_cpu
from pullback.transforms.vjp import vjp
from pullback.transforms.vmap import vmap

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
