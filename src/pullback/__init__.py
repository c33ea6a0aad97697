"""pullback: gradients through your own operations, on any array library."""

from pullback import autograd, cuda, errors, ops, optim
from pullback.arrays import (
    DTYPES,
    DType,
    get_default_dtype,
    set_default_dtype,
)
from pullback.autograd import (
    Function,
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    once_differentiable,
    register_multi_grad_hook,
    saved_tensors_hooks,
    set_detect_anomaly,
    set_grad_enabled,
)
from pullback.core.extend import autograd_function
from pullback.core.modes import is_grad_enabled, is_inference_mode_enabled
from pullback.core.tensor import Tensor
from pullback.errors import AutogradError, UntrackedTensorWarning
from pullback.ops.activations import *
from pullback.ops.comparison import *
from pullback.ops.complex_ import *
from pullback.ops.conversion import *
from pullback.ops.creation import *
from pullback.ops.elementary import *
from pullback.ops.elementwise import *
from pullback.ops.joining import *
from pullback.ops.linalg import *
from pullback.ops.random import *
from pullback.ops.reductions import *
from pullback.ops.shape import *

__version__ = "0.1.0"

float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]
int8, int16, int32, int64 = (DTYPES[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DTYPES[f"uint{n}"] for n in (8, 16, 32, 64))
bool = DTYPES["bool"]

__all__ = [
    "AutogradError",
    "DType",
    "Function",
    "Tensor",
    "UntrackedTensorWarning",
    "__version__",
    "autograd",
    "autograd_function",
    "bool",
    "complex64",
    "complex128",
    "cuda",
    "detect_anomaly",
    "enable_grad",
    "errors",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "inference_mode",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "optim",
    "register_multi_grad_hook",
    "saved_tensors_hooks",
    "set_default_dtype",
    "set_detect_anomaly",
    "set_grad_enabled",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += ops.activations.__all__
__all__ += ops.comparison.__all__
__all__ += ops.complex_.__all__
__all__ += ops.conversion.__all__
__all__ += ops.creation.__all__
__all__ += ops.elementary.__all__
__all__ += ops.elementwise.__all__
__all__ += ops.joining.__all__
__all__ += ops.linalg.__all__
__all__ += ops.random.__all__
__all__ += ops.reductions.__all__
__all__ += ops.shape.__all__
