"""Every operation that torch has too, on torch's own samples: values, both derivatives."""

import pytest
from tests.peers import op_db
from tests.peers._op_db_skips import (
    CALLS,
    POSITIONAL,
    SKIPS,
    SPELLINGS,
    UNDETERMINED,
)

pytestmark = pytest.mark.peers

FOUND = [name for name in op_db.INFOS if op_db.find(name)]
TESTED = [name for name in FOUND if name not in SKIPS]


def dtypes_of(name):
    """Return the dtypes to run an operation in: integers only where there is nothing else."""
    found = [d for d in ("float64", "complex128") if op_db.supports(name, d)]
    return found or ["int64"]


def check(name, inplace=False):
    """Run the samples of an operation, and see that what the table skips has to be skipped."""
    met, failures, count = {}, [], 0
    for dtype in dtypes_of(name):
        for call in op_db.calls(name, dtype, inplace, met):
            count += 1
            failures += complaints(call, inplace)
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)
    assert count
    mine = {key for key in op_db.parts_of(name) if ("in place" in key) == inplace}
    assert {key for key in mine if key in met and complaints(met[key], inplace)} == mine


def complaints(call, inplace):
    try:
        op_db.compare(call, inplace)
    except Exception as error:
        return [f"{call}: {type(error).__name__}: {error}"]
    return []


@pytest.mark.parametrize("name", TESTED)
def test_torchs_samples_give_the_same_values_and_derivatives(name):
    check(name)


# A tensor keeps its shape: those methods raise, see tests/ops/test_inplace.py.
KEEP_THEIR_SHAPE = {"squeeze", "squeeze.multiple", "t", "transpose", "unsqueeze"}
IN_PLACE = [n for n in TESTED if op_db.find_inplace(n) and n not in KEEP_THEIR_SHAPE]


@pytest.mark.parametrize("name", IN_PLACE)
def test_torchs_samples_agree_in_place(name):
    check(name, inplace=True)


@pytest.mark.parametrize("name", [name for name in FOUND if name in SKIPS])
def test_an_operation_that_is_skipped_does_not_agree(name):
    found = [c for d in dtypes_of(name) for c in op_db.calls(name, d, False, {})]
    assert any(complaints(call, False) for call in found)


def test_every_operation_of_torch_is_tested_or_skipped_with_a_reason_or_not_in_pullback():
    missing = [name for name in op_db.INFOS if not op_db.find(name)]
    whole = [name for name in SKIPS if ": " not in name]
    print(
        f"{len(TESTED)} of torch's operations tested, {len(IN_PLACE)} of them in place too, "
        f"{len(whole)} skipped, {len(missing)} not in pullback"
    )
    assert len(TESTED) + len(whole) + len(missing) == len(op_db.INFOS)
    assert set(whole) <= set(FOUND)
    assert {key.partition(": ")[0] for key in SKIPS} <= set(FOUND)
    assert {*CALLS, *POSITIONAL, *UNDETERMINED} <= set(TESTED)


def test_every_other_spelling_is_needed():
    assert set(SPELLINGS) <= set(op_db.INFOS)
    assert all(path == "" or op_db.resolve(path) for path in SPELLINGS.values())
