"""`checkpoint`: one node stands for the graph of a call; what others hold of that stays in it."""

import tracemalloc

import numpy as np
import pytest

import pullback as pb


def leaf(*numbers):
    return pb.tensor(numbers, dtype=pb.float64, requires_grad=True)


def test_the_results_of_a_checkpoint_come_from_one_node_that_leads_to_what_it_used():
    x, w = leaf(2.0), leaf(3.0)
    a, b = pb.checkpoint(lambda x: ((x * w).sin(), x.exp() * x))(x)
    assert a.grad_fn is b.grad_fn
    assert a.grad_fn.name() == "CheckpointBackward"
    assert {id(node.variable) for node, _ in a.grad_fn.next_functions} == {id(x), id(w)}


# ---- what others hold of the graph of the first run ----------------------------------------------
def test_a_tensor_that_the_checkpointed_function_gave_away_gets_its_gradients_and_hooks():
    given, seen, x = [], [], leaf(2.0)

    def function(x):
        h = x * x
        h.retain_grad()
        h.register_hook(lambda g: g * 2)
        given.append(h)
        return h * h * x

    y = pb.checkpoint(function)(x)
    h = given[0]
    h.register_hook(lambda g: seen.append(g.item()))
    found = pb.autograd.grad(y, [h, x], retain_graph=True)
    assert [g.item() for g in found] == [32.0, 16.0 + 32.0 * 4]  # y = h * h * x, twice for h
    (y + h * 3).backward()
    assert (h.grad.item(), x.grad.item()) == (32.0 + 38.0, 16.0 + 38.0 * 4)
    assert seen == [32.0, 38.0]


def test_what_the_checkpointed_function_makes_once_and_keeps_gets_its_gradient():
    kept, x, w = [], leaf(2.0), leaf(3.0)

    def function(x):
        if not kept:
            kept.extend([leaf(5.0), w * w])
        return x * kept[0] * kept[1]

    pb.checkpoint(function)(x).backward()
    assert (x.grad.item(), w.grad.item(), kept[0].grad.item()) == (45.0, 60.0, 18.0)


def test_a_leaf_that_each_run_makes_anew_and_keeps_is_an_error():
    kept, x = [], leaf(2.0)

    def function(x):
        kept.append(leaf(5.0))
        return x * kept[-1]

    y = pb.checkpoint(function)(x)
    with pytest.raises(pb.errors.GraphError, match="leads to what the first led to in the graph"):
        y.backward()
    assert x.grad is None


def test_a_gradient_function_that_the_checkpointed_function_returns_leads_back():
    x = leaf(2.0)
    out, vjp_fn = pb.checkpoint(lambda x: pb.vjp(lambda u: u * u * u, x))(x)
    (vjp_fn(pb.ones(1, dtype="float64"))[0] * out).backward()
    assert x.grad.item() == 240.0  # of 3 x**2 x**3


# ---- results that share memory -------------------------------------------------------------------
def test_results_of_a_checkpoint_that_are_views_of_one_another_stay_so():
    x = leaf(2.0, 3.0)

    def function(x):
        y = x * x
        return y, y[0], y[1:], y.unbind()

    whole, first, rest, parts = pb.checkpoint(function)(x)
    rest.mul_(3)
    assert whole.tolist() == [4.0, 27.0]
    (whole.sum() + first * 5 + rest.sum() + parts[1] * 2).backward()
    assert x.grad.tolist() == [24.0, 72.0]


def test_results_of_a_checkpoint_that_are_its_argument_or_views_of_it_stay_so():
    x = leaf(2.0, 3.0)
    h = x * 1
    part, _, same = pb.checkpoint(lambda h: (h[0], h * 2, h))(h)
    assert same is h
    part.mul_(3)
    assert h.tolist() == [6.0, 3.0]
    (h.sum() + part).backward()
    assert x.grad.tolist() == [6.0, 1.0]


def test_results_of_a_checkpoint_without_a_gradient_share_its_memory():
    x = leaf(2.0, 3.0)

    def function(x):
        y = x * x
        with pb.no_grad():
            part = y[0]
        return y, part, y.detach(), y > 5

    y, part, values, large = pb.checkpoint(function)(x)
    assert (part.requires_grad, values.requires_grad) == (False, False)
    assert (part.item(), values.tolist(), large.tolist()) == (4.0, [4.0, 9.0], [False, True])
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_the_same_tensor_twice_a_leaf_and_a_retained_gradient_among_results_of_a_checkpoint():
    x = leaf(2.0)

    def function(x):
        y = x * x
        y.retain_grad()
        return y, y, leaf(5.0)

    y, same, own = pb.checkpoint(function)(x)
    assert y is same
    (y * same * own).backward()
    assert (x.grad.item(), y.grad.item(), own.grad.item()) == (160.0, 40.0, 16.0)


# ---- several passes ------------------------------------------------------------------------------
def test_each_result_of_a_checkpoint_can_be_pulled_back_once_by_itself():
    runs, x = [], leaf(2.0)

    def function(x):
        runs.append(0)
        return x * x * x, x * 5

    a, b = pb.checkpoint(function)(x)
    a.backward()
    b.backward()
    assert (x.grad.item(), len(runs)) == (17.0, 2)
    for result in (a, b):
        with pytest.raises(pb.errors.ReleasedError, match="CheckpointBackward: trying to backward"):
            result.backward()


def test_a_second_derivative_of_a_checkpoint_needs_no_third_run():
    @pb.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @cube.backward
    def _(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2

    runs, x = [], leaf(2.0)

    def function(x):
        runs.append(0)
        first, second = x.reshape(1, 1).repeat(1, 2).unbind(1)
        return cube(first.reshape(1)) * second

    y = pb.checkpoint(function)(x)
    (g,) = pb.autograd.grad(y * y, x, create_graph=True)  # of x**8
    (gg,) = pb.autograd.grad(g, x)
    assert (g.item(), gg.item(), len(runs)) == (8 * 2.0**7, 56 * 2.0**6, 2)


SEGMENTS = {
    "grad of vmap": lambda f, x: pb.grad(lambda w: pb.vmap(lambda x: f(x, w))(x).sum())(1.1),
    "grad of jvp": lambda f, x: pb.grad(lambda w: pb.jvp(lambda x: f(x, w), (x,), (x,))[1].sum())(
        1.1
    ),
    "vmap of grad": lambda f, x: pb.vmap(pb.grad(lambda x: f(x, 1.1).sum()))(x),
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_a_checkpoint_keeps_less_inside_of_transforms_too(name):
    def segment(x, w):
        for _ in range(10):
            x = (x * w).sin()
        return x

    def peak(wrap):
        def function(x, w):
            for _ in range(10):
                x = wrap(segment)(x, w)
            return x

        tracemalloc.start()
        try:
            SEGMENTS[name](function, np.linspace(0.1, 0.9, 20_000).reshape(10, -1))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(pb.checkpoint) < 0.3 * peak(lambda f: f)
