"""The memory of what `autograd_function`'s forward and rules return: buffers are copied."""

import numpy as np
import pytest

import pullback as pb

BUFFER = np.empty(3)


def squared(x):
    return np.multiply(x.numpy(), x.numpy(), out=BUFFER)


def tensor(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.asarray(squared(x))


def saved_too(ctx, x):
    out = pb.asarray(squared(x))
    ctx.save_for_backward(x=x, out=out)
    ctx.out = out
    return out


WRITERS = {
    "a tensor": tensor,
    "an array": lambda ctx, x: (ctx.save_for_backward(x=x), squared(x))[1],
    "a list": lambda ctx, x: (ctx.save_for_backward(x=x), [squared(x)])[1],
    "a tuple": lambda ctx, x: (ctx.save_for_backward(x=x), (squared(x), x * 2.0))[1],
    "a tensor in a tuple": lambda ctx, x: (tensor(ctx, x), x * 2.0),
    "a view": lambda ctx, x: (ctx.save_for_backward(x=x), pb.asarray(squared(x)[:]))[1],
    "a part of a tensor": lambda ctx, x: (ctx.save_for_backward(x=x), pb.asarray(squared(x))[:])[1],
    "a saved tensor": saved_too,
}


def op_of(forward):
    return pb.autograd_function(forward, lambda ctx, g, *_: {"x": 2 * g * ctx.saved_variables.x})


def only(result):
    return result[0] if isinstance(result, (list, tuple)) else result


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_buffer_that_forward_fills_in_every_call_is_copied(name, recorded):
    op = op_of(WRITERS[name])
    for _ in range(3):  # the second call is written anew
        x, y = (pb.tensor(v, requires_grad=recorded) for v in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
        x, y = x.double(), y.double()
        first, second = only(op(x)), only(op(y))
        assert first.tolist() == [1.0, 4.0, 9.0]
        assert second.tolist() == [16.0, 25.0, 36.0]


def test_a_saved_result_in_a_buffer_is_the_copy():
    op = pb.autograd_function(saved_too, lambda ctx, g: {"x": g * ctx.saved_variables.out})
    for _ in range(3):
        x = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64, requires_grad=True)
        out = op(x)
        op(x.detach() * 2.0)
        out.sum().backward()
        assert x.grad.tolist() == [1.0, 4.0, 9.0]


def test_a_chain_through_one_buffer_has_the_gradients_of_its_values():
    op = op_of(tensor)
    x = pb.tensor([1.1, 1.2, 1.3], dtype=pb.float64, requires_grad=True)
    op(op(op(x))).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 8.0 * np.array([1.1, 1.2, 1.3]) ** 7)


def kept(ctx, y):
    ctx.y = y
    return pb.asarray(y)


RETURNED = {
    "a tensor": lambda ctx, y: pb.asarray(y),
    "an array": lambda ctx, y: y,
    "a list": lambda ctx, y: [y],
    "an attribute": kept,
    "a saved array": lambda ctx, y: (ctx.save_for_backward(y=y), y)[1],
    "a saved container": lambda ctx, y: (ctx.save_for_backward(y=[y]), pb.asarray(y))[1],
    "a view": lambda ctx, y: pb.asarray(y[:2]),
    "a result and its view": lambda ctx, y: [y, y[:2]],
    "two tensors": lambda ctx, y: [pb.asarray(y), pb.asarray(y[:2])],
    "a tuple": lambda ctx, y: (y, y * 2.0),
    "a tuple with its view": lambda ctx, y: (y, y[:2]),
    "a tuple of tensors": lambda ctx, y: (pb.asarray(y), pb.asarray(y * 2.0)),
}


@pytest.mark.parametrize("name", RETURNED)
@pytest.mark.parametrize("recorded", [True, False])
def test_what_forward_has_just_made_is_not_copied(name, recorded):
    places = []

    def forward(ctx, x):
        y = x.numpy() ** 2
        places.append(y.__array_interface__["data"][0])
        return RETURNED[name](ctx, y)

    op = op_of(forward)
    for _ in range(3):
        out = only(op(pb.ones(3, requires_grad=recorded)))
        assert out.detach().numpy().__array_interface__["data"][0] == places[-1]


# Numbers ------------------------------------------------------------------------------------------


@pb.autograd_function
def total(ctx, x):
    ctx.save_for_backward(x=x)
    return np.sum(x.numpy())


@total.backward
def _(ctx, g):
    return {"x": pb.ones_like(ctx.saved_variables.x) * g}


def test_a_number_of_numpys_that_forward_returns_is_tracked():
    x = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    result = total(x)
    assert isinstance(result, pb.Tensor)
    (result * 3.0).backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_number_of_pythons_that_forward_returns_has_a_warning():
    op = pb.autograd_function(lambda ctx, x: float(x.numpy().sum()), name="summed")
    with pytest.warns(
        pb.errors.UntrackedTensorWarning, match="summed: forward .* returned a float"
    ):
        assert op(pb.ones(2, requires_grad=True)) == 2.0
    assert op(pb.ones(2)) == 2.0
    whole = pb.autograd_function(lambda ctx, x: int(x.numpy().sum()))
    assert whole(pb.ones(2, requires_grad=True)) == 2


# Arrays -------------------------------------------------------------------------------------------


def test_the_result_of_arrays_alone_has_the_methods_of_numpy_as_within_a_transform():
    exp = pb.autograd_function(
        lambda ctx, x: (ctx.save_for_backward(x=x), pb.asarray(np.exp(np.asarray(x))))[1],
        lambda ctx, g: {"x": g * ctx.saved_variables.x.exp()},
    )
    x = np.array([[0.0, 1.0], [2.0, 0.5]])
    for f in (lambda x: exp(x).std(), lambda x: np.sum(exp(x).max(axis=0))):
        assert f(x) == pytest.approx(pb.value_and_grad(f)(x)[0])
    assert type(exp(pb.asarray(x))) is pb.Tensor
    with pb.no_grad():
        assert exp(x).std() == pytest.approx(np.exp(x).std())


# Gradients ----------------------------------------------------------------------------------------

RULES = {
    "an array": lambda array: {"x": array},
    "a tensor": lambda array: {"x": pb.asarray(array)},
    "a view": lambda array: {"x": array[:]},
    "a view of a tensor": lambda array: {"x": pb.asarray(array)[:]},
    "alone": lambda array: array,
    "by position": lambda array: [array],
}


def with_rule(rule, once):
    rule = pb.once_differentiable(rule) if once else rule
    return pb.autograd_function(tensor, rule)


def check_two_gradients(op):
    """Compare the gradients of two calls of the square in one program."""
    for _ in range(3):
        x = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64, requires_grad=True)
        y = pb.tensor([4.0, 5.0, 6.0], dtype=pb.float64, requires_grad=True)
        first, second = pb.autograd.grad((op(x) + op(y)).sum(), (x, y))
        assert (first.tolist(), second.tolist()) == ([2.0, 4.0, 6.0], [8.0, 10.0, 12.0])


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("once", [False, True])
def test_a_buffer_that_backward_fills_in_every_call_is_copied(name, once):
    buffer = np.empty(3)

    def rule(ctx, g):
        np.multiply(g.numpy(), 2 * ctx.saved_variables.x.numpy(), out=buffer)
        return RULES[name](buffer)

    check_two_gradients(with_rule(rule, once))


KEPT = {
    "a tensor": lambda: pb.empty(3, dtype=pb.float64),
    "a view of a tensor": lambda: pb.empty(3, dtype=pb.float64),
    "a dict": lambda: {"x": np.empty(3)},
    "a dict of a tensor": lambda: {"x": pb.empty(3, dtype=pb.float64)},
    "a tuple": lambda: (np.empty(3),),
    "a list": lambda: [np.empty(3)],
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("once", [False, True])
def test_what_backward_keeps_and_fills_in_every_call_is_copied(name, once):
    kept = KEPT[name]()

    def rule(ctx, g):
        gradient = kept["x"] if isinstance(kept, dict) else kept
        gradient = gradient[0] if isinstance(kept, (tuple, list)) else gradient
        gradient[...] = g.numpy() * 2 * ctx.saved_variables.x.numpy()
        return kept[:] if name == "a view of a tensor" else kept

    check_two_gradients(with_rule(rule, once))


GRADIENTS = {
    "an array": lambda y: {"x": y},
    "a tensor": lambda y: {"x": pb.asarray(y)},
    "alone": lambda y: y,
    "by position": lambda y: (y,),
    "in a list": lambda y: [y],
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("once", [False, True])
def test_a_gradient_that_backward_has_just_made_is_not_copied(name, once):
    places = []

    def rule(ctx, g):
        y = g.numpy() * 2.0
        places.append(y.__array_interface__["data"][0])
        return GRADIENTS[name](y)

    op = with_rule(rule, once)
    for _ in range(3):
        x = pb.ones(3, dtype=pb.float64, requires_grad=True)
        (g,) = pb.autograd.grad(op(x).sum(), x)
        assert g.numpy().__array_interface__["data"][0] == places[-1]


# Rules for forward mode and batches ---------------------------------------------------------------

BUFFERS = {
    "an array": lambda shape: np.empty(shape),
    "a tensor": lambda shape: pb.empty(shape, dtype=pb.float64),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_that_jvp_fills_in_every_call_is_copied(name):
    op, buffer = op_of(tensor), BUFFERS[name]((3,))

    @op.jvp
    def rule(ctx, x):
        buffer[...] = 2 * ctx.saved_variables.x.numpy() * x.numpy()
        return buffer

    x, y, ones = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.ones(3)
    _, (first, second) = pb.jvp(lambda x, y: (op(x), op(y)), (x, y), (ones, ones))
    assert (first.tolist(), second.tolist()) == ([2.0, 4.0, 6.0], [8.0, 10.0, 12.0])


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_that_vmap_fills_in_every_call_is_copied(name):
    op, buffer = op_of(tensor), BUFFERS[name]((2, 3))

    @op.vmap
    def rule(info, in_dims, x):
        buffer[...] = x.numpy() ** 2
        return buffer, 0

    x, y = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    first, second = pb.vmap(lambda x, y: (op(x), op(y)))(x, y)
    assert (first.tolist(), second.tolist()) == ((x**2).tolist(), y.tolist())


@pytest.mark.parametrize(
    "pair",
    [
        lambda y: (y, y[1:]),
        lambda y: (y, y.detach()[1:]),
        lambda y: (y, pb.asarray(y.numpy()[1:])),
        lambda y: (y.numpy(), pb.asarray(y.numpy())[1:]),
    ],
)
def test_results_of_forward_that_share_memory_are_changed_in_place_apart(pair):
    op = pb.autograd_function(
        lambda ctx, x: pair(2 * x), lambda ctx, a, b: 2 * a + pb.cat([0 * b[:1], 2 * b])
    )

    def changed(x):
        a, b = op(x)
        a *= 10.0
        return a.sum() + b.sum()

    value, gradient = pb.value_and_grad(changed)(pb.tensor([1.0, 2.0, 3.0]))
    assert (value.item(), gradient.tolist()) == (130.0, [20.0, 22.0, 22.0])


def test_a_read_only_array_that_forward_saves_is_not_copied():
    table = np.arange(4.0)
    table.flags.writeable = False
    seen = []

    def saving(ctx, x):
        ctx.table = table
        return x * table

    op = pb.autograd_function(saving, lambda ctx, g: seen.append(ctx.table) or g * ctx.table)
    x = pb.ones(4, dtype=pb.float64, requires_grad=True)
    op(x).sum().backward()
    assert seen[0] is table


def test_a_tensor_of_a_buffer_that_forward_saves_keeps_its_values():
    slope = np.empty(3)

    def forward(ctx, x):
        np.multiply(2.0, x.numpy(), out=slope)
        ctx.save_for_backward(slope=pb.asarray(slope))
        return x * x

    op = pb.autograd_function(forward, lambda ctx, g: g * ctx.saved_variables.slope)
    x = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64)
    gradient = pb.grad(lambda x: (op(x) + op(5 * x)).sum())(x)
    assert gradient.tolist() == [52.0, 104.0, 156.0]
