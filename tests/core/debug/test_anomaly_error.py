"""The fields of AnomalyError: where it was found, by which operation, in which argument."""

import pickle
import warnings

import numpy as np
import pytest
from tests.core.debug.detecting import INF, NAN, detecting, error_of, leaf, tensor, to_nan

import pullback as pb
from pullback.core.graph.node import AccumulateGrad
from pullback.errors import AnomalyError, GradientError


def fields(error):
    """Return the fields of an error, the line as the code that it shows."""
    assert type(error) is AnomalyError
    line = error.line.splitlines()[1].strip() if error.line else ""
    return error.operation, error.phase, error.argument, error.index, line


def test_an_error_without_fields_has_those_that_say_nothing():
    error = AnomalyError("nothing")
    assert fields(error) == ("", "", "", None, "")
    assert error.node is None
    assert isinstance(error, GradientError)


# -- forward --------------------------------------------------------------------------------------
@pb.autograd_function
def makes_nan(ctx, weight):
    return weight * NAN


def logarithm():
    return pb.log(leaf([[1.0, 2.0], [0.0, 0.0]]))


def of_a_number():
    return pb.log(leaf(0.0))


def in_place():
    return (leaf([1.0, -1.0]) * 1.0).log_()


def a_users_operation():
    return makes_nan(leaf([1.0, 2.0]))


def untracked():
    return tensor([1.0, 1.0]) / tensor([2.0, 0.0])


MADE = {
    logarithm: ("log", (1, 0), "return pb.log(leaf([[1.0, 2.0], [0.0, 0.0]]))"),
    of_a_number: ("log", (), "return pb.log(leaf(0.0))"),
    in_place: ("log_", (1,), "return (leaf([1.0, -1.0]) * 1.0).log_()"),
    a_users_operation: ("makes_nan", (0,), "return makes_nan(leaf([1.0, 2.0]))"),
    untracked: ("div", (1,), "return tensor([1.0, 1.0]) / tensor([2.0, 0.0])"),
}


@pytest.mark.parametrize("program", MADE)
def test_a_result_that_is_not_finite_names_operation_index_and_line(program):
    error = error_of(program)
    operation, index, line = MADE[program]
    assert fields(error) == (operation, "forward", "", index, line)
    assert error.node is None  # nothing was recorded yet


def test_a_leaf_with_nan_is_the_argument_of_the_first_operation_that_uses_it():
    w = leaf([[1.0, 2.0], [3.0, NAN]])
    error = error_of(lambda: tensor([[2.0]]) * w)
    assert fields(error)[:4] == ("mul", "forward", "y", (1, 1))
    assert fields(error)[4].endswith("tensor([[2.0]]) * w)")
    assert isinstance(error.node, AccumulateGrad)
    assert error.node.variable is w


def test_a_changed_result_with_nan_is_an_argument_with_the_node_that_made_it():
    y = leaf([1.0, 2.0]) * 1.0
    y.data = tensor([NAN, 2.0])
    error = error_of(lambda: y.exp())
    assert fields(error)[:4] == ("exp", "forward", "x", (0,))
    assert error.node is y.grad_fn


# -- backward -------------------------------------------------------------------------------------
@pb.autograd_function
def product(ctx, left, right):
    return left * right


@product.backward
def _(ctx, grad_output):
    return {"left": grad_output, "right": grad_output * NAN}


def root_of_zero():
    y = pb.sqrt(leaf([4.0, 0.0]))
    y.sum().backward()


def the_second_argument():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = product(x, y)
    z.sum().backward()


def the_base_of_a_power():
    y = leaf([[0.0, 1.0]]) ** 0.5
    y.sum().backward()


def a_view():
    y = pb.sqrt(leaf([4.0, 0.0]))
    y[1:].sum().backward()


RULES = {
    root_of_zero: ("sqrt", "x", (1,), "y = pb.sqrt(leaf([4.0, 0.0]))"),
    the_second_argument: ("product", "right", (0,), "z = product(x, y)"),
    the_base_of_a_power: ("pow", "x", (0, 0), "y = leaf([[0.0, 1.0]]) ** 0.5"),
    a_view: ("sqrt", "x", (1,), "y = pb.sqrt(leaf([4.0, 0.0]))"),
}


@pytest.mark.parametrize("program", RULES)
def test_a_rule_names_its_operation_argument_index_and_the_line_of_forward(program):
    error = error_of(program)
    operation, argument, index, line = RULES[program]
    assert fields(error) == (operation, "backward", argument, index, line)
    assert error.node.op.name == operation


def test_the_line_is_empty_where_forward_ran_outside_of_the_mode():
    y = pb.sqrt(leaf([4.0, 0.0]))
    error = error_of(lambda: y.sum().backward())
    assert fields(error) == ("sqrt", "backward", "x", (1,), "")
    assert error.node is y.grad_fn


def test_one_result_of_several_leads_to_the_node_of_all():
    y = leaf([[4.0, 0.0], [1.0, 1.0]])
    roots = pb.sqrt(y)
    first, _ = roots.unbind()
    error = error_of(lambda: first.sum().backward())
    assert fields(error)[:4] == ("sqrt", "backward", "x", (0, 1))
    assert error.node is roots.grad_fn


def test_a_tensor_to_differentiate_that_is_not_finite_is_named_by_its_node():
    x = leaf([1.0, 0.0])
    y, z = x.sum(), x.log().sum()
    error = error_of(lambda: pb.autograd.grad([y, z], x))
    assert fields(error) == ("sum", "backward", "", (), "")
    assert error.node is z.grad_fn


def test_a_gradient_to_start_from_that_is_not_finite_is_an_argument():
    y = leaf([[1.0, 2.0]]) * 2.0
    error = error_of(lambda: y.backward(tensor([[1.0, INF]])))
    assert fields(error) == ("", "backward", "gradient[0]", (0, 1), "")
    error = error_of(lambda: y.backward(tensor([[1.0, INF]]), inputs=[y]))
    assert fields(error) == ("", "backward", "gradient[0]", (0, 1), "")
    error = error_of(lambda: pb.autograd.backward(y, tensor([[NAN, 1.0]])))
    assert fields(error) == ("", "backward", "grad_tensors[0]", (0, 0), "")
    assert error.node is None


def test_a_sum_that_is_not_finite_is_found_at_the_node_that_it_reached():
    x = leaf([1.0, 2.0])
    large = tensor([1.0, 1.7e308])
    error = error_of(lambda: pb.autograd.backward([x * 1.0, x * 1.0], [large, large]))
    assert fields(error) == ("AccumulateGrad", "backward", "", (1,), "")
    assert error.node.variable is x


@pytest.mark.parametrize("kind", ["of the tensor", "before the node", "after the node"])
def test_a_hook_is_found_at_the_node_that_has_it(kind):
    y = leaf([1.0, 2.0]) * 2.0
    if kind == "of the tensor":
        y.register_hook(to_nan)
    elif kind == "before the node":
        y.grad_fn.register_prehook(lambda grads: (to_nan(grads[0]),))
    else:
        y.grad_fn.register_hook(lambda grads, _: (to_nan(grads[0]), None))
    error = error_of(lambda: y.sum().backward())
    assert fields(error) == ("mul", "backward", "", (0,), "")
    assert error.node is y.grad_fn


def test_the_index_is_that_of_the_first_nan_or_else_of_the_first_infinity():
    def program(*values):
        y = leaf([1.0, 1.0, 1.0]) * 1.0
        y.register_hook(lambda g: g * tensor(values))
        y.sum().backward()

    assert error_of(program, 1.0, INF, NAN).index == (2,)
    assert error_of(program, 1.0, INF, INF).index == (1,)


# -- what the error keeps -------------------------------------------------------------------------
def kept_error(program, *args):
    """Return the error of a program without its traceback, whose frames keep the graph."""
    try:
        with warnings.catch_warnings(action="ignore"), detecting():
            program(*args)
    except AnomalyError as error:
        return error.with_traceback(None)


@pytest.mark.usefixtures("no_collector")  # by reference counting alone
def test_the_node_is_none_once_the_graph_is_gone():
    y = pb.sqrt(leaf([4.0, 0.0]))
    error = kept_error(lambda y: y.sum().backward(), y)
    assert error.node is y.grad_fn
    del y
    assert error.node is None
    assert fields(error) == ("sqrt", "backward", "x", (1,), "")


@pytest.mark.usefixtures("no_collector")
def test_the_node_of_a_leaf_is_none_once_the_leaf_is_gone():
    x = leaf([NAN])
    error = kept_error(lambda x: x * 2.0, x)
    assert error.node.variable is x
    del x
    assert error.node is None


@pytest.mark.usefixtures("no_collector")
def test_a_graph_that_was_made_within_the_program_is_gone_with_its_frames():
    error = kept_error(root_of_zero)
    assert error.node is None
    assert fields(error)[:4] == ("sqrt", "backward", "x", (1,))


def test_an_error_is_pickled_without_its_node():
    y = pb.sqrt(leaf([4.0, 0.0]))
    error = error_of(lambda: y.sum().backward())
    error.add_note("a note")
    copied = pickle.loads(pickle.dumps(error))
    assert fields(copied) == fields(error)
    assert (str(copied), copied.__notes__) == (str(error), ["a note"])
    assert copied.node is None
    assert error.node is y.grad_fn


def test_the_fields_are_plain_values():
    error = error_of(lambda: pb.log(tensor(np.zeros((2, 3)))))
    assert type(error.index) is tuple
    assert [type(i) for i in error.index] == [int, int]
    assert type(error.line) is type(error.operation) is str
