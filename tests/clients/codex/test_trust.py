"""Codex runs only hooks that were approved: what `install --trust` writes is what it checks."""

import json
import shutil

import pytest

from clients.codex.driver import BYPASS
from clients.model.script import Say
from notyet.hosts.codex.trust import hash_of, key

ONCE = '[gates.once]\nrun = "test -e fixed || { touch fixed; exit 1; }"\n'
EVENTS = {"sessionStart", "subagentStart", "subagentStop", "stop"}


def test_the_hash_that_install_writes_is_the_one_that_codex_computes(codex):
    codex.gates(ONCE)
    codex.install()
    hooks, warnings = codex.seen_hooks()
    assert not warnings
    assert {hook["eventName"] for hook in hooks.values()} == EVENTS
    assert {hook["trustStatus"] for hook in hooks.values()} == {"trusted"}
    assert all(hook["enabled"] for hook in hooks.values())
    written = codex.settings()["hooks"]["state"]
    assert {key: state["trusted_hash"] for key, state in written.items()} == {
        key: hook["currentHash"] for key, hook in hooks.items()
    }
    ran = codex.run([Say("first"), Say("second")])
    assert ran.text == "second"
    assert codex.outcomes() == ["blocked", "passed"]


def test_an_unapproved_hook_is_skipped_without_a_word(codex):
    codex.gates(ONCE)
    codex.install_unapproved()
    hooks, _ = codex.seen_hooks()
    assert {hook["trustStatus"] for hook in hooks.values()} == {"untrusted"}
    codex.ungated = {"unseen"}
    ran = codex.run({"unseen": [Say("done")]}, "[actor: unseen] do it")
    assert (ran.code, ran.text) == (0, "done")
    assert "hook" not in ran.err.replace(str(codex.folder), "")
    assert codex.stops() == []
    codex.run([Say("first"), Say("second")], args=(BYPASS,))
    assert codex.outcomes() == ["blocked", "passed"]


def test_an_entry_that_was_edited_is_skipped_until_it_is_installed_again(codex):
    codex.gates(ONCE)
    codex.install()
    before = codex.hooks.read_text()
    known = json.loads(before)
    known["hooks"]["Stop"][0]["hooks"][0]["timeout"] -= 1
    codex.hooks.write_text(json.dumps(known, indent=2))
    hooks, _ = codex.seen_hooks()
    states = {hook["eventName"]: hook["trustStatus"] for hook in hooks.values()}
    assert states == dict.fromkeys(EVENTS, "trusted") | {"stop": "modified"}
    codex.ungated = {"unseen"}
    codex.run({"unseen": [Say("done")]}, "[actor: unseen] do it")
    assert codex.stops() == []
    codex.install()
    assert json.loads(codex.hooks.read_text()) == json.loads(before)
    codex.run([Say("first"), Say("second")])
    assert codex.outcomes() == ["blocked", "passed"]


def test_hooks_that_were_approved_before_stay_approved(codex):
    theirs = {"type": "command", "command": "cat > seen.json", "timeout": 5}
    codex.hooks.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [theirs]}]}}, indent=1))
    ((key, hook),) = codex.seen_hooks()[0].items()
    codex.configure(**{"hooks.state": {key: {"trusted_hash": hook["currentHash"]}}})
    codex.gates(ONCE)
    codex.install()
    hooks, _ = codex.seen_hooks()
    assert len(hooks) == 5
    assert hooks[key]["command"] == theirs["command"]
    assert {hook["trustStatus"] for hook in hooks.values()} == {"trusted"}
    ran = codex.run([Say("first"), Say("second")])
    assert ran.err.count("hook: Stop Blocked") == 1
    assert ran.err.count("hook: Stop Completed") == 3  # theirs twice, ours once
    assert json.loads((codex.project / "seen.json").read_text())["stop_hook_active"] is True
    codex.uninstall()
    assert [hook["trustStatus"] for hook in codex.seen_hooks()[0].values()] == ["trusted"]


@pytest.mark.parametrize("scope", ["--user", "--project"])
def test_hooks_that_shift_stay_approved_and_switched_off(codex, scope):
    """Ours stand before theirs, and twice, so that installing and uninstalling move theirs."""
    path = codex.hooks
    if scope == "--project":
        path = codex.project / ".codex" / "hooks.json"
        path.parent.mkdir()
    ours, mine, yours = (
        {"hooks": [{"type": "command", "command": command}]}
        for command in ("/old/notyet hook", "mine", "yours")
    )
    block = {"hooks": {"Stop": [ours, ours, mine, yours], "SubagentStop": [ours, mine]}}
    path.write_text(json.dumps(block, indent=1))
    known = {
        name: {"trusted_hash": hook["currentHash"], "enabled": hook["command"] != "yours"}
        for name, hook in codex.seen_hooks()[0].items()
    }
    assert len(known) == 6
    codex.configure(**{"hooks.state": known})
    expected = {"mine": (True, "trusted"), "yours": (False, "trusted")}
    codex.gates(ONCE)

    def of_theirs():
        hooks = codex.seen_hooks()[0].values()
        theirs = [hook for hook in hooks if "notyet" not in hook["command"]]
        assert len(theirs) == 3
        return {hook["command"]: (hook["enabled"], hook["trustStatus"]) for hook in theirs}

    assert of_theirs() == expected
    codex.install_unapproved(scope)
    assert len(json.loads(path.read_text())["hooks"]["Stop"]) == 3
    assert of_theirs() == expected
    codex.uninstall(scope)
    assert json.loads(path.read_text())["hooks"] == {"Stop": [mine, yours], "SubagentStop": [mine]}
    assert of_theirs() == expected
    assert len(codex.settings()["hooks"]["state"]) == 3


def test_a_home_that_is_written_oddly_is_approved_as_codex_names_it(codex):
    (codex.home / "x").mkdir()
    home = f"{codex.home.parent}//./{codex.home.name}/x/../"
    done = codex.notyet("install", "codex", "--yes", "--trust", HOME=home)
    assert done.returncode == 0, done.stderr
    assert {hook["trustStatus"] for hook in codex.seen_hooks()[0].values()} == {"trusted"}


def test_uninstalling_takes_everything_back(codex):
    before = codex.config.read_bytes()
    codex.gates(ONCE)
    codex.install()
    assert codex.config.read_bytes() != before
    codex.uninstall()
    assert codex.config.read_bytes() == before
    assert not codex.hooks.exists()
    assert codex.seen_hooks() == ({}, [])
    codex.ungated = {"main"}
    ran = codex.run([Say("done")])
    assert "hook" not in ran.err.replace(str(codex.folder), "")


def test_a_home_with_its_hooks_in_config_toml_gets_ours_there(codex):
    with codex.config.open("a") as file:
        file.write('\n# mine\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\n')
        file.write('command = "true"\n')
    codex.gates(ONCE)
    codex.install()
    assert not codex.hooks.exists()
    assert "# mine" in codex.config.read_text()
    hooks, warnings = codex.seen_hooks()
    assert not warnings
    ours = [hook for hook in hooks.values() if "notyet" in hook["command"]]
    assert len(hooks) == 5
    assert {hook["eventName"] for hook in ours} == EVENTS
    assert {hook["trustStatus"] for hook in ours} == {"trusted"}
    codex.run([Say("first"), Say("second")])
    assert codex.outcomes() == ["blocked", "passed"]


@pytest.mark.parametrize("trusted", [True, False])
def test_hooks_of_a_project_run_only_where_codex_trusts_the_project(codex, trusted):
    codex.forget_project()
    if trusted:
        codex.trust_project()
    codex.gates(ONCE)
    codex.install("--project")
    assert (codex.project / ".codex" / "hooks.json").exists()
    hooks, _ = codex.seen_hooks()
    # With danger-full-access, `codex exec` would trust the project by itself.
    careful = ("-s", "read-only", BYPASS)
    if trusted:
        assert {hook["trustStatus"] for hook in hooks.values()} == {"trusted"}
        codex.run([Say("first"), Say("second")], args=careful, PATH=codex.path_with_notyet())
        assert codex.outcomes() == ["blocked", "passed"]
    else:
        assert hooks == {}
        codex.ungated = {"main"}
        codex.run([Say("done")], args=careful, PATH=codex.path_with_notyet())
        assert codex.stops() == []


def test_the_line_for_a_project_does_nothing_where_notyet_is_missing(codex):
    codex.gates(ONCE)
    codex.install("--project")
    assert shutil.which("notyet", path=codex.environ["PATH"]) is None
    codex.ungated = {"unseen"}
    ran = codex.run({"unseen": [Say("done")]}, "[actor: unseen] do it")
    assert ran.text == "done"
    assert "hook: Stop Completed" in ran.err
    assert "Failed" not in ran.err
    assert codex.stops() == []
    codex.run([Say("first"), Say("second")], PATH=codex.path_with_notyet())
    assert codex.outcomes() == ["blocked", "passed"]


HANDLERS = [
    {},
    {"timeout": 0},
    {"timeout": 1},
    {"timeout": 2},
    {"timeout": 100_000},
    {"async": True},
    {"async": False, "timeout": 600},
    {"statusMessage": ""},
    {"statusMessage": "Checking \u2026 \U0001f600"},
    {"additionalContextLimit": 5},
    {"commandWindows": "echo windows"},
    {"strange": 1},
    {"command": "echo '\u00e4' \"x\" \\ </a> & \u2028\u007f\t\u0001 $HOME"},
    {"command": " padded "},
]
MATCHERS = [None, "", "*", "a|b", "^(x)\u00e4$"]
EVERY_EVENT = [
    *("Stop", "SubagentStop", "SessionStart", "SubagentStart", "SessionEnd"),
    *("UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest"),
    *("PreCompact", "PostCompact"),
]


def test_our_hash_is_that_of_codex_for_entries_of_every_kind(codex):
    groups = [{"hooks": [{"type": "command", "command": "echo"} | more]} for more in HANDLERS]
    groups += [
        {"matcher": matcher, "hooks": [{"type": "command", "command": "echo"}]}
        for matcher in MATCHERS
    ]
    codex.hooks.write_text(json.dumps({"hooks": dict.fromkeys(EVERY_EVENT, groups)}))
    hooks, _ = codex.seen_hooks()
    ours = {
        key(str(codex.hooks), event, n, 0): hash_of(event, group["hooks"][0], group.get("matcher"))
        for event in EVERY_EVENT
        for n, group in enumerate(groups)
    }
    theirs = {name: hook["currentHash"] for name, hook in hooks.items()}
    assert {name: ours[name] for name in theirs if ours[name] != theirs[name]} == {}
    assert ours.keys() == theirs.keys()
