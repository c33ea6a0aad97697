"""Tensor.register_hook: when a hook runs, what it sees, and what it may return."""

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import GradientError


def times(factor):
    """Return a hook that scales the gradient."""
    return lambda grad: grad * factor


@pytest.mark.case("H01")
def test_register_hook_runs_once_a_pass_until_it_is_removed():
    x, y = leaf(np.full((5, 5), 2.0)), leaf(np.full((5, 5), 4.0))
    z = x**2 + x * 2 + x * y + y
    counter = [0]

    def count(increment):
        def hook(grad):
            assert grad.tolist() == [[1.0] * 5] * 5
            counter[0] += increment

        return hook

    ones = pb.ones((5, 5), dtype=pb.float64)
    z.register_hook(count(1))
    z.backward(ones, retain_graph=True)
    assert counter[0] == 1
    second = z.register_hook(count(2))
    z.backward(ones, retain_graph=True)
    assert counter[0] == 4
    second.remove()
    z.backward(ones, retain_graph=True)
    assert counter[0] == 5


@pytest.mark.case("H01")
def test_register_hook_replaces_the_gradient_by_what_it_returns():
    x, y = leaf(np.full((5, 5), 2.0)), leaf(np.full((5, 5), 4.0))
    z = x**2 + x * 2 + x * y + y
    ones = pb.ones((5, 5), dtype=pb.float64)
    z.register_hook(times(2))
    z.backward(ones, retain_graph=True)
    assert y.grad.tolist() == [[6.0] * 5] * 5  # (x + 1) * 2
    assert x.grad.tolist() == [[20.0] * 5] * 5  # (2x + 2 + y) * 2
    y.grad = None
    y.register_hook(times(2))
    z.backward(ones)
    assert y.grad.tolist() == [[12.0] * 5] * 5  # (x + 1) * 4


@pytest.mark.case("H01")
def test_register_hook_returns_a_context_manager():
    x = leaf([1.0, 2.0])
    y = x * 3
    with y.register_hook(times(10)):
        y.backward(pb.tensor([1.0, 1.0], dtype=pb.float64), retain_graph=True)
    assert x.grad.tolist() == [30.0, 30.0]
    x.grad = None
    y.backward(pb.tensor([1.0, 1.0], dtype=pb.float64))
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.case("H01")
def test_register_hook_runs_several_in_order_on_each_others_result():
    x = leaf([1.0])
    seen = []

    def add_one(grad):
        seen.append(("add", grad.item()))
        return grad + 1

    def double(grad):
        seen.append(("double", grad.item()))
        return grad * 2

    x.register_hook(add_one)
    x.register_hook(double)
    (x * 5).backward()
    assert seen == [("add", 5.0), ("double", 6.0)]
    assert x.grad.tolist() == [12.0]


@pytest.mark.case("H02")
def test_register_hook_never_receives_none():
    class NoneForSecond(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            assert ctx.needs_input_grad[0] is True
            assert ctx.needs_input_grad[1] is True
            return x.clone(), y.clone()

        @staticmethod
        def backward(ctx, grad_x, grad_y):
            return grad_x, None

    x, y = leaf(np.ones((5, 5))), leaf(np.ones((5, 5)))
    mid = y * 1
    rx, ry = NoneForSecond.apply(x, mid)
    seen = []
    for name, t in (("x", x), ("y", y), ("mid", mid), ("rx", rx), ("ry", ry)):
        t.register_hook(lambda grad, name=name: seen.append((name, type(grad))))
    (rx + ry).sum().backward()
    assert sorted(name for name, _ in seen) == ["rx", "ry", "x"]
    assert {kind for _, kind in seen} == {pb.Tensor}
    assert y.grad is None


@pytest.mark.case("H02")
def test_register_hook_of_a_result_of_a_constant_argument():
    class NoneForSecond(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            assert ctx.needs_input_grad[0]
            assert not ctx.needs_input_grad[1]
            return x, y

        @staticmethod
        def backward(ctx, grad_x, grad_y):
            return grad_x, None

    x, y = leaf(np.ones((5, 5))), pb.ones((5, 5), dtype=pb.float64)
    rx, ry = NoneForSecond.apply(x, y)
    seen = []
    rx.register_hook(seen.append)
    ry.register_hook(seen.append)
    (rx + ry).sum().backward()
    assert [grad.tolist() for grad in seen] == [[[1.0] * 5] * 5] * 2
    assert y.grad is None


@pytest.mark.case("H03")
def test_register_hook_observes_the_version_it_was_registered_on():
    a = leaf([1.0, 1.0])
    b = a.clone()
    seen = {}

    def observe(name):
        def hook(grad):
            seen[name] = grad.tolist()
            return grad * 2

        return hook

    b.register_hook(observe("before"))
    b *= 2
    b.register_hook(observe("after"))
    b.sum().backward()
    assert seen == {"after": [1.0, 1.0], "before": [4.0, 4.0]}
    assert a.grad.tolist() == [8.0, 8.0]


@pytest.mark.case("H08")
def test_register_hook_on_one_of_several_results():
    x = leaf([1.0, 2.0, 3.0, 4.0, 5.0])
    parts = x.unbind()
    seen = []
    parts[0].register_hook(seen.append)
    parts[0].backward(retain_graph=True)
    assert [grad.item() for grad in seen] == [1.0]
    assert x.grad.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    seen.clear()
    parts[1].backward()
    assert seen in ([], [None])
    assert x.grad.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.case("H11")
def test_register_hook_takes_any_callable_object():
    class Doubler:
        def __call__(self, grad):
            return grad * 2

    x = leaf([1.0, 2.0])
    hook = Doubler()
    assert not hasattr(hook, "__name__")
    x.register_hook(hook)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_register_hook_may_remove_the_one_after_it():
    x = leaf([1.0, 2.0])
    calls = []

    def first(g):
        calls.append("first")
        second.remove()

    x.register_hook(first)
    second = x.register_hook(lambda g: calls.append("second"))
    (x * 2.0).sum().backward()
    assert calls == ["first"]
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.case("H07")
def test_register_hook_may_remove_itself():
    x = leaf(1.0)
    y = 2 * x
    log = []

    def once(grad):
        log.append(grad.item())
        handle.remove()
        return grad * 10

    handle = y.register_hook(once)
    y.backward(retain_graph=True)
    y.backward()
    assert log == [1.0]
    assert x.grad.item() == 22.0


def test_register_hook_refuses_a_change_of_the_gradient_in_place():
    x = leaf([1.0])

    def hook(g):
        g.mul_(2.0)

    x.register_hook(hook)
    with pytest.raises(GradientError, match="changed its gradient in place"):
        (x * 3.0).sum().backward()


def test_register_hook_may_return_its_own_copy_changed_in_place():
    x = leaf([1.0, 2.0])
    seen = []

    def hook(g):
        g[:1].mul_(5.0)
        return g

    y = x * 1.0
    y.register_hook(seen.append)
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 1.0]
    assert seen[0].tolist() == [1.0, 1.0]
