"""Anomaly mode as a mode: options, nesting, threads and tasks, and no cost outside of it."""

import asyncio
import os
import sys
import threading

import numpy as np
import pytest
from tests.core.debug.detecting import (
    INF,
    NAN,
    Divides,
    detecting,
    elsewhere,
    error_of,
    is_detecting,
    leaf,
    passes,
    tensor,
    to_nan,
)

import pullback as pb
from pullback.core import debug
from pullback.errors import GradientError


# -- options --------------------------------------------------------------------------------------
def test_allow_inf_allows_infinities():
    def program():
        x = leaf([0.0, 1.0])
        y = x.log()
        y.sum().backward()
        return y.tolist(), x.grad.tolist()

    assert passes(program, allow_inf=True) == ([-INF, 0.0], [INF, 1.0])
    message = str(error_of(lambda: leaf([0.0, 1.0]).log() * 0.0, allow_inf=True))
    assert message.startswith("mul: a finite result was required, got nan in 1 of 2")


@pytest.mark.case("AN3")
def test_check_nan_switches_the_check_of_values_off():
    def program():
        x = leaf([0.0, -1.0])
        y = (x.log() + to_nan(x)).sum()
        x.register_hook(to_nan)
        y.backward(tensor(NAN))
        y = x * 2.0
        y.grad_fn.register_hook(lambda grads, _: (to_nan(grads[0]), None))
        y.div_(0.0).sum().backward()
        return x.grad.isnan().tolist()

    assert passes(program, check_nan=False) == [True, True]


@pytest.mark.case("AN3")
def test_detect_anomaly_nests_and_the_inner_one_holds():
    x = leaf([0.0, 1.0])
    with detecting():
        with pb.set_detect_anomaly(False):
            assert not is_detecting()
            assert "traceback" not in x.exp().grad_fn.metadata
            x.log()
        with detecting(allow_inf=True):
            x.log()
        with detecting(check_nan=False):
            x.log()
            with detecting(check_nan=True), pytest.raises(GradientError, match="log: a finite"):
                x.log()
            x.log()
        with pytest.raises(GradientError, match="log: a finite result"):
            x.log()


def test_detect_anomaly_and_grad_modes_combine():
    x = leaf([1.0])
    with detecting(check_nan=False), pb.no_grad():
        assert not Divides.apply(x, False).requires_grad
        with pb.enable_grad():
            assert "traceback" in Divides.apply(x, False).grad_fn.metadata
    assert "traceback" not in Divides.apply(x, False).grad_fn.metadata


def test_set_detect_anomaly_works_at_once_and_as_a_decorator():
    x = leaf([0.0, 1.0])
    pb.set_detect_anomaly(True)
    with pytest.raises(GradientError, match="log: a finite result"):
        x.log()
    pb.set_detect_anomaly(False, check_nan=False)
    x.log()

    @pb.set_detect_anomaly(True)
    def program():
        return x.log()

    assert not is_detecting()
    with pytest.raises(GradientError, match="log: a finite result"):
        program()


def test_detect_anomaly_decorates_generators_and_coroutines():
    constant = tensor([0.0, 1.0])

    @detecting()
    def steps():
        yield 1
        constant.log()

    @detecting()
    async def later():
        await asyncio.sleep(0)
        return constant.log()

    walk = steps()
    assert next(walk) == 1
    assert not is_detecting()
    constant.log()
    with pytest.raises(GradientError, match="log: a finite result"):
        next(walk)
    with pytest.raises(GradientError, match="log: a finite result"):
        asyncio.run(later())


# -- the mode itself ------------------------------------------------------------------------------
def files_run_by(program):
    """Return the files of the Python functions that a program calls."""
    files, profiler = set(), sys.getprofile()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        program()
    finally:
        sys.setprofile(profiler)
    return files


def test_outside_of_detect_anomaly_no_code_of_it_runs():
    x = leaf([[0.0, 1.0], [2.0, 3.0]])

    def program():
        y = pb.concat([x.log(), x @ x]).clone()
        y /= 0.0
        y.register_hook(lambda grad: None)
        Divides.apply(y, False).sum().backward()
        with pb.no_grad():
            y.mul_(2.0)

    folder = os.path.dirname(debug.__file__)
    assert [name for name in files_run_by(program) if name.startswith(folder)] == []
    assert x.grad.isnan().any()
    inside = files_run_by(lambda: passes(program, check_nan=False))
    assert any(name.startswith(folder) for name in inside)


def test_other_threads_are_not_checked_and_give_the_same_values():
    def program():
        x = leaf([0.0, 1.0])
        y = (x.log() + 1.0).mul_(2.0)
        y.sum().backward()
        return y.tolist(), x.grad.tolist(), (tensor([0.0]) / 0.0).isnan().item()

    alone = program()
    with detecting():
        assert is_detecting()
        assert elsewhere(program) == alone


def test_the_mode_works_in_a_thread_and_leaves_the_others_alone():
    def program():
        with detecting():
            try:
                return leaf([0.0]).log()
            except GradientError as error:
                return str(error)

    assert elsewhere(program).startswith("log: a finite result")
    leaf([0.0]).log()


def test_a_block_that_ends_leaves_the_block_of_another_thread_alone():
    inside, go, found = threading.Barrier(2), threading.Event(), []

    def stay():
        with np.errstate(all="ignore"):
            with detecting():
                inside.wait(10)
                go.wait(10)
                found.append(is_detecting())
            found.append(is_detecting())

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(10)
    assert not is_detecting()
    with detecting():
        assert is_detecting()
    assert not is_detecting()
    go.set()
    thread.join()
    assert found == [True, False]
    assert not is_detecting()


@pytest.mark.case("AN2")
def test_detect_anomaly_warns_once():
    x = leaf([2.0])
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled.*only.*for debugging"):
        mode = pb.detect_anomaly()
    with mode:
        (x * x).backward()
        (x * x).backward()
    assert x.grad.tolist() == [8.0]
