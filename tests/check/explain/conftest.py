import pytest


@pytest.fixture(autouse=True)
def _words_alone(without_repair):
    """What is tested is what the numbers tell."""
