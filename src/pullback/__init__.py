"""pullback: gradients through your own operations, on any array library."""

from pullback import autograd, cuda, errors, optim
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
from pullback.ops.conversion import astype, clone
from pullback.ops.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from pullback.ops.elementwise import (
    absolute as abs,
)
from pullback.ops.elementwise import (
    add,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clamp,
    clip,
    conj,
    cos,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    reciprocal,
    relu,
    remainder,
    round,
    sigmoid,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from pullback.ops.elementwise import divide as div
from pullback.ops.elementwise import multiply as mul
from pullback.ops.elementwise import negative as neg
from pullback.ops.elementwise import power as pow
from pullback.ops.elementwise import subtract as sub
from pullback.ops.linalg import matmul, mm
from pullback.ops.random import (
    Generator,
    manual_seed,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)
from pullback.ops.reductions import (
    all_ as all,
)
from pullback.ops.reductions import (
    any_ as any,
)
from pullback.ops.reductions import (
    argmax,
    argmin,
    cumsum,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    prod,
    softmax,
    std,
    sum,
    var,
)
from pullback.ops.reductions import cumsum as cumulative_sum
from pullback.ops.shape import (
    broadcast_to,
    chunk,
    concat,
    diagonal,
    expand_dims,
    flip,
    matrix_transpose,
    permute_dims,
    reshape,
    split,
    squeeze,
    stack,
    sum_to_size,
    transpose,
    unstack,
)
from pullback.ops.shape import concat as cat
from pullback.ops.shape import imaginary_part as imag
from pullback.ops.shape import real_part as real
from pullback.ops.shape import unstack as unbind

__version__ = "0.1.0"

float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]
int8, int16, int32, int64 = (DTYPES[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DTYPES[f"uint{n}"] for n in (8, 16, 32, 64))
bool = DTYPES["bool"]
