"""What the tests of the checker share."""

import pytest

from pullback.check.properties import failing


@pytest.fixture
def without_repair(monkeypatch):
    """No changes of the source are sought: they take long where there are none."""
    monkeypatch.setattr(failing, "_repairs", lambda *arguments: {})
