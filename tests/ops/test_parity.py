"""What PyTorch users type beyond the standard: arguments, in-place twins, draws, questions."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg

import pullback as pb
from pullback.errors import InplaceError


def leaf(*values):
    return pb.tensor(values, dtype="float64", requires_grad=True)


# -- PyTorch's arguments of arithmetic -------------------------------------------------------------
def test_alpha_scales_what_is_added_or_subtracted():
    x, y = pb.tensor([1.0, 2.0]), pb.tensor([10.0, 20.0])
    assert x.add(y, alpha=2).tolist() == pb.add(x, y, alpha=2).tolist() == [21.0, 42.0]
    assert x.sub(y, alpha=2).tolist() == pb.sub(x, y, alpha=2).tolist() == [-19.0, -38.0]
    assert x.add(1, alpha=3).tolist() == [4.0, 5.0]
    assert x.clone().add_(y, alpha=-1).tolist() == x.clone().sub_(y).tolist() == [-9.0, -18.0]
    assert x.clone().sub_(1, alpha=2).tolist() == [-1.0, 0.0]


@pytest.mark.parametrize(("mode", "expected"), [("trunc", [3, -3, -1]), ("floor", [3, -4, -2])])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_quotient_can_be_rounded(mode, expected, dtype):
    x, y = pb.tensor([7, -7, 5], dtype=dtype), pb.tensor([2, 2, -3], dtype=dtype)
    for result in (pb.div(x, y, rounding_mode=mode), x.clone().div_(y, rounding_mode=mode)):
        assert (result.tolist(), result.dtype.name) == (expected, dtype)


def test_an_unknown_rounding_is_refused():
    with pytest.raises(ValueError, match=r"div: 'trunc', 'floor' or None required"):
        pb.div(pb.ones(2), 2, rounding_mode="up")


def test_round_keeps_so_many_decimals():
    x = pb.tensor([1.2345, -1250.0], dtype="float64")
    assert x.round(decimals=2).tolist() == [1.23, -1250.0]
    assert x.clone().round_(decimals=-2).tolist() == [0.0, -1200.0]
    assert pb.round(x).tolist() == [1.0, -1250.0]


def test_to_takes_its_bools_by_position():
    x = pb.ones(2)
    assert x.to("float64", False, True).dtype is pb.float64
    assert x.to("cpu", pb.float64, False).dtype is pb.float64
    assert x.to("float32", True) is x
    assert x.to("float32", False, True) is not x
    assert x.to(None) is x


def test_new_tensors_take_dtype_device_and_requires_grad():
    x = pb.ones(2, dtype="float64")
    assert x.new_zeros(2, 3, dtype="int8").dtype is pb.int8
    assert x.new_ones((2,), requires_grad=True).requires_grad
    assert x.new_full((2, 1), 3).tolist() == [[3.0], [3.0]]
    assert x.new_empty(4).shape == (4,)
    assert x.new_tensor([1, 2]).dtype is pb.float64


# -- 0-d tensors have a dimension 0 ----------------------------------------------------------------
def by_index(name, x, index):
    more = {"index_fill": (3.0,), "index_select": (), "gather": ()}
    return getattr(x, name)(0, index, *more.get(name, (pb.tensor(3.0, dtype="float64"),)))


@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        ("gather", 2.0, 1.0),
        ("index_select", 2.0, 1.0),
        ("index_fill", 3.0, 0.0),
        ("index_copy", 3.0, 0.0),
        ("index_add", 5.0, 1.0),
        ("scatter", 3.0, 0.0),
        ("scatter_add", 5.0, 1.0),
    ],
)
def test_a_number_is_read_and_written_along_its_dimension_0(name, value, slope):
    x = pb.tensor(2.0, dtype="float64", requires_grad=True)
    result = by_index(name, x, pb.tensor(0))
    assert (result.shape, result.item()) == ((), value)
    assert pb.autograd.grad(result, x)[0].item() == slope
    if "index" in name:
        assert by_index(name, x, pb.tensor([0])).item() == value


def test_a_number_has_one_place_only():
    with pytest.raises(ValueError, match="an index of one element for a 0-d tensor required"):
        pb.tensor(1.0).index_select(0, pb.tensor([0, 0]))


# -- another shape, in place -----------------------------------------------------------------------
SHAPES = {
    "t_": (),
    "transpose_": (0, 1),
    "swapaxes_": (0, 1),
    "swapdims_": (0, 1),
    "unsqueeze_": (-1,),
    "squeeze_": (),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_tensor_keeps_its_shape(name):
    plain = {"swapaxes_": "transpose_", "swapdims_": "transpose_"}.get(name, name)[:-1]
    leaf_ = pb.ones(2, 1, requires_grad=True)
    for x in (pb.ones(2, 1), leaf_, leaf_ * 2, pb.ones(3, 2, 1)[0]):
        with pytest.raises(InplaceError, match=f"^{plain}_: a tensor keeps its shape") as caught:
            getattr(x, name)(*SHAPES[name])
        assert f"x = x.{plain}(...)" in str(caught.value)
        assert (x.shape, x._version, x.tolist()) == ((2, 1), 0, (x.detach().clone()).tolist())


# -- in place --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_a_comparison_in_place_keeps_the_dtype_and_cuts_the_history(name):
    x, y = leaf(1.0, 2.0, 3.0), pb.tensor([2.0, 2.0, 2.0], dtype="float64")
    expected = getattr(x.detach(), name)(y).double().tolist()
    changed = x * 1
    assert getattr(changed, f"{name}_")(y) is changed
    assert (changed.tolist(), changed.dtype.name) == (expected, "float64")
    assert not changed.requires_grad


def test_what_is_made_of_operations_is_done_in_place_with_its_gradients():
    x, a, b = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)
    y = x * 1
    assert y.addcmul_(a, b, value=2) is y
    assert y.tolist() == [31.0, 50.0]
    y.sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([10.0, 12.0], [6.0, 8.0])
    z = (x * 1).float_power_(2)
    assert pb.autograd.grad(z.sum(), x)[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "call",
    [lambda x: x.addcmul_(pb.ones(3, 2), x), lambda x: x.lt_(1j * x)],
)
def test_what_does_not_fit_is_not_written(call):
    x = pb.ones(2)
    with pytest.raises((TypeError, ValueError)):
        call(x)
    assert x.tolist() == [1.0, 1.0]


def test_index_put_writes_or_adds_up():
    place, values = (pb.tensor([0, 0, 2]), pb.tensor([1, 1, 0])), pb.tensor([1.0, 2.0, 4.0])
    assert pb.zeros(3, 2).index_put(place, pb.tensor(5.0)).tolist() == [[0, 5], [0, 0], [5, 0]]
    assert pb.zeros(3, 2).index_put(place, values, True).tolist() == [[0, 3], [0, 0], [4, 0]]
    x = pb.zeros(3, 2)
    assert x.index_put_(place, values, accumulate=True) is x
    x.index_put_((pb.tensor([1]),), pb.tensor([7.0, 8.0]))
    assert x.tolist() == [[0, 3], [7, 8], [4, 0]]
    w = leaf(1.0, 2.0, 3.0)
    (w * 1).index_put_((pb.tensor([0, 0]),), w[:2] * 10, accumulate=True).sum().backward()
    assert w.grad.tolist() == [11.0, 11.0, 1.0]


def test_writing_by_a_mask_or_by_numbers_is_done_in_place():
    x, keep = leaf(1.0, 2.0, 3.0), pb.tensor([True, False, True])
    source = leaf(10.0, 20.0)
    y = (x * 1).masked_scatter_(keep, source)
    assert y.tolist() == [10.0, 2.0, 20.0]
    y.sum().backward()
    assert (x.grad.tolist(), source.grad.tolist()) == ([0.0, 1.0, 0.0], [1.0, 1.0])
    z = pb.zeros(2, 2).put_(pb.tensor([-1]), pb.tensor([5.0]))
    assert z.tolist() == [[0, 0], [0, 5]]
    index, src = pb.tensor([0, 0, 1]), pb.tensor([1.0, 5.0, 3.0])
    assert pb.zeros(2).scatter_reduce_(0, index, src, "amax").tolist() == [5.0, 3.0]
    assert pb.ones(2).index_reduce_(0, index, src, "prod").tolist() == [5.0, 3.0]


def test_fill_diagonal_may_begin_again():
    assert pb.zeros(2, 3).fill_diagonal_(7).tolist() == [[7, 0, 0], [0, 7, 0]]
    assert pb.zeros(5, 2).fill_diagonal_(1).sum().item() == 2
    assert pb.zeros(5, 2).fill_diagonal_(1, wrap=True)[3].tolist() == [1, 0]
    assert pb.zeros(2, 2, 2).fill_diagonal_(3)[1, 1, 1].item() == 3
    with pytest.raises(ValueError, match="fill_diagonal_: axes of one length required"):
        pb.zeros(2, 2, 3).fill_diagonal_(1)


# -- ties ------------------------------------------------------------------------------------------
def test_what_ties_for_a_place_shares_its_gradient():
    x, src, index = leaf(2.0, 0.0), leaf(2.0, 2.0, 1.0), pb.tensor([0, 0, 1])
    result = pb.scatter_reduce(x, 0, index, src, "amax")
    assert result.tolist() == [2.0, 1.0]
    dx, ds = pb.autograd.grad(result.sum(), (x, src))
    np.testing.assert_allclose(dx.tolist(), [1 / 3, 0.0])
    np.testing.assert_allclose(ds.tolist(), [1 / 3, 1 / 3, 1.0])


def test_nan_is_the_extreme_of_its_place():
    src = pb.tensor([math.nan, 1.0])
    result = pb.scatter_reduce(pb.zeros(2), 0, pb.tensor([0, 1]), src, "amax")
    assert result.isnan().tolist() == [True, False]


def test_mode_names_the_last_occurrence_which_has_the_gradient():
    x = pb.tensor([[1.0, 2.0, 2.0, 1.0], [3.0, 3.0, 0.0, 3.0]], requires_grad=True)
    values, indices = x.mode()
    assert (values.tolist(), indices.tolist()) == ([1.0, 3.0], [3, 3])
    values.sum().backward()
    assert x.grad.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]


# -- counting --------------------------------------------------------------------------------------
ROWS = np.array([[1, 0], [0, 1], [1, 0], [1, 0]])


def test_unique_returns_which_and_how_many():
    x = pb.tensor(ROWS)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True, dim=0)
    assert (values.tolist(), counts.tolist()) == ([[0, 1], [1, 0]], [1, 3])
    assert values[inverse].tolist() == ROWS.tolist()
    flat, which = x.unique(return_inverse=True)
    assert flat[which].tolist() == ROWS.tolist()


def test_runs_are_counted():
    values, inverse, counts = pb.tensor(ROWS).unique_consecutive(True, True, dim=0)
    assert (values.tolist(), counts.tolist()) == ([[1, 0], [0, 1], [1, 0]], [1, 1, 2])
    assert inverse.tolist() == [0, 1, 2, 2]


def test_a_histogram_takes_edges_and_weights():
    x, edges = pb.tensor([0.0, 1.0, 2.0, 4.0]), pb.tensor([0.0, 1.0, 4.0])
    assert pb.histogram(x, edges).hist.tolist() == [1.0, 3.0]
    weighted = pb.histogram(x, edges, weight=pb.tensor([1.0, 2.0, 3.0, 4.0]))
    assert weighted.hist.tolist() == [1.0, 9.0]


def test_weights_of_integers_count_in_float64():
    counts = pb.bincount(pb.tensor([1, 1]), weights=pb.tensor([2, 3]))
    assert (counts.tolist(), counts.dtype) == ([0.0, 5.0], pb.float64)


# -- questions -------------------------------------------------------------------------------------
def test_equal_as_a_method_is_one_bool_and_allclose_forgives():
    x = pb.tensor([1.0, 2.0])
    assert x.equal(x.clone()) is True
    assert x.equal(pb.ones(3)) is False
    assert x.allclose(x + 1e-9)
    assert not x.allclose(x + 1)
    nan = pb.tensor([math.nan])
    assert pb.isclose(nan, nan).tolist() == [False]
    assert pb.isclose(nan, nan, equal_nan=True).tolist() == [True]
    assert pb.isclose(pb.tensor([math.inf]), pb.tensor([-math.inf])).tolist() == [False]


def test_a_tensor_tells_of_its_memory_and_kind():
    x = pb.zeros(2, 3, dtype="float64")
    assert (x.itemsize, x.element_size(), x.nbytes) == (8, 8, 48)
    assert (x.is_cpu, x.is_cuda, x.get_device()) == (True, False, -1)
    assert (x.nelement(), x.ndimension(), x.is_signed()) == (6, 2, True)
    assert x.is_same_size(pb.ones(2, 3))
    assert not x.int().bool().is_signed()
    assert pb.tensor([2.0]).is_nonzero()
    assert x.type_as(pb.tensor([1])).dtype is pb.int64
    assert [x.byte().dtype.name, x.char().dtype.name, x.short().dtype.name] == [
        *("uint8", "int8", "int16"),
    ]
    assert x.cfloat().dtype is pb.complex64
    assert x.cdouble().dtype is pb.complex128
    assert x.resolve_conj() is x.resolve_neg() is x


# -- matrices --------------------------------------------------------------------------------------
def test_large_matrices_are_scaled_and_squared():
    a = np.array([[0.0, 30.0], [-30.0, 1.0]])
    np.testing.assert_allclose(pb.matrix_exp(pb.tensor(a)).numpy(), scipy.linalg.expm(a), rtol=1e-9)
    assert pb.matrix_exp(pb.tensor([[0, 0], [0, 0]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_product_of_many_goes_the_cheapest_way():
    sizes = (10, 100, 5, 50)
    parts = [pb.ones(n, m, dtype="float64") for n, m in itertools.pairwise(sizes)]
    assert pb.linalg.multi_dot(parts).shape == (10, 50)
    assert pb.chain_matmul(parts[0]).equal(parts[0])
    for wrong in ([parts[0]], [parts[0], parts[2]], [parts[0], pb.ones(100, 1, 1)]):
        with pytest.raises(ValueError, match="multi_dot: "):
            pb.linalg.multi_dot(wrong)


def test_least_squares_tells_rank_and_residuals():
    a = pb.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], dtype="float64")
    found = pb.linalg.lstsq(a, pb.tensor([[1.0], [3.0], [6.0]], dtype="float64"))
    assert int(found.rank) == 2
    assert found.singular_values.shape == (2,)
    np.testing.assert_allclose(found.residuals.tolist(), [1 / 6])
    assert pb.linalg.lstsq(a.mT, pb.ones(2, 1, dtype="float64")).residuals.shape == (0,)


def test_logarithms_of_complex_sums_are_the_principal_ones():
    z = pb.tensor([1 + 3j, 2 + 3j], dtype="complex128")
    expected = np.log(np.sum(np.exp(z.numpy())))
    np.testing.assert_allclose(pb.logsumexp(z).numpy(), expected)
    large = pb.tensor(1000 + 5j, dtype="complex128")
    assert pb.logsumexp(large).numpy() == pytest.approx(1000 + (5 - 2 * math.pi) * 1j)


def test_vectors_broadcast_before_their_angle_is_measured():
    cosine = pb.cosine_similarity(pb.ones(1, 2, 3), pb.ones(2, 1, 3), dim=-2)
    np.testing.assert_allclose(cosine.numpy(), np.ones((2, 3)), rtol=1e-6)


# -- small differences -----------------------------------------------------------------------------
def test_an_empty_tuple_of_axes_squeezes_nothing():
    assert pb.ones(1, 1).squeeze(()).shape == (1, 1)
    assert pb.tensor(1.0).squeeze(0).shape == pb.tensor(1.0).squeeze((0,)).shape == ()


def test_tensors_say_where_to_cut():
    x = pb.arange(4)
    assert [p.tolist() for p in pb.tensor_split(x, pb.tensor([1, 3]))] == [[0], [1, 2], [3]]
    assert [p.tolist() for p in pb.tensor_split(x, pb.tensor(2))] == [[0, 1], [2, 3]]
    assert [p.tolist() for p in pb.tensor_split(x, pb.tensor([]))] == [[0, 1, 2, 3]]


def test_a_border_may_be_repeated_beyond_what_was_cut_off():
    x = pb.arange(4.0)
    assert pb.nn.functional.pad(x, (-4, 5), "replicate").tolist() == [3.0] * 5
    assert pb.nn.functional.pad(x, (2, -3), "replicate").tolist() == [0.0, 0.0, 0.0]


def test_no_difference_is_the_tensor_itself():
    assert pb.diff(pb.ones(3), n=0, prepend=pb.ones(1)).shape == (3,)


def test_one_axis_is_a_sequence_of_axes_to_a_fourier_transform():
    x = pb.ones(2, 2)
    assert pb.fft.fftn(x, axes=-1).tolist() == pb.fft.fft(x).tolist()
    assert pb.fft.irfftn(pb.fft.rfftn(x, s=2, axes=0), s=2, axes=0).tolist() == x.tolist()


def test_a_bool_in_place_of_an_axis_is_the_correction():
    x = pb.tensor([[1.0, 2.0], [5.0, 9.0]])
    assert [t.tolist() for t in pb.var_mean(x, 0, False)] == [[4.0, 12.25], [3.0, 5.5]]
    assert pb.std_mean(x, unbiased=False)[0].item() == pytest.approx(np.std(x.numpy()))
    with pytest.raises(ValueError, match="var: give unbiased or correction, not both"):
        x.var(unbiased=True, correction=1)
    with pytest.raises(TypeError, match="var: axis must be an integer, got bool"):
        x.var(True, True)


def test_running_sums_in_place_keep_the_dtype():
    x = pb.tensor([1.0, 2.0])
    assert x.cumsum_(0, dtype="float32").tolist() == [1.0, 3.0]
    with pytest.raises(TypeError, match="cumprod_: the tensor's dtype, float32, required"):
        x.cumprod_(0, dtype="float64")


def test_a_number_of_choices_may_be_0():
    assert pb.argwhere(pb.tensor(3.0)).shape == (1, 0)
    assert pb.argwhere(pb.tensor(0.0)).shape == (0, 0)
    assert pb.combinations(pb.arange(3), 0).shape == (1, 0)
    assert pb.block_diag().shape == (1, 0)
