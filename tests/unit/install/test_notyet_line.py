"""Lines that carry our mark are ours; those that only call us may be replaced."""

import json
import shutil
import subprocess

import pytest

from notyet.hosts import host_named
from notyet.install.notyet_line import (
    is_notyets,
    is_notyets_hook,
    notyet_line,
    one_command,
    or_gone,
    plugin_line,
    portable_line,
)

CODEX = host_named("codex")
LAUNCHER = "/h/.local/share/notyet/0123456789ab/launch.py"
GUARDED = f"test -r {LAUNCHER} && test -x /x/python3 && exec /x/python3 -I -S {LAUNCHER}"


@pytest.mark.rule("J8")
@pytest.mark.parametrize(
    ("command", "program", "launcher"),
    [
        ("notyet hook", "notyet", ""),
        ("/x/notyet hook --host claude --timeout 5", "/x/notyet", ""),
        ("'/a b/é/notyet' hook", "/a b/é/notyet", ""),
        ("'/it'\"'\"'s/notyet' hook", "/it's/notyet", ""),
        ("$HOME/bin/notyet hook", "", ""),
        ('"$CLAUDE_PROJECT_DIR"/.venv/bin/notyet hook', "", ""),
        ("A=1 notyet hook", "notyet", ""),
        ("uvx notyet@latest hook", "", ""),
        ("uv tool run 'notyet>=0.1' hook", "", ""),
        ("python3 -m notyet hook", "python3", ""),
        ("/x/python3.12 -I -S /y/notyet/__main__.py hook", "/x/python3.12", ""),
        (f"/x/python3 -I -S {LAUNCHER} hook", "/x/python3", LAUNCHER),
        (f"test -r {LAUNCHER} && exec /x/python3 -I -S {LAUNCHER} hook", "/x/python3", LAUNCHER),
        (f"test -f {LAUNCHER} && exec /x/python3 -I -S {LAUNCHER} hook", "/x/python3", LAUNCHER),
        (f"{GUARDED} hook --host codex", "/x/python3", LAUNCHER),
        (or_gone(f"{GUARDED} hook --host codex", CODEX), "/x/python3", LAUNCHER),
        (or_gone(f"{GUARDED} hook --host vibe", host_named("vibe")), "/x/python3", LAUNCHER),
        (one_command(f"{GUARDED} hook --host codex"), "/x/python3", LAUNCHER),
        (one_command("'/a b/notyet' hook"), "/a b/notyet", ""),
        (portable_line("hook --host codex"), "notyet", ""),
        (plugin_line("hook --via plugin"), "notyet", ""),
        (plugin_line("hook --via plugin", "SessionStart"), "notyet", ""),
    ],
)
def test_a_line_that_only_calls_us_may_be_replaced(command, program, launcher):
    assert is_notyets(command)
    assert is_notyets_hook(command)
    line = notyet_line(command)
    assert (line.program, line.launcher) == (program, launcher)
    assert line.is_portable == command.startswith("sh -c 'command")


@pytest.mark.rule("J8")
@pytest.mark.parametrize(
    "command",
    [
        "./lint.sh && notyet hook --host claude",
        "notyet hook || ./notify.sh",
        "notyet hook > log",
        "notyet hook; notyet hook",
        "sh -c './mine.sh; notyet hook'",
        f"sh -c '{GUARDED} hook' x",
        f"sh -c '{GUARDED} hook' '",
        "A=$(./mine.sh) notyet hook",
        'notyet hook --host "$(./mine.sh)"',
        '"$(which notyet)" hook',
        "`command -v notyet` hook",
        "cd /w && notyet hook",
        "test -r /other && exec notyet hook",
        "./wrapper notyet hook",
        f"{GUARDED} hook || ./mine.sh",
        or_gone(f"{GUARDED} hook", CODEX) + "; ./mine.sh",
        or_gone(f"{GUARDED} hook", CODEX).replace("NOT CHECKED", "it's fine"),
        plugin_line("hook --via plugin") + "; ./mine.sh",
        plugin_line("hook --via plugin; ./mine.sh"),
    ],
)
def test_a_line_that_does_more_is_ours_and_stays_as_it_is(command):
    assert is_notyets(command)
    assert not is_notyets_hook(command)
    assert notyet_line(command).program == ""


@pytest.mark.parametrize(
    "command",
    ["", "lint", "notyet hooks", "notyet-other hook", "my.notyet hook", "notyet check hook"],
)
def test_a_line_without_our_mark_is_not_ours(command):
    assert not is_notyets(command)
    assert notyet_line(command) is None


@pytest.mark.parametrize(
    ("options", "host", "timeout", "config"),
    [
        ("", "", None, ""),
        (" --host claude --timeout 9", "claude", 9.0, ""),
        (" --host=codex --timeout=1.5 --config=/x", "codex", 1.5, "/x"),
        (" --host emacs --timeout never --config $X", "", None, None),
        (" --host", "", None, ""),
        (" --timeout -3 --config '/a b'", "", None, "/a b"),
    ],
)
@pytest.mark.parametrize("line", ["notyet hook{}", "./lint && notyet hook{}; true"])
def test_options_are_read(line, options, host, timeout, config):
    found = notyet_line(line.format(options))
    assert (found.verb, found.host, found.timeout, found.config) == ("hook", host, timeout, config)


@pytest.mark.parametrize("event", ["", "SessionStart"])
def test_a_plugin_s_line_says_where_notyet_is_missing(event, tmp_path):
    line = plugin_line("hook --via plugin --timeout 9", event)
    found = notyet_line(line)
    assert (found.via, found.timeout, notyet_line("notyet hook").via) == ("plugin", 9.0, "")
    for shell in filter(shutil.which, ("sh", "bash", "dash", "zsh", "fish")):
        done = subprocess.run(
            [shutil.which(shell), "-c", line],
            capture_output=True,
            text=True,
            env={"PATH": str(tmp_path)},
        )
        reply = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (0, "")
        assert reply["systemMessage"].startswith("notyet: NOT CHECKED: ")
        assert ("Tell your user" in done.stdout) == bool(event)


def test_copilot_s_agent_is_told_in_its_own_words_where_notyet_is_missing(tmp_path):
    line = plugin_line("hook --via plugin", "SessionStart")
    environ = {"PATH": str(tmp_path), "COPILOT_PROJECT_DIR": "/p"}
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, env=environ)
    assert [*json.loads(done.stdout)] == ["additionalContext"]


def test_the_command_line_of_conclaude_is_ours_and_no_hook():
    line = notyet_line("/x/notyet conclaude Hooks Stop")
    assert line is not None
    assert (line.verb, line.is_plain) == ("conclaude", True)
    assert not is_notyets_hook("/x/notyet conclaude Hooks Stop")
