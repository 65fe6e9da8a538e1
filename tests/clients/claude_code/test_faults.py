"""What silently keeps Claude Code from asking us: `notyet status` finds it, and it is really so."""

from __future__ import annotations

import json
import subprocess

import pytest

from clients.model.script import Run, Say
from clients.world import NOTYET

newest = pytest.mark.parametrize("claude", ["claude-2.1.325"], indirect=True)
READY = '[gates]\nready = "test -e ready"\n'
LEARNS = [Say("Done."), Run("touch ready"), Say("Now it is.")]


def status(claude, **environ):
    """Return the exit code of `notyet status`, and the faults that it found."""
    return found(claude.notyet("status", "claude", "--json", **{"PATH": path(claude)} | environ))


def status_in(claude, folder):
    """Return the same for another folder than the project."""
    return found(
        subprocess.run(
            [str(NOTYET), "status", "claude", "--json"],
            cwd=folder,
            env=claude.environ | {"PATH": path(claude)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    )


def path(claude):
    return f"{claude.program.parent}:{NOTYET.parent}:{claude.environ['PATH']}"


def found(done):
    said = json.loads(done.stdout)
    faults = [fault for part in (said, *said["hosts"]) for fault in part["faults"]]
    return done.returncode, [fault["code"] for fault in faults if fault["level"] == "fault"]


def edit(change):
    def edited(claude):
        known = json.loads(claude.settings.read_text())
        change(known["hooks"])
        claude.settings.write_text(json.dumps(known))

    return edited


def entry(hooks):
    return hooks["Stop"][0]["hooks"][0]


def cut(claude):
    claude.settings.write_text(claude.settings.read_text()[:-3])


def comment(claude):
    claude.settings.write_text("// mine\n" + claude.settings.read_text())


def of_a_program_that_is_gone(hooks):
    entry(hooks)["command"] = "/gone/bin/notyet hook --host claude --timeout 1800"


FAULTS = {
    "not-registered": lambda claude: claude.settings.unlink(),
    "partly-registered": edit(lambda hooks: hooks.pop("Stop")),
    "entry-changed for its event": edit(lambda hooks: hooks.update(stop=hooks.pop("Stop"))),
    "file-invalid": cut,
    "file-invalid for a comment": comment,
    "hooks-disabled": lambda claude: claude.settings.write_text(
        claude.settings.read_text().replace("{", '{"disableAllHooks": true,', 1)
    ),
    "entry-changed": edit(lambda hooks: entry(hooks).update(timeout="1800")),
    "entry-changed for its type": edit(lambda hooks: entry(hooks).pop("type")),
    "entry-changed for its shell": edit(lambda hooks: entry(hooks).update({"shell": "zsh"})),
    "entry-changed for its matcher": edit(lambda hooks: hooks["Stop"][0].update(matcher=5)),
    "hooks-disabled by a variable": lambda c: c.change_settings(env={"CLAUDE_CODE_SIMPLE": "1"}),
    "entry-changed for an if": edit(lambda hooks: entry(hooks).update({"if": "Bash(ls)"})),
    "entry-changed for async": edit(lambda hooks: entry(hooks).update({"async": True})),
    "program-missing": edit(of_a_program_that_is_gone),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_keeps_claude_code_from_asking_us_is_found_by_status(claude, name):
    claude.gates(READY)
    claude.install()
    FAULTS[name](claude)
    code, faults = status(claude)
    assert code == 1
    assert name.split(" ")[0] in faults
    ran = claude.run([Say("Done.")])
    assert (ran.text, len(ran.model.requests)) == ("Done.", 1)  # it was not sent back
    claude.ungated = {"main"}
    # An async hook runs, but Claude Code does not wait for it, so the ledger may have its block.
    (claude.state / "ledger.db").unlink(missing_ok=True)


@newest
def test_a_malformed_file_is_dropped_and_only_told_where_the_answer_is_text(claude):
    claude.gates(READY)
    claude.install()
    cut(claude)
    claude.ungated = {"main"}
    in_text = claude.run([Say("Done.")], line=[str(claude.program), "-p", "do it"])
    assert in_text.out == "Done.\n"
    assert "did not load, so nothing in them is in effect, including hooks" in in_text.err
    assert claude.run([Say("Done.")]).err == ""
    assert claude.stops() == []


def run_in(claude, folder, script):
    """Run it in another folder than the project."""
    start = f'cd {folder} && exec "$@"'
    line = ["sh", "-c", start, "sh", *claude.line("do it", (), "")]
    return claude.run(script, line=line, PATH=path(claude))


@pytest.fixture
def below(claude):
    folder = claude.project / "sub"
    folder.mkdir()
    return folder


@pytest.fixture
def worktree(claude):
    folder = claude.folder / "worktree"
    claude.git("commit", "-q", "--allow-empty", "-m", "first")
    claude.git("worktree", "add", "-q", str(folder))
    return folder


def test_the_settings_of_a_project_are_not_read_below_its_root(claude, below):
    claude.gates(READY)
    claude.install("--project")
    claude.ungated = {"main"}
    assert run_in(claude, below, [Say("Done.")]).text == "Done."
    assert claude.stops() == []
    assert status_in(claude, below) == (1, ["not-registered"])


@newest
def test_the_local_settings_of_a_project_are_read_below_its_root(claude, below):
    claude.gates(READY)
    claude.install("--local")
    script = [Say("Done."), Run("touch ../ready"), Say("Now.")]
    assert run_in(claude, below, script).text == "Now."
    assert claude.outcomes() == ["blocked", "passed"]
    assert status_in(claude, below) == (0, [])


def gated_in_worktree(claude, worktree):
    """Install in the main work tree only, for gates of the user, who works in another one."""
    own = claude.home / ".config" / "notyet" / "notyet.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'[gates.ready]\nrun = "test -e {worktree}/ready"\nwhen = "always"\n')
    claude.install("--local")


@newest
def test_the_local_settings_of_the_main_work_tree_are_read_in_others(claude, worktree):
    gated_in_worktree(claude, worktree)
    assert run_in(claude, worktree, LEARNS).text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]
    assert status_in(claude, worktree) == (0, [])


@pytest.mark.parametrize("claude", ["claude-2.1.197"], indirect=True)
def test_an_older_one_does_not_read_them(claude, worktree):
    gated_in_worktree(claude, worktree)
    claude.ungated = {"main"}
    assert run_in(claude, worktree, [Say("Done.")]).text == "Done."
    assert claude.stops() == []


@newest
def test_an_agent_cannot_pass_its_stop_off_as_one_of_status(claude):
    claude.gates(READY)
    claude.install()
    session = "2c1f9a4e-0b7d-4c55-9a53-6f1f0f9f3d11"
    claude.change_settings(env={"NOTYET_PROBE": session})
    assert claude.run(LEARNS, args=("--session-id", session)).text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]
    assert status(claude) == (1, ["off-by-variable"])


@newest
def test_settings_of_the_user_may_be_in_another_folder(claude):
    claude.gates(READY)
    elsewhere = {"CLAUDE_CONFIG_DIR": str(claude.home / "elsewhere")}
    done = claude.notyet("install", "claude", "--yes", **elsewhere)
    assert done.returncode == 0, done.stderr
    assert not claude.settings.exists()
    assert status(claude, **elsewhere) == (0, [])
    assert status(claude) == (1, ["not-registered"])
    ran = claude.run(LEARNS, **elsewhere)
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]
