"""PyTorch's other names for what there is, and its questions with Python's answers."""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import DType, as_dtype, get_default_dtype
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops import (
    comparison,
    determinants,
    elementary,
    elementwise,
    gamma,
    gathering,
    indexing,
    namespace,
    solving,
    trigonometric,
)
from pullback.ops._declare import both, composition, face, integers, needs_tensor, real, sample
from pullback.ops._matrices import adjoint as conjugate_transpose
from pullback.ops._matrices import needs_matrices
from pullback.ops.conversion import to
from pullback.ops.creation import tensor
from pullback.ops.shape import reshape, tensor_of

__all__ = [
    "absolute",
    "adjoint",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "as_tensor",
    "bitwise_not",
    "det",
    "detach",
    "eq",
    "fix",
    "ge",
    "gt",
    "igamma",
    "igammac",
    "inverse",
    "is_complex",
    "is_floating_point",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "le",
    "logspace",
    "lt",
    "masked_fill",
    "matrix_power",
    "mvlgamma",
    "ne",
    "numel",
    "pinverse",
    "promote_types",
    "sgn",
    "slogdet",
    "t",
    "take_along_dim",
    "true_divide",
]

eq, ne, lt = comparison.equal, comparison.not_equal, comparison.less
le, gt, ge = comparison.less_equal, comparison.greater, comparison.greater_equal
bitwise_not = comparison.bitwise_invert
absolute, sgn, fix = elementary.absolute, elementary.sign, elementary.trunc
true_divide = elementwise.divide
arccos, arcsin, arctan = trigonometric.acos, trigonometric.asin, trigonometric.atan
arccosh, arcsinh, arctanh = trigonometric.acosh, trigonometric.asinh, trigonometric.atanh
arctan2 = trigonometric.atan2
igamma, igammac = gamma.gammainc, gamma.gammaincc
det, slogdet = determinants.det, determinants.slogdet
inverse, pinverse, matrix_power = solving.inv, solving.pinv, solving.matrix_power


# -- methods as functions --------------------------------------------------------------------------
@face(indexing.masked_fill_)
def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """Return x with value where mask holds.

    Raises
    ------
    DTypeError
        If the mask is not of bools.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, -2.0])
    >>> pb.masked_fill(x, x < 0, 0.0)
    tensor([1., 0.])
    """
    elementwise.needs_mask("masked_fill", "mask", mask)
    return indexing.masked_fill_(x, mask, value)


@composition(
    sample((2, 3), (2, 1), dim=1),
    sample((2, 3), (4,)),
    domain={"x": both(-2, 2), "indices": integers(0, 1)},
    constants=("indices",),
)
def take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Tensor:
    """Return the element that each of `indices` names along `dim`, or in the flat tensor.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[3.0, 1.0]])
    >>> pb.take_along_dim(x, x.argsort(dim=1), 1)
    tensor([[1., 3.]])
    """
    x, indices = tensor_of("take_along_dim", x), tensor_of("take_along_dim", indices, "indices")
    if dim is None:
        return gathering.take_along_axis(reshape(x, (-1,)), reshape(indices, (-1,)), axis=0)
    return gathering.take_along_axis(x, indices, axis=dim)


@composition(sample((2, 3)), sample((3,)), sample(()))
def t(x: Any) -> Tensor:
    """Return the transpose of a matrix, a view; vectors and numbers as they are.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.t(pb.zeros(2, 3)).shape
    (3, 2)
    """
    return tensor_of("t", x).t()


@composition(sample((2, 3)), sample((2, 0, 1)))
def adjoint(x: Any) -> Tensor:
    """Return the conjugate transposes of matrices.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.adjoint(pb.tensor([[1.0j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    needs_matrices("adjoint", x)
    return conjugate_transpose(tensor_of("adjoint", x), TENSORS)  # type: ignore[no-any-return]


@composition(sample((3,), p=2), sample((), p=3), domain=real(2, 4))
def mvlgamma(x: Any, p: int) -> Tensor:
    """Return the logarithm of the gamma function of `p` variables.

    It is log(pi) p (p - 1) / 4 + the sum of lgamma(x - j / 2) for j from 0 to p - 1.

    Raises
    ------
    ArgumentError
        If `p` is not positive.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mvlgamma(pb.tensor([2.0]), 1)
    tensor([0.])
    """
    needs_tensor("mvlgamma", x)
    if p < 1:
        raise ArgumentError(compose("mvlgamma", "p of at least 1 required", str(p)))
    total = gamma.lgamma(x)
    for j in range(1, p):
        total = elementwise.add(total, gamma.lgamma(elementwise.subtract(x, j / 2)))
    return elementwise.add(total, math.log(math.pi) * p * (p - 1) / 4)


def detach(x: Tensor) -> Tensor:
    """Return the same values without history; see `Tensor.detach`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.detach(pb.ones(1, requires_grad=True)).requires_grad
    False
    """
    return tensor_of("detach", x).detach()


def promote_types(type1: Any, type2: Any) -> DType:
    """Return the dtype that numbers of two dtypes have in common; see `result_type`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.promote_types(pb.int32, pb.float32)
    pullback.float32
    """
    return namespace.result_type(as_dtype(type1), as_dtype(type2))


# -- new tensors -----------------------------------------------------------------------------------
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return `data` as a tensor: itself if it is one already, and nothing changes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return to(data, dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


def logspace(start: float, end: float, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """Return base to the power of `steps` evenly spaced numbers from `start` to `end`.

    Parameters
    ----------
    start, end : float
    steps : int
    base : float
    **options
        `dtype`, `device` and `requires_grad`, as for `linspace`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    requires_grad = options.pop("requires_grad", False)
    dtype = options.pop("dtype", None)
    numbers = TENSORS.linspace(start, end, steps, dtype="float64", **options)
    numbers = TENSORS.astype(
        base**numbers, get_default_dtype() if dtype is None else dtype, copy=False
    )
    return numbers.requires_grad_() if requires_grad else numbers  # type: ignore[no-any-return]


# -- questions -------------------------------------------------------------------------------------
def is_tensor(obj: Any) -> bool:
    """Return whether something is a Tensor.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_tensor(pb.zeros(1)), pb.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def numel(x: Any) -> int:
    """Return the number of elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.numel(pb.zeros(2, 3))
    6
    """
    return tensor_of("numel", x).numel()


def is_floating_point(x: Any) -> bool:
    """Return whether the dtype is a real floating one.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_floating_point(pb.tensor([1]))
    False
    """
    return tensor_of("is_floating_point", x).is_floating_point()


def is_complex(x: Any) -> bool:
    """Return whether the dtype is a complex one.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_complex(pb.tensor([1.0j]))
    True
    """
    return tensor_of("is_complex", x).is_complex()


def is_nonzero(x: Any) -> bool:
    """Return whether the one element is not 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_nonzero(pb.tensor([2.0]))
    True
    """
    return bool(tensor_of("is_nonzero", x))


def is_signed(x: Any) -> bool:
    """Return whether the dtype has negative numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_signed(pb.tensor([True]))
    False
    """
    return tensor_of("is_signed", x).dtype.kind not in "bu"


def is_same_size(x: Any, other: Any) -> bool:
    """Return whether the shapes are equal.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.is_same_size(pb.zeros(2), pb.ones(2))
    True
    """
    return tensor_of("is_same_size", x).shape == tensor_of("is_same_size", other, "other").shape
