"""Optimizers: plain users of the public API, with nothing private in them.

A step changes the parameters in place under `no_grad`. A parameter whose ``.grad`` is None is not
changed, and neither is its state.
"""

from pullback.optim._base import Optimizer
from pullback.optim.adam import Adam
from pullback.optim.sgd import SGD

__all__ = ["SGD", "Adam", "Optimizer"]
