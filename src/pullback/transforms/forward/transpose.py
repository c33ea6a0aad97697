"""Derivatives along a direction, by transposing a backward pass.

Pulling cotangents back through a graph is linear in them, and the transpose of pushing vectors
forward. Its own transpose, a pass through the recorded pass, pushes forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.arrays import NUMPY, library_of
from pullback.core.backward import api as engine
from pullback.core.function.dispatch import wrap_in
from pullback.core.graph.modes import STATE
from pullback.core.tensor.tensor import Tensor, box, new_leaf
from pullback.errors import GraphError, compose
from pullback.ops.functions.creation import ones_like, zeros_like
from pullback.ops.functions.diagonals import diag
from pullback.ops.primitives.conversion import clone
from pullback.transforms.levels import new_level, run_at_level, run_recorded
from pullback.transforms.wrapped import in_one_library

__all__ = ["Pushforward", "jvp_by_rows", "jvp_by_transpose", "stand_ins", "unit_seeds"]

_ndarray = NUMPY.array_types[0]
MOST_ELEMENTS = 1000  # of results whose derivative is computed one by one


class Pushforward:
    """The derivative of recorded results by some tensors: a linear function of vectors.

    Parameters
    ----------
    outs : sequence of Tensor
        The results; those that do not require grad have no derivative.
    places : sequence of Tensor
        What to differentiate by.
    """

    def __init__(self, outs: Sequence[Tensor], places: Sequence[Tensor]) -> None:
        self._outs = outs
        roots = [o for o in outs if _tracked(o)]
        self._level = level = new_level()
        self._cotangents = [_zero_leaf(o, level) for o in roots]
        self._pulled: Sequence[Tensor | None] = [None] * len(places)
        if roots:
            self._pulled = engine.pulled_back(roots, places, self._cotangents, True, True)

    def __call__(self, vectors: Sequence[Tensor | None], kept: bool) -> list[Tensor | None]:
        """Return the derivative of each result along `vectors`, one for each place.

        None is for zero. The derivatives stay part of the graph if `kept`.
        """
        pairs = [
            (pulled, vector)
            for pulled, vector in zip(self._pulled, vectors, strict=True)
            if vector is not None and pulled is not None and pulled.requires_grad
        ]
        if not pairs:
            return [None] * len(self._outs)
        roots, seeds = zip(*pairs, strict=True)
        pull, cotangents = engine.pulled_back, self._cotangents
        result = iter(run_at_level(self._level, pull, roots, cotangents, seeds, True, kept))
        return [next(result) if _tracked(o) else None for o in self._outs]


def jvp_by_transpose(
    function: Callable[..., Sequence[Tensor]], tensors: Sequence[Any], along: Sequence[Any]
) -> list[tuple[Tensor, Tensor | None]]:
    """Return each result of a function, with its derivative along the vectors `along`.

    Parameters
    ----------
    function : callable
        From tensors and other objects to a sequence of tensors.
    tensors, along : sequence
        The arguments, and for each a vector, or None where it does not change. What requires
        grad among them stays in the graph, if gradients are recorded.
    """
    kept = STATE.get().grad and any(map(_tracked, (*tensors, *along)))
    level = new_level()
    return run_recorded(level, _jvp, level, function, tensors, along, kept)  # type: ignore[no-any-return]


def _jvp(
    level: int,
    function: Callable[..., Sequence[Tensor]],
    tensors: Sequence[Any],
    along: Sequence[Any],
    kept: bool,
) -> list[tuple[Tensor, Tensor | None]]:
    places = stand_ins(level, tensors, along, kept)
    outs = function(*places)
    vectors = [v for v in along if v is not None]
    if not vectors:
        return [(o if kept else o._alias(), None) for o in outs]
    changing = [p for p, v in zip(places, along, strict=True) if v is not None]
    result = Pushforward(outs, changing)(vectors, kept)
    return [(o if kept else box(o.data_array()), d) for o, d in zip(outs, result, strict=True)]


def stand_ins(level: int, tensors: Sequence[Any], along: Sequence[Any], kept: bool) -> list[Any]:
    """Return what stands for the arguments: for those that change a leaf, or a clone in a graph."""
    common = iter(in_one_library([t for t in tensors if isinstance(t, Tensor)]))
    return [
        _place(next(common), v, kept, level) if isinstance(t, Tensor) else t
        for t, v in zip(tensors, along, strict=True)
    ]


def _place(tensor: Tensor, vector: Any, kept: bool, level: int) -> Tensor:
    if vector is None:
        return tensor if kept else tensor._alias()
    return clone(tensor) if kept and _tracked(tensor) else new_leaf(tensor.data_array(), level)


def _zero_leaf(like: Tensor, level: int) -> Tensor:
    """Return zeros that require grad, in the array library of a tensor."""
    array = like.data_array()
    if array.__class__ is _ndarray:
        return new_leaf(NUMPY.xp.zeros_like(array), level)
    return new_leaf(wrap_in(zeros_like(like.detach()), library_of(array))._data, level)


def jvp_by_rows(
    name: str,
    function: Callable[..., Sequence[Tensor]],
    tensors: Sequence[Any],
    along: Sequence[Any],
) -> list[tuple[Tensor, Tensor | None]]:
    """Do the same as `jvp_by_transpose` by one backward pass for each element of the results.

    For a backward that cannot be recorded. The derivatives are no part of any graph. Errors name
    the operation.
    """
    level = new_level()
    return run_recorded(level, _jvp_by_rows, level, name, function, tensors, along)  # type: ignore[no-any-return]


def _jvp_by_rows(
    level: int,
    name: str,
    function: Callable[..., Sequence[Tensor]],
    tensors: Sequence[Any],
    along: Sequence[Any],
) -> list[tuple[Tensor, Tensor | None]]:
    places = stand_ins(level, tensors, along, False)
    outs = function(*places)
    count = sum(o.numel() for o in outs if _tracked(o))
    if count > MOST_ELEMENTS:
        required = (
            f"forward mode calls a backward that cannot be recorded once for each element, and "
            f"at most {MOST_ELEMENTS} elements in the results required"
        )
        hint = (
            f"give {name} a rule for forward mode (@{name}.jvp, or jvp in a class), or write its "
            "backward with operations that can be differentiated themselves"
        )
        raise GraphError(compose(name, required, str(count), hint=hint))
    pairs = [(p, v) for p, v in zip(places, along, strict=True) if v is not None]
    return [(o._alias(), _by_rows(o, pairs) if _tracked(o) else None) for o in outs]


def _by_rows(out: Tensor, pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the derivative of `out` by the rows of its Jacobian."""
    ones = unit_seeds(out)
    places = [place for place, _ in pairs]
    parts = [
        _along_rows(engine.grad(out, places, seeds, True, False, True, True), pairs)
        for seeds in ([ones, ones * 1j] if out.is_complex() else [ones])
    ]
    flat = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    derivative: Tensor = flat.reshape(out.shape).to(out.dtype)
    return derivative


def _along_rows(rows: Sequence[Tensor | None], pairs: Sequence[tuple[Tensor, Tensor]]) -> Any:
    terms = [
        (row.conj() * vector if row.is_complex() else row * vector).reshape((row.shape[0], -1))
        for row, (_, vector) in zip(rows, pairs, strict=True)
        if row is not None
    ]
    return sum((t.real if t.is_complex() else t).sum(dim=1) for t in terms)


def unit_seeds(out: Tensor, start: int = 0, stop: int | None = None) -> Tensor:
    """Return for each element of a tensor the cotangent that is 1 there, stacked.

    Of the elements from `start` to `stop` alone, where that is given.
    """
    count, array = out.numel(), out.data_array()
    rows = (count if stop is None else min(stop, count)) - start
    if array.__class__ in NUMPY.array_types:
        seeds = NUMPY.xp.eye(rows, count, k=start, dtype=array.dtype)
        return box(seeds.reshape((rows, *array.shape)))
    every = diag(ones_like(out.detach()).reshape((count,))).reshape((count, *out.shape))
    return every if rows == count else every[start : start + rows]


def _tracked(value: Any) -> bool:
    if not isinstance(value, Tensor):
        return False
    return value._node is not None if value._base is None else value.requires_grad
