"""Hooks: what they may return, and passes that they start."""

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import (
    ArgumentTypeError,
    GradientError,
    GraphError,
    InplaceError,
    ReleasedError,
)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (lambda: pb.tensor([5.0], dtype=pb.float64), RuntimeError),
        (lambda: pb.tensor([5, 6]), RuntimeError),
        (lambda: 3.0, TypeError),
    ],
    ids=["shape", "dtype", "kind"],
)
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_a_node_hook_may_only_return_what_fits(kind, value, error):
    x = leaf([1.0, 2.0])
    y = x * 2
    if kind == "pre":
        y.grad_fn.register_prehook(lambda grads: (value(),))
    else:
        y.grad_fn.register_hook(lambda grads, _: (value(),) + (None,) * (len(grads) - 1))
    with pytest.raises(error, match="hook must return"):
        y.sum().backward()
    assert x.grad is None


def test_a_gradient_that_a_hook_returns_for_an_untracked_input_is_dropped():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    extra = pb.tensor([7.0], dtype=pb.float64)
    y.grad_fn.register_hook(lambda grads, _: (grads[0], extra))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_hook_may_replace_a_gradient_by_none():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.grad_fn.register_hook(lambda grads, _: (None, None))
    y.sum().backward()
    assert x.grad is None


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


# -- hooks and what they return --------------------------------------------------------------------
def test_a_hook_may_remove_the_one_after_it():
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


def test_a_hook_that_changes_its_gradient_in_place_is_told_so():
    x = leaf([1.0])

    def hook(g):
        g.mul_(2.0)

    x.register_hook(hook)
    with pytest.raises(GradientError, match="changed its gradient in place"):
        (x * 3.0).sum().backward()


def test_a_hook_may_change_a_part_of_its_own_copy_and_return_it():
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


def test_a_hook_before_a_node_may_return_one_tensor():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.grad_fn.register_prehook(lambda grads: grads[0] * 2.0)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (3, ArgumentTypeError, "a tuple of gradients or None, got int"),
        ((), GradientError, "as many gradients as it was given, got 0 for 1"),
    ],
)
def test_a_hook_before_a_node_that_returns_something_else_is_refused(returned, error, text):
    y = leaf([1.0]) * 3.0
    y.grad_fn.register_prehook(lambda grads: returned)
    with pytest.raises(error, match=f"register_prehook: a hook must return {text}"):
        y.sum().backward()


def test_a_hook_on_a_group_needs_a_function_and_tensors_that_require_grad():
    x = leaf([1.0])
    with pytest.raises(ArgumentTypeError, match="fn must be callable, got int"):
        pb.register_multi_grad_hook([x], 3)
    with pytest.raises(GraphError, match=r"tensors\[1\] must be a Tensor that requires grad"):
        pb.register_multi_grad_hook([x, pb.ones(1)], print)


def test_the_gradient_that_one_tensor_retains_does_not_follow_another():
    x = leaf([3.0])
    kept = []
    x.register_hook(kept.append)
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x * x).sum().backward(create_graph=True)
    kept[0].retain_grad()
    g = x.grad  # at the same place of the history
    g.mul_(2.0)
    assert (g.tolist(), kept[0].tolist()) == ([12.0], [6.0])
    g.sum().backward()
    assert kept[0].grad.tolist() == [2.0]


# -- hooks on saved tensors ------------------------------------------------------------------------
def test_hooks_on_saved_tensors_must_be_callable_and_give_tensors():
    x = leaf([3.0])
    with pytest.raises(ArgumentTypeError, match="unpack_hook must be callable, got int"):
        pb.saved_tensors_hooks(lambda t: t, 3)
    with pb.saved_tensors_hooks(lambda t: t, lambda t: t.numpy()):
        y = x * x
    with pytest.raises(ArgumentTypeError, match="must return a Tensor, got ndarray"):
        y.sum().backward()


def test_hooks_that_keep_the_memory_of_a_saved_tensor_do_not_hide_its_change():
    x = leaf([3.0]) * 1.0
    with pb.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    x.mul_(2.0)
    with pytest.raises(InplaceError, match="is at version 1; expected version 0"):
        y.sum().backward()
