"""The part that runs a call without recording and in several threads."""

import sys
import threading

from tests.check._parts import X, check, only_failure, op

import pullback as pb
from pullback.check.properties.modes import check_modes


def test_values_that_change_under_no_grad_are_found():
    name, text = only_failure(check_modes, lambda x: x * (2.0 if pb.is_grad_enabled() else 3.0), X)
    assert (name, text) == ("state", "under no_grad the value of output 0 is different")


def test_recording_under_no_grad_is_noted():
    def stubborn(x):
        with pb.enable_grad():
            return x * 2

    report = check(check_modes, stubborn, X)
    assert report.ok
    assert report.notes == ["stubborn records under no_grad"]


def test_state_of_a_thread_is_found():
    def forward(ctx, x):
        ctx.thread = threading.get_ident()
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0] * (threading.get_ident() == ctx.thread)

    interval = sys.getswitchinterval()
    name, text = only_failure(check_modes, op(forward, backward), X)
    assert sys.getswitchinterval() == interval
    assert name == "state"
    assert text == "the gradient of `x` depends on other threads that run at the same time"
    assert check(check_modes, op(forward, backward), X, fast=True).ok


def test_errors_in_threads_alone_are_found():
    def backward(ctx, g):
        assert threading.current_thread() is threading.main_thread(), "not here"
        return 2 * g

    name, text = only_failure(check_modes, op(lambda ctx, x: 2 * x, backward), X)
    assert name == "state"
    assert text.startswith("it depends on other threads: in 4 at once there is an error, Assertion")

    def forward(ctx, x):
        assert threading.current_thread() is threading.main_thread(), "not here"
        return x * 2

    name, text = only_failure(check_modes, op(forward, lambda ctx, g: 2 * g), X)
    assert name == "state"
    assert text.endswith("there is an error, AssertionError: not here")
