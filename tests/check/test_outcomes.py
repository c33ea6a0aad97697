"""The three outcomes: right, wrong, and not checked, which is never passed off as right."""

import time

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op, gradcheck
from pullback.errors import GradcheckError, UncheckedError, UncheckedWarning


def operation(forward, rule):
    return pb.autograd_function(forward, rule, name="tried")


def only_at(value):
    """Return an operation whose forward raises for all but one array; its rule is wrong."""

    def forward(ctx, x):
        if not np.array_equal(x.numpy(), value):
            raise ValueError("only the tabulated values")
        return x * 2.0

    return operation(forward, lambda ctx, g: {"x": g * 17.0})


def steps_and(smooth, rule):
    """Return an operation with a second output that jumps at whole numbers."""

    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return smooth(x), x.floor()

    return operation(forward, rule)


def test_a_forward_that_raises_at_every_point_nearby_is_not_checked():
    value = np.array([0.5, 1.5])
    with pytest.raises(UncheckedError, match="the gradient of `x`: not checked, since") as caught:
        check_op(only_at(value), value)
    assert isinstance(caught.value, GradcheckError)
    report = caught.value.report
    assert (report.outcome, report.ok, report.failures) == ("not checked", False, [])
    assert [u.argument for u in report.unchecked] == ["x"]
    assert "only the tabulated values" in report.unchecked[0].why
    assert "not checked, since forward raises wherever it is moved a little" in str(report)
    with pytest.warns(UncheckedWarning, match="not checked, since"):
        report = check_op(only_at(value), value, allow_unchecked=True)
    assert report.outcome == "not checked"


def test_allow_unchecked_passes_over_nothing_that_is_wrong():
    op = operation(lambda ctx, x: x * 2.0, lambda ctx, g: {"x": g * 3.0})
    with pytest.raises(GradcheckError) as caught:
        check_op(op, np.ones(2), allow_unchecked=True)
    assert caught.value.report.outcome == "wrong"


@pytest.mark.parametrize("fast", [False, True])
def test_outputs_that_jump_hide_no_others(fast):
    op = steps_and(lambda x: x * x, lambda ctx, g, h: {"x": 3.0 * ctx.saved_variables.x * g})
    report = check_op(op, np.array([1.0, 2.0, 3.0]), fast=fast, raise_exception=False)
    assert report.failures[0].cause.name == "factor"
    op = steps_and(lambda x: x * x, lambda ctx, g, h: {"x": 2.0 * ctx.saved_variables.x * g})
    assert check_op(op, np.array([1.0, 2.0, 3.0]), fast=fast).outcome == "right"


def test_a_gradient_through_jumps_is_wrong_between_them_and_not_checked_at_them():
    op = operation(lambda ctx, x: x.floor(), lambda ctx, g: {"x": g})
    report = check_op(op, np.array([1.0, 2.0]), fast=True, raise_exception=False)
    assert "the outputs jump at these inputs" in report.unchecked[0].why
    report = check_op(op, np.array([1.0, 2.0]), raise_exception=False)
    assert report.outcome == "wrong"
    assert "a straight-through gradient is not one" in report.failures[0].cause.hint


@pytest.mark.parametrize(
    ("inputs", "why"),
    [(np.array([np.nan]), "the outputs are not finite"), (np.zeros((0, 3)), "no elements")],
)
def test_inputs_of_which_nothing_can_be_measured_are_not_called_right(inputs, why):
    report = gradcheck(lambda x: x * x, inputs, raise_exception=False)
    assert report.outcome == "not checked"
    assert why in report.unchecked[0].why


def test_what_one_set_of_inputs_leaves_open_another_may_show():
    def forward(ctx, x):  # the first inputs that are drawn are general ones, of scale 1
        if abs(x).max() < 1.5:
            return x.floor()
        return x * 2.0

    op = operation(forward, lambda ctx, g: {"x": g * 2.0})
    report = check_op(op, "x: (n,) in [3, 4]")
    assert report.outcome == "right"


# ---- the time limit ------------------------------------------------------------------------------
@pytest.mark.parametrize("seconds", [(0.2, 0.0), (0.0, 0.2)], ids=["forward", "backward"])
def test_a_slow_operation_ends_within_the_limit_with_what_was_not_checked(seconds):
    def slowly(value, k):
        time.sleep(seconds[k])
        return value * 2.0

    op = operation(lambda ctx, x: slowly(x, 0), lambda ctx, g: {"x": slowly(g, 1)})
    report = check_op(op, np.ones(3), time_limit=0.7, raise_exception=False)
    assert report.outcome == "not checked"
    assert "the time limit of 0.7 s was reached; one call takes 0." in report.unchecked[0].why
    assert "pass a larger time_limit" in report.unchecked[0].hint


def test_what_is_found_wrong_within_the_limit_is_reported():
    calls = []

    def forward(ctx, x):
        calls.append(1)
        if len(calls) > 300:
            time.sleep(0.3)
        return x * 2.0

    op = operation(forward, lambda ctx, g: {"x": g * 3.0})
    report = check_op(op, np.ones(3), time_limit=0.5, raise_exception=False)
    assert report.outcome == "wrong"


def test_a_search_for_inputs_that_takes_too_long_ends():
    def forward(ctx, x):
        time.sleep(0.1)
        raise ValueError("never")

    op = operation(forward, lambda ctx, g: {"x": g})
    report = check_op(op, time_limit=0.4, raise_exception=False)
    assert report.outcome == "not checked"
    assert "while its inputs were guessed" in report.unchecked[0].why


# ---- surrogates ----------------------------------------------------------------------------------
@pb.autograd_function
def rounded(ctx, x):
    return x.round()


@rounded.surrogate("straight-through estimate")
def _(ctx, grad_output):
    return {"x": grad_output}


class Clipped(pb.Function):
    surrogate = "the gradient is clipped"

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": pb.clip(grad_output * 2.0, -1.0, 1.0)}


def test_a_declared_surrogate_is_not_compared_with_differences():
    report = check_op(rounded, np.array([0.3, 1.2]))
    assert report.outcome == "right"
    assert any("declared a surrogate (straight-through estimate)" in n for n in report.notes)
    assert Clipped.apply.surrogate_reason == "the gradient is clipped"
    assert check_op(Clipped, np.array([0.3, 1.2]), skip=["linear"]).outcome == "right"
    through = operation(lambda ctx, x: x.round(), lambda ctx, g: {"x": g})
    assert check_op(through, "x: (n,)", surrogate="straight-through").outcome == "right"
    assert gradcheck(through, np.array([0.3]), surrogate="straight-through").outcome == "right"


def test_everything_but_the_formula_of_a_surrogate_is_checked():
    def rule(ctx, grad_output):
        return {"x": grad_output * grad_output}

    through = pb.autograd_function(lambda ctx, x: x.round(), name="through")
    through.surrogate("straight-through")(rule)
    report = check_op(through, np.array([0.3]), raise_exception=False)
    assert [f.part for f in report.failures] == ["linear"]


def test_another_rule_is_no_surrogate_any_more():
    op = pb.autograd_function(lambda ctx, x: x.round(), name="through")
    op.surrogate("straight-through")(lambda ctx, g: {"x": g})
    op.backward(lambda ctx, g: {"x": g})
    assert op.surrogate_reason == ""


@pytest.mark.parametrize("reason", ["", None, 3])
def test_a_surrogate_needs_a_reason(reason):
    op = pb.autograd_function(lambda ctx, x: x.round(), name="through")
    with pytest.raises(TypeError, match="a text that says why"):
        op.surrogate(reason)


def eigenvectors(sign):
    """Return the eigenvectors of a Hermitian matrix, with a rule for functions without phases."""

    def forward(ctx, a):
        values, vectors = np.linalg.eigh(a.numpy())
        ctx.save_for_backward(values=values, vectors=vectors)
        return pb.asarray(vectors)

    def backward(ctx, g):
        values, vectors = (np.asarray(saved) for saved in ctx.saved_variables)
        gaps = values - values[:, None] + np.eye(len(values))
        inner = sign / gaps * (1 - np.eye(len(values))) * (vectors.conj().T @ g.numpy())
        found = vectors @ inner @ vectors.conj().T
        return {"a": (found + found.conj().T) / 2}

    return pb.autograd_function(forward, backward, name="eigenvectors")


@pytest.mark.parametrize(("sign", "outcome"), [(1, "not checked"), (-1, "wrong")])
@pytest.mark.parametrize("described", [False, True])
def test_a_gradient_that_is_wrong_for_the_phases_of_outputs_alone_is_not_checked(
    sign, outcome, described
):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    given = "a: (n, n) symmetric complex" if described else a + a.conj().T
    report = check_op(eigenvectors(sign), given, raise_exception=False)
    assert report.outcome == outcome
    reasons = [unchecked.why for unchecked in report.unchecked]
    assert all("as those of eigenvectors" in why for why in reasons)
    assert len(reasons) == (outcome == "not checked")


def test_a_gradient_of_a_phase_itself_is_checked():
    op = pb.autograd_function(lambda ctx, z: z / abs(z), lambda ctx, g: {"z": 0 * g})
    assert check_op(op, np.array([1 + 2j, 0.5j]), raise_exception=False).outcome == "wrong"
