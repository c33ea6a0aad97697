"""Second derivatives: `hessian`, and its products with a vector, `hvp` and `vhp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.transforms.arguments import WRAPPING, Argnum, Arguments, argnum_of
from pullback.transforms.deferred import DEFERRING
from pullback.transforms.directions import directions
from pullback.transforms.grad import Gradient
from pullback.transforms.jacobian import Jacobian, is_built_in
from pullback.transforms.jvp import push
from pullback.transforms.recording import Recording
from pullback.transforms.results import as_given
from pullback.transforms.transformed import Function, Transformed, name_of

__all__ = ["hessian", "hessian_vector_product", "hvp", "vhp"]


def hessian(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes all second derivatives of `fun`.

    It is the Jacobian of the Jacobian: ``jacobian(jacobian(fun))``.

    Parameters
    ----------
    fun : callable
        Usually returns a scalar Tensor; of anything else all elements are differentiated.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, as in `grad`.
    has_aux : bool, default False
        Whether `fun` returns a pair of the result to differentiate and any other object.
    argnums : optional
        Another name of `argnum`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns an array of shape ``in.shape + in.shape``, the
        result's axes in front where it is no scalar. Where the argument is a container, a
        container of containers: ``h["a"]["b"]`` is the derivative by ``a``, then by ``b``; for a
        sequence as `argnum` a tuple of tuples. With `has_aux` a pair of that and the other object.

    Raises
    ------
    ArgumentTypeError, DTypeError
        As `jacobian`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import hessian
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    return Hessian(hessian, fun, argnum_of("hessian", argnum, argnums), has_aux)


def hvp(fun: Function, argnum: Argnum = 0, *, argnums: Argnum | None = None) -> Function:
    """Return the function that multiplies the Hessian of `fun` with a vector from the right.

    The gradient runs in forward mode; the Hessian itself is not computed.

    Parameters
    ----------
    fun : callable
        Returns a real scalar Tensor.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, as in `grad`.
    argnums : optional
        Another name of `argnum`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and then a vector: an array of the shape of the
        differentiated argument, a container like it, or for a sequence as `argnum` a tuple of
        those. None in it means zero. Returns the product, the derivative of the gradient along
        the vector, in the structure of the argument.

    Raises
    ------
    ArgumentError, ShapeError
        If the vector has another structure or shape than the argument.
    GraphError, DTypeError, ArgumentTypeError
        As `grad`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import hvp
    >>> hvp(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]), np.array([1.0, 10.0]))
    array([46.,  4.])
    """
    return HessianProduct(hvp, fun, argnum_of("hvp", argnum, argnums))


def vhp(fun: Function, argnum: Argnum = 0, *, argnums: Argnum | None = None) -> Function:
    """Return the function that multiplies the Hessian of `fun` with a vector from the left.

    The product equals that of `hvp` wherever the second derivatives are continuous. It is computed
    in reverse mode alone. Parameters, results and errors are those of `hvp`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import vhp
    >>> vhp(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]), np.array([1.0, 10.0]))
    array([46.,  4.])
    """
    return HessianProduct(vhp, fun, argnum_of("vhp", argnum, argnums))


hessian_vector_product = hvp


class Hessian(Transformed):
    """The Hessian of a function."""

    def __init__(
        self, transform: Callable[..., Any], fun: Function, argnum: Argnum, has_aux: bool
    ) -> None:
        super().__init__(transform, fun, argnum=argnum, has_aux=has_aux)
        first = Jacobian(transform, fun, argnum=argnum, has_aux=has_aux)
        self._second = Jacobian(transform, first, argnum=argnum, has_aux=has_aux)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian, with the second object where there is one."""
        return self._second(*args, **kwargs)


class HessianProduct(Transformed):
    """The product of a Hessian and a vector, from the side that the transform's name says."""

    def __init__(self, transform: Callable[..., Any], fun: Function, argnum: Argnum) -> None:
        super().__init__(transform, fun, argnum=argnum)
        self._argnum, self._gradient = argnum, _Gradient(transform, fun, argnum)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the product; the last argument is the vector."""
        if len(args) + len(kwargs) < 2:
            required = f"the arguments of {name_of(self._fun)} and then a vector required"
            came = f"{len(args) + len(kwargs)} arguments"
            raise ArgumentError(compose(self._api, required, came))
        arguments = Arguments(self._api, self._gradient, self._argnum, args[:-1], kwargs)
        return (_from_left if self._transform is vhp else _from_right)(arguments, args[-1])


class _Gradient(Gradient):
    """A gradient of which, in forward mode, the tangent alone is wanted."""

    def _pulled(self, recording: Recording, seeds: Sequence[Tensor] | None) -> list[Tensor]:
        running = WRAPPING.get()
        if self._transform is vhp or recording.keeps or not is_built_in(recording.out):
            return super()._pulled(recording, seeds)
        token = DEFERRING.set(running[-1].library)
        try:
            return super()._pulled(recording, seeds)
        finally:
            DEFERRING.reset(token)


def _from_left(arguments: Arguments, vector: Any) -> Any:
    """Return the product that a pass through the recorded gradient gives."""
    recording = Recording(arguments)
    outs = recording.outs
    vectors = directions(arguments.api, "the vector", vector, outs, recording.structure)
    pairs = zip(outs, vectors, strict=True)
    chosen = [(gradient, v) for gradient, v in pairs if v is not None]
    seeds = [v for _, v in chosen]
    found = recording.pull([gradient for gradient, _ in chosen], seeds)
    return recording.structured(found, recording.keeps_with(seeds))


def _from_right(arguments: Arguments, vector: Any) -> Any:
    """Return the product that the gradient in forward mode gives."""
    sources = arguments.sources()
    vectors = directions(arguments.api, "the vector", vector, sources, arguments.structure)
    found = push(arguments, sources, vectors).tangents()
    return arguments.structured(
        [
            None if product is None else as_given(product, leaf)
            for product, leaf in zip(found, arguments.leaves, strict=True)
        ]
    )
