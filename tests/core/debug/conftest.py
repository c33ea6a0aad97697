"""What holds after every test of anomaly mode."""

import numpy as np
import pytest
from tests.core.debug.detecting import is_detecting, leaf

import pullback as pb


@pytest.fixture(autouse=True)
def modes_as_they_were():
    """Silence NumPy's warnings, and check that every mode has ended."""
    with np.errstate(all="ignore"):
        yield
        assert pb.is_grad_enabled()
        assert not is_detecting()
        assert "traceback" not in leaf(1.0).exp().grad_fn.metadata
