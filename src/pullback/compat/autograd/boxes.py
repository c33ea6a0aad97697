"""Which values are traced, and what is in them: HIPS autograd's boxes are tensors here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.arrays import WrappingLibrary, library_of
from pullback.core.tensor.tensor import Tensor
from pullback.numpy_protocol.tensor import NumPyTensor

__all__ = ["conjugate", "getval", "holds_boxes", "isbox", "may_be_derived", "notrace_primitive"]


def isbox(x: Any) -> bool:
    """Return whether `x` is a traced value.

    Examples
    --------
    >>> import pullback as pb
    >>> isbox(pb.tensor(2.0)), isbox(2.0)
    (True, False)
    """
    return isinstance(x, Tensor)


def getval(x: Any) -> Any:
    """Return the array or number in a traced value, anything else as it is.

    Examples
    --------
    >>> import pullback as pb
    >>> getval(pb.tensor(2.0)), getval("text")
    (np.float32(2.0), 'text')
    """
    while isinstance(x, Tensor):
        array = x.detach().data_array()
        library = library_of(array)
        x = library.parts(array)[0] if isinstance(library, WrappingLibrary) else array[()]
    return x


# Programs take boxes off by themselves: ``while isinstance(x, ArrayBox): x = x._value``.
setattr(NumPyTensor, "_value", property(getval, doc="The array or number in it."))  # noqa: B010


def conjugate(x: Any) -> Any:
    """Return the conjugate of what is complex, anything else as it is.

    Examples
    --------
    >>> conjugate(1 + 2j), conjugate(3.0)
    (np.complex128(1-2j), 3.0)
    """
    if x.__class__ is np.ndarray and x.dtype.kind == "f":  # as most often
        return x
    return np.conj(x) if np.iscomplexobj(x) else x


def holds_boxes(value: Any) -> bool:
    """Return whether a value is traced, or a list, tuple or dict that holds such.

    Examples
    --------
    >>> import pullback as pb
    >>> holds_boxes({"a": [pb.tensor(2.0)]}), holds_boxes([2.0])
    (True, False)
    """
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return isinstance(value, Tensor)
    return any(
        isinstance(item, Tensor) or (isinstance(item, (list, tuple, dict)) and holds_boxes(item))
        for item in value
    )


def may_be_derived(x: Any) -> bool:
    """Return whether a derivative may go through a value.

    Examples
    --------
    >>> import pullback as pb
    >>> may_be_derived(pb.tensor(2.0, requires_grad=True)), may_be_derived(pb.tensor(2.0))
    (True, False)
    """
    if not isinstance(x, Tensor):
        return False
    return x.requires_grad or isinstance(library_of(x.data_array()), WrappingLibrary)


def notrace_primitive(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of values alone: it gets what is in traced values.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> nearest = notrace_primitive(np.round)
    >>> grad(lambda x: x * nearest(x))(2.2)
    np.float64(2.0)
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*map(getval, args), **{key: getval(value) for key, value in kwargs.items()})

    return call
