"""The sessions that the how-to pages show are what the real programs do today."""

from __future__ import annotations

import pytest

from clients.conftest import program_or_skip
from clients.recording import PAGES

_ALWAYS = ("claude-code", "codex", "copilot", "gemini")  # the others need FULL=1
_NAMES = [pytest.param(name, marks=() if name in _ALWAYS else pytest.mark.full) for name in PAGES]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", _NAMES)
def test_the_recorded_session_of_a_page_is_what_happens(page):
    recorded = PAGES[page].recorded(program_or_skip(PAGES[page].program))
    assert recorded.splitlines() == PAGES[page].block().splitlines(), "run: make record"
