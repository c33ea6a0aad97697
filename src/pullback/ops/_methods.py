"""The methods of Tensor, as PyTorch users type them: ``dim`` and ``keepdim``.

Owns the second face of the operations and nothing else: each method is one call. The class is
also what type checkers see as the base of `Tensor`; at run time its functions are attached.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from typing import Any

from pullback.arrays import library_of
from pullback.core.inplace import apply_inplace
from pullback.core.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    compose,
)
from pullback.ops import conversion, creation, elementwise, indexing, linalg, reductions, shape
from pullback.ops._declare import inplace, needs_tensor
from pullback.ops._values import values_and_indices

# Inside the class bool, int and float are methods.
Flag = bool
Int = int
Real = float


def _flat(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def _either(name: str, dim: Any, axis: Any) -> Any:
    """Return the axis, given under PyTorch's name or the standard's."""
    if axis is not None and dim is not None:
        raise ArgumentError(f"{name}: give dim or axis, not both")
    return axis if dim is None else dim


def _operator(function: Any, mirrored: bool = False) -> Any:
    """Return a binary operator method that leaves what it does not know to the other operand."""
    name = function.__name__

    def call(self: Tensor, other: Any) -> Tensor:
        try:
            return function(other, self) if mirrored else function(self, other)
        except ArgumentTypeError:
            return NotImplemented

    call.__name__ = name
    return call


class TensorMethods:
    """Everything a tensor can do; see `pullback.Tensor` for what it is."""

    __slots__ = ()

    # -- operators ----------------------------------------------------------------------------
    __add__ = __radd__ = elementwise.add
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
    __matmul__ = linalg.matmul
    __rmatmul__ = _operator(linalg.matmul, mirrored=True)
    __neg__ = elementwise.negative
    __pos__ = elementwise.positive
    __abs__ = elementwise.absolute
    __eq__ = _operator(elementwise.equal)
    __ne__ = _operator(elementwise.not_equal)
    __lt__ = _operator(elementwise.less)
    __le__ = _operator(elementwise.less_equal)
    __gt__ = _operator(elementwise.greater)
    __ge__ = _operator(elementwise.greater_equal)
    __and__ = __rand__ = _operator(elementwise.bitwise_and)
    __or__ = __ror__ = _operator(elementwise.bitwise_or)
    __xor__ = __rxor__ = _operator(elementwise.bitwise_xor)
    __invert__ = elementwise.bitwise_invert
    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __iter__(self: Any) -> Iterator[Tensor]:
        return iter(shape.unstack(self))

    # -- element by element -------------------------------------------------------------------
    add, sub, mul, div = (
        elementwise.add,
        elementwise.subtract,
        elementwise.multiply,
        elementwise.divide,
    )
    subtract, multiply, divide = sub, mul, div
    pow, neg, exp, log, sqrt, abs = (
        elementwise.power,
        elementwise.negative,
        elementwise.exp,
        elementwise.log,
        elementwise.sqrt,
        elementwise.absolute,
    )
    expm1, log1p, square, reciprocal = (
        elementwise.expm1,
        elementwise.log1p,
        elementwise.square,
        elementwise.reciprocal,
    )
    sin, cos, tan, tanh, sigmoid, relu = (
        elementwise.sin,
        elementwise.cos,
        elementwise.tan,
        elementwise.tanh,
        elementwise.sigmoid,
        elementwise.relu,
    )
    sign, floor, ceil, round, trunc = (
        elementwise.sign,
        elementwise.floor,
        elementwise.ceil,
        elementwise.round,
        elementwise.trunc,
    )
    maximum, minimum, conj = elementwise.maximum, elementwise.minimum, elementwise.conj
    eq, ne, lt, le, gt, ge = (
        elementwise.equal,
        elementwise.not_equal,
        elementwise.less,
        elementwise.less_equal,
        elementwise.greater,
        elementwise.greater_equal,
    )
    isfinite, isinf, isnan = elementwise.isfinite, elementwise.isinf, elementwise.isnan
    clamp = clip = elementwise.clamp

    def where(self: Any, condition: Any, other: Any) -> Tensor:
        """Return this tensor where `condition` holds, else `other`."""
        return elementwise.where(condition, self, other)

    def masked_fill(self: Any, mask: Any, value: Any) -> Tensor:
        """Return this tensor with `value` where `mask` holds."""
        elementwise.needs_mask("masked_fill", "mask", mask)
        return indexing.masked_fill_(self, mask, value)

    # -- reductions ---------------------------------------------------------------------------
    def sum(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False, dtype: Any = None) -> Tensor:  # fmt: skip
        """Return the sum over `dim`, all dimensions by default."""
        over = _either("sum", dim, axis)
        return reductions.sum(self, axis=over, dtype=dtype, keepdims=keepdim or keepdims)

    def mean(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the mean over `dim`, all dimensions by default."""
        return reductions.mean(self, axis=_either("mean", dim, axis), keepdims=keepdim or keepdims)

    def prod(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False, dtype: Any = None) -> Tensor:  # fmt: skip
        """Return the product over `dim`, all dimensions by default."""
        over = _either("prod", dim, axis)
        return reductions.prod(self, axis=over, dtype=dtype, keepdims=keepdim or keepdims)

    def var(self: Any, dim: Any = None, keepdim: Flag = False, *, correction: Real = 1, unbiased: Flag | None = None, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the variance over `dim`, with Bessel's correction by default."""
        if unbiased is not None:
            correction = int(unbiased)
        over = _either("var", dim, axis)
        return reductions.var(self, axis=over, correction=correction, keepdims=keepdim or keepdims)

    def std(self: Any, dim: Any = None, keepdim: Flag = False, *, correction: Real = 1, unbiased: Flag | None = None, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the standard deviation over `dim`, with Bessel's correction by default."""
        if unbiased is not None:
            correction = int(unbiased)
        over = _either("std", dim, axis)
        return reductions.std(self, axis=over, correction=correction, keepdims=keepdim or keepdims)

    def max(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Any:  # fmt: skip
        """Return the largest element; with an int `dim`, a pair of values and indices along it."""
        return _extreme(self, "max", dim, axis, keepdim or keepdims)

    def min(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Any:  # fmt: skip
        """Return the smallest element; with an int `dim`, a pair of values and indices along it."""
        return _extreme(self, "min", dim, axis, keepdim or keepdims)

    def amax(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the largest elements over `dim`; ties share the gradient."""
        return reductions.max(self, axis=_either("amax", dim, axis), keepdims=keepdim or keepdims)

    def amin(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the smallest elements over `dim`; ties share the gradient."""
        return reductions.min(self, axis=_either("amin", dim, axis), keepdims=keepdim or keepdims)

    def any(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return whether any element over `dim` is true."""
        return reductions.any_(self, axis=_either("any", dim, axis), keepdims=keepdim or keepdims)

    def all(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return whether all elements over `dim` are true."""
        return reductions.all_(self, axis=_either("all", dim, axis), keepdims=keepdim or keepdims)

    def argmax(self: Any, dim: Int | None = None, keepdim: Flag = False, *, axis: Int | None = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the index of the largest element along `dim`, in the flat tensor by default."""
        return reductions.argmax(
            self, axis=_either("argmax", dim, axis), keepdims=keepdim or keepdims
        )

    def argmin(self: Any, dim: Int | None = None, keepdim: Flag = False, *, axis: Int | None = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return the index of the smallest element along `dim`, in the flat tensor by default."""
        return reductions.argmin(
            self, axis=_either("argmin", dim, axis), keepdims=keepdim or keepdims
        )

    def cumsum(self: Any, dim: Int | None = None, *, axis: Int | None = None) -> Tensor:
        """Return the running sum along `dim`."""
        return reductions.cumsum(self, axis=_either("cumsum", dim, axis))

    def softmax(self: Any, dim: Int | None = None, *, axis: Int | None = None) -> Tensor:
        """Return exp(x) normalised to sum 1 along `dim`."""
        return reductions.softmax(self, axis=_either("softmax", dim, axis))

    def log_softmax(self: Any, dim: Int | None = None, *, axis: Int | None = None) -> Tensor:
        """Return the logarithm of softmax along `dim`."""
        return reductions.log_softmax(self, axis=_either("log_softmax", dim, axis))

    def logsumexp(self: Any, dim: Any = None, keepdim: Flag = False, *, axis: Any = None, keepdims: Flag = False) -> Tensor:  # fmt: skip
        """Return log(sum(exp(x))) over `dim`, all dimensions by default."""
        return reductions.logsumexp(
            self, axis=_either("logsumexp", dim, axis), keepdims=keepdim or keepdims
        )

    # -- matrices -----------------------------------------------------------------------------
    mm, matmul = linalg.mm, linalg.matmul

    def t(self: Any) -> Tensor:
        """Return the transpose of a matrix, a view; vectors and scalars as they are."""
        if self.ndim > 2:
            raise ArgumentError(
                f"t: needs at most 2 dimensions, got shape {self.shape}.\nhint: use transpose."
            )
        return shape.transpose(self, 0, self.ndim - 1) if self.ndim == 2 else shape.reshape(self, self.shape)  # fmt: skip

    @property
    def T(self: Any) -> Tensor:
        """This tensor with its axes reversed, a view."""
        return shape.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self: Any) -> Tensor:
        """This tensor with the last two axes exchanged, a view."""
        return shape.matrix_transpose(self)

    # -- shape --------------------------------------------------------------------------------
    transpose = swapaxes = shape.transpose
    split, chunk, sum_to_size = shape.split, shape.chunk, shape.sum_to_size

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

    def flatten(self: Any, start_dim: Int = 0, end_dim: Int = -1) -> Tensor:
        """Return this tensor with the dimensions from `start_dim` to `end_dim` made one."""
        return shape.flatten(self, start_dim, end_dim)

    def unsqueeze(self: Any, dim: Int) -> Tensor:
        """Return a view with an axis of length 1 inserted at `dim`."""
        return shape.expand_dims(self, dim)

    def squeeze(self: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
        """Return a view without axes of length 1: all of them, or those of `dim` that are."""
        over = _either("squeeze", dim, axis)
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

    def unbind(self: Any, dim: Int = 0) -> tuple[Tensor, ...]:
        """Return views of the slices along `dim`."""
        return shape.unstack(self, axis=dim)

    def flip(self: Any, *along: Any, dims: Any = None) -> Tensor:
        """Return this tensor with the order along `dims` reversed."""
        return shape.flip(self, axis=_flat(along) if dims is None else dims)

    def diagonal(self: Any) -> Tensor:
        """Return the diagonal of a matrix, a view."""
        return shape.diagonal(self)

    def select(self: Any, dim: Int, index: Int) -> Tensor:
        """Return a view of one slice along `dim`."""
        return shape.select(self, dim, index)

    def narrow(self: Any, dim: Int, start: Int, length: Int) -> Tensor:
        """Return a view of `length` slices along `dim` from `start` on."""
        return shape.narrow(self, dim, start, length)

    def stack(self: Any, tensors: Any, dim: Int = 0) -> Tensor:
        """Join `tensors` along a new axis."""
        return shape.stack(tensors, axis=dim)

    # -- copies and casts ---------------------------------------------------------------------
    clone, to = conversion.clone, conversion.to

    def type(self: Any, dtype: Any) -> Tensor:
        """Return this tensor in another dtype."""
        return conversion.to(self, dtype)

    def float(self: Any) -> Tensor:
        """Return this tensor as float32."""
        return conversion.to(self, "float32")

    def double(self: Any) -> Tensor:
        """Return this tensor as float64."""
        return conversion.to(self, "float64")

    def half(self: Any) -> Tensor:
        """Return this tensor as float16."""
        return conversion.to(self, "float16")

    def int(self: Any) -> Tensor:
        """Return this tensor as int32."""
        return conversion.to(self, "int32")

    def long(self: Any) -> Tensor:
        """Return this tensor as int64."""
        return conversion.to(self, "int64")

    def bool(self: Any) -> Tensor:
        """Return this tensor as bool."""
        return conversion.to(self, "bool")

    def cpu(self: Any) -> Tensor:
        """Return this tensor on the CPU."""
        return conversion.to(self, device="cpu")

    def cuda(self: Any, device: Any = None) -> Tensor:
        """Return this tensor on a GPU, the current one by default."""
        return conversion.to(self, device="cuda" if device is None else f"cuda:{device}")

    def contiguous(self: Any) -> Tensor:
        """Return this tensor with its elements in row-major order, itself where they are."""
        return self if library_of(self._data).is_contiguous(self.data_array()) else conversion.clone(self)  # fmt: skip

    def is_contiguous(self: Any) -> Any:
        """Return whether the elements lie in row-major order."""
        return library_of(self._data).is_contiguous(self.data_array())

    def new_zeros(self: Any, *sizes: Any) -> Tensor:
        """Return zeros of this tensor's dtype and device."""
        return creation.zeros(*sizes, dtype=self.dtype, device=self.device)

    def new_ones(self: Any, *sizes: Any) -> Tensor:
        """Return ones of this tensor's dtype and device."""
        return creation.ones(*sizes, dtype=self.dtype, device=self.device)

    def new_tensor(self: Any, data: Any) -> Tensor:
        """Return `data` as a tensor of this one's dtype and device."""
        return creation.new_tensor(self, data)

    # -- in place -----------------------------------------------------------------------------
    add_, sub_, mul_, div_, pow_ = (
        inplace(elementwise.add),
        inplace(elementwise.subtract),
        inplace(elementwise.multiply),
        inplace(elementwise.divide),
        inplace(elementwise.power),
    )
    neg_, exp_, log_, sqrt_, abs_, square_, reciprocal_ = (
        inplace(elementwise.negative),
        inplace(elementwise.exp),
        inplace(elementwise.log),
        inplace(elementwise.sqrt),
        inplace(elementwise.absolute),
        inplace(elementwise.square),
        inplace(elementwise.reciprocal),
    )
    sin_, cos_, tanh_, sigmoid_, relu_ = (
        inplace(elementwise.sin),
        inplace(elementwise.cos),
        inplace(elementwise.tanh),
        inplace(elementwise.sigmoid),
        inplace(elementwise.relu),
    )
    floor_, ceil_, round_ = (
        inplace(elementwise.floor),
        inplace(elementwise.ceil),
        inplace(elementwise.round),
    )
    __iadd__, __isub__, __imul__, __itruediv__, __ipow__ = add_, sub_, mul_, div_, pow_

    def masked_fill_(self: Any, mask: Any, value: Any) -> Tensor:
        """Write `value` where `mask` holds, in place, and return this tensor."""
        elementwise.needs_mask("masked_fill_", "mask", mask)
        return _fill_masked(self, mask, value)

    def clamp_(self: Any, min: Any = None, max: Any = None) -> Tensor:
        """Limit this tensor to [min, max] in place and return it."""
        if not elementwise.clamps_by_numbers(self, min, max) or (min is None and max is None):
            return _clamp_by_tensors(self, min, max)
        settings = {"min": min, "max": max}
        return apply_inplace(elementwise.clamp_numbers.primitive, self, (), settings)

    def copy_(self: Any, src: Any) -> Tensor:
        """Write `src`, broadcast, into this tensor and return it."""
        source = conversion.asarray_like(src, self)
        return apply_inplace(conversion.copy_into.primitive, self, (source,), {})

    def fill_(self: Any, value: Any) -> Tensor:
        """Write one number everywhere in this tensor and return it."""
        if isinstance(value, Tensor):
            if value.ndim:
                raise ShapeError(
                    compose("fill_", "a number or a 0-d tensor required", "more", ("value", value))
                )
            return self.copy_(value)
        if not isinstance(value, Number):
            came = type(value).__name__
            raise ArgumentTypeError(compose("fill_", "a number required", came))
        op = conversion.fill_with.primitive
        return apply_inplace(op, self, (), {"value": value})

    def zero_(self: Any) -> Tensor:
        """Write zeros everywhere in this tensor and return it."""
        return self.fill_(0)

    @property
    def real(self: Any) -> Tensor:
        """The real part, a view for complex tensors; a real tensor itself."""
        return shape.real_part(self) if self.is_complex() else self

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary part of a complex tensor, a view."""
        return shape.imaginary_part(self)


_fill_masked = inplace(indexing.masked_fill_)


def _clamp_by_tensors(x: Tensor, min: Any, max: Any) -> Tensor:
    """Limit `x` in place by bounds of which one is a tensor, or a float for integers."""
    result = elementwise.clamp(x, min, max)
    if result.dtype is not x.dtype:
        raise DTypeError(
            compose(
                "clamp_",
                f"bounds that fit dtype {x.dtype.name} required",
                f"a result of dtype {result.dtype.name}",
                hint="use clamp, which is not in place",
            )
        )
    return x.copy_(result)


def _extreme(x: Tensor, name: str, dim: Any, axis: Any, keepdims: Any) -> Any:
    over = _either(name, dim, axis)
    if isinstance(over, Tensor):
        other = elementwise.maximum if name == "max" else elementwise.minimum
        return other(x, over)
    if isinstance(over, int):
        return values_and_indices(x, name, over, keepdims)
    return getattr(reductions, name)(x, axis=over, keepdims=keepdims)


def attach() -> None:
    """Give Tensor its methods."""
    for name, value in vars(TensorMethods).items():
        if name not in (
            "__module__",
            "__doc__",
            "__slots__",
            "__dict__",
            "__weakref__",
            "__hash__",
        ):
            if name not in vars(Tensor):
                setattr(Tensor, name, value)


attach()
