"""Anomaly mode, backward: the rule whose gradient is not finite is named, and so is a bad start."""

import pytest
from tests.core.debug.detecting import INF, NAN, error_of, leaf, passes, tensor

import pullback as pb


# -- backward -------------------------------------------------------------------------------------
def test_a_rule_that_gives_infinity_is_named_with_what_it_computed_from():
    x = leaf([0.0, 4.0])

    def program():
        y = x.sqrt()
        y.sum().backward()

    message = str(error_of(program))
    assert message.splitlines()[:4] == [
        "Function 'SqrtBackward' returned inf values in its 0th output.",
        "It is the gradient of 'x', with inf in 1 of 2 elements, the first at index (0,); the "
        "values below are finite.",
        "  grad_output: shape (2,), dtype float64, values 1",
        "  saved out: shape (2,), dtype float64, values from 0 to 2, 1 zero",
    ]
    assert f"line {program.__code__.co_firstlineno + 1}, in program\n    y = x.sqrt()" in message
    assert x.grad is None


def test_the_rule_of_the_second_input_is_named_by_it():
    x, y = tensor([1.0, 1.0]), leaf([1e-200, 1.0])
    message = str(error_of(lambda: (x / y).sum().backward()))
    assert message.splitlines()[:2] == [
        "Function 'DivBackward' returned inf values in its 1th output.",
        "It is the gradient of 'y', with inf in 1 of 2 elements, the first at index (0,); the "
        "values below are finite.",
    ]


def test_a_forward_outside_of_the_mode_leaves_the_line_unknown():
    y = leaf([0.0, 4.0]).sqrt().sum()
    message = str(error_of(y.backward))
    assert "Function 'SqrtBackward' returned inf" in message
    assert "Run the forward inside detect_anomaly too" in message
    assert "recorded at" not in message


def test_a_saved_value_that_was_not_finite_before_is_marked():
    x, y = leaf([1.0, 2.0]), tensor([INF, 1.0])
    out = pb.where(y < INF, x * y, 0.0).sum()
    message = str(error_of(lambda: out.backward(retain_graph=True)))
    assert "Function 'MulBackward' returned nan values in its 0th output." in message
    assert "saved y: not finite before" in message


def test_the_gradients_of_other_leaves_stay_as_they_are():
    w, x = leaf([1.0, 2.0]), leaf([0.0, 1.0])
    w.grad = tensor([5.0, 5.0])
    error_of(lambda: (w * x.sqrt()).sum().backward())
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]


def test_an_unused_result_has_no_gradient_to_check():
    def program():
        first, _ = leaf([[0.0, 4.0], [1.0, 1.0]]).unbind()
        first.sqrt().sum().backward()

    message = str(error_of(program))
    assert "Function 'SqrtBackward' returned inf" in message
    assert passes(lambda: leaf([4.0, 1.0]).unbind()[0].sqrt().backward()) is None


def test_nan_that_a_built_in_rule_masks_is_no_anomaly_when_it_is_recorded():
    def program():
        x, y = leaf([0.0, 2.0]), leaf([2.0, 3.0])
        first = pb.autograd.grad((x**y).sum(), [x, y], create_graph=True)
        return [g.tolist() for g in first]

    assert passes(program) == program()


def test_a_recorded_backward_is_checked():
    x = leaf([0.0, 1.0])

    def program():
        (first,) = pb.autograd.grad((x**1.5).sum(), x, create_graph=True)
        first.sum().backward()

    assert "returned inf values in its 0th output" in str(error_of(program))
    assert x.grad is None


def test_packed_values_are_not_unpacked_again():
    unpacked = []

    def unpack(packed):
        unpacked.append(packed)
        return packed

    def program():
        with pb.saved_tensors_hooks(lambda t: t, unpack):
            leaf([0.0, 4.0]).sqrt().sum().backward()

    message = str(error_of(program))
    assert "Function 'SqrtBackward' returned inf" in message
    assert len(unpacked) == 1


# -- where backward starts ------------------------------------------------------------------------
STARTS = {
    "backward": lambda y: y.backward(),
    "autograd.backward": lambda y: pb.autograd.backward([y]),
    "recorded": lambda y: y.backward(create_graph=True),
}


@pytest.mark.parametrize("value", [NAN, 0.0])
@pytest.mark.parametrize("start", ["backward", "autograd.backward", "recorded"])
def test_a_loss_that_is_not_finite_is_no_start(start, value):
    x = leaf([value, 1.0])
    loss = x.log().mean()
    message = str(error_of(STARTS[start], loss))
    kind = "nan" if value else "inf"
    assert f"backward: a finite tensor to differentiate was required, got {kind}." in message
    assert "tensor 0, of MeanBackward: shape (), dtype float64" in message
    assert "hint: run the forward inside detect_anomaly too" in message
    assert x.grad is None
    loss.backward()  # nothing was released


def test_grad_checks_every_output():
    x = leaf([0.0, 1.0])
    outputs = [x.sum(), x.log().sum()]
    message = str(error_of(lambda: pb.autograd.grad(outputs, x)))
    assert message.startswith("grad: a finite tensor to differentiate was required, got inf.")
    assert "tensor 1, of SumBackward" in message


def test_a_gradient_to_start_from_must_be_finite():
    y = leaf([1.0, 2.0]) * 2.0
    message = str(error_of(lambda: y.backward(tensor([1.0, NAN]))))
    assert message.startswith(
        "backward: finite gradients to start from were required, got nan in 1 of 2 elements, the "
        "first at index (1,) of gradient[0]."
    )


def test_a_pass_within_a_pass_is_checked():
    def program():
        x = leaf([1.0])

        def hook(grad):
            with pb.enable_grad():
                leaf([0.0]).sqrt().sum().backward()

        x.register_hook(hook)
        (x * 2.0).sum().backward()

    assert "SqrtBackward' returned inf" in str(error_of(program))
