"""Transforms: functions that take a function and compute its derivatives."""

from pullback.transforms.grad import elementwise_grad, grad, value_and_grad
from pullback.transforms.hessian import hessian, hessian_vector_product, hvp, vhp
from pullback.transforms.jacobian import jacfwd, jacobian, jacrev
from pullback.transforms.jvp import jvp, linearize
from pullback.transforms.vjp import vjp

__all__ = [
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
    "value_and_grad",
    "vhp",
    "vjp",
]
