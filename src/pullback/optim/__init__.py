"""Optimizers: plain users of the public API, with nothing private in them.

A step changes the parameters in place under `no_grad`; a parameter whose ``.grad`` is None is left
alone, its state too.
"""

from pullback.optim._base import Optimizer
from pullback.optim.adam import Adam
from pullback.optim.sgd import SGD

__all__ = ["SGD", "Adam", "Optimizer"]
