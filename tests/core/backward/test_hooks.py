"""Hooks: what they may return, and passes that they start."""

import pytest

import pullback as pb
from pullback.errors import ReleasedError


def leaf(value):
    return pb.tensor(value, dtype=pb.float64, requires_grad=True)


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
