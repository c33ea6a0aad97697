"""Optimizers: plain users of the public API, with nothing private in them.

A step changes the parameters in place under `no_grad`. A parameter whose ``.grad`` is None is not
changed, and neither is its state.
"""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.optim._base import Optimizer
from pullback.optim.adam import Adam
from pullback.optim.sgd import SGD

__all__ = ["SGD", "Adam", "Optimizer"]


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
