import pytest


@pytest.fixture(scope="module")
def _kept(sshd):
    with sshd.as_box():
        yield sshd


@pytest.fixture
def kept_box(_kept, monkeypatch):
    """The sshd as `box`, over one connection for all tests of a module: most are not about it."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    for name, value in _kept.environ.items():
        monkeypatch.setenv(name, value)
    return _kept
