"""Processes that are forked while other threads of the parent compute."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import pullback as pb
from pullback.core.backward import accumulate
from pullback.core.graph.locks import fork_safe_locks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def succeeds_in_a_child(work, seconds=20):
    """Run `work` in a forked child; return whether it came to its end in time."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def train(w):
    """Add to the gradient of a leaf, define and call an operation, draw numbers."""
    (w * w).sum().backward()
    double = pb.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    double(w).sum().backward()
    assert np.isfinite(pb.rand(3).numpy()).all()


def test_a_lock_that_another_thread_holds_is_free_in_the_child_of_a_fork():
    locks = fork_safe_locks(2)
    held, done = threading.Event(), threading.Event()

    def hold():
        with locks[0], locks[1]:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)

    def work():
        assert all(lock.acquire(timeout=5) for lock in locks)

    try:
        assert succeeds_in_a_child(work)
        assert not locks[0].acquire(blocking=False)
    finally:
        done.set()
        thread.join()


def test_a_child_accumulates_into_a_leaf_that_a_thread_of_the_parent_was_adding_to(monkeypatch):
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    adding, done, add = threading.Event(), threading.Event(), accumulate._added

    def blocked(array, g):
        adding.set()
        done.wait(60)
        return add(array, g)

    monkeypatch.setattr(accumulate, "_added", blocked)
    thread = threading.Thread(target=(w * 3).sum().backward)
    thread.start()
    adding.wait(60)
    monkeypatch.setattr(accumulate, "_added", add)
    try:
        assert succeeds_in_a_child(lambda: train(w), seconds=10)
    finally:
        done.set()
        thread.join()
    assert w.grad.tolist() == [5.0, 7.0]


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX's, once another test imports it
def test_children_work_that_are_forked_while_threads_add_to_the_gradients_of_a_leaf():
    w = pb.ones(200_000, requires_grad=True)
    stop = threading.Event()

    def load():
        while not stop.is_set():
            (w * w).sum().backward()

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.05)
        assert [succeeds_in_a_child(lambda: train(w)) for _ in range(200)] == [True] * 200
    finally:
        stop.set()
        for thread in threads:
            thread.join()
