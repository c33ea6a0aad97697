"""What the tests of modes share."""

import pytest

import pullback as pb


@pytest.fixture
def modes_as_they_were():
    """Check that recording is on after the test, and switch it on for the next one."""
    yield
    left = pb.is_grad_enabled()
    pb.set_grad_enabled(True)
    assert left
