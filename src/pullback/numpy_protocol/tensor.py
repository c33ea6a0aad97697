"""The tensor that stands for an array of NumPy's in a function that is differentiated.

Owns the class `NumPyTensor`: a tensor whose methods, where ndarray has one of that name, mean
ndarray's. What ndarray lacks (``backward``, ``clamp``, ``mm``) is Tensor's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.arrays import DTYPES, NUMPY, DType
from pullback.core.tensor.tensor import FOR_ARRAYS, Tensor
from pullback.numpy_protocol.methods import ArrayMethods, run
from pullback.numpy_protocol.protocol import is_known_type


class NumPyTensor(ArrayMethods, Tensor):  # type: ignore[misc, override]  # ndarray's parameters
    """A tensor with ndarray's methods and indexing; results of operations on it are such too.

    Transforms make it of NumPy's arrays and Python's numbers. It is a `Tensor` in every other
    respect, and prints as ``numpy_tensor(...)``; ``str()`` shows the values as NumPy does.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> pb.grad(lambda x: x.std() + x.max(axis=0))(np.array([1.0, 3.0]))
    array([-0.5,  1.5])
    """

    __slots__ = ()
    _printed_as = "numpy_tensor"

    @staticmethod
    def _default_dtype() -> DType:
        return DTYPES["float64"]

    def __array_function__(
        self, function: Any, types: Iterable[type], args: Any, settings: dict[str, Any]
    ) -> Any:
        if not all(map(is_known_type, types)):
            return NotImplemented
        return run(function, self, args, settings)


FOR_ARRAYS[NUMPY.array_types[0]] = NumPyTensor
