"""Promotion is PyTorch's."""

import importlib
import itertools

import pytest

from pullback.arrays import DTYPES, promote, promote_scalar

pytestmark = pytest.mark.peers

# PyTorch promotes the wider unsigned dtypes with nothing, and has a complex dtype of halves.
NAMES = [name for name in DTYPES if name not in ("uint16", "uint32", "uint64")]


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_two_arrays_promote_as_in_pytorch(torch, a, b):
    expected = str(torch.promote_types(getattr(torch, a), getattr(torch, b)))
    assert f"torch.{promote(DTYPES[a], DTYPES[b]).name}" == expected


@pytest.mark.parametrize("scalar", [True, 2, 2.0, 2j])
@pytest.mark.parametrize("name", NAMES)
def test_an_array_and_a_number_promote_as_in_pytorch(torch, name, scalar):
    expected = str(torch.result_type(torch.ones(2, dtype=getattr(torch, name)), scalar))
    got = promote_scalar(DTYPES[name], scalar).name
    assert f"torch.{got}" == expected.replace("complex32", "complex64")
