"""Forward mode: `jvp`, the derivative of a function along a direction, and `linearize`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pullback.core.custom.pytree import Structure, flatten, map_leaves, unflatten
from pullback.core.tensor.tensor import Tensor, box, in_class
from pullback.hints import hinted
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.api.arguments import Arguments, Function, all_arguments, name_of
from pullback.transforms.api.recording import (
    Recording,
    check_differentiable,
    leaves_as_given,
    parts,
)
from pullback.transforms.directions import as_tensor, directions, is_differentiable, or_zeros
from pullback.transforms.forward.array import TangentLibrary
from pullback.transforms.forward.pushforward import Pushforward
from pullback.transforms.levels import Running, new_level, run_recorded
from pullback.transforms.wrapped import Wrapped, escaped, part_of, run_wrapped, tensor_of_part


@hinted
def jvp(
    fun: Function, primals: Sequence[Any], tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value of `fun` and its derivative along a direction, in one evaluation.

    Parameters
    ----------
    fun : callable
        Returns a Tensor, or a container of tensors and other objects.
    primals : tuple
        Its arguments, each as in `grad`.
    tangents : tuple
        The direction: a tangent for each argument, in its structure and shape, None for zero
        and for integers.
    has_aux : bool, default False
        Whether `fun` returns a pair of the result to differentiate and any other object.

    Returns
    -------
    out : any
        The value, of the types of the arguments.
    tangent_out : any
        The derivative of each number in it, in the same structure; None for integers.
    aux : any
        The other object, with `has_aux` alone.

    Raises
    ------
    ArgumentError, ShapeError
        If the tangents have another structure or shape than the arguments.
    DTypeError
        If the arguments, or the result, hold nothing but integers.
    ArgumentTypeError
        If the result holds no Tensor, so that it depends on no argument.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import jvp
    >>> jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 0.5))
    (array([3., 6.]), array([3.5, 1. ]))
    """
    arguments = all_arguments("jvp", fun, primals)
    sources = arguments.sources()
    vectors = directions("jvp", "tangents", tangents, sources, arguments.structure)
    result = run_forward(arguments, sources, vectors, has_aux)
    pairs = zip(arguments.leaves, sources, strict=True)
    given = [leaf for leaf, source in pairs if source is not None]
    value = unflatten(result.structure, leaves_as_given(result.values(), given))
    tangent = unflatten(result.structure, leaves_as_given(result.tangents(), given))
    return (value, tangent, result.auxiliary()) if has_aux else (value, tangent)


@hinted
def linearize(fun: Function, *primals: Any) -> tuple[Any, Any]:
    """Return the value of `fun` and its derivative as a linear function of directions.

    The function runs once; each call of ``jvp_fn`` is a pass through what was recorded then.

    Parameters
    ----------
    fun : callable
        Returns a Tensor, or a container of tensors and other objects.
    *primals : any
        Its arguments, each as in `grad`.

    Returns
    -------
    out : any
        The value, of the types of the arguments.
    jvp_fn : callable
        Takes a tangent for each argument, as in `jvp`, and returns the derivative of the value
        along them. It may be called any number of times.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, ArgumentTypeError
        As `jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import linearize
    >>> out, jvp_fn = linearize(np.sin, 0.0)
    >>> out, jvp_fn(1.0), jvp_fn(2.0)
    (0.0, 1.0, 2.0)
    """
    arguments = all_arguments("linearize", fun, primals)
    arguments.copy_arrays()
    recording = Recording(arguments)
    check_differentiable(arguments, recording.outs, recording.structure)
    return recording.value(), JacobianVectorProduct(recording)


class ForwardResult(NamedTuple):
    """What a function returned in forward mode: tensors of the library, and their containers.

    The methods give tensors with their graph where an argument, a vector or the function's closure
    has one.
    """

    running: Running
    outs: Sequence[Any]
    structure: Structure | None
    rest: Any

    def values(self) -> list[Any]:
        """Return the leaves of the result."""
        return list(map(self._value, self.outs))

    def tangents(self) -> list[Tensor | None]:
        """Return the derivatives of the leaves of the result."""
        return list(map(self._tangent, self.outs))

    def auxiliary(self) -> Any:
        """Return the second object."""
        return map_leaves(self._value, self.rest)

    def _value(self, leaf: Any) -> Any:
        array: Any = leaf.data_array() if isinstance(leaf, Tensor) else None
        library = self.running.library
        if array.__class__ is not library.array_class:
            if isinstance(array, Wrapped):  # of an outer level, or left from a call in this one
                array.library.one_run((array,))
            return leaf
        if array.running is not self.running and not library.is_constant(array):
            raise escaped(array)
        return tensor_of_part(array.value, leaf.__class__)

    def _tangent(self, leaf: Any) -> Tensor | None:
        """Return the derivative of a leaf of the result, zeros where it depends on nothing."""
        array: Any = leaf.data_array() if isinstance(leaf, Tensor) else None
        cls = self.running.library.array_class
        if array.__class__ is cls and array.tangent is not None:
            return tensor_of_part(array.whole_tangent, leaf.__class__)
        if not is_differentiable(leaf):
            return None
        value = as_tensor(self._value(leaf))
        return in_class(zeros_like(value.detach()), value.__class__)


def run_forward(
    arguments: Arguments,
    sources: Sequence[Tensor | None],
    vectors: Sequence[Tensor | None],
    has_aux: bool = False,
) -> ForwardResult:
    """Run a function in forward mode: its arguments' leaves as tensors, along vectors."""
    library = TangentLibrary.at_level(new_level([*sources, *vectors]))
    running = Running(library)
    standing: list[Tensor | None] = []
    for source, vector in zip(sources, vectors, strict=True):
        if source is not None:
            tangent = None if vector is None else part_of(vector)
            array = library.array_class(part_of(source), tangent, running)
            source = box(array, cls=source.__class__)
        standing.append(source)
    result = run_wrapped(running, partial(arguments.call, standing))
    out, rest = parts(arguments, result, has_aux)
    outs, structure = flatten(out)
    check_differentiable(arguments, outs, structure)
    return ForwardResult(running, outs, structure, rest)


class JacobianVectorProduct:
    """What `linearize` returns beside the value: the linear function from tangents to tangents."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._outs = [as_tensor(x) for x in recording.outs if is_differentiable(x)]
        self._push = run_recorded(recording.level, Pushforward, self._outs, recording.leaves)

    def __call__(self, /, *tangents: Any) -> Any:
        """Return the derivative of the value along the tangents, one for each argument."""
        recording = self._recording
        vectors, kept = recording.vectors("jvp_fn", "tangents", tangents)
        derivatives = or_zeros(self._push(vectors, kept), self._outs)
        left = iter(map(in_class, derivatives, [out.__class__ for out in self._outs]))
        result = [next(left) if is_differentiable(leaf) else None for leaf in recording.outs]
        given = [i.given for i in recording.inputs]
        leaves = result if kept else leaves_as_given(result, given)
        return unflatten(recording.structure, leaves)

    def __repr__(self) -> str:
        return f"jvp_fn({name_of(self._recording.arguments.fun)})"
