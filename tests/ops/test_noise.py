"""Draws, and what networks make of chance, of other sizes and of spectra."""

import math

import numpy as np
import pytest
import scipy.signal
from tests.tensors import leaf

import pullback as pb

# -- chance ----------------------------------------------------------------------------------------
DRAWS = {
    "uniform_": ((2, 4), lambda x: x.min() >= 2 and x.max() < 4 and abs(x.mean() - 3) < 0.1),
    "normal_": ((5, 0.5), lambda x: abs(x.mean() - 5) < 0.1 and abs(x.std() - 0.5) < 0.1),
    "log_normal_": ((0, 0.5), lambda x: x.min() > 0 and abs(x.log().std() - 0.5) < 0.1),
    "exponential_": ((2,), lambda x: x.min() >= 0 and abs(x.mean() - 0.5) < 0.1),
    "geometric_": ((0.5,), lambda x: x.min() == 1 and abs(x.mean() - 2) < 0.2),
    "cauchy_": ((3, 2), lambda x: abs(x.median() - 3) < 0.3),
    "random_": ((2, 5), lambda x: sorted(set(x.tolist())) == [2, 3, 4]),
    "bernoulli_": ((0.25,), lambda x: abs(x.mean() - 0.25) < 0.1 and x.max() == 1),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_tensor_is_filled_with_draws_of_a_distribution(name):
    arguments, holds = DRAWS[name]
    w = pb.zeros(2000, dtype="float64", requires_grad=True)
    x = w * 1
    generator = pb.Generator(seed=3)
    assert getattr(x, name)(*arguments, generator=generator) is x
    assert holds(x.detach())
    again = getattr(pb.zeros(2000, dtype="float64"), name)(
        *arguments, generator=pb.Generator(seed=3)
    )
    assert again.equal(x.detach())
    assert pb.autograd.grad(x.sum(), w)[0].abs().max().item() == 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("uniform_", (1, 0)),
        ("normal_", (0, -1)),
        ("log_normal_", (0, 0)),
        ("exponential_", (0,)),
        ("geometric_", (1.0,)),
        ("cauchy_", (0, 0)),
        ("bernoulli_", (1.5,)),
    ],
)
def test_a_distribution_that_there_is_not_is_refused(name, arguments):
    with pytest.raises(ValueError, match=r"required, got"):
        getattr(pb.zeros(3), name)(*arguments)


def test_integers_are_drawn_below_what_the_dtype_holds():
    x = pb.zeros(1000, dtype="int8").random_()
    assert 100 < int(x.max()) < 128
    assert int(x.min()) >= 0
    assert pb.randint_like(x, 3).max() <= 2


def test_indices_are_drawn_by_weight():
    weights = pb.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]], dtype="float64")
    generator = pb.Generator(seed=1)
    drawn = pb.multinomial(weights, 4000, replacement=True, generator=generator)
    assert drawn.shape == (2, 4000)
    assert abs((drawn[0] == 2).double().mean().item() - 0.75) < 0.03
    assert drawn[1].max().item() == 0
    once = pb.multinomial(weights[:1], 2, generator=generator)
    assert sorted(once[0].tolist()) == [1, 2]
    for wrong in (pb.tensor([-1.0, 2.0]), pb.zeros(3), pb.ones(2)):
        with pytest.raises(ValueError, match="multinomial: weights of at least 0"):
            pb.multinomial(wrong, 3)


def test_normal_takes_tensors_that_broadcast():
    mean, std = pb.tensor([[1.0], [100.0]], dtype="float64"), pb.zeros(3, dtype="float64")
    assert pb.normal(mean, std).tolist() == [[1.0] * 3, [100.0] * 3]
    drawn = pb.normal(5.0, 0.1, (1000,), requires_grad=True)
    assert drawn.requires_grad
    assert abs(drawn.mean().item() - 5) < 0.1
    with pytest.raises(ValueError, match="normal: a size is required"):
        pb.normal(0.0, 1.0)


def test_whole_channels_are_dropped():
    dropped = pb.nn.functional.dropout2d(pb.ones(4, 50, 3, 3), 0.5, generator=pb.Generator(seed=0))
    each = dropped.sum((2, 3))
    assert set(each.ravel().tolist()) == {0.0, 18.0}
    x = pb.ones(2, 3)
    assert pb.nn.functional.dropout1d(x, 0.5, training=False).equal(x)


def test_alpha_dropout_keeps_mean_and_spread():
    x = pb.randn(20000, generator=pb.Generator(seed=2))
    dropped = pb.alpha_dropout(x, 0.3, generator=pb.Generator(seed=3))
    assert abs(dropped.mean().item()) < 0.05
    assert abs(dropped.std().item() - 1) < 0.05
    assert pb.alpha_dropout(x, 1.0).abs().max().item() == 0


def test_a_hard_gumbel_softmax_is_one_hot_with_the_gradient_of_the_soft_one():
    x = leaf([0.5, 1.0, -1.0])
    soft, hard = (
        pb.nn.functional.gumbel_softmax(x, hard=h, generator=pb.Generator(seed=5))
        for h in (False, True)
    )
    assert hard.sum().item() == 1
    assert int(hard.argmax()) == int(soft.argmax())
    weight = pb.tensor([1.0, 2.0, 3.0], dtype="float64")
    slopes = [pb.autograd.grad((y * weight).sum(), x)[0].tolist() for y in (soft, hard)]
    assert slopes[0] == slopes[1]


def test_a_slope_is_drawn_in_training():
    x = pb.full((1000,), -1.0)
    slopes = -pb.rrelu(x, 0.25, 0.5, training=True, generator=pb.Generator(seed=0))
    assert 0.25 <= slopes.min() < 0.26
    assert 0.49 < slopes.max() <= 0.5


# -- layers ----------------------------------------------------------------------------------------
def test_attention_to_nothing_gives_zero_and_no_gradient():
    q, k, v = pb.ones(2, 3, requires_grad=True), pb.ones(4, 3), pb.ones(4, 1)
    mask = pb.tensor([[False] * 4, [True] * 4])
    result = pb.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    assert result.tolist() == [[0.0], [1.0]]
    result.sum().backward()
    assert not q.grad.isnan().any()
    added = pb.nn.functional.scaled_dot_product_attention(
        q, k, v, pb.tensor([0.0, 0.0, -math.inf, 0.0])
    )
    assert added.shape == (2, 1)
    dropped = pb.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=1.0)
    assert dropped.abs().max().item() == 0
    with pytest.raises(ValueError, match="give attn_mask or is_causal, not both"):
        pb.nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


def test_maxima_go_back_to_where_they_were():
    x = pb.tensor([[[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 7.0, 6.0]]])
    largest, places = pb.max_pool2d(x, 2, return_indices=True)
    assert pb.nn.functional.max_unpool2d(largest, places, 2).tolist() == [
        [[0, 5, 0, 0], [0, 0, 7, 0]]
    ]
    values, indices = pb.nn.functional.adaptive_max_pool2d(x, (1, 2), return_indices=True)
    assert (values.tolist(), indices.tolist()) == ([[[5, 7]]], [[[1, 6]]])


def test_interpolation_by_a_factor_may_recompute_it():
    x = pb.arange(3.0).reshape(1, 1, 3)
    plain = pb.nn.functional.interpolate(x, scale_factor=1.5, mode="linear")
    again = pb.nn.functional.interpolate(
        x, scale_factor=1.5, mode="linear", recompute_scale_factor=True
    )
    assert plain.shape == again.shape == (1, 1, 4)
    assert plain.tolist() != again.tolist()
    assert pb.nn.functional.interpolate(x, size=1, mode="area").item() == 1.0
    for wrong in ({}, {"size": 2, "scale_factor": 2.0}, {"size": (2, 2)}, {"size": 2, "mode": "x"}):
        with pytest.raises(ValueError, match=r"interpolate: "):
            pb.nn.functional.interpolate(x, **wrong)


def test_the_nearest_pixel_is_read():
    image = pb.tensor([[[[1.0, 2.0, 3.0]]]])
    grid = pb.tensor([[[[-1.0, 0.0], [0.2, 0.0], [5.0, 0.0]]]])
    assert pb.nn.functional.grid_sample(image, grid, mode="nearest").ravel().tolist() == [
        1.0,
        2.0,
        0.0,
    ]
    far = pb.nn.functional.grid_sample(image, grid, mode="nearest", padding_mode="border")
    assert far.ravel().tolist() == [1.0, 2.0, 3.0]


def test_a_spectrogram_goes_back_to_its_signal():
    x = pb.randn(2, 40, dtype="float64", generator=pb.Generator(seed=0))
    window = pb.hann_window(8, dtype="float64")
    for settings in ({}, {"normalized": True}, {"onesided": False}):
        spectra = pb.stft(x, 8, 2, window=window, **settings)
        back = pb.istft(spectra, 8, 2, window=window, **settings)
        np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
    assert pb.stft(x, 8, return_complex=False).shape == (2, 5, 21, 2)
    assert pb.istft(spectra, 8, 2, window=window, length=50).shape == (2, 50)
    with pytest.raises(ValueError, match="istft: windows that leave no gap required"):
        pb.istft(pb.stft(x, 8, 8, window=window), 8, 8, window=window)


def test_windows_are_scipys():
    for name in ("hann", "hamming", "blackman", "bartlett"):
        for periodic in (True, False):
            ours = getattr(pb, f"{name}_window")(9, periodic, dtype="float64").numpy()
            theirs = scipy.signal.get_window(name, 9, fftbins=periodic)
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
    ours = pb.kaiser_window(9, periodic=False, beta=5.0, dtype="float64").numpy()
    np.testing.assert_allclose(ours, scipy.signal.get_window(("kaiser", 5.0), 9, fftbins=False))
    assert pb.hann_window(3, requires_grad=True).requires_grad
    assert pb.hann_window(1).tolist() == [1.0]
