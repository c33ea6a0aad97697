"""The element types that tensors have, one singleton each, and how they promote.

Owns `DType`, the table of its singletons, the translation from any array library's own dtypes,
PyTorch's promotion rules, the limits of each dtype and the default floating dtype. Knows no array
library but NumPy: a dtype of another one is recognised by the name that it prints.

Invariant: there is exactly one `DType` of a name in a process, so `is` compares dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import numpy as np

from pullback.errors import ArgumentTypeError, DTypeError, compose

__all__ = [
    "DTYPES",
    "DType",
    "FloatInfo",
    "IntegerInfo",
    "as_dtype",
    "complex_of",
    "dtype_of",
    "float_info",
    "get_default_dtype",
    "integer_info",
    "level_of",
    "promote",
    "promote_scalar",
    "promote_tensors",
    "real_of",
    "set_default_dtype",
]


_PYTHON: Final = (bool, int, float, complex)


class DType:
    """The type of a tensor's elements; ``pullback.float32`` and its siblings are all there are.

    Equal to the NumPy dtype, scalar type or name that means the same, and to the type of Python
    that means the same to NumPy; NumPy takes it wherever it takes a dtype.

    Attributes
    ----------
    name : str
        As the Array API standard spells it: ``"float32"``, ``"bool"``.
    kind : str
        ``"b"`` bool, ``"i"`` signed, ``"u"`` unsigned integer, ``"f"`` floating point, ``"c"``
        complex.
    itemsize : int
        Bytes an element.
    is_floating_point, is_complex, is_inexact : bool
        Real floating point; complex; either of the two, so able to require a gradient.
    dtype : numpy.dtype
        The NumPy dtype. NumPy reads this attribute when it is given a `DType`.

    Examples
    --------
    >>> import numpy as np
    >>> as_dtype("float32")
    pullback.float32
    >>> np.zeros(2, dtype=as_dtype("float32")).dtype
    dtype('float32')
    """

    __slots__ = (
        "_hash",
        "dtype",
        "is_complex",
        "is_floating_point",
        "is_inexact",
        "itemsize",
        "kind",
        "name",
    )

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.dtype: Final = np.dtype(name)
        self.kind: Final = self.dtype.kind
        self.itemsize: Final = self.dtype.itemsize
        self.is_floating_point: Final = self.kind == "f"
        self.is_complex: Final = self.kind == "c"
        self.is_inexact: Final = self.kind in "fc"
        self._hash: Final = hash(self.dtype)

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str):
            return other == self.name or bool(self.dtype == other)
        if isinstance(other, np.dtype) or (
            isinstance(other, type) and issubclass(other, (np.generic, *_PYTHON))
        ):
            return self.dtype == other
        return NotImplemented

    def __hash__(self) -> int:
        return self._hash

    @property
    def type(self) -> Any:
        """NumPy's class of its scalars."""
        return self.dtype.type

    @property
    def char(self) -> str:
        """NumPy's letter for it."""
        return self.dtype.char

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return as_dtype, (self.name,)  # so pickle and deepcopy give back the singleton


DTYPES: Final[dict[str, DType]] = {
    name: DType(name)
    for name in (
        "bool",
        *("int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
        *("complex64", "complex128"),
    )
}

_BOOL, _INT64 = DTYPES["bool"], DTYPES["int64"]
_RANK: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_COMPLEX_OF: Final = {2: DTYPES["complex64"], 4: DTYPES["complex64"], 8: DTYPES["complex128"]}
_REAL_OF: Final = {8: DTYPES["float32"], 16: DTYPES["float64"]}

_default = DTYPES["float32"]
# With the type in the key: two libraries' dtypes may hash alike, and refuse to be compared.
_by_native: dict[tuple[type, Any], DType] = {
    (type(dtype.dtype), dtype.dtype): dtype for dtype in DTYPES.values()
}
# By name: a text remembers its hash.
_promoted: dict[tuple[str, str], DType] = {}


def get_default_dtype() -> DType:
    """Return the dtype that Python floats become (float32 unless it was changed).

    Examples
    --------
    >>> get_default_dtype()
    pullback.float32
    """
    return _default


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats become, for the whole process.

    Parameters
    ----------
    dtype : DType or anything that names one
        float32 or float64.

    Raises
    ------
    DTypeError
        For any other dtype.

    Examples
    --------
    >>> set_default_dtype("float64")
    >>> get_default_dtype()
    pullback.float64
    >>> set_default_dtype("float32")
    """
    global _default
    wanted = as_dtype(dtype)
    if wanted.name not in ("float32", "float64"):
        raise DTypeError(compose("set_default_dtype", "float32 or float64 required", wanted.name))
    _default = wanted


def dtype_of(native: Any) -> DType:
    """Return the `DType` that an array library's own dtype object means.

    Parameters
    ----------
    native : object
        ``array.dtype`` of an array of any library.

    Returns
    -------
    DType

    Raises
    ------
    DTypeError
        If tensors cannot have such elements (object, datetime, text, extended precision, bfloat16).

    Examples
    --------
    >>> import numpy as np
    >>> dtype_of(np.ones(2).dtype)
    pullback.float64
    """
    if native.__class__ is DType:  # that of a wrapping library's array
        return native
    try:
        return _by_native[type(native), native]
    except (KeyError, TypeError):  # TypeError: not hashable, so no dtype
        pass
    name = getattr(native, "name", None) or str(native).rpartition(".")[2]
    result = DTYPES.get(name)
    if result is None:
        hint = f"convert the array first; supported are {', '.join(DTYPES)}"
        raise DTypeError(
            compose(
                "dtype", "a boolean, integer, floating or complex dtype required", name, hint=hint
            )
        )
    _by_native[type(native), native] = result
    return result


def as_dtype(wanted: Any) -> DType:
    """Return the `DType` that a user's dtype argument means.

    Parameters
    ----------
    wanted : DType, numpy.dtype, NumPy scalar type, dtype of another array library, str or Python
    type
        ``bool`` and ``int`` mean bool and int64; ``float`` and ``complex`` follow the default
        dtype.

    Returns
    -------
    DType

    Raises
    ------
    DTypeError
        If it names a dtype that tensors cannot have.
    ArgumentTypeError
        If it is no dtype at all.

    Examples
    --------
    >>> as_dtype(int), as_dtype(float), as_dtype(">f8")
    (pullback.int64, pullback.float32, pullback.float64)
    """
    if type(wanted) is DType:
        return wanted
    if isinstance(wanted, str) and wanted in DTYPES:
        return DTYPES[wanted]
    if isinstance(wanted, type) and wanted in _PYTHON:
        return {bool: _BOOL, int: _INT64, float: _default, complex: complex_of(_default)}[wanted]
    if isinstance(wanted, str) or (isinstance(wanted, type) and issubclass(wanted, np.generic)):
        try:
            return dtype_of(np.dtype(wanted))
        except TypeError as error:
            if isinstance(error, DTypeError):
                raise
    elif wanted is not None and not isinstance(wanted, (int, float, complex, tuple, list, dict)):
        return dtype_of(wanted)
    hint = f"pass one of {', '.join(DTYPES)}"
    raise ArgumentTypeError(
        compose("dtype", "a dtype required", f"{type(wanted).__name__} {wanted!r}", hint=hint)
    )


def real_of(dtype: DType) -> DType:
    """Return the dtype of the real part: complex64 has float32; a real dtype has itself."""
    return _REAL_OF[dtype.itemsize] if dtype.is_complex else dtype


def complex_of(dtype: DType) -> DType:
    """Return the complex dtype that holds a floating one: float16 and float32 give complex64.

    A complex dtype gives itself; an integer or bool one what the default dtype gives.
    """
    if dtype.is_complex:
        return dtype
    return _COMPLEX_OF[(dtype if dtype.is_floating_point else _default).itemsize]


def promote(*dtypes: DType) -> DType:
    """Return the dtype of an operation on arrays of these dtypes, by PyTorch's rules.

    The category decides first (bool < integer < floating < complex), then the width: an integer
    array never widens a floating one.

    Parameters
    ----------
    *dtypes : DType
        One or more.

    Returns
    -------
    DType

    Raises
    ------
    DTypeError
        For uint64 with a signed integer: no integer dtype holds both.

    Examples
    --------
    >>> promote(DTYPES["int64"], DTYPES["float16"])
    pullback.float16
    >>> promote(DTYPES["float64"], DTYPES["complex64"])
    pullback.complex128
    """
    result = dtypes[0]
    for dtype in dtypes[1:]:
        if dtype is not result:
            try:
                result = _promoted[result.name, dtype.name]
            except KeyError:
                result = _promoted.setdefault(
                    (result.name, dtype.name), _promote_pair(result, dtype)
                )
    return result


def _promote_pair(a: DType, b: DType) -> DType:
    low, high = sorted((a, b), key=lambda dtype: _RANK[dtype.kind])
    if _RANK[low.kind] != _RANK[high.kind] and not (low.is_floating_point and high.is_complex):
        return high
    widest = np.promote_types(a.dtype, b.dtype)
    if high.kind in "iu" and widest.kind == "f":  # NumPy's answer for uint64 with int64
        hint = "convert one of them first, for example to int64"
        raise DTypeError(
            compose(
                "dtype promotion",
                "dtypes with a common one required",
                f"{a.name} and {b.name}",
                hint=hint,
            )
        )
    return dtype_of(widest)


def promote_tensors(dtypes: Collection[DType], without_dimensions: Collection[DType] = ()) -> DType:
    """Return the dtype of an operation on tensors, by PyTorch's rules.

    Those of 0 dimensions change the dtype of the others only if they are of a higher category.

    Parameters
    ----------
    dtypes, without_dimensions : collection of DType
        Those of tensors with dimensions, and of tensors without. At least one in all.

    Returns
    -------
    DType

    Examples
    --------
    >>> promote_tensors([DTYPES["float32"]], [DTYPES["float64"]])
    pullback.float32
    >>> promote_tensors([DTYPES["int8"]], [DTYPES["float64"]])
    pullback.float64
    """
    if not dtypes:
        return promote(*without_dimensions)
    result = promote(*dtypes)
    for other in without_dimensions:
        if level_of(other) > level_of(result):
            result = complex_of(result) if result.is_inexact else other
    return result


def level_of(dtype: DType) -> int:
    """Return the rank of a dtype's category: bool, integer, floating, complex."""
    return _RANK[dtype.kind]


def promote_scalar(
    dtype: DType, scalar: Any, default: Callable[[], DType] = get_default_dtype
) -> DType:
    """Return the dtype of an operation on an array and a number, by PyTorch's rules.

    A number changes the dtype only if it is of a higher category: a float makes an integer array
    the default dtype, a complex number makes a floating array the complex dtype of its width, an
    integer makes a bool array int64.

    Parameters
    ----------
    dtype : DType
        The array's.
    scalar : bool, int, float, complex or NumPy number
        The number; only its category counts, never its value or width.
    default : callable
        Returns the dtype that an integer array gets beside a float.

    Returns
    -------
    DType

    Raises
    ------
    ArgumentTypeError
        If `scalar` is not a number.

    Examples
    --------
    >>> promote_scalar(DTYPES["int8"], 2), promote_scalar(DTYPES["int8"], 2.0)
    (pullback.int8, pullback.float32)
    """
    kind = _SCALAR_KIND.get(type(scalar)) or _kind_of_number(scalar)
    if _RANK[kind] <= _RANK[dtype.kind]:
        return dtype
    if kind == "f":
        return default()
    if kind == "c":
        return complex_of(dtype if dtype.is_inexact else default())
    return _INT64


_SCALAR_KIND: Final[dict[type, str]] = {bool: "b", int: "i", float: "f", complex: "c"}


def _kind_of_number(scalar: Any) -> str:
    """Return the kind of a number that is none of Python's four: a NumPy scalar, a subclass."""
    if isinstance(scalar, np.generic) and scalar.dtype.kind in _RANK:
        return scalar.dtype.kind
    for python_type, kind in _SCALAR_KIND.items():
        if isinstance(scalar, python_type):
            return kind
    raise ArgumentTypeError(compose("dtype promotion", "a number required", type(scalar).__name__))


class FloatInfo(NamedTuple):
    """The limits of a floating dtype, as `pullback.finfo` gives them.

    Attributes
    ----------
    bits : int
        Bits an element; of a complex dtype, bits of the real part, as everything here.
    eps : float
        The difference between 1 and the next larger number.
    max, min : float
        The largest and the smallest (most negative) finite number.
    smallest_normal : float
        The smallest positive number with full precision.
    dtype : DType
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype, as `pullback.iinfo` gives them.

    Attributes
    ----------
    bits : int
        Bits an element.
    max, min : int
        The largest and the smallest number.
    dtype : DType
    """

    bits: int
    max: int
    min: int
    dtype: DType


def float_info(dtype: DType) -> FloatInfo:
    """Return the limits of a floating or complex dtype."""
    real = real_of(dtype)
    info = np.finfo(real.dtype)
    eps, most, least = float(info.eps), float(info.max), float(info.min)
    return FloatInfo(info.bits, eps, most, least, float(info.smallest_normal), real)


def integer_info(dtype: DType) -> IntegerInfo:
    """Return the limits of an integer dtype."""
    info = np.iinfo(dtype.dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)
