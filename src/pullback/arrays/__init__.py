"""What differs between array libraries; the only folder that imports them, each when first used.

Owns the registry that finds the `Library` of an array or of a device, and the dtypes. Knows nothing
of tensors or gradients.

To add a library: subclass `Library` in a module of its own that imports the library only inside its
methods, and list one instance of it in `_LAZY` of registry.py under the top-level modules that its
array types come from. A library whose arrays wrap those of others subclasses `WrappingLibrary` and
is given to `register`.
"""

from __future__ import annotations

from pullback.arrays.dtypes import (
    DTYPES,
    DType,
    FloatInfo,
    IntegerInfo,
    as_dtype,
    complex_of,
    dtype_of,
    float_info,
    get_default_dtype,
    integer_info,
    level_of,
    promote,
    promote_scalar,
    promote_tensors,
    real_of,
    set_default_dtype,
)
from pullback.arrays.foreign import carries_gradient, refuse_gradient
from pullback.arrays.library import Array, Library
from pullback.arrays.numpy_ import Constants
from pullback.arrays.random import RandomSource
from pullback.arrays.registry import (
    CUPY,
    INTERCEPTING,
    NUMPY,
    cuda_is_available,
    devices,
    is_array,
    join,
    library_for,
    library_of,
    library_of_class,
    ndarray,
    register,
)
from pullback.arrays.sums import add_up, running_sum
from pullback.arrays.threads import set_num_threads
from pullback.arrays.wrapping import WrappingLibrary, constant, innermost, varies

__all__ = [
    "CUPY",
    "DTYPES",
    "INTERCEPTING",
    "NUMPY",
    "Array",
    "Constants",
    "DType",
    "FloatInfo",
    "IntegerInfo",
    "Library",
    "RandomSource",
    "WrappingLibrary",
    "add_up",
    "as_dtype",
    "carries_gradient",
    "complex_of",
    "constant",
    "cuda_is_available",
    "devices",
    "dtype_of",
    "float_info",
    "get_default_dtype",
    "innermost",
    "integer_info",
    "is_array",
    "join",
    "level_of",
    "library_for",
    "library_of",
    "library_of_class",
    "ndarray",
    "promote",
    "promote_scalar",
    "promote_tensors",
    "real_of",
    "refuse_gradient",
    "register",
    "running_sum",
    "set_default_dtype",
    "set_num_threads",
    "varies",
]
