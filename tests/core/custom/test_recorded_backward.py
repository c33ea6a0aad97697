"""What a rule may use of ctx where backward itself is recorded."""

import numpy as np
import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.errors import GraphError, InplaceError

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
    "raw array in a tuple": (
        lambda ctx, x: ctx.save_for_backward(square=(np.asarray(x.numpy() ** 2), 1)),
        lambda ctx: pb.asarray(ctx.saved_variables.square[0]),
    ),
    "raw array in a dict attribute": (
        lambda ctx, x: setattr(ctx, "square", {"value": np.asarray(x.numpy() ** 2)}),
        lambda ctx: pb.asarray(ctx.square["value"]),
    ),
    "raw array beside a tensor": (
        lambda ctx, x: ctx.save_for_backward(square=[x, np.asarray(x.numpy() ** 2)]),
        lambda ctx: pb.asarray(ctx.saved_variables.square[1]),
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


WEIGHTS = {
    "saved": (
        lambda ctx, x, w: ctx.save_for_backward(x=x, w=w),
        lambda ctx: ctx.saved_variables.w,
    ),
    "an attribute": (
        lambda ctx, x, w: (ctx.save_for_backward(x=x), setattr(ctx, "w", w)),
        lambda ctx: ctx.w,
    ),
    "in a tuple": (
        lambda ctx, x, w: (ctx.save_for_backward(x=x), setattr(ctx, "w", (1, w))),
        lambda ctx: ctx.w[1],
    ),
    "beside a tensor": (
        lambda ctx, x, w: ctx.save_for_backward(x=x, both=[x, w]),
        lambda ctx: ctx.saved_variables.both[1],
    ),
}


@pytest.mark.parametrize("passed", ["by position", "by name"])
@pytest.mark.parametrize(("save", "read"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_an_array_that_was_passed_to_forward_is_a_constant(save, read, passed):
    def forward(ctx, x, w):
        save(ctx, x, w)
        return (x**3 * pb.asarray(w)).sum()

    cubes = pb.autograd_function(
        forward, lambda ctx, g: {"x": 3.0 * ctx_x(ctx) ** 2 * pb.asarray(read(ctx)) * g}
    )

    def ctx_x(ctx):
        saved = ctx.saved_variables
        return saved.x if "x" in saved else saved.both[0]

    w = np.array([3.0, 5.0])
    for _ in range(2):  # the second call takes the quick path
        x = pb.tensor([1.0, 2.0], requires_grad=True, dtype=pb.float64)
        out = cubes(x, w) if passed == "by position" else cubes(x, w=w)
        (g,) = pb.autograd.grad(out, x, create_graph=True)
        assert g.tolist() == [9.0, 60.0]
        assert pb.autograd.grad(g.sum(), x)[0].tolist() == [18.0, 60.0]


@pytest.mark.case("S04")
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


# -- results without gradient ----------------------------------------------------------------------
def cube_with_marked_square(save, read):
    def forward(ctx, x):
        square = x * x
        ctx.mark_non_differentiable(square)
        save(ctx, square)
        return x * square, square

    def backward(ctx, grad_output, grad_square):
        return 3 * read(ctx) * grad_output

    return pb.autograd_function(forward, backward, name="cube")


MARKED = {
    "by name": (
        lambda ctx, square: ctx.save_for_backward(square=square),
        lambda ctx: ctx.saved_variables.square,
    ),
    "by position": (
        lambda ctx, square: ctx.save_for_backward(square),
        lambda ctx: ctx.saved_tensors[0],
    ),
    "in a list": (
        lambda ctx, square: ctx.save_for_backward(square=[square]),
        lambda ctx: ctx.saved_variables.square[0],
    ),
    "as an attribute": (
        lambda ctx, square: setattr(ctx, "square", square),
        lambda ctx: ctx.square,
    ),
}


@pytest.mark.parametrize(("save", "read"), MARKED.values(), ids=MARKED.keys())
def test_mark_non_differentiable_of_a_saved_result_is_refused_in_a_recorded_backward(save, read):
    cube = cube_with_marked_square(save, read)
    x = leaf(2.0)
    assert pb.autograd.grad(cube(x)[0], x)[0].item() == 12.0
    with pytest.raises(GraphError, match="neither an input nor an output of forward") as caught:
        pb.autograd.grad(cube(x)[0], x, create_graph=True)
    text = str(caught.value)
    for way in (*WAYS_OUT, "mark_non_differentiable"):
        assert way in text
    assert "'square'" in text or "saved value 0" in text


def test_a_saved_integer_result_is_untracked_in_a_recorded_backward():
    tracked = []

    def forward(ctx, x):
        place = pb.argmax(x)
        ctx.save_for_backward(x=x, place=place)
        return x**3, place

    def backward(ctx, grad_output, grad_place):
        saved = ctx.saved_variables
        tracked.append(saved.place.requires_grad)
        return 3 * saved.x**2 * grad_output

    x = leaf([2.0])
    (first,) = pb.autograd.grad(pb.autograd_function(forward, backward)(x)[0], x, create_graph=True)
    assert tracked == [False]
    assert pb.autograd.grad(first, x)[0].tolist() == [12.0]


def test_mark_non_differentiable_of_an_input_leaves_it_one_to_the_rule():
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        ctx.save_for_backward(x=x)
        return x**3, x

    def backward(ctx, grad_output, grad_input):
        return 3 * ctx.saved_variables.x**2 * grad_output

    x = leaf(2.0)
    (first,) = pb.autograd.grad(pb.autograd_function(forward, backward)(x)[0], x, create_graph=True)
    assert pb.autograd.grad(first, x)[0].item() == 12.0


def cube_with(values):
    """Return x ** 3, whose rule computes with what `values` makes of a tensor."""
    return pb.autograd_function(
        lambda ctx, x: (ctx.save_for_backward(x=x), x**3)[1],
        lambda ctx, g: {"x": pb.asarray(values(g) * 3 * values(ctx.saved_variables.x) ** 2)},
        name="cube",
    )


def test_numpy_within_a_recorded_rule_does_not_propose_detach():
    cube = cube_with(lambda t: t.numpy())
    with pytest.raises(pb.errors.GraphError, match=r"mark the rule .* with pb\.once_diff"):
        pb.hvp(lambda x: (cube(x) ** 2).sum())(np.ones(2), np.ones(2))
    with pytest.raises(pb.errors.GraphError, match=r"use tensor.detach\(\).numpy\(\)"):
        pb.ones(2, requires_grad=True).numpy()


@pytest.mark.parametrize("values", [lambda t: t.detach(), lambda t: t.detach().numpy()])
def test_a_gradient_from_a_detached_grad_output_warns_where_it_is_differentiated(values):
    cube = cube_with(values)
    with pytest.warns(pb.errors.UntrackedTensorWarning, match="cube: .* 'x' from a detached grad"):
        pb.hvp(lambda x: (cube(x) ** 2).sum())(np.ones(2), np.ones(2))
    pb.grad(lambda x: (cube(x) ** 2).sum())(np.ones(2))


def test_a_gradient_that_is_zero_or_of_an_untracked_grad_output_does_not_warn():
    zero = pb.autograd_function(
        lambda ctx, x: x.sign(), lambda ctx, g: {"x": pb.zeros(2, dtype=pb.float64)}
    )
    pb.hvp(lambda x: (zero(x) * x**2).sum())(np.ones(2), np.ones(2))
    scaled = pb.autograd_function(lambda ctx, x: x * 3, lambda ctx, g: {"x": g.detach() * 3})
    pb.hvp(lambda x: scaled(x).sum() + (x**2).sum())(np.ones(2), np.ones(2))
