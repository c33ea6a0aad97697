"""NumPy itself: its functions take tensors. What makes an array of numbers takes tensors here."""

import builtins
import importlib

import numpy as _numpy
from numpy import *

import pullback as pb

# Not by `from . import`, which would find NumPy's own under these names.
fft, linalg, random = (
    importlib.import_module(f"autograd.numpy.{name}") for name in ("fft", "linalg", "random")
)
max, min, sum, abs, all, any, round = (
    getattr(_numpy, name) for name in ("max", "min", "sum", "abs", "all", "any", "round")
)


def _holds_tensors(value):
    if isinstance(value, (builtins.list, builtins.tuple)):
        return builtins.any(_holds_tensors(item) for item in value)
    return isinstance(value, pb.Tensor)


def _joined(value):
    if isinstance(value, (builtins.list, builtins.tuple)):
        return _numpy.stack([_joined(item) for item in value])
    return value if isinstance(value, pb.Tensor) else _numpy.asarray(value)


def array(value, *args, **kwargs):
    return _joined(value) if _holds_tensors(value) else _numpy.array(value, *args, **kwargs)


def full(shape, fill_value, dtype=None):
    if not isinstance(fill_value, pb.Tensor):
        return _numpy.full(shape, fill_value, dtype)
    return _numpy.broadcast_to(fill_value if dtype is None else fill_value.astype(dtype), shape)


def _on_lists(name, fun):
    def called(*args, **kwargs):
        return fun(*[_joined(a) if _holds_tensors(a) else a for a in args], **kwargs)

    called.__name__ = name
    return called


append, mean, std, var = (
    _on_lists(name, getattr(_numpy, name)) for name in ("append", "mean", "std", "var")
)
linalg.norm = _on_lists("norm", _numpy.linalg.norm)


class _Joining:
    """np.r_ and np.c_ of tensors: which elements go where is found on their numbers."""

    def __init__(self, trick):
        self.trick = trick

    def __getitem__(self, items):
        items = items if isinstance(items, builtins.tuple) else (items,)
        if not _holds_tensors(items):
            return self.trick[items]
        flat, places, count = [], [], 0
        for item in items:
            if isinstance(item, str):
                places.append(item)
                continue
            part = _numpy.r_[item] if isinstance(item, slice) else _joined(item)
            flat.append(_numpy.ravel(part))
            places.append(count + _numpy.arange(part.size).reshape(part.shape))
            count += part.size
        return _numpy.concatenate(flat)[self.trick[builtins.tuple(places)]]


r_, c_ = _Joining(_numpy.r_), _Joining(_numpy.c_)


def where(condition, x=None, y=None):
    """NumPy's, with the names of the arguments, and Python's own types of one condition."""
    if x is None and y is None:
        return _numpy.where(condition)
    if builtins.type(condition) is builtins.bool and builtins.type(x) is not _numpy.ndarray:
        return x if condition else y
    return _numpy.where(condition, x, y)


def make_diagonal(d, offset=0, axis1=-1, axis2=-2):
    return pb.diag_embed(d, offset, axis2, axis1)
