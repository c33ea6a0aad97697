"""Vector-Jacobian products: `vjp`."""

from __future__ import annotations

from typing import Any

from pullback.errors import ArgumentError, ArgumentTypeError, compose
from pullback.transforms.arguments import Arguments
from pullback.transforms.directions import as_tensor, directions
from pullback.transforms.recording import Recording
from pullback.transforms.results import check_differentiable
from pullback.transforms.transformed import Function, name_of

__all__ = ["vjp"]


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
    if not callable(fun):
        raise ArgumentTypeError(compose("vjp", "a function required", type(fun).__name__))
    if not primals:
        raise ArgumentError(compose("vjp", f"the arguments of {name_of(fun)} required", "none"))
    arguments = Arguments("vjp", fun, tuple(range(len(primals))), primals, {})
    recording = Recording(arguments, has_aux)
    check_differentiable(arguments, recording.outs, recording.structure)
    out, vjp_fn = recording.value(), VectorJacobianProduct(recording)
    return (out, vjp_fn, recording.auxiliary()) if has_aux else (out, vjp_fn)


class VectorJacobianProduct:
    """What `vjp` returns beside the value: the linear function from cotangents to gradients."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        recording.level.close()

    def __call__(self, cotangent: Any, /) -> Any:
        """Return a tuple of gradients, one for each argument."""
        recording = self._recording
        outs, structure = recording.outs, recording.structure
        vectors = directions("vjp_fn", "cotangent", cotangent, outs, structure)
        pairs = zip(outs, vectors, strict=True)
        chosen = [(as_tensor(root), seed) for root, seed in pairs if seed is not None]
        seeds = [seed for _, seed in chosen]
        found = recording.pull([root for root, _ in chosen], seeds, retain=True)
        return recording.structured(found, recording.keeps_with(seeds))

    def __repr__(self) -> str:
        return f"vjp_fn({name_of(self._recording.arguments.fun)})"
