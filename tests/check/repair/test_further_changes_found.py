"""Changes that reach further than one expression: groups, copies, orders, forgotten places."""

import numpy as np
from tests.check._repair import change

import pullback as pb
from pullback.check import check_op

X = np.array([0.3, 1.2, -0.7, 0.5])
Y = np.array([1.5, -0.4, 0.9, 2.0])
MATRIX = np.array([[0.3, 1.2, -0.7, 0.4], [0.5, -0.9, 0.8, 1.1], [1.4, 0.1, 0.6, -0.2]])


# ---- groups --------------------------------------------------------------------------------------
def test_brackets_around_the_wrong_operands():
    weights = np.array([0.5, 2.0, 4.0])

    def weighted(ctx, x):
        return pb.asarray((MATRIX @ x.numpy()) * weights)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": (MATRIX.T @ g.numpy()) * weights.sum() / weights.sum()}

    text = change(weighted, lambda ctx, g: {"x": MATRIX.T @ (g.numpy() / weights)}, X)
    assert "MATRIX.T @ (g.numpy() * weights)" in text


def test_a_factor_that_belongs_into_a_sum():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        return (x * y).sum() * y

    @pb.once_differentiable
    def backward(ctx, g):
        x, y, g = ctx.saved_variables.x.numpy(), ctx.saved_variables.y.numpy(), g.numpy()
        return {"x": g.sum() * y * y, "y": x * (g * y).sum() + g * (x * y).sum()}

    assert "(g * y).sum() * y" in change(forward, backward, X, Y)


def test_an_axis_that_is_added_at_the_wrong_place():
    def forward(ctx, x):
        ctx.rows, ctx.columns = x.numpy().sum(axis=1), x.numpy().sum(axis=0)
        return pb.asarray(np.array((ctx.rows**2).sum() + (ctx.columns**2).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        spread = np.ones((3, 3)) * ctx.columns
        return {"x": pb.asarray(2.0 * g.item() * (ctx.rows[None] + spread))}

    assert "(ctx.rows[:, None] + spread)" in change(forward, backward, MATRIX[:, :3])


# ---- scans ---------------------------------------------------------------------------------------
def test_a_sum_over_what_comes_after_that_is_missing():
    def forward(ctx, x):
        return x.cumsum(0)

    @pb.once_differentiable
    def backward(ctx, g):
        flow = g.numpy()
        return {"x": pb.asarray(flow)}

    assert "np.cumsum(" in change(forward, backward, X)


def test_a_loop_that_runs_the_wrong_way():
    def decayed(ctx, x):
        out, state = [], 0.0
        for value in x.numpy():
            state = 0.5 * state + value
            out.append(state)
        return pb.asarray(np.array(out))

    @pb.once_differentiable
    def backward(ctx, g):
        flow, found = 0.0, np.zeros(4)
        for k in range(4):
            flow = 0.5 * flow + g.numpy()[k]
            found[k] = flow
        return {"x": pb.asarray(found)}

    assert "with `list(range(4))[::-1]` instead of `range(4)`" in change(decayed, backward, X)


def test_two_statements_in_the_wrong_order():
    def powers(ctx, x):
        ctx.save_for_backward(x=x)
        return x**3

    @pb.once_differentiable
    def backward(ctx, g):
        x = ctx.saved_variables.x.numpy()
        factor = 3.0 * x
        x = x * x
        return {"x": pb.asarray(g.numpy() * factor)}

    assert "`x = x * x; factor = 3.0 * x` instead of" in change(powers, backward, X)


# ---- what forward keeps --------------------------------------------------------------------------
def test_a_list_of_one_array_that_forward_goes_on_to_change():
    def squared_often(ctx, x):
        state, ctx.states = x.numpy().copy(), []
        for _ in range(3):
            ctx.states.append(state)
            state *= state
        return pb.asarray(state)

    @pb.once_differentiable
    def backward(ctx, g):
        flow = g.numpy()
        for state in ctx.states[::-1]:
            flow = 2.0 * state * flow
        return {"x": pb.asarray(flow)}

    text = change(squared_often, backward, 0.5 * X)
    assert "of forward: with `ctx.states.append(state.copy())` instead of" in text


def test_an_array_in_a_tuple_in_a_list_that_forward_goes_on_to_change():
    def squared_often(ctx, x):
        state, ctx.steps = x.numpy().copy(), []
        for k in range(3):
            ctx.steps.append((k, state))
            state *= state
        return pb.asarray(state)

    @pb.once_differentiable
    def backward(ctx, g):
        flow = g.numpy()
        for _, state in ctx.steps[::-1]:
            flow = 2.0 * state * flow
        return {"x": pb.asarray(flow)}

    text = change(squared_often, backward, 0.5 * X)
    assert "of forward: with `ctx.steps.append((k, state.copy()))` instead of" in text


# ---- places --------------------------------------------------------------------------------------
def test_indices_that_occur_twice_wherever_something_is_added():
    first, second = np.array([0, 1, 0]), np.array([2, 2, 1])

    def products(ctx, x):
        ctx.save_for_backward(x=x.numpy())
        return pb.asarray(x.numpy()[first] * x.numpy()[second])

    @pb.once_differentiable
    def backward(ctx, g):
        x, flow = ctx.saved_variables.x, g.numpy()
        found = np.zeros(4)
        found[first] += flow * x[second]
        found[second] += flow * x[first]
        return {"x": pb.asarray(found)}

    text = change(products, backward, X)
    assert (
        "with `np.add.at(found, first, flow * x[second]); "
        "np.add.at(found, second, flow * x[first])` instead of" in text
    )


# ---- what is given to others ---------------------------------------------------------------------
def wrapped(x):
    return x - np.round(x)


def test_a_helper_through_which_forward_passes_a_value():
    def squared_distance(ctx, x, y):
        ctx.save_for_backward(x=x.numpy(), y=y.numpy())
        return pb.asarray(wrapped(x.numpy() - y.numpy()) ** 2)

    @pb.once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_variables
        gap = x - y
        flow = 2 * g.numpy() * gap
        return {"x": pb.asarray(flow), "y": pb.asarray(-flow)}

    text = change(squared_distance, backward, X, Y)
    assert "with `gap = wrapped(x - y)` instead of" in text
    assert text.endswith("the gradients of `x`, `y` are right")


# ---- values of both signs ------------------------------------------------------------------------
def test_a_mask_that_is_missing():
    def rectified(ctx, x):
        ctx.save_for_backward(x=x.numpy())
        return pb.asarray(np.maximum(x.numpy(), 0.0))

    @pb.once_differentiable
    def backward(ctx, g):
        x = ctx.saved_variables.x
        return {"x": pb.asarray(g.numpy() + 0 * x)}

    assert "* (x > 0)" in change(rectified, backward, X)


def test_a_sign_that_depends_on_the_values():
    def sizes(ctx, x):
        ctx.save_for_backward(x=x.numpy())
        return pb.asarray(np.abs(x.numpy()))

    @pb.once_differentiable
    def backward(ctx, g):
        x = ctx.saved_variables.x
        return {"x": pb.asarray(g.numpy() + 0 * x)}

    assert "np.sign(x)" in change(sizes, backward, X)


# ---- terms ---------------------------------------------------------------------------------------
def test_a_missing_term_with_numbers_at_hand():
    def forward(ctx, x, rate, shift):
        ctx.save_for_backward(x=x, rate=rate, shift=shift)
        return (x * x).sum() * x + rate * shift * x * x

    def backward(ctx, g):
        x = ctx.saved_variables.x
        rate, shift = ctx.saved_variables.rate, ctx.saved_variables.shift
        return {"x": g * (x * x).sum() + 2 * x * (g * x).sum() + 0 * rate * shift}

    assert "rate * shift" in change(forward, backward, X, 0.7, 1.9)


def test_a_missing_term_in_a_loop():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        rows = [x[k] * y.sum() - x[k] * (y * y).sum() for k in range(4)]
        return pb.stack(rows)

    @pb.once_differentiable
    def backward(ctx, g):
        x, y, g = ctx.saved_variables.x.numpy(), ctx.saved_variables.y.numpy(), g.numpy()
        found = np.zeros(4)
        for k in range(4):
            found[k] = g[k] * y.sum()
        return {"x": pb.asarray(found), "y": (g * x).sum() * (1 - 2 * y)}

    assert "the gradient of `x` is right" in change(forward, backward, X, Y)


# ---- other calls ---------------------------------------------------------------------------------
def test_a_gradient_that_is_wrong_at_another_length_is_mended_for_it():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return (x * x).mean(dim=1)

    def backward(ctx, g):
        return {"x": 2.0 * g[:, None] * ctx.saved_variables.x / 4}

    op = pb.autograd_function(forward, backward)
    (failure,) = check_op(op, MATRIX, raise_exception=False).failures
    assert failure.part == "shapes"
    assert "/ ctx.saved_variables.x.shape[1]" in failure.repair
