"""Derivatives of functions: pullback's, in HIPS autograd's conventions.

`fun` takes numbers, arrays and containers of them; `argnum` is the position of the argument that
is differentiated, or several. Results are arrays and NumPy's scalars; inside of another derivative
they are traced.

>>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
array([[2., 0.],
       [0., 4.]])
>>> value_and_grad(lambda z: np.real(z) * np.imag(z))(1 + 2j)
(np.float64(2.0), np.complex128(2-1j))
>>> hessian_vector_product(lambda x: x**3)(2.0, 10.0), deriv(lambda x: x**3)(2.0)
(np.float64(120.0), np.float64(12.0))
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback.compat.autograd import core
from pullback.compat.autograd.boxes import getval, may_be_derived
from pullback.compat.autograd.core import as_numpy, covector, with_constants
from pullback.compat.autograd.wrap_util import unary_to_nary
from pullback.core.custom.pytree import map_leaves
from pullback.errors import GraphError

__all__ = [
    *("checkpoint", "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian"),
    *("hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "jacobian"),
    *("make_ggnvp", "make_hvp", "make_jvp", "make_vjp", "multigrad_dict"),
    *("tensor_jacobian_product", "value_and_grad", "vector_jacobian_product"),
]

Function = Callable[..., Any]
checkpoint = pb.checkpoint
make_vjp = unary_to_nary(core.make_vjp)
make_jvp = unary_to_nary(core.make_jvp)


class NotScalarError(GraphError, TypeError):
    """A result is no scalar: HIPS autograd's error is a TypeError."""


def _converted(transform: Function, convert: Function = covector, **settings: Any) -> Function:
    """Return a transform of pullback's whose results are converted to a convention."""

    @functools.wraps(transform)
    def of(fun: Function, argnum: Any = 0) -> Function:
        derivative = transform(with_constants(fun), argnum, **settings)

        @functools.wraps(fun)
        def at(*args: Any, **kwargs: Any) -> Any:
            try:
                return convert(derivative(*args, **kwargs))
            except GraphError as error:
                if error.needs_scalar:
                    raise NotScalarError(*error.args) from None
                raise

        return at

    return of


def _value_and_gradient(pair: Any) -> Any:
    return as_numpy(pair[0]), covector(pair[1])


def _gradient_and_aux(pair: Any) -> Any:
    values = map_leaves(lambda leaf: leaf if may_be_derived(leaf) else getval(leaf), pair[1])
    return covector(pair[0]), as_numpy(values)


grad = _converted(pb.grad)
value_and_grad = _converted(pb.value_and_grad, _value_and_gradient)
grad_and_aux = _converted(pb.grad, _gradient_and_aux, has_aux=True)
grad_named = grad  # argnum is the name
elementwise_grad = _converted(pb.elementwise_grad)
jacobian = _converted(pb.jacobian)
hessian = _converted(pb.hessian)
hessian_tensor_product = hessian_vector_product = _converted(pb.hvp)


def tensor_jacobian_product(fun: Function, argnum: Any = 0) -> Function:
    """Return the function of the arguments and a tensor that computes it times the Jacobian.

    Examples
    --------
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 4.])
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        *args_of_fun, vector = args
        return np.tensordot(vector, fun(*args_of_fun, **kwargs), np.ndim(vector))

    return jacobian(product, argnum)  # type: ignore[no-any-return]


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """Return the derivative of `fun` by forward mode.

    Examples
    --------
    >>> deriv(np.sin)(0.0)
    np.float64(1.0)
    """
    return core.make_jvp(fun, x)(core.vspace(x).ones())[1]


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Function:
    """Return the function from a tangent at `x` to the derivative of `fun` along it.

    Examples
    --------
    >>> make_jvp_reversemode(np.square)(3.0)(1.0)
    np.float64(6.0)
    """
    return lambda v: core.make_jvp(fun, x)(v)[1]


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """Return the complex derivative of a holomorphic `fun`.

    Examples
    --------
    >>> holomorphic_grad(np.square)(1 + 2j)
    np.complex128(2+4j)
    """
    if not core.vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda z: np.real(fun(z)))(x)


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> Any:
    """Return the function from vectors to the Hessian at `x` times them, and the gradient.

    Examples
    --------
    >>> product, gradient = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> product(np.array([1.0, 0.0])), gradient
    (array([6., 0.]), array([ 3., 12.]))
    """
    return core.make_vjp(grad(fun), x)


def _half_square(y: Any) -> Any:
    return np.sum(y**2, axis=-1) / 2


def make_ggnvp(fun: Function, g: Function = _half_square, argnum: Any = 0) -> Function:
    """Return the function from vectors to the generalized Gauss-Newton matrix times them.

    Examples
    --------
    >>> make_ggnvp(lambda x: 3 * x)(np.array([1.0, 2.0]))(np.array([1.0, 0.0]))
    array([9., 0.])
    """

    @unary_to_nary
    def product(fun: Function, x: Any) -> Function:
        def at(v: Any) -> Any:
            out, tangent = core.make_jvp(fun, x)(v)
            return core.make_vjp(fun, x)[0](hessian_vector_product(g)(out, tangent))

        return at

    return product(fun, argnum)  # type: ignore[no-any-return]


def multigrad_dict(fun: Function) -> Function:
    """Return the gradients of `fun` by all arguments, in a dict by their names.

    Examples
    --------
    >>> multigrad_dict(lambda x, y=2.0: x * y)(3.0)
    {'x': np.float64(2.0), 'y': np.float64(3.0)}
    """

    def gradients(*args: Any, **kwargs: Any) -> Any:
        def call(arguments: Any) -> Any:
            bound.arguments = arguments
            return fun(*bound.args, **bound.kwargs)

        bound = inspect.signature(fun).bind(*args, **kwargs)
        bound.apply_defaults()
        return grad(call)(dict(bound.arguments))

    return gradients
