"""Contractions: einsum and tensordot, as transposes and matrix products.

A contraction of several operands is done in pairs, in the order that NumPy's `einsum_path` finds;
each pair is brought to one (batched) matrix product, so BLAS does the work and nothing needs a
gradient rule of its own.
"""

from __future__ import annotations

import functools
import math
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    ShapeError,
    TensorIndexError,
    compose,
)
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import composition, needs_tensor, sample
from pullback.ops._matrices import in_linalg
from pullback.ops.diagonals import diagonal_of
from pullback.ops.elementwise import multiply
from pullback.ops.products import matmul
from pullback.ops.reductions import sum as sum_over
from pullback.ops.shape import permute_dims, reshape

__all__ = [
    "einsum",
    "tensordot",
]

# An axis is named by a letter; those that an ellipsis stands for by -1, -2, ... from the last on.
Label = str | int
Labels = tuple[Label, ...]


# -- one pair --------------------------------------------------------------------------------------
def _pair(x: Any, lx: Labels, y: Any, ly: Labels, kept: set[Label]) -> tuple[Any, Labels]:
    """Contract two tensors over the labels they share, less those in `kept`.

    Returns the result and its labels: those shared and kept, the rest of x, the rest of y.
    """
    stacked = tuple(n for n in lx if n in ly and n in kept)
    summed = tuple(n for n in lx if n in ly and n not in kept)
    left = tuple(n for n in lx if n not in ly)
    right = tuple(n for n in ly if n not in lx)
    sizes = dict(zip((*lx, *ly), (*x.shape, *y.shape), strict=True))

    def size(labels: Labels) -> int:
        return math.prod(sizes[n] for n in labels)

    labels = (*stacked, *left, *right)
    x = _in_order(x, lx, (*stacked, *left, *summed))
    if not summed:
        lengths = tuple(sizes[n] for n in (*stacked, *left)) + (1,) * len(right)
        y = _in_order(y, ly, (*stacked, *right))
        between = (*y.shape[: len(stacked)], *(1,) * len(left), *y.shape[len(stacked) :])
        return multiply(reshape(x, lengths), reshape(y, between)), labels
    y = _in_order(y, ly, (*stacked, *summed, *right))
    stack = (size(stacked),) if stacked else ()
    product = matmul(
        reshape(x, (*stack, size(left), size(summed))),
        reshape(y, (*stack, size(summed), size(right))),
    )
    return reshape(product, tuple(sizes[n] for n in labels)), labels


def _in_order(x: Any, labels: Labels, wanted: Labels) -> Any:
    return x if labels == wanted else permute_dims(x, tuple(labels.index(n) for n in wanted))


@composition(
    sample((2, 3), (3, 2), axes=1),
    sample((2, 3), (2, 3)),
    sample((3, 2, 2), (2, 4, 3), axes=((0, 1), (2, 0))),
    sample((2,), (3,), axes=0),
    sample((2, 0), (0, 3), axes=([-1], [0])),
    sample((), (2,), axes=0),
)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """Return the sum of products over pairs of axes.

    Parameters
    ----------
    x1, x2 : Tensor
    axes : int or pair of sequences of int
        How many of the last axes of `x1` to take with the first ones of `x2`, or the axes of `x1`
        and, in the same order, those of `x2`.

    Returns
    -------
    Tensor
        With the other axes of `x1`, then those of `x2`.

    Raises
    ------
    ShapeError, TensorIndexError
        If axes taken together differ in length; if one is out of range.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensordot(pb.ones((2, 3)), pb.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    needs_tensor("tensordot", x1, "x1")
    needs_tensor("tensordot", x2, "x2")
    first, second = _paired_axes(x1, x2, axes)
    names: dict[int, str] = {j: f"x{i}" for i, j in zip(first, second, strict=True)}
    lx = tuple(f"x{i}" for i in range(len(x1.shape)))
    ly = tuple(names.get(j, f"y{j}") for j in range(len(x2.shape)))
    result: Tensor = _pair(x1, lx, x2, ly, set())[0]
    return result


def _paired_axes(x1: Any, x2: Any, axes: Any) -> tuple[list[int], list[int]]:
    """Return the axes of `x1` and of `x2` that tensordot sums over, counted from the front."""
    inputs = (("x1", x1), ("x2", x2))
    n, m = len(x1.shape), len(x2.shape)
    if isinstance(axes, int) and not isinstance(axes, bool):
        if not 0 <= axes <= min(n, m):
            required = f"a number of axes from 0 to {min(n, m)} required"
            raise ArgumentError(compose("tensordot", required, str(axes), *inputs))
        first, second = list(range(n - axes, n)), list(range(axes))
    else:
        try:
            one, two = (list(part) for part in axes)
        except (TypeError, ValueError):
            required = "axes as an integer or as two sequences of integers required"
            raise ArgumentTypeError(compose("tensordot", required, repr(axes))) from None
        first = [normalize_axis("tensordot", i, n) for i in one]
        second = [normalize_axis("tensordot", i, m) for i in two]
        if len(first) != len(second) or len({*first}) < len(first) or len({*second}) < len(second):
            required = "as many different axes of x1 as of x2 required"
            raise ArgumentError(compose("tensordot", required, f"{one} and {two}", *inputs))
        if len(first) > min(n, m):  # only of a 0-d tensor
            required = "no axes of a 0-d tensor required"
            raise TensorIndexError(compose("tensordot", required, f"{one} and {two}", *inputs))
    for i, j in zip(first, second, strict=True):
        if x1.shape[i] != x2.shape[j]:
            required = f"one length of axis {i} of x1 and axis {j} of x2 required"
            came = f"{x1.shape[i]} and {x2.shape[j]}"
            raise ShapeError(compose("tensordot", required, came, *inputs))
    return first, second


# -- reading an equation ---------------------------------------------------------------------------
def _refuse(equation: str, required: str, came: str, operands: Sequence[Any] = ()) -> ShapeError:
    named = [(f"operands[{i}]", x) for i, x in enumerate(operands)]
    return ShapeError(compose(f"einsum: {equation!r}", required, came, *named))


def _parse(equation: Any, operands: Sequence[Any]) -> tuple[list[Labels], Labels]:
    """Return the labels of each operand's axes, and those of the result."""
    if not isinstance(equation, str):
        required = "an equation such as 'ij,jk->ik' required"
        raise ArgumentTypeError(compose("einsum", required, type(equation).__name__))
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        required = f"as many operands as the {len(terms)} subscripts name required"
        raise _refuse(equation, required, str(len(operands)), operands)
    labels = []
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        needs_tensor("einsum", x, f"operands[{i}]")
        labels.append(_spelled_out(equation, term, len(x.shape), i))
    widest = max(sum(isinstance(n, int) for n in own) for own in labels)
    dots: Labels = tuple(range(-widest, 0))
    if not arrow:
        times = Counter(n for own in labels for n in own if isinstance(n, str))
        return labels, (*dots, *sorted(n for n, count in times.items() if count == 1))
    result = _letters(equation, output)
    wanted = tuple(n for part in result for n in (dots if part == "..." else (part,)))
    known = {n for own in labels for n in own}
    for n, count in Counter(wanted).items():
        if n not in known or count > 1:
            came = f"'{n}' {'twice' if count > 1 else 'in the output alone'}"
            raise _refuse(equation, "each subscript of the output once among the inputs", came)
    return labels, wanted


def _letters(equation: str, term: str) -> list[str]:
    """Return the letters of one term, with "..." for an ellipsis."""
    head, dots, tail = term.partition("...")
    for letter in head + tail:
        if letter not in string.ascii_letters:
            raise _refuse(equation, "letters, commas, '...' and '->' required", repr(letter))
    return [*head, *([dots] if dots else []), *tail]


def _spelled_out(equation: str, term: str, ndim: int, i: int) -> Labels:
    """Return the labels of an operand of `ndim` axes."""
    parts = _letters(equation, term)
    more = ndim - len([part for part in parts if part != "..."])
    if more < 0 or (more and "..." not in parts):
        required = f"as many subscripts as operand {i} has dimensions ({ndim}) required"
        raise _refuse(equation, required, repr(term))
    dots = tuple(range(-more, 0))
    return tuple(n for part in parts for n in (dots if part == "..." else (part,)))


# -- contracting -----------------------------------------------------------------------------------
def _single(x: Any, labels: Labels, equation: str) -> tuple[Any, Labels]:
    """Read the diagonals that repeated labels of one operand name."""
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            i = labels.index(label)
            j = labels.index(label, i + 1)
            if x.shape[i] != x.shape[j]:
                required = f"one length for both axes '{label}' of an operand required"
                raise _refuse(equation, required, f"{x.shape[i]} and {x.shape[j]}", [x])
            x = diagonal_of(x, 0, i, j)
            labels = (*(n for k, n in enumerate(labels) if k not in (i, j)), label)
    return x, labels


def _broadcast(equation: str, operands: list[Any], terms: list[Labels]) -> None:
    """Drop axes of length 1 that stand for longer ones, in place; raise where lengths differ."""
    sizes: dict[Label, int] = {}
    for x, labels in zip(operands, terms, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            if n != 1 and sizes.setdefault(label, n) != n:
                name = "..." if isinstance(label, int) else label
                required = f"one length for the subscript '{name}' required"
                raise _refuse(equation, required, f"{sizes[label]} and {n}", operands)
    for i, (x, labels) in enumerate(zip(operands, terms, strict=True)):
        keep = [k for k, n in enumerate(x.shape) if n == sizes.get(labels[k], 1)]
        if len(keep) < len(labels):
            operands[i] = reshape(x, tuple(x.shape[k] for k in keep))
            terms[i] = tuple(labels[k] for k in keep)


@functools.lru_cache(maxsize=256)
def _path(
    shapes: tuple[tuple[int, ...], ...], terms: tuple[Labels, ...], output: Labels
) -> list[tuple[int, ...]]:
    """Return which operands to contract, step by step; results go to the end of the list."""
    if len(shapes) < 3:
        return [tuple(range(len(shapes)))]
    names = dict.fromkeys(n for labels in terms for n in labels)
    if len(names) > len(string.ascii_letters):
        raise ArgumentError(f"einsum: at most 52 different subscripts required, got {len(names)}")
    letters = dict(zip(names, string.ascii_letters, strict=False))
    text = ["".join(letters[n] for n in labels) for labels in (*terms, output)]
    zero = NUMPY.xp.zeros(())
    arrays = [NUMPY.xp.broadcast_to(zero, shape) for shape in shapes]
    method = "optimal" if len(shapes) < 6 else "greedy"
    equation = f"{','.join(text[:-1])}->{text[-1]}"
    path: list[tuple[int, ...]] = NUMPY.xp.einsum_path(equation, *arrays, optimize=method)[0][1:]
    return path


def _summed(x: Any, labels: Labels, kept: set[Label]) -> tuple[Any, Labels]:
    """Sum over the axes whose labels nobody else needs."""
    axes = tuple(i for i, n in enumerate(labels) if n not in kept)
    return (sum_over(x, axis=axes) if axes else x), tuple(n for n in labels if n in kept)


@composition(
    sample((2, 3), (3, 2), equation="ij,jk->ik"),
    sample((3, 3), (3,), equation="ii,i"),
    sample((2, 3, 2), (2, 1, 2), equation="...ij,j...->i..."),
    sample((2, 0), (0,), equation="ij,j->i"),
    sample((), (2, 2), equation=",ab->b"),
    call=lambda x, y, *, equation: TENSORS.einsum(equation, x, y),
)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Return the sum of products that an equation of subscripts names.

    Each letter names an axis. What the result does not name is summed over; without ``->`` it
    names the letters that occur once, in alphabetical order. A letter twice in one operand reads
    the diagonal; ``...`` stands for any further axes, which broadcast, as axes of length 1 do.

    Parameters
    ----------
    equation : str
        Such as ``"bij,bjk->bik"``.
    *operands : Tensor

    Raises
    ------
    ShapeError
        If subscripts and shapes do not fit, or the output names what no operand has.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> pb.einsum("ij,j->i", x, pb.tensor([1.0, 10.0]))
    tensor([21., 43.])
    >>> pb.einsum("ii", x)
    tensor(5.)
    """
    terms, output = _parse(equation, operands)
    pairs = [_single(x, own, equation) for x, own in zip(operands, terms, strict=True)]
    left, terms = [x for x, _ in pairs], [own for _, own in pairs]
    _broadcast(equation, left, terms)
    shapes = tuple(tuple(x.shape) for x in left)
    for step in _path(shapes, tuple(terms), output):
        taken = [(left.pop(i), terms.pop(i)) for i in sorted(step, reverse=True)][::-1]
        x, labels = taken[0]
        for k, (y, own) in enumerate(taken[1:], 2):
            others = {n for _, names in taken[k:] for n in names}
            kept = {*output, *others, *(n for names in terms for n in names)}
            x, labels = _summed(x, labels, {*kept, *own})
            y, own = _summed(y, own, {*kept, *labels})
            x, labels = _pair(x, labels, y, own, kept)
        left.append(x)
        terms.append(labels)
    x, labels = _summed(left[0], terms[0], set(output))
    return permute_dims(x, tuple(labels.index(n) for n in output))


in_linalg(tensordot)
