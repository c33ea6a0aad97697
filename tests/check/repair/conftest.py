import pytest

from pullback.check import repair
from pullback.check.repair import trials


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch):
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(repair, "SECONDS", 60.0)
    monkeypatch.setattr(trials, "_SECONDS", 60.0)
