"""What a search must not do, and where it finds nothing."""

import pickle
import warnings

import numpy as np
import pytest
from tests.check._repair import change, changes, defined, first_report

import pullback as pb
from pullback.check import check_op, repair

X = np.array([0.3, 1.2, -0.7, 0.5])


def sine(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.sin(x)


def wrong(ctx, g):
    return g * pb.sin(ctx.saved_variables.x)


def right(ctx, g):
    return g * pb.cos(ctx.saved_variables.x)


def gradient(op, *inputs):
    tensors = [pb.tensor(x, requires_grad=True) for x in inputs]
    op(*tensors).sum().backward()
    return [t.grad.numpy() for t in tensors]


def test_an_operation_is_as_it_was():
    op = pb.autograd_function(sine, wrong)
    codes = wrong.__code__, sine.__code__
    before = gradient(op, X)
    assert changes(op, X)
    assert np.array_equal(gradient(op, X), before)
    assert (op.forward, op.given_rule) == (sine, wrong)
    assert (wrong.__code__, sine.__code__) == codes
    assert not vars(wrong)


def test_arrays_are_as_they_were():
    weights, x = np.array([0.5, 2.0, 1.5, -1.0]), X.copy()

    def scaled(ctx, x):
        return x * pb.asarray(weights)

    assert change(scaled, lambda ctx, g: g / pb.asarray(weights), x)
    assert weights.tolist() == [0.5, 2.0, 1.5, -1.0]
    assert np.array_equal(x, X)


def test_arrays_that_a_change_puts_in_the_place_of_new_ones_are_as_they_were():
    weights = np.array([0.5, 2.0, 1.5, -1.0])

    @pb.once_differentiable
    def backward(ctx, g):
        found = np.zeros(4)
        for k in range(4):
            found[k] = np.sin(7.7 * g.numpy()[k]) + np.exp(weights[k])
        return {"x": pb.asarray(found)}

    change(lambda ctx, x: x * pb.asarray(weights), backward, X)
    assert weights.tolist() == [0.5, 2.0, 1.5, -1.0]


def test_global_state_is_as_it_was():
    filters, errors = list(warnings.filters), np.geterr()
    with pb.no_grad():
        assert change(sine, wrong, X)
        assert not pb.is_grad_enabled()
    assert pb.is_grad_enabled()
    assert list(warnings.filters) == filters
    assert np.geterr() == errors


def test_a_right_operation_has_no_change():
    report = first_report(pb.autograd_function(sine, right), X)
    assert not report.failures


def test_a_mistake_that_is_no_small_one_has_no_change():
    noise = np.array([0.123, -4.56, 7.89, 0.321])
    assert change(sine, lambda ctx, g: pb.asarray(noise**3), X) == ""


def test_a_fast_check_has_no_change():
    assert change(sine, wrong, X, fast=True) == ""


def test_a_rule_without_source_has_no_change():
    names = {"pb": pb}
    exec("def rule(ctx, g):\n    return g * pb.sin(ctx.saved_variables.x)", names)
    assert change(sine, names["rule"], X) == ""


def test_a_rule_of_a_file_that_is_not_on_disk_has_one():
    text = "import pullback as pb\ndef rule(ctx, g):\n    return -g * pb.cos(ctx.saved_variables.x)"
    assert "line 3 of backward" in change(sine, defined(text + "\n", "rule", "<cell 1>"), X)


def test_a_loop_that_a_change_makes_endless_does_not_hang():
    def backward(ctx, g):
        i, total = 0, 0 * g
        while i < 3:
            total = total + g * pb.cos(ctx.saved_variables.x)
            i = i + 1
        return total

    assert change(sine, backward, X)


def test_a_rule_that_writes_to_what_forward_saved():
    def forward(ctx, x):
        ctx.value = np.cos(x.numpy())
        return pb.sin(x)

    @pb.once_differentiable
    def backward(ctx, g):
        ctx.value *= -g.numpy()
        return {"x": ctx.value}

    first_report(pb.autograd_function(forward, backward), X)


def test_a_rule_that_takes_from_a_list():
    def forward(ctx, x):
        ctx.steps = [x, pb.cos(x)]
        return pb.sin(x)

    def backward(ctx, g):
        return -g * ctx.steps.pop()

    first_report(pb.autograd_function(forward, backward), X)


def test_a_rule_that_draws_numbers():
    def backward(ctx, g):
        return -g * pb.cos(ctx.saved_variables.x) * np.random.default_rng().uniform(1, 2)

    assert change(sine, backward, X) == ""


def test_a_search_that_is_out_of_time_tries_no_change(monkeypatch):
    monkeypatch.setattr(repair, "SECONDS", 0.0)
    assert change(sine, wrong, X) == ""


def test_an_interruption_ends_the_search_and_leaves_all_as_it_was(monkeypatch):
    def interrupted(self, candidate):
        raise KeyboardInterrupt

    op = pb.autograd_function(sine, wrong)
    before, filters, errors = gradient(op, X), list(warnings.filters), np.geterr()
    monkeypatch.setattr("pullback.check.repair.trials.Trials.mended_by", interrupted)
    with pytest.raises(KeyboardInterrupt):
        str(check_op(op, X, raise_exception=False))
    assert np.array_equal(gradient(op, X), before)
    assert (list(warnings.filters), np.geterr()) == (filters, errors)
    assert pb.is_grad_enabled()


def test_an_interruption_in_a_rule_that_is_tried_is_passed_on():
    count = [0]

    def backward(ctx, g):
        count[0] += 1
        if count[0] > 60:
            raise KeyboardInterrupt
        return pb.asarray(np.array([0.123, -4.56, 7.89, 0.321])) * g

    with pytest.raises(KeyboardInterrupt):
        str(first_report(pb.autograd_function(sine, backward), X))


def test_a_report_holds_the_change_as_text():
    report = first_report(pb.autograd_function(sine, wrong), X)
    text = report.failures[0].repair
    assert "instead of" in text
    assert report.as_dict()["failures"][0]["repair"] == text
    assert pickle.loads(pickle.dumps(report)).failures[0].repair == text
    assert text in str(report)
