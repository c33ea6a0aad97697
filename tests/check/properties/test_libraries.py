"""The part that runs a call on arrays of other libraries."""

import sys

import numpy as np
from tests.check._parts import NORMAL, failures, linear, linear_inputs, ran, with_backward

import pullback as pb
from pullback.check.properties.libraries import check_libraries
from pullback.check.report import INAPPLICABLE, PASSED


def foreign(tensor):
    return not isinstance(tensor.data_array(), np.ndarray)


def test_libraries_pass_for_what_follows_the_standard():
    result, report = ran(check_libraries, linear, *linear_inputs())
    assert (result.status, report.failures, report.notes) == (PASSED, [], [])


def test_libraries_find_numbers_that_are_wrong_elsewhere():
    @with_backward(lambda ctx, grad: 3 * grad if foreign(grad) else 2 * grad)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(check_libraries, double, NORMAL(size=3))
    assert (found.cause.name, found.situation) == ("dtype", "on array_api_strict")
    assert found.cause.text == "the gradient of `x` is wrong on arrays of array_api_strict alone"


def test_libraries_only_note_a_rule_written_for_numpy():
    @with_backward(lambda ctx, grad: pb.asarray(2 * np.asarray(grad.detach().numpy())))
    def double(ctx, x):
        return 2 * x

    result, report = ran(check_libraries, double, NORMAL(size=3))
    assert result.status == PASSED
    (note,) = report.notes
    assert note.startswith("forward also takes arrays of array_api_strict, but backward raises")


def test_libraries_do_not_apply_to_a_forward_written_for_numpy():
    @with_backward(lambda ctx, grad: 2 * grad)
    def double(ctx, x):
        return pb.asarray(2 * np.asarray(x.detach().numpy()))

    result, _ = ran(check_libraries, double, NORMAL(size=3))
    assert (result.status, result.reason) == (INAPPLICABLE, "forward takes NumPy arrays only")


def test_libraries_in_use_are_tried(monkeypatch):
    import array_api_strict

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("jax.numpy", "dask.array"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    double = with_backward(lambda ctx, grad: 3 * grad if foreign(grad) else 2 * grad)(
        lambda ctx, x: 2 * x
    )
    result, _ = ran(check_libraries, double, NORMAL(size=3))
    assert result.reason == "no other array library is installed"
    monkeypatch.setitem(sys.modules, "jax.numpy", array_api_strict)
    assert len(failures(check_libraries, double, NORMAL(size=3))) == 1
