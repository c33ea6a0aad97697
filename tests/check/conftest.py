"""What the tests of the checker share."""

import pytest

from pullback.check import repair


@pytest.fixture
def without_repair(monkeypatch):
    """No changes of the source are sought: they take long where there are none."""
    monkeypatch.setattr(repair, "_repairs", lambda *arguments: {})
