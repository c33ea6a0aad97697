"""What `pullback` exports, for type checkers. Written by `make stubs`; not to be edited."""

import builtins
from typing import Any

from pullback.arrays import DType as DType
from pullback.arrays import get_default_dtype as get_default_dtype
from pullback.arrays import set_default_dtype as set_default_dtype
from pullback.arrays import set_num_threads as set_num_threads
from pullback.autograd import Function as Function
from pullback.autograd import detect_anomaly as detect_anomaly
from pullback.autograd import enable_grad as enable_grad
from pullback.autograd import inference_mode as inference_mode
from pullback.autograd import no_grad as no_grad
from pullback.autograd import once_differentiable as once_differentiable
from pullback.autograd import register_multi_grad_hook as register_multi_grad_hook
from pullback.autograd import saved_tensors_hooks as saved_tensors_hooks
from pullback.autograd import set_detect_anomaly as set_detect_anomaly
from pullback.autograd import set_grad_enabled as set_grad_enabled
from pullback.core.custom.context import Context as Context
from pullback.core.custom.define import autograd_function as autograd_function
from pullback.core.custom.source import source as source
from pullback.core.graph.modes import is_grad_enabled as is_grad_enabled
from pullback.core.graph.modes import is_inference_mode_enabled as is_inference_mode_enabled
from pullback.core.tensor.tensor import Tensor as Tensor
from pullback.errors import AutogradError as AutogradError
from pullback.errors import UntrackedTensorWarning as UntrackedTensorWarning
from pullback.ops.functions.creation import arange as arange
from pullback.ops.functions.creation import as_tensor as as_tensor
from pullback.ops.functions.creation import asarray as asarray
from pullback.ops.functions.creation import empty as empty
from pullback.ops.functions.creation import empty_like as empty_like
from pullback.ops.functions.creation import eye as eye
from pullback.ops.functions.creation import from_dlpack as from_dlpack
from pullback.ops.functions.creation import from_numpy as from_numpy
from pullback.ops.functions.creation import full as full
from pullback.ops.functions.creation import full_like as full_like
from pullback.ops.functions.creation import linspace as linspace
from pullback.ops.functions.creation import logspace as logspace
from pullback.ops.functions.creation import ones as ones
from pullback.ops.functions.creation import ones_like as ones_like
from pullback.ops.functions.creation import tensor as tensor
from pullback.ops.functions.creation import zeros as zeros
from pullback.ops.functions.creation import zeros_like as zeros_like
from pullback.ops.functions.data_types import __array_api_version__ as __array_api_version__
from pullback.ops.functions.data_types import __array_namespace_info__ as __array_namespace_info__
from pullback.ops.functions.data_types import astype as astype
from pullback.ops.functions.data_types import broadcast_shapes as broadcast_shapes
from pullback.ops.functions.data_types import can_cast as can_cast
from pullback.ops.functions.data_types import detach as detach
from pullback.ops.functions.data_types import e as e
from pullback.ops.functions.data_types import finfo as finfo
from pullback.ops.functions.data_types import iinfo as iinfo
from pullback.ops.functions.data_types import inf as inf
from pullback.ops.functions.data_types import is_complex as is_complex
from pullback.ops.functions.data_types import is_floating_point as is_floating_point
from pullback.ops.functions.data_types import is_nonzero as is_nonzero
from pullback.ops.functions.data_types import is_same_size as is_same_size
from pullback.ops.functions.data_types import is_signed as is_signed
from pullback.ops.functions.data_types import is_tensor as is_tensor
from pullback.ops.functions.data_types import isdtype as isdtype
from pullback.ops.functions.data_types import nan as nan
from pullback.ops.functions.data_types import newaxis as newaxis
from pullback.ops.functions.data_types import numel as numel
from pullback.ops.functions.data_types import pi as pi
from pullback.ops.functions.data_types import promote_types as promote_types
from pullback.ops.functions.data_types import result_type as result_type
def clone(x: Any, /, *, out: Any = ...) -> Tensor: ...
def divide(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def floor_divide(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def fmod(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def gcd(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def lcm(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def maximum(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def minimum(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def mul(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def multiply(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def neg(x: Any, /, *, out: Any = ...) -> Tensor: ...
def negative(x: Any, /, *, out: Any = ...) -> Tensor: ...
def positive(x: Any, /, *, out: Any = ...) -> Tensor: ...
def pow(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def remainder(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def subtract(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def true_divide(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def exp(x: Any, /, *, out: Any = ...) -> Tensor: ...
def exp2(x: Any, /, *, out: Any = ...) -> Tensor: ...
def expm1(x: Any, /, *, out: Any = ...) -> Tensor: ...
def log(x: Any, /, *, out: Any = ...) -> Tensor: ...
def log10(x: Any, /, *, out: Any = ...) -> Tensor: ...
def log1p(x: Any, /, *, out: Any = ...) -> Tensor: ...
def log2(x: Any, /, *, out: Any = ...) -> Tensor: ...
def logaddexp(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def reciprocal(x: Any, /, *, out: Any = ...) -> Tensor: ...
def rsqrt(x: Any, /, *, out: Any = ...) -> Tensor: ...
def sqrt(x: Any, /, *, out: Any = ...) -> Tensor: ...
def square(x: Any, /, *, out: Any = ...) -> Tensor: ...
def xlog1py(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def xlogy(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def abs(x: Any, /, *, out: Any = ...) -> Tensor: ...
def absolute(x: Any, /, *, out: Any = ...) -> Tensor: ...
def ceil(x: Any, /, *, out: Any = ...) -> Tensor: ...
def copysign(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def fix(x: Any, /, *, out: Any = ...) -> Tensor: ...
def floor(x: Any, /, *, out: Any = ...) -> Tensor: ...
def frac(x: Any, /, *, out: Any = ...) -> Tensor: ...
def heaviside(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def nextafter(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def signbit(x: Any, /, *, out: Any = ...) -> Tensor: ...
def trunc(x: Any, /, *, out: Any = ...) -> Tensor: ...
def acos(x: Any, /, *, out: Any = ...) -> Tensor: ...
def acosh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def arccos(x: Any, /, *, out: Any = ...) -> Tensor: ...
def arccosh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def arcsin(x: Any, /, *, out: Any = ...) -> Tensor: ...
def arcsinh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def arctan(x: Any, /, *, out: Any = ...) -> Tensor: ...
def arctan2(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def arctanh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def asin(x: Any, /, *, out: Any = ...) -> Tensor: ...
def asinh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def atan(x: Any, /, *, out: Any = ...) -> Tensor: ...
def atan2(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def atanh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def cos(x: Any, /, *, out: Any = ...) -> Tensor: ...
def cosh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def deg2rad(x: Any, /, *, out: Any = ...) -> Tensor: ...
def hypot(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def rad2deg(x: Any, /, *, out: Any = ...) -> Tensor: ...
def sin(x: Any, /, *, out: Any = ...) -> Tensor: ...
def sinh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def tan(x: Any, /, *, out: Any = ...) -> Tensor: ...
def tanh(x: Any, /, *, out: Any = ...) -> Tensor: ...
def conj(x: Any, /, *, out: Any = ...) -> Tensor: ...
def expit(x: Any, /, *, out: Any = ...) -> Tensor: ...
def relu(x: Any, /, *, out: Any = ...) -> Tensor: ...
def sigmoid(x: Any, /, *, out: Any = ...) -> Tensor: ...
from pullback.ops.functions.pointwise import add as add
from pullback.ops.functions.pointwise import addcdiv as addcdiv
from pullback.ops.functions.pointwise import addcmul as addcmul
from pullback.ops.functions.pointwise import clamp as clamp
from pullback.ops.functions.pointwise import clamp_max as clamp_max
from pullback.ops.functions.pointwise import clamp_min as clamp_min
from pullback.ops.functions.pointwise import clip as clip
from pullback.ops.functions.pointwise import div as div
from pullback.ops.functions.pointwise import float_power as float_power
from pullback.ops.functions.pointwise import fmax as fmax
from pullback.ops.functions.pointwise import fmin as fmin
from pullback.ops.functions.pointwise import hardshrink as hardshrink
from pullback.ops.functions.pointwise import ldexp as ldexp
from pullback.ops.functions.pointwise import lerp as lerp
from pullback.ops.functions.pointwise import logaddexp2 as logaddexp2
from pullback.ops.functions.pointwise import masked_fill as masked_fill
from pullback.ops.functions.pointwise import nan_to_num as nan_to_num
from pullback.ops.functions.pointwise import prelu as prelu
from pullback.ops.functions.pointwise import round as round
from pullback.ops.functions.pointwise import rsub as rsub
from pullback.ops.functions.pointwise import sgn as sgn
from pullback.ops.functions.pointwise import sign as sign
from pullback.ops.functions.pointwise import sub as sub
from pullback.ops.functions.pointwise import where as where
from pullback.ops.functions.complex_numbers import angle as angle
from pullback.ops.functions.complex_numbers import complex as complex
from pullback.ops.functions.complex_numbers import imag as imag
from pullback.ops.functions.complex_numbers import isreal as isreal
from pullback.ops.functions.complex_numbers import polar as polar
from pullback.ops.functions.complex_numbers import real as real
from pullback.ops.functions.complex_numbers import view_as_complex as view_as_complex
from pullback.ops.functions.complex_numbers import view_as_real as view_as_real
def bitwise_and(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def bitwise_invert(x: Any, /, *, out: Any = ...) -> Tensor: ...
def bitwise_left_shift(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def bitwise_not(x: Any, /, *, out: Any = ...) -> Tensor: ...
def bitwise_or(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def bitwise_right_shift(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def bitwise_xor(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def eq(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def equal(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def ge(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def greater(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def greater_equal(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def gt(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def isfinite(x: Any, /, *, out: Any = ...) -> Tensor: ...
def isinf(x: Any, /, *, out: Any = ...) -> Tensor: ...
def isnan(x: Any, /, *, out: Any = ...) -> Tensor: ...
def le(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def less(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def less_equal(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def logical_and(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def logical_not(x: Any, /, *, out: Any = ...) -> Tensor: ...
def logical_or(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def logical_xor(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def lt(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def ne(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
def not_equal(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
from pullback.ops.functions.comparison import allclose as allclose
from pullback.ops.functions.comparison import isclose as isclose
from pullback.ops.functions.comparison import isneginf as isneginf
from pullback.ops.functions.comparison import isposinf as isposinf
def i0(x: Any, /, *, out: Any = ...) -> Tensor: ...
def i0e(x: Any, /, *, out: Any = ...) -> Tensor: ...
def i1(x: Any, /, *, out: Any = ...) -> Tensor: ...
def i1e(x: Any, /, *, out: Any = ...) -> Tensor: ...
def betaln(a: Any, b: Any, /, *, out: Any = ...) -> Tensor: ...
def digamma(x: Any, /, *, out: Any = ...) -> Tensor: ...
def gammaln(x: Any, /, *, out: Any = ...) -> Tensor: ...
def lgamma(x: Any, /, *, out: Any = ...) -> Tensor: ...
def zeta(s: Any, q: Any, /, *, out: Any = ...) -> Tensor: ...
def entr(x: Any, /, *, out: Any = ...) -> Tensor: ...
def erf(x: Any, /, *, out: Any = ...) -> Tensor: ...
def erfc(x: Any, /, *, out: Any = ...) -> Tensor: ...
def erfcx(x: Any, /, *, out: Any = ...) -> Tensor: ...
def erfinv(x: Any, /, *, out: Any = ...) -> Tensor: ...
def log_ndtr(x: Any, /, *, out: Any = ...) -> Tensor: ...
def ndtr(x: Any, /, *, out: Any = ...) -> Tensor: ...
def ndtri(x: Any, /, *, out: Any = ...) -> Tensor: ...
def sinc(x: Any, /, *, out: Any = ...) -> Tensor: ...
def betainc(a: Any, b: Any, x: Any, /) -> Tensor: ...
def fdtrc(dfn: Any, dfd: Any, x: Any, /) -> Tensor: ...
def gammainc(a: Any, x: Any, /, *, out: Any = ...) -> Tensor: ...
def gammaincc(a: Any, x: Any, /, *, out: Any = ...) -> Tensor: ...
def igamma(a: Any, x: Any, /, *, out: Any = ...) -> Tensor: ...
def igammac(a: Any, x: Any, /, *, out: Any = ...) -> Tensor: ...
def stdtr(df: Any, t: Any, /, *, out: Any = ...) -> Tensor: ...
from pullback.ops.functions.special import logit as logit
from pullback.ops.functions.special import mvlgamma as mvlgamma
from pullback.ops.functions.special import polygamma as polygamma
def all(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def any(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def argmax(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def argmin(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def count_nonzero(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def max(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def mean(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def min(x: Any, /, *, axis: Any = ..., keepdims: Any = ...) -> Tensor: ...
def std(x: Any, /, *, axis: Any = ..., correction: Any = ..., keepdims: Any = ...) -> Tensor: ...
def var(x: Any, /, *, axis: Any = ..., correction: Any = ..., keepdims: Any = ...) -> Tensor: ...
def amax(x: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor: ...
def amin(x: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor: ...
def aminmax(x: Any, *, axis: Any = ..., keepdims: builtins.bool = ..., dim: Any = ..., keepdim: builtins.bool = ...) -> Any: ...
def log_softmax(x: Any, dim: builtins.int | None = ..., *, dtype: Any = ..., axis: builtins.int | None = ...) -> Tensor: ...
def logsumexp(x: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor: ...
def prod(x: Any, /, *, axis: Any = ..., dtype: Any = ..., keepdims: builtins.bool = ..., dim: Any = ..., keepdim: builtins.bool = ...) -> Tensor: ...
def softmax(x: Any, dim: builtins.int | None = ..., *, dtype: Any = ..., axis: builtins.int | None = ...) -> Tensor: ...
def sum(x: Any, /, *, axis: Any = ..., dtype: Any = ..., keepdims: builtins.bool = ..., dim: Any = ..., keepdim: builtins.bool = ...) -> Tensor: ...
from pullback.ops.functions.statistics import corrcoef as corrcoef
from pullback.ops.functions.statistics import cov as cov
from pullback.ops.functions.statistics import median as median
from pullback.ops.functions.statistics import mode as mode
def nanmean(x: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor: ...
from pullback.ops.functions.statistics import nanmedian as nanmedian
from pullback.ops.functions.statistics import nanquantile as nanquantile
def nansum(x: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, dtype: Any = ..., axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor: ...
from pullback.ops.functions.statistics import quantile as quantile
from pullback.ops.functions.statistics import std_mean as std_mean
from pullback.ops.functions.statistics import var_mean as var_mean
from pullback.ops.functions.histograms import bincount as bincount
from pullback.ops.functions.histograms import histc as histc
from pullback.ops.functions.histograms import histogram as histogram
def cumprod(x: Any, dim: builtins.int | None = ..., *, dtype: Any = ..., axis: builtins.int | None = ...) -> Tensor: ...
def cumsum(x: Any, dim: builtins.int | None = ..., *, dtype: Any = ..., axis: builtins.int | None = ...) -> Tensor: ...
from pullback.ops.functions.scans import cumulative_prod as cumulative_prod
from pullback.ops.functions.scans import cumulative_sum as cumulative_sum
from pullback.ops.functions.scans import cumulative_trapezoid as cumulative_trapezoid
from pullback.ops.functions.scans import diff as diff
from pullback.ops.functions.scans import gradient as gradient
def logcumsumexp(x: Any, dim: builtins.int | None = ..., *, axis: builtins.int | None = ...) -> Tensor: ...
from pullback.ops.functions.scans import trapezoid as trapezoid
from pullback.ops.functions.scans import trapz as trapz
def mm(x: Any, y: Any, /, *, out: Any = ...) -> Tensor: ...
from pullback.ops.functions.products import addbmm as addbmm
from pullback.ops.functions.products import addmm as addmm
from pullback.ops.functions.products import addmv as addmv
from pullback.ops.functions.products import addr as addr
from pullback.ops.functions.products import baddbmm as baddbmm
from pullback.ops.functions.products import bmm as bmm
from pullback.ops.functions.products import cross as cross
from pullback.ops.functions.products import dot as dot
from pullback.ops.functions.products import einsum as einsum
from pullback.ops.functions.products import ger as ger
from pullback.ops.functions.products import inner as inner
from pullback.ops.functions.products import kron as kron
from pullback.ops.functions.products import matmul as matmul
from pullback.ops.functions.products import mv as mv
from pullback.ops.functions.products import outer as outer
from pullback.ops.functions.products import tensordot as tensordot
from pullback.ops.functions.products import vdot as vdot
from pullback.ops.functions.products import vecdot as vecdot
def det(x: Any, /) -> Tensor: ...
def inverse(x: Any, /) -> Tensor: ...
def pinverse(x: Any, /, *, rtol: Any = ...) -> Tensor: ...
from pullback.ops.functions.linear_algebra import logdet as logdet
from pullback.ops.functions.linear_algebra import matrix_power as matrix_power
from pullback.ops.functions.linear_algebra import slogdet as slogdet
from pullback.ops.functions.matrix_functions import chain_matmul as chain_matmul
from pullback.ops.functions.matrix_functions import cholesky_inverse as cholesky_inverse
from pullback.ops.functions.matrix_functions import cholesky_solve as cholesky_solve
from pullback.ops.functions.matrix_functions import matrix_exp as matrix_exp
from pullback.ops.functions.matrix_functions import vander as vander
from pullback.ops.functions.norms import cdist as cdist
from pullback.ops.functions.norms import dist as dist
def norm(x: Any, p: Any = ..., dim: Any = ..., keepdim: builtins.bool = ..., *, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor: ...
from pullback.ops.functions.norms import renorm as renorm
from pullback.ops.functions.diagonals import block_diag as block_diag
from pullback.ops.functions.diagonals import diag as diag
from pullback.ops.functions.diagonals import diag_embed as diag_embed
from pullback.ops.functions.diagonals import diagflat as diagflat
from pullback.ops.functions.diagonals import diagonal as diagonal
from pullback.ops.functions.diagonals import diagonal_scatter as diagonal_scatter
from pullback.ops.functions.diagonals import trace as trace
from pullback.ops.functions.diagonals import tril as tril
from pullback.ops.functions.diagonals import tril_indices as tril_indices
from pullback.ops.functions.diagonals import triu as triu
from pullback.ops.functions.diagonals import triu_indices as triu_indices
from pullback.ops.functions.manipulation import adjoint as adjoint
from pullback.ops.functions.manipulation import broadcast_to as broadcast_to
from pullback.ops.functions.manipulation import expand_dims as expand_dims
from pullback.ops.functions.manipulation import flatten as flatten
from pullback.ops.functions.manipulation import flip as flip
from pullback.ops.functions.manipulation import fliplr as fliplr
from pullback.ops.functions.manipulation import flipud as flipud
from pullback.ops.functions.manipulation import matrix_transpose as matrix_transpose
from pullback.ops.functions.manipulation import moveaxis as moveaxis
from pullback.ops.functions.manipulation import movedim as movedim
from pullback.ops.functions.manipulation import narrow as narrow
from pullback.ops.functions.manipulation import permute as permute
from pullback.ops.functions.manipulation import permute_dims as permute_dims
from pullback.ops.functions.manipulation import ravel as ravel
from pullback.ops.functions.manipulation import reshape as reshape
from pullback.ops.functions.manipulation import roll as roll
from pullback.ops.functions.manipulation import rot90 as rot90
from pullback.ops.functions.manipulation import select as select
from pullback.ops.functions.manipulation import squeeze as squeeze
from pullback.ops.functions.manipulation import sum_to_size as sum_to_size
from pullback.ops.functions.manipulation import swapaxes as swapaxes
from pullback.ops.functions.manipulation import swapdims as swapdims
from pullback.ops.functions.manipulation import t as t
from pullback.ops.functions.manipulation import transpose as transpose
from pullback.ops.functions.manipulation import unflatten as unflatten
from pullback.ops.functions.manipulation import unsqueeze as unsqueeze
from pullback.ops.functions.joining import atleast_1d as atleast_1d
from pullback.ops.functions.joining import atleast_2d as atleast_2d
from pullback.ops.functions.joining import atleast_3d as atleast_3d
def cat(tensors: Any, dim: builtins.int | None = ..., *, axis: builtins.int | None = ...) -> Tensor: ...
from pullback.ops.functions.joining import chunk as chunk
from pullback.ops.functions.joining import column_stack as column_stack
from pullback.ops.functions.joining import concat as concat
def concatenate(tensors: Any, dim: builtins.int | None = ..., *, axis: builtins.int | None = ...) -> Tensor: ...
from pullback.ops.functions.joining import dsplit as dsplit
from pullback.ops.functions.joining import dstack as dstack
from pullback.ops.functions.joining import hsplit as hsplit
from pullback.ops.functions.joining import hstack as hstack
from pullback.ops.functions.joining import row_stack as row_stack
from pullback.ops.functions.joining import split as split
from pullback.ops.functions.joining import stack as stack
from pullback.ops.functions.joining import tensor_split as tensor_split
def unbind(x: Any, dim: builtins.int | None = ..., *, axis: builtins.int | None = ...) -> builtins.tuple[Tensor, ...]: ...
from pullback.ops.functions.joining import unstack as unstack
from pullback.ops.functions.joining import vsplit as vsplit
from pullback.ops.functions.joining import vstack as vstack
from pullback.ops.functions.repeating import broadcast_arrays as broadcast_arrays
from pullback.ops.functions.repeating import broadcast_tensors as broadcast_tensors
from pullback.ops.functions.repeating import cartesian_prod as cartesian_prod
from pullback.ops.functions.repeating import combinations as combinations
from pullback.ops.functions.repeating import meshgrid as meshgrid
from pullback.ops.functions.repeating import repeat as repeat
from pullback.ops.functions.repeating import repeat_interleave as repeat_interleave
from pullback.ops.functions.repeating import tile as tile
from pullback.ops.functions.indexing import argwhere as argwhere
from pullback.ops.functions.indexing import select_scatter as select_scatter
from pullback.ops.functions.indexing import slice_scatter as slice_scatter
from pullback.ops.functions.indexing import unravel_index as unravel_index
from pullback.ops.functions.gathering import gather as gather
from pullback.ops.functions.gathering import index_select as index_select
from pullback.ops.functions.gathering import masked_select as masked_select
from pullback.ops.functions.gathering import take as take
from pullback.ops.functions.gathering import take_along_axis as take_along_axis
from pullback.ops.functions.gathering import take_along_dim as take_along_dim
from pullback.ops.functions.scattering import index_add as index_add
from pullback.ops.functions.scattering import index_copy as index_copy
from pullback.ops.functions.scattering import index_fill as index_fill
from pullback.ops.functions.scattering import index_reduce as index_reduce
from pullback.ops.functions.scattering import masked_scatter as masked_scatter
from pullback.ops.functions.scattering import put as put
from pullback.ops.functions.scattering import scatter as scatter
from pullback.ops.functions.scattering import scatter_add as scatter_add
from pullback.ops.functions.scattering import scatter_reduce as scatter_reduce
from pullback.ops.functions.sorting import argsort as argsort
from pullback.ops.functions.sorting import bucketize as bucketize
from pullback.ops.functions.sorting import cummax as cummax
from pullback.ops.functions.sorting import cummin as cummin
from pullback.ops.functions.sorting import kthvalue as kthvalue
from pullback.ops.functions.sorting import msort as msort
from pullback.ops.functions.sorting import nonzero as nonzero
from pullback.ops.functions.sorting import searchsorted as searchsorted
from pullback.ops.functions.sorting import sort as sort
from pullback.ops.functions.sorting import topk as topk
from pullback.ops.functions.sets import isin as isin
from pullback.ops.functions.sets import unique as unique
from pullback.ops.functions.sets import unique_all as unique_all
from pullback.ops.functions.sets import unique_consecutive as unique_consecutive
from pullback.ops.functions.sets import unique_counts as unique_counts
from pullback.ops.functions.sets import unique_inverse as unique_inverse
from pullback.ops.functions.sets import unique_values as unique_values
from pullback.ops.functions.random import bernoulli as bernoulli
from pullback.ops.functions.random import Generator as Generator
from pullback.ops.functions.random import get_rng_state as get_rng_state
from pullback.ops.functions.random import manual_seed as manual_seed
from pullback.ops.functions.random import multinomial as multinomial
from pullback.ops.functions.random import normal as normal
from pullback.ops.functions.random import rand as rand
from pullback.ops.functions.random import rand_like as rand_like
from pullback.ops.functions.random import randint as randint
from pullback.ops.functions.random import randint_like as randint_like
from pullback.ops.functions.random import randn as randn
from pullback.ops.functions.random import randn_like as randn_like
from pullback.ops.functions.random import randperm as randperm
from pullback.ops.functions.random import set_rng_state as set_rng_state
from pullback.ops.functions.spectral import bartlett_window as bartlett_window
from pullback.ops.functions.spectral import blackman_window as blackman_window
from pullback.ops.functions.spectral import hamming_window as hamming_window
from pullback.ops.functions.spectral import hann_window as hann_window
from pullback.ops.functions.spectral import istft as istft
from pullback.ops.functions.spectral import kaiser_window as kaiser_window
from pullback.ops.functions.spectral import stft as stft
from pullback.nn.activations import celu as celu
from pullback.nn.activations import selu as selu
from pullback.nn.activations import threshold as threshold
from pullback.nn.convolution import conv1d as conv1d
from pullback.nn.convolution import conv2d as conv2d
from pullback.nn.convolution import conv3d as conv3d
from pullback.nn.convolution import conv_transpose1d as conv_transpose1d
from pullback.nn.convolution import conv_transpose2d as conv_transpose2d
from pullback.nn.convolution import conv_transpose3d as conv_transpose3d
from pullback.nn.distances import cosine_similarity as cosine_similarity
from pullback.nn.distances import pairwise_distance as pairwise_distance
from pullback.nn.distances import pdist as pdist
from pullback.nn.dropout import alpha_dropout as alpha_dropout
from pullback.nn.dropout import dropout as dropout
from pullback.nn.dropout import rrelu as rrelu
from pullback.nn.embedding import embedding as embedding
from pullback.nn.linear import bilinear as bilinear
from pullback.nn.losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from pullback.nn.losses import kl_div as kl_div
from pullback.nn.margin_losses import cosine_embedding_loss as cosine_embedding_loss
from pullback.nn.margin_losses import hinge_embedding_loss as hinge_embedding_loss
from pullback.nn.margin_losses import margin_ranking_loss as margin_ranking_loss
from pullback.nn.margin_losses import poisson_nll_loss as poisson_nll_loss
from pullback.nn.margin_losses import triplet_margin_loss as triplet_margin_loss
from pullback.nn.normalization import batch_norm as batch_norm
from pullback.nn.normalization import group_norm as group_norm
from pullback.nn.normalization import instance_norm as instance_norm
from pullback.nn.normalization import layer_norm as layer_norm
from pullback.nn.normalization import rms_norm as rms_norm
from pullback.nn.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from pullback.nn.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from pullback.nn.pooling import avg_pool1d as avg_pool1d
from pullback.nn.pooling import max_pool1d as max_pool1d
from pullback.nn.pooling import max_pool2d as max_pool2d
from pullback.nn.pooling import max_pool3d as max_pool3d
from pullback.nn.vision import channel_shuffle as channel_shuffle
from pullback.nn.vision import pixel_shuffle as pixel_shuffle
from pullback.nn.vision import pixel_unshuffle as pixel_unshuffle
from pullback.transforms import checkpoint as checkpoint
from pullback.transforms import elementwise_grad as elementwise_grad
from pullback.transforms import grad as grad
from pullback.transforms import hessian as hessian
from pullback.transforms import hessian_vector_product as hessian_vector_product
from pullback.transforms import hvp as hvp
from pullback.transforms import jacfwd as jacfwd
from pullback.transforms import jacobian as jacobian
from pullback.transforms import jacrev as jacrev
from pullback.transforms import jvp as jvp
from pullback.transforms import linearize as linearize
from pullback.transforms import save_as as save_as
from pullback.transforms import save_on_cpu as save_on_cpu
from pullback.transforms import value_and_grad as value_and_grad
from pullback.transforms import vhp as vhp
from pullback.transforms import vjp as vjp
from pullback.transforms import vmap as vmap
from pullback import autograd as autograd
from pullback import check as check
from pullback import cuda as cuda
from pullback import errors as errors
from pullback import fft as fft
from pullback import implicit as implicit
from pullback import interop as interop
from pullback import linalg as linalg
from pullback import nn as nn
from pullback import optim as optim
from pullback import optimize as optimize
from pullback import special as special
from pullback.transforms.api import surrogate as surrogate
__version__: str
float16: DType
float32: DType
float64: DType
complex64: DType
complex128: DType
int8: DType
int16: DType
int32: DType
int64: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
bool: DType
from pullback import compat as compat
from pullback import data as data
from pullback import inspect as inspect
from pullback.saving import load as load
from pullback import plot as plot
from pullback.saving import save as save
from pullback.versions import show_versions as show_versions
from pullback import saving as saving
