"""What every test may use."""

import gc

import pytest
from hypothesis import settings

from pullback.arrays import CUPY, Library, cuda_is_available

# The same examples in every run, and none fails for being slow.
settings.register_profile("pullback", deadline=None, derandomize=True, database=None)
settings.load_profile("pullback")


def pytest_collection_finish() -> None:
    """Keep the tests themselves out of every collection that they start."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def cuda() -> Library:
    """The CuPy library; the test is skipped where there is no GPU."""
    if not cuda_is_available():
        pytest.skip("no GPU that CuPy can use")
    return CUPY


@pytest.fixture
def no_collector():
    """Run with the collector off; what is older than the test is no business of it.

    It stays frozen: a collection costs what the tests so far have left, and there are hundreds.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
