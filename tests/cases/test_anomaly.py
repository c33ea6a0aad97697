"""Anomaly mode (cases AN1 to AN3)."""

import contextlib
import warnings

import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


@contextlib.contextmanager
def recorded():
    """Collect the text of every warning."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield texts
        finally:
            texts.extend(str(warning.message) for warning in caught)


class MyFunc(pb.Function):
    """x + y, whose backward returns a NaN for one of them."""

    @staticmethod
    def forward(ctx, x, y, fail_first):
        ctx.fail_first = fail_first
        return x + y

    @staticmethod
    def backward(ctx, grad_output):
        bad = grad_output.clone()
        bad[0] = float("nan")
        if ctx.fail_first:
            return bad, None, None
        return None, bad, None


POSITION = [(True, "0th"), (False, "1th")]


@pytest.mark.parametrize(("fail_first", "position"), POSITION)
def test_AN1_a_nan_is_silent_outside_the_mode(fail_first, position):
    x = leaf([1.0, 2.0])
    MyFunc.apply(x, x, fail_first).sum().backward()
    assert str(x.grad.tolist()) == "[nan, 1.0]"


@pytest.mark.parametrize(("fail_first", "position"), POSITION)
def test_AN1_forward_outside_the_mode(fail_first, position):
    x = leaf([1.0, 2.0])
    out = MyFunc.apply(x, x, fail_first)
    message = f"Function 'MyFuncBackward' returned nan values in its {position} output."
    with (
        recorded() as texts,
        pytest.raises(RuntimeError, match=message),
        pb.detect_anomaly(),
    ):
        out.sum().backward()
    assert any("No forward pass information" in text for text in texts)
    assert x.grad is None


@pytest.mark.parametrize(("fail_first", "position"), POSITION)
def test_AN1_forward_inside_the_mode(fail_first, position):
    message = f"Function 'MyFuncBackward' returned nan values in its {position} output."
    x = leaf([1.0, 2.0])
    with (
        recorded() as texts,
        pytest.raises(RuntimeError, match=message),
        pb.detect_anomaly(),
    ):
        MyFunc.apply(x, x, fail_first).sum().backward()
    assert not any("No forward pass information" in text for text in texts)
    (shown,) = [text for text in texts if "Error detected in MyFuncBackward" in text]
    assert "MyFunc.apply(x, x, fail_first)" in shown
    assert "test_anomaly.py" in shown


def test_AN1_the_engine_is_usable_afterwards():
    x = leaf([1.0, 2.0])
    with recorded(), pytest.raises(RuntimeError, match="returned nan"), pb.detect_anomaly():
        MyFunc.apply(x, x, True).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_AN2_entering_the_mode_warns_once():
    x = leaf([2.0])
    with recorded() as texts, pb.detect_anomaly():
        (x * x).backward()
        (x * x).backward()
    assert len(texts) == 1
    assert "Anomaly Detection has been enabled" in texts[0]
    assert "only" in texts[0]
    assert "for debugging" in texts[0]
    assert x.grad.tolist() == [8.0]


def change_in_place(a):
    """Return a result whose saved value an in-place change has overwritten."""
    d1 = a + 1
    d2 = d1**2
    d1 += 1
    return d2.sum()


def test_AN2_an_in_place_error_names_the_op_and_shows_its_forward():
    a = leaf([5.0])
    with (
        recorded() as texts,
        pytest.raises(RuntimeError, match="modified by an inplace operation"),
        pb.detect_anomaly(),
    ):
        pb.autograd.grad(change_in_place(a), a)
    assert len(texts) == 2
    assert "Anomaly Detection has been enabled" in texts[0]
    assert "Error detected in PowBackward" in texts[1]
    assert "d2 = d1**2" in texts[1]


def test_AN2_an_in_place_error_outside_the_mode_warns_of_nothing():
    a = leaf([5.0])
    with (
        recorded() as texts,
        pytest.raises(RuntimeError, match="modified by an inplace operation"),
    ):
        pb.autograd.grad(change_in_place(a), a)
    assert texts == []


def test_AN3_without_the_nan_check():
    x = leaf([1.0, 2.0])
    with recorded() as texts, pb.detect_anomaly(check_nan=False):
        out = MyFunc.apply(x, x, True).sum()
        out.backward(retain_graph=True)
        assert str(x.grad.tolist()) == "[nan, 1.0]"
        with (
            pytest.raises(
                RuntimeError,
                match=r"Function 'MyFuncBackward' returned nan values in its 0th output\.",
            ),
            pb.detect_anomaly(check_nan=True),
        ):
            out.backward(retain_graph=True)
        out.backward(retain_graph=True)
    shown = [text for text in texts if "Error detected in MyFuncBackward" in text]
    assert len(shown) == 1
    assert "MyFunc.apply(x, x, True)" in shown[0]


def test_AN3_tracebacks_are_kept_without_the_nan_check():
    a = leaf([5.0])
    with (
        recorded() as texts,
        pytest.raises(RuntimeError, match="modified by an inplace operation"),
        pb.detect_anomaly(check_nan=False),
    ):
        pb.autograd.grad(change_in_place(a), a)
    (shown,) = [text for text in texts if "Error detected in PowBackward" in text]
    assert "d2 = d1**2" in shown


def test_AN3_the_state_is_restored_on_exit_and_by_errors():
    x = leaf([1.0, 2.0])
    with recorded():
        with pb.detect_anomaly():
            pass
        with pytest.raises(KeyError), pb.detect_anomaly():
            raise KeyError("left")
    MyFunc.apply(x, x, True).sum().backward()
    assert str(x.grad.tolist()) == "[nan, 1.0]"
    with recorded() as texts:
        out = MyFunc.apply(x, x, True).sum()
        with pytest.raises(RuntimeError, match="returned nan"), pb.detect_anomaly():
            out.backward()
    assert any("No forward pass information" in text for text in texts)
