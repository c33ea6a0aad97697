"""Anomaly mode, forward: the operation that made a NaN or an infinity is named, with its line."""

import array_api_strict
import numpy as np
import pytest
from tests.core.debug.detecting import INF, NAN, error_of, leaf, passes, tensor

import pullback as pb

# -- operations -----------------------------------------------------------------------------------
MADE = {
    "log of zero": (lambda: pb.log(leaf([1.0, 0.0])), "log", "inf in 1 of 2 elements"),
    "zero times infinity": (lambda: leaf([0.0, 1.0]) * tensor([INF, 1.0]), "mul", "nan in 1 of 2"),
    "zero by zero": (lambda: leaf([0.0, 1.0]) / tensor([0.0, 1.0]), "div", "nan in 1 of 2"),
    "by the number zero": (lambda: leaf([1.0, 1.0]) / 0, "div", "inf in 2 of 2 elements"),
    "root of minus one": (lambda: leaf([4.0, -1.0]).sqrt(), "sqrt", "nan in 1 of 2 elements"),
    "overflow of float32": (lambda: leaf([1.0, 100.0], "float32").exp(), "exp", "inf in 1 of 2"),
    "overflow of a sum": (lambda: leaf([1e308, 1e308]).sum(), "sum", "inf, from"),
    "overflow of a product": (lambda: leaf([[1e200]]) @ tensor([[1e200]]), "m", "inf, from"),
    "overflow of a cast": (lambda: leaf([1.0, 1e300]).to(pb.float32), "to", "inf in 1 of 2"),
    "overflow of a power": (lambda: leaf([10.0, 1.0]) ** 400, "pow", "inf in 1 of 2 elements"),
    "infinities that cancel": (lambda: leaf([INF, 1.0]) - tensor([INF, 1.0]), "sub", "nan in 1"),
    "complex": (lambda: pb.log(leaf([0j, 1 + 1j], "complex128")), "log", "inf in 1 of 2"),
    "a composition": (lambda: pb.logit(leaf([0.5, 1.0])), "logit", "inf in 1 of 2 elements"),
    "several results": (lambda: pb.linalg.slogdet(leaf([[0.0]])), "slogdet", "inf, from"),
    "arguments by number": (lambda: pb.pow(0.0, leaf([-1.0, 1.0])), "pow", "inf in 1 of 2"),
    "NumPy's function": (lambda: np.log(tensor([0.0, 1.0])), "log", "inf in 1 of 2"),
}


@pytest.mark.parametrize(("program", "name", "found"), MADE.values(), ids=MADE)
def test_the_operation_that_made_it_is_named(program, name, found):
    message = str(error_of(program))
    assert message.startswith(name)
    assert f"a finite result was required, got {found}" in message
    program()  # outside of the mode it is as it was


def test_the_error_describes_the_inputs_and_shows_the_line():
    def loss(p):
        kept = p * 1.0
        return -pb.log(kept).mean()  # a mark to find

    message = str(error_of(loss, leaf([[0.5, 0.0, 2.0], [0.0, 1.0, 0.25]])))
    assert message.splitlines()[:3] == [
        "log: a finite result was required, got inf in 2 of 6 elements, the first at index (0, 1), "
        "from finite inputs.",
        "  x: shape (2, 3), dtype float64, values from 0 to 2, 2 zeros",
        "  result: shape (2, 3), dtype float64, values from -1.386 to 0.6931, 1 zero, 2 inf",
    ]
    line = loss.__code__.co_firstlineno + 2
    assert f'File "{__file__}", line {line}, in loss' in message
    assert "return -pb.log(kept).mean()  # a mark to find" in message
    assert "allow_inf=True" in message


def test_infinite_inputs_are_not_called_finite():
    message = str(error_of(lambda: leaf([0.0, 1.0]) * tensor([INF, 1.0])))
    assert "from inputs without nan" in message
    assert "  y: shape (2,), dtype float64, values 1, 1 inf" in message
    assert "allow_inf" not in message


def test_complex_inputs_are_described_by_their_absolute_values():
    message = str(error_of(lambda: pb.log(leaf([0j, 3 + 4j], "complex128"))))
    assert "x: shape (2,), dtype complex128, absolute values from 0 to 5, 1 zero" in message


def test_the_function_that_the_user_called_is_named_beside_the_operation_in_it():
    message = str(error_of(lambda: pb.cov(leaf([[1e200, -1e200]]))))
    assert message.startswith("cov (in its ")
    assert "pb.cov(leaf" in message


UNRECORDED = {"no_grad": pb.no_grad, "inference_mode": pb.inference_mode}


@pytest.mark.parametrize("mode", UNRECORDED.values(), ids=UNRECORDED)
def test_what_is_not_recorded_is_checked_too(mode):
    def program():
        with mode():
            return leaf([0.0, 1.0]).log()

    assert str(error_of(program)).startswith("log: a finite result")


CONSTANTS = {
    "unary": lambda x: x.log(),
    "binary": lambda x: x / x,
    "with a number": lambda x: 1.0 / x,
    "with an array": lambda x: x / np.array([0.0, 1.0]),
    "reduction": lambda x: pb.prod(x * 1e300) + pb.sum(x * 1.7e308 + 1.7e308),
    "one array and settings": lambda x: pb.logit(x, eps=None),
    "several arrays": lambda x: pb.xlogy(x + 1.0, x),
    "in place": lambda x: x.div_(0.0),
}


@pytest.mark.parametrize("program", CONSTANTS.values(), ids=CONSTANTS)
def test_results_that_require_no_grad_are_checked_in_every_kind_of_call(program):
    assert "a finite result was required" in str(error_of(lambda: program(tensor([0.0, 1.0]))))


def test_inputs_without_numbers_to_range_over_are_described():
    def program():
        choice = pb.where(tensor([True, False], "bool"), leaf([1.0, 2.0]), leaf(3.0))
        return choice / tensor([0.0, 1.0])

    assert str(error_of(program)).startswith("div: ")
    message = str(error_of(lambda: pb.concat([leaf([], "float32"), leaf([1.0, 1e200])]).square()))
    assert message.startswith("square: a finite")
    message = str(error_of(lambda: pb.mean(leaf([]))))
    assert "  x: shape (0,), dtype float64\n" in message


def test_finite_programs_give_the_same_numbers():
    def program():
        x = leaf([[0.5, 2.0], [1.0, 3.0]])
        y = pb.concat([x.exp(), (x @ x).log()]).reshape(-1)
        y[0] = 3.0
        y /= 2.0
        (g,) = pb.autograd.grad(y.softmax(0).sum() + (y * y).sum(), x, create_graph=True)
        g.sum().backward()
        return y.tolist(), g.tolist(), x.grad.tolist()

    assert passes(program) == program()


def test_integers_and_booleans_and_empty_arrays_are_finite():
    def program():
        x = tensor([], "float64")
        return (x / x).shape, (pb.tensor([1, 2]) // 1).tolist(), (pb.tensor([1]) > 0).tolist()

    assert passes(program) == ((0,), [1, 2], [True])


# -- in place -------------------------------------------------------------------------------------
def halves():
    return leaf([1.0, 2.0]) * 1.0


CHANGES = {
    "div_": (halves, lambda x: x.div_(tensor([1.0, 0.0])), "div_"),
    "operator": (halves, lambda x: x.__itruediv__(0), "div_"),
    "untracked": (lambda: tensor([1.0, 2.0]), lambda x: x.div_(0.0), "div_"),
    "without an array function": (halves, lambda x: x.xlogy_(tensor([0.0, 1.0])), "xlogy"),
    "adding by index": (
        lambda: tensor([1e308, 2.0]),
        lambda x: x.index_add_(0, pb.tensor([0]), tensor([1e308])),
        "index_add",
    ),
}


@pytest.mark.parametrize(("make", "change", "name"), CHANGES.values(), ids=CHANGES)
def test_a_change_in_place_that_is_not_finite_is_not_made(make, change, name):
    x = make()
    before, version = x.tolist(), x._version
    assert str(error_of(change, x)).startswith(f"{name}")
    assert (x.tolist(), x._version) == (before, version)


def test_a_change_of_a_view_in_place_is_not_made_and_its_base_stays():
    base = leaf([[1.0, 2.0], [3.0, 4.0]]) * 1.0
    row = base[0]
    message = str(error_of(lambda: row.sub_(3.0).log_()))
    assert message.startswith("log_: a finite result was required, got nan in 2 of 2 elements")
    assert base.tolist() == [[-2.0, -1.0], [3.0, 4.0]]


def test_nan_that_is_written_on_purpose_is_no_anomaly():
    def program():
        x = tensor([1.0, 2.0])
        x[0] = NAN
        x.masked_fill_(x > 1.0, -INF)
        return x.fill_(INF).tolist()

    assert passes(program) == [INF, INF]


def test_strict_arrays_are_checked():
    def strict(data):
        return pb.asarray(array_api_strict.asarray(data))

    message = str(error_of(lambda: strict([0.0, 2.0]).requires_grad_().log()))
    assert "  x: shape (2,), dtype float64, values from 0 to 2, 1 zero" in message
    message = str(error_of(lambda: strict([0.0, 2.0]).requires_grad_().sqrt().sum().backward()))
    assert "Function 'SqrtBackward' returned inf values in its 0th output." in message
