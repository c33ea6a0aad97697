"""Thousands of training steps leave memory flat; the garbage collector is off."""

import gc
import sys
import tracemalloc

import pytest
from tests.operations import linear

import pullback as pb

pytestmark = pytest.mark.usefixtures("no_collector")


def trainer():
    """Return a function that makes so many steps of gradient descent and returns the loss."""
    pb.manual_seed(0)
    x = pb.randn(8, 3)
    target = x.mm(pb.tensor([[1.0], [-2.0], [0.5]])) + 3.0
    weight = pb.randn(1, 3, requires_grad=True)
    bias = pb.zeros(1, requires_grad=True)

    def train(steps):
        for _ in range(steps):
            loss = (linear(x, weight, bias) - target).pow(2).mean()
            loss.backward()
            with pb.no_grad():
                weight.sub_(0.05 * weight.grad)
                bias.sub_(0.05 * bias.grad)
                weight.grad = None
                bias.grad.zero_()
        return loss.item()

    return train


# CPython keeps freed tuples, dicts and floats for reuse, up to a bound that takes a while to reach.
WARM_UP = 3_000


def test_ten_thousand_training_steps_leave_objects_and_memory_blocks_flat():
    train = trainer()
    train(WARM_UP)
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    loss = train(10_000)
    assert len(gc.get_objects()) - objects < 10
    assert sys.getallocatedblocks() - blocks < 100
    assert gc.collect() == 0
    assert loss < 1e-8


def traced_growth(steps):
    """Return by how many bytes memory grew over so many steps."""
    train = trainer()
    train(WARM_UP)
    tracemalloc.start()
    try:
        train(200)
        before, _ = tracemalloc.get_traced_memory()
        train(steps)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before


def test_training_steps_leave_memory_flat():
    assert traced_growth(1_000) < 8_000  # the smallest object would take more


@pytest.mark.stress
def test_ten_thousand_training_steps_leave_memory_flat():
    assert traced_growth(10_000) < 8_000
