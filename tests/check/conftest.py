"""What the tests of the checker share."""

import pytest

from pullback.check.parts import mended


@pytest.fixture
def without_mending(monkeypatch):
    """No changes of the source are sought: they take long where there are none."""
    monkeypatch.setattr(mended, "_found", lambda evidence, wrong: [])
