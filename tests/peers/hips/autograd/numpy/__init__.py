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


def _on_lists(name, fun):
    def called(a, *args, **kwargs):
        return fun(_joined(a) if _holds_tensors(a) else a, *args, **kwargs)

    called.__name__ = name
    return called


mean, std, var = (_on_lists(name, getattr(_numpy, name)) for name in ("mean", "std", "var"))
linalg.norm = _on_lists("norm", _numpy.linalg.norm)


def make_diagonal(d, offset=0, axis1=-1, axis2=-2):
    return pb.diag_embed(d, offset, axis2, axis1)
