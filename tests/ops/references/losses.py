"""Reference values of losses and of normalisation, by their definitions."""

import numpy as np


def _reduced(values, reduction):
    return {"none": lambda x: x, "sum": np.sum, "mean": np.mean}[reduction](values)


def _of_difference(function):
    """Return a loss of input - target alone."""

    def loss(input, target, reduction="mean"):
        return _reduced(function(input - target), reduction)

    return loss


def _huber(x, delta=1.0):
    return np.where(np.abs(x) < delta, x**2 / 2, delta * (np.abs(x) - delta / 2))


def _bce(input, target, reduction="mean"):
    return _reduced(-target * np.log(input) - (1 - target) * np.log(1 - input), reduction)


def _bce_with_logits(input, target, reduction="mean", weight=1.0, pos_weight=1.0):
    p = 1 / (1 + np.exp(-input))
    values = -pos_weight * target * np.log(p) - (1 - target) * np.log(1 - p)
    return _reduced(values * weight, reduction)


def _kl_div(input, target, reduction="mean", log_target=False):
    target = np.exp(target) if log_target else target
    values = target * (np.log(target) - input)
    return values.sum() / len(input) if reduction == "batchmean" else _reduced(values, reduction)


def _cosine_similarity(x1, x2, dim=1):
    lengths = np.linalg.norm(x1, axis=dim) * np.linalg.norm(x2, axis=dim)
    return (x1 * x2).sum(axis=dim) / lengths


def _nll(input, target, ignore_index=-100, reduction="mean"):
    axis = 0 if input.ndim == 1 else 1
    values = -np.moveaxis(input, axis, -1)
    losses = np.zeros(target.shape)
    for place in np.ndindex(target.shape):
        if target[place] != ignore_index:
            losses[place] = values[place][target[place]]
    if reduction == "mean":
        return losses.sum() / (target != ignore_index).sum()
    return _reduced(losses, reduction)


def _log_softmax(x):
    axis = 0 if x.ndim == 1 else 1
    return np.log(np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True))


def _cross_entropy(input, target, label_smoothing=0.0, **settings):
    logs = _log_softmax(input)
    loss = _nll(logs, target, **settings)
    return (1 - label_smoothing) * loss - label_smoothing * logs.mean() if label_smoothing else loss


def _standardize(x, axes, eps):
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def _by_channel(x, weight, bias):
    shape = (1, -1, *(1,) * (x.ndim - 2))
    return x * weight.reshape(shape) + bias.reshape(shape)


def _layer_norm(x, weight, bias, normalized_shape, eps=1e-5):
    axes = tuple(range(-weight.ndim, 0))
    return _standardize(x, axes, eps) * weight + bias


def _rms_norm(x, weight, normalized_shape, eps=2.0**-52):
    axes = tuple(range(-weight.ndim, 0))
    return x / np.sqrt((x**2).mean(axis=axes, keepdims=True) + eps) * weight


def _batch_norm(x, mean, variance, weight, bias, training=False, eps=1e-5):
    axes = (0, *range(2, x.ndim))
    mean, variance = (x.mean(axis=axes), x.var(axis=axes)) if training else (mean, variance)
    return _by_channel(
        _by_channel(x, np.ones(mean.shape), -mean), weight / np.sqrt(variance + eps), bias
    )


def _instance_norm(x, weight, bias, eps=1e-5):
    return _by_channel(_standardize(x, tuple(range(2, x.ndim)), eps), weight, bias)


def _group_norm(x, weight, bias, num_groups, eps=1e-5):
    groups = np.split(x, num_groups, axis=1)
    axes = tuple(range(1, x.ndim))
    parts = [_standardize(group, axes, eps) for group in groups]
    return _by_channel(np.concatenate(parts, axis=1), weight, bias)


def _dropout(x, p, seed, training=True):
    if not training:
        return x
    kept = np.random.default_rng(seed).random(x.shape, dtype=np.float32) >= np.float32(p)
    return np.where(kept, x, 0) / (1 - p if p < 1 else 1)


REFERENCES = {
    "mse_loss": _of_difference(np.square),
    "l1_loss": _of_difference(np.abs),
    "huber_loss": _of_difference(_huber),
    "smooth_l1_loss": _of_difference(_huber),
    "binary_cross_entropy": _bce,
    "binary_cross_entropy_with_logits": _bce_with_logits,
    "kl_div": _kl_div,
    "cosine_similarity": _cosine_similarity,
    "nll_loss": _nll,
    "cross_entropy": _cross_entropy,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "group_norm": _group_norm,
    "dropout": _dropout,
}
