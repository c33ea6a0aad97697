"""gradcheck: what it takes, what it returns and raises, and what it measures."""

import numpy as np
import pytest

import pullback as pb
from pullback.check import gradcheck

FIRST = {"only": ["first"]}


def doubled(ctx, x, w):
    ctx.save_for_backward(x=x, w=w)
    return x.mm(w.t())


def doubled_backward(ctx, g):
    saved = ctx.saved_variables
    return {"x": g.mm(saved.w), "w": 2 * g.t().mm(saved.x)}


linear = pb.autograd_function(doubled, doubled_backward, name="linear")


def inputs(rng=None):
    rng = rng or np.random.default_rng(0)
    return rng.normal(size=(4, 3)), rng.normal(size=(2, 3))


def wrong(**options):
    return gradcheck(linear, inputs(), raise_exception=False, **options)


# -- what it returns ------------------------------------------------------------------------------
def test_a_wrong_gradient_raises_and_the_error_carries_the_report():
    report = gradcheck(pb.sin, np.array([0.5, 1.0]))
    assert (report.ok, bool(report), report.failures) == (True, True, [])
    assert str(report).startswith("sin: the gradients are right (seed 0)")
    with pytest.raises(pb.errors.GradcheckError, match=r"factor 2\.000") as caught:
        gradcheck(linear, inputs())
    assert isinstance(caught.value, AssertionError)
    assert caught.value.report.failures[0].argument == "w"
    (failure,) = wrong(fast=True).failures
    assert failure.cause.name == "factor"


# -- what it takes --------------------------------------------------------------------------------
def test_inputs_may_be_one_tensor_a_tuple_or_a_dict():
    x, w = inputs()
    for argument in (pb.asarray(x), (x,), [x], {"x": x}):
        assert gradcheck(lambda x: x.sum() ** 2, argument, **FIRST).ok
    report = gradcheck(linear, {"w": w, "x": x}, raise_exception=False, **FIRST)
    assert [f.argument for f in report.failures] == ["w"]


def test_only_the_tensors_that_require_grad_are_differentiated_where_any_does():
    x, w = (pb.asarray(a) for a in inputs())
    assert gradcheck(linear, (x.requires_grad_(), w), **FIRST).ok


def test_arguments_that_are_no_arrays_are_passed_on():
    def power(x, n, *, offset=0.0, name):
        return (x + offset) ** n

    inputs = {"x": np.array([1.0, 2.0]), "n": 3, "offset": 0.5, "name": "cube"}
    assert gradcheck(power, inputs, **FIRST).ok


def test_tensors_in_containers_are_named_by_their_path():
    def loss(params):
        return (params["w"] ** 2).sum() + params["b"][0].detach() * params["b"][0]

    params = {"w": np.array([1.0, 2.0]), "b": [np.array([3.0])]}
    report = gradcheck(loss, (params,), raise_exception=False, **FIRST)
    assert [f.argument for f in report.failures] == ["params['b'][0]"]


def test_an_operation_in_place_is_checked_on_a_copy():
    @pb.autograd_function
    def twice_(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    twice_.backward(lambda ctx, g: 3 * g)
    x = np.array([1.0, 2.0])
    report = gradcheck(twice_, x, raise_exception=False, **FIRST)
    assert report.failures[0].cause.name == "factor"
    assert x.tolist() == [1.0, 2.0]


def test_inputs_that_forward_writes_to_are_left_as_they_are():
    def doubled(ctx, x):
        x.numpy()[...] *= 2
        return x * 1

    x = np.array([1.0, 2.0])
    op = pb.autograd_function(doubled, lambda ctx, g: 2 * g)
    report = gradcheck(op, x, raise_exception=False)
    assert "forward changes `x` in place" in report.failures[0].text
    assert x.tolist() == [1.0, 2.0]


def test_the_inputs_are_left_as_they_are():
    x = pb.asarray(np.array([1.0, 2.0])).requires_grad_()
    gradcheck(pb.exp, x)
    assert x.grad is None
    assert x.tolist() == [1.0, 2.0]
    assert pb.is_grad_enabled()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_every_inexact_dtype_is_checked_with_its_own_tolerance(dtype):
    x = np.array([0.5, -1.25, 2.0]).astype(dtype)
    assert gradcheck(lambda t: pb.tanh(t) * t, x, **FIRST).ok
    bad = pb.autograd_function(lambda ctx, t: t * 1, lambda ctx, g: 1.25 * g)
    assert not gradcheck(bad, x, raise_exception=False, **FIRST).ok


def test_at_a_kink_the_gradient_has_to_lie_between_the_one_sided_slopes():
    report = gradcheck(pb.relu, np.array([0.0, 1.0, -1.0]))
    assert report.ok
    assert "not differentiable at 1 of 3 elements of `x`" in report.notes[0]
    relu = pb.autograd_function(lambda ctx, x: x.relu(), lambda ctx, g: g * 0.5, name="half")
    assert gradcheck(relu, np.array([0.0, 0.0]), **FIRST).ok
    relu.backward(lambda ctx, g: g * 1.5)
    assert not gradcheck(relu, np.array([0.0, 0.0]), raise_exception=False, **FIRST).ok


def test_large_arrays_are_checked_along_directions_and_at_some_elements():
    x = np.random.default_rng(0).normal(size=(40, 50))
    assert gradcheck(lambda t: pb.sin(t).sum(axis=0), x, **FIRST).ok

    def first_row(ctx, g):
        result = pb.zeros(40, 50, dtype="float64")
        result[1:] = g.expand(39, 50)
        return result

    total = pb.autograd_function(lambda ctx, x: x.sum(dim=0), first_row)
    assert not gradcheck(total, x, raise_exception=False, **FIRST).ok


# -- errors ---------------------------------------------------------------------------------------
def test_what_forward_or_backward_raises_is_a_failure_with_its_text():
    def backward(ctx, g):
        raise KeyError("nothing here")

    op = pb.autograd_function(lambda ctx, x: x * 2, backward, name="op")
    report = gradcheck(op, np.ones(2), raise_exception=False)
    assert report.failures[0].cause.name == "raised"
    assert "KeyError: 'nothing here'" in str(report)
    report = gradcheck(lambda x: x.reshape(7), np.ones(3), raise_exception=False)
    assert "forward raises" in str(report)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gradcheck(3, np.ones(2)), TypeError, "a function to check is required, got int"),
        (lambda: gradcheck(pb.sin, 3.0), ValueError, "complex array to differentiate.* got float"),
        (lambda: gradcheck(pb.sin, (np.arange(3),)), ValueError, "at least one floating or comp"),
    ],
)
def test_wrong_use_is_an_error_that_says_what_is_required(call, error, text):
    with pytest.raises(error, match=text) as caught:
        call()
    assert isinstance(caught.value, pb.AutogradError)


# -- numbers that are hard to compare -------------------------------------------------------------
def squared(factor):
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    return pb.autograd_function(
        forward, lambda ctx, g: factor * ctx.saved_variables.x * g, name="squared"
    )


AWKWARD = [[0.5, np.nan, 2.0], [1.0, np.inf], [1.0, 1e200], [np.nan, -3.0]]


@pytest.mark.parametrize("values", AWKWARD, ids=str)
@pytest.mark.parametrize("fast", [False, True])
def test_elements_that_are_not_finite_excuse_no_others(values, fast):
    x = np.array(values)
    with np.errstate(all="ignore"):
        assert gradcheck(squared(2.0), x, fast=fast).ok
        report = gradcheck(squared(1.0), x, raise_exception=False, **FIRST)
    assert report.failures[0].cause.name == "factor"


@pytest.mark.parametrize("values", [[1e-300, 1e-200], [5e-324]], ids=str)
def test_results_that_underflow_accuse_nobody(values):
    assert gradcheck(squared(2.0), np.array(values)).ok


def test_outputs_that_do_not_depend_on_the_input_are_a_note():
    report = gradcheck(lambda x: pb.ones(2), np.ones(2))
    assert report.ok
    assert "the outputs do not change with `x` at these inputs" in report.notes


def test_the_mode_of_the_caller_makes_no_difference():
    with pb.no_grad():
        assert gradcheck(pb.sin, np.ones(2)).ok
        assert not pb.is_grad_enabled()
    with pb.inference_mode():
        assert gradcheck(pb.sin, np.ones(2)).ok


def test_a_rule_that_changes_grad_output_in_place_is_right_in_second_order_too():
    op = pb.autograd_function(lambda ctx, x: x * 3.0, lambda ctx, g: g.mul_(3.0))
    assert gradcheck(op, np.ones((2, 2))).ok


def test_arrays_beside_tensors_that_require_grad_reach_forward_as_arrays():
    kinds = set()

    def fn(x, labels):
        kinds.add(type(labels))
        return x[np.arange(len(labels)), labels] * 2.0

    x = pb.asarray(np.arange(6.0).reshape(3, 2)).requires_grad_()
    assert gradcheck(fn, (x, np.array([0, 1, 1])), only=["mutation", "first"]).ok
    assert kinds == {np.ndarray}


def test_gradcheck_calls_no_gradient_right_that_rounding_hides():
    op = pb.autograd_function(
        lambda ctx, x, y: 1e8 * x + 1e-3 * y, lambda ctx, g: {"x": 1e8 * g, "y": 2e-3 * g}
    )
    report = gradcheck(op, (np.array([1.0, 2.0]), np.array([0.3, 0.4])), raise_exception=False)
    assert [each.argument for each in report.unchecked] == ["y"]
    assert report.outcome == "not checked"
