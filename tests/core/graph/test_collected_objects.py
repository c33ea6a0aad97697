"""How many objects of a recorded operation Python's garbage collector has to walk."""

import gc

import pytest

import pullback as pb

X = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
Y = pb.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
COUNT = 1000
OPERATIONS = {
    "product": (lambda: X * Y, 4),
    "product with a number": (lambda: X * 3.0, 4),
    "square": (lambda: X**2, 4),
    "exp": (lambda: pb.exp(X), 4),
    "sum": (lambda: X.sum(), 4),
    "sum of rows": (lambda: X.sum(1), 4),
    "matmul": (lambda: X @ Y, 4),
    "softmax": (lambda: X.softmax(0), 4),
    "cat": (lambda: pb.cat([X, Y]), 4),
    "stack": (lambda: pb.stack([X, Y]), 4),
    "a row": (lambda: X[0], 4),
    "a slice": (lambda: X[0:1], 5),  # one is the slice object, the user's own
}


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_recorded_operation_makes_few_objects_that_the_collector_tracks(name):
    call, most = OPERATIONS[name]
    call()  # compiled, and what is made once is made
    kept = [None] * COUNT
    before = len(gc.get_objects())
    for i in range(COUNT):
        kept[i] = call()
    made = len(gc.get_objects()) - before
    assert made <= most * COUNT + 20  # a few belong to the loop
    assert all(t.requires_grad for t in kept)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("name", OPERATIONS)
def test_dropping_the_results_frees_all_of_them(name):
    call, _ = OPERATIONS[name]
    call()
    before = len(gc.get_objects())
    kept = [call() for _ in range(COUNT)]
    del kept
    assert len(gc.get_objects()) - before <= 20


def test_recording_and_backward_leave_the_settings_of_the_collector():
    settings, frozen = (gc.isenabled(), gc.get_threshold(), gc.get_debug()), gc.get_freeze_count()
    for call, _ in OPERATIONS.values():
        call().sum().backward()
    assert settings == (gc.isenabled(), gc.get_threshold(), gc.get_debug())
    assert gc.get_freeze_count() <= frozen  # what was frozen may die
