"""What PyTorch has and pullback has not, by name, with the reason: nothing else is missing.

A name that PyTorch adds, or that pullback loses or gains, makes a test fail.
"""

import inspect

import pytest
import torch

import pullback as pb

pytestmark = pytest.mark.peers

STRIDES = "memory is the array library's; a view is taken by indexing"

DEVICES = "of devices that no array library here has"
SPARSE = "sparse tensors are not there"
QUANTIZED = "quantized tensors are not there"
LAZY = "conjugates and negatives are computed at once"
OLD = "PyTorch advises against it, or has taken it out: there is another"
PROCESSES = "of PyTorch's processes, names and subclasses"
PYTHON = "takes a Python function for each element: use NumPy's"
GENERAL = "the standard has no such factors of general matrices: eig, svd and qr are there"
PARTS = "LAPACK's parts of a decomposition, which qr gives whole"
RARE = "rare: say where it is missed"
DTYPE = "NumPy has no such dtype"
FIXED = "of compiled graphs, where a shape is to be known before"
INSIDE = "PyTorch's own, of which nobody need know"
IN_PLACE = "what is in place is a method"
SECOND = "a function with return_indices=True"
LAYERS = "is for modules, of which there are none: attention itself is there"
SPECIAL = "SciPy has it, without a derivative"
NAMED = "it is there as mvlgamma"
UNCHECKED = "its errors are raised, not returned"
PROGRAM = "a dynamic program over all alignments"

METHODS = {
    STRIDES: """as_strided as_strided_ as_strided_scatter const_data_ptr data_ptr dim_order
        is_pinned is_set_to layout new_empty_strided pin_memory record_stream resize resize_
        resize_as resize_as_ set_ storage storage_offset storage_type stride untyped_storage""",
    DEVICES: """ipu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu mtia
        to_mkldnn xpu""",
    SPARSE: """ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced
        is_nested is_sparse is_sparse_csr resize_as_sparse_ row_indices smm sparse_dim sparse_mask
        sparse_resize_ sparse_resize_and_clear_ sspaddmm to_dense to_padded_tensor to_sparse
        to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values""",
    QUANTIZED: """dequantize int_repr is_quantized q_per_channel_axis q_per_channel_scales
        q_per_channel_zero_points q_scale q_zero_point qscheme""",
    LAZY: "is_conj is_neg",
    OLD: """eig lstsq new reinforce solve symeig triangular_solve volatile""",
    PROCESSES: """as_subclass grad_dtype hash_tensor is_distributed is_inference is_shared
        module_load name share_memory_""",
    PYTHON: "apply_ map_ map2_",
    GENERAL: "lu lu_solve",
    PARTS: "geqrf orgqr ormqr",
    RARE: "frexp",
    DTYPE: "bfloat16 chalf",
    FIXED: "narrow_copy nonzero_static slice_inverse",
    INSIDE: "index unsafe_chunk unsafe_split unsafe_split_with_sizes",
}
FUNCTIONAL = {
    IN_PLACE: """celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_""",
    SECOND: """adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
        adaptive_max_pool3d_with_indices max_pool1d_with_indices max_pool2d_with_indices
        max_pool3d_with_indices""",
    INSIDE: """assert_int_or_pair boolean_dispatch conv_tbc grouped_mm handle_torch_function
        has_torch_function has_torch_function_unary has_torch_function_variadic
        linear_cross_entropy native_channel_shuffle scaled_grouped_mm scaled_mm""",
    OLD: "upsample upsample_bilinear upsample_nearest",
    LAYERS: "multi_head_attention_forward",
    PROGRAM: "ctc_loss",
    RARE: """embedding_bag feature_alpha_dropout fractional_max_pool2d
        fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices multilabel_margin_loss""",
}
LINALG = {
    GENERAL: """ldl_factor ldl_factor_ex ldl_solve lu lu_factor lu_factor_ex
        lu_solve""",
    UNCHECKED: "cholesky_ex inv_ex solve_ex",
    PARTS: "householder_product",
}
SPECIAL_FUNCTIONS = {
    SPECIAL: """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
        modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w spherical_bessel_j0""",
    NAMED: "multigammaln",
}


def functions(module):
    """Return the names of the public functions of a module."""
    found = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return {
        name
        for name, value in found.items()
        if callable(value)
        and not inspect.isclass(value)
        and not str(getattr(value, "__module__", "")).startswith("typing")
        and name not in ("Optional",)
    }


def methods():
    """Return the names of the public methods and attributes of PyTorch's tensors."""
    return {name for name in dir(torch.Tensor) if not name.startswith("_")}


TABLES = {
    "Tensor": (methods, (pb.Tensor,), METHODS),
    "nn.functional": (lambda: functions(torch.nn.functional), (pb.nn.functional, pb), FUNCTIONAL),
    "linalg": (lambda: functions(torch.linalg), (pb.linalg, pb), LINALG),
    "fft": (lambda: functions(torch.fft), (pb.fft,), {}),
    "special": (lambda: functions(torch.special), (pb.special, pb), SPECIAL_FUNCTIONS),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_is_missing_is_listed_with_the_reason_and_nothing_else_is(name):
    theirs, places, table = TABLES[name]
    missing = {n for n in theirs() if not any(hasattr(place, n) for place in places)}
    listed = [n for names in table.values() for n in names.split()]
    assert sorted(missing - set(listed)) == []
    assert sorted(set(listed) - missing) == []
    assert len(listed) == len(set(listed))


def test_most_of_pytorch_is_there():
    theirs = methods()
    assert sum(hasattr(pb.Tensor, name) for name in theirs) > 0.8 * len(theirs)
    assert len(functions(torch.nn.functional)) > 100


@pytest.mark.parametrize(
    "name",
    sorted(n for n in dir(pb.Tensor) if n[0] != "_" and n[-1] == "_" and hasattr(pb.Tensor, n)),
)
def test_a_method_in_place_has_a_counterpart_that_is_not(name):
    alone = {"copy_", "fill_diagonal_", "requires_grad_", "zero_", "fill_"}
    random = {"uniform_", "normal_", "random_", "exponential_", "geometric_", "cauchy_"}
    if not name.startswith("__"):
        assert name in alone | random | {"log_normal_"} or hasattr(pb.Tensor, name[:-1])
