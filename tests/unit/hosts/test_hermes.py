"""Hermes: its payload, our block in its YAML, and its user's consent."""

import json

import pytest

from notyet.hosts import host_named
from notyet.hosts.faults import checks_of
from notyet.install.settings import CannotInstall, Entry, SettingsFile, read_settings, settings_of
from notyet.status.facts import HostFacts, SettingsContent

HERMES = host_named("hermes")
SETTINGS = settings_of("hermes")
FILE = SettingsFile(scope="user", path="/h/.hermes/config.yaml", form="yaml")
STOP = {"hook_event_name": "pre_verify", "session_id": "s", "cwd": "/w"}
ENTRY = Entry(event="pre_verify", command="notyet hook --host hermes --timeout 60", timeout=60)
BLOCK = """\
# notyet: begin, written by `notyet install hermes`
hooks:
  pre_verify:
    - command: "notyet hook --host hermes --timeout 60"
      timeout: 60
# notyet: end
"""
# As Hermes writes the file when its user changes a setting: without comments, in long lines' form.
REWRITTEN = """\
a: 1
hooks:
  pre_verify:
  - command: notyet hook --host hermes
      --timeout 60
    timeout: 60
b: 2
"""


@pytest.mark.rule("B4")
def test_the_attempt_tells_whether_a_turn_goes_on():
    extra = {"attempt": 0, "final_response": "Done.", "model": "m"}
    event = HERMES.read_event(STOP | {"extra": extra}, {})
    assert (event.last_message, event.model, event.stop_hook_active) == ("Done.", "m", False)
    event = HERMES.read_event(STOP | {"extra": extra | {"attempt": 2}}, {})
    assert (event.stop_hook_active, event.host_cap) == (True, 4)
    event = HERMES.read_event(STOP | {"extra": {"attempt": True, "final_response": 5}}, {})
    assert (event.last_message, event.stop_hook_active) == (None, None)
    assert HERMES.read_event(STOP | {"extra": 5}, {}).last_message is None
    assert HERMES.read_event(STOP | {"hook_event_name": "on_session_end"}, {}) is None


@pytest.mark.parametrize(
    "before", ["", "a: 1\n", "# mine\na:\n  - b  # c\n\n", "a: 1\r\nb: 2\r\n", "a: 1  # mine"]
)
def test_our_block_comes_at_the_end_and_goes_without_a_trace(before):
    text = SETTINGS.text_with(before, FILE, [ENTRY])
    assert text.startswith(before)
    assert text.rstrip("\n").endswith(BLOCK.rstrip("\n"))
    (ours,) = SETTINGS.registrations(FILE, read_settings(text, FILE))
    assert (ours.event, ours.command, ours.timeout) == (ENTRY.event, ENTRY.command, 60)
    assert SETTINGS.text_with(text, FILE, [ENTRY]) == text
    longer = Entry(event="pre_verify", command="notyet hook --host hermes", timeout=90)
    changed = SETTINGS.text_with(text, FILE, [longer])
    assert "timeout: 90" in changed
    assert SETTINGS.text_without(changed, FILE) == before
    assert SETTINGS.text_without(before, FILE) == before


def test_what_a_person_added_behind_our_block_stays():
    text = f"a: 1\n{BLOCK}b: 2\n"
    assert SETTINGS.text_without(text, FILE) == "a: 1\nb: 2\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hooks:\n  on_session_end:\n    - command: x\n", "`hooks` is there already"),
        ("hooks: 5\n", "`hooks` is there already"),
        ("{a: 1}\n", "nothing can be added at its end"),
        ("a: |\n  x\n...\n", "nothing can be added at its end"),
    ],
)
def test_a_file_that_cannot_take_our_block_is_refused_with_the_line_to_add(text, why):
    with pytest.raises(CannotInstall, match=why) as refused:
        SETTINGS.text_with(text, FILE, [ENTRY])
    line = 'pre_verify: [{"command": "notyet hook --host hermes --timeout 60", "timeout": 60}]'
    assert line in str(refused.value)
    pasted = read_settings(f"hooks:\n  {line}\n", FILE)
    (ours,) = SETTINGS.registrations(FILE, pasted)
    assert SETTINGS.text_with(f"hooks:\n  {line}\n", FILE, [ENTRY]) == f"hooks:\n  {line}\n"
    assert ours.is_hook


@pytest.mark.parametrize(
    ("text", "advice", "followed"),
    [
        ("hooks: {}\n", "replace it by: ", "NEW\n"),
        ("hooks:\n", "replace it by: ", "NEW\n"),
        ("hooks: 5\n", "replace it by: ", "NEW\n"),
        ("hooks:\n  x: []\n", "add this below it, indented: ", "hooks:\n  x: []\n  NEW\n"),
        ("hooks:\n  pre_verify: []\n", "replace its `pre_verify` by: ", "hooks:\n  NEW\n"),
        ("hooks:\n  pre_verify: {a: 1}\n", "replace its `pre_verify` by: ", "hooks:\n  NEW\n"),
        (
            "hooks:\n  pre_verify:\n  - command: x\n",
            "add this item to the list of its `pre_verify`: ",
            "hooks:\n  pre_verify:\n  - command: x\n  NEW\n",
        ),
    ],
)
def test_the_advice_of_a_refusal_can_be_followed_literally(text, advice, followed):
    with pytest.raises(CannotInstall) as refused:
        SETTINGS.text_with(text, FILE, [ENTRY])
    hint = refused.value.mistake.hint
    assert hint.startswith(advice)
    text = followed.replace("NEW", hint.removeprefix(advice))
    assert SETTINGS.text_with(text, FILE, [ENTRY]) == text


@pytest.mark.parametrize(
    "text",
    [
        BLOCK.replace("# notyet: end", "  on_session_end:\n    - command: x\n# notyet: end"),
        REWRITTEN.replace("b: 2\n", "  on_session_end: 5\n"),
        REWRITTEN.replace("b: 2\n", "  on_session_end: []\n"),
        REWRITTEN.replace("    timeout", "    # mine\n    timeout"),
        REWRITTEN.replace("hooks:", "'hooks':"),
    ],
)
def test_our_entry_among_others_is_left_to_the_user(text):
    with pytest.raises(CannotInstall, match="stands among others"):
        SETTINGS.text_without(text, FILE)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (REWRITTEN, "a: 1\nb: 2\n"),
        (REWRITTEN.replace("b: 2", "# mine\nb: 2"), "a: 1\n# mine\nb: 2\n"),
        (REWRITTEN.removesuffix("b: 2\n"), "a: 1\n"),
        (f"hooks:\n  pre_verify: [{{command: {ENTRY.command}}}]", ""),
        (f"a: 1\n{BLOCK}".replace("# notyet: end\n", ""), "a: 1\n"),
    ],
)
def test_our_block_without_its_marks_is_known_by_its_command(text, rest):
    assert SETTINGS.text_without(text, FILE) == rest
    longer = Entry(event="pre_verify", command="notyet hook --host hermes", timeout=90)
    again = SETTINGS.text_with(text, FILE, [longer])
    assert SETTINGS.text_without(again, FILE) == rest


def test_the_user_is_told_to_consent():
    (line,) = SETTINGS.advice(FILE, "/w")
    assert "--accept-hooks" in line


def test_an_entry_without_consent_is_a_fault(tmp_path):
    file = SettingsFile(scope="user", path=str(tmp_path / "config.yaml"), form="yaml")
    allowed = tmp_path / "shell-hooks-allowlist.json"

    def faults(text=BLOCK, **environ):
        document = read_settings(text, file)
        facts = HostFacts(
            host=HERMES,
            cwd="/w",
            environ=environ,
            files=(SettingsContent(file=file, document=document),),
            entries=tuple(SETTINGS.registrations(file, document)),
        )
        return [fault.code for fault in checks_of("hermes").faults(facts)]

    assert faults() == ["hook-untrusted"]
    assert faults(HERMES_ACCEPT_HOOKS="1") == []
    assert faults(f"hooks_auto_accept: true\n{BLOCK}") == []
    assert faults(f"hooks_auto_accept: false\n{BLOCK}") == ["hook-untrusted"]
    for content in ("5", "{", '{"approvals": [5]}', '{"approvals": [{"event": "pre_verify"}]}'):
        allowed.write_text(content)
        assert faults() == ["hook-untrusted"]
    allowed.write_text(
        json.dumps({"approvals": [{"event": ENTRY.event, "command": ENTRY.command}]})
    )
    assert faults() == []
