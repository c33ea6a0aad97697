"""Reverse mode: `grad`, `value_and_grad`, `elementwise_grad`, and `vjp`."""

from __future__ import annotations

from typing import Any

from pullback.hints import hinted
from pullback.ops.functions.creation import ones_like
from pullback.transforms.api.arguments import (
    Argnum,
    Arguments,
    Function,
    Transformed,
    all_arguments,
    name_of,
)
from pullback.transforms.api.recording import (
    Recording,
    check_differentiable,
    check_real,
    check_scalar,
    check_tensor,
)
from pullback.transforms.directions import as_tensor, directions


@hinted
def grad(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        Returns a real scalar Tensor, or with `has_aux` a pair of that and any other object.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, by position or name. Each may be a Tensor,
        an array, a float, or a tuple, list, dict, NamedTuple or dataclass of those, and of
        integers and None as long as there is something to differentiate. `fun` is called with
        tensors instead of floats and arrays: for those of NumPy with ndarray's methods and
        indexing (``x.std(ddof=1)``), for others with Tensor's.
    has_aux : bool, default False
        Whether `fun` returns a second object besides the scalar.
    argnums : optional
        Another name of `argnum`, as in JAX and torch.func.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns the gradient in the structure and type of the
        differentiated argument: an array for an array, a float for a float, None for an integer,
        zeros if the result does not depend on it. If `argnum` is a sequence, a tuple of
        gradients; with `has_aux` a pair of the gradient and the second object. If the gradient
        can be differentiated again (inside an enclosing transform, or with respect to a tensor
        that requires grad among the arguments or in the closure), it is a Tensor that is part of
        the graph.

    Raises
    ------
    DTypeError
        If the differentiated arguments hold nothing but integers, or the result is complex.
    GraphError
        If the result is not a scalar.
    ArgumentTypeError
        If the result is not a Tensor, so that it depends on no argument.
    ArgumentError
        If `argnum` is no position and no name of an argument.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import grad
    >>> grad(np.tanh)(0.0), grad(grad(np.sin))(np.float64(0.5))
    (1.0, np.float64(-0.479425538604203))
    >>> grad(lambda w: np.sum(w["a"] ** 2))({"a": np.array([1.0, 2.0])})
    {'a': array([2., 4.])}
    >>> grad(lambda x, power: x**power, "x")(3.0, power=2.0)
    6.0
    """
    return Gradient(grad, fun, argnum=argnum, argnums=argnums, has_aux=has_aux)


@hinted
def value_and_grad(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes the value of `fun` and its gradient in one evaluation.

    Parameters and errors are those of `grad`. The value is a Tensor if a differentiated argument
    holds one; otherwise it is a NumPy scalar, or a Python float if all differentiated arguments
    are and it has no dimensions. With `has_aux` it is a pair of the value and the second object.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import value_and_grad
    >>> value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    return Gradient(value_and_grad, fun, argnum=argnum, argnums=argnums, has_aux=has_aux)


@hinted
def elementwise_grad(
    fun: Function, argnum: Argnum = 0, *, argnums: Argnum | None = None
) -> Function:
    """Return the derivative of a function that works element by element.

    It is the gradient of the sum of the result. If each element of the result depends on the same
    element of the argument only, element i of the gradient is the derivative at element i.

    Parameters and errors are those of `grad`, except that the result may have any shape.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import elementwise_grad
    >>> elementwise_grad(np.tanh)(np.array([0.0, 1.0]))
    array([1.        , 0.41997434])
    """
    return Gradient(elementwise_grad, fun, argnum=argnum, argnums=argnums)


class Gradient(Transformed):
    """The gradient of a function, by the name of any transform that needs it."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the gradient, with the value and the second object where they are wanted."""
        arguments = Arguments(self._api, self._fun, self._argnum, args, kwargs)
        recording = Recording(arguments, self._has_aux)
        out = recording.out
        check_tensor(arguments, out)
        check_real(arguments, out)
        seeds = None
        if self._transform is elementwise_grad:
            seeds = [ones_like(out.detach())]
        else:
            check_scalar(arguments, out, "elementwise_grad or jacobian")
        gradients = recording.structured(recording.pull([out], seeds), recording.keeps)
        if self._transform is not value_and_grad and not self._has_aux:
            return gradients
        if self._transform is not value_and_grad:
            return gradients, recording.auxiliary()
        value = recording.value()
        return ((value, recording.auxiliary()) if self._has_aux else value), gradients


# -- vjp -------------------------------------------------------------------------------------------
@hinted
def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the value of `fun` and the function that pulls cotangents back to its arguments.

    Parameters
    ----------
    fun : callable
        Returns a Tensor, or a container of tensors and other objects.
    *primals : any
        Its arguments, each as in `grad`.
    has_aux : bool, default False
        Whether `fun` returns a pair of the result to differentiate and any other object.

    Returns
    -------
    out : any
        The value, of the types of the arguments.
    vjp_fn : callable
        Takes a cotangent in the structure and shapes of `out`, with None for zero and for
        integers, and returns a tuple of the gradients of ``sum(cotangent * out)`` with respect to
        each argument, None for an integer. It may be called any number of times. For complex
        numbers gradients are those of `Tensor.backward`.
    aux : any
        The other object, with `has_aux` alone.

    Raises
    ------
    ArgumentTypeError
        If the result holds no Tensor, so that it depends on no argument.
    DTypeError
        If the arguments, or the result, hold nothing but integers.
    ArgumentError, ShapeError
        By `vjp_fn`, if the cotangent has another structure or shape than the result.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import vjp
    >>> out, vjp_fn = vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> out
    array([3., 6.])
    >>> vjp_fn(np.array([1.0, 10.0]))
    (array([ 3., 30.]), 21.0)
    """
    arguments = all_arguments("vjp", fun, primals)
    arguments.copy_arrays()
    recording = Recording(arguments, has_aux)
    check_differentiable(arguments, recording.outs, recording.structure)
    out, vjp_fn = recording.value(), VectorJacobianProduct(recording)
    return (out, vjp_fn, recording.auxiliary()) if has_aux else (out, vjp_fn)


class VectorJacobianProduct:
    """What `vjp` returns beside the value: the linear function from cotangents to gradients."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __call__(self, cotangent: Any, /) -> Any:
        """Return a tuple of gradients, one for each argument."""
        recording = self._recording
        outs, structure = recording.outs, recording.structure
        vectors = directions("vjp_fn", "cotangent", cotangent, outs, structure)
        pairs = zip(outs, vectors, strict=True)
        chosen = [(as_tensor(root), seed) for root, seed in pairs if seed is not None]
        seeds = [seed for _, seed in chosen]
        result = recording.pull([root for root, _ in chosen], seeds, retain=True)
        return recording.structured(result, recording.keeps_with(seeds))

    def __repr__(self) -> str:
        return f"vjp_fn({name_of(self._recording.arguments.fun)})"
