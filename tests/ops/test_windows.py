"""Convolutions, pooling and sliding windows: ties, edges, paddings."""

import array_api_strict
import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb

INF, NAN = float("inf"), float("nan")


def gradient(result, x):
    (g,) = pb.autograd.grad(result.sum(), x)
    return g.tolist()


def random(*shape, seed=0):
    return pb.tensor(np.random.default_rng(seed).standard_normal(shape))


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


# -- pooling --------------------------------------------------------------------------------------
def test_the_first_of_equal_maxima_gets_the_gradient():
    x = leaf([[2.0, 2.0, 1.0, 2.0]])
    assert gradient(pb.max_pool1d(x, 2), x) == [[1.0, 0.0, 0.0, 1.0]]
    x = leaf([[[0.0, 3.0], [3.0, 3.0]]])
    assert gradient(pb.max_pool2d(x, 2), x) == [[[0.0, 1.0], [0.0, 0.0]]]


def test_an_element_that_is_the_maximum_of_several_windows_gets_all_their_gradients():
    x = leaf([[1.0, 5.0, 2.0, 0.0]])
    assert gradient(pb.max_pool1d(x, 3, stride=1), x) == [[0.0, 2.0, 0.0, 0.0]]


def test_the_last_nan_of_a_window_is_its_maximum():
    values, indices = pb.max_pool1d(pb.tensor([[NAN, 9.0, 1.0, NAN]]), 2, return_indices=True)
    assert np.isnan(values.numpy()).all()
    assert indices.tolist() == [[0, 3]]
    assert pb.max_pool1d(pb.tensor([[NAN, NAN]]), 2, return_indices=True)[1].tolist() == [[1]]


def test_padding_is_never_a_maximum():
    x = leaf([[-5.0, -6.0]])
    result = pb.max_pool1d(x, 2, stride=1, padding=1)
    assert result.tolist() == [[-5.0, -5.0, -6.0]]
    assert gradient(result, x) == [[2.0, 1.0]]


def test_of_a_window_of_minus_infinities_the_first_real_element_gets_the_gradient():
    x = leaf([[-INF, -INF, 0.0]])
    result = pb.max_pool1d(x, 2, stride=1, padding=1)
    assert result.tolist() == [[-INF, -INF, 0.0, 0.0]]
    assert gradient(result, x) == [[2.0, 0.0, 2.0]]


def test_indices_of_maxima_count_the_elements_of_one_image_row_by_row():
    x = pb.tensor(np.arange(32.0).reshape(2, 1, 4, 4))
    values, indices = pb.max_pool2d(x, 2, return_indices=True)
    assert indices.dtype is pb.int64
    assert indices.tolist() == [[[[5, 7], [13, 15]]]] * 2
    assert values[1].tolist() == [[[21.0, 23.0], [29.0, 31.0]]]


def test_the_maxima_of_integers_are_integers():
    result = pb.max_pool2d(pb.tensor([[[-3, -1], [-2, -4]]]), 2, stride=1, padding=1)
    assert result.tolist() == [[[-3, -1, -1], [-2, -1, -1], [-2, -2, -4]]]
    assert result.dtype is pb.int64


def test_a_mean_counts_zeros_of_the_padding_unless_told_not_to():
    x = pb.ones((1, 3))
    assert pb.avg_pool1d(x, 2, padding=1).tolist() == [[0.5, 1.0]]
    assert pb.avg_pool1d(x, 2, padding=1, count_include_pad=False).tolist() == [[1.0, 1.0]]


def test_a_window_beyond_the_padding_counts_what_is_inside():
    x = pb.tensor([[2.0, 4.0, 6.0]])
    assert pb.avg_pool1d(x, 2, ceil_mode=True).tolist() == [[3.0, 6.0]]
    assert pb.avg_pool1d(x, 2).tolist() == [[3.0]]
    assert pb.max_pool1d(x, 2, ceil_mode=True).tolist() == [[4.0, 6.0]]
    assert pb.max_pool1d(pb.tensor([[1.0, 2.0]]), 3, ceil_mode=True).tolist() == [[2.0]]


def test_a_last_window_that_would_begin_in_the_padding_is_left_out():
    x = pb.tensor([[1.0, 2.0, 3.0]])
    assert pb.max_pool1d(x, 2, stride=4, padding=1, ceil_mode=True).tolist() == [[1.0]]


def test_a_divisor_of_ones_own():
    assert pb.nn.functional.avg_pool2d(pb.ones((1, 2, 2)), 2, divisor_override=8).tolist() == [
        [[0.5]]
    ]


@pytest.mark.parametrize("pool", [pb.avg_pool1d, lambda x, k: pb.adaptive_avg_pool1d(x, 2)])
def test_means_of_integers_are_floats(pool):
    result = pool(pb.tensor([[1, 2, 4, 4]]), 2)
    assert (result.tolist(), result.dtype) == ([[1.5, 4.0]], pb.float32)


def test_adaptive_means_of_one_window_and_of_windows_that_overlap():
    x = leaf([[[1.0, 2.0, 3.0]]])
    assert pb.nn.functional.adaptive_avg_pool2d(x, 1).tolist() == [[[2.0]]]
    result = pb.nn.functional.adaptive_avg_pool2d(x, (1, 2))
    assert result.tolist() == [[[1.5, 2.5]]]
    assert gradient(result, x) == [[[0.5, 1.0, 0.5]]]


# -- convolutions ---------------------------------------------------------------------------------
def test_a_convolution_does_not_turn_the_weight_around():
    x, weight = pb.tensor([[1.0, 0.0, 0.0, 0.0]]), pb.tensor([[[1.0, 2.0, 3.0]]])
    assert pb.conv1d(x, weight, padding=2).tolist() == [[3.0, 2.0, 1.0, 0.0, 0.0, 0.0]]


def test_same_padding_keeps_the_length_and_puts_the_odd_zero_behind():
    x = pb.tensor([[1.0, 2.0, 3.0]])
    assert pb.conv1d(x, pb.ones((1, 1, 2)), padding="same").tolist() == [[3.0, 5.0, 3.0]]
    same(
        pb.conv2d(random(1, 2, 4, 5), random(3, 2, 2, 3), padding="same", dilation=(3, 1)),
        pb.conv2d(
            pb.tensor(np.pad(random(1, 2, 4, 5).numpy(), [(0, 0), (0, 0), (1, 2), (1, 1)])),
            random(3, 2, 2, 3),
            dilation=(3, 1),
        ),
    )
    assert pb.conv1d(x, pb.ones((1, 1, 2)), padding="valid").tolist() == [[3.0, 5.0]]


def test_without_a_batch_it_is_one_image():
    x, weight, bias = random(2, 4, 4), random(3, 2, 2, 2), random(3)
    same(pb.conv2d(x, weight, bias), pb.conv2d(x[None], weight, bias)[0])
    weight = random(2, 3, 2, 2)
    same(pb.conv_transpose2d(x, weight), pb.conv_transpose2d(x[None], weight)[0])


def test_groups_are_convolutions_side_by_side():
    x, weight = random(2, 4, 5), random(6, 2, 3)
    parts = [pb.conv1d(x[:, :2], weight[:3]), pb.conv1d(x[:, 2:], weight[3:])]
    same(pb.conv1d(x, weight, groups=2), pb.concat(parts, axis=1))


def test_a_transposed_convolution_is_the_gradient_of_a_convolution():
    x, weight = random(2, 3, 7).requires_grad_(), random(4, 3, 3)
    settings = {"stride": 2, "padding": 1, "dilation": 2}
    y = pb.conv1d(x, weight, **settings)
    g = random(*y.shape, seed=1)
    (expected,) = pb.autograd.grad(y, x, g)
    same(pb.conv_transpose1d(g, weight, **settings), expected)


def test_output_padding_chooses_among_the_lengths_that_a_stride_makes_alike():
    y, weight = random(1, 1, 3), random(1, 1, 2)
    assert [
        pb.conv_transpose1d(y, weight, stride=3, output_padding=k).shape[-1] for k in range(3)
    ] == [8, 9, 10]


def test_the_gradient_of_a_weight_is_right_where_an_image_has_fewer_places_than_outputs():
    x, weight = random(3, 2, 3), random(5, 2, 2).requires_grad_()
    y = pb.conv1d(x, weight)
    g = random(*y.shape, seed=1)
    (found,) = pb.autograd.grad(y, weight, g)
    windows = np.stack([x.numpy()[:, :, i : i + 2] for i in range(2)], axis=-1)
    np.testing.assert_allclose(found.numpy(), np.einsum("nckw,now->ock", windows, g.numpy()))


def test_no_history_is_kept_of_a_convolution_of_constants():
    assert pb.conv2d(random(1, 1, 3, 3), random(1, 1, 2, 2)).grad_fn is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_convolution_has_the_dtype_of_its_inputs(dtype):
    x, weight = pb.ones((1, 1, 3), dtype=dtype), pb.ones((1, 1, 2), dtype=dtype)
    assert pb.conv1d(x, weight).dtype.name == dtype


def test_arrays_of_another_library_stay_in_it():
    x = pb.asarray(array_api_strict.asarray(random(1, 2, 4, 4).numpy()))
    weight = pb.asarray(array_api_strict.asarray(random(2, 2, 2, 2).numpy()))
    result = pb.max_pool2d(pb.conv2d(x, weight, stride=2, padding=1), 2)
    assert type(result.data_array()) is type(array_api_strict.asarray(0.0))


def test_bare_arrays_are_taken_as_tensors():
    x, weight = random(1, 2, 5), random(3, 2, 2)
    same(pb.conv1d(x.numpy(), weight.numpy()), pb.conv1d(x, weight))
    same(pb.max_pool1d(x.numpy(), 2), pb.max_pool1d(x, 2))
    same(pb.adaptive_avg_pool1d(x.numpy(), 2), pb.adaptive_avg_pool1d(x, 2))


# -- linear ---------------------------------------------------------------------------------------
def test_linear_is_the_product_with_the_transposed_weight():
    x, weight, bias = random(2, 3, 4), random(5, 4), random(5)
    expected = x.numpy() @ weight.numpy().T + bias.numpy()
    np.testing.assert_allclose(pb.nn.functional.linear(x, weight, bias).numpy(), expected)


def test_a_border_may_be_repeated_beyond_what_was_cut_off():
    x = pb.arange(4.0)
    assert pb.nn.functional.pad(x, (-4, 5), "replicate").tolist() == [3.0] * 5
    assert pb.nn.functional.pad(x, (2, -3), "replicate").tolist() == [0.0, 0.0, 0.0]
