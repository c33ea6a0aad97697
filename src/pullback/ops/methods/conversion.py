"""The methods of Tensor about dtype, device and memory: casts, new tensors like it, questions."""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, library_of
from pullback.core.function.inplace import refuse_new_shape
from pullback.core.tensor.tensor import Tensor
from pullback.core.tensor.views import layout_of
from pullback.errors import ArgumentTypeError, compose
from pullback.ops.declare import needs_tensor
from pullback.ops.functions import comparison, creation, data_types
from pullback.ops.primitives import comparison as comparison_primitives, conversion

# Inside the class these are methods.
Bool = bool
Int = int


def _cast(name: str, dtype: str) -> Any:
    def call(self: Any) -> Tensor:
        return data_types.to(self, dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return this tensor as {dtype}."
    return call


class KindMethods:
    """What `TensorMethods` has of conversions, of new tensors, and of questions."""

    __slots__ = ()

    # -- casts and moves ----------------------------------------------------------------------
    to = data_types.to
    float, double, half = (
        _cast("float", "float32"),
        _cast("double", "float64"),
        _cast("half", "float16"),
    )
    byte, char, short = _cast("byte", "uint8"), _cast("char", "int8"), _cast("short", "int16")
    int, long, bool = _cast("int", "int32"), _cast("long", "int64"), _cast("bool", "bool")
    cfloat, cdouble = _cast("cfloat", "complex64"), _cast("cdouble", "complex128")

    def type(self: Any, dtype: Any = None) -> Tensor:
        """Return this tensor in another dtype."""
        if dtype is None:
            hint = "x.dtype tells what it has"
            raise ArgumentTypeError(
                compose("type", "a dtype to convert to required", "none", hint=hint)
            )
        return data_types.to(self, dtype)

    def type_as(self: Any, other: Tensor) -> Tensor:
        """Return this tensor in the dtype of `other`."""
        needs_tensor("type_as", other, "other")
        return data_types.to(self, other.dtype)

    def cpu(self: Any) -> Tensor:
        """Return this tensor on the CPU."""
        return data_types.to(self, device="cpu")

    def cuda(self: Any, device: Any = None, non_blocking: Any = False) -> Tensor:
        """Return this tensor on a GPU, the current one by default; copies end before it returns."""
        if not isinstance(device, str):
            device = "cuda" if device is None else f"cuda:{device}"
        return data_types.to(self, device=device)

    def contiguous(self: Any) -> Tensor:
        """Return this tensor with its elements in row-major order, itself where they are."""
        result: Tensor = self if self.is_contiguous() else conversion.clone(self)
        return result

    def resolve_conj(self: Any) -> Tensor:
        """Return this tensor: conjugates are computed at once, none is left to resolve."""
        return self  # type: ignore[no-any-return]

    resolve_neg = resolve_conj

    # -- new tensors like this one -----------------------------------------------------------------
    def new_zeros(self: Any, *sizes: Any, **options: Any) -> Tensor:
        """Return zeros of this tensor's dtype and device, or those given as for `zeros`."""
        return creation.zeros(*sizes, **_like(self, options))

    def new_ones(self: Any, *sizes: Any, **options: Any) -> Tensor:
        """Return ones of this tensor's dtype and device, or those given as for `ones`."""
        return creation.ones(*sizes, **_like(self, options))

    def new_empty(self: Any, *sizes: Any, **options: Any) -> Tensor:
        """Return a tensor to write to of this one's dtype and device; see `empty`."""
        return creation.empty(*sizes, **_like(self, options))

    def new_full(self: Any, size: Any, fill_value: Any, **options: Any) -> Tensor:
        """Return a number in the shape `size`, in this tensor's dtype and device; see `full`."""
        return creation.full(size, fill_value, **_like(self, options))

    new_tensor = creation.new_tensor

    # -- questions ----------------------------------------------------------------------------
    nelement = Tensor.numel
    ndimension = Tensor.dim
    allclose = comparison.allclose

    def is_contiguous(self: Any) -> Any:
        """Return whether the elements lie in row-major order."""
        array = self.data_array()
        library = library_of(array)
        if library.mutable or self._base is None:
            return library.is_contiguous(array)
        return NUMPY.is_contiguous(layout_of(self))

    def equal(self: Any, other: Tensor) -> Bool:
        """Return whether shape and all elements are equal; `eq` and ``==`` go by elements."""
        needs_tensor("equal", other, "other")
        return self.shape == other.shape and Bool(comparison_primitives.equal(self, other).all())

    def is_same_size(self: Any, other: Tensor) -> Bool:
        """Return whether the shapes are equal."""
        return Bool(self.shape == other.shape)

    def is_nonzero(self: Any) -> Bool:
        """Return whether the one element is not 0."""
        return Bool(self)

    def is_signed(self: Any) -> Bool:
        """Return whether the dtype has negative numbers."""
        return self.dtype.kind not in "bu"

    @property
    def is_cuda(self: Any) -> Bool:
        """Whether the tensor is on a GPU."""
        return Bool(self.device.startswith("cuda"))

    @property
    def is_cpu(self: Any) -> Bool:
        """Whether the tensor is on the CPU."""
        return Bool(self.device == "cpu")

    @property
    def itemsize(self: Any) -> Int:
        """How many bytes an element takes."""
        return Int(self.dtype.itemsize)

    @property
    def nbytes(self: Any) -> Int:
        """How many bytes all elements take."""
        return Int(self.itemsize * self.numel())

    def element_size(self: Any) -> Int:
        """Return how many bytes an element takes."""
        return Int(self.itemsize)

    def get_device(self: Any) -> Int:
        """Return the number of the GPU, -1 for the CPU."""
        name, _, number = self.device.partition(":")
        return Int(number or 0) if name == "cuda" else -1

    # -- another shape, in place --------------------------------------------------------------
    def unsqueeze_(self: Any, dim: Int) -> Tensor:
        """Raise: a tensor keeps its shape. Use `unsqueeze`, which returns a view."""
        raise refuse_new_shape("unsqueeze_")

    def squeeze_(self: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
        """Raise: a tensor keeps its shape. Use `squeeze`, which returns a view."""
        raise refuse_new_shape("squeeze_")

    def transpose_(self: Any, dim0: Int, dim1: Int) -> Tensor:
        """Raise: a tensor keeps its shape. Use `transpose`, which returns a view."""
        raise refuse_new_shape("transpose_")

    swapaxes_ = swapdims_ = transpose_

    def t_(self: Any) -> Tensor:
        """Raise: a tensor keeps its shape. Use `t`, which returns a view."""
        raise refuse_new_shape("t_")


def _like(x: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    return {"dtype": x.dtype, "device": x.device, **options}
