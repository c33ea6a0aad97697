"""Anomaly mode and tracebacks: frames, debuggers, recorded lines, and what they keep alive."""

import gc
import io
import pdb
import sys
import traceback
import warnings
import weakref

import pytest
from tests.core.debug.detecting import Divides, detecting, error_of, hook_on_a_result, leaf, passes

import pullback as pb
from pullback.errors import GradientError, InplaceError, ReleasedError


# -- debuggers and lines --------------------------------------------------------------------------
def train(p):
    scale = 3.0
    return pb.log(p * scale).sum()


def frames_of(error):
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def test_the_users_frame_is_in_the_traceback_with_its_variables():
    train(leaf([1.0, 2.0]))  # the first call of an operation compiles it, two frames deeper
    error = error_of(train, leaf([0.0, 1.0]))
    (frame,) = [frame for frame in frames_of(error) if frame.f_code is train.__code__]
    assert frame.f_locals["scale"] == 3.0
    assert frame.f_locals["p"].tolist() == [0.0, 1.0]
    ours = frames_of(error)[frames_of(error).index(frame) + 1 :]
    assert len(ours) <= 3  # so many times `up` in the debugger


def test_the_debugger_reaches_the_users_variables_after_the_error():
    error = error_of(train, leaf([0.0, 1.0]))
    codes = [frame.f_code for frame in frames_of(error)]
    ups = "up\n" * (len(codes) - 1 - codes.index(train.__code__))
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO(f"{ups}p scale, p.tolist()\nq\n"), stdout=out)
    debugger.use_rawinput = False
    tracing = sys.gettrace()  # coverage's, which the debugger ends
    debugger.reset()
    debugger.interaction(None, error.__traceback__)
    sys.settrace(tracing)
    assert "(3.0, [0.0, 1.0])" in out.getvalue()


def test_the_line_is_a_note_of_every_other_error_in_backward():
    @pb.autograd_function
    def fails(ctx, x):
        return x * 1.0

    @fails.backward
    def _(ctx, grad_output):
        raise KeyError("mine")

    def program():
        y = fails(leaf([1.0]))  # the line to report
        y.sum().backward()

    with (
        pytest.warns(UserWarning, match="Error detected in failsBackward"),
        pytest.raises(KeyError, match="mine") as caught,
        detecting(),
    ):
        program()
    (note,) = caught.value.__notes__
    assert note.startswith("failsBackward was recorded at\n")
    assert "y = fails(leaf([1.0]))  # the line to report" in note
    with pytest.raises(KeyError, match="mine") as caught:
        program()
    assert not hasattr(caught.value, "__notes__")


def test_the_error_of_a_released_graph_shows_the_recorded_line():
    def program():
        y = (leaf([1.0]) * 2.0).sum()
        y.backward()
        y.backward()

    with (
        pytest.warns(UserWarning, match="Error detected in SumBackward"),
        pytest.raises(ReleasedError) as caught,
        detecting(),
    ):
        program()
    assert "y = (leaf([1.0]) * 2.0).sum()" in caught.value.__notes__[0]


def test_an_error_outside_of_the_mode_shows_the_line_that_was_recorded_in_it():
    y = passes(lambda: leaf([1.0]).exp())
    y.backward()
    with pytest.raises(ReleasedError) as caught:
        y.backward()
    assert "passes(lambda: leaf([1.0]).exp())" in caught.value.__notes__[0]


@pytest.mark.case("AN2")
@pytest.mark.parametrize("check_nan", [True, False])
def test_the_error_of_a_changed_saved_value_shows_the_recorded_line(check_nan):
    def program():
        y = leaf([1.0]) * 1.0
        z = y.exp()
        z.add_(1.0)
        z.sum().backward()

    with (
        pytest.warns(UserWarning, match="Error detected in ExpBackward"),
        pytest.raises(InplaceError) as caught,
        detecting(check_nan=check_nan),
    ):
        program()
    assert "z = y.exp()" in caught.value.__notes__[0]


def test_the_recorded_line_of_a_node_is_in_its_metadata():
    y = passes(lambda: leaf([1.0]).exp())
    assert "passes(lambda: leaf([1.0]).exp())" in str(y.grad_fn.metadata["traceback"])


# -- what is kept ---------------------------------------------------------------------------------
class Witness:
    """Something whose end can be seen."""


@pytest.mark.usefixtures("no_collector")
def test_the_record_of_a_call_keeps_nothing_of_its_frame():
    def program():
        witness = Witness()
        seen.append(weakref.ref(witness))
        return leaf([1.0]).exp()

    seen = []
    y = passes(program)
    assert y.requires_grad
    assert seen[0]() is None


FAILING = {
    "forward": lambda x: train(x),
    "rule": lambda x: x.sqrt().sum().backward(),
    "user rule": lambda x: Divides.apply(x, False).sum().backward(),
    "hook": hook_on_a_result,
    "start": lambda x: train_outside(x).backward(),
}


def train_outside(x):
    with pb.set_detect_anomaly(False):
        return train(x)


@pytest.mark.parametrize("program", FAILING.values(), ids=FAILING)
@pytest.mark.usefixtures("no_collector")
def test_an_error_that_was_handled_keeps_no_graph_alive(program):
    def once():
        x = leaf([0.0, 1.0])
        y = x * 1.0
        y.grad_fn.metadata["witness"] = witness = Witness()
        try:
            with warnings.catch_warnings(action="ignore"), detecting():
                program(y)
        except GradientError:
            return weakref.ref(witness)

    assert once()() is None
    assert gc.isenabled() is False
