import pytest

from commands import Clock


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)
