"""Data types, conversions and constants: what the standard has beside operations on arrays.

The dtypes themselves and how they promote are `pullback.arrays`'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Number
from typing import Any, Final

from pullback.arrays import (
    DTYPES,
    DType,
    FloatInfo,
    IntegerInfo,
    as_dtype,
    complex_of,
    devices,
    float_info,
    get_default_dtype,
    integer_info,
    is_array,
    join,
    library_for,
    library_of,
    promote,
    promote_scalar,
    promote_tensors,
)
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.axes import to_builtin
from pullback.ops.declare import needs_tensor, wrapper_of
from pullback.ops.primitives.conversion import astype_p, clone, move_p

# Of the standard; a later version has everything that an earlier one has.
_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__: Final = _VERSIONS[-1]
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None


# The kinds of dtype that the standard names, by the letters of `DType.kind`.
_KINDS: Final = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def _dtype_in(op: str, value: Any) -> DType:
    """Return the dtype of a tensor or array, or the dtype that `value` is."""
    if isinstance(value, Tensor):
        return value.dtype
    if is_array(value):
        return library_of(value).dtype(value)
    try:
        return as_dtype(value)
    except ArgumentTypeError:
        came = type(value).__name__
        raise ArgumentTypeError(compose(op, "a dtype or a Tensor required", came)) from None


# -- dtypes ----------------------------------------------------------------------------------------
def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating dtype; of a complex one, those of its real part.

    Parameters
    ----------
    type : dtype or Tensor

    Returns
    -------
    FloatInfo
        With ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` and ``dtype``.

    Raises
    ------
    DTypeError
        If it is neither floating nor complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.finfo(pb.float64).eps
    2.220446049250313e-16
    """
    dtype = _dtype_in("finfo", type)
    if not dtype.is_inexact:
        hint = "use iinfo for integers"
        required = "a floating or complex dtype required"
        raise DTypeError(compose("finfo", required, dtype.name, hint=hint))
    return float_info(dtype)


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype.

    Parameters
    ----------
    type : dtype or Tensor

    Returns
    -------
    IntegerInfo
        With ``bits``, ``max``, ``min`` and ``dtype``.

    Raises
    ------
    DTypeError
        If it is no integer dtype.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.iinfo("uint8").max
    255
    """
    dtype = _dtype_in("iinfo", type)
    if dtype.kind not in "iu":
        hint = "use finfo for floating dtypes"
        raise DTypeError(compose("iinfo", "an integer dtype required", dtype.name, hint=hint))
    return integer_info(dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
    kind : str, dtype, or tuple of those
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``; a dtype means itself.

    Raises
    ------
    ArgumentError
        If there is no kind of that name.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isdtype(pb.float32, ("real floating", "complex floating"))
    True
    """
    wanted = as_dtype(dtype)
    return any(
        wanted.kind in _letters(k) if isinstance(k, str) else wanted is as_dtype(k)
        for k in (kind if isinstance(kind, tuple) else (kind,))
    )


def _letters(kind: Any) -> str:
    try:
        return _KINDS[kind]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, _KINDS))
        required = f"a kind of dtype, one of {known}, required"
        raise ArgumentError(compose("isdtype", required, repr(kind))) from None


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether a dtype promotes to another: whether `to` is what the two have in common.

    Parameters
    ----------
    from_ : dtype or Tensor
    to : dtype

    Examples
    --------
    >>> import pullback as pb
    >>> pb.can_cast(pb.float32, pb.float64), pb.can_cast(pb.float64, pb.float32)
    (True, False)
    """
    wanted = as_dtype(to)
    try:
        return promote(_dtype_in("can_cast", from_), wanted) is wanted
    except ArgumentTypeError:
        raise
    except DTypeError:  # nothing in common
        return False


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype that an operation on these would have.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, array, dtype or Python number
        Numbers, and tensors of 0 dimensions beside others, count with their category alone, as in
        PyTorch.

    Raises
    ------
    ArgumentError
        If there is none.
    DTypeError
        For uint64 with a signed integer: no integer dtype holds both.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.result_type(pb.float32, pb.float64)
    pullback.float64
    >>> pb.result_type(pb.ones(2), 2j)
    pullback.complex64
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: at least one array or dtype required, got none")
    numbers = [a for a in arrays_and_dtypes if isinstance(a, Number)]
    full: dict[DType, None] = {}
    zero: dict[DType, None] = {}
    for a in arrays_and_dtypes:
        if not isinstance(a, Number):
            (full if getattr(a, "shape", True) else zero)[_dtype_in("result_type", a)] = None
    result = promote_tensors(full, zero) if full or zero else DTYPES["bool"]
    for number in numbers:
        result = promote_scalar(result, number)
    return result


def broadcast_shapes(*shapes: Sequence[int] | int) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to.

    Raises
    ------
    ShapeError
        If they do not broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    listed = [(s,) if isinstance(s, int) else tuple(s) for s in map(to_builtin, shapes)]
    ndim = max(map(len, listed), default=0)
    columns = zip(*((1,) * (ndim - len(s)) + s for s in listed), strict=True)
    result = [{n for n in column if n != 1} or {1} for column in columns]
    if any(len(lengths) > 1 for lengths in result):
        came = " and ".join(map(str, listed))
        raise ShapeError(compose("broadcast_shapes", "shapes that broadcast required", came))
    return tuple(lengths.pop() for lengths in result)


# -- what there is ---------------------------------------------------------------------------------
class NamespaceInfo:
    """What `__array_namespace_info__` returns: the abilities of this namespace.

    Devices are named by strings. Those of further array libraries, as ``x.device`` names them, can
    be given wherever a device can, once an array of theirs was met.
    """

    def capabilities(self) -> dict[str, Any]:
        """Return which optional parts of the standard there are."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device that tensors are made on unless another is named."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the dtypes that Python's numbers and indices have; the same on every device."""
        library_for(device)  # raises where there is none
        floating = get_default_dtype()
        return {
            "real floating": floating,
            "complex floating": complex_of(floating),
            "integral": DTYPES["int64"],
            "indexing": DTYPES["int64"],
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the standard's dtypes that a device has, of a kind or of several, by name."""
        library, native = library_for(device)
        present = library.xp.__array_namespace_info__().dtypes(device=native)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        letters = "biufc" if kind is None else "".join(map(_letters, kinds))
        return {name: t for name, t in DTYPES.items() if name in present and t.kind in letters}

    def devices(self) -> list[str]:
        """Return the devices that tensors can be made on."""
        return devices()


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  (the standard's name)
    """Return an object that tells of this namespace: its devices, dtypes and abilities.

    Examples
    --------
    >>> import pullback as pb
    >>> info = pb.__array_namespace_info__()
    >>> info.default_device()
    'cpu'
    >>> info.dtypes(kind="real floating")
    {'float32': pullback.float32, 'float64': pullback.float64}
    """
    return NamespaceInfo()


# -- conversions -----------------------------------------------------------------------------------
@wrapper_of(astype_p, call=lambda f, x, *, dtype: f(x, dtype), numpy="astype: x dtype copy device")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return `x` in another dtype, on another device if one is given.

    That is `x` itself where nothing changes and `copy` is False. Complex numbers become real ones
    by their real part.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.astype(pb.tensor([1, 2]), pb.float64)
    tensor([1., 2.], dtype=float64)
    """
    needs_tensor("astype", x)
    x = x if isinstance(x, Tensor) else box(library_of(x).copy(x))
    wanted = as_dtype(dtype)
    if device is not None:
        return to(x, dtype=wanted, device=device, copy=copy)
    if wanted is x.dtype:
        return clone(x) if copy else x
    return astype_p.public(x, dtype=wanted)


def to(
    x: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """Return `x` with another dtype, on another device, or both.

    The arguments, a dtype, a device, a tensor that has both, may come by position, with two bools
    after them: `non_blocking`, which array libraries decide themselves, and `copy`.
    """
    *_, copy = (copy, *[a for a in args if isinstance(a, bool)][1:2])
    for a in args:
        if a is None or isinstance(a, bool):
            continue
        if isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, str) and (a.split(":")[0] in ("cpu", "cuda")):
            device = a
        else:
            dtype = a
    result = x
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    if device is not None and str(device) != x.device and library_for(str(device)) is not None:
        wanted = str(device)
        if not (wanted == "cuda" and x.device.startswith("cuda")):
            result = move_p.public(result, device=wanted)
    return clone(x) if copy and result is x else result


def needs_room(op: str, x: Tensor, value: Tensor) -> None:
    """Raise where complex numbers would be written into a tensor of real ones."""
    if value.dtype.is_complex and not x.dtype.is_complex:
        required = f"a value that the dtype {x.dtype.name} can hold required"
        named, hint = (("x", x), ("value", value)), "take real, imag or abs of it"
        raise DTypeError(compose(op, required, value.dtype.name, *named, hint=hint))


def asarray_like(value: Any, x: Tensor, op: str) -> Tensor:
    """Return `value` as a tensor of the dtype and device of `x`, for the method `op`."""
    if isinstance(value, Tensor):
        mix = join((library_of(value._data), library_of(x._data))) is not None
        here = mix and value.device == x.device
        moved = value if here else move_p.public(value, device=x.device)
        needs_room(op, x, value)
        return moved if moved.dtype is x.dtype else astype(moved, x.dtype)
    raise ArgumentTypeError(f"{op}: the source must be a Tensor, got {type(value).__name__}")


def detach(x: Tensor) -> Tensor:
    """Return the same values outside the graph; see `Tensor.detach`.

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
    return result_type(as_dtype(type1), as_dtype(type2))


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
