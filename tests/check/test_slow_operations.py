"""Operations whose calls take long: what is compared first, what is left out, what is shown."""

import io
import sys
import threading
import time

import numpy as np
import pytest

import pullback as pb
from pullback.check import api, check_op, deadline as deadline_module
from pullback.check.deadline import DISPLAY, OutOfTimeError, deadline, limited


def product(calls, sign=1.0, seconds=0.0):
    """Return a product that counts its calls; the gradient of `w` has that sign."""

    def forward(ctx, x, w):
        calls.append(1)
        time.sleep(seconds)
        ctx.save_for_backward(x=x, w=w)
        return pb.sin(x * w)

    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        calls.append(1)
        time.sleep(seconds)
        g = pb.cos(x * w) * grad_output
        return {"x": g * w, "w": sign * g * x}

    return pb.autograd_function(forward, backward, name="product")


@pytest.fixture
def slow(monkeypatch):
    """The usual time is over from the beginning, as if calls took long."""
    monkeypatch.setattr(api, "_USUAL", 1e-9)


def test_a_slow_operation_is_compared_along_one_direction_of_each_argument(slow):
    calls = []
    report = check_op(product(calls), "x: (3, 4), w: (3, 4)")
    assert report.outcome == "right"
    assert any("compared along 2 random directions" in note for note in report.notes)
    assert any(note.startswith("other settings and values left out") for note in report.notes)
    assert len(calls) <= 30


def test_a_cause_that_needs_no_calls_is_named_however_slow_the_operation_is(slow):
    op = product([], -1.0, 0.005)  # longer than what is thought about it takes
    report = check_op(op, "x: (3, 4), w: (3, 4)", raise_exception=False)
    assert report.failures[0].cause.text == "`w` has the wrong sign everywhere"


def test_where_the_limit_leaves_no_time_for_elements_the_argument_is_named():
    op = product([], -1.0, 0.02)
    report = check_op(op, "x: (3, 4), w: (3, 4)", time_limit=1.3, raise_exception=False)
    assert report.outcome == "wrong"
    assert report.failures[0].cause.text == "the gradient of `w` is wrong along a random direction"


# ---- progress ------------------------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_what_is_done_and_how_long_until_it_ends(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(deadline_module, "_SOON", 0.01)

    def interrupted():
        with limited(60.0, doing="tried: inputs") as limit, limit.call():
            limit.show("tried: first derivatives (3 of 15)")
            time.sleep(0.12)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    written = sys.stderr.getvalue()
    assert "tried: first derivatives (3 of 15), 0 s, one call takes 0." in written
    assert written.endswith("\r\x1b[2K")


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["soon", "no terminal"])
def test_a_check_that_ends_soon_and_one_without_a_terminal_show_nothing(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    if not stream.isatty():
        monkeypatch.setattr(deadline_module, "_SOON", 0.0)
    check_op(product([]), np.ones(3), np.ones(3), fast=True)
    assert stream.getvalue() == ""


def test_another_display_gets_the_parts_that_take_long(monkeypatch):
    monkeypatch.setattr(deadline_module, "_SOON", 0.0)
    monkeypatch.setattr(deadline_module, "_PAUSE", 0.0)
    texts = []
    token = DISPLAY.set(texts.append)
    try:
        check_op(product([]), np.ones(2), np.ones(2), fast=True)
    finally:
        DISPLAY.reset(token)
    assert texts[0].startswith("product: nothing written to (1 of 16), 0 s, one call takes ")
    assert any(text.startswith("product: first derivatives (3 of 16), 0 s") for text in texts)
    assert texts[-1] == ""


# ---- the limit itself ----------------------------------------------------------------------------
def test_what_is_optional_ends_with_the_usual_time_but_for_calls_that_are_granted():
    with limited(60.0, 1e-9) as limit:
        with limit.call():
            time.sleep(0.01)
        with limit.as_time_allows(), limit.call():
            raise AssertionError("a call after the usual time")
        with pytest.raises(OutOfTimeError), deadline().leaving_out(), limit.call():
            pass
        with limit.call():
            pass
        with limit.leaving_out(10), limit.call():
            pass
    assert limit.calls == 3


def test_check_op_leaves_no_thread_of_its_own():
    threads, before = set(), set(threading.enumerate())

    def forward(ctx, x):
        threads.add(threading.current_thread())
        return x * 2

    check_op(pb.autograd_function(forward, lambda ctx, g: {"x": 2 * g}, name="op"), np.ones(3))
    assert len(threads) > 1, "no call was made in another thread"
    assert set(threading.enumerate()) <= before
