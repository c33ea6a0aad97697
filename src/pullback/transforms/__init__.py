"""Transforms: functions that take a function and compute its derivatives."""

from pullback.transforms.grad import elementwise_grad, grad, value_and_grad
from pullback.transforms.hessian import hessian, hessian_vector_product, hvp, vhp
from pullback.transforms.jacobian import jacobian, jacrev
from pullback.transforms.vjp import vjp

__all__ = [
    "elementwise_grad",
    "grad",
    "hessian",
    "hessian_vector_product",
    "hvp",
    "jacobian",
    "jacrev",
    "value_and_grad",
    "vhp",
    "vjp",
]
