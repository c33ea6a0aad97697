"""Backward passes started inside backward passes (cases RE1 to RE5)."""

import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def test_RE1_a_backward_that_calls_backward_on_an_inner_graph():
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


def test_RE1_the_inner_pass_may_use_grad():
    class Cube(pb.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x=x)
            return x**3

        @staticmethod
        def backward(ctx, grad_output):
            with pb.enable_grad():
                x = ctx.saved_variables.x.detach().requires_grad_()
                (grad,) = pb.autograd.grad(x**3, x, grad_output)
            return grad

    x = leaf([2.0])
    (Cube.apply(x) * 10).backward()
    assert x.grad.tolist() == [120.0]


def test_RE3_inner_passes_run_before_the_rest_of_the_outer_one():
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


def test_RE4_an_error_in_the_inner_pass_reaches_the_outer_caller():
    class Fail(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            raise ArithmeticError("simulated error")

    a, b = leaf([[1.0, 2.0]]), leaf([[3.0, 4.0]])
    inner_root = Fail.apply(b * b).sum()

    class Outer(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            inner_root.backward()
            return grad_output

    with pytest.raises(ArithmeticError, match="simulated error"):
        Outer.apply(a * a).sum().backward()
    assert a.grad is None
    assert b.grad is None
    assert pb.is_grad_enabled() is True
    (a * b).sum().backward()
    assert a.grad.tolist() == [[3.0, 4.0]]
    assert b.grad.tolist() == [[1.0, 2.0]]


def test_RE5_a_hook_on_a_nonleaf_runs_an_inner_pass():
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


def test_RE5_a_hook_runs_an_inner_pass_over_the_same_leaf():
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
