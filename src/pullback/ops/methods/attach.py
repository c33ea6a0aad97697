"""The methods of Tensor.

A declaration lists those that are its function, or its in-place form. The classes here have the
others: operators, and methods whose parameters are not the function's, such as PyTorch's ``dim``
and ``keepdim``. Importing this attaches all to Tensor; for type checkers `make stubs` lists them in
``core/tensor/methods.pyi``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pullback.core.function.call_codegen import operator_call as operator
from pullback.core.function.dispatch import is_left_to
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor
from pullback.errors import ArgumentError, ArgumentTypeError
from pullback.ops.declare import METHODS, Primitive, inplace, named_by_errors, needs_tensor
from pullback.ops.functions import (
    complex_numbers,
    indexing,
    joining,
    manipulation,
    pointwise,
    products,
)
from pullback.ops.methods.conversion import KindMethods
from pullback.ops.methods.indexing import GatheringMethods
from pullback.ops.methods.inplace import InplaceMethods, inplace_form
from pullback.ops.methods.linear_algebra import MatrixMethods
from pullback.ops.methods.namespace import NamespaceMethods
from pullback.ops.methods.pointwise import ElementaryMethods
from pullback.ops.methods.random import RandomMethods
from pullback.ops.methods.reductions import ReducingMethods
from pullback.ops.methods.shape import ShapeMethods
from pullback.ops.primitives import arithmetic, comparison as comparison_primitives, rounding
from pullback.ops.primitives.arithmetic import add_p, floor_divide_p, remainder_p
from pullback.ops.primitives.comparison import (
    bitwise_and_p,
    bitwise_left_shift_p,
    bitwise_or_p,
    bitwise_right_shift_p,
    bitwise_xor_p,
)
from pullback.ops.primitives.products import matmul_p
from pullback.ops.primitives.shape import permute_p, reshape_p
from pullback.ops.torch_words import method_of, torch_words

_INTS = frozenset((int,))


def _flat(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def _mirrored(function: Callable[..., Tensor], name: str) -> Any:
    """Return the method for an operator whose left operand left it to the tensor on the right."""

    def call(self: Tensor, other: Any) -> Any:
        return function(other, self)

    call.__name__ = name
    return call


def _equality(function: Callable[..., Tensor]) -> Any:
    """Return a comparison that what is no array is never equal to, unless it says so itself."""

    def call(self: Tensor, other: Any) -> Any:
        try:
            return function(self, other)
        except ArgumentTypeError:
            return NotImplemented

    call.__name__ = function.__name__
    return call


class TensorMethods(
    ElementaryMethods,
    GatheringMethods,
    InplaceMethods,
    KindMethods,
    MatrixMethods,
    NamespaceMethods,
    RandomMethods,
    ReducingMethods,
    ShapeMethods,
):
    """The methods of Tensor that no declaration lists."""

    __slots__ = ()

    # -- operators ----------------------------------------------------------------------------
    __add__ = __radd__ = operator(add_p, "__add__", "__radd__")
    __sub__ = operator(arithmetic.sub_p, "__sub__", "__rsub__")
    __rsub__ = _mirrored(arithmetic.subtract, "__rsub__")
    __mul__ = __rmul__ = operator(arithmetic.mul_p, "__mul__", "__rmul__")
    __truediv__ = operator(arithmetic.div_p, "__truediv__", "__rtruediv__")
    __rtruediv__ = _mirrored(arithmetic.divide, "__rtruediv__")
    __floordiv__ = operator(floor_divide_p, "__floordiv__", "__rfloordiv__")
    __rfloordiv__ = _mirrored(arithmetic.floor_divide, "__rfloordiv__")
    __mod__ = operator(remainder_p, "__mod__", "__rmod__")
    __rmod__ = _mirrored(arithmetic.remainder, "__rmod__")
    __pow__ = operator(arithmetic.pow_p, "__pow__", "__rpow__")
    __rpow__ = _mirrored(arithmetic.pow, "__rpow__")

    def __matmul__(self: Any, other: Any) -> Any:
        if other.__class__ not in TENSOR_CLASSES and is_left_to(other, "__rmatmul__"):
            return NotImplemented
        return products.matmul(self, other)

    __rmatmul__ = _mirrored(products.matmul, "__rmatmul__")
    __neg__ = arithmetic.negative
    __pos__ = arithmetic.positive
    __abs__ = rounding.absolute
    __eq__ = _equality(comparison_primitives.equal)
    __ne__ = _equality(comparison_primitives.not_equal)
    __lt__ = operator(comparison_primitives.lt_p, "__lt__", "__gt__")
    __le__ = operator(comparison_primitives.le_p, "__le__", "__ge__")
    __gt__ = operator(comparison_primitives.gt_p, "__gt__", "__lt__")
    __ge__ = operator(comparison_primitives.ge_p, "__ge__", "__le__")
    __and__ = __rand__ = operator(bitwise_and_p, "__and__", "__rand__")
    __or__ = __ror__ = operator(bitwise_or_p, "__or__", "__ror__")
    __xor__ = __rxor__ = operator(bitwise_xor_p, "__xor__", "__rxor__")
    __lshift__ = operator(bitwise_left_shift_p, "__lshift__", "__rlshift__")
    __rlshift__ = _mirrored(bitwise_left_shift_p.public, "__rlshift__")
    __rshift__ = operator(bitwise_right_shift_p, "__rshift__", "__rrshift__")
    __rrshift__ = _mirrored(bitwise_right_shift_p.public, "__rrshift__")
    __invert__ = comparison_primitives.bitwise_invert
    __ifloordiv__ = inplace(floor_divide_p)
    __imod__ = inplace(remainder_p)
    __imatmul__ = inplace(matmul_p)
    __iand__ = inplace(bitwise_and_p)
    __ior__ = inplace(bitwise_or_p)
    __ixor__ = inplace(bitwise_xor_p)
    __ilshift__ = inplace(bitwise_left_shift_p)
    __irshift__ = inplace(bitwise_right_shift_p)
    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __round__(self: Any, ndigits: int | None = None) -> Tensor:
        return pointwise.round(self, decimals=ndigits or 0)

    def __iter__(self: Any) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentTypeError("iteration: at least 1 dimension required, got a 0-d tensor")
        return iter(joining.unstack(self))

    # -- functions with other parameters ----------------------------------------------------
    def where(self: Any, condition: Any, other: Any) -> Tensor:
        """Return this tensor where `condition` holds, else `other`."""
        return pointwise.where(condition, self, other)

    # -- matrices -----------------------------------------------------------------------------
    def t(self: Any) -> Tensor:
        """Return the transpose of a matrix, a view; vectors and scalars as they are."""
        ndim = len(self._data.shape)
        if ndim == 2:
            return permute_p.public(self, axes=(1, 0))
        if ndim > 2:
            raise ArgumentError(
                f"t: needs at most 2 dimensions, got shape {self.shape}.\nhint: use transpose."
            )
        return manipulation.reshape(self, self.shape)

    @property
    def T(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The tensor with its axes reversed, a view."""
        return manipulation.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The tensor with the last two axes exchanged, a view."""
        return manipulation.matrix_transpose(self)

    # -- shape --------------------------------------------------------------------------------
    def permute(self: Any, *order: Any, dims: Any = None) -> Tensor:
        """Return this tensor with its axes in the order `dims`, a view."""
        return manipulation.permute_dims(self, _flat(order) if dims is None else dims)

    def reshape(self: Any, *sizes: Any) -> Tensor:
        """Return this tensor in another shape, a view where the memory allows."""
        if _INTS.issuperset(map(type, sizes)):
            return reshape_p.public(self, shape=sizes)
        return manipulation.reshape(self, _flat(sizes))

    def view(self: Any, *sizes: Any) -> Tensor:
        """Return a view of this tensor in another shape; raise where that needs a copy."""
        return manipulation.reshape(self, _flat(sizes), copy=False)

    def view_as(self: Any, other: Tensor) -> Tensor:
        """Return a view of this tensor in the shape of `other`."""
        return manipulation.reshape(self, other.shape, copy=False)

    def reshape_as(self: Any, other: Tensor) -> Tensor:
        """Return this tensor in the shape of `other`."""
        return manipulation.reshape(self, other.shape)

    def unsqueeze(self: Any, dim: int) -> Tensor:
        """Return a view with an axis of length 1 inserted at `dim`."""
        return manipulation.expand_dims(self, dim)

    @torch_words()
    def squeeze(self: Any, axis: Any = None) -> Tensor:
        """Return a view without axes of length 1: all of them, or those of `dim` that are."""
        return manipulation.squeeze_where_possible(self, axis)

    def expand(self: Any, *sizes: Any) -> Tensor:
        """Return a view repeated to a larger shape; -1 keeps a length."""
        return manipulation.expand(self, _flat(sizes))

    def expand_as(self: Any, other: Tensor) -> Tensor:
        """Return a view repeated to the shape of `other`."""
        needs_tensor("expand_as", other, "other")
        return manipulation.broadcast_to(self, other.shape)

    def broadcast_to(self: Any, *sizes: Any) -> Tensor:
        """Return a view repeated to a larger shape."""
        return manipulation.broadcast_to(self, _flat(sizes))

    def flip(self: Any, *along: Any, dims: Any = None) -> Tensor:
        """Return this tensor with the order along `dims` reversed."""
        return manipulation.flip(self, axis=_flat(along) if dims is None else dims)

    def stack(self: Any, tensors: Any, dim: int = 0) -> Tensor:
        """Join `tensors` along a new axis."""
        return joining.stack(tensors, axis=dim)

    # -- the parts of complex numbers -------------------------------------------------------------
    @property
    def real(self: Any) -> Tensor:
        """The real part, a view for complex tensors; a real tensor itself."""
        return complex_numbers.real(self)

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary part of a complex tensor, a view."""
        return complex_numbers.imag(self)


_OF_ANY_CLASS = {"__module__", "__doc__", "__slots__", "__dict__", "__weakref__", "__hash__"}


def methods_of(*classes: type) -> dict[str, Any]:
    """Return what classes define, by name; a later class prevails."""
    defined = {name: value for cls in classes for name, value in vars(cls).items()}
    return {name: value for name, value in defined.items() if name not in _OF_ANY_CLASS}


def declared_methods() -> dict[str, Callable[..., Any]]:
    """Return the methods that declarations list, by name."""
    return {name: _as_method(name, function) for name, function in METHODS.items()}


def _as_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if name.endswith("_"):
        return inplace_form(function)
    op = getattr(function, "primitive", None)
    if isinstance(op, Primitive) and op.public is function and "axis" in op.settings:
        return method_of(op, name)
    return function


def attach(methods: dict[str, Any]) -> None:
    """Give Tensor these methods, which errors name; what Tensor defines itself stays."""
    for name, value in methods.items():
        if name not in vars(Tensor):
            setattr(Tensor, name, value)
            is_written = getattr(value, "__module__", "").startswith("pullback.ops.")
            if is_written and value.__code__.co_name == name and name[0] != "_":
                value.__qualname__ = f"Tensor.{name}"  # in errors of Python's own
                named_by_errors(value)


attach(methods_of(*TensorMethods.__mro__[-2::-1]))
attach(declared_methods())
