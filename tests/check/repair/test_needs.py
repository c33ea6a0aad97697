"""What expressions of backward would need, solved for, and the changes that give them that."""

import ast

import numpy as np
import pytest
from tests.check._explain import evidence
from tests.check._repair import change

import pullback as pb
from pullback.check.repair.source import source_of
from pullback.check.repair.trials import Needs, Trials

X = np.array([0.3, 1.2, 0.7])
Y = np.array([1.5, 0.4, 0.9])
WANTED, OFFERED = np.array([1.0, 0.8, 0.3]), np.array([0.5, 0.2, 0.4])
BOTH = np.concatenate([WANTED, OFFERED])


# ---- changes that are found ----------------------------------------------------------------------
def market(ctx, a, b):
    ctx.save_for_backward(a=a.numpy(), b=b.numpy())
    return pb.asarray(np.log(BOTH @ np.concatenate([a.numpy(), b.numpy()])))


@pb.once_differentiable
def market_backward(ctx, g):
    a, _ = ctx.saved_variables
    down = WANTED @ a
    return {"a": pb.asarray(g.numpy() / down * WANTED), "b": pb.asarray(g.numpy() / down * OFFERED)}


def test_a_denominator_that_lacks_a_term_puts_all_gradients_off_by_one_factor():
    text = change(market, market_backward, X, Y)
    assert "with `down = WANTED @ a + " in text
    assert text.endswith("instead of `down = WANTED @ a` the gradients of `a`, `b` are right")


def scaled(ctx, x, offset):
    ctx.save_for_backward(x=x.numpy(), offset=offset)
    return pb.asarray(x.numpy() / np.hypot(np.sqrt(x.numpy() @ x.numpy()), offset))


@pb.once_differentiable
def scaled_backward(ctx, g):
    x, g = ctx.saved_variables.x, g.numpy()
    square = x @ x
    return {"x": pb.asarray((g * square - x * (g @ x)) / square**1.5)}


def test_what_a_power_lacks_is_found_though_the_gradient_is_not_linear_in_it():
    text = change(scaled, scaled_backward, X, 0.7)
    saved = "ctx.saved_variables.offset"
    assert f"with `square = x @ x + {saved} * {saved}` instead of `square = x @ x`" in text


def recurrent(ctx, a, b):
    states, weights = [1.0], np.stack([a.numpy(), b.numpy()], axis=1)
    for k in range(3):
        states.append(np.tanh(weights[k] @ np.array([states[k], WANTED[k]])))
    ctx.save_for_backward(a=a.numpy(), b=b.numpy(), states=states)
    return pb.asarray(np.array(states[3]))


@pb.once_differentiable
def recurrent_backward(ctx, g):
    a, b, states = ctx.saved_variables
    flow, for_a, for_b = g.numpy(), np.zeros(3), np.zeros(3)
    for k in range(3)[::-1]:
        state, u, v, c = states[k], a[k], b[k], WANTED[k]
        z = u * state
        flow = flow / np.cosh(z) ** 2
        for_a[k], for_b[k] = flow * state, flow * c
        flow = flow * (u + 0 * v)
    return {"a": pb.asarray(for_a), "b": pb.asarray(for_b)}


def test_a_value_in_a_loop_is_solved_for_at_every_turn():
    text = change(recurrent, recurrent_backward, X, 0.3 * Y)
    product = "weights[k] @ np.array([states[k], WANTED[k]])` (`weights` as in forward)"
    assert f"with `z = {product} instead of `z = u * state`" in text
    assert text.endswith("the gradients of `a`, `b` are right")


# ---- what is solved for --------------------------------------------------------------------------
def needs(forward, backward, *args, wrong):
    """Return what is needed where the gradients of these arguments are wrong."""
    op = pb.autograd_function(forward, backward)
    return Needs(
        Trials(evidence(op, *args), wrong, source_of(op.given_rule), source_of(op.forward))
    )


def nodes(found, text):
    """Return the expressions of backward that are evaluated and written like this."""
    tree = found.trials.rule.tree
    seen = [node for node in ast.walk(tree) if hasattr(node, "seen")]
    return [node for node in seen if ast.unparse(node) == text]


def summed_twice(ctx, x):
    return 2.0 * x.sum()


def halves_backward(ctx, g):
    halves = np.array([0.5, 0.5]) * g.numpy()
    return {"x": pb.asarray(np.full(3, halves.sum()))}


def test_values_of_which_only_the_sum_counts_are_not_unique():
    found = needs(summed_twice, pb.once_differentiable(halves_backward), X, wrong=[0])
    (node,) = nodes(found, "np.array([0.5, 0.5]) * g.numpy()")
    need = found.of(node)[0]
    assert need.needed.sum() == pytest.approx(2.0 * found.trials.evidence.seeds[0].item())
    assert not need.unique


@pb.once_differentiable
def filled_backward(ctx, g):
    found = np.ones(3)
    found[1:] = 2.0
    return {"x": pb.asarray(g.numpy() * found)}


def test_what_an_array_needs_that_is_written_to_afterwards_is_not_known():
    found = needs(summed_twice, filled_backward, X, wrong=[0])
    read, written = sorted(nodes(found, "found"), key=lambda node: found.of(node) is None)
    assert found.of(read)[0].needed == pytest.approx(np.full(3, 2.0))
    assert found.of(written) is None
