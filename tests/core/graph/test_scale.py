"""Large graphs: nothing in building, running or dropping one recurses or grows faster than it.

The tests marked stress take their millions; the others show the same at a tenth of it.
"""

import gc
import sys
import weakref

import pytest
from tests.tensors import leaf

import pullback as pb


@pytest.fixture(autouse=True)
def shallow_stack():
    """Leave so little stack that a walk which recurses once a node cannot hide."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(limit)


class Identity(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": grad_output}


@pb.autograd_function
def halves(ctx, x):
    return x * 0.5, x * 0.5


@halves.backward
def _(ctx, a, b):
    return {"x": a * 0.5 + b * 0.5}


def chain(x, length, step):
    """Return `step` applied `length` times to `x`."""
    y = x
    for _ in range(length):
        y = step(y)
    return y


def both_halves(y):
    a, b = halves(y)
    return a + b


def skip_connection(y):
    return y + y * 1e-9


CHAINS = {
    "built-in": lambda y: y + 1.0,
    "custom": Identity.apply,
    "custom with two results": both_halves,
    "skip connections": skip_connection,
}
LENGTHS = {
    "built-in": 100_000,
    "custom": 100_000,
    "custom with two results": 20_000,
    "skip connections": 50_000,
}
ABOUT_ONE = pytest.approx(1.0, abs=1e-4)
VALUES_AND_SLOPES = {
    "built-in": (100_001.0, 1.0),
    "custom": (1.0, 1.0),
    "custom with two results": (1.0, 1.0),
    "skip connections": (ABOUT_ONE, ABOUT_ONE),
}


@pytest.mark.case("DG2")
@pytest.mark.parametrize("kind", CHAINS)
def test_a_long_chain_runs_backward_and_is_dropped(kind):
    x = leaf()
    y = chain(x, LENGTHS[kind], CHAINS[kind])
    y.backward()
    value = y.item()
    del y
    assert (value, x.grad.item()) == VALUES_AND_SLOPES[kind]


def test_a_long_chain_of_changes_in_place_runs_backward():
    x = leaf()
    y = x * 1.0
    for _ in range(30_000):
        y.add_(1.0)
    assert y.item() == 30_001.0
    y.backward()
    assert x.grad.item() == 1.0


def test_a_long_chain_of_changes_of_a_view_runs_backward():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    view = y[:1]
    for _ in range(3_000):
        view.add_(1.0)
    assert y.tolist() == [3_001.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_long_chain_of_views_runs_backward():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    for _ in range(3_000):
        y = y[:]
    y.mul_(3.0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_long_chain_is_differentiated_twice():
    x = leaf(0.5)
    y = chain(x, 5_000, lambda y: y + x * x)
    (first,) = pb.autograd.grad(y, x, create_graph=True)
    assert first.item() == pytest.approx(5_001.0)
    (second,) = pb.autograd.grad(first, x)
    assert second.item() == pytest.approx(10_000.0)


def test_one_leaf_used_tens_of_thousands_of_times_gets_every_contribution():
    x = leaf()
    parts = [x * 2.0 for _ in range(30_000)]
    pb.autograd.backward(parts)
    assert x.grad.item() == 60_000.0


def test_one_node_of_tens_of_thousands_of_inputs_gives_each_its_gradient():
    leaves = [leaf([float(i)]) for i in range(30_000)]
    pb.concat(leaves, axis=0).sum().backward()
    assert all(x.grad.item() == 1.0 for x in leaves[::1_000])
    assert leaves[-1].grad.item() == 1.0


def test_one_custom_node_of_many_inputs_and_many_results():
    @pb.autograd_function
    def doubled(ctx, *xs):
        return tuple(x * 2.0 for x in xs)

    @doubled.backward
    def _(ctx, *grads):
        return {"xs": [g * 2.0 for g in grads]}

    leaves = [leaf(float(i)) for i in range(1_000)]
    outs = doubled(*leaves)
    pb.autograd.backward(outs)
    assert [x.grad.item() for x in leaves] == [2.0] * 1_000


def test_many_results_of_one_node_reach_it_together():
    x = leaf([1.0] * 20_000)
    parts = (x * 1.0).unbind(0)
    pb.autograd.backward(list(parts))
    assert x.grad.sum().item() == 20_000.0


def test_grad_with_respect_to_many_inputs():
    leaves = [leaf(1.0) for _ in range(20_000)]
    total = leaves[0]
    for x in leaves[1:]:
        total = total + x
    grads = pb.autograd.grad(total, leaves)
    assert [g.item() for g in grads] == [1.0] * 20_000


def test_a_hook_on_each_of_many_tensors():
    x = leaf()
    seen = []
    y = x
    for _ in range(5_000):
        y = y + 1.0
        y.register_hook(seen.append)
    y.backward()
    assert len(seen) == 5_000


def test_a_group_hook_on_many_tensors():
    x = leaf()
    tensors = [x * float(i) for i in range(500)]
    seen = []
    handle = pb.register_multi_grad_hook(tensors, seen.append)
    total = tensors[0]
    for t in tensors[1:]:
        total = total + t
    total.backward()
    handle.remove()
    assert len(seen) == 1
    assert [g.item() for g in seen[0]] == [1.0] * 500


class Reentrant(pb.Function):
    """Runs a backward pass of its own inside backward, `depth` levels deep."""

    @staticmethod
    def forward(ctx, x, depth, error=None):
        ctx.depth, ctx.error = depth, error
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        if ctx.depth > 0:
            inner = leaf()
            with pb.enable_grad():
                result = Reentrant.apply(inner, ctx.depth - 1, ctx.error)
            result.backward()
            grad_output = grad_output + inner.grad
        elif ctx.error is not None:
            raise ctx.error
        return {"x": grad_output}


@pytest.mark.case("RE2")
def test_backward_inside_backward_goes_deep_and_again():
    x = leaf()
    Reentrant.apply(x, 2_000).backward()
    assert x.grad.item() == 2_001.0
    x = leaf()
    Reentrant.apply(x, 200).backward()
    assert x.grad.item() == 201.0


@pytest.mark.case("RE4")
def test_an_error_deep_inside_reaches_the_caller_and_leaves_the_engine_usable():
    x = leaf()
    y = Reentrant.apply(x, 300, ValueError("at the bottom"))
    with pytest.raises(ValueError, match="at the bottom"):
        y.backward()
    assert pb.is_grad_enabled()
    assert x.grad is None
    Reentrant.apply(x, 300).backward()
    assert x.grad.item() == 301.0


# -- stress ----------------------------------------------------------------------------------------
@pytest.mark.stress
@pytest.mark.parametrize("collector", ["on", "off"])
def test_a_chain_of_a_million_nodes_is_built_run_and_dropped(collector):
    if collector == "off":
        gc.disable()
    try:
        x = leaf()
        y = chain(x, 1_000_000, CHAINS["built-in"])
        assert y.item() == 1_000_001.0
        y.backward()
        del y
    finally:
        gc.enable()
    assert x.grad.item() == 1.0


@pytest.mark.stress
def test_a_chain_of_a_million_nodes_is_dropped_without_backward():
    x = leaf()
    y = chain(x, 1_000_000, CHAINS["built-in"])
    del y
    assert x.grad is None


@pytest.mark.stress
def test_a_chain_of_a_million_custom_nodes_is_built_run_and_dropped():
    x = leaf()
    y = chain(x, 1_000_000, CHAINS["custom"])
    y.backward()
    del y
    assert x.grad.item() == 1.0


def calls(length, step):
    """Return how many functions are called to build, run and drop a chain."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    x = leaf()
    gc.disable()  # other tests' callbacks on a collection are calls too
    sys.setprofile(note)
    try:
        y = chain(x, length, step)
        y.backward()
        del y
    finally:
        sys.setprofile(None)
        gc.enable()
    assert x.grad.item() == 1.0
    return count


@pytest.mark.parametrize("kind", ["built-in", "custom"])
def test_backward_calls_grow_linearly_with_the_nodes(kind):
    calls(10, CHAINS[kind])  # what first calls make
    few, more, many = (calls(n, CHAINS[kind]) for n in (1_000, 2_000, 11_000))
    assert many - few == 10 * (more - few)


@pytest.mark.case("DG2")
def test_each_node_runs_exactly_once():
    x = leaf(1.0)
    y = x
    runs = [0] * 50

    def counter(i):
        def hook(grad_inputs, grad_outputs):
            runs[i] += 1

        return hook

    for i in range(50):
        y = y + y
        y.grad_fn.register_hook(counter(i))
    y.backward()
    assert x.grad.item() == 2.0**50
    assert runs == [1] * 50


@pytest.mark.case("DG1")
@pytest.mark.parametrize("kind", CHAINS)
def test_a_long_chain_is_dropped_without_backward(kind):
    y = CHAINS[kind](leaf())
    y.grad_fn.metadata["witness"] = witness = Identity()
    alive = weakref.ref(witness)
    del witness
    y = chain(y, LENGTHS[kind], CHAINS[kind])
    assert alive() is not None
    del y
    assert alive() is None
