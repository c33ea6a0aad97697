"""Hooks on tensors and retained gradients (cases H01 to H03, H08, H09, H11, RG1 to RG5)."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def times(factor):
    """Return a hook that scales the gradient."""
    return lambda grad: grad * factor


# --- tensor hooks -------------------------------------------------------------------------


def test_H01_hooks_count_once_per_backward():
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


def test_H01_a_returned_gradient_replaces_it_upstream():
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


def test_H01_a_handle_is_a_context_manager():
    x = leaf([1.0, 2.0])
    y = x * 3
    with y.register_hook(times(10)):
        y.backward(pb.tensor([1.0, 1.0], dtype=pb.float64), retain_graph=True)
    assert x.grad.tolist() == [30.0, 30.0]
    x.grad = None
    y.backward(pb.tensor([1.0, 1.0], dtype=pb.float64))
    assert x.grad.tolist() == [3.0, 3.0]


def test_H01_several_hooks_run_in_order_and_see_each_others_result():
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


@pytest.mark.parametrize("wrong", [1, 2.5, "grad", (1.0,), True], ids=repr)
def test_H01_a_result_that_is_no_tensor_raises_type_error(wrong):
    x = leaf([1.0])
    x.register_hook(lambda grad: wrong)
    with pytest.raises(TypeError):
        (x * 2).backward()


def test_H01_a_hook_needs_a_tensor_that_requires_grad():
    with pytest.raises(RuntimeError, match="require"):
        pb.tensor([1.0]).register_hook(lambda grad: None)


def test_H02_hook_never_receives_none():
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


def test_H02_hook_of_an_output_of_a_constant_argument():
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


def test_H03_a_hook_observes_the_version_it_was_registered_on():
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


def test_H08_a_hook_on_one_of_several_outputs():
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


def test_H09_hooks_fire_from_the_root_towards_the_leaves():
    said = []
    x = leaf([2.0])
    y = 2 * x
    x.register_hook(lambda grad: said.append("ABABA"))
    y.register_hook(lambda grad: said.append("EBEBE"))
    y.backward()
    assert said == ["EBEBE", "ABABA"]


def test_H09_a_hook_may_call_backward_on_another_graph():
    called = []
    a, x = leaf([3.0]), leaf([2.0])
    other = a * 5

    def on_x(grad):
        other.backward()
        called.append("x")

    a.register_hook(lambda grad: called.append("a"))
    x.register_hook(on_x)
    (2 * x).backward()
    assert called == ["a", "x"]
    assert a.grad.tolist() == [5.0]
    assert x.grad.tolist() == [2.0]


def test_H09_hooks_calling_backward_three_levels_deep():
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


def test_H11_any_callable_object_is_a_hook():
    class Doubler:
        def __call__(self, grad):
            return grad * 2

    x = leaf([1.0, 2.0])
    hook = Doubler()
    assert not hasattr(hook, "__name__")
    x.register_hook(hook)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


# --- retained gradients ----------------------------------------------------------------------


def test_RG1_retain_grad_keeps_and_accumulates_a_nonleaf_gradient():
    x = leaf([1.0, 2.0, 3.0])
    h = x * 3
    out = (h * h).sum()
    h.retain_grad()
    h.retain_grad()
    out.backward(retain_graph=True)
    assert h.grad.tolist() == [6.0, 12.0, 18.0]  # 2h
    assert x.grad.tolist() == [18.0, 36.0, 54.0]  # 18x
    out.backward(retain_graph=True)
    assert h.grad.tolist() == [12.0, 24.0, 36.0]  # 4h
    assert x.grad.tolist() == [36.0, 72.0, 108.0]


def test_RG1_retain_grad_on_a_leaf_does_nothing():
    x = leaf([1.0, 2.0, 3.0])
    x.retain_grad()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_RG1_retain_grad_needs_a_tensor_that_requires_grad():
    with pytest.raises(RuntimeError, match="require"):
        pb.tensor([1.0]).retain_grad()


def test_RG2_reading_grad_of_a_nonleaf_warns_once():
    x = leaf([1.0])
    y = x * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert y.grad is None
    assert len(caught) == 1
    assert "leaf" in str(caught[0].message)


def test_RG2_no_warning_for_leaves_or_after_retain_grad():
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    constant = pb.tensor([1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert x.grad is None
        assert y.grad is None
        assert constant.grad is None
        y.backward()
        assert x.grad.tolist() == [2.0]
        assert y.grad.tolist() == [1.0]
    assert caught == []


def test_RG3_retain_grad_follows_in_place_changes():
    x = leaf([1.0, 2.0])
    a = x.clone()
    a.retain_grad()
    a *= 2
    a *= 2
    a.sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [4.0, 4.0]


def test_RG4_hooks_registered_on_either_side_affect_the_retained_gradient():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.register_hook(times(2))
    y.retain_grad()
    y.register_hook(times(2))
    y.sum().backward()
    assert y.grad.tolist() == [4.0, 4.0]
    assert x.grad.tolist() == [4.0, 4.0]


def test_RG5_retain_grad_does_not_keep_the_tensor_alive():
    gc.collect()
    gc.disable()
    try:
        x = leaf([1.0, 2.0])
        y = x * 2
        y.retain_grad()
        z = y / 2
        alive = weakref.ref(y)
        del y
        assert alive() is None
        z.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
    finally:
        gc.enable()
