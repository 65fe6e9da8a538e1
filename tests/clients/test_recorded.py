"""The sessions that the how-to pages show are what the real programs do today."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.conftest import program_or_skip
from clients.recording import PAGES, masked


@pytest.mark.parametrize("name", PAGES)
def test_the_recorded_session_of_a_page_is_what_happens(name):
    page = PAGES[name]
    program = program_or_skip(page.program)
    assert page.recorded(program).splitlines() == page.block().splitlines(), "run: make record"


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash", "/usr/bin/zsh", "/opt/x-1/bin/fish"])
def test_nobody_sees_which_shell_recorded_it(shell):
    assert masked(f"exec {shell} -lc 'true' in /x", Path("/x")) == (
        "exec /bin/bash -lc 'true' in /home/ada"
    )


def test_nobody_sees_whose_python_recorded_it():
    line = "exec /x/y/.venv/bin/python3.12 -I -S /x/notyet/0123456789ab/launch.py hook"
    assert masked(line, Path("/x")) == (
        "exec /home/ada/.local/share/uv/tools/notyet/bin/python -I -S"
        " /home/ada/notyet/9d41c07be2f6/launch.py hook"
    )
