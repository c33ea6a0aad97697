"""The methods of Tensor, as PyTorch users type them: ``dim`` and ``keepdim``.

Owns the second face of the operations and nothing else: each method is one call. The class is
also what type checkers see as the base of `Tensor`; at run time its functions are attached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError
from pullback.ops import (
    activations,
    comparison,
    complex_,
    elementary,
    elementwise,
    indexing,
    joining,
    names,
    products,
    shape,
    trigonometric,
)
from pullback.ops._arithmetic_methods import ArithmeticMethods
from pullback.ops._axes import either
from pullback.ops._declare import inplace, needs_tensor
from pullback.ops._elementary_methods import ElementaryMethods
from pullback.ops._gathering_methods import GatheringMethods
from pullback.ops._inplace import InplaceMethods
from pullback.ops._kind_methods import KindMethods
from pullback.ops._matrix_methods import MatrixMethods
from pullback.ops._numpy import NumPyMethods
from pullback.ops._random_methods import RandomMethods
from pullback.ops._reducing import ReducingMethods
from pullback.ops._shape_methods import ShapeMethods
from pullback.ops.namespace import NamespaceMethods


def _flat(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def _operator(function: Callable[..., Tensor], mirrored: bool = False) -> Any:
    """Return a binary operator method that leaves what it does not know to the other operand."""
    name = function.__name__

    def call(self: Tensor, other: Any) -> Any:
        try:
            return function(other, self) if mirrored else function(self, other)
        except ArgumentTypeError:
            return NotImplemented

    call.__name__ = name
    return call


class TensorMethods(
    ArithmeticMethods,
    ElementaryMethods,
    GatheringMethods,
    InplaceMethods,
    KindMethods,
    MatrixMethods,
    NamespaceMethods,
    NumPyMethods,
    RandomMethods,
    ReducingMethods,
    ShapeMethods,
):
    """Everything a tensor can do; see `pullback.Tensor` for what it is."""

    __slots__ = ()

    # -- operators ----------------------------------------------------------------------------
    __add__ = __radd__ = elementwise.add_
    __sub__ = elementwise.subtract
    __rsub__ = _operator(elementwise.subtract, mirrored=True)
    __mul__ = __rmul__ = elementwise.multiply
    __truediv__ = elementwise.divide
    __rtruediv__ = _operator(elementwise.divide, mirrored=True)
    __floordiv__ = _operator(elementwise.floor_divide)
    __rfloordiv__ = _operator(elementwise.floor_divide, mirrored=True)
    __mod__ = _operator(elementwise.remainder)
    __rmod__ = _operator(elementwise.remainder, mirrored=True)
    __pow__ = elementwise.power
    __rpow__ = _operator(elementwise.power, mirrored=True)
    __matmul__ = products.matmul
    __rmatmul__ = _operator(products.matmul, mirrored=True)
    __neg__ = elementwise.negative
    __pos__ = elementwise.positive
    __abs__ = elementary.absolute
    __eq__ = _operator(comparison.equal)
    __ne__ = _operator(comparison.not_equal)
    __lt__ = _operator(comparison.less)
    __le__ = _operator(comparison.less_equal)
    __gt__ = _operator(comparison.greater)
    __ge__ = _operator(comparison.greater_equal)
    __and__ = __rand__ = _operator(comparison.bitwise_and)
    __or__ = __ror__ = _operator(comparison.bitwise_or)
    __xor__ = __rxor__ = _operator(comparison.bitwise_xor)
    __lshift__ = _operator(comparison.bitwise_left_shift)
    __rlshift__ = _operator(comparison.bitwise_left_shift, mirrored=True)
    __rshift__ = _operator(comparison.bitwise_right_shift)
    __rrshift__ = _operator(comparison.bitwise_right_shift, mirrored=True)
    __invert__ = comparison.bitwise_invert
    __ifloordiv__ = inplace(elementwise.floor_divide)
    __imod__ = inplace(elementwise.remainder)
    __imatmul__ = inplace(products.matmul_)
    __iand__ = inplace(comparison.bitwise_and)
    __ior__ = inplace(comparison.bitwise_or)
    __ixor__ = inplace(comparison.bitwise_xor)
    __ilshift__ = inplace(comparison.bitwise_left_shift)
    __irshift__ = inplace(comparison.bitwise_right_shift)
    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __iter__(self: Any) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentTypeError("iteration: at least 1 dimension required, got a 0-d tensor")
        return iter(joining.unstack(self))

    # -- element by element -------------------------------------------------------------------
    add, sub, mul, div = (
        elementwise.add,
        elementwise.sub,
        elementwise.multiply,
        elementwise.div,
    )
    subtract, multiply, divide = sub, mul, div
    pow, neg, exp, log, sqrt, abs = (
        elementwise.power,
        elementwise.negative,
        elementary.exp,
        elementary.log,
        elementary.sqrt,
        elementary.absolute,
    )
    expm1, log1p, square, reciprocal = (
        elementary.expm1,
        elementary.log1p,
        elementary.square,
        elementary.reciprocal,
    )
    sin, cos, tan, tanh, sigmoid, relu = (
        trigonometric.sin,
        trigonometric.cos,
        trigonometric.tan,
        trigonometric.tanh,
        activations.sigmoid,
        activations.relu,
    )
    sign, floor, ceil, round, trunc = (
        elementary.sign,
        elementary.floor,
        elementary.ceil,
        elementary.round,
        elementary.trunc,
    )
    maximum, minimum, conj = elementwise.maximum, elementwise.minimum, complex_.conj
    eq, ne, lt, le, gt, ge = (
        comparison.equal,
        comparison.not_equal,
        comparison.less,
        comparison.less_equal,
        comparison.greater,
        comparison.greater_equal,
    )
    isfinite, isinf, isnan = comparison.isfinite, comparison.isinf, comparison.isnan
    clamp = clip = elementwise.clamp

    def where(self: Any, condition: Any, other: Any) -> Tensor:
        """Return this tensor where `condition` holds, else `other`."""
        return elementwise.where(condition, self, other)

    masked_fill = names.masked_fill

    # -- matrices -----------------------------------------------------------------------------

    def t(self: Any) -> Tensor:
        """Return the transpose of a matrix, a view; vectors and scalars as they are."""
        if self.ndim > 2:
            raise ArgumentError(
                f"t: needs at most 2 dimensions, got shape {self.shape}.\nhint: use transpose."
            )
        return shape.transpose(self, 0, 1) if self.ndim == 2 else shape.reshape(self, self.shape)

    @property
    def T(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The tensor with its axes reversed, a view."""
        return shape.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The tensor with the last two axes exchanged, a view."""
        return shape.matrix_transpose(self)

    # -- shape --------------------------------------------------------------------------------
    transpose = swapaxes = shape.transpose
    split, chunk, sum_to_size = joining.split, joining.chunk, shape.sum_to_size

    def permute(self: Any, *order: Any, dims: Any = None) -> Tensor:
        """Return this tensor with its axes in the order `dims`, a view."""
        return shape.permute_dims(self, _flat(order) if dims is None else dims)

    def reshape(self: Any, *sizes: Any) -> Tensor:
        """Return this tensor in another shape, a view where the memory allows."""
        return shape.reshape(self, _flat(sizes))

    def view(self: Any, *sizes: Any) -> Tensor:
        """Return a view of this tensor in another shape; raise where that needs a copy."""
        return shape.reshape(self, _flat(sizes), copy=False)

    def view_as(self: Any, other: Tensor) -> Tensor:
        """Return a view of this tensor in the shape of `other`."""
        return shape.reshape(self, other.shape, copy=False)

    def reshape_as(self: Any, other: Tensor) -> Tensor:
        """Return this tensor in the shape of `other`."""
        return shape.reshape(self, other.shape)

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Return this tensor with the dimensions from `start_dim` to `end_dim` made one."""
        return shape.flatten(self, start_dim, end_dim)

    def unsqueeze(self: Any, dim: int) -> Tensor:
        """Return a view with an axis of length 1 inserted at `dim`."""
        return shape.expand_dims(self, dim)

    def squeeze(self: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
        """Return a view without axes of length 1: all of them, or those of `dim` that are."""
        over = either("squeeze", dim, axis)
        return shape.squeeze_where_possible(self, over)

    def expand(self: Any, *sizes: Any) -> Tensor:
        """Return a view repeated to a larger shape; -1 keeps a length."""
        return shape.expand(self, _flat(sizes))

    def expand_as(self: Any, other: Tensor) -> Tensor:
        """Return a view repeated to the shape of `other`."""
        needs_tensor("expand_as", other, "other")
        return shape.broadcast_to(self, other.shape)

    def broadcast_to(self: Any, *sizes: Any) -> Tensor:
        """Return a view repeated to a larger shape."""
        return shape.broadcast_to(self, _flat(sizes))

    def unbind(self: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """Return views of the slices along `dim`."""
        return joining.unstack(self, axis=dim)

    def flip(self: Any, *along: Any, dims: Any = None) -> Tensor:
        """Return this tensor with the order along `dims` reversed."""
        return shape.flip(self, axis=_flat(along) if dims is None else dims)

    def select(self: Any, dim: int, index: int) -> Tensor:
        """Return a view of one slice along `dim`."""
        return shape.select(self, dim, index)

    def narrow(self: Any, dim: int, start: int, length: int) -> Tensor:
        """Return a view of `length` slices along `dim` from `start` on."""
        return shape.narrow(self, dim, start, length)

    def stack(self: Any, tensors: Any, dim: int = 0) -> Tensor:
        """Join `tensors` along a new axis."""
        return joining.stack(tensors, axis=dim)

    # -- the parts of complex numbers -------------------------------------------------------------
    @property
    def real(self: Any) -> Tensor:
        """The real part, a view for complex tensors; a real tensor itself."""
        return complex_.real(self)

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary part of a complex tensor, a view."""
        return complex_.imag(self)


_OF_ANY_CLASS = {"__module__", "__doc__", "__slots__", "__dict__", "__weakref__", "__hash__"}


def attach() -> None:
    """Give Tensor its methods; what it defines itself stays."""
    for methods in TensorMethods.__mro__[-2::-1]:
        for name, value in vars(methods).items():
            if name not in _OF_ANY_CLASS and name not in vars(Tensor):
                setattr(Tensor, name, value)


attach()
