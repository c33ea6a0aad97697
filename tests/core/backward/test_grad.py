"""autograd.grad(): what it returns, what it runs, and derivatives of derivatives."""

import numpy as np
import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.autograd import grad
from pullback.core.backward.api import pulled_back
from pullback.core.backward.collect import collect


def quadratic(x, y):
    """Return x^2 + xy + y^2."""
    return x**2 + y * x + y**2


@pytest.mark.case("B06")
def test_grad_returns_a_tuple_in_input_order_and_touches_no_grad():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    ones = constant([1.0, 1.0])
    result = grad(quadratic(x, y), [y, x], ones)
    assert type(result) is tuple
    assert [g.tolist() for g in result] == [[7.0, 12.0], [5.0, 9.0]]
    assert x.grad is None
    assert y.grad is None
    (single,) = grad(quadratic(x, y), x, ones)
    assert single.tolist() == [5.0, 9.0]
    assert single.requires_grad is False


@pytest.mark.case("B06")
def test_grad_takes_an_input_twice_and_the_root_itself():
    x = leaf([3.0])
    y = x * x
    grads = grad(y, [y, x, x], constant([10.0]))
    assert [g.tolist() for g in grads] == [[10.0], [60.0], [60.0]]
    (own,) = grad(x, [x], constant([4.0]))
    assert own.tolist() == [4.0]
    assert x.grad is None


@pytest.mark.case("B07")
def test_grad_allows_unused_inputs():
    x, y = leaf([1.0]), leaf([1.0])
    z = x * 2
    used, unused = grad(z, [x, y], allow_unused=True, retain_graph=True)
    assert (used.tolist(), unused) == ([2.0], None)
    assert grad(z, [y], allow_unused=True) == (None,)


@pytest.mark.case("B08")
@pytest.mark.parametrize("options", [{}, {"allow_unused": True}], ids=str)
def test_grad_materializes_zeros_for_unused_inputs(options):
    x, y = leaf([1.0, 2.0]), leaf([[3.0], [4.0]])
    grad_x, grad_y = grad((x * 2).sum(), [x, y], materialize_grads=True, **options)
    assert grad_x.tolist() == [2.0, 2.0]
    assert grad_y.tolist() == [[0.0], [0.0]]


@pytest.mark.case("B08")
def test_grad_of_a_linear_function_has_no_higher_derivatives():
    x, a = leaf(0.5), leaf(1.0)
    first = grad(x * a, x, create_graph=True)
    assert first[0].item() == 1.0
    assert grad(first, x, create_graph=True, allow_unused=True) == (None,)
    second = grad(first, x, create_graph=True, materialize_grads=True)
    (third,) = grad(second, x, materialize_grads=True)
    assert (second[0].item(), third.item()) == (0.0, 0.0)


# -- what runs -------------------------------------------------------------------------------------
@pytest.mark.case("B10")
def test_grad_of_a_result_stops_there():
    start, y = leaf([1.0]), leaf([2.0])
    called = []
    start.register_hook(called.append)
    x = start * 1
    (grad_x,) = grad(quadratic(x, y), x)
    assert grad_x.tolist() == [4.0]  # 2x + y
    assert called == []
    assert start.grad is None
    assert y.grad is None


@pytest.mark.case("B10")
def test_grad_of_results_in_gradient_ascent():
    x_start, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[2.0, 2.0], [1.0, 1.0]])
    g = pb.ones((2, 2), dtype=pb.float64)
    x = x_start
    for _ in range(5):
        (grad_x,) = grad(quadratic(x, y), x, g, create_graph=True)
        expected = (2 * x + y).detach().numpy()
        np.testing.assert_allclose(grad_x.detach().numpy(), expected, rtol=1e-14)
        assert x_start.grad is None
        assert y.grad is None
        x = x + 0.05 * grad_x
    x.backward(g)
    # each step multiplies by 1 + 2 * 0.05
    np.testing.assert_allclose(x_start.grad.numpy(), np.full((2, 2), 1.1**5), rtol=1e-13)


@pytest.mark.case("B10")
def test_grad_of_two_results_of_one_operation():
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    a, b = x.chunk(2)
    called = []
    x.register_hook(called.append)
    go = constant([[1.0, 2.0], [3.0, 5.0]])
    grad_a, grad_b = grad(a + 2 * b, [a, b], go, create_graph=True)
    assert grad_a.tolist() == [[1.0, 2.0], [3.0, 5.0]]
    assert grad_b.tolist() == [[2.0, 4.0], [6.0, 10.0]]
    assert called == []
    assert x.grad is None


class Fail(pb.Function):
    """The identity, with a backward that must not run."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        raise RuntimeError("this backward was not needed")


@pytest.mark.case("B11")
def test_grad_and_backward_run_no_node_that_the_inputs_do_not_need():
    y, z = leaf([1.0]), leaf([1.0])
    assert grad(Fail.apply(y) + z, [z])[0].tolist() == [1.0]
    assert grad(Fail.apply(y), [z], allow_unused=True) == (None,)
    (Fail.apply(y) * z).backward(inputs=[z])
    assert (y.grad, z.grad.tolist()) == (None, [1.0])


@pytest.mark.parametrize("first", [True, False])
def test_grad_runs_no_root_that_does_not_lead_to_the_inputs(first):
    x, w = leaf(2.0), leaf(3.0)
    a, d = x * x, w * w
    seen = []
    d.register_hook(seen.append)
    w.register_hook(seen.append)
    d.retain_grad()
    (g,) = pb.autograd.grad([a, d] if first else [d, a], [x])
    assert g.item() == 4.0
    assert seen == []
    assert d.grad is None
    d.backward()  # its graph is as it was
    assert w.grad.item() == 6.0


@pytest.mark.case("B12")
def test_grad_and_backward_split_a_pass():
    leaves = [leaf([[0.5, 1.0], [1.5, 2.0]]) for _ in range(10)]
    intermediates = [x * i + x * x for i, x in enumerate(leaves)]
    loss = sum(v * i for i, v in enumerate(intermediates)).sum()
    gradients = []
    for start in range(0, 10, 2):
        shard = intermediates[start : start + 2]
        gradients.extend(grad(loss, shard, retain_graph=True))
    pb.autograd.backward(intermediates, gradients)
    for i, x in enumerate(leaves):
        expected = [[i * i + 2 * i * v for v in row] for row in x.tolist()]
        assert x.grad.tolist() == expected


@pytest.mark.case("B14")
def test_unused_outputs_contribute_zeros():
    x = leaf([[1.0] * 10] * 10)
    outputs = x.chunk(5)
    assert [tuple(o.shape) for o in outputs] == [(2, 10)] * 5
    o = outputs[2]
    o = o * 4 + 2
    o.sum().backward()
    expected = [[0.0] * 10] * 4 + [[4.0] * 10] * 2 + [[0.0] * 10] * 4
    assert x.grad.tolist() == expected


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


@pytest.mark.case("B13")
def test_next_functions_of_a_node_has_an_edge_for_each_input():
    x, y = leaf([1.0]), leaf([1.0])
    a = x + y
    (first, at_first), (second, at_second) = a.grad_fn.next_functions
    assert [first.name(), second.name()] == ["AccumulateGrad", "AccumulateGrad"]
    assert (at_first, at_second) == (0, 0)
    assert (first.variable is x, second.variable is y) == (True, True)
    assert (x * 2).grad_fn.next_functions[0][0] is first
    assert (a + 5).grad_fn.next_functions == ((a.grad_fn, 0), (None, 0))


# -- batches of gradients --------------------------------------------------------------------------
@pytest.mark.case("B17")
def test_is_grads_batched_through_operations():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    out = (x * y).sum()
    grads = grad(out, [x, y], [constant([1.0, 10.0])], is_grads_batched=True)
    assert grads[0].tolist() == [[3.0, 5.0], [30.0, 50.0]]
    assert grads[1].tolist() == [[1.0, 2.0], [10.0, 20.0]]


@pytest.mark.case("B17")
def test_is_grads_batched_needs_a_leading_dimension():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match="is_grads_batched"):
        grad(x.clone(), [x], [pb.ones((2, 2), dtype=pb.float64)], is_grads_batched=True)


def test_is_grads_batched_with_an_unused_input_and_create_graph():
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
def test_is_grads_batched_without_dimensions(value, shape, create_graph):
    x = leaf(value)
    weights = np.array([1.0, 10.0])
    seeds = pb.asarray(np.multiply.outer(weights, np.ones(shape)))
    (cubes,) = pb.autograd.grad(x**3, x, seeds, create_graph=create_graph, is_grads_batched=True)
    expected = np.multiply.outer(weights, 3 * np.square(value))
    np.testing.assert_array_equal(cubes.detach(), expected)
    assert cubes.requires_grad is create_graph


@pytest.mark.parametrize("counts", [(2, 3), (0, 0)])
def test_is_grads_batched_needs_one_leading_length(counts):
    x = leaf([1.0, 2.0])
    outs = [x * 2, x * 3]
    seeds = [pb.ones((n, 2), dtype=pb.float64) for n in counts]
    with pytest.raises(ValueError, match="one leading length"):
        pb.autograd.grad(outs, x, seeds, is_grads_batched=True)


# -- derivatives of derivatives --------------------------------------------------------------------
@pytest.mark.case("HO1")
def test_backward_with_create_graph_gives_hessian_vector_products():
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
    ones = pb.ones((2, 2), dtype=pb.float64)
    z = x**2 + y * x + y**2
    with pytest.warns(UserWarning, match="create_graph"):
        z.backward(ones, create_graph=True)
    assert x.grad.tolist() == [[7.0, 10.0], [13.0, 16.0]]  # 2x + y
    assert y.grad.tolist() == [[11.0, 14.0], [17.0, 20.0]]  # x + 2y
    grad_sum = 2 * x.grad + y.grad
    grad_sum.backward(ones)
    assert x.grad.tolist() == [[12.0, 15.0], [18.0, 21.0]]  # + 5
    assert y.grad.tolist() == [[15.0, 18.0], [21.0, 24.0]]  # + 4


def product(x):
    """Return the product over the last two dims."""
    return x.prod(dim=-1).prod(dim=-1)


class Product(pb.Function):
    """The same with a rule of its own."""

    @staticmethod
    def forward(ctx, x):
        y = product(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return (grad_output * y)[:, None, None] / x


@pytest.mark.case("HO2")
@pytest.mark.parametrize("function", [product, Product.apply], ids=["built-in", "custom"])
def test_grad_repeats_second_derivatives_on_one_graph(function):
    x = leaf([[[1.0] * 4] * 4] * 2)
    y = function(x)
    results = []
    for _ in range(2):
        (first,) = grad(y[0], x, create_graph=True)
        (second,) = grad(first[0, 0, 0], x, retain_graph=True)
        assert first[0].tolist() == [[1.0] * 4] * 4
        assert first[1].tolist() == [[0.0] * 4] * 4
        results.append(second.tolist())
    assert results[0][0][0][1] == 1.0
    assert results[0][0][0][0] == 0.0
    assert results[0][1] == [[0.0] * 4] * 4
    assert results[0] == results[1]


@pytest.mark.case("HO3")
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x**5, [80.0, 160.0, 240.0, 240.0, 120.0, 0.0]),
        (lambda x: 1 / x, [-0.25, 0.25, -0.375]),
    ],
    ids=["power", "reciprocal"],
)
def test_grad_of_grad_gives_the_nth_derivative(function, expected):
    x = leaf(2.0)
    y = function(x)
    results = []
    for _ in expected:
        (y,) = grad(y, x, create_graph=True, materialize_grads=True)
        results.append(y.item())
    assert results == pytest.approx(expected, rel=1e-14)


@pytest.mark.case("HO3")
def test_grad_without_create_graph_ends_the_chain():
    x = leaf(2.0)
    (first,) = grad(x**5, x, create_graph=True)
    (second,) = grad(first, x)
    assert second.item() == 160.0
    assert second.requires_grad is False
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        grad(second, x)


@pytest.mark.case("HO3")
def test_grad_of_grad_gives_mixed_derivatives():
    x, y = leaf(2.0), leaf(3.0)
    (by_x,) = grad(x**3 * y**2, x, create_graph=True)
    (by_xy,) = grad(by_x, y, create_graph=True)
    (by_xyx,) = grad(by_xy, x)
    assert by_x.item() == 108.0  # 3x^2 y^2
    assert by_xy.item() == 72.0  # 6x^2 y
    assert by_xyx.item() == 72.0  # 12x y


@pytest.mark.case("HO3")
def test_grad_of_grad_by_the_initial_gradient():
    x, g = leaf([2.0]), leaf([5.0])
    (first,) = grad(x**3, x, g, create_graph=True)
    assert first.tolist() == [60.0]
    by_g, by_x = grad(first, [g, x])
    assert by_g.tolist() == [12.0]
    assert by_x.tolist() == [60.0]
