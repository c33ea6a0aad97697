"""Norms and distances of vectors and matrices.

Edge values, decided once: a norm that is 0 has the derivative 0; elements that tie for the largest
or smallest size share the gradient evenly.
"""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import needs_rank
from pullback.ops.axes import normalize_axes, normalize_axis
from pullback.ops.declare import composition, needs_tensor, register_xp, wrapper_of
from pullback.ops.functions.creation import eye
from pullback.ops.functions.linear_algebra import svdvals
from pullback.ops.functions.manipulation import expand_dims, permute_dims
from pullback.ops.functions.pointwise import add, where
from pullback.ops.functions.reductions import amax, amin, sum
from pullback.ops.matrices import WELL_CONDITIONED, needs_matrices, needs_one_stack
from pullback.ops.primitives.arithmetic import divide, multiply, subtract
from pullback.ops.primitives.comparison import greater
from pullback.ops.primitives.reductions import _INF, vector_norm_p
from pullback.ops.primitives.rounding import absolute
from pullback.ops.samples import both, sample
from pullback.ops.torch_words import torch_words


# -- norms -----------------------------------------------------------------------------------------
@wrapper_of(vector_norm_p, numpy="linalg.vector_norm: x axis keepdims ord")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Return sum(abs(x) ** ord) ** (1 / ord) over axes, all of them by default.

    Parameters
    ----------
    x : Tensor
    axis : int or tuple of int, optional
        All axes by default, as if they were one.
    keepdims : bool
    ord : number
        inf and -inf give the largest and the smallest size, 0 the number of elements that are
        not 0.

    Raises
    ------
    ArgumentError
        If `ord` is negative and there are no elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.vector_norm(pb.tensor([3.0, -4.0]))
    tensor(5.)
    """
    needs_tensor("vector_norm", x)
    return vector_norm_p.public(x, axis=axis, keepdims=keepdims, ord=ord)


@composition(
    sample((3, 2)),
    sample((2, 2, 3), ord="nuc"),
    sample((3, 3), ord=2, keepdims=True),
    sample((2, 3), ord=-2),
    sample((2, 3), ord=1),
    sample((2, 3), ord=-_INF),
    sample((0, 2)),
    domain=WELL_CONDITIONED,
    result_dtype="real",
    scalars=False,
    numpy="linalg.matrix_norm: x keepdims ord",
)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return the norm of a matrix, or of each in a stack.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    keepdims : bool
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        The root of the squares' sum; the sum of the singular values; the largest and smallest sum
        of sizes in a column, singular value, sum of sizes in a row.

    Raises
    ------
    ArgumentError
        If `ord` is another, or the largest or smallest of nothing is asked for.
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.matrix_norm(pb.tensor([[1.0, 2.0], [3.0, -4.0]]), ord=1)
    tensor(6.)
    """
    needs_matrices("matrix_norm", x)
    if ord is None or ord == "fro":
        return vector_norm_p.public(x, axis=(-2, -1), keepdims=keepdims, ord=2)
    if ord == "nuc":
        result = sum(svdvals(x), axis=-1)
    elif ord not in (1, -1, 2, -2, _INF, -_INF):
        required = "ord one of 'fro', 'nuc', 1, -1, 2, -2, inf, -inf required"
        raise ArgumentError(compose("matrix_norm", required, repr(ord)))
    elif 0 in x.shape[-2:]:
        required = f"elements to take the norm of order {ord} of required"
        raise ArgumentError(compose("matrix_norm", required, "none", ("x", x)))
    else:
        across = -2 if abs(ord) == 1 else -1
        sizes = svdvals(x) if abs(ord) == 2 else sum(absolute(x), axis=across)
        result = (amax if ord > 0 else amin)(sizes, axis=-1)
    return expand_dims(expand_dims(result, axis=-1), axis=-1) if keepdims else result


# -- beyond the standard ---------------------------------------------------------------------------
@composition(
    sample((3, 2)),
    sample((2, 3), p=1, dim=1, keepdim=True),
    sample((2, 2, 3), p="nuc", dim=(2, 0)),
    sample(()),
    sample((0, 2), dim=1),
    domain=both(0.5, 2),
    result_dtype="real",
    methods="norm",
)
@torch_words()
def norm(x: Any, p: Any = "fro", axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors, or with ``p="nuc"`` of matrices, as PyTorch's function does.

    Parameters
    ----------
    x : Tensor
    p : number, "fro" or "nuc"
        The order, as for `pullback.linalg.vector_norm`; "fro" is 2, whatever the dimensions.
    dim : int or tuple of int, optional
        What to take together, all dimensions by default; for "nuc" two.
    keepdim : bool

    Raises
    ------
    ArgumentError
        If `p` is "nuc" and there are not two dimensions to take together.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.norm(pb.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    needs_tensor("norm", x)
    if p != "nuc":
        order = 2 if p in ("fro", None) else p
        return vector_norm_p.public(x, axis=axis, keepdims=keepdims, ord=order)
    axes = normalize_axes("norm", axis, len(x.shape))
    if len(axes) != 2:
        required = "two dimensions for p='nuc' required"
        raise ArgumentError(compose("norm", required, str(len(axes)), ("x", x)))
    others = [i for i in range(len(x.shape)) if i not in axes]
    result = matrix_norm(permute_dims(x, (*others, *axes)), ord="nuc")
    for i in sorted(axes) if keepdims else ():
        result = expand_dims(result, axis=i)
    return result


# -- distances -------------------------------------------------------------------------------------
@composition(
    sample((3, 2), (2, 2)),
    sample((2, 1, 3), (2, 3), p=1.0),
    sample((2, 2), (2, 2), p=_INF),
    sample((0, 2), (3, 2)),
    sample((2, 0), (1, 0)),
    result_dtype="real",
    scalars=False,
)
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """Return the distances between the rows of two matrices, or of each pair in two stacks.

    Parameters
    ----------
    x1, x2 : Tensor
        Of shapes (..., n, k) and (..., m, k); the leading axes broadcast.
    p : number
        The order of the norm of the differences.

    Returns
    -------
    Tensor
        Of shape (..., n, m). The derivative of a distance of 0 is 0.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cdist(pb.tensor([[0.0, 0.0]]), pb.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    needs_matrices("cdist", x1, "x1")
    needs_matrices("cdist", x2, "x2")
    if x1.shape[-1] != x2.shape[-1]:
        came = f"{x1.shape[-1]} and {x2.shape[-1]}"
        inputs = (("x1", x1), ("x2", x2))
        raise ShapeError(compose("cdist", "rows of one length required", came, *inputs))
    needs_one_stack("cdist", (x1.shape[:-2], x2.shape[:-2]), x1=x1, x2=x2)
    differences = subtract(expand_dims(x1, axis=-2), expand_dims(x2, axis=-3))
    if x1 is not x2:
        return vector_norm_p.public(differences, axis=-1, keepdims=False, ord=p)
    # A point's distance from itself stays what it is: it moves neither forward nor backward.
    own = eye(x1.shape[-2], dtype="bool", device=x1.device)
    differences = where(expand_dims(own, axis=-1), 1, differences)
    result = vector_norm_p.public(differences, axis=-1, keepdims=False, ord=p)
    x = x1.detach()
    return where(own, vector_norm_p.public(x - x, axis=-1, keepdims=True, ord=p), result)


@composition(
    sample((2, 3), (3,), p=3),
    sample((), ()),
    reference=(lambda np, x, y, p=2: np.linalg.norm((x - y).ravel(), p)),
    result_dtype="real",
    methods="dist",
)
def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """Return the norm of order `p` of input - other, all elements taken as one vector.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dist(pb.tensor([3.0, 0.0]), pb.tensor([0.0, 4.0]))
    tensor(5.)
    """
    return vector_norm(subtract(input, other), ord=p)


@composition(
    sample((3, 2), p=2, dim=0, maxnorm=1.0),
    sample((2, 3), p=1, dim=-1, maxnorm=2.0),
    scalars=False,
    methods="renorm renorm_",
)
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return `input` with each slice along `dim` brought down to a norm of at most `maxnorm`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.renorm(pb.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    needs_rank("renorm", input, 2)
    axis = normalize_axis("renorm", dim, len(input.shape))
    others = tuple(i for i in range(len(input.shape)) if i != axis)
    lengths = vector_norm_p.public(input, axis=others, keepdims=True, ord=p, least=maxnorm)
    smaller = divide(maxnorm, add(lengths, 1e-7))
    return multiply(input, where(greater(lengths, maxnorm), smaller, 1))


register_xp(matrix_norm, vector_norm, space="linalg")
