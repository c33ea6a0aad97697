"""What a pass within a pass releases is missed by the outer one, with the error of a second pass.

The order of passes is tested in tests/cases/test_reentrant.py.
"""

import warnings

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ReleasedError


@pb.autograd_function
def tripled(ctx, t):
    ctx.save_for_backward(t=t)
    return t * 3.0


@tripled.backward
def _(ctx, g):
    return g * 3.0 + 0.0 * ctx.saved_variables.t


def with_a_row_set(a):
    b = a * 1.0
    b[0] = 2.0
    return b


def with_a_view_changed(a):
    b = a * 1.0
    b[0].mul_(3.0)
    return b


SHARED = {
    "exp": lambda a: a.exp(),
    "product": lambda a: a * a,
    "sum with a number": lambda a: a + 1.0,
    "broadcast product": lambda a: a * a[0],
    "where": lambda a: pb.where(a > 1.5, a, 0.0),
    "sum": lambda a: a.sum(),
    "matmul": lambda a: a @ a,
    "cat": lambda a: pb.cat([a, a]),
    "stack": lambda a: pb.stack([a, a]),
    "reshape": lambda a: a.reshape(4),
    "transpose": lambda a: a.t(),
    "slice": lambda a: a[:1],
    "slice of a slice": lambda a: a[:1][:, 1:],
    "row": lambda a: a[0],
    "list of indices": lambda a: a[[0, 1]],
    "unbind": lambda a: a.unbind()[0],
    "split": lambda a: a.split(1)[1],
    "max": lambda a: a.max(dim=1)[0],
    "a row set": with_a_row_set,
    "a view changed": with_a_view_changed,
    "a user's operation": tripled,
}


def program(name, within, retain=False):
    """Run a pass through an operation that a hook runs another pass through first."""
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    shared = SHARED[name](x * 1.0)
    inner = (shared * 5.0).sum()
    outer = shared * 2.0
    outer.register_hook(lambda g: within(inner, x, retain))
    outer.sum().backward()
    return x.grad


def by_backward(inner, x, retain):
    inner.backward(retain_graph=retain)


def by_grad(inner, x, retain):
    pb.autograd.grad(inner, x, retain_graph=retain)


@pytest.mark.parametrize("within", [by_backward, by_grad])
@pytest.mark.parametrize("name", SHARED)
def test_what_the_inner_pass_released_is_missed_by_the_outer_one(name, within):
    with pytest.raises(ReleasedError, match="backward through the graph a second time") as caught:
        program(name, within)
    assert "retain_graph=True" in str(caught.value)


@pytest.mark.parametrize("name", SHARED)
def test_an_inner_pass_that_retains_the_graph_leaves_the_outer_one_alone(name):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (SHARED[name](x * 1.0) * 7.0).sum().backward()
    np.testing.assert_allclose(program(name, by_backward, True).numpy(), x.grad.numpy())
    np.testing.assert_allclose(program(name, by_grad, True).numpy() * 3.5, x.grad.numpy())


@pytest.mark.parametrize("name", SHARED)
def test_an_inner_pass_that_a_gradient_hook_of_the_shared_result_starts(name):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    shared = SHARED[name](x * 1.0)
    inner = (shared * 5.0).sum()
    shared.register_hook(lambda g: by_backward(inner, x, False) if not started() else None)

    ran = []

    def started():
        ran.append(True)
        return len(ran) > 1

    with pytest.raises(ReleasedError, match="backward through the graph a second time"):
        (shared * 2.0).sum().backward()


def test_the_error_names_the_operation_and_where_it_was_recorded_if_that_is_known():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with warnings.catch_warnings(action="ignore"), pb.detect_anomaly():
        shared = x.exp()  # this line
        inner = shared.sum()
        outer = shared * 2.0
    outer.register_hook(lambda g: inner.backward())
    with pytest.raises(ReleasedError, match="ExpBackward: trying to") as caught:
        outer.sum().backward()
    assert "shared = x.exp()  # this line" in caught.value.__notes__[0]
