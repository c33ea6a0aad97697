"""The libraries in use: which one an array or a device belongs to, and which wraps which.

Owns the registry by class of arrays. Knows no library's arrays by itself but NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from pullback.arrays.cupy_ import CuPy
from pullback.arrays.library import Library
from pullback.arrays.numpy_ import NumPy
from pullback.errors import ArgumentError, ArgumentTypeError, compose

__all__ = [
    "CUPY",
    "INTERCEPTING",
    "NUMPY",
    "cuda_is_available",
    "devices",
    "is_array",
    "join",
    "library_for",
    "library_of",
    "library_of_class",
    "register",
]

NUMPY: Final = NumPy()
ndarray: Final[Any] = NUMPY.array_types[0]
CUPY: Final = CuPy()

# The top-level module of an array's type, and the library that knows such arrays better than the
# standard does.
_LAZY: Final[dict[str, Library]] = {"cupy": CUPY}

# Each type met so far; None for what is no array. Grows by one entry a type.
_by_type: dict[type, Library | None] = {np.ndarray: NUMPY}
# Libraries found by their namespace alone, and registered ones, by name.
_generic: dict[str, Library] = {}
# The classes of arrays whose library may take over the call of a user's operation.
INTERCEPTING: Final[set[type]] = set()


def register(library: Library) -> None:
    """Make a library that of its classes of arrays.

    Parameters
    ----------
    library : Library
        Its `array_types` are the classes. Its name is also that of its device, in `library_for`,
        unless it wraps other libraries.

    Raises
    ------
    ArgumentError
        If a class has a library already.

    Examples
    --------
    >>> class Array:
    ...     shape = ()
    >>> class Empty(Library):
    ...     array_types = (Array,)
    >>> register(Empty("empty"))
    >>> library_of(Array())
    <array library empty>
    """
    for cls in library.array_types:
        if _by_type.get(cls) is not None:
            required = "classes of arrays without a library required"
            raise ArgumentError(
                compose("register", required, f"{cls.__name__} of {_by_type[cls]!r}")
            )
        _by_type[cls] = library
        if library.call is not None:
            INTERCEPTING.add(cls)
    if library.level == 0:
        _generic[library.name] = library


def join(libraries: Iterable[Library]) -> Library | None:
    """Return the library in which arrays of these can be computed with together, None for none.

    That is the one that wraps all the others: `Library.wrap` brings their arrays into it.

    Examples
    --------
    >>> join([NUMPY, NUMPY]), join([NUMPY, CUPY])
    (<array library numpy>, None)
    """
    known = set(libraries)
    if len(known) == 1:
        return known.pop()
    top = max(known, key=lambda library: library.level)
    return top if [library.level for library in known].count(top.level) == 1 else None


def library_of(array: Any) -> Library:
    """Return the library that an array belongs to.

    Parameters
    ----------
    array : array
        Of NumPy, of a library listed here, or of any library that follows the Array API standard.

    Returns
    -------
    Library

    Raises
    ------
    ArgumentTypeError
        If it is no array.

    Examples
    --------
    >>> import numpy as np
    >>> library_of(np.ones(2))
    <array library numpy>
    """
    try:
        result = _by_type[type(array)]
    except KeyError:
        result = _discover(array)
    if result is None:
        hint = "pass a NumPy array, or an array of a library that follows the Array API standard"
        raise ArgumentTypeError(
            compose("array", "an array required", type(array).__name__, hint=hint)
        )
    return result


def library_of_class(cls: type) -> Library | None:
    """Return the library of a class of arrays that was met before; None for any other class.

    Examples
    --------
    >>> import numpy as np
    >>> library_of_class(np.ndarray)
    <array library numpy>
    """
    return _by_type.get(cls)


def is_array(obj: Any) -> bool:
    """Say whether `library_of` knows it. NumPy scalars, lists and tensors are no arrays.

    Examples
    --------
    >>> import numpy as np
    >>> is_array(np.ones(2)), is_array(np.float64(1)), is_array([1.0])
    (True, False, False)
    """
    try:
        return _by_type[type(obj)] is not None
    except KeyError:
        return _discover(obj) is not None


def _discover(obj: Any) -> Library | None:
    """Find the library of a type met for the first time, and remember it."""
    cls = type(obj)
    result: Library | None = None
    roots = [base.__module__.partition(".")[0] for base in cls.__mro__]
    if isinstance(obj, np.ndarray):
        if isinstance(obj, np.ma.MaskedArray):
            hint = "fill it first: x.filled(0)"
            raise ArgumentTypeError(
                compose("array", "an array without a mask required", cls.__name__, hint=hint)
            )
        if isinstance(obj, np.matrix):  # its products would be taken element by element
            hint = "write np.asarray(x), and @ for products of matrices"
            required = "an array that is no np.matrix required"
            raise ArgumentTypeError(compose("array", required, cls.__name__, hint=hint))
        result = NUMPY
    elif "pullback" not in roots and not isinstance(obj, np.generic):
        listed = [_LAZY[root] for root in roots if root in _LAZY]
        if listed:
            result = listed[0] if listed[0].has(obj) else None
        elif hasattr(cls, "__array_namespace__"):
            xp = obj.__array_namespace__()
            name = xp.__name__.partition(".")[0]
            result = _generic.setdefault(name, Library(name, xp))
    _by_type[cls] = result
    return result


def library_for(device: Any) -> tuple[Library, Any]:
    """Return the library of a device, and the device as that library has it.

    Parameters
    ----------
    device : str or what prints as one, optional
        ``"cpu"`` (also None): NumPy. ``"cuda"`` (the current GPU), ``"cuda:1"``: CuPy.
        ``"<library>"`` or ``"<library>:<device>"``, as `Library.device` names it, for another
        library whose arrays were met before.

    Returns
    -------
    library : Library
    native_device : object
        To hand to the library's methods.

    Raises
    ------
    ArgumentError
        If there is no such device name.
    MissingExtraError
        If CuPy is needed and is not installed.
    DeviceError
        If the library does not find the device.

    Examples
    --------
    >>> library_for("cpu")
    (<array library numpy>, None)
    """
    text = "cpu" if device is None else str(device)
    if text == "cpu":
        return NUMPY, None
    name, _, number = text.partition(":")
    if name == "cuda" and (number.isdecimal() or text == "cuda"):
        return CUPY, CUPY.native_device(text)
    if name in _generic:
        return _generic[name], _generic[name].native_device(text)
    raise ArgumentError(
        compose("device", '"cpu", "cuda" or "cuda:<number>" required', repr(device))
    )


def cuda_is_available() -> bool:
    """Say whether CuPy is installed and sees a GPU; never raises.

    Examples
    --------
    >>> isinstance(cuda_is_available(), bool)
    True
    """
    return CUPY.is_available()


def devices() -> list[str]:
    """Name the devices of NumPy and CuPy: the CPU, and every GPU that CuPy sees.

    Examples
    --------
    >>> devices()[0]
    'cpu'
    """
    count = CUPY.cupy.cuda.runtime.getDeviceCount() if cuda_is_available() else 0
    return ["cpu", *(f"cuda:{i}" for i in range(count))]
