"""How faults are planted for the tests of `notyet status`: one function each, in a list."""

import pytest

from notyet.status.faults.fault import CODES

PLANTED = []


def plants(code, *hosts, level=None):
    """Register a function that plants one fault into a host's world."""

    def register(plant):
        for host in hosts or ("claude", "codex"):
            name = f"{host} {code} {plant.__name__}"
            PLANTED.append(pytest.param(host, plant, code, level or CODES[code], id=name))
        return plant

    return register
