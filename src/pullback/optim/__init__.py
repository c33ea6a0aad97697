"""Optimizers: plain users of the public API, with nothing private in them.

A step changes the parameters in place under `no_grad`. A parameter whose ``.grad`` is None is not
changed, and neither is its state. Schedules of learning rates are in `lr_scheduler`.
"""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.optim import lr_scheduler
from pullback.optim._base import Optimizer
from pullback.optim.adagrad import Adagrad
from pullback.optim.adam import Adam, AdamW
from pullback.optim.lbfgs import LBFGS
from pullback.optim.rmsprop import RMSprop
from pullback.optim.sgd import SGD
from pullback.public_names import listed as _listed

__all__ = ["LBFGS", "SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
