"""Derivatives of functions along a direction: by a user's jvp, else by transposing a backward pass.

Owns the call of a user's operation, and of any function, on arrays with tangents. It runs on the
values. Pulling cotangents back through what is recorded of it is linear in them, and the transpose
of pushing vectors forward: its own transpose, a pass through the recorded pass, pushes forward.
Where a graph of such arrays asks for it one node is recorded, whose backward does the same to the
function's backward, and so on for every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.arrays import NUMPY, library_of, ndarray
from pullback.core.backward import api as engine
from pullback.core.backward.engine import run
from pullback.core.custom.context import backward_context
from pullback.core.custom.memory import lent_to_rule, own
from pullback.core.custom.pytree import Structure, rebuild
from pullback.core.function.dispatch import unwrap_escaped, wrap_in
from pullback.core.graph.modes import run_in_mode
from pullback.core.graph.node import Output
from pullback.core.tensor.tensor import Tensor, box, new_leaf
from pullback.errors import GraphError, InplaceError, compose
from pullback.ops.functions.creation import ones_like, zeros_like
from pullback.ops.functions.diagonals import diag
from pullback.ops.primitives.conversion import clone
from pullback.transforms.directions import directions, or_zeros
from pullback.transforms.levels import has_graph, new_level, run_at_level, run_recorded
from pullback.transforms.user_calls import NODE, UserCall, name_of_function, record_call
from pullback.transforms.wrapped import in_one_library, run_within, to_tensor

MOST_ELEMENTS = 1000  # of results whose derivative is computed one by one

OfParts = Callable[..., Sequence[Tensor]]
Vectors = Sequence[Tensor | None]


# -- by transposing --------------------------------------------------------------------------------
class Pushforward:
    """The derivative of recorded results by some tensors: a linear function of vectors.

    That of results which do not require grad is zero.
    """

    def __init__(self, outs: Sequence[Tensor], places: Sequence[Tensor]) -> None:
        self._level = level = new_level()
        self._cotangents: list[Tensor] = []
        self._pulled: Vectors = [None] * len(places)
        self._tracked, roots = [], []
        for out in outs:
            self._tracked.append(out.requires_grad)
            if out._node is not None:
                roots.append(out._node)
                self._cotangents.append(_zero_leaf(out, level))
        if roots:
            targets = list(map(NODE, places))
            pulled = run(roots, self._cotangents, targets, True, True, False)
            self._pulled = list(map(pulled.__getitem__, targets))

    def __call__(self, vectors: Vectors, kept: bool) -> list[Tensor | None]:
        """Return the derivative of each result along `vectors`, one for each place.

        None is for zero. The derivatives stay part of the graph if `kept`.
        """
        roots, seeds = [], []
        for pulled, vector in zip(self._pulled, vectors, strict=True):
            if vector is not None and pulled is not None and pulled._node is not None:
                roots.append(pulled)
                seeds.append(vector)
        if not roots:
            return [None] * len(self._tracked)
        pull, cotangents = engine.pulled_back, self._cotangents
        result = iter(run_at_level(self._level, pull, roots, cotangents, seeds, True, kept))
        return [next(result) if is_tracked else None for is_tracked in self._tracked]


def _zero_leaf(like: Tensor, level: int) -> Tensor:
    """Return zeros that require grad, in the array library of a tensor."""
    array = like._data
    if array.__class__ is ndarray:
        return new_leaf(NUMPY.xp.zeros_like(array), level)
    return new_leaf(wrap_in(zeros_like(like.detach()), library_of(array))._data, level)


def pushed(
    function: OfParts, tensors: Sequence[Any], along: Sequence[Any], by_rows: str | None = None
) -> list[tuple[Tensor, Tensor | None]]:
    """Return each result of a function, with its derivative along the vectors `along`.

    A vector is None where an argument does not change. What requires grad among all of them stays
    in the graph, if gradients are recorded. A backward that cannot be recorded is transposed
    element by element, where `by_rows` says what errors call the function.
    """
    kept, level = has_graph((*tensors, *along)), new_level()
    return run_recorded(level, _pushed, level, function, tensors, along, kept, by_rows)  # type: ignore[no-any-return]


def _pushed(
    level: int,
    function: OfParts,
    tensors: Sequence[Any],
    along: Sequence[Any],
    kept: bool,
    by_rows: str | None,
) -> list[tuple[Tensor, Tensor | None]]:
    places = _stand_ins(level, tensors, along, kept)
    outs = function(*places)
    changing, vectors = [], []
    for place, vector in zip(places, along, strict=True):
        if vector is not None:
            changing.append(place)
            vectors.append(vector)
    derivatives: Vectors | None = None
    if not vectors:
        derivatives = [None] * len(outs)
    elif isinstance(function, UserCall) and function.function.forward_rule is not None:
        derivatives = _by_rule(function, outs, along, kept)
    if derivatives is None:
        try:
            derivatives = Pushforward(outs, changing)(vectors, kept)
        except (GraphError, RuntimeError) as error:
            if by_rows is None or kept or isinstance(error, InplaceError):
                raise
            derivatives = _by_rows(by_rows, outs, changing, vectors)
    if not kept:
        outs = [box(o.data_array()) for o in outs]
    return list(zip(outs, derivatives, strict=True))


def _stand_ins(level: int, tensors: Sequence[Any], along: Sequence[Any], kept: bool) -> list[Any]:
    """Return what stands for the arguments: for those that change a leaf, or a clone in a graph."""
    places = []
    for place, vector in zip(in_one_library(tensors), along, strict=True):
        if isinstance(place, Tensor):
            if vector is None:
                place = place if kept else place._alias()
            elif kept and place.requires_grad:
                place = clone(place)
            else:
                place = new_leaf(place.data_array(), level)
        places.append(place)
    return places


# -- by the rows of the Jacobian -------------------------------------------------------------------
def _by_rows(
    name: str, outs: Sequence[Tensor], places: Sequence[Tensor], vectors: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return the derivatives by one backward pass for each element of the results."""
    count = sum(o.numel() for o in outs if o.requires_grad)
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
    return [_row_by_row(o, places, vectors) if o.requires_grad else None for o in outs]


def _row_by_row(out: Tensor, places: Sequence[Tensor], vectors: Sequence[Tensor]) -> Tensor:
    ones = unit_seeds(out)
    parts = [
        _along_rows(engine.grad(out, places, seeds, True, False, True, True), vectors)
        for seeds in ([ones, ones * 1j] if out.is_complex() else [ones])
    ]
    flat = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    derivative: Tensor = flat.reshape(out.shape).to(out.dtype)
    return derivative


def _along_rows(rows: Vectors, vectors: Sequence[Tensor]) -> Any:
    terms = [
        (row.conj() * vector if row.is_complex() else row * vector).reshape((row.shape[0], -1))
        for row, vector in zip(rows, vectors, strict=True)
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


# -- by a user's jvp -------------------------------------------------------------------------------
def _by_rule(call: UserCall, outs: Sequence[Tensor], along: Vectors, kept: bool) -> Vectors | None:
    """Return the derivatives of the results of an operation by the jvp that the user gave.

    None where the call recorded nothing of the operation itself, as in nested forward mode.
    """
    op, structure = call.function, call.structure
    node = next((n for n in map(_node_of, outs) if n is not None and n.op is op), None)
    if node is None:
        return None
    vectors = iter(along)
    tangents = [next(vectors) if isinstance(x, Tensor) else None for x in call.leaves]
    ctx = backward_context(node, None, kept)
    result = run_in_mode({"grad": kept}, op.forward_rule, ctx, node.arguments, tangents)
    result = _like(structure, own(result, 0, lent_to_rule(node, tangents)))
    every = directions(f"{op.name}.jvp", "the result", result, call.results, structure)
    pairs = zip(call.results, every, strict=True)
    return [vector for x, vector in pairs if isinstance(x, Tensor)]


def _node_of(tensor: Tensor) -> Any:
    node = tensor._node
    return node.node if node.__class__ is Output else node


def _like(structure: Structure | None, found: Any) -> Any:
    """Return tangents in the structure of the results, which they may be given for in order."""
    if structure is None or not isinstance(found, (tuple, list)):
        return found
    return found if len(structure.items) != len(found) else rebuild(structure.like, list(found))


# -- on arrays with tangents -----------------------------------------------------------------------
def jvp_of_function(library: Any, function: OfParts, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of a function of values, with their tangents, and record its node."""
    values, along, running = [], [], library.one_run([t._data for t in tensors])
    for t in tensors:
        array = t._data
        values.append(to_tensor(array.value))
        along.append(None if array.tangent is None else to_tensor(array.whole_tangent))
    name = name_of_function(function)
    ours = partial(_of_parts, library, running, function)
    outs = run_within(library, ours, values, along, name)
    return record_call(name, tensors, outs, partial(_gradients_of, function))  # type: ignore[no-any-return]


def _of_parts(
    library: Any, running: Any, function: OfParts, values: Any, along: Any, name: str
) -> list[Any]:
    return [
        library.wrapped(unwrap_escaped(out), unwrap_escaped(derivative), running)
        for out, derivative in pushed(function, values, along, name)
    ]


def _gradients_of(function: OfParts, wanted: Sequence[bool], given: Sequence[bool]) -> OfParts:
    """Return the function of the arguments, and of cotangents where `given`, that pulls back."""

    def gradients(*parts: Tensor) -> list[Tensor]:
        level = new_level()
        return run_at_level(level, pulled, level, in_one_library(parts))  # type: ignore[no-any-return]

    def pulled(level: int, parts: Sequence[Tensor]) -> list[Tensor]:
        inputs = [
            new_leaf(t.data_array(), level) if w and not t.requires_grad else t
            for t, w in zip(parts, wanted, strict=False)
        ]
        outs = [o for o, g in zip(function(*inputs), given, strict=True) if g]
        pairs = [(o, g) for o, g in zip(outs, parts[len(wanted) :], strict=True) if o.requires_grad]
        chosen = [t for t, w in zip(inputs, wanted, strict=True) if w]
        result: Vectors = [None] * len(chosen)
        if pairs:
            roots, seeds = zip(*pairs, strict=True)
            result = engine.pulled_back(roots, chosen, seeds, True, True)
        return or_zeros(result, chosen)

    gradients.__name__ = name_of_function(function)
    return gradients
