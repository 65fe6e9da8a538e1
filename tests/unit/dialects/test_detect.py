"""Which host wrote a payload."""

import pytest

from notyet.hosts.detect import detect
from wire import name_of, vectors


@pytest.mark.rule("G6")
@pytest.mark.parametrize("vector", vectors("payloads", "hosts.json"), ids=name_of)
def test_the_payload_tells_the_host(vector):
    assert detect(vector["payload"]) == vector["host"]
