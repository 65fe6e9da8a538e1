"""OpenHands: the answer in the folder of its conversation, and the two forms of its settings."""

import json

import pytest

from notyet.hosts import host_named
from notyet.install.settings import CannotInstall, SettingsFile, settings_of

SESSION = "951324f3-5bde-493a-8371-aaf3a32ebcdd"
MESSAGE = {
    "source": "agent",
    "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "A message."}]},
    "kind": "MessageEvent",
}
FINISHED = {"source": "agent", "action": {"message": "Finished.", "kind": "FinishAction"}}
ACTED = {"source": "agent", "action": {"command": "ls", "kind": "TerminalAction"}}
HOOK = {"source": "hook", "kind": "HookExecutionEvent"}
FEEDBACK = {"source": "environment", "llm_message": {"role": "user", "content": []}}
SETTINGS = settings_of("openhands")
FILE = SettingsFile(scope="user", path="/h/.openhands/hooks.json")
THEIRS = [{"hooks": [{"type": "command", "command": "./lint.sh"}]}]
LIKEWISE = ", and those of other events likewise"


def stop_of(environ, session=SESSION):
    payload = {
        "event_type": "Stop",
        "session_id": session,
        "working_dir": "/w",
        "metadata": {"reason": "agent_finished"},
    }
    return host_named("openhands").read_event(payload, environ)


def keep(folder, *events):
    """Write events as OpenHands does: a file each, without blanks."""
    folder = folder / SESSION.replace("-", "") / "events"
    folder.mkdir(parents=True)
    for number, event in enumerate(events):
        text = event if isinstance(event, str) else json.dumps(event, separators=(",", ":"))
        (folder / f"event-{number:05}-x.json").write_text(text)


@pytest.mark.parametrize(
    ("events", "answer"),
    [
        ([MESSAGE], "A message."),
        ([MESSAGE, HOOK, FEEDBACK, FINISHED], "Finished."),
        ([FINISHED, FEEDBACK, ACTED, MESSAGE, HOOK], "A message."),
        ([ACTED, HOOK], None),
        (['{"source":"agent",', '["source":"agent"]', '"source":"agent"'], None),
        ([], None),
    ],
)
def test_the_answer_is_the_last_that_the_agent_said(tmp_path, events, answer):
    keep(tmp_path / ".openhands" / "conversations", *events)
    assert stop_of({"HOME": str(tmp_path)}).last_message == answer


def test_a_variable_may_name_the_folder_of_conversations(tmp_path):
    keep(tmp_path, MESSAGE)
    environ = {"HOME": "/nowhere", "OPENHANDS_CONVERSATIONS_DIR": str(tmp_path)}
    assert stop_of(environ).last_message == "A message."


@pytest.mark.parametrize("session", ["../../x", "a/b", "\0", "x" * 5000])
def test_a_session_without_a_folder_has_no_answer(tmp_path, session):
    assert stop_of({"HOME": str(tmp_path)}, session).last_message is None


def installed(value):
    """Return the file's value after an installation."""
    entries = SETTINGS.entries("notyet", 600)
    return json.loads(SETTINGS.text_with(json.dumps(value, indent=2), FILE, entries))


def refused(value, how):
    with pytest.raises(CannotInstall) as found:
        how(value)
    return found.value.mistake


def checked(value):
    SETTINGS.check(json.dumps(value, indent=2), FILE)


@pytest.mark.parametrize(
    ("value", "line", "message", "wanted"),
    [
        (
            {"hooks": {}, "stop": THEIRS},
            3,
            "ignores `stop` beside `hooks`, where notyet's belong",
            "Stop",
        ),
        (
            {"PreToolUse": THEIRS, "hooks": {}},
            2,
            "ignores `PreToolUse` beside `hooks`, where notyet's belong",
            "PreToolUse",
        ),
        (
            {"hooks": {"Stop": [], "stop": []}},
            4,
            "does not load a file that has both `hooks.stop` and `hooks.Stop`",
            "Stop",
        ),
        (
            {"session_start": [], "SessionStart": []},
            2,
            "does not load a file that has both `session_start` and `SessionStart`",
            "SessionStart",
        ),
    ],
)
def test_a_file_that_mixes_the_two_forms_of_events_is_refused(value, line, message, wanted):
    mistake = refused(value, checked)
    assert mistake == refused(value, installed)
    assert (mistake.line, mistake.message) == (line, f"OpenHands {message}")
    assert mistake.hint == f"move its hooks to `hooks.{wanted}`{LIKEWISE}"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"stop": THEIRS}, "stop"),
        ({"pre_tool_use": THEIRS}, "pre_tool_use"),
        ({"PostToolUse": THEIRS}, "PostToolUse"),
        ({"hooks": {"stop": THEIRS}}, "hooks.stop"),
        ({"hooks": {"session_start": THEIRS}}, "hooks.session_start"),
    ],
)
def test_a_valid_file_that_our_entries_would_mix_is_refused_by_install_only(value, path):
    checked(value)
    mistake = refused(value, installed)
    assert f"`{path}`" in mistake.message
    assert mistake.line == (3 if "hooks" in value else 2)
    assert mistake.hint.startswith("move its hooks to `hooks.")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"hooks": {"Stop": THEIRS}},
        {"hooks": {"pre_tool_use": THEIRS, "PostToolUse": THEIRS}},
        {"$schema": "x", "hooks": {}},
    ],
)
def test_a_file_of_our_form_is_added_to(value):
    checked(value)
    hooks = installed(value)["hooks"]
    before = value.get("hooks", {})
    assert hooks.keys() == before.keys() | {"Stop", "SessionStart"}
    assert all(hooks[event][: len(groups)] == groups for event, groups in before.items())


def test_hooks_that_are_no_table_are_not_added_to():
    checked({"hooks": 5})
    assert "is not a table" in refused({"hooks": 5}, installed).message
