"""What expressions of backward would need, solved for."""

import ast

import numpy as np
import pytest
from tests.check._explain import evidence

import pullback as pb
from pullback.check.repair.source import source_of
from pullback.check.repair.trials import Needs, Trials

X = np.array([0.3, 1.2, 0.7])


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
    np.put(found, [1, 2], 2.0)
    return {"x": pb.asarray(g.numpy() * found)}


def test_what_an_array_needs_that_is_written_to_afterwards_is_not_known():
    found = needs(summed_twice, filled_backward, X, wrong=[0])
    read, written = sorted(nodes(found, "found"), key=lambda node: found.of(node) is None)
    assert found.of(read)[0].needed == pytest.approx(np.full(3, 2.0))
    assert found.of(written) is None
