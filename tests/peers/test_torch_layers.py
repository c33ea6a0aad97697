"""Layers beside torch.nn: names of states and parameters, values, gradients, in both modes."""

import numpy as np
import pytest
import torch
from tests.nn.layer_cases import CASES, draw

import pullback as pb

pytestmark = pytest.mark.peers


def flat(result):
    parts = result if isinstance(result, (tuple, list)) else [result]
    nested = [flat(p) if isinstance(p, (tuple, list)) else [p] for p in parts]
    return [part for each in nested for part in each if part is not None]


def close(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, atol=1e-9)


def pair(name, args, settings):
    """The layer of both libraries, on the same numbers."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **settings).double()
    ours = getattr(pb.nn, name)(*args, **settings).double()
    ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
    return ours, theirs


def named(case):
    return case[0] if isinstance(case, tuple) else None


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_layer_has_the_names_of_torchs(case):
    ours, theirs = pair(*case[:3])
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]


@pytest.mark.parametrize("training", [True, False], ids=["training", "use"])
@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_layer_gives_the_values_and_gradients_of_torchs(case, training):
    ours, theirs = pair(*case[:3])
    results = []
    for lib, layer in ((pb, ours), (torch, theirs)):
        layer.train(training)
        inputs = [lib.tensor(x, requires_grad=x.dtype.kind == "f") for x in case[3]]
        outs = flat(layer(*inputs))
        sum((x * x).sum() for x in outs).backward()
        results.append((outs, [*inputs, *layer.parameters()], layer.state_dict()))
    (outs, leaves, state), (their_outs, their_leaves, their_state) = results
    for x, y in zip(outs, their_outs, strict=True):
        close(x, y)
    for x, y in zip(leaves, their_leaves, strict=True):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            close(x.grad, y.grad)
    for name, tensor in their_state.items():
        close(state[name], tensor)


@pytest.mark.parametrize("name", ["Linear", "Conv1d", "Conv2d", "LSTM", "GRU", "RNN", "GRUCell"])
def test_a_layer_begins_with_numbers_of_torchs_size(name):
    args = (64, 64) if "Conv" not in name else (64, 64, 3)
    ours, theirs = getattr(pb.nn, name)(*args), getattr(torch.nn, name)(*args)
    for (key, x), y in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        got, required = (float(abs(t.detach()).max()) for t in (x, y))
        assert abs(got / required - 1) < 0.2, key


@pytest.mark.parametrize("mask", ["bool", "float", "padding", "both", "three"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_takes_the_masks_of_torch(mask, need_weights):
    ours, theirs = pair("MultiheadAttention", (8, 2), {"batch_first": True})
    x, keys = draw(3, 4, 8), draw(3, 5, 8)
    hidden = np.zeros((4, 5), bool)
    hidden[1, 2:] = True
    padding = np.zeros((3, 5), bool)
    padding[2, 3:] = True
    settings = {
        "bool": {"attn_mask": hidden},
        "float": {"attn_mask": draw(4, 5)},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": hidden, "key_padding_mask": padding},
        "three": {"attn_mask": np.broadcast_to(hidden, (6, 4, 5)).copy()},
    }[mask]
    results = []
    for lib, layer in ((pb, ours), (torch, theirs)):
        q, k = lib.tensor(x), lib.tensor(keys)
        more = {name: lib.tensor(value) for name, value in settings.items()}
        results.append(layer(q, k, k, need_weights=need_weights, **more))
    close(results[0][0], results[1][0])
    assert (results[0][1] is None) == (results[1][1] is None)
    if need_weights:
        close(results[0][1], results[1][1])


@pytest.mark.parametrize("name", ["kaiming_normal_", "xavier_normal_", "trunc_normal_", "normal_"])
def test_init_fills_with_the_spread_of_torchs(name):
    pb.manual_seed(0)
    torch.manual_seed(0)
    ours = getattr(pb.nn.init, name)(pb.empty((300, 200)))
    theirs = getattr(torch.nn.init, name)(torch.empty((300, 200)))
    assert abs(float(ours.std()) / float(theirs.std()) - 1) < 0.02
    assert abs(float(ours.mean())) < 0.02


@pytest.mark.parametrize("name", ["kaiming_uniform_", "xavier_uniform_", "orthogonal_"])
def test_init_fills_up_to_the_bounds_of_torchs(name):
    ours = getattr(pb.nn.init, name)(pb.empty((300, 200), dtype="float64"))
    theirs = getattr(torch.nn.init, name)(torch.empty((300, 200), dtype=torch.float64))
    if name == "orthogonal_":
        close(ours.mT @ ours, theirs.mT @ theirs)
    else:
        assert abs(float(abs(ours).max()) / float(abs(theirs).max()) - 1) < 0.01


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_clip_grad_norm_scales_as_torchs(norm_type):
    results = []
    for lib in (pb, torch):
        leaves = [lib.tensor(draw(3, k), requires_grad=True) for k in (1, 2)]
        sum((x**3).sum() for x in leaves).backward()
        total = lib.nn.utils.clip_grad_norm_(leaves, 0.7, norm_type)
        results.append([total, *[x.grad for x in leaves]])
    for x, y in zip(*results, strict=True):
        close(x, y)
