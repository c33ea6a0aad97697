"""What a pass within a pass releases is missed by the outer one; the order of passes."""

import warnings

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ReleasedError


@pb.autograd_function
def tripled(ctx, t):
    ctx.save_for_backward(t=t)
    return t * 3.0


@tripled.backward
def _(ctx, g):
    return g * 3.0 + 0.0 * ctx.saved_variables.t


def with_a_row_set(a):
    b = a * 1.0
    b[0] = 2.0
    return b


def with_a_view_changed(a):
    b = a * 1.0
    b[0].mul_(3.0)
    return b


SHARED = {
    "exp": lambda a: a.exp(),
    "product": lambda a: a * a,
    "sum with a number": lambda a: a + 1.0,
    "broadcast product": lambda a: a * a[0],
    "where": lambda a: pb.where(a > 1.5, a, 0.0),
    "sum": lambda a: a.sum(),
    "matmul": lambda a: a @ a,
    "cat": lambda a: pb.cat([a, a]),
    "stack": lambda a: pb.stack([a, a]),
    "reshape": lambda a: a.reshape(4),
    "transpose": lambda a: a.t(),
    "slice": lambda a: a[:1],
    "slice of a slice": lambda a: a[:1][:, 1:],
    "row": lambda a: a[0],
    "list of indices": lambda a: a[[0, 1]],
    "unbind": lambda a: a.unbind()[0],
    "split": lambda a: a.split(1)[1],
    "max": lambda a: a.max(dim=1)[0],
    "a row set": with_a_row_set,
    "a view changed": with_a_view_changed,
    "a user's operation": tripled,
}


def program(name, within, retain=False):
    """Run a pass through an operation that a hook runs another pass through first."""
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    shared = SHARED[name](x * 1.0)
    inner = (shared * 5.0).sum()
    outer = shared * 2.0
    outer.register_hook(lambda g: within(inner, x, retain))
    outer.sum().backward()
    return x.grad


def by_backward(inner, x, retain):
    inner.backward(retain_graph=retain)


def by_grad(inner, x, retain):
    pb.autograd.grad(inner, x, retain_graph=retain)


@pytest.mark.parametrize("within", [by_backward, by_grad])
@pytest.mark.parametrize("name", SHARED)
def test_what_the_inner_pass_released_is_missed_by_the_outer_one(name, within):
    with pytest.raises(ReleasedError, match="backward through the graph a second time") as caught:
        program(name, within)
    assert "retain_graph=True" in str(caught.value)


@pytest.mark.parametrize("name", SHARED)
def test_an_inner_pass_that_retains_the_graph_leaves_the_outer_one_alone(name):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (SHARED[name](x * 1.0) * 7.0).sum().backward()
    np.testing.assert_allclose(program(name, by_backward, True).numpy(), x.grad.numpy())
    np.testing.assert_allclose(program(name, by_grad, True).numpy() * 3.5, x.grad.numpy())


@pytest.mark.parametrize("name", SHARED)
def test_an_inner_pass_that_a_gradient_hook_of_the_shared_result_starts(name):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    shared = SHARED[name](x * 1.0)
    inner = (shared * 5.0).sum()
    shared.register_hook(lambda g: by_backward(inner, x, False) if not started() else None)

    ran = []

    def started():
        ran.append(True)
        return len(ran) > 1

    with pytest.raises(ReleasedError, match="backward through the graph a second time"):
        (shared * 2.0).sum().backward()


def test_the_error_names_the_operation_and_where_it_was_recorded_if_that_is_known():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with warnings.catch_warnings(action="ignore"), pb.detect_anomaly():
        shared = x.exp()  # this line
        inner = shared.sum()
        outer = shared * 2.0
    outer.register_hook(lambda g: inner.backward())
    with pytest.raises(ReleasedError, match="ExpBackward: trying to") as caught:
        outer.sum().backward()
    assert "shared = x.exp()  # this line" in caught.value.__notes__[0]


# -- the order of passes ---------------------------------------------------------------------------
@pytest.mark.case("RE1")
def test_a_backward_that_calls_backward_on_an_inner_graph():
    y = leaf([[5.0, 7.0], [11.0, 13.0]])

    class Reentrant(pb.Function):
        @staticmethod
        def forward(ctx, x):
            with pb.enable_grad():
                ctx.inner = x.detach().requires_grad_()
                ctx.y = y.detach().requires_grad_()
                ctx.product = ctx.inner * ctx.y
            return ctx.product.detach()

        @staticmethod
        def backward(ctx, grad_output):
            assert pb.is_grad_enabled() is False
            with pb.enable_grad():
                ctx.product.sum().backward()
            return ctx.inner.grad * grad_output

    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    out = Reentrant.apply(x)
    assert out.tolist() == [[5.0, 14.0], [33.0, 52.0]]
    out.backward(pb.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=pb.float64))
    assert x.grad.tolist() == [[5.0, 70.0], [1100.0, 13000.0]]
    assert y.grad is None


@pytest.mark.case("RE3")
def test_inner_passes_run_before_the_rest_of_the_outer_one():
    order = []

    class MyFunction(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad_output):
            order.append("MyFunction")
            return grad_output

    class Reentrant(pb.Function):
        @staticmethod
        def forward(ctx, x):
            with pb.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, grad_output):
            order.append("Reentrant")
            if ctx.x < 0:
                return grad_output
            with pb.enable_grad():
                Reentrant.apply(ctx.x).backward()
            return grad_output

    a = MyFunction.apply(leaf(6.0))
    b = Reentrant.apply(leaf(9.0))
    (a * b).backward()
    assert order == ["Reentrant"] * 10 + ["MyFunction"]


@pytest.mark.case("RE5")
def test_register_hook_of_a_result_runs_a_pass():
    p = leaf([1.0, 2.0, 3.0])
    tmp = p * p

    def hook(grad):
        with pb.enable_grad():
            inner = grad.detach().requires_grad_()
            loss = (2 * inner + 5).sum()
            loss.backward()
        return inner.grad + grad

    tmp.register_hook(hook)
    tmp.sum().backward()
    assert p.grad.tolist() == [6.0, 12.0, 18.0]


@pytest.mark.case("RE5")
def test_register_hook_runs_a_pass_over_the_same_leaf():
    p = leaf([2.0])
    tmp = p * p
    calls = []

    def hook(grad):
        calls.append(grad.item())
        with pb.enable_grad():
            (p * 100).backward()

    tmp.register_hook(hook)
    tmp.backward()
    assert calls == [1.0]
    assert p.grad.tolist() == [104.0]


@pytest.mark.case("H09")
def test_register_hook_calls_backward_three_levels_deep():
    called = []
    k, a, x = leaf([1.0]), leaf([2.0]), leaf([3.0])
    k_graph, a_graph = k * 7, a * 5

    def on_a(grad):
        k_graph.backward()
        called.append("a")

    def on_x(grad):
        a_graph.backward()
        called.append("x")

    k.register_hook(lambda grad: called.append("k"))
    a.register_hook(on_a)
    x.register_hook(on_x)
    (2 * x).backward()
    assert called == ["k", "a", "x"]
    assert [t.grad.tolist() for t in (k, a, x)] == [[7.0], [5.0], [2.0]]


def test_a_pass_that_a_hook_starts_may_release_what_the_outer_pass_needs():
    x = leaf([1.0, 2.0])
    changed = x * 1.0
    changed[0].mul_(3.0)
    double = pb.autograd_function(lambda ctx, t: t * 2.0, lambda ctx, g: {"t": g * 2.0})
    for shared in (changed, double(x)):
        inner, outer = shared.sum(), shared * 1.0
        outer.register_hook(lambda g, inner=inner: inner.backward())
        with pytest.raises(ReleasedError, match="a second time"):
            outer.sum().backward()
