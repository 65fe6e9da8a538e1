"""Asking `codex app-server` which hooks it would run, and what it may do instead of answering."""

import json
import os
import sys
import time
from types import SimpleNamespace

import pytest

from commands import running, until
from notyet.status.faults import codex_server
from notyet.status.faults.codex_server import ListedHook, Listing, list_hooks

READ = "import json, sys, time\nfor line in sys.stdin:\n    message = json.loads(line)\n"
ANSWER = '    print(json.dumps({"id": message.get("id"), "result": %s}), flush=True)\n'


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Run a Codex that is this script, and return what was made of it."""

    def ask(script):
        program = tmp_path / "codex"
        program.write_text(f"#!{sys.executable} -IS\n{script}")
        program.chmod(0o755)
        started = time.monotonic()
        listing = list_hooks(str(program), str(tmp_path), dict(os.environ))
        assert time.monotonic() - started < 20
        return listing

    return ask


def hooks(*listed, **more):
    return READ + ANSWER % json.dumps({"data": [{"hooks": listed} | more]}).replace("true", "True")


def test_hooks_are_listed_with_their_place_and_trust(ask):
    listing = ask(
        hooks(
            {"key": "/h/.codex/hooks.json:stop:0:1", "trustStatus": "trusted", "currentHash": "s"},
            {"key": "/a:b/hooks.json:subagent_stop:2:0", "trustStatus": "new", "enabled": False},
        ).replace("false", "False")
    )
    assert listing == Listing(
        hooks=(
            ListedHook(
                path="/h/.codex/hooks.json",
                event="stop",
                group=0,
                index=1,
                status="trusted",
                hash="s",
            ),
            ListedHook(
                path="/a:b/hooks.json",
                event="subagent_stop",
                group=2,
                index=0,
                status="new",
                is_enabled=False,
            ),
        )
    )


def test_warnings_and_errors_are_told_in_one_line_each(ask):
    error = {"path": "/w", "message": "/c/config.toml:1:3: \x1b[1mno"}
    listing = ask(hooks(warnings=["failed to\n  parse"], errors=[error, "what"]))
    assert listing.warnings == ("failed to parse", "/c/config.toml:1:3: no")
    assert not listing.problem


@pytest.mark.parametrize("key", ["", "plugin", "a:b:c:d", "x:stop:0:-1", 5])
def test_a_hook_without_a_place_in_a_file_is_left_out(ask, key):
    assert ask(hooks({"key": key, "trustStatus": "trusted"})) == Listing()


@pytest.mark.parametrize(
    "result", ["5", "{}", '{"data": []}', '{"data": [5]}', '{"data": {}}', "None"]
)
def test_an_answer_in_other_words_is_a_problem(ask, result):
    said = ask(READ + ANSWER % result).problem
    assert said == "codex app-server answered hooks/list in words that this notyet does not know"


def test_odd_parts_of_an_answer_are_left_out(ask):
    assert ask(READ + ANSWER % '{"data": [{"hooks": [5], "warnings": 5, "errors": None}]}') == (
        Listing()
    )


def test_requests_and_stray_lines_of_the_server_are_left_aside(ask):
    stray = (
        '    print("[1, 2]"); print("{"); print("\\x00")\n'
        '    print(json.dumps({"id": message.get("id"), "method": "ask/user"}))\n'
    )
    assert ask(READ + stray + ANSWER % '{"data": [{}]}') == Listing()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ('{"message": "no such\\nmethod"}', "refused initialize: no such ..."),
        ("5", "refused initialize: without a reason"),
    ],
)
def test_a_refusal_is_told(ask, error, said):
    reply = f'    print(json.dumps({{"id": message["id"], "error": {error}}}), flush=True)\n'
    assert ask(READ + reply).problem == f"codex app-server {said}"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", "ended without an answer"),
        ("import os; os.close(0); os.write(1, b'{')", "ended without an answer"),
        ("while True: print('x' * 100_000)", "said more than an answer can be"),
        ("while True: print('\\n' * 100_000)", "said more than an answer can be"),
    ],
)
def test_a_server_that_is_none_is_a_problem(ask, script, said, monkeypatch):
    monkeypatch.setattr(codex_server, "_MOST_BYTES", 1_000_000)
    # How far it comes depends on how fast it is.
    others = ("ended before it was asked", "did not answer in time")
    assert ask(script).problem in {f"codex app-server {words}" for words in (said, *others)}


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("%simport time; time.sleep(60)", 1),
        ("import signal, time\nsignal.signal(15, signal.SIG_IGN)\n%stime.sleep(60)", 1),
        ("import time\nos.fork()\n%stime.sleep(60)", 2),
    ],
)
def test_a_server_that_hangs_is_ended_with_all_that_it_started(
    ask, tmp_path, monkeypatch, script, count
):
    def in_vain(*_):
        path = tmp_path / "pids"
        assert until(lambda: path.exists() and path.read_text().count("\n") == count)
        return [], [], []

    monkeypatch.setattr(codex_server, "select", SimpleNamespace(select=in_vain))
    note = f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
    assert ask(f"import os\n{script % note}").problem == "codex app-server did not answer in time"
    pids = (tmp_path / "pids").read_text().split()
    assert until(lambda: not any(running(pid) for pid in pids))


def test_a_program_that_cannot_be_started_is_a_problem(tmp_path):
    program = tmp_path / "codex"
    program.write_text("#!/no/such/thing\n")
    program.chmod(0o755)
    for path, folder in ((program, tmp_path), (tmp_path / "none", tmp_path), ("/bin/cat", "/no")):
        said = list_hooks(str(path), str(folder), {}).problem
        assert said == f"{path} app-server could not be started: No such file or directory"
