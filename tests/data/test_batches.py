"""pb.data.batches: order, epochs, resuming."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError


def rows(batches):
    return [x.tolist() for (x,) in batches]


def test_batches_without_seed_keep_the_order():
    x, y = np.arange(5), pb.arange(5) * 10
    assert [(a.tolist(), b.tolist()) for a, b in pb.data.batches(x, y, size=2)] == [
        ([0, 1], [0, 10]),
        ([2, 3], [20, 30]),
        ([4], [40]),
    ]


def test_batches_drop_last_leaves_out_the_smaller_one():
    batches = pb.data.batches(np.arange(5), size=2, drop_last=True)
    assert (len(batches), rows(batches)) == (2, [[0, 1], [2, 3]])


def test_batches_with_a_seed_are_shuffled_anew_in_each_epoch_and_the_same_for_the_same_seed():
    first = pb.data.batches(np.arange(20), size=7, seed=1)
    again = pb.data.batches(np.arange(20), size=7, seed=1)
    epochs = [rows(first), rows(first)]
    assert epochs == [rows(again), rows(again)]
    assert epochs[0] != epochs[1]
    assert sorted(i for batch in epochs[1] for i in batch) == [*range(20)]


def test_a_for_after_a_break_begins_a_new_epoch():
    batches = pb.data.batches(np.arange(6), size=2, seed=0)
    fresh = pb.data.batches(np.arange(6), size=2, seed=0)
    next(iter(batches))
    rows(fresh)
    assert rows(batches) == rows(fresh)


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5, 6, 7])
def test_load_state_dict_gives_the_rest_of_the_epoch(stop):
    def run(batches, count):
        found = []
        while True:
            for (x,) in batches:
                found.append(x.tolist())
                if len(found) == count:
                    return found, batches.state_dict()

    whole, _ = run(pb.data.batches(np.arange(10), size=4, seed=3), 8)
    begun, state = run(pb.data.batches(np.arange(10), size=4, seed=3), stop)
    resumed = pb.data.batches(np.arange(10), size=4, seed=3)
    resumed.load_state_dict(state)
    rest, _ = run(resumed, 8 - stop) if stop < 8 else ([], None)
    assert begun + rest == whole


def test_a_state_saved_at_the_last_batch_resumes_with_nothing_left():
    batches = pb.data.batches(np.arange(4), size=2, seed=3)
    for _ in batches:
        state = batches.state_dict()
    after = batches.state_dict()
    batches.load_state_dict(state)
    assert rows(batches) == []
    second = rows(batches)
    batches.load_state_dict(after)
    assert rows(batches) == second


@pytest.mark.parametrize(
    ("arrays", "settings", "error", "text"),
    [
        ((), {"size": 1}, ArgumentError, "at least 1 array required, got none"),
        ((np.ones(2), np.ones(3)), {"size": 1}, ShapeError, r"got \(2,\), \(3,\)"),
        ((np.ones(()),), {"size": 1}, ShapeError, "arrays of one length"),
        (([1, 2],), {"size": 1}, ArgumentTypeError, "got list as number 0"),
        ((np.ones(2),), {"size": 0}, ArgumentError, "a size of at least 1 required, got 0"),
        ((np.ones(2),), {"size": 1.5}, ArgumentTypeError, "an integer required as size"),
        ((np.ones(2),), {"size": 1, "seed": -1}, ArgumentError, "a seed of at least 0"),
    ],
)
def test_batches_refuses(arrays, settings, error, text):
    with pytest.raises(error, match=f"batches: .*{text}"):
        pb.data.batches(*arrays, **settings)


def test_repr_says_where_it_stands():
    assert repr(pb.data.batches(np.ones(5), size=2)) == "Batches(3 of 2, epoch 0, 0 done)"
