"""Right operations pass the parts, whatever the part tries."""

import numpy as np
import pytest
from tests.check._parts import X, Y, check, double_in_place, only_failure, op, ran, two_results

import pullback as pb
from pullback.check.report import Status

SAME = ("mutation", "repeatable", "linear", "outputs", "aliases", "lifetime", "modes")


@pytest.mark.parametrize("part", SAME)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_right_operations_of_a_user_pass(part, dtype):
    for fn, arrays in (
        (two_results(), (X.astype(dtype), Y.astype(dtype))),
        (double_in_place(), (X.astype(dtype),)),
        (lambda x: x.clone().mul_(2.0), (X.astype(dtype),)),
        (lambda x: x, (X.astype(dtype),)),
    ):
        result, report = ran(part, fn, *arrays)
        assert report.ok, str(report)
        assert result.status != Status.INAPPLICABLE or part in ("aliases", "outputs")


def test_what_hooks_packed_is_left_alone():
    with pb.autograd.saved_tensors_hooks(lambda t: t.numpy().tolist(), pb.asarray):
        assert check("mutation", lambda x: x.exp() * x, X).ok
        assert check("lifetime", two_results(), X, Y).ok


@pytest.mark.parametrize("part", SAME)
def test_arrays_of_another_library_are_checked(part):
    strict = pytest.importorskip("array_api_strict")
    x, y = strict.asarray(X), strict.asarray(Y)

    def backward(ctx, g, h):
        y = ctx.saved_variables.y
        y.data_array()[...] = 0
        return {"x": g * y + h, "y": None}

    assert check(part, two_results(), x, y).ok
    if part == "mutation":
        _, text = only_failure(part, op(two_results().forward, backward), x, y)
        assert text.startswith("the saved value `y` is changed in place by backward")


def test_a_sort_of_equal_values_has_no_gradient_to_compare_with():
    def forward(ctx, x):
        ctx.order = np.argsort(x.numpy(), kind="stable")
        return x[ctx.order]

    sort = op(forward, lambda ctx, g: g[np.argsort(ctx.order)])
    assert check("first", sort, np.array([1.0, 1.0, 1.0, 2.0, 0.0])).ok
