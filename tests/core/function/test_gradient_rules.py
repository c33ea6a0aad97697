"""How often gradient rules run, and on what: seen in the graph of a recorded backward."""

import numpy as np
import pytest

import pullback as pb
from pullback import autograd


def names_of(tensor):
    """Return the names of all nodes that a tensor comes from."""
    found, left = [], [tensor.grad_fn]
    while left:
        node = left.pop()
        found.append(node.name())
        left += [n for n, _ in node.next_functions if n is not None]
    return found


def leaf(values):
    return pb.tensor(np.asarray(values), requires_grad=True)


def test_of_a_tensor_that_is_multiplied_by_itself_one_rule_runs():
    x = leaf([1.0, -2.0])
    (g,) = autograd.grad((x * x).sum(), x, create_graph=True)
    assert g.tolist() == [2.0, -4.0]
    assert names_of(g).count("MulBackward") == 2  # one node, which the sum has twice
    assert len({id(n) for n, _ in g.grad_fn.next_functions}) == 1
    (gg,) = autograd.grad(g.sum(), x)
    assert gg.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("product", "wanted"),
    [
        (lambda x: x * x.detach(), [3.0, -1.0]),
        (lambda x: x * x[:], [6.0, -2.0]),
        (lambda x: x * x.reshape((2, 1)), [4.0, 4.0]),  # the sum of x, twice
        (lambda x: (x * 1) * (x * 1), [6.0, -2.0]),
        (lambda x: x.exp().log() * x, [6.0, -2.0]),
        (lambda x: pb.multiply(x, x), [6.0, -2.0]),
    ],
)
def test_tensors_that_look_the_same_are_told_apart(product, wanted):
    x = leaf([3.0, -1.0])
    product(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted)


def test_a_complex_square_has_the_conjugate_gradient():
    z = leaf([1.0 + 2.0j])
    (z * z).real.sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [2.0 - 4.0j])


def test_a_square_of_saved_tensors_that_are_packed():
    x = leaf([3.0, -1.0])
    with pb.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [6.0, -2.0]


def test_hooks_between_get_gradients_of_their_own():
    x = leaf([3.0, -1.0])
    y = x * x
    y.grad_fn.register_hook(
        lambda inputs, outputs: tuple(g * (i + 1) for i, g in enumerate(inputs))
    )
    y.sum().backward()
    assert x.grad.tolist() == [9.0, -3.0]


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), ()])
def test_a_rule_that_reads_the_gradient_alone_runs_on_the_sum(shape):
    x, y = leaf(np.ones((2, 3))), leaf(np.ones(shape))
    (g,) = autograd.grad((x - y).sum() * x[0, 0], y, create_graph=True)
    assert names_of(g)[0] == "NegBackward"
    np.testing.assert_array_equal(g.detach().numpy(), np.full(shape, -6 / max(1, np.prod(shape))))


@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((3,), (3, 4)), ((3,), (3,))])
def test_products_with_vectors_have_gradients_of_second_order(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape) for shape in shapes)
    report = pb.check.gradcheck(lambda x, y: (x @ y) ** 2, (x, y), raise_exception=False)
    assert report.ok, report


def test_the_gradient_of_a_long_product_with_a_vector_is_exact_in_float32():
    n, tenth = 1_000_000, float(np.float32(0.1))  # rounded up: errors of sums one by one add up
    w = pb.ones(2, dtype="float32", requires_grad=True)
    (pb.full((n, 2), tenth, dtype="float32") @ w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), n * tenth, rtol=3e-6)
