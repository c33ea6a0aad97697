"""The names of ``pullback.autograd``: the engine's functions, as PyTorch groups them."""

from typing import Never as _Never

from pullback.core.backward.api import backward, grad, increment_version
from pullback.core.backward.hooks import register_multi_grad_hook
from pullback.core.custom.define import Function, once_differentiable
from pullback.core.debug.anomaly import detect_anomaly, set_detect_anomaly
from pullback.core.graph.modes import (
    enable_grad,
    inference_mode,
    no_grad,
    saved_tensors_hooks,
    set_grad_enabled,
)
from pullback.hints import absent as _absent
from pullback.public_names import listed as _listed

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "increment_version",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "register_multi_grad_hook",
    "saved_tensors_hooks",
    "set_detect_anomaly",
    "set_grad_enabled",
]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
