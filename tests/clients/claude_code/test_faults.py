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


def status_below(claude):
    """Return the same for a sub folder of the project."""
    return found(
        subprocess.run(
            [str(NOTYET), "status", "claude", "--json"],
            cwd=claude.project / "sub",
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
    "event-misspelt": edit(lambda hooks: hooks.update(stop=hooks.pop("Stop"))),
    "file-invalid": cut,
    "file-invalid for a comment": comment,
    "file-dropped": lambda claude: claude.change_settings(env={}, disableAllHooks={"on": False}),
    "hooks-disabled": lambda claude: claude.settings.write_text(
        claude.settings.read_text().replace("{", '{"disableAllHooks": true,', 1)
    ),
    "entry-refused": edit(lambda hooks: entry(hooks).update(timeout="1800")),
    "entry-conditional": edit(lambda hooks: entry(hooks).update({"if": "Bash(ls)"})),
    "entry-async": edit(lambda hooks: entry(hooks).update({"async": True})),
    "program-missing": edit(of_a_program_that_is_gone),
}


@newest
@pytest.mark.parametrize("name", FAULTS)
def test_what_keeps_claude_code_from_asking_us_is_found_by_status(claude, name):
    claude.gates(READY)
    claude.install()
    FAULTS[name](claude)
    code, faults = status(claude)
    assert code == 1
    assert name.split(" ")[0] in faults
    ran = claude.run([Say("Done.")])
    assert ran.text == "Done."
    assert "blocked" not in claude.outcomes()
    claude.ungated = set() if claude.stops() else {"main"}  # asked, and not waited for


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


def run_below(claude, script):
    """Run it in a sub folder of the project."""
    (claude.project / "sub").mkdir()
    line = ["sh", "-c", 'cd sub && exec "$@"', "sh", *claude.line("do it", (), "")]
    return claude.run(script, line=line, PATH=path(claude))


def test_the_settings_of_a_project_are_not_read_below_its_root(claude):
    claude.gates(READY)
    claude.install("--project")
    claude.ungated = {"main"}
    assert run_below(claude, [Say("Done.")]).text == "Done."
    assert claude.stops() == []
    assert status_below(claude) == (1, ["other-folder"])


@newest
def test_the_local_settings_of_a_project_are_read_below_its_root(claude):
    claude.gates(READY)
    claude.install("--local")
    assert run_below(claude, [Say("Done."), Run("touch ../ready"), Say("Now.")]).text == "Now."
    assert claude.outcomes() == ["blocked", "passed"]
    assert status_below(claude) == (0, [])


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
