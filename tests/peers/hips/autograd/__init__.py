"""HIPS autograd's modules and names over pullback, for running its own tests and examples.

What is not here is taken from its source distribution, whose folder HIPS_AUTOGRAD names.
"""

import os

__path__.append(os.environ["HIPS_AUTOGRAD"])

import numpy as np

import pullback as pb
from autograd.builtins import dict, isinstance, list, tuple, type
from autograd.core import (
    constant_too as _constant_too,
    make_jvp as _make_jvp,
    make_vjp as _make_vjp,
    vspace as _vspace,
)
from autograd.extend import primitive
from autograd.wrap_util import unary_to_nary as _unary_to_nary

make_vjp = _unary_to_nary(_make_vjp)
make_jvp = _unary_to_nary(_make_jvp)


def grad(fun, argnum=0):
    return pb.grad(_constant_too(fun), argnum)


def value_and_grad(fun, argnum=0):
    return pb.value_and_grad(_constant_too(fun), argnum)


def elementwise_grad(fun, argnum=0):
    return pb.elementwise_grad(_constant_too(fun), argnum)


def jacobian(fun, argnum=0):
    return pb.jacobian(_constant_too(fun), argnum)


def hessian(fun, argnum=0):
    return pb.hessian(_constant_too(fun), argnum)


def hessian_vector_product(fun, argnum=0):
    return pb.hvp(fun, argnum)


def grad_named(fun, name):
    return pb.grad(fun, name)


def checkpoint(fun):
    return pb.checkpoint(fun)


def grad_and_aux(fun, argnum=0):
    return pb.grad(fun, argnum, has_aux=True)


@_unary_to_nary
def deriv(fun, x):
    return _make_jvp(fun, x)(_vspace(x).ones())[1]


@_unary_to_nary
def holomorphic_grad(fun, x):
    return np.conj(grad(lambda x: np.real(fun(x)))(x))


hessian_tensor_product = hessian_vector_product


def tensor_jacobian_product(fun, argnum=0):
    def product(*args, **kwargs):
        *args, vector = args
        return np.tensordot(vector, fun(*args, **kwargs), np.ndim(vector))

    return jacobian(product, argnum)


vector_jacobian_product = tensor_jacobian_product


@_unary_to_nary
def make_hvp(fun, x):
    return _make_vjp(grad(fun), x)


def make_ggnvp(fun, g=lambda y: 0.5 * pb.sum(y**2, axis=-1), argnum=0):
    @_unary_to_nary
    def at(fun, x):
        def product(v):
            out, pushed = pb.jvp(fun, (x,), (v,))
            return pb.vjp(fun, x)[1](pb.hvp(g)(out, pushed))[0]

        return product

    return at(fun, argnum)
