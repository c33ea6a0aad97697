"""Right operations pass the parts, whatever the part tries."""

import warnings

import pytest
from tests.check._parts import (
    NORMAL,
    X,
    Y,
    check,
    double_in_place,
    failures,
    only_failure,
    op,
    two_results,
)

import pullback as pb
from pullback.check.exceptions import InapplicableError
from pullback.check.properties.aliases import check_aliases
from pullback.check.properties.dtypes import check_dtypes
from pullback.check.properties.lifetime import check_lifetime
from pullback.check.properties.linear import check_linear
from pullback.check.properties.modes import check_modes
from pullback.check.properties.mutation import check_mutation
from pullback.check.properties.outputs import check_outputs
from pullback.check.properties.repeatable import check_repeatable
from pullback.check.properties.shapes import check_shapes

PARTS = (
    check_mutation,
    check_repeatable,
    check_linear,
    check_outputs,
    check_aliases,
    check_lifetime,
    check_modes,
)


@pytest.mark.parametrize(
    "part", [p for p in PARTS if p is not check_outputs], ids=lambda p: p.__name__
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_right_operations_of_a_user_pass(part, dtype):
    for fn, arrays in (
        (two_results(), (X.astype(dtype), Y.astype(dtype))),
        (double_in_place(), (X.astype(dtype),)),
        (lambda x: x.clone().mul_(2.0), (X.astype(dtype),)),
        (lambda x: x, (X.astype(dtype),)),
    ):
        try:
            report = check(part, fn, *arrays)
        except InapplicableError:
            assert part is check_aliases
            continue
        assert report.ok, str(report)


def test_no_warning_escapes():
    """Means of nothing and the like are tried, and NumPy warns of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in (check_shapes, check_dtypes):
            assert failures(part, lambda x: x.mean() / x.var(), NORMAL(size=3)) == []


def test_what_hooks_packed_is_left_alone():
    with pb.autograd.saved_tensors_hooks(lambda t: t.numpy().tolist(), pb.asarray):
        assert check(check_mutation, lambda x: x.exp() * x, X).ok
        assert check(check_lifetime, two_results(), X, Y).ok


@pytest.mark.parametrize("part", PARTS, ids=lambda p: p.__name__)
def test_arrays_of_another_library_are_checked(part):
    strict = pytest.importorskip("array_api_strict")
    x, y = strict.asarray(X), strict.asarray(Y)

    def backward(ctx, g, h):
        y = ctx.saved_variables.y
        y.data_array()[...] = 0
        return {"x": g * y + h, "y": None}

    assert check(part, two_results(), x, y).ok
    if part is check_mutation:
        fn = op(two_results().forward, backward)
        name, text = only_failure(part, fn, x, y)
        assert (name, text) == ("mutation", "backward changes the saved value `y` in place")
