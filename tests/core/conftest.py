"""What the tests of core share."""

import gc

import pytest


@pytest.fixture
def no_collector():
    """Run with the collector off; what is older than the test is no business of it."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()
