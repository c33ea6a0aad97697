"""Arguments of backward and grad: roots, initial gradients, batches of gradients."""

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.core.backward.api import pulled_back
from pullback.core.backward.collect import collect
from pullback.errors import ArgumentTypeError


def test_what_is_differentiated_must_be_a_tensor():
    with pytest.raises(ArgumentTypeError, match=r"tensors\[1\] must be a Tensor, got float"):
        pb.autograd.backward([leaf([1.0]).sum(), 3.0])
    with pytest.raises(ArgumentTypeError, match=r"increment_version: takes Tensors, got float"):
        pb.autograd.increment_version([1.0])


def test_an_initial_gradient_may_be_an_array_but_no_number():
    x = leaf([1.0, 2.0])
    (x * 2.0).backward(np.array([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]
    with pytest.raises(ArgumentTypeError, match="can be either Tensors or None, got float"):
        pb.autograd.backward([x * 2.0], [1.0])


@pytest.mark.parametrize("recorded", [False, True])
def test_a_partial_gradient_goes_on_through_no_other_variable(recorded):
    x, unused = leaf([3.0]), leaf([1.0])
    y = x * x
    out, seed = x * y * y, pb.ones(1, dtype=pb.float64)
    by_x, by_none = pulled_back([out], [x, unused], [seed], True, recorded, [x, y, unused])
    by_both = pulled_back([out], [y, x], [seed], True, recorded, [x, y])
    assert (by_x.tolist(), by_none, by_x.requires_grad) == ([81.0], None, recorded)
    assert [g.tolist() for g in by_both] == [[54.0], [81.0]]
    assert pb.autograd.grad(out, x)[0].tolist() == [405.0]


def test_batched_gradients_of_an_unused_input_and_with_create_graph():
    x, unused = leaf([1.0, 2.0]), leaf([1.0])
    rows = pb.eye(2, dtype=pb.float64)
    first, second = pb.autograd.grad(
        x * x, (x, unused), rows, create_graph=True, allow_unused=True, is_grads_batched=True
    )
    assert first.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert second is None
    first.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("value", "shape"), [(3.0, ()), ([3.0, 1.0], (2,))])
def test_batched_gradients_of_inputs_and_outputs_without_dimensions(value, shape, create_graph):
    x = leaf(value)
    weights = np.array([1.0, 10.0])
    seeds = pb.asarray(np.multiply.outer(weights, np.ones(shape)))
    (cubes,) = pb.autograd.grad(x**3, x, seeds, create_graph=create_graph, is_grads_batched=True)
    expected = np.multiply.outer(weights, 3 * np.square(value))
    np.testing.assert_array_equal(cubes.detach(), expected)
    assert cubes.requires_grad is create_graph


@pytest.mark.parametrize("counts", [(2, 3), (0, 0)])
def test_batched_gradients_need_one_leading_length(counts):
    x = leaf([1.0, 2.0])
    outs = [x * 2, x * 3]
    seeds = [pb.ones((n, 2), dtype=pb.float64) for n in counts]
    with pytest.raises(ValueError, match="one leading length"):
        pb.autograd.grad(outs, x, seeds, is_grads_batched=True)


def test_a_pass_looks_no_further_than_its_oldest_input():
    history = leaf(1.0)
    for _ in range(50):
        history = history * 1.5
    x = history.clone()
    y = (x * history).sin() + history
    (everything, _), (recent, _) = collect([y._node]), collect([y._node], x._node.seq)
    assert len(everything) > 50
    assert {node.name() for node in recent} == {
        *("AddBackward", "SinBackward", "MulBackward", "CloneBackward")
    }
    assert len(recent) == 5  # the last multiplication of the history is met, what is behind it not
    np.testing.assert_allclose(
        pb.autograd.grad(y, x)[0].item(), (history * (x * history).cos()).item()
    )
