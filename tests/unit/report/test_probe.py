"""The made-up stop: the registered line is run as its host would run it."""

import json
import pwd
import sys

import pytest

from hook_runs import ENTRY
from notyet.status import probe as probing
from status_world import World

SHOW = f'cat > payload; env > variables; exec {sys.executable} -I -S {ENTRY} "$@" < payload'


@pytest.fixture
def world_of(tmp_path, monkeypatch, capsys):
    return lambda host: World(host, tmp_path, monkeypatch, capsys)


def seen(world):
    """Return what the command found: its payload, and its environment."""
    world.program("notyet", SHOW)
    assert world.found() == (0, {})
    lines = (world.project / "variables").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    return json.loads((world.project / "payload").read_text()), variables


def test_claude_code_is_imitated(world_of, monkeypatch):
    world = world_of("claude")
    world.change(lambda value: value.update(env={"FROM": "settings", "NUMBER": 5, "ODD": []}))
    payload, variables = seen(world)
    assert payload["hook_event_name"] == "Stop"
    assert payload["cwd"] == variables["PWD"] == str(world.project)
    assert payload["session_id"] == variables["NOTYET_PROBE"]
    assert variables["CLAUDE_PROJECT_DIR"] == str(world.project)
    assert variables["AI_AGENT"] == "claude-code_2-1-325_agent"
    assert (variables["FROM"], variables["NUMBER"]) == ("settings", "5")
    assert "ODD" not in variables


def test_codex_is_imitated(world_of):
    payload, variables = seen(world_of("codex"))
    assert {"turn_id", "model", "permission_mode"} <= payload.keys()
    assert payload["session_id"] == variables["NOTYET_PROBE"]
    assert "AI_AGENT" not in variables


def test_each_stop_has_a_session_of_its_own(world_of):
    world = world_of("claude")
    assert seen(world)[0]["session_id"] != seen(world)[0]["session_id"]


def test_codex_uses_the_login_shell_whatever_it_is(world_of, monkeypatch):
    world = world_of("codex")
    shell = world.program("myshell", 'echo "$@" > how; exec /bin/sh "$@"')
    entry = pwd.struct_passwd(("me", "x", 0, 0, "", "/", str(shell)))
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: entry)
    assert world.found() == (0, {})
    assert (world.project / "how").read_text().startswith("-c ")


def test_a_user_without_an_account_has_the_plain_shell(monkeypatch):
    def nobody(_uid):
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert probing._login_shell() == "/bin/sh"


def test_an_answer_of_many_lines_is_one_line(world_of):
    world = world_of("claude")
    world.program("notyet", r"""printf '{"systemMessage": "notyet: a\\n\\u001b[1mb"}'""")
    assert world.status()[1]["hosts"][0]["probe"]["says"] == "notyet: a b"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "it ended with exit code 3."),
        ("echo why >&2; exit 3", "it ended with exit code 3: why."),
        ("kill -9 $$", "it ended with exit code 137"),
        ("echo what >&2", "it answered nothing: what."),
        ("echo '[1]'", "its answer is not notyet's: [1]."),
        ('echo \'{"decision": "block"}\'', 'its answer is not notyet\'s: {"decision": "block"}.'),
        ("printf '[%0100000d' 1", "its answer is not notyet's: "),
    ],
)
def test_no_answer_is_told_with_its_reason(world_of, script, said):
    world = world_of("claude")
    world.program("notyet", script)
    code, found = world.found()
    assert code == 1
    assert said in found["no-reply"]["what"]
    assert len(found["no-reply"]["what"]) < 400


def test_a_line_without_a_shell_is_told_by_its_signal(world_of):
    world = world_of("claude")
    world.each_entry(args=["hook"], command=str(world.program("notyet", "kill -9 $$")), timeout=600)
    assert "it ended with signal 9." in world.found()[1]["no-reply"]["what"]


def test_a_shell_that_is_gone_is_told(world_of, monkeypatch):
    world = world_of("codex")
    monkeypatch.setattr(probing, "_login_shell", lambda: "/no/such/shell")
    assert "it could not be started: " in world.found()[1]["no-reply"]["what"]
