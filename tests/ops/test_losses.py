"""Losses, normalisation and dropout: edges, ignored targets, running statistics."""

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import (
    ArgumentError,
    ShapeError,
)

INF, NAN = float("inf"), float("nan")
NONE = {"reduction": "none"}


def gradients(result, *tensors):
    return [g.tolist() for g in pb.autograd.grad(result.sum(), tensors)]


def close(ours, expected):
    ours = ours.detach().numpy() if isinstance(ours, pb.Tensor) else ours
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-14)


def random(*shape, seed=0):
    return pb.tensor(np.random.default_rng(seed).standard_normal(shape))


# -- distances ------------------------------------------------------------------------------------
def test_the_huber_losses_have_the_slopes_of_both_sides_at_their_kinks():
    x, zero = leaf([-2.0, -1.0, 0.0, 1.0, INF]), pb.zeros(5, dtype="float64")
    for loss in (pb.nn.functional.huber_loss, pb.nn.functional.smooth_l1_loss):
        result = loss(x, zero, **NONE)
        assert result.tolist() == [1.5, 0.5, 0.0, 0.5, INF]
        assert gradients(result, x) == [[-1.0, -1.0, 0.0, 1.0, 1.0]]


def test_the_second_derivative_of_a_huber_loss_is_one_around_zero_and_none_outside():
    x = leaf([-2.0, 0.0, 0.5, 3.0])
    loss = pb.nn.functional.huber_loss(x, pb.zeros(4, dtype="float64"), reduction="sum")
    (first,) = pb.autograd.grad(loss, x, create_graph=True)
    assert gradients(first, x) == [[0.0, 1.0, 1.0, 0.0]]


def test_where_the_huber_losses_turn_over():
    x, zero = pb.tensor([0.25, 2.0]), pb.zeros(2)
    assert pb.nn.functional.huber_loss(x, zero, delta=0.5, **NONE).tolist() == [0.03125, 0.875]
    assert pb.nn.functional.smooth_l1_loss(x, zero, beta=0.5, **NONE).tolist() == [0.0625, 1.75]
    assert pb.nn.functional.smooth_l1_loss(x, zero, beta=0, **NONE).tolist() == [0.25, 2.0]
    assert pb.nn.functional.huber_loss(x, zero, weight=pb.tensor([8.0, 0.0]), **NONE).tolist() == [
        0.25,
        0.0,
    ]


def test_the_gradient_of_an_absolute_error_of_nothing_is_nothing():
    x = leaf([1.0, 2.0])
    assert gradients(pb.nn.functional.l1_loss(x, pb.tensor([1.0, 5.0]), reduction="sum"), x) == [
        [0.0, -1.0]
    ]


# -- two classes ----------------------------------------------------------------------------------
def test_binary_cross_entropy_of_certainty_is_finite():
    p, t = leaf([0.0, 0.0, 1.0, 1.0]), leaf([0.0, 1.0, 0.0, 1.0])
    result = pb.nn.functional.binary_cross_entropy(p, t, **NONE)
    assert result.tolist() == [0.0, 100.0, 100.0, 0.0]
    assert gradients(result, p, t) == [[0.0, -1e12, 1e12, 0.0], [100.0, 100.0, -100.0, -100.0]]


def test_logits_neither_overflow_nor_lose_what_is_small():
    x, t = leaf([0.0, 1000.0, -1000.0, 100.0, -100.0]), pb.tensor([0.0, 0.0, 1.0, 1.0, 0.0])
    result = pb.binary_cross_entropy_with_logits(x, t, **NONE)
    tiny = np.exp(-100.0)
    close(result, [np.log(2), 1000.0, 1000.0, tiny, tiny])
    close(gradients(result, x)[0], [0.5, 1.0, -1.0, 0.0, tiny])


def test_weights_of_elements_and_of_the_positive_class():
    x, t = random(2, 3), pb.tensor([[0.0, 1.0, 0.5], [1.0, 0.0, 0.2]], dtype="float64")
    weight, positive = pb.tensor([1.0, 2.0, 3.0]), pb.tensor([0.5, 1.0, 4.0])
    p = 1 / (1 + np.exp(-x.numpy()))
    losses = -(positive.numpy() * t.numpy() * np.log(p) + (1 - t.numpy()) * np.log(1 - p))
    found = pb.binary_cross_entropy_with_logits(x, t, weight, "none", positive)
    np.testing.assert_allclose(found.numpy(), weight.numpy() * losses)
    plain = pb.nn.functional.binary_cross_entropy(pb.sigmoid(x), t, weight=weight)
    np.testing.assert_allclose(
        float(plain), float((weight * pb.nn.functional.bce_with_logits(x, t, **NONE)).mean())
    )


def test_a_whole_number_target_of_a_binary_loss_is_converted():
    assert (
        pb.nn.functional.binary_cross_entropy(pb.tensor([0.5]), pb.tensor([1])).dtype is pb.float32
    )


# -- distributions --------------------------------------------------------------------------------
def test_a_probability_of_zero_adds_nothing_to_a_divergence():
    x, t = leaf([-1.0, -INF]), leaf([0.0, 0.0])
    result = pb.kl_div(x, t, **NONE)
    assert result.tolist() == [0.0, 0.0]
    assert gradients(result, x, t) == [[0.0, 0.0], [0.0, 0.0]]


def test_the_divergence_of_a_batch_is_the_sum_over_its_length():
    x, t = random(4, 3), pb.softmax(random(4, 3, seed=1), axis=1)
    mean = float(pb.kl_div(x, t, reduction="batchmean"))
    np.testing.assert_allclose(mean, float(pb.kl_div(x, t, reduction="sum")) / 4)
    np.testing.assert_allclose(float(pb.kl_div(x, pb.log(t), "batchmean", True)), mean)


def test_the_cosine_with_no_direction_is_zero_and_has_a_gradient():
    x, y = leaf([[0.0, 0.0]]), leaf([[0.0, 1.0]])
    result = pb.cosine_similarity(x, y, eps=0.5)
    assert result.tolist() == [0.0]
    assert gradients(result, x, y) == [[[0.0, 2.0]], [[0.0, 0.0]]]


# -- classes --------------------------------------------------------------------------------------
def test_what_is_ignored_has_a_gradient_of_exactly_zero():
    x = leaf([[0.0, 0.0], [NAN, INF]])
    loss = pb.nn.functional.nll_loss(x, pb.tensor([1, -100]))
    assert loss.tolist() == 0.0
    assert gradients(loss, x) == [[[0.0, -1.0], [0.0, 0.0]]]


def test_a_mean_over_ignored_targets_alone_is_nan_and_has_no_slope():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    loss = pb.nn.functional.cross_entropy(x, pb.tensor([1, 1]), ignore_index=1)
    assert np.isnan(loss.tolist())
    assert gradients(loss, x) == [[[0.0, 0.0], [0.0, 0.0]]]
    assert (
        pb.nn.functional.cross_entropy(
            x, pb.tensor([1, 1]), ignore_index=1, reduction="sum"
        ).tolist()
        == 0.0
    )


def test_the_mean_is_over_the_weights_of_what_counts():
    logs, weight = random(4, 3), pb.tensor([1.0, 2.0, 4.0], dtype="float64")
    targets = pb.tensor([2, 0, 1, 0])
    a = logs.numpy()
    expected = -(4 * a[0, 2] + 2 * a[2, 1]) / 6
    close(pb.nn.functional.nll_loss(logs, targets, weight, ignore_index=0), expected)
    losses = [-4 * a[0, 2], 0.0, -2 * a[2, 1], 0.0]
    close(
        pb.nn.functional.nll_loss(logs, targets, weight, ignore_index=0, reduction="none"), losses
    )


def test_the_classes_of_images_are_along_the_second_axis():
    x = random(2, 3, 2, 2)
    targets = pb.tensor(np.random.default_rng(1).integers(0, 3, (2, 2, 2)))
    rows = x.permute(0, 2, 3, 1).reshape(8, 3)
    close(
        pb.nn.functional.cross_entropy(x, targets),
        pb.nn.functional.cross_entropy(rows, targets.reshape(8)).numpy(),
    )


def test_probabilities_of_one_class_are_that_class():
    x, targets = random(3, 4), pb.tensor([3, 0, 2])
    given = pb.nn.functional.one_hot(targets, 4).double()
    weight = pb.tensor([1.0, 2.0, 3.0, 4.0], dtype="float64")
    for settings in (NONE, {"reduction": "sum", "weight": weight}, {"label_smoothing": 0.25}):
        close(
            pb.nn.functional.cross_entropy(x, given, **settings),
            pb.nn.functional.cross_entropy(x, targets, **settings).numpy(),
        )


def test_probabilities_have_a_gradient_of_both_orders():
    x, p = random(2, 3).requires_grad_(), pb.softmax(random(2, 3, seed=1), axis=1).detach()
    p.requires_grad_()
    loss = pb.nn.functional.cross_entropy(x, p, reduction="sum")
    dx, dp = pb.autograd.grad(loss, (x, p), create_graph=True)
    logs = pb.log_softmax(x, axis=1)
    close(dp, (-logs).detach().numpy())
    close(dx, (pb.exp(logs) - p).detach().numpy())
    (mixed,) = pb.autograd.grad(dx[0, 0], p)
    chances = pb.exp(logs).detach().numpy()
    close(mixed, [[chances[0, 0] - 1, chances[0, 0], chances[0, 0]], [0.0, 0.0, 0.0]])


def test_there_may_be_no_classes_and_no_features():
    functional, none = pb.nn.functional, pb.tensor([], dtype="int64")
    losses = functional.cross_entropy(pb.zeros(0, 0), none, label_smoothing=0.1, **NONE)
    assert losses.shape == (0,)
    q, k = pb.zeros(2, 0), pb.zeros(4, 0)
    mean = functional.scaled_dot_product_attention(q, k, pb.tensor([[1.0], [2.0], [3.0], [6.0]]))
    assert mean.tolist() == [[3.0], [3.0]]


def test_smoothing_mixes_a_target_with_all_classes():
    x, targets = random(3, 4), pb.tensor([3, 0, 2])
    weight = pb.tensor([1.0, 2.0, 3.0, 4.0], dtype="float64")
    logs = pb.log_softmax(x, axis=1).numpy()
    own = [-logs[0, 3] * 4, -logs[1, 0]]
    spread = -(logs[:2] * weight.numpy()).sum(axis=1) / 4
    settings = {"weight": weight, "ignore_index": 2, "label_smoothing": 0.25}
    each = 0.75 * np.array(own) + 0.25 * spread
    close(pb.nn.functional.cross_entropy(x, targets, **settings, **NONE), [*each, 0.0])
    close(pb.nn.functional.cross_entropy(x, targets, **settings), each.sum() / 5)


# -- normalisation --------------------------------------------------------------------------------
def test_training_moves_running_statistics_in_place_without_history():
    x = random(4, 2, 3).requires_grad_()
    mean, variance = pb.zeros(2, dtype="float64"), pb.ones(2, dtype="float64")
    held = mean.detach()
    pb.batch_norm(x, mean, variance, training=True, momentum=0.5)
    a = x.detach().numpy()
    close(held, 0.5 * a.mean(axis=(0, 2)))
    close(variance, 0.5 + 0.5 * a.var(axis=(0, 2), ddof=1))
    assert (mean.grad_fn, mean.requires_grad, mean._version) == (None, False, 1)


def test_running_statistics_keep_their_dtype():
    mean = pb.zeros(2)
    pb.batch_norm(random(4, 2), mean, None, training=True)
    assert mean.dtype is pb.float32


def test_without_training_the_running_statistics_are_used_and_kept():
    x, mean = random(4, 2), pb.tensor([1.0, -1.0], dtype="float64")
    variance = pb.tensor([4.0, 0.25], dtype="float64")
    result = pb.batch_norm(x, mean, variance, eps=0.0)
    close(result, (x.numpy() - mean.numpy()) / [2.0, 0.5])
    assert (mean._version, variance._version) == (0, 0)


def test_the_statistics_of_instances_are_averaged_over_the_batch():
    x, mean, variance = random(3, 2, 4), pb.zeros(2).double(), pb.zeros(2).double()
    pb.instance_norm(x, mean, variance, momentum=1.0)
    close(mean, x.numpy().mean(axis=(0, 2)))
    close(variance, x.numpy().var(axis=2, ddof=1).mean(axis=0))
    close(
        pb.instance_norm(x, mean, variance, use_input_stats=False),
        pb.batch_norm(x, mean, variance).numpy(),
    )


def test_a_layer_of_equal_numbers_is_zero_and_has_a_gradient():
    x = leaf([[3.0, 3.0]])
    result = pb.layer_norm(x, 2, eps=0.25)
    assert result.tolist() == [[0.0, 0.0]]
    assert gradients(result * pb.tensor([[1.0, 0.0]]), x) == [[[1.0, -1.0]]]


def test_the_root_mean_square_defaults_to_the_precision_of_the_dtype():
    for dtype in (np.float32, np.float64):
        eps = np.finfo(dtype).eps
        x = pb.tensor(np.sqrt(eps * np.array([1.0, 1.0], dtype)))
        np.testing.assert_allclose(pb.rms_norm(x, 2).numpy(), [0.5**0.5] * 2, rtol=1e-5)


def test_layers_without_weight_or_bias():
    x, weight, bias = random(2, 3), random(3), random(3, seed=1)
    plain = pb.layer_norm(x, 3).numpy()
    close(pb.layer_norm(x, 3, weight), plain * weight.numpy())
    close(pb.layer_norm(x, (3,), bias=bias), plain + bias.numpy())
    close(pb.group_norm(x, 1, bias=bias), plain + bias.numpy())
    close(pb.rms_norm(x, 3, eps=0.0), pb.rms_norm(x, 3, pb.ones(3), eps=0.0).numpy())


# -- dropout --------------------------------------------------------------------------------------
def test_the_same_seed_drops_the_same_elements():
    x = pb.ones(100)
    pb.manual_seed(3)
    first = pb.dropout(x)
    pb.manual_seed(3)
    assert pb.dropout(x).tolist() == first.tolist()
    assert pb.dropout(x).tolist() != first.tolist()
    with_generators = [pb.dropout(x, generator=pb.Generator(seed=7)).tolist() for _ in range(2)]
    assert with_generators[0] == with_generators[1]


def test_the_gradient_is_dropped_where_the_value_was():
    x = pb.ones(50, requires_grad=True)
    y = pb.dropout(x, 0.2)
    assert gradients(y, x) == [y.tolist()]
    assert set(y.tolist()) == {0.0, 1.25}


def test_nothing_and_everything_dropped():
    x = random(3).requires_grad_()
    assert pb.dropout(x, 0.0) is x
    assert pb.dropout(x, 0.9, training=False) is x
    everything = pb.dropout(x, 1.0)
    assert everything.tolist() == [0.0] * 3
    assert gradients(everything, x) == [[0.0] * 3]


def test_dropping_in_place():
    x = pb.ones(50)
    assert pb.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}


def test_complex_numbers_and_integers_are_dropped_whole():
    assert pb.dropout(pb.ones(3, dtype="complex64")).dtype is pb.complex64
    assert pb.dropout(pb.tensor([1, 1])).dtype is pb.float32


A, B = pb.zeros((2, 3)), pb.zeros((2, 1))
CLASSES = pb.tensor([0, 2])
PAIRWISE = ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div")
PAIRWISE = (*PAIRWISE, "binary_cross_entropy", "binary_cross_entropy_with_logits")


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_loss_does_not_broadcast(name):
    text = rf"{name}: a target of the shape \(2, 3\) of the input required, got \(2, 1\)\n  input"
    with pytest.raises(ShapeError, match=text):
        getattr(pb.nn.functional, name)(A, B)


@pytest.mark.parametrize("name", [*PAIRWISE, "nll_loss", "cross_entropy"])
def test_an_unknown_reduction_is_named(name):
    target = CLASSES if name in ("nll_loss", "cross_entropy") else A
    with pytest.raises(ArgumentError, match=f"{name}: 'reduction' must be .* got 'average'"):
        getattr(pb.nn.functional, name)(A, target, reduction="average")


@pytest.mark.parametrize("loss", [pb.nn.functional.huber_loss, pb.nn.functional.smooth_l1_loss])
def test_losses_that_compare_refuse_complex_numbers(loss):
    x = pb.tensor([1 + 1j, 2j])
    with pytest.raises(TypeError, match="real numbers required, got complex64"):
        loss(x, x * 2)
