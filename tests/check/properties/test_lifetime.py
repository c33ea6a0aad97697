"""The part that looks for what a call leaves behind."""

import functools
import gc

import numpy as np
import pytest
from tests.check._parts import (
    X,
    check,
    only_failure,
    op,
)

import pullback as pb
from pullback.check.properties.lifetime import check_lifetime

KEPT = {}


@pytest.fixture(autouse=True)
def unfrozen():
    """Show the search what the test run has frozen: it cannot see that."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_a_global_that_keeps_tensors_is_found():
    def forward(ctx, x):
        KEPT["x"] = x
        return x * 2

    name, text = only_failure(check_lifetime, op(forward, lambda ctx, g: 2 * g), X)
    KEPT.clear()
    assert name == "leak"
    assert text.startswith("after a call was dropped, memory of it is still alive (kept by the ")
    assert f"global `KEPT` of the module {__name__}): the input `x`" in text


def test_lists_closures_and_classes_that_keep_tensors_are_found():
    class Store:
        last = None

    kept = []

    def append(x):
        kept.append(x)
        return x * 2

    def store(x):
        Store.last = x
        return x * 2

    assert "kept by " in only_failure(check_lifetime, op(lambda ctx, x: append(x), pb_double), X)[1]
    assert (
        "kept by the class `Store`"
        in only_failure(check_lifetime, op(lambda ctx, x: store(x), pb_double), X)[1]
    )


def test_what_is_kept_far_away_is_found_without_a_name():
    def forward(ctx, x):
        deep.append([[[[x]]]])
        return x * 2

    deep = []
    name, text = only_failure(check_lifetime, op(forward, pb_double), X)
    assert name == "leak"
    assert "memory of it is still alive (something keeps it): the input `x`" in text


def pb_double(ctx, g):
    return 2 * g


def test_a_reference_cycle_is_found_and_the_collector_left_as_it_was():
    def forward(ctx, x):
        y = x * 2
        y_holder = [y]
        y_holder.append(y_holder)
        return y

    name, text = only_failure(check_lifetime, op(forward, pb_double), X)
    assert name == "leak"
    assert "kept by a reference cycle until the garbage collector runs): output 0" in text
    assert gc.isenabled()
    gc.disable()
    try:
        assert check(check_lifetime, pb.sin, X).ok
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_function_that_keeps_its_last_result_is_noted():
    kept = {}

    def model(x):
        kept["last"] = x * 2
        return kept["last"]

    report = check(check_lifetime, model, X)
    assert report.ok
    (note,) = report.notes
    assert note.endswith("closure): output 0, the node MulBackward; only the last call's")


def test_tables_that_are_made_once_are_no_leak():
    @functools.cache
    def table(n):
        return pb.asarray(np.arange(1.0, n + 1))

    def forward(ctx, x):
        ctx.save_for_backward(table=table(x.shape[1]))
        return x * table(x.shape[1])

    assert check(check_lifetime, op(forward, lambda ctx, g: g * ctx.saved_variables.table), X).ok
