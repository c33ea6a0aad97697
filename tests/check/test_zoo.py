"""The zoo through the checker: every wrong backward is caught, no right one is accused."""

import importlib.util
import os
import re

import numpy as np
import pytest
from tests.check._entries import as_pullback
from tests.check.zoo import RIGHT, WRONG

from pullback.check import check_op

# Entries that are reported with another cause than expected, with that cause, and why it is
# no better than a near miss. At most a tenth of the zoo may stand here.
OTHER_CAUSES: dict[str, str] = {}


# Entries of which nothing can be measured: without elements, and lost in the rounding of forward.
UNMEASURED = {"empty square", "sum of nothing", "matmul of nothing"}
UNMEASURED |= {"square of 1e-150", "slope of 1e-12"}


def every(entries):
    return pytest.mark.parametrize("entry", entries, ids=str)


def a_third_of(entries):
    """Each third entry; the others under stress, where all of them have several seeds."""
    marks = [
        pytest.param(e, marks=[pytest.mark.stress] if k % 3 else []) for k, e in enumerate(entries)
    ]
    return pytest.mark.parametrize("entry", marks, ids=str)


def report_of(entry, seed=0, **options):
    inputs = entry.inputs(np.random.default_rng(seed))
    options = {"seed": seed, "raise_exception": False, "repair": False, **entry.options, **options}
    return check_op(as_pullback(entry), *inputs, **options)


def test_the_zoo_is_large_and_half_of_the_wrong_ones_were_reported_somewhere():
    assert (len({e.name for e in WRONG}), len({e.name for e in RIGHT})) == (len(WRONG), len(RIGHT))
    assert min(len(WRONG), len(RIGHT)) >= 60
    sources = [entry.source for entry in WRONG if entry.source]
    assert len(sources) * 2 >= len(WRONG)
    assert all(re.fullmatch(r"https://github\.com/\S+/(issues|pull)/\d+", s) for s in sources)


@every(WRONG)
def test_a_wrong_backward_is_caught_and_its_cause_named(entry):
    report = report_of(entry)
    assert report.outcome == "wrong"
    expected = OTHER_CAUSES.get(entry.name, entry.cause)
    assert report.failures[0].cause.name == expected, str(report)
    words = entry.words if expected == entry.cause else ()
    assert [word for word in words if word.lower() not in str(report).lower()] == []


def test_at_least_nine_of_ten_causes_are_the_right_ones():
    assert len(OTHER_CAUSES) <= len(WRONG) / 10


@a_third_of(RIGHT)
def test_a_right_backward_is_called_right(entry):
    report = report_of(entry)
    assert report.outcome == ("not checked" if entry.name in UNMEASURED else "right"), str(report)


# ZOO_SEEDS=100 takes about 20 minutes.
SEEDS = int(os.environ.get("ZOO_SEEDS", "8"))


@pytest.mark.stress
@every([*RIGHT, *WRONG])
def test_the_outcome_is_the_same_with_any_seed(entry):
    for seed in range(6 if entry.cause else SEEDS):
        report = report_of(entry, seed)
        assert bool(report.failures) == bool(entry.cause), str(report)


def test_the_fast_check_catches_what_shows_in_first_derivatives():
    missed = [entry.name for entry in WRONG if not report_of(entry, fast=True).failures]
    others = {"layout", "state", "second-order", "needs-input-grad", "zero-grad", "size"}
    others |= {"same-tensor", "ties", "leak", "raised", "cancellation", "precision", "mutation"}
    assert [e.name for e in WRONG if e.name in missed and e.cause not in others] == []


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.peers
def test_the_table_of_the_documents_is_what_both_checkers_catch():
    from tests.check import zoo_table

    assert zoo_table.PAGE.read_text() == zoo_table.page()
