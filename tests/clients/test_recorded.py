"""The sessions that the how-to pages show are what the real programs do today."""

from __future__ import annotations

import pytest

from clients.conftest import program_or_skip
from clients.recording import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_recorded_session_of_a_page_is_what_happens(name):
    page = PAGES[name]
    program = program_or_skip(page.program)
    assert page.recorded(program).splitlines() == page.block().splitlines(), "run: make record"
