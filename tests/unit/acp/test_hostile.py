"""`notyet acp` between a client and an agent that break the protocol, or go at a bad time."""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from acp_editor import AGENT
from notyet.acp.marks import Marks
from support import wait_for


def test_a_client_that_dies_while_its_agent_reads_nothing_leaves_nothing_behind(edit, project):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    agent = int(session.rpartition("-")[2])
    editor.send(method="_lose", params={})

    def flood():
        with suppress(OSError, ValueError):
            editor.send(method="x", params={"x": "y" * 10_000_000})

    threading.Thread(target=flood, daemon=True).start()
    time.sleep(1)  # by then the proxy reads no more
    descriptor = editor.process.stdin.fileno()
    os.set_blocking(descriptor, False)  # so that the thread gives up
    time.sleep(0.2)
    os.close(descriptor)
    assert editor.process.wait(20) == 0
    wait_for(lambda: not os.path.exists(f"/proc/{agent}"))


@pytest.mark.parametrize("stdin", ["/dev/null", "&-"])
def test_a_stdin_that_is_no_pipe_is_refused_in_words(stdin):
    command = f"exec {sys.executable} -m notyet acp -- {sys.executable} {AGENT} <{stdin}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert b"speaks to it over pipes; stdin is closed, or a device" in done.stderr


def test_an_untrusted_file_beside_gates_that_run_is_said_once(edit, project, stops, tmp_path):
    config = tmp_path / "config"
    (config / "notyet").mkdir(parents=True)
    (config / "notyet" / "notyet.toml").write_text('[gates.mine]\nrun = "true"\nwhen = "always"\n')
    editor = edit(environ={"XDG_CONFIG_HOME": str(config)})
    session = editor.new(project.gate("exit 1", trusted=False).folder)
    editor.ask(session, "go")
    editor.ask(session, "go on")
    assert editor.text().count("notyet.toml is not trusted; run: notyet trust") == 1


def test_a_mark_of_another_proxy_stays(tmp_path):
    marks = Marks(str(tmp_path))
    marks.add("s1", "s1")
    (file,) = (tmp_path / "acp").iterdir()
    file.write_text("1\ns1")  # as another proxy writes it that has loaded the session
    marks.remove()
    assert file.exists()
