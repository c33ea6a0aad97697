"""Anomaly mode, forward: an operation is not blamed for a NaN that was in its inputs."""

import numpy as np
import pytest
from tests.core.debug.detecting import INF, NAN, error_of, leaf, passes, tensor

import pullback as pb


def test_nan_in_a_leaf_is_blamed_on_its_data():
    message = str(error_of(lambda: pb.log(leaf([[1.0, NAN], [NAN, 2.0]]))))
    assert message.startswith(
        "log: inputs without nan were required, got nan in 2 of 4 elements, the first at index "
        "(0, 1) of 'x'; log did not make it: 'x' is a leaf: look at the data it was made of.\n"
        "  x: shape (2, 2), dtype float64, values from 1 to 2, 2 nan\n"
    )
    assert "called at" in message


@pytest.mark.parametrize("constant", [tensor([NAN, 1.0]), np.array([NAN, 1.0]), NAN])
def test_nan_in_a_constant_is_reported_where_it_joins_the_graph(constant):
    message = str(error_of(lambda: leaf([1.0, 2.0]) * constant))
    assert "mul did not make it: 'y' is a constant" in message


def test_nan_of_a_leaf_is_traced_through_operations_that_copy_values():
    def program():
        x = leaf([[1.0, NAN], [2.0, 3.0]])
        return x.t()[1].exp()

    message = str(error_of(program))
    assert "exp did not make it: 'x' is what GetitemBackward takes of what PermuteBackward" in (
        message
    )
    assert "takes of a leaf" in message


def test_nan_from_an_operation_that_copies_several_inputs_names_that_operation():
    def program():
        x = leaf([1.0, 2.0])
        return pb.where(x > 1.0, x, NAN).exp()

    assert "'x' is the result of WhereBackward, which hands it on" in str(error_of(program))


def test_nan_of_a_forward_outside_of_the_mode_is_reported_as_such():
    y = leaf([-1.0, 2.0]).log()
    assert "'x' is the result of LogBackward, which ran outside of detect_anomaly" in str(
        error_of(lambda: y * 2.0)
    )


def test_nan_that_was_written_through_a_detached_alias_is_reported_as_a_change():
    def program():
        y = leaf([1.0, 2.0]) * 2.0
        y.detach()[0] = NAN
        return y.exp()

    message = str(error_of(program))
    assert "'x' is the result of MulBackward, and was changed since" in message
    assert "recorded at" in message


def test_nan_that_was_written_into_a_view_is_reported_with_its_line():
    def program():
        base = leaf([[1.0, 2.0], [3.0, 4.0]]) * 2.0
        base[0].fill_(NAN)
        return base.exp()

    message = str(error_of(program))
    assert "'x' is the result of AssignViewBackward, which hands it on" in message
    assert "base[0].fill_(NAN)" in message


def test_nan_of_a_gradient_of_a_once_differentiable_rule_names_its_node():
    @pb.once_differentiable
    def backward(ctx, grad_output):
        return grad_output * 2.0

    once = pb.autograd_function(lambda ctx, x: x * 1.0, backward, name="once")

    def program():
        x = leaf([1.0, 2.0])
        (first,) = pb.autograd.grad(once(x).sum(), x, create_graph=True)
        first.detach()[0] = NAN
        return first.exp()

    assert "'x' is the result of onceOnceDifferentiable" in str(error_of(program))


def test_missing_data_may_be_left_out():
    def program():
        x = leaf([1.0, NAN, 3.0])
        there = ~x.isnan()
        kept = [pb.where(there, x, 0.0).sum(), x[there].sum(), x[2:].sum(), pb.nan_to_num(x).sum()]
        data = tensor([1.0, NAN]) * 2.0  # requires no grad: in no graph yet
        assert data.isnan().tolist() == [False, True]
        return [k.item() for k in kept]

    assert passes(program) == [4.0, 4.0, 3.0, 4.0]


def test_infinities_that_came_in_are_no_anomaly():
    def program():
        x = leaf([1.0, 2.0, 3.0])
        y = (x + tensor([0.0, -INF, 0.0])).softmax(0)
        z = pb.where(tensor([True, False, True], "bool"), x, -INF).max()
        (y * tensor([1.0, 2.0, 3.0])).sum().backward()
        return y[1].item(), z.item(), bool(x.grad.isfinite().all())

    assert passes(program) == (0.0, 3.0, True)
