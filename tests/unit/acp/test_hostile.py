"""`notyet acp` between a client and an agent that break the protocol, or go at a bad time."""

import subprocess
import sys

import pytest

from acp_editor import AGENT
from notyet.acp.marks import Marks


@pytest.mark.parametrize("stdin", ["/dev/null", "&-"])
def test_a_stdin_that_is_no_pipe_is_refused_in_words(stdin):
    command = f"exec {sys.executable} -m notyet acp -- {sys.executable} {AGENT} <{stdin}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert b"speaks to it over pipes; stdin is closed, or a device" in done.stderr


def test_a_mark_of_another_proxy_stays(tmp_path):
    marks = Marks(str(tmp_path))
    marks.add("s1", "s1")
    (file,) = (tmp_path / "acp").iterdir()
    file.write_text("1\ns1")  # as another proxy writes it that has loaded the session
    marks.remove()
    assert file.exists()
