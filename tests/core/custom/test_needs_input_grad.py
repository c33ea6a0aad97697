"""needs_input_grad of ctx: how it is read, and how a pass narrows it."""

import pytest
from tests.tensors import constant, leaf

import pullback as pb

FLAGS = []


def read_flags(ctx):
    flags = ctx.needs_input_grad
    FLAGS.append(tuple(flags))
    assert [flags.x, flags.w, flags.n, flags.b] == list(flags)
    assert [flags["x"], flags["w"], flags["n"], flags["b"]] == list(flags)
    assert [flags[0], flags[1], flags[2], flags[-1]] == list(flags)
    assert list(flags.keys()) == ["x", "w", "n", "b"]
    assert len(flags) == 4
    assert all(type(flag) is bool for flag in flags)


@pb.autograd_function
def affine(ctx, x, w, n=3, b=None):
    read_flags(ctx)
    ctx.save_for_backward(x=x, w=w)
    return x * w if b is None else x * w + b


@affine.backward
def _(ctx, grad_output):
    read_flags(ctx)
    s = ctx.saved_variables
    return {"x": grad_output * s.w, "w": grad_output * s.x, "b": grad_output}


@pytest.fixture(autouse=True)
def forget():
    FLAGS.clear()


@pytest.mark.case("N01")
def test_needs_input_grad_in_forward_and_backward():
    y = affine(leaf(1.0), constant(2.0), 5, leaf(3.0))
    y.backward()
    assert FLAGS == [(True, False, False, True)] * 2


def test_needs_input_grad_of_defaults_numbers_and_integer_tensors_is_false():
    affine(leaf(1.0), 2.0, pb.tensor(1)).backward()
    assert FLAGS == [(True, False, False, False)] * 2


@pytest.mark.case("F17")
def test_needs_input_grad_is_false_under_no_grad():
    with pb.no_grad():
        affine(leaf(1.0), leaf(2.0))
    assert FLAGS == [(False, False, False, False)]


@pytest.mark.case("N02")
def test_needs_input_grad_is_narrowed_by_grad():
    x, w, b = leaf(1.0), leaf(2.0), leaf(3.0)
    y = affine(x, w, b=b)
    (gw,) = pb.autograd.grad(y, w, retain_graph=True)
    gx, gb = pb.autograd.grad(y, (x, b), retain_graph=True)
    y.backward()
    assert FLAGS == [
        (True, True, False, True),
        (False, True, False, False),
        (True, False, False, True),
        (True, True, False, True),
    ]
    assert [g.item() for g in (gw, gx, gb)] == [1.0, 2.0, 1.0]


def test_needs_input_grad_is_narrowed_by_the_inputs_of_backward():
    x, w = leaf(1.0), leaf(2.0)
    affine(x, w).backward(inputs=[w])
    assert FLAGS[1:] == [(False, True, False, False)]
    assert x.grad is None
    assert w.grad.item() == 1.0


def test_needs_input_grad_is_narrowed_further_from_the_inputs():
    x, w = leaf(1.0), leaf(2.0)
    pb.autograd.grad(affine(x * 2.0, w * w).exp(), w)
    assert FLAGS[1:] == [(False, True, False, False)]


def test_needs_input_grad_is_narrowed_in_a_recorded_backward_too():
    x, w = leaf(1.0), leaf(2.0)
    (g,) = pb.autograd.grad(affine(x, w), w, create_graph=True)
    assert FLAGS[1:] == [(False, True, False, False)]
    assert pb.autograd.grad(g, x)[0].item() == 1.0


def test_a_name_left_out_because_its_flag_is_false_is_no_error():
    @pb.autograd_function
    def product(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return a * b

    @product.backward
    def _(ctx, grad_output):
        grads = {}
        if ctx.needs_input_grad.a:
            grads["a"] = grad_output * ctx.saved_variables.b
        if ctx.needs_input_grad.b:
            grads["b"] = grad_output * ctx.saved_variables.a
        return grads

    a, b = leaf(2.0), leaf(5.0)
    assert pb.autograd.grad(product(a, b), a)[0].item() == 5.0
    product(a, constant(7.0)).backward()
    assert (a.grad.item(), b.grad) == (7.0, None)


def test_needs_input_grad_of_an_unknown_name_lists_the_arguments():
    def rule(ctx, grad_output):
        with pytest.raises(AttributeError, match=r"wieght.*x, weight"):
            ctx.needs_input_grad.wieght  # noqa: B018
        with pytest.raises(KeyError, match=r"wieght.*x, weight"):
            ctx.needs_input_grad["wieght"]
        with pytest.raises(IndexError, match="2 arguments of forward, got position 2"):
            ctx.needs_input_grad[2]
        return {"x": grad_output, "weight": None}

    x = leaf(1.0)
    pb.autograd_function(lambda ctx, x, weight: x * 2.0, rule)(x, 3.0).backward()
    assert x.grad.item() == 1.0


@pytest.mark.parametrize("name", ["keys", "values", "items", "get", "index", "count"])
def test_an_argument_may_have_any_name_and_its_flag_is_read_by_attribute(name):
    found = []

    def rule(ctx, grad_output):
        found.append(getattr(ctx.needs_input_grad, name))
        return {"x": grad_output}

    scope = {}
    exec(f"def forward(ctx, x, {name}): return x * 2.0", scope)
    pb.autograd_function(scope["forward"], rule)(leaf(1.0), 3.0).backward()
    assert found == [False]
