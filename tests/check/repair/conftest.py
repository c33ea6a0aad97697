import pytest

from pullback.check.repair import search


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch):
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(search, "SECONDS", 60.0)
