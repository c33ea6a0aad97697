"""pullback: gradients through your own operations, on any array library."""

from pullback import autograd, check, cuda, errors, fft, linalg, ops, optim, special
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
from pullback.core.custom.define import autograd_function
from pullback.core.graph.modes import is_grad_enabled, is_inference_mode_enabled
from pullback.core.tensor.tensor import Tensor
from pullback.errors import AutogradError, UntrackedTensorWarning
from pullback.ops.activations import *
from pullback.ops.arithmetic import *
from pullback.ops.arranging import *
from pullback.ops.attention import *
from pullback.ops.classification import *
from pullback.ops.comparison import *
from pullback.ops.complex_ import *
from pullback.ops.contraction import *
from pullback.ops.conversion import *
from pullback.ops.convolution import *
from pullback.ops.counting import *
from pullback.ops.creation import *
from pullback.ops.determinants import logdet
from pullback.ops.diagonals import *
from pullback.ops.distributions import *
from pullback.ops.elementary import *
from pullback.ops.elementwise import *
from pullback.ops.exponential_sums import *
from pullback.ops.filled import *
from pullback.ops.gamma import *
from pullback.ops.gates import *
from pullback.ops.gathering import *
from pullback.ops.joining import *
from pullback.ops.losses import *
from pullback.ops.manipulation import *
from pullback.ops.margins import *
from pullback.ops.matrix_functions import *
from pullback.ops.names import *
from pullback.ops.namespace import *
from pullback.ops.noise import *
from pullback.ops.normalization import *
from pullback.ops.norms import cdist, norm, normalize
from pullback.ops.padding import *
from pullback.ops.placing import *
from pullback.ops.polar import *
from pullback.ops.pooling import *
from pullback.ops.products import *
from pullback.ops.quantiles import *
from pullback.ops.random import *
from pullback.ops.reductions import *
from pullback.ops.repeating import *
from pullback.ops.resampling import *
from pullback.ops.scans import *
from pullback.ops.sets import *
from pullback.ops.shape import *
from pullback.ops.sorting import *
from pullback.ops.special import *
from pullback.ops.spectrograms import *
from pullback.ops.statistics import *
from pullback.ops.trigonometric import *
from pullback.ops.unpooling import *
from pullback.ops.vectors import *
from pullback.ops.windows import *
from pullback.transforms import elementwise_grad, grad, value_and_grad

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
    "cdist",
    "check",
    "complex64",
    "complex128",
    "cuda",
    "detect_anomaly",
    "elementwise_grad",
    "enable_grad",
    "errors",
    "fft",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "grad",
    "inference_mode",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "linalg",
    "logdet",
    "no_grad",
    "norm",
    "normalize",
    "once_differentiable",
    "optim",
    "register_multi_grad_hook",
    "saved_tensors_hooks",
    "set_default_dtype",
    "set_detect_anomaly",
    "set_grad_enabled",
    "special",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
]
__all__ += ops.activations.__all__
__all__ += ops.arithmetic.__all__
__all__ += ops.arranging.__all__
__all__ += ops.attention.__all__
__all__ += ops.classification.__all__
__all__ += ops.comparison.__all__
__all__ += ops.complex_.__all__
__all__ += ops.contraction.__all__
__all__ += ops.conversion.__all__
__all__ += ops.convolution.__all__
__all__ += ops.counting.__all__
__all__ += ops.creation.__all__
__all__ += ops.diagonals.__all__
__all__ += ops.distributions.__all__
__all__ += ops.elementary.__all__
__all__ += ops.elementwise.__all__
__all__ += ops.exponential_sums.__all__
__all__ += ops.filled.__all__
__all__ += ops.gamma.__all__
__all__ += ops.gates.__all__
__all__ += ops.gathering.__all__
__all__ += ops.joining.__all__
__all__ += ops.losses.__all__
__all__ += ops.manipulation.__all__
__all__ += ops.margins.__all__
__all__ += ops.matrix_functions.__all__
__all__ += ops.names.__all__
__all__ += ops.namespace.__all__
__all__ += ops.noise.__all__
__all__ += ops.normalization.__all__
__all__ += ops.padding.__all__
__all__ += ops.placing.__all__
__all__ += ops.polar.__all__
__all__ += ops.pooling.__all__
__all__ += ops.products.__all__
__all__ += ops.quantiles.__all__
__all__ += ops.random.__all__
__all__ += ops.reductions.__all__
__all__ += ops.repeating.__all__
__all__ += ops.resampling.__all__
__all__ += ops.scans.__all__
__all__ += ops.sets.__all__
__all__ += ops.shape.__all__
__all__ += ops.special.__all__
__all__ += ops.sorting.__all__
__all__ += ops.spectrograms.__all__
__all__ += ops.statistics.__all__
__all__ += ops.trigonometric.__all__
__all__ += ops.unpooling.__all__
__all__ += ops.vectors.__all__
__all__ += ops.windows.__all__
