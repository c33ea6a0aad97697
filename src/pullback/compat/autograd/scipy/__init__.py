"""SciPy's modules: what `pullback.interop.scipy` has is differentiable, the rest is SciPy's.

Distributions are modules as well: ``import pullback.compat.autograd.scipy.stats.norm as norm``.
"""

import functools
import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

from pullback.compat.autograd.boxes import getval, notrace_primitive
from pullback.compat.autograd.scipy import signal as signal
from pullback.interop import scipy as _ours

_MODULES = ("integrate", "linalg", "optimize", "special", "stats")


class _Module(ModuleType):
    """A module of SciPy's, or one of its distributions."""

    def __getattr__(self, name: str) -> Any:
        module, *path = self.__name__.removeprefix(f"{__name__}.").split(".")
        own = getattr(_ours, module, None)
        for objects in (own, importlib.import_module(f"scipy.{module}")):
            try:
                return functools.reduce(getattr, [*path, name], objects)
            except AttributeError:
                continue
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


for _name in (*_MODULES, *(f"stats.{name}" for name in _ours.stats.__all__)):
    _module = sys.modules[f"{__name__}.{_name}"] = _Module(f"{__name__}.{_name}")
    _parent, _, _child = _module.__name__.rpartition(".")
    setattr(sys.modules[_parent], _child, _module)
    _module.__path__ = []  # other modules may be in it


# -- what HIPS autograd has beyond them ------------------------------------------------------------
def _logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Return the log-density of the normal distribution of vectors, on the range of `cov`."""
    if not allow_singular:
        return _ours.stats.multivariate_normal.logpdf(x, mean, cov)
    values = np.linalg.eigvalsh(getval(cov))
    values = values[values > values.max() * 1e-10]
    deviation = x - (0.0 if mean is None else mean)
    distance = np.sum(deviation @ np.linalg.pinv(cov) * deviation, -1)
    return -(values.size * np.log(2 * np.pi) + np.sum(np.log(values)) + distance) / 2


def _pdf(x: Any, *args: Any, **settings: Any) -> Any:
    return np.exp(_logpdf(x, *args, **settings))


def _entropy(mean: Any, cov: Any = 1) -> Any:
    return np.linalg.slogdet(2 * np.pi * np.e * np.atleast_2d(cov))[1] / 2


_normal = sys.modules[f"{__name__}.stats.multivariate_normal"]
vars(_normal).update(logpdf=_logpdf, pdf=_pdf, entropy=_entropy)
_special = sys.modules[f"{__name__}.special"]
vars(_special).update(gammasgn=notrace_primitive(importlib.import_module("scipy.special").gammasgn))
