"""What the tests of core share."""

import gc

import pytest


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
