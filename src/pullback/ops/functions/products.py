"""Products of matrices and vectors, and contractions.

A contraction of several operands is done in pairs, in the order that NumPy's `einsum_path` finds;
each pair is brought to one (batched) matrix product, so BLAS does the work and nothing needs a
gradient rule of its own.
"""

from __future__ import annotations

import functools
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, TensorIndexError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.axes import merge_axis_args, normalize_axis, to_builtin
from pullback.ops.declare import (
    composition,
    needs_tensor,
    register_xp,
    wrapper_of,
)
from pullback.ops.functions import reductions
from pullback.ops.functions.diagonals import diagonal_of
from pullback.ops.functions.manipulation import expand_dims, permute_dims, reshape
from pullback.ops.functions.pointwise import add
from pullback.ops.matrices import is_complex, needs_one_stack
from pullback.ops.primitives.arithmetic import multiply
from pullback.ops.primitives.complex_numbers import conj
from pullback.ops.primitives.products import contract_p, cross_p, matmul_p, mm, outer_p
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.samples import sample

_ARRAYS = frozenset(NUMPY.array_types)


# -- matrices --------------------------------------------------------------------------------------
@wrapper_of(matmul_p, methods="matmul", numpy="linalg.matmul: x1 x2")
def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Return the matrix product; vectors and stacks of matrices as in PyTorch and the standard.

    Raises
    ------
    ShapeError
        If the inner lengths differ, the stacks do not broadcast, or one is a scalar.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.matmul(pb.eye(2), pb.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    left, right = x1.__class__, x2.__class__
    if left in TENSOR_CLASSES and right is left:
        if len(x1._data.shape) == 2 == len(x2._data.shape):
            return mm(x1, x2)
    elif {left, right} & _ARRAYS and {left, right} & TENSOR_CLASSES and x1.ndim == 2 == x2.ndim:
        return mm(x1, x2)
    return matmul_p.public(x1, x2)


def _shaped(op: str, form: str, *inputs: tuple[str, Any, int]) -> None:
    """Raise where an input has not its number of dimensions, or the inner lengths differ."""
    for name, x, _ in inputs:
        needs_tensor(op, x, name)
    (_, left, _), (_, right, ndim) = inputs
    wrong = any(len(x.shape) != n for _, x, n in inputs)
    if wrong or left.shape[-1] != right.shape[0 if ndim == 1 else -2]:
        came = " and ".join(str(tuple(x.shape)) for _, x, _ in inputs)
        named = [(name, x) for name, x, _ in inputs]
        hint = "use matmul, which takes vectors and stacks of matrices alike"
        raise ShapeError(compose(op, f"shapes {form} required", came, *named, hint=hint))


@composition(
    sample((2, 3, 4), (2, 4, 1)),
    sample((0, 2, 3), (0, 3, 2)),
    sample((1, 1, 1), (1, 1, 1)),
    reference="numpy.matmul",
    scalars=False,
    methods="bmm",
)
def bmm(input: Any, mat2: Any) -> Tensor:
    """Return the products of two stacks of matrices, pair by pair.

    Parameters
    ----------
    input, mat2 : Tensor
        Of shapes (b, n, k) and (b, k, m).

    Raises
    ------
    ShapeError
        If the shapes are others; nothing is broadcast (`matmul` does).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bmm(pb.ones((2, 1, 3)), pb.ones((2, 3, 1))).shape
    (2, 1, 1)
    """
    _shaped("bmm", "(b, n, k) and (b, k, m)", ("input", input, 3), ("mat2", mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        came = f"stacks of {input.shape[0]} and {mat2.shape[0]}"
        inputs = (("input", input), ("mat2", mat2))
        raise ShapeError(compose("bmm", "stacks of one length required", came, *inputs))
    return matmul_p.public(input, mat2)


@composition(
    sample((3, 4), (4,)),
    sample((0, 2), (2,)),
    sample((2, 0), (0,)),
    reference="numpy.matmul",
    scalars=False,
    methods="mv",
)
def mv(input: Any, vec: Any) -> Tensor:
    """Return the product of a matrix and a vector.

    Raises
    ------
    ShapeError
        If the shapes are not (n, m) and (m,).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mv(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), pb.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    _shaped("mv", "(n, m) and (m,)", ("input", input, 2), ("vec", vec, 1))
    return matmul_p.public(input, vec)


@composition(
    sample((3,), (3,)), sample((1,), (1,)), sample((0,), (0,)), scalars=False, methods="dot"
)
def dot(input: Any, tensor: Any) -> Tensor:
    """Return the sum of the products of two vectors' elements; nothing is conjugated.

    Raises
    ------
    ShapeError
        If they are not two vectors of one length.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dot(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    _shaped("dot", "(n,) and (n,)", ("input", input, 1), ("tensor", tensor, 1))
    return matmul_p.public(input, tensor)


# -- a product added to something ------------------------------------------------------------------
def added(op: str, input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta * input + alpha * product, of the shape of the product."""
    needs_tensor(op, input, "input")
    pairs = list(zip(input.shape[::-1], product.shape[::-1], strict=False))
    if len(input.shape) > len(product.shape) or any(n not in (1, m) for n, m in pairs):
        required = f"an input that broadcasts to the product's shape {product.shape} required"
        raise ShapeError(compose(op, required, str(tuple(input.shape)), ("input", input)))
    if alpha != 1:
        product = multiply(product, alpha)
    if beta == 0:  # what is not wanted may be NaN
        return product
    return add(input if beta == 1 else multiply(input, beta), product)


@composition(
    sample((3, 3), (3, 3), (3, 3)),
    sample((2,), (2, 2), (2, 2), beta=0.5, alpha=-2.0),
    sample((), (1, 1), (1, 1)),
    sample((0, 0), (0, 0), (0, 0)),
    reference=(lambda np, c, a, b, beta=1, alpha=1: beta * c + alpha * np.matmul(a, b)),
    methods="addmm",
)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (mat1 @ mat2).

    Parameters
    ----------
    input : Tensor
        Broadcasts to (n, m). Where `beta` is 0 it is not looked at.
    mat1, mat2 : Tensor
        Of shapes (n, k) and (k, m).
    beta, alpha : number

    Raises
    ------
    ShapeError
        If the shapes are others.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addmm(pb.ones((2,)), pb.eye(2), pb.eye(2), alpha=3.0)
    tensor([[4., 1.],
            [1., 4.]])
    """
    _shaped("addmm", "(n, k) and (k, m)", ("mat1", mat1, 2), ("mat2", mat2, 2))
    return added("addmm", input, mm(mat1, mat2), beta, alpha)


@composition(
    sample((2, 2, 2), (2, 2, 2), (2, 2, 2)),
    sample((2, 1), (1, 2, 2), (1, 2, 2), beta=0.5, alpha=-2.0),
    sample((), (1, 1, 1), (1, 1, 1)),
    sample((0, 2, 2), (0, 2, 2), (0, 2, 2)),
    reference=(lambda np, c, a, b, beta=1, alpha=1: beta * c + alpha * np.matmul(a, b)),
    methods="baddbmm",
)
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (batch1 @ batch2), for stacks of matrices.

    Parameters
    ----------
    input : Tensor
        Broadcasts to (b, n, m). Where `beta` is 0 it is not looked at.
    batch1, batch2 : Tensor
        Of shapes (b, n, k) and (b, k, m).
    beta, alpha : number

    Raises
    ------
    ShapeError
        If the shapes are others.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.baddbmm(pb.ones((1,)), pb.ones((2, 1, 3)), pb.ones((2, 3, 1))).tolist()
    [[[4.0]], [[4.0]]]
    """
    _shaped("baddbmm", "(b, n, k) and (b, k, m)", ("batch1", batch1, 3), ("batch2", batch2, 3))
    return added("baddbmm", input, bmm(batch1, batch2), beta, alpha)


# -- vectors ---------------------------------------------------------------------------------------
def _axis_last(op: str, name: str, x: Any, axis: int) -> Tensor:
    """Return `x` with the axis `axis` as its last."""
    if not x.shape:
        raise ShapeError(compose(op, "at least 1 dimension required", "0", (name, x)))
    ndim = len(x.shape)
    position = normalize_axis(op, axis, ndim)
    if position == ndim - 1:
        return x  # type: ignore[no-any-return]
    return permute_dims(x, (*(i for i in range(ndim) if i != position), position))


@composition(
    sample((3,), (3,)),
    sample((2, 3), (3,), axis=-1),
    sample((3, 1), (2, 3, 2), axis=-2),
    sample((2, 0), (2, 0)),
    reference=(lambda np, x, y, axis=-1: np.sum(np.conj(x) * y, axis=axis)),
    scalars=False,
    numpy="linalg.vecdot: x1 x2 axis",
)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the sum of conj(x1) * x2 along an axis; the others broadcast.

    Raises
    ------
    ShapeError
        If the lengths along the axis differ, the others do not broadcast, or one is a scalar.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vecdot(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    needs_tensor("vecdot", x1, "x1")
    needs_tensor("vecdot", x2, "x2")
    left, right = _axis_last("vecdot", "x1", x1, axis), _axis_last("vecdot", "x2", x2, axis)
    if left.shape[-1] != right.shape[-1]:
        required = f"one length along axis {axis} required"
        came = f"{left.shape[-1]} and {right.shape[-1]}"
        raise ShapeError(compose("vecdot", required, came, ("x1", x1), ("x2", x2)))
    needs_one_stack("vecdot", (left.shape[:-1], right.shape[:-1]), x1=x1, x2=x2)
    left = conj(left) if is_complex(left) else left
    product = matmul_p.public(expand_dims(left, axis=-2), expand_dims(right, axis=-1))
    return reshape(product, product.shape[:-2])


@wrapper_of(outer_p, methods="outer ger", numpy="linalg.outer: x1 x2; outer: a/flat=x1 b/flat=x2")
def outer(x1: Any, x2: Any, /) -> Tensor:
    """Return the matrix of the products x1[i] * x2[j] of two vectors.

    Raises
    ------
    ShapeError
        If they are no vectors.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.outer(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    needs_tensor("outer", x1, "x1")
    needs_tensor("outer", x2, "x2")
    return outer_p.public(x1, x2)


ger = outer


@composition(
    sample((2, 2), (1, 3)),
    sample((2,), (2, 1, 2)),
    sample((), (2,)),
    sample((0, 2), (2,)),
    methods="kron",
    numpy="kron: a=input b=other",
)
def kron(input: Any, other: Any) -> Tensor:
    """Return the Kronecker product: each element of `input` times the whole of `other`.

    The one of fewer dimensions gets leading axes of length 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.kron(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 10.0]))
    tensor([ 1., 10.,  2., 20.])
    """
    needs_tensor("kron", input, "input")
    needs_tensor("kron", other, "other")
    ndim = max(len(input.shape), len(other.shape))
    rows = (1,) * (ndim - len(input.shape)) + tuple(input.shape)
    columns = (1,) * (ndim - len(other.shape)) + tuple(other.shape)
    left = reshape(input, tuple(n for row in rows for n in (row, 1)))
    right = reshape(other, tuple(n for column in columns for n in (1, column)))
    lengths = tuple(n * m for n, m in zip(rows, columns, strict=True))
    return reshape(multiply(left, right), lengths)


@wrapper_of(cross_p, numpy="linalg.cross: x1 x2 axis")
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements along an axis; the others broadcast.

    Raises
    ------
    ShapeError
        If a length along the axis is not 3, or the others do not broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cross(pb.tensor([1.0, 0.0, 0.0]), pb.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    ndims = []
    axis = to_builtin(axis)
    for name, x in (("x1", x1), ("x2", x2)):
        needs_tensor("cross", x, name)
        ndims.append(len(x.shape))
        if not x.shape or x.shape[normalize_axis("cross", axis, len(x.shape))] != 3:
            required = f"a length of 3 along axis {axis} required"
            raise ShapeError(compose("cross", required, str(tuple(x.shape)), (name, x)))
    if axis >= 0 and ndims[0] != ndims[1]:
        required = "an axis counted from the end required where the numbers of dimensions differ"
        raise ArgumentError(compose("cross", required, str(axis), ("x1", x1), ("x2", x2)))
    needs_one_stack("cross", (x1.shape, x2.shape), x1=x1, x2=x2)
    return cross_p.public(x1, x2, axis=axis - ndims[0] if axis >= 0 else axis)


# -- contractions ----------------------------------------------------------------------------------
# An axis is named by a letter; those that an ellipsis stands for by -1, -2, ... from the last on.
Label = str | int
Labels = tuple[Label, ...]


# -- one pair --------------------------------------------------------------------------------------
def _pair(x: Any, lx: Labels, y: Any, ly: Labels, wanted: set[Label]) -> tuple[Any, Labels]:
    """Contract two tensors over the labels they share, less those in `wanted`.

    Returns the result and its labels: those shared and kept, the rest of x, the rest of y.
    """
    stacked = tuple(n for n in lx if n in ly and n in wanted)
    left = tuple(n for n in lx if n not in ly)
    labels = (*stacked, *left, *(n for n in ly if n not in lx))
    return contract_p.public(x, y, labels=(lx, ly, labels)), labels


@composition(
    sample((2, 3), (3, 2), axes=1),
    sample((2, 3), (2, 3)),
    sample((3, 2, 2), (2, 4, 3), axes=((0, 1), (2, 0))),
    sample((2,), (3,), axes=0),
    sample((2, 0), (0, 3), axes=([-1], [0])),
    sample((), (2,), axes=0),
    reference=(lambda np, x, y, axes=2: np.tensordot(x, y, axes)),
    numpy="tensordot: a=x1 b=x2 axes; linalg.tensordot: x1 x2 axes",
)
def tensordot(x1: Any, x2: Any, /, axes: Any = None, *, dims: Any = None) -> Tensor:
    """Return the sum of products over pairs of axes.

    Parameters
    ----------
    x1, x2 : Tensor
    axes : int or pair of sequences of int, optional
        How many of the last axes of `x1` to take with the first ones of `x2`, 2 by default, or the
        axes of `x1` and, in the same order, those of `x2`.
    dims : int or pair of sequences of int, optional
        PyTorch's name for `axes`.

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
    axes = merge_axis_args("tensordot", dims, axes)
    first, second = _paired_axes(x1, x2, 2 if axes is None else axes)
    names: dict[int, str] = {j: f"x{i}" for i, j in zip(first, second, strict=True)}
    lx = tuple(f"x{i}" for i in range(len(x1.shape)))
    ly = tuple(names.get(j, f"y{j}") for j in range(len(x2.shape)))
    result: Tensor = _pair(x1, lx, x2, ly, set())[0]
    return result


def _paired_axes(x1: Any, x2: Any, axes: Any) -> tuple[list[int], list[int]]:
    """Return the axes of `x1` and of `x2` that tensordot sums over, counted from the front."""
    inputs = (("x1", x1), ("x2", x2))
    n, m = len(x1.shape), len(x2.shape)
    axes = to_builtin(axes)
    if isinstance(axes, int) and not isinstance(axes, bool):
        if not 0 <= axes <= min(n, m):
            required = f"a number of axes from 0 to {min(n, m)} required"
            raise ArgumentError(compose("tensordot", required, str(axes), *inputs))
        first, second = list(range(n - axes, n)), list(range(axes))
    else:
        try:
            one, two = ([part] if isinstance(part, int) else list(part) for part in axes)
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


def _summed(x: Any, labels: Labels, wanted: set[Label]) -> tuple[Any, Labels]:
    """Sum over the axes whose labels nobody else needs."""
    axes = tuple(i for i, n in enumerate(labels) if n not in wanted)
    return (reductions.sum(x, axis=axes) if axes else x), tuple(n for n in labels if n in wanted)


@functools.lru_cache(maxsize=1024)
def _plain_pair(equation: str, n: int, m: int) -> tuple[Any, tuple[tuple[int, int], ...]]:
    """Return the labels of a contraction of two operands and the axes that they share.

    The labels are None where it takes more than that: a sum over axes of one operand, diagonals,
    dots, an output that is not spelled out, a wrong equation.
    """
    inputs, _, output = equation.replace(" ", "").partition("->")
    x, comma, y = inputs.partition(",")
    known = (set(x) & set(y)) | set(output)
    to_builtin = comma and "->" in equation and known == set(x) | set(y)
    letters = known.issubset(string.ascii_letters)
    if not to_builtin or not letters or (len(x), len(y)) != (n, m):
        return None, ()
    if any(len(set(term)) < len(term) for term in (x, y, output)):
        return None, ()
    return (tuple(x), tuple(y), tuple(output)), tuple(
        (x.index(a), y.index(a)) for a in set(x) & set(y)
    )


@composition(
    sample((2, 3), (3, 2), equation="ij,jk->ik"),
    sample((3, 3), (3,), equation="ii,i"),
    sample((2, 3, 2), (2, 1, 2), equation="...ij,j...->i..."),
    sample((2, 0), (0,), equation="ij,j->i"),
    sample((), (2, 2), equation=",ab->b"),
    call=lambda f, x, y, *, equation: f(equation, x, y),
    reference=(lambda np, x, y, equation: np.einsum(equation, x, y)),
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
    if len(operands) == 2:
        x, y = operands
        tensors = x.__class__ in TENSOR_CLASSES and y.__class__ is x.__class__
        if tensors and isinstance(equation, str):
            came, other = x._data.shape, y._data.shape
            labels, shared = _plain_pair(equation, len(came), len(other))
            if labels is not None and all(came[i] == other[j] for i, j in shared):
                return contract_p.public(x, y, labels=labels)
    terms, output = _parse(equation, operands)
    pairs = [_single(x, own, equation) for x, own in zip(operands, terms, strict=True)]
    left, terms = [x for x, _ in pairs], [own for _, own in pairs]
    _broadcast(equation, left, terms)
    shapes = tuple(tuple(x.shape) for x in left)
    for step in _path(shapes, tuple(terms), output):
        chosen = [(left.pop(i), terms.pop(i)) for i in sorted(step, reverse=True)][::-1]
        x, labels = chosen[0]
        for k, (y, own) in enumerate(chosen[1:], 2):
            others = {n for _, names in chosen[k:] for n in names}
            wanted = {*output, *others, *(n for names in terms for n in names)}
            x, labels = _summed(x, labels, {*wanted, *own})
            y, own = _summed(y, own, {*wanted, *labels})
            x, labels = _pair(x, labels, y, own, wanted)
        left.append(x)
        terms.append(labels)
    x, labels = _summed(left[0], terms[0], set(output))
    return permute_dims(x, tuple(labels.index(n) for n in output))


# -- sums with products ----------------------------------------------------------------------------
@composition(
    sample((2,), (2, 3), (3,), beta=0.5, alpha=2.0),
    sample((2,), (2, 0), (0,)),
    reference=(lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b)),
    scalars=False,
    methods="addmv addmv_",
)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (mat @ vec); with beta 0, `input` is not looked at.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addmv(pb.tensor([1.0]), pb.tensor([[2.0, 3.0]]), pb.tensor([1.0, 1.0]))
    tensor([6.])
    """
    return added("addmv", input, mv(mat, vec), beta, alpha)


@composition(
    sample((2, 3), (2,), (3,), beta=0.5, alpha=2.0),
    sample((0, 2), (0,), (2,)),
    reference=(lambda np, x, a, b, beta=1, alpha=1: beta * x + alpha * np.outer(a, b)),
    scalars=False,
    methods="addr addr_",
)
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * outer(vec1, vec2); with beta 0, `input` is not looked at.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addr(pb.zeros(1, 2), pb.tensor([2.0]), pb.tensor([1.0, 3.0]))
    tensor([[2., 6.]])
    """
    return added("addr", input, outer(vec1, vec2), beta, alpha)


@composition(
    sample((2, 2), (2, 2, 1), (2, 1, 2), beta=0.5, alpha=2.0),
    sample((1, 2), (0, 1, 2), (0, 2, 2)),
    reference=(lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b).sum(0)),
    scalars=False,
    methods="addbmm addbmm_",
)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * the sum of the products of two stacks of matrices.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addbmm(pb.zeros(1, 1), pb.ones(3, 1, 2), pb.ones(3, 2, 1))
    tensor([[6.]])
    """
    product = sum_p.public(bmm(batch1, batch2), axis=0, keepdims=False)
    return added("addbmm", input, product, beta, alpha)


@composition(
    sample((2, 3), (4, 3)),
    sample((), (2, 2)),
    sample((0,), (0,)),
    methods="inner",
    numpy="inner: a=input b=other",
)
def inner(input: Any, other: Any) -> Tensor:
    """Return the sums of products along the last axes, of every pair of the other axes.

    Raises
    ------
    ShapeError
        If the last axes differ in length.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.inner(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    input, other = tensor_of("inner", input, "input"), tensor_of("inner", other, "other")
    if not input.shape or not other.shape:
        return multiply(input, other)
    if input.shape[-1] != other.shape[-1]:
        came = f"{input.shape[-1]} and {other.shape[-1]}"
        named = (("input", input), ("other", other))
        raise ShapeError(compose("inner", "last axes of one length required", came, *named))
    result: Tensor = tensordot(input, other, axes=((-1,), (-1,)))
    return result


@composition(
    sample((3,), (3,)),
    sample((0,), (0,)),
    scalars=False,
    methods="vdot",
    numpy="vdot: a/flat=input b/flat=other",
)
def vdot(input: Any, other: Any) -> Tensor:
    """Return the sum of conj(input) * other of two vectors.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vdot(pb.tensor([1.0j]), pb.tensor([2.0j]))
    tensor(2.+0.j)
    """
    input, other = tensor_of("vdot", input, "input"), tensor_of("vdot", other, "other")
    if len(input.shape) != 1 or input.shape != other.shape:
        came = f"shapes {input.shape} and {other.shape}"
        named = (("input", input), ("other", other))
        raise ShapeError(compose("vdot", "two vectors of one length required", came, *named))
    return vecdot(input, other)


register_xp(cross, matmul, outer, tensordot, vecdot, space="linalg")
