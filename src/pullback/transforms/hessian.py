"""Second derivatives: `hessian`, and its products with a vector, `hvp` and `vhp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.backward.api import pulled_back
from pullback.core.graph.modes import run_in_mode
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.arguments import RECORDING, Argnum, Arguments, argnum_of
from pullback.transforms.directions import directions
from pullback.transforms.jacobian import Jacobian, is_built_in
from pullback.transforms.pushing import Pushforward
from pullback.transforms.recording import Recording
from pullback.transforms.results import check_real, check_scalar, check_tensor
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

    `fun` runs once. A pass through its recorded gradient multiplies with the vector; the Hessian
    itself is not computed. What `fun` computes under `no_grad` is a constant, as it is to `grad`
    and `hessian`.

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

    The product equals that of `hvp` where the Hessian is symmetric: not where an operation of a
    user's has a gradient that is no derivative. Parameters, results and errors are those of `hvp`.

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
        self._argnum = argnum

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the product; the last argument is the vector."""
        if len(args) + len(kwargs) < 2:
            required = f"the arguments of {name_of(self._fun)} and then a vector required"
            came = f"{len(args) + len(kwargs)} arguments"
            raise ArgumentError(compose(self._api, required, came))
        arguments = Arguments(self._api, self._fun, self._argnum, args[:-1], kwargs)
        recording = Recording(arguments)
        out = recording.out
        check_tensor(arguments, out)
        check_real(arguments, out)
        check_scalar(arguments, out, "jacobian of the gradient")
        like, structure = recording.sources(), arguments.structure
        vectors = directions(self._api, "the vector", args[-1], like, structure)
        chosen = [v for v, source in zip(vectors, like, strict=True) if source is not None]
        kept = recording.keeps_with([v for v in chosen if v is not None])
        return recording.structured(self._product(recording, chosen, kept), kept)

    def _product(
        self, recording: Recording, vectors: Sequence[Tensor | None], kept: bool
    ) -> list[Tensor]:
        """Return the product by each input, of a vector, or None for zero, for each."""
        out, places = recording.out, [i.place for i in recording.inputs]
        gradients: list[Tensor | None] = [None] * len(places)
        if out.requires_grad:
            gradients = run_in_mode(RECORDING, pulled_back, [out], places, None, True, True)
        if self._transform is vhp or is_built_in(out):
            pairs = zip(gradients, vectors, strict=True)
            found = [(g, v) for g, v in pairs if g is not None and v is not None]
            return recording.pull([g for g, _ in found], [v for _, v in found])
        # The Hessian may not be symmetric.
        outs = [zeros_like(p) if g is None else g for g, p in zip(gradients, places, strict=True)]
        products = run_in_mode(RECORDING, Pushforward, outs, places)(vectors, kept)
        return [
            zeros_like(p.detach()) if x is None else x
            for p, x in zip(places, products, strict=True)
        ]
