"""Gradients through your own operations, on any array library.

`autograd_function` makes an operation of forward and backward, `Tensor` records what is computed,
`grad`, `vjp`, `jvp`, `jacobian`, `hessian` and `vmap` are functions of functions. `check` says
whether a gradient is right, and what is wrong with it; `inspect` shows a graph. `nn`, `optim`,
`data` and `save` train, `optimize` and `implicit` solve, `linalg`, `fft` and `special` are NumPy's
and PyTorch's functions.

>>> import pullback as pb
>>> square = pb.autograd_function(
...     lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
...     lambda ctx, grad_output: {"x": 2 * ctx.saved_variables.x * grad_output},
... )
>>> pb.grad(square)(3.0)
6.0
"""
# The table of contents: what users reach as `pullback.<name>`, under the headings of the reference,
# several names a line; hence neither formatted nor sorted.
# fmt: off
# isort: off

import importlib as _importlib
import types as _types
from typing import Any as _Any
# the Tensor, its gradient, and operations of your own
from pullback.arrays import (DTYPES as _DTYPES, DType, get_default_dtype, set_default_dtype,
    set_num_threads)
from pullback.autograd import (Function, detect_anomaly, enable_grad, inference_mode, no_grad,
    once_differentiable, register_multi_grad_hook, saved_tensors_hooks, set_detect_anomaly,
    set_grad_enabled)
from pullback.core.custom.context import Context
from pullback.core.custom.define import autograd_function
from pullback.core.custom.source import source
from pullback.core.graph.modes import is_grad_enabled, is_inference_mode_enabled
from pullback.core.tensor.tensor import Tensor
from pullback.errors import AutogradError, UntrackedTensorWarning
from pullback.hints import absent as _absent
from pullback.public_names import listed as _listed

# creation
from pullback.ops.functions.creation import (arange, as_tensor, asarray, empty, empty_like, eye,
    from_dlpack, from_numpy, full, full_like, linspace, logspace, ones, ones_like, tensor, zeros,
    zeros_like)
# data types, constants and conversions
from pullback.ops.functions.data_types import (__array_api_version__, __array_namespace_info__,
    astype, broadcast_shapes, can_cast, detach, e, finfo, iinfo, inf, is_complex, is_floating_point,
    is_nonzero, is_same_size, is_signed, is_tensor, isdtype, nan, newaxis, numel, pi, promote_types,
    result_type)
from pullback.ops.primitives.conversion import clone
# pointwise
from pullback.ops.primitives.arithmetic import (divide, floor_divide, fmod, gcd, lcm, maximum,
    minimum, mul, multiply, neg, negative, positive, pow, remainder, subtract, true_divide)
from pullback.ops.primitives.exponential import (exp, exp2, expm1, log, log10, log1p, log2,
    logaddexp, reciprocal, rsqrt, sqrt, square, xlog1py, xlogy)
from pullback.ops.primitives.rounding import (abs, absolute, ceil, copysign, fix, floor, frac,
    heaviside, nextafter, signbit, trunc)
from pullback.ops.primitives.trigonometric import (acos, acosh, arccos, arccosh, arcsin, arcsinh,
    arctan, arctan2, arctanh, asin, asinh, atan, atan2, atanh, cos, cosh, deg2rad, hypot, rad2deg,
    sin, sinh, tan, tanh)
from pullback.ops.primitives.complex_numbers import conj
from pullback.ops.primitives.activations import expit, relu, sigmoid
from pullback.ops.functions.pointwise import (add, addcdiv, addcmul, clamp, clamp_max, clamp_min,
    clip, div, float_power, fmax, fmin, hardshrink, ldexp, lerp, logaddexp2, masked_fill,
    nan_to_num, prelu, round, rsub, sgn, sign, sub, where)
from pullback.ops.functions.complex_numbers import (angle, complex, imag, isreal, polar, real,
    view_as_complex, view_as_real)
# comparison, logic and bits
from pullback.ops.primitives.comparison import (bitwise_and, bitwise_invert, bitwise_left_shift,
    bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, eq, equal, ge, greater,
    greater_equal, gt, isfinite, isinf, isnan, le, less, less_equal, logical_and, logical_not,
    logical_or, logical_xor, lt, ne, not_equal)
from pullback.ops.functions.comparison import allclose, isclose, isneginf, isposinf
# special functions
from pullback.ops.primitives.bessel import i0, i0e, i1, i1e
from pullback.ops.primitives.gamma_functions import betaln, digamma, gammaln, lgamma, zeta
from pullback.ops.primitives.special import (entr, erf, erfc, erfcx, erfinv, log_ndtr, ndtr, ndtri,
    sinc)
from pullback.ops.primitives.incomplete import (betainc, fdtrc, gammainc, gammaincc, igamma,
    igammac, stdtr)
from pullback.ops.functions.special import logit, mvlgamma, polygamma
# reductions, statistics and scans
from pullback.ops.primitives.reductions import (all, any, argmax, argmin, count_nonzero, max, mean,
    min, std, var)
from pullback.ops.functions.reductions import (amax, amin, aminmax, log_softmax, logsumexp, prod,
    softmax, sum)
from pullback.ops.functions.statistics import (corrcoef, cov, median, mode, nanmean, nanmedian,
    nanquantile, nansum, quantile, std_mean, var_mean)
from pullback.ops.functions.histograms import bincount, histc, histogram
from pullback.ops.functions.scans import (cumprod, cumsum, cumulative_prod, cumulative_sum,
    cumulative_trapezoid, diff, gradient, logcumsumexp, trapezoid, trapz)
# linear algebra
from pullback.ops.primitives.products import mm
from pullback.ops.functions.products import (addbmm, addmm, addmv, addr, baddbmm, bmm, cross, dot,
    einsum, ger, inner, kron, matmul, mv, outer, tensordot, vdot, vecdot)
from pullback.ops.primitives.solving import det, inverse, pinverse
from pullback.ops.functions.linear_algebra import logdet, matrix_power, slogdet
from pullback.ops.functions.matrix_functions import (chain_matmul, cholesky_inverse, cholesky_solve,
    matrix_exp, vander)
from pullback.ops.functions.norms import cdist, dist, norm, renorm
from pullback.ops.functions.diagonals import (block_diag, diag, diag_embed, diagflat, diagonal,
    diagonal_scatter, trace, tril, tril_indices, triu, triu_indices)
# manipulation
from pullback.ops.functions.manipulation import (adjoint, broadcast_to, expand_dims, flatten, flip,
    fliplr, flipud, matrix_transpose, moveaxis, movedim, narrow, permute, permute_dims, ravel,
    reshape, roll, rot90, select, squeeze, sum_to_size, swapaxes, swapdims, t, transpose, unflatten,
    unsqueeze)
from pullback.ops.functions.joining import (atleast_1d, atleast_2d, atleast_3d, cat, chunk,
    column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack, row_stack, split, stack,
    tensor_split, unbind, unstack, vsplit, vstack)
from pullback.ops.functions.repeating import (broadcast_arrays, broadcast_tensors, cartesian_prod,
    combinations, meshgrid, repeat, repeat_interleave, tile)
# indexing, sorting, searching and sets
from pullback.ops.functions.indexing import argwhere, select_scatter, slice_scatter, unravel_index
from pullback.ops.functions.gathering import (gather, index_select, masked_select, take,
    take_along_axis, take_along_dim)
from pullback.ops.functions.scattering import (index_add, index_copy, index_fill, index_reduce,
    masked_scatter, put, scatter, scatter_add, scatter_reduce)
from pullback.ops.functions.sorting import (argsort, bucketize, cummax, cummin, kthvalue, msort,
    nonzero, searchsorted, sort, topk)
from pullback.ops.functions.sets import (isin, unique, unique_all, unique_consecutive,
    unique_counts, unique_inverse, unique_values)
# random numbers
from pullback.ops.functions.random import (bernoulli, Generator, get_rng_state, manual_seed,
    multinomial, normal, rand, rand_like, randint, randint_like, randn, randn_like, randperm,
    set_rng_state)
# spectra
from pullback.ops.functions.spectral import (bartlett_window, blackman_window, hamming_window,
    hann_window, istft, kaiser_window, stft)
# neural networks: what torch has at its top; the rest is pullback.nn.functional
from pullback.nn.activations import celu, selu, threshold
from pullback.nn.convolution import (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d,
    conv_transpose3d)
from pullback.nn.distances import cosine_similarity, pairwise_distance, pdist
from pullback.nn.dropout import alpha_dropout, dropout, rrelu
from pullback.nn.embedding import embedding
from pullback.nn.linear import bilinear
from pullback.nn.losses import binary_cross_entropy_with_logits, kl_div
from pullback.nn.margin_losses import (cosine_embedding_loss, hinge_embedding_loss,
    margin_ranking_loss, poisson_nll_loss, triplet_margin_loss)
from pullback.nn.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from pullback.nn.pooling import (adaptive_avg_pool1d, adaptive_max_pool1d, avg_pool1d, max_pool1d,
    max_pool2d, max_pool3d)
from pullback.nn.vision import channel_shuffle, pixel_shuffle, pixel_unshuffle

# Tensor's methods and NumPy's functions on tensors: importing these attaches all declared above
from pullback import numpy_protocol as _numpy_protocol
from pullback.ops import methods as _methods

# functions of functions
from pullback.transforms.api.checkpoint import checkpoint
from pullback.transforms.api.grad import elementwise_grad, grad, value_and_grad, vjp
from pullback.transforms.api.jacobian import (hessian, hessian_vector_product, hvp, jacfwd,
    jacobian, jacrev, vhp)
from pullback.transforms.api.jvp import jvp, linearize
from pullback.transforms.api.saved_tensors import save_as, save_on_cpu
from pullback.transforms.api.vmap import vmap

# the modules
from pullback import autograd, check, cuda, errors, fft, interop, linalg, nn, special

__version__ = "0.1.0"

float16, float32, float64 = _DTYPES["float16"], _DTYPES["float32"], _DTYPES["float64"]
complex64, complex128 = _DTYPES["complex64"], _DTYPES["complex128"]
int8, int16, int32, int64 = (_DTYPES[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_DTYPES[f"uint{n}"] for n in (8, 16, 32, 64))
bool = _DTYPES["bool"]
_MODULES = {autograd, check, cuda, errors, fft, interop, linalg, nn, special}
# Loaded at first use.
_LATER = {"compat": "compat", "data": "data", "implicit": "implicit", "inspect": "inspect",
    "load": "saving", "optim": "optim", "optimize": "optimize", "plot": "plot", "save": "saving",
    "saving": "saving", "show_versions": "versions", "surrogate": "transforms.api.surrogate"}
_DUNDERS = {"__array_api_version__", "__array_namespace_info__", "__version__"}
__all__ = sorted(_DUNDERS.union(_LATER, (
    name for name, value in globals().items()
    if name[0].isalpha() and (not isinstance(value, _types.ModuleType) or value in _MODULES)
)))
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Any:
    """Return what loads when it is first used, or say where a name is or what does its work."""
    if name in _LATER:
        module = _importlib.import_module(f"pullback.{_LATER[name]}")
        return globals().setdefault(name, getattr(module, name, module))
    raise _absent(__name__, name)
