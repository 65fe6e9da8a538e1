import shutil

import pytest

from commands import Clock
from scripts_there import SHELLS


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture(params=SHELLS)
def shell(request):
    if shutil.which(SHELLS[request.param][0]) is None:
        pytest.skip(f"there is no {request.param}")
    return SHELLS[request.param]
