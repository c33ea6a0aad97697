"""set_num_threads: how many threads BLAS uses."""

import sys

import pytest
import threadpoolctl

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError, MissingExtraError


@pytest.fixture(autouse=True)
def _threads_as_before():
    with threadpoolctl.threadpool_limits(None):
        yield


def numbers():
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}


def test_set_num_threads_sets_those_of_blas():
    assert pb.set_num_threads(2) is None
    pb.set_num_threads(1)
    blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
    assert {pool["num_threads"] for pool in blas.info()} == {1}


@pytest.mark.parametrize(
    ("num", "error", "text"),
    [
        (0, ArgumentError, "at least 1 thread required, got 0"),
        (-2, ArgumentError, "at least 1 thread required, got -2"),
        (1.5, ArgumentTypeError, "an integer required as num, got float"),
        ("2", ArgumentTypeError, "an integer required as num, got str"),
    ],
)
def test_set_num_threads_refuses_what_is_no_number_of_threads(num, error, text):
    before = numbers()
    with pytest.raises(error, match=f"set_num_threads: {text}"):
        pb.set_num_threads(num)
    assert numbers() == before


def test_set_num_threads_says_how_to_install_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pullback\[threads\]'") as caught:
        pb.set_num_threads(1)
    assert "OPENBLAS_NUM_THREADS" in str(caught.value)


def test_set_num_threads_says_that_no_blas_can_be_set(monkeypatch):
    nothing = threadpoolctl.ThreadpoolController().select(user_api="none")
    monkeypatch.setattr(threadpoolctl.ThreadpoolController, "select", lambda self, **_: nothing)
    with pytest.raises(ArgumentError, match="VECLIB_MAXIMUM_THREADS"):
        pb.set_num_threads(1)
