"""ctx, continued: flags, marks, and what may be used where backward itself is recorded."""

import re

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentTypeError, GraphError, InplaceError


def leaf(value):
    return pb.tensor(value, dtype=pb.float64, requires_grad=True)


def constant(value):
    return pb.tensor(value, dtype=pb.float64)


# -- needs_input_grad ------------------------------------------------------------------------------
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


def test_flags_say_which_arguments_need_a_gradient_in_forward_and_backward():
    y = affine(leaf(1.0), constant(2.0), 5, leaf(3.0))
    y.backward()
    assert FLAGS == [(True, False, False, True)] * 2


def test_flags_of_defaults_numbers_and_integer_tensors_are_false():
    affine(leaf(1.0), 2.0, pb.tensor(1)).backward()
    assert FLAGS == [(True, False, False, False)] * 2


def test_flags_are_false_under_no_grad():
    with pb.no_grad():
        affine(leaf(1.0), leaf(2.0))
    assert FLAGS == [(False, False, False, False)]


def test_flags_in_backward_are_narrowed_by_grad():
    x, w, b = leaf(1.0), leaf(2.0), leaf(3.0)
    y = affine(x, w, b=b)
    (gw,) = pb.autograd.grad(y, w, retain_graph=True)
    gx, gb = pb.autograd.grad(y, (x, b), retain_graph=True)
    y.backward()
    assert FLAGS[1:] == [
        (False, True, False, False),
        (True, False, False, True),
        (True, True, False, True),
    ]
    assert [g.item() for g in (gw, gx, gb)] == [1.0, 2.0, 1.0]


def test_flags_in_backward_are_narrowed_by_the_inputs_of_backward():
    x, w = leaf(1.0), leaf(2.0)
    affine(x, w).backward(inputs=[w])
    assert FLAGS[1:] == [(False, True, False, False)]
    assert x.grad is None
    assert w.grad.item() == 1.0


def test_flags_are_narrowed_for_an_argument_further_from_the_inputs():
    x, w = leaf(1.0), leaf(2.0)
    pb.autograd.grad(affine(x * 2.0, w * w).exp(), w)
    assert FLAGS[1:] == [(False, True, False, False)]


def test_flags_are_narrowed_in_a_recorded_backward_too():
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


def test_an_unknown_flag_lists_the_arguments():
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


# -- containers of tensors -------------------------------------------------------------------------
HOLDERS = {
    "saved list": (
        lambda ctx, x: ctx.save_for_backward(pair=[x, 2.0]),
        lambda ctx: ctx.saved_variables.pair[0],
    ),
    "saved dict": (
        lambda ctx, x: ctx.save_for_backward(pair={"x": x}),
        lambda ctx: ctx.saved_variables.pair["x"],
    ),
    "attribute list": (lambda ctx, x: setattr(ctx, "pair", (x, 2.0)), lambda ctx: ctx.pair[0]),
}


every_holder = pytest.mark.parametrize(("save", "read"), HOLDERS.values(), ids=HOLDERS.keys())


def square_holding(save, read):
    def forward(ctx, x):
        save(ctx, x)
        return x * x

    return pb.autograd_function(forward, lambda ctx, g: {"x": 2.0 * read(ctx) * g})


@every_holder
def test_a_tensor_in_a_saved_container_is_version_checked_like_any_other(save, read):
    y = leaf(3.0) * 1.0
    z = square_holding(save, read)(y)
    y.add_(1.0)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        z.backward()


@every_holder
def test_a_tensor_in_a_saved_container_is_never_a_silent_constant(save, read):
    x = leaf(3.0)
    y = square_holding(save, read)(x) * x  # x**3
    (g,) = pb.autograd.grad(y, x, create_graph=True)
    assert (g.item(), pb.autograd.grad(g, x)[0].item()) == (27.0, 18.0)


# -- where backward is recorded --------------------------------------------------------------------
WAYS_OUT = ["return it from forward", "recompute it in backward", "once_differentiable"]


def second_derivative(save, read, result=lambda ctx, x: x * x * x):
    """Differentiate x**3 at 2 twice with a rule 3 * read(ctx) * g that needs x**2."""

    def forward(ctx, x):
        out = result(ctx, x)
        save(ctx, x)
        return out

    cube = pb.autograd_function(forward, lambda ctx, g: {"x": 3.0 * read(ctx) * g})
    x = leaf(2.0)
    cube(x).backward()
    assert x.grad.item() == 12.0  # an ordinary backward may use anything
    (g,) = pb.autograd.grad(cube(x) * 1.0, x, create_graph=True)
    assert g.item() == 12.0
    return pb.autograd.grad(g, x)[0].item()


REFUSED = {
    "saved intermediate": (
        lambda ctx, x: ctx.save_for_backward(square=x * x),
        lambda ctx: ctx.saved_variables.square,
    ),
    "saved intermediate by key": (
        lambda ctx, x: ctx.save_for_backward(square=x * x),
        lambda ctx: ctx.saved_variables["square"],
    ),
    "saved intermediate by position": (
        lambda ctx, x: ctx.save_for_backward(x * x),
        lambda ctx: ctx.saved_tensors[0],
    ),
    "copy of an input": (
        lambda ctx, x: ctx.save_for_backward(square=x.clone()),
        lambda ctx: ctx.saved_variables.square**2,
    ),
    "detached input": (
        lambda ctx, x: ctx.save_for_backward(square=x.detach()),
        lambda ctx: ctx.saved_variables.square**2,
    ),
    "view of an input": (
        lambda ctx, x: ctx.save_for_backward(square=x.reshape(1)),
        lambda ctx: ctx.saved_variables.square[0] ** 2,
    ),
    "tensor attribute": (
        lambda ctx, x: setattr(ctx, "square", x * x),
        lambda ctx: ctx.square,
    ),
    "saved raw array": (
        lambda ctx, x: ctx.save_for_backward(square=np.asarray(x.numpy() ** 2)),
        lambda ctx: pb.asarray(ctx.saved_variables.square),
    ),
    "raw array attribute": (
        lambda ctx, x: setattr(ctx, "square", np.asarray(x.numpy() ** 2)),
        lambda ctx: pb.asarray(ctx.square),
    ),
}


@pytest.mark.parametrize(("save", "read"), REFUSED.values(), ids=REFUSED.keys())
def test_a_float_value_that_is_neither_input_nor_output_is_refused_with_the_ways_out(save, read):
    with pytest.raises(GraphError, match="neither an input nor an output of forward") as caught:
        second_derivative(save, read)
    text = str(caught.value)
    assert text.startswith("forward: ")
    for way in WAYS_OUT:
        assert way in text
    assert "square" in text or "saved value 0" in text


ALLOWED = {
    "input": (lambda ctx, x: ctx.save_for_backward(x=x), lambda ctx: ctx.saved_variables.x**2),
    "input as attribute": (lambda ctx, x: setattr(ctx, "x", x), lambda ctx: ctx.x**2),
    "recomputed": (
        lambda ctx, x: ctx.save_for_backward(x=x, square=x * x),
        lambda ctx: ctx.saved_variables.x * ctx.saved_variables.x,
    ),
    "with a bool mask": (
        lambda ctx, x: ctx.save_for_backward(x=x, mask=x > 1.0),
        lambda ctx: ctx.saved_variables.x**2 * ctx.saved_variables.mask,
    ),
    "with a raw bool mask": (
        lambda ctx, x: ctx.save_for_backward(x=x, mask=np.asarray(x.numpy() > 1.0)),
        lambda ctx: ctx.saved_variables.x**2 * pb.asarray(ctx.saved_variables.mask),
    ),
    "with integers": (
        lambda ctx, x: ctx.save_for_backward(x=x, n=pb.tensor(2), raw=np.asarray(1)),
        lambda ctx: ctx.saved_variables.x**ctx.saved_variables.n,
    ),
    "with numbers": (
        lambda ctx, x: ctx.save_for_backward(x=x, two=2.0, one=1, text="text"),
        lambda ctx: ctx.saved_variables.x**ctx.saved_variables.two * ctx.saved_variables.one,
    ),
    "with number attributes": (
        lambda ctx, x: (ctx.save_for_backward(x=x), setattr(ctx, "two", 2.0)),
        lambda ctx: ctx.saved_variables.x**ctx.two,
    ),
}


@pytest.mark.parametrize(("save", "read"), ALLOWED.values(), ids=ALLOWED.keys())
def test_inputs_masks_integers_and_numbers_may_be_used(save, read):
    assert second_derivative(save, read) == 12.0


def test_a_saved_result_may_be_used():
    @pb.autograd_function
    def exponential(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out=out)
        return out

    @exponential.backward
    def _(ctx, grad_output):
        return {"x": ctx.saved_variables.out * grad_output}

    x = leaf(0.0)
    (first,) = pb.autograd.grad(exponential(x), x, create_graph=True)
    (second,) = pb.autograd.grad(first, x, create_graph=True)
    (third,) = pb.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [1.0, 1.0, 1.0]


def test_the_way_out_of_returning_the_intermediate_works():
    @pb.autograd_function
    def cube(ctx, x):
        square = x * x
        ctx.save_for_backward(x=x, square=square)
        return square * x, square

    @cube.backward
    def _(ctx, g, g_square):
        s = ctx.saved_variables
        return {"x": 3.0 * s.square * g + 2.0 * s.x * g_square}

    x = leaf(2.0)
    y, _ = cube(x)
    (first,) = pb.autograd.grad(y, x, create_graph=True)
    (second,) = pb.autograd.grad(first, x, create_graph=True)
    (third,) = pb.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]


def test_the_way_out_of_passing_a_constant_as_an_argument_works():
    @pb.autograd_function
    def scaled_square(ctx, x, scale):
        ctx.save_for_backward(x=x, scale=scale)
        return x * x * scale

    @scaled_square.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        return {"x": 2.0 * s.x * s.scale * grad_output}

    x = leaf(3.0)
    (first,) = pb.autograd.grad(scaled_square(x, constant(5.0)), x, create_graph=True)
    assert pb.autograd.grad(first, x)[0].item() == 10.0


def test_the_way_out_of_once_differentiable_works():
    @pb.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(square=x * x)
        return x * x * x

    @cube.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"x": 3.0 * ctx.saved_variables.square * grad_output}

    x = leaf(2.0)
    (first,) = pb.autograd.grad(cube(x), x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(GraphError, match="once_differentiable"):
        pb.autograd.grad(first, x)


def test_an_intermediate_that_is_not_used_is_no_error():
    @pb.autograd_function
    def double(ctx, x):
        ctx.save_for_backward(junk=x * x)
        return x * 2.0

    @double.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 2.0}

    x = leaf(3.0)
    (first,) = pb.autograd.grad(double(x) ** 2, x, create_graph=True)
    assert (first.item(), pb.autograd.grad(first, x)[0].item()) == (24.0, 8.0)


def test_the_refusal_names_the_saved_value():
    save, read = REFUSED["saved intermediate"]
    with pytest.raises(GraphError, match=re.escape("the saved value 'square' is neither")):
        second_derivative(save, read)


# -- materialised gradients ------------------------------------------------------------------------
@pytest.mark.parametrize("materialize", [None, True, False])
def test_an_output_without_gradient_arrives_as_zeros_or_none(materialize):
    seen = []

    @pb.autograd_function
    def f(ctx, x):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return x * 2.0, x.reshape(1, 2), x.argmax()

    @f.backward
    def _(ctx, a, b, index):
        seen.extend([a, b, index])
        return {"x": a * 2.0}

    x = leaf([1.0, 2.0])
    f(x)[0].sum().backward()
    assert seen[0].tolist() == [1.0, 1.0]
    if materialize is False:
        assert seen[1:] == [None, None]
    else:
        assert (seen[1].tolist(), seen[1].dtype) == ([[0.0, 0.0]], pb.float64)
        assert seen[2].item() == 0
    assert x.grad.tolist() == [2.0, 2.0]


# -- marks -----------------------------------------------------------------------------------------
def test_marks_take_tensors():
    for mark in ("mark_dirty", "mark_non_differentiable"):
        f = pb.autograd_function(lambda ctx, x, mark=mark: getattr(ctx, mark)([x]))
        with pytest.raises(ArgumentTypeError, match=rf"ctx\.{mark} takes tensors, got list"):
            f(leaf(1.0) * 1.0)


def test_mark_dirty_gives_the_changed_input_new_history():
    @pb.autograd_function
    def double_(ctx, x):
        x.mul_(2.0)
        ctx.mark_dirty(x)
        return x

    @double_.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 2.0}

    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = double_(y)
    assert z is y
    assert y.grad_fn.name() == "double_Backward"
    assert y._version == 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(InplaceError, match="leaf Variable that requires grad"):
        double_(leaf(1.0))


def test_mark_non_differentiable_results_do_not_require_grad():
    @pb.autograd_function
    def f(ctx, x):
        half = x * 0.5
        ctx.mark_non_differentiable(half)
        return x * 2.0, half

    @f.backward
    def _(ctx, g, half):
        assert half.tolist() == [0.0, 0.0]
        return {"x": g * 2.0}

    x = leaf([1.0, 2.0])
    y, half = f(x)
    assert (y.requires_grad, half.requires_grad) == (True, False)
    (y * half).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_forward_that_changes_its_input_without_saying_so_is_an_error():
    f = pb.autograd_function(lambda ctx, x: x.mul_(2.0) * 1.0)
    with pytest.raises(
        InplaceError, match=r"'x' by an inplace operation.*\n.*ctx\.mark_dirty\(x\)"
    ):
        f(leaf(1.0))
