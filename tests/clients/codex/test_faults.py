"""What keeps Codex from asking us, `notyet status` finds; and what it calls good, Codex asks."""

import json

import pytest

from clients.model.script import Say

FAILING = '[gates.bad]\nrun = "exit 1"\n'


def edit(codex, change):
    known = json.loads(codex.hooks.read_text())
    change(known)
    codex.hooks.write_text(json.dumps(known))


def stop_entry(known):
    return known["hooks"]["Stop"][0]["hooks"][0]


def misspell(known):
    known["hooks"]["stop"] = known["hooks"].pop("Stop")


def another_hook(**fields):
    hook = {"type": "command", "command": "true"} | fields
    return lambda known: known["hooks"].update(PreToolUse=[{"hooks": [hook]}])


def disable(codex):
    """Switch the approved entry off, as the dialog of Codex does."""
    key = next(key for key, hook in codex.seen_hooks()[0].items() if hook["eventName"] == "stop")
    text = codex.config.read_text()
    header = f"[hooks.state.{json.dumps(key)}]\n"
    assert header in text
    codex.config.write_text(text.replace(header, header + "enabled = false\n"))


def without_hooks(codex):
    text = codex.config.read_text()
    codex.config.write_text(text.replace("[features]\n", "[features]\nhooks = false\n"))


FAULTS = {
    "hook-untrusted": lambda c: c.config.write_text(c.config.read_text().split("\n[hooks.")[0]),
    "hook-modified": lambda c: edit(c, lambda k: stop_entry(k).update(statusMessage="gating")),
    "hook-disabled": disable,
    "hooks-disabled": without_hooks,
    "file-invalid": lambda c: c.hooks.write_text(c.hooks.read_text()[:-3]),
    "file-invalid for a key": lambda c: edit(c, lambda k: k.update(version=1)),
    "file-invalid for a type": lambda c: edit(c, another_hook(type="http")),
    "file-invalid for a timeout": lambda c: edit(c, another_hook(timeout=1.5)),
    "entry-changed": lambda c: edit(c, misspell),
    "not-registered": lambda c: c.hooks.unlink(),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_keeps_codex_from_asking_us_is_found_by_status(codex, name):
    codex.gates(FAILING)
    codex.install()
    assert codex.status() == (0, [])
    FAULTS[name](codex)
    code, faults = codex.status()
    assert code == 1
    assert name.split(" ")[0] in faults
    codex.ungated = {"main"}
    ran = codex.run([Say("done")])
    assert ran.text == "done"
    assert codex.stops() == []


def test_what_status_says_of_a_project_is_what_codex_does(codex):
    codex.forget_project()
    codex.gates(FAILING)
    codex.install("--project")
    with_notyet = f"{codex.program.parent}:{codex.path_with_notyet()}"
    code, faults = codex.status(PATH=with_notyet)
    assert (code, faults) == (1, ["project-untrusted"])
    codex.trust_project()
    assert codex.status(PATH=with_notyet) == (0, [])
    codex.run([Say("a"), Say("BLOCKED: b")], PATH=codex.path_with_notyet())
    assert codex.outcomes() == ["blocked", "handed_back"]


def test_what_status_says_of_a_work_tree_is_what_codex_does(codex):
    codex.gates(FAILING)
    codex.install("--project")
    main, codex_path = codex.project, codex.path_with_notyet()
    codex.git("add", "-A")
    codex.git("commit", "-q", "-m", "first")
    codex.git("worktree", "add", "-q", str(codex.folder / "worktree"))
    codex.project = codex.folder / "worktree"
    assert codex.notyet("trust", "--yes").returncode == 0
    assert codex.status(PATH=f"{codex.program.parent}:{codex_path}") == (0, [])
    codex.run([Say("a"), Say("BLOCKED: b")], PATH=codex_path)
    assert codex.outcomes() == ["blocked", "handed_back"]
    assert str(codex.project) not in codex.config.read_text()
    assert str(main) in codex.config.read_text()


def test_status_asks_through_the_installed_line_and_leaves_no_trace(codex):
    codex.gates(FAILING)
    codex.install()
    for _ in range(2):
        assert codex.status() == (0, [])
    assert codex.stops() == []
