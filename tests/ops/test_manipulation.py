"""Manipulation, scans and statistics beyond values and derivatives: views, dtypes, errors."""

import math

import array_api_strict
import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentError

NAN, INF = float("nan"), float("inf")
DATA = np.array([[1.5, -2.0, 0.25], [0.5, 3.0, -1.0]])


def m():
    return pb.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def v():
    return pb.tensor([1.0, 2.0])


def scalar():
    return pb.tensor(1.0)


def i64():
    return pb.tensor([1, 2, 3])


# -- views and copies -----------------------------------------------------------------------------
VIEWS = {
    "moveaxis": lambda x: pb.moveaxis(x, 0, 1),
    "movedim": lambda x: x.movedim(0, -1),
    "swapaxes": lambda x: pb.swapaxes(x, 0, 1),
    "unsqueeze": lambda x: pb.unsqueeze(x, 1),
    "ravel": lambda x: x.ravel(),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "select": lambda x: pb.select(x, 0, 1),
    "narrow": lambda x: pb.narrow(x, 1, 1, 2),
    "tensor_split": lambda x: x.tensor_split(2)[1],
    "atleast_3d": pb.atleast_3d,
}
COPIES = {
    "roll": lambda x: x.roll(0),
    "tile": lambda x: x.tile(1, 1),
    "repeat": lambda x: pb.repeat(x, 1, axis=0),
    "repeat by an array": lambda x: pb.repeat(x, pb.tensor([1, 1]), axis=0),
    "diag": lambda x: x.diag(),
    "rot90": lambda x: x.rot90(0),
    "diff": lambda x: x.diff(n=0),
    "tril": lambda x: x.tril(5),
    "pad": lambda x: pb.nn.functional.pad(x, (0, 0)),
    "pad, circular": lambda x: pb.nn.functional.pad(x, (-1, 0), "circular"),
    "unfold": lambda x: x.unfold(1, 1, 1),
    "ravel of a column": lambda x: x[:, 0].ravel(),
    "ravel of a row of a transpose": lambda x: x.T[:1].ravel(),
    "np.ravel of a column": lambda x: np.ravel(x[:, 0]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_what_is_written_to_its_base_and_has_its_history(name):
    leaf = pb.tensor(DATA, requires_grad=True)
    base = leaf * 1
    view = VIEWS[name](base)
    base.mul_(2)
    assert view.tolist() == VIEWS[name](pb.tensor(2 * DATA)).tolist()
    view.sum().backward()
    assert set(np.unique(leaf.grad.numpy())) <= {0.0, 2.0}
    assert leaf.grad.sum().item() == 2 * view.numel()


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_may_be_written_to(name):
    x = m()
    result = COPIES[name](x)
    result.fill_(9.0)
    assert x.tolist() == m().tolist()


def test_arrays_are_taken_as_tensors_are():
    for result, expected in [
        (pb.select(DATA, 1, 0), DATA[:, 0]),
        (pb.narrow(DATA, 1, 1, 2), DATA[:, 1:]),
        (pb.repeat(DATA, (2, 1), axis=0), DATA[[0, 0, 1]]),
        (pb.diff(DATA), np.diff(DATA)),
        (pb.nansum(DATA), np.sum(DATA)),
        (pb.tensor_split(DATA, 2)[0], DATA[:1]),
        (pb.nn.functional.pad(DATA, (1, 0), "reflect"), np.pad(DATA, ((0, 0), (1, 0)), "reflect")),
    ]:
        assert isinstance(result, pb.Tensor)
        np.testing.assert_array_equal(result.numpy(), expected)


def test_an_empty_axis_is_cut_into_empty_parts():
    for shape, dim in (((0,), 0), ((0, 2), 0), ((2, 0), 1)):
        x = pb.zeros(shape, requires_grad=True)
        assert [part.shape for part in x.chunk(3, dim)] == [shape] * 3
        assert [part.shape for part in x.split(0, dim)] == [shape]
        assert [part.shape for part in x.tensor_split(3, dim)] == [shape] * 3
        assert x.unbind(dim) == ()
        assert pb.autograd.grad(sum(part.sum() for part in x.chunk(3, dim)), x)[0].shape == shape
    with pytest.raises(ArgumentError, match="split: a part must have a positive length, got 0"):
        pb.zeros(2, 0).split(0)


# What these return was last reshaped, or is a part of what they computed.
RESHAPED = {
    "max": lambda x: x.max(0)[0],
    "min": lambda x: x.min(0)[0],
    "median": lambda x: x.median(0)[0],
    "kthvalue": lambda x: x.kthvalue(1, 0)[0],
    "mode": lambda x: x.mode(0)[0],
    "quantile": lambda x: x.quantile(0.5, 0),
    "roll": lambda x: x[0].roll(2),
    "kron": lambda x: pb.kron(x[0], pb.ones(1)),
    "inner": lambda x: pb.inner(pb.eye(3), x[0]),
    "np.median": lambda x: np.median(x, 0),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_what_was_computed_is_no_view_of_something_hidden(name):
    x = pb.tensor([[1.0, 2.0, 3.0], [5.0, 4.0, 6.0]], requires_grad=True)
    m = RESHAPED[name](x)
    v = m[:2]
    m.mul_(2)
    (g,) = pb.autograd.grad(v.sum() + m.sum(), m)
    assert g.tolist() == [2.0, 2.0, 1.0]
    assert not m.detach_().requires_grad


def test_unfold_is_a_copy():
    x = pb.tensor([1.0, 2.0, 3.0])
    windows = x.unfold(0, 1, 2)
    windows.zero_()
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_a_result_keeps_no_larger_memory_alive():
    x = pb.rand(1000, 3)
    for result in (x.max(0)[0], x.kthvalue(1, 0)[0], x.median(0)[0], x.quantile(0.5, 0)):
        array = result.numpy()
        assert array.base is None or array.base.size <= 3


# -- the two faces --------------------------------------------------------------------------------
def test_repeat_is_the_standards_as_a_function_and_pytorchs_as_a_method():
    x = pb.tensor([1, 2])
    assert pb.repeat(x, 2).tolist() == x.repeat_interleave(2).tolist() == [1, 1, 2, 2]
    assert x.repeat(2).tolist() == x.tile((2,)).tolist() == [1, 2, 1, 2]
    assert x.repeat(2, 1).tolist() == [[1, 2], [1, 2]]
    assert pb.tile(x, 2).tolist() == [1, 2, 1, 2]
    assert pb.repeat(pb.tensor(3), 2, axis=0).tolist() == [3, 3]


@pytest.mark.parametrize("repeats", [[1, 0, 2], (1, 0, 2), np.array([1, 0, 2])], ids=str)
def test_repeat_takes_its_numbers_in_any_form(repeats):
    x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for given in (repeats, pb.tensor(repeats)):
        result = pb.repeat(x, given)
        assert result.tolist() == [1.0, 3.0, 3.0]
        (g,) = pb.autograd.grad(result, x, pb.tensor([1.0, 10.0, 100.0]))
        assert g.tolist() == [1.0, 0.0, 110.0]
    assert pb.repeat(x, pb.tensor([2])).tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_repeat_stays_in_its_array_library():
    x = pb.asarray(array_api_strict.asarray([1.0, 2.0]))
    counts = pb.asarray(array_api_strict.asarray([2, 1]))
    result = pb.repeat(x, counts)
    assert result.device == x.device
    assert result.tolist() == [1.0, 1.0, 2.0]


def test_tril_and_triu_take_the_diagonal_under_both_names():
    x = m()
    expected = np.tril(x.numpy(), 1).tolist()
    assert x.tril(1).tolist() == x.tril(diagonal=1).tolist() == x.tril(k=1).tolist() == expected
    assert pb.tril(x, k=1).tolist() == expected
    assert x.triu(-1).tolist() == np.triu(x.numpy(), -1).tolist()


def test_roll_takes_several_shifts_of_one_axis_and_one_for_several():
    x = m()
    assert x.roll((1, 1), (1, -1)).tolist() == x.roll(2, dims=1).tolist()
    assert x.roll(1, (0, 1)).tolist() == np.roll(x.numpy(), 1, (0, 1)).tolist()
    assert pb.roll(x, 7).tolist() == np.roll(x.numpy(), 7).tolist()
    assert scalar().roll(1).item() == 1.0


def test_diff_of_bools_says_whether_neighbours_differ():
    assert pb.diff(pb.tensor([True, True, False])).tolist() == [False, True]
    assert pb.diff(pb.tensor([3, 1])).tolist() == [-2]


def test_diff_takes_what_stands_before_and_after():
    x = pb.tensor([1.0, 4.0])
    assert pb.diff(x, prepend=pb.tensor([0.0])).tolist() == [1.0, 3.0]
    assert x.diff(append=pb.tensor([9.0]), n=2).tolist() == [2.0]


def test_meshgrid_of_nothing_and_of_one_vector():
    assert pb.meshgrid() == []
    assert pb.broadcast_arrays() == []
    assert pb.meshgrid(v())[0].tolist() == [1.0, 2.0]


def test_broadcast_arrays_keeps_each_dtype():
    x, y = pb.broadcast_arrays(i64(), scalar())
    assert (x.dtype, y.dtype) == (pb.int64, pb.float32)


def test_atleast_1d_and_2d_take_several_tensors():
    one, two = pb.atleast_2d(scalar(), m())
    assert (one.shape, two.shape) == ((1, 1), (2, 3))
    assert [x.shape for x in pb.atleast_1d([scalar(), v()])] == [(1,), (2,)]


def test_cat_and_unbind_take_an_axis_too():
    assert pb.cat([m(), m()], axis=1).shape == (2, 6)
    assert len(pb.unbind(m(), axis=1)) == 3


def test_unfold_of_a_scalar_is_of_its_one_element():
    x = pb.tensor(3.0, requires_grad=True)
    result = x.unfold(0, 1, 1)
    assert result.tolist() == [3.0]
    (g,) = pb.autograd.grad(result.sum(), x, create_graph=True)
    assert g.item() == 1.0
    assert x.unfold(0, 0, 2).shape == (0,)


def test_pad_of_whole_numbers_keeps_the_dtype():
    assert pb.nn.functional.pad(i64(), (1, 0), value=7).tolist() == [7, 1, 2, 3]
    assert pb.nn.functional.pad(i64(), (1, 0)).dtype is pb.int64


# -- in place -------------------------------------------------------------------------------------
IN_PLACE = {
    "cumsum_": (lambda x: x.cumsum_(0), lambda x: x.cumsum(0)),
    "cumprod_": (lambda x: x.cumprod_(dim=1), lambda x: x.cumprod(1)),
    "tril_": (lambda x: x.tril_(), lambda x: x.tril()),
    "triu_": (lambda x: x.triu_(1), lambda x: x.triu(1)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_change_of_a_part_in_place_reaches_the_whole_and_is_recorded(name):
    change, function = IN_PLACE[name]
    x = pb.tensor(np.stack([DATA, DATA + 1]), requires_grad=True)
    whole = x * 1
    assert change(whole[1]).tolist() == function(x[1]).tolist()
    assert whole[0].tolist() == x[0].tolist()
    (ours,) = pb.autograd.grad((whole[1] ** 2).sum(), x)
    (theirs,) = pb.autograd.grad((function(x[1]) ** 2).sum(), x)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-14)


# -- scans ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("zeros", [(), (0,), (4,), (1, 3), (0, 1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("unit", [1.0, 1 - 0.5j])
def test_cumprod_has_the_derivatives_of_products_one_by_one(zeros, unit):
    values = np.array([1.5, -2.0, 0.5, 3.0, 2.5]) * unit
    values[list(zeros)] = 0
    weights = pb.tensor(np.array([1.0, 2.0, -1.0, 0.5, 3.0]) * unit)

    def one_by_one(x):
        return pb.stack([pb.prod(x[: i + 1]) for i in range(5)])

    found = []
    for function in (lambda x: x.cumprod(0), one_by_one):
        x = pb.tensor(values, requires_grad=True)
        (first,) = pb.autograd.grad(function(x), x, weights, create_graph=True)
        (second,) = pb.autograd.grad(first, x, weights)
        found.append((first.detach().numpy(), second.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("length", [1, 2, 3, 1000])
def test_cumprod_of_many_is_differentiated_without_loss(length):
    x = pb.tensor(np.full(length, 1 + 1e-3), requires_grad=True)
    x.cumprod(0)[-1].backward()
    np.testing.assert_allclose(x.grad.numpy(), (1 + 1e-3) ** (length - 1), rtol=1e-12)


def test_cumsum_and_cumulative_prod_widen_small_integers_or_take_a_dtype():
    x = pb.tensor([100, 100], dtype="int8")
    assert x.cumsum(0).tolist() == [100, 200]
    assert pb.cumulative_prod(x).dtype is pb.int64
    assert pb.tensor(3, dtype="int8").cumsum(0).dtype is pb.int64
    assert pb.cumsum(x, 0, dtype="float64").tolist() == [100.0, 200.0]
    result = pb.cumulative_sum(x[:1], dtype="int8", include_initial=True)
    assert (result.tolist(), result.dtype) == ([0, 100], pb.int8)
    assert pb.tensor([True, True]).cumsum(0).tolist() == [1, 2]


def test_logcumsumexp_overflows_nowhere():
    x = pb.tensor([-1000.0, 1000.0, 999.0, -INF], dtype="float64", requires_grad=True)
    with np.errstate(all="raise", under="ignore"):
        result = x.logcumsumexp(0)
        (g,) = pb.autograd.grad(result, x, pb.tensor([1.0, 1.0, 1.0, 1.0]).double())
    high = 1000 + np.log1p(np.exp(-1.0))
    np.testing.assert_allclose(result.tolist(), [-1000.0, 1000.0, high, high], rtol=1e-15)
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(g.tolist(), [1.0, 1 + 2 * share, 2 * (1 - share), 0.0], rtol=1e-12)


# -- statistics -----------------------------------------------------------------------------------
def test_nansum_and_nanmean_leave_nan_out():
    x = pb.tensor([[1.0, NAN], [NAN, NAN], [2.0, 5.0]], requires_grad=True)
    assert pb.nansum(x, 1).tolist() == [1.0, 0.0, 7.0]
    assert x.nanmean(dim=0, keepdim=True).tolist() == [[1.5, 5.0]]
    x.nanmean(0).sum().backward()
    assert x.grad.tolist() == [[0.5, 0.0], [0.0, 0.0], [0.5, 1.0]]
    assert pb.nansum(i64()).item() == 6
    assert pb.nansum(i64(), dtype="float64").dtype is pb.float64
    assert pb.nansum(pb.tensor([complex(NAN, 1.0), 2j])).item() == 2j


def test_logsumexp_of_nothing_is_minus_infinity():
    x = pb.zeros(0, 2, requires_grad=True)
    assert pb.logsumexp(x).item() == -INF
    assert pb.logsumexp(x, 0).tolist() == [-INF, -INF]
    assert x.logsumexp(0, keepdim=True).shape == (1, 2)
    assert pb.logsumexp(x, 1).shape == (0,)
    pb.logsumexp(x, 0).sum().backward()
    assert x.grad.shape == (0, 2)


def test_softmax_and_logsumexp_take_a_dim_by_position_an_axis_and_a_dtype():
    x = pb.tensor(DATA)
    assert pb.softmax(x, 1).tolist() == pb.softmax(x, axis=1).tolist()
    assert pb.log_softmax(x, 0).tolist() == x.log_softmax(axis=0).tolist()
    assert pb.logsumexp(x, 0, True).tolist() == pb.logsumexp(x, axis=0, keepdims=True).tolist()
    assert pb.softmax(m(), 1, dtype="float64").dtype is pb.float64


def test_aminmax_names_its_results():
    pair = pb.aminmax(m(), dim=1)
    assert (pair.min.tolist(), pair.max.tolist()) == ([1.0, 4.0], [3.0, 6.0])
    assert m().aminmax(dim=0, keepdim=True).max.shape == (1, 3)
    assert pb.amax(m(), (0, 1)).item() == 6.0


def test_count_nonzero_counts_nan_too():
    x = pb.tensor([[0.0, 1.0], [NAN, 2.0]])
    assert x.count_nonzero().item() == 3
    assert x.count_nonzero(0, True).tolist() == [[1, 2]]
    assert pb.count_nonzero(x > 1, axis=1).tolist() == [0, 1]


# name: (the wrong call, the built-in error, words of the message)


# -- shapes ----------------------------------------------------------------------------------------
def test_reshape_can_always_copy():
    x = leaf([1.0, 2.0])
    base = x * 1.0
    y = pb.reshape(base, (2, 1), copy=True)
    base.mul_(5.0)
    assert y.tolist() == [[1.0], [2.0]]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(ArgumentError, match="without a copy required"):
        pb.reshape(pb.zeros((2, 3)).t(), (6,), copy=False)


def test_transpose_of_a_tensor_without_axes_is_the_tensor():
    x = pb.tensor(2.0, requires_grad=True)
    y = x.transpose(0, -1)
    assert (y.shape, y.item()) == ((), 2.0)
    (y * 3.0).backward()
    assert x.grad.item() == 3.0


def test_squeeze_of_an_empty_tuple_of_axes_does_nothing():
    assert pb.ones(1, 1).squeeze(()).shape == (1, 1)
    assert pb.tensor(1.0).squeeze(0).shape == pb.tensor(1.0).squeeze((0,)).shape == ()


def test_tensor_split_takes_tensors():
    x = pb.arange(4)
    assert [p.tolist() for p in pb.tensor_split(x, pb.tensor([1, 3]))] == [[0], [1, 2], [3]]
    assert [p.tolist() for p in pb.tensor_split(x, pb.tensor(2))] == [[0, 1], [2, 3]]
    assert [p.tolist() for p in pb.tensor_split(x, pb.tensor([]))] == [[0, 1, 2, 3]]


def test_argwhere_combinations_and_block_diag_of_nothing():
    assert pb.argwhere(pb.tensor(3.0)).shape == (1, 0)
    assert pb.argwhere(pb.tensor(0.0)).shape == (0, 0)
    assert pb.combinations(pb.arange(3), 0).shape == (1, 0)
    assert pb.block_diag().shape == (1, 0)


# -- variances, sums and differences ---------------------------------------------------------------
def test_std_with_and_without_bias():
    x = pb.tensor([1.0, 3.0], dtype=pb.float64)
    assert x.std(unbiased=False).item() == 1.0
    assert x.std(unbiased=True).item() == pytest.approx(1.4142135623730951, rel=1e-12)


def test_var_and_std_take_a_bool_in_place_of_an_axis_for_the_correction():
    x = pb.tensor([[1.0, 2.0], [5.0, 9.0]])
    assert [t.tolist() for t in pb.var_mean(x, 0, False)] == [[4.0, 12.25], [3.0, 5.5]]
    assert pb.std_mean(x, unbiased=False)[0].item() == pytest.approx(np.std(x.numpy()))
    with pytest.raises(ValueError, match="var: give unbiased or correction, not both"):
        x.var(unbiased=True, correction=1)
    with pytest.raises(TypeError, match="var: axis must be an integer, got bool"):
        x.var(True, True)


def test_logsumexp_of_complex_numbers_is_the_principal_logarithm():
    z = pb.tensor([1 + 3j, 2 + 3j], dtype="complex128")
    expected = np.log(np.sum(np.exp(z.numpy())))
    np.testing.assert_allclose(pb.logsumexp(z).numpy(), expected)
    large = pb.tensor(1000 + 5j, dtype="complex128")
    assert pb.logsumexp(large).numpy() == pytest.approx(1000 + (5 - 2 * math.pi) * 1j)


def test_diff_of_order_0_leaves_out_what_stands_before():
    assert pb.diff(pb.ones(3), n=0, prepend=pb.ones(1)).shape == (3,)
