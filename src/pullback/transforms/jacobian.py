"""Jacobians of functions of arrays and containers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.custom.pytree import map_leaves
from pullback.core.tensor.tensor import Tensor
from pullback.ops.functions.creation import ones_like
from pullback.ops.functions.diagonals import diag
from pullback.transforms.arguments import Argnum, Arguments, argnum_of
from pullback.transforms.directions import as_tensor, is_differentiable
from pullback.transforms.recording import Recording
from pullback.transforms.results import check_differentiable
from pullback.transforms.transformed import Function, Transformed

__all__ = ["Jacobian", "jacobian", "jacrev"]


def jacobian(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes all first derivatives of `fun`.

    It makes one backward pass for each element of the result.

    Parameters
    ----------
    fun : callable
        Returns a Tensor, or a container of tensors and other objects.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, as in `grad`.
    has_aux : bool, default False
        Whether `fun` returns a pair of the result to differentiate and any other object.
    argnums : optional
        Another name of `argnum`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns an array of shape ``out.shape + in.shape``: its
        element ``[i, j]`` is the derivative of element i of the result by element j of the
        argument. Where the result is a container, the same container of derivatives; where the
        argument is one, a container like it in each of them; for a sequence as `argnum`, a tuple.
        None for integers. With `has_aux` a pair of that and the other object.

        Derivatives by a complex argument are gradients as `Tensor.backward` computes them, of the
        real part of each element: of a holomorphic function the conjugate of its derivative.
        Those of a complex result by a real argument are complex.

    Raises
    ------
    ArgumentTypeError
        If the result holds no Tensor, so that it depends on no argument.
    DTypeError
        If the differentiated arguments, or the result, hold nothing but integers.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import jacobian
    >>> jacobian(lambda x, y: x**2 * y)(np.array([1.0, 2.0]), 3.0)
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    argnum = argnum_of("jacobian", argnum, argnums)
    return Jacobian(jacobian, fun, argnum=argnum, has_aux=has_aux)


jacrev = jacobian


class Jacobian(Transformed):
    """The Jacobian of a function, by the name of any transform that needs it."""

    def __init__(
        self, transform: Callable[..., Any], fun: Function, argnum: Argnum, has_aux: bool
    ) -> None:
        super().__init__(transform, fun, argnum=argnum, has_aux=has_aux)
        self._argnum, self._has_aux = argnum, has_aux

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian, with the second object where there is one."""
        arguments = Arguments(self._api, self._fun, self._argnum, args, kwargs)
        recording = Recording(arguments, self._has_aux)
        check_differentiable(arguments, recording.out)
        found = map_leaves(lambda leaf: _by_arguments(recording, leaf), recording.out)
        return (found, recording.results()[1]) if self._has_aux else found


def _by_arguments(recording: Recording, leaf: Any) -> Any:
    """Return the derivatives of a leaf of the result, in the containers of the arguments."""
    if not is_differentiable(leaf):
        return None
    out = as_tensor(leaf)
    derivatives = [
        r.reshape((*out.shape, *i.place.shape))
        for r, i in zip(_rows(recording, out), recording.inputs, strict=True)
    ]
    return recording.structured(derivatives, recording.keeps)


def _rows(recording: Recording, out: Tensor) -> list[Tensor]:
    """Return for each input the derivatives of the elements of `out`, stacked."""
    count = out.numel()
    seeds = diag(ones_like(out.detach()).reshape((count,))).reshape((count, *out.shape))
    rows = recording.pull([out], [seeds], retain=True, rows=count)
    if out.is_complex() and not all(r.is_complex() for r in rows):
        imaginary = recording.pull([out], [seeds * 1j], retain=True, rows=count)
        rows = [r if r.is_complex() else r + 1j * im for r, im in zip(rows, imaginary, strict=True)]
    return rows
