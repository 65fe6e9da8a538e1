"""`notyet init`: what a project has becomes its gates, once a person has seen it."""

import contextlib
import os
import signal
import subprocess
import tomllib

import pytest

from commands import until
from conftest import git
from hook_runs import ask as ask_hook
from hook_runs import payload, query, stops
from installs import converse, start
from notyet.cli.init.text import file_text
from notyet.cli.init.trial import Trial, judged
from notyet.cli.main import main
from notyet.config.compile import examine
from notyet.core.verdict import Problem, Report
from notyet.project.folder import Proposal

MAKEFILE = "test:\n\t@echo ran >> ran; exit $${CODE:-0}\nlint:\n\t@echo bad style; exit 3\n"


@pytest.fixture
def shop(place):
    """A project with tests that pass and a linter that does not."""
    (place / "Makefile").write_text(MAKEFILE)
    return place


def interrupt(started):
    """Press Ctrl-C; again, where it came between a question and the reading of its answer."""
    while started.poll() is None:
        started.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(5)


def gates(folder):
    return tomllib.loads((folder / "notyet.toml").read_text())["gates"]


@pytest.mark.rule("N5")
def test_what_passes_is_a_gate_and_in_force_at_once(shop, capsys):
    assert main(["init", "--yes"]) == 0
    said = capsys.readouterr().out
    assert gates(shop)["tests"] == {"run": "make test"}
    assert "tests  Makefile:1  make test" in said
    assert "trusted: 2 gates of this file in force now" in said
    assert query("SELECT what, place, detail FROM acts") == [
        ("trust", f"{shop}/notyet.toml", "2 gates")
    ]
    (shop / "Makefile").write_text(MAKEFILE.replace(":-0", ":-1"))
    ask_hook(payload("claude", shop))
    assert stops()[0][0] == "blocked"


def test_a_file_is_written_where_no_tool_is_installed_and_what_to_install_is_said(
    place, monkeypatch, capsys
):
    package = '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}'
    (place / "package.json").write_text(package)
    (place / "package-lock.json").write_text("{}")
    (place / "Makefile").write_text("lint:\n")
    monkeypatch.setenv("PATH", str(place))
    assert main(["init", "--yes"]) == 0
    assert gates(place) == {"tests": {"run": "npm test"}, "lint": {"run": "make lint"}}
    said = capsys.readouterr().out
    assert "cannot run yet: tests (npm is not installed; install npm, then run: npm ci)" in said
    assert "trusted: 2 gates of this file in force now" in said
    now = "Try it now: install npm, then run: npm ci; install make; then: notyet check"
    assert said.splitlines()[-1] == now


def test_without_a_trial_the_file_is_written_and_nothing_is_run(shop, capsys):
    assert main(["init", "--yes", "--no-try"]) == 0
    assert gates(shop) == {"lint": {"run": "make lint"}, "tests": {"run": "make test"}}
    assert not (shop / "ran").exists()
    assert "trusted: 2 gates" in capsys.readouterr().out


def test_a_dry_run_prints_toml_alone(shop, capsys):
    (shop / "pyproject.toml").write_text("[tool\n")
    assert main(["init", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert set(tomllib.loads(said.out)["gates"]) == {"lint", "tests"}
    assert "pyproject.toml:1:6" in said.err
    (shop / "notyet.toml").write_text('gates.lint = "make lint"\n')
    assert main(["init", "--dry-run"]) == 1
    assert set(tomllib.loads(capsys.readouterr().out)["gates"]) == {"tests"}


@pytest.mark.parametrize("has_schema", [False, True])
def test_editors_are_pointed_to_a_schema_only_if_it_is_there(shop, has_schema):
    if has_schema:
        assert main(["schema", "--write"]) == 0
        assert os.listdir(shop / ".notyet") == ["notyet.toml.schema.json"]
    assert main(["init", "--yes", "--no-try"]) == 0
    line = "#:schema ./.notyet/notyet.toml.schema.json\n"
    assert (line in (shop / "notyet.toml").read_text()) is has_schema
    assert (shop / ".notyet").exists() is has_schema


def test_what_was_slow_is_asked_later_and_gets_its_time():
    proposal = Proposal(name="tests", tool="make", run="make test", file="Makefile")
    trial = Trial(proposal=proposal, result="passed", seconds=400.0)
    gate = tomllib.loads(file_text([trial]))["gates"]["tests"]
    assert gate == {"run": "make test", "slow": True, "timeout": "14m"}
    lacking = Trial(proposal=proposal, result="not installed", seconds=30.0)
    assert tomllib.loads(file_text([lacking]))["gates"]["tests"] == {"run": "make test"}
    quick = Trial(proposal=proposal, result="passed", seconds=0.4)
    assert tomllib.loads(file_text([quick]))["gates"]["tests"] == {"run": "make test"}


def test_what_fails_only_watches_and_the_line_in_its_place_is_a_gate_for_new_failures():
    proposal = Proposal(name="tests", tool="make", run="make test", file="Makefile")
    text = file_text([Trial(proposal=proposal, result="failed", why="exit 1")])
    assert tomllib.loads(text)["gates"]["tests"]["observe"] is True
    (line,) = (line for line in text.splitlines() if line.startswith("observe"))
    instead = text.replace(line, line.partition("instead: ")[2])
    assert examine(instead, "f", "notyet").mistakes == ()
    gate = {"run": "make test", "new_failures_only": True}
    assert tomllib.loads(instead)["gates"]["tests"] == gate


def test_what_does_not_end_is_left_out():
    proposal = Proposal(name="tests", tool="npm", run="npm test", file="package.json")
    late = Report(gate="tests", answer=Problem("timeout", "no answer within 600 s"), seconds=600.0)
    trial = judged(Trial(proposal=proposal), late)
    assert (trial.result, trial.why) == ("left out", "no answer within 600 s")
    assert tomllib.loads(file_text([trial])) == {}


@pytest.mark.parametrize("result", ["failed", "left out"])
def test_a_text_that_could_break_out_of_the_file_cannot(result):
    name = 'we"ird\\é'
    proposal = Proposal(
        name="a-tests", tool="go", run='go "test" \\ ./...', file=f"{name}/go.mod", dir=name
    )
    why = 'exit 1: \x1b[2K\nrun = "rm -rf /"\r\x00 \udc80'
    text = file_text([Trial(proposal=proposal, result=result, why=why)])
    assert examine(text, "f", "notyet").mistakes == ()
    assert text.encode()
    gate = {"run": proposal.run, "dir": name, "observe": True}
    expected = {"gates": {"a-tests": gate}} if result == "failed" else {}
    assert tomllib.loads(text) == expected


def test_a_gate_of_a_folder_runs_there(place):
    web = place / "web"
    web.mkdir()
    (web / "Makefile").write_text("test:\n\t@pwd > here\n")
    assert main(["init", "--yes"]) == 0
    assert gates(place) == {"web-tests": {"run": "make test", "dir": "web"}}
    assert (web / "here").read_text() == f"{web}\n"


def test_a_folder_that_cannot_be_written_to_is_said_before_anything_is_run(monkeypatch, capsys):
    monkeypatch.setattr("notyet.cli.person.inside_agent", lambda _environ: "")
    monkeypatch.chdir("/proc/self")
    assert main(["init", "--yes"]) == 1
    assert "cannot be written to: " in capsys.readouterr().err


def test_a_file_that_was_written_in_the_meantime_is_kept(place, capsys):
    (place / "Makefile").write_text("test:\n\t@echo theirs > notyet.toml\n")
    assert main(["init", "--yes"]) == 1
    assert "notyet.toml: File exists; nothing was changed" in capsys.readouterr().err
    assert (place / "notyet.toml").read_text() == "theirs\n"


@pytest.mark.rule("N5")
@pytest.mark.parametrize("options", [[], ["--no-install"]])
def test_who_agrees_to_gates_here_agrees_to_nothing_for_all_projects(shop, home, options, capsys):
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    assert main(["init", "--yes", *options]) == 0
    assert os.listdir(home / ".claude") == os.listdir(home / ".codex") == []
    said = capsys.readouterr().out
    assert ("register it with: notyet install claude" in said) is (not options)
    assert ("register it with: notyet install codex" in said) is (not options)


def test_a_host_that_is_here_is_registered_for_who_asks_for_that(shop, home, capsys):
    (home / ".claude").mkdir()
    assert main(["init", "--yes", "--install"]) == 0
    assert "registered with Claude Code: " in capsys.readouterr().out
    assert "notyet" in (home / ".claude" / "settings.json").read_text()
    (shop / "notyet.toml").unlink()
    assert main(["init", "--yes", "--install"]) == 0
    assert "registered with Claude Code: " not in capsys.readouterr().out


def test_who_has_a_host_that_skips_hooks_is_told_to_approve_them_first(shop, home, capsys):
    (home / ".codex").mkdir()
    assert main(["init", "--yes", "--install"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Try it now: start codex, type /hooks, and approve ")
    assert last.endswith("; then ask Codex for a change and see its stop with: notyet log")
    assert main(["install", "codex", "--trust", "--yes"]) == 0
    (shop / "ran").unlink()
    (shop / "notyet.toml").unlink()
    assert main(["init", "--yes"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Try it now: notyet check; or ask Codex for a change")


def test_a_host_is_found_by_its_program(shop, home, tmp_path, monkeypatch, capsys):
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    codex.write_text("#!/bin/sh\necho codex-cli 0.50.0\n")
    codex.chmod(0o755)
    monkeypatch.setenv("PATH", f"{codex.parent}:{os.environ['PATH']}")
    assert main(["init", "--yes", "--install"]) == 0
    assert "registered with Codex" in capsys.readouterr().out


@pytest.mark.rule("N5")
@pytest.mark.parametrize("answer", [b"\n", b"y\n"])
def test_one_screen_shows_everything_before_anything_is_run_and_enter_accepts_it(
    shop, home, answer
):
    (home / ".claude").mkdir()

    def enter(started):
        assert not (shop / "ran").exists()
        assert os.listdir(home / ".claude") == []
        return answer

    code, seen = converse(shop, ["init"], [enter])
    assert code == 0, seen
    order = [
        "Found in this folder; nothing ran yet:",
        "[x] 1  lint   Makefile:3  make lint",
        "[x] 2  tests  Makefile:1  make test",
        "[x] 3  Claude Code",
        "Enter  run each gate once, write and trust notyet.toml, register notyet with Claude Code",
        "w      the same without running the gates",
        "q      quit; nothing is changed",
        "tests  passed",
        "wrote ",
        "trusted: 2 gates",
        "registered with Claude Code: ",
        "note: lint failed, and only watches for now; fix it",
        "Try it now: notyet check; or ask Claude Code for a change",
    ]
    places = [seen.find(words) for words in order]
    assert places == sorted(places), seen
    assert -1 not in places, (order, seen)
    assert seen.rstrip().rpartition("\n")[2].startswith("Try it now: ")
    assert "notyet" in (home / ".claude" / "settings.json").read_text()


@pytest.mark.parametrize(
    ("options", "answers"), [([], [b"w\n"]), (["--no-try"], [b"\n"]), ([], [b"1 2\n", b"\n"])]
)
def test_the_file_can_be_written_without_running_anything(shop, options, answers):
    code, seen = converse(shop, ["init", *options], answers)
    assert code == 0
    assert ("the same without running the gates" in seen) is (not options)
    assert not (shop / "ran").exists()
    text = (shop / "notyet.toml").read_text()
    if answers == [b"1 2\n", b"\n"]:  # both are unmarked
        assert tomllib.loads(text) == {}
        assert (
            "# Makefile:1, left out: not marked when `notyet init` asked\n# [gates.tests]" in text
        )
        assert "Try it now: write a gate into notyet.toml, then run: notyet trust" in seen
    else:
        assert gates(shop) == {"lint": {"run": "make lint"}, "tests": {"run": "make test"}}
        assert "trusted: 2 gates" in seen
        assert seen.rstrip().endswith("Try it now: notyet check")


@pytest.mark.rule("N5")
def test_only_what_is_marked_is_run_written_and_registered_with(shop, home):
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    wrong = [b"9\n", b"hello\n"]
    code, seen = converse(shop, ["init"], [*wrong, b"2, 3\n", b"3\n", b"4\n", b"\n"])
    assert code == 0
    assert "'9' is none of these:" in seen
    assert "'hello' is none of these:" in seen
    assert not (shop / "ran").exists()
    assert set(gates(shop)) == {"lint"}
    assert os.listdir(home / ".claude") == ["settings.json"]
    assert os.listdir(home / ".codex") == []


def test_what_cannot_run_yet_is_not_marked_where_something_else_can(place):
    (place / "Makefile").write_text(".PHONY: test\ntest:\n\t@true\n")
    (place / ".pre-commit-config.yaml").write_text("repos: []\n")
    (place / "pyproject.toml").write_text('[project]\nname = "x"\n')
    _, seen = converse(place, ["init"], [b"q\n"], PATH=f"{place}:/usr/bin:/bin")
    assert "[x] 2  tests" in seen
    assert "[ ] 1  pre-commit" in seen
    (place / "Makefile").unlink()
    _, seen = converse(place, ["init"], [b"\n"], PATH=f"{place}:/usr/bin:/bin")
    assert "[x] 1  pre-commit" in seen
    assert "Try it now: pip install -e . pre-commit && notyet check" in seen


def test_where_every_gate_fails_already_nobody_is_told_that_agents_are_sent_back(
    place, home, capsys
):
    (place / "Makefile").write_text(".PHONY: test\ntest:\n\t@false\n")
    (home / ".claude").mkdir()
    assert main(["init", "--yes", "--install"]) == 0
    said = capsys.readouterr()
    assert "note: tests failed, and only watches for now; fix it" in said.err
    last = said.out.splitlines()[-1]
    assert last.startswith("Try it now: notyet check; until it passes and `observe` is deleted")


def test_where_nothing_is_found_a_gate_can_be_typed(place):
    code, seen = converse(place, ["init"], [b"+ echo tested > typed; true\n", b"\n"])
    assert code == 0
    assert "No tests or linters were found in this folder." in seen
    assert seen.index("write an example of a notyet.toml") < seen.index("> + echo")
    assert seen.index("Enter  run each gate once, write and trust") > seen.index("> + echo")
    assert gates(place) == {"tests": {"run": "echo tested > typed; true"}}
    assert "# typed by you, passed in " in (place / "notyet.toml").read_text()
    assert (place / "typed").read_text() == "tested\n"


@pytest.mark.parametrize("answer", [b"n\n", b"q\n", b"\x04"])
def test_a_person_may_decline(shop, home, answer):
    (home / ".claude").mkdir()
    code, seen = converse(shop, ["init", "--no-try"], [answer])
    assert code == 1
    assert "Enter  write and trust notyet.toml, register notyet with Claude Code" in seen
    assert "nothing was changed" in seen
    assert not (shop / "notyet.toml").exists()
    assert os.listdir(home / ".claude") == []


def test_breaking_off_at_the_question_leaves_nothing(shop):
    code, _ = converse(shop, ["init"], [interrupt])
    assert code == 130
    assert not (shop / "notyet.toml").exists()
    assert not (shop / "ran").exists()


def test_breaking_off_while_a_command_is_tried_ends_it_and_leaves_nothing(place):
    (place / "Makefile").write_text("test:\n\t@echo $$$$ > pid; exec sleep 100\n")
    started = start(place, "init", "--yes", start_new_session=True)
    pid = place / "pid"
    assert until(lambda: pid.exists() and pid.read_text().strip())
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 130, (out, err)
    assert not (place / "notyet.toml").exists()
    number = pid.read_text().strip()
    done = subprocess.run(["ps", "-p", number, "-o", "comm="], capture_output=True, text=True)
    assert "sleep" not in done.stdout


def test_in_a_part_of_a_project_where_nothing_is_found_the_whole_is_named(
    place, monkeypatch, capsys
):
    (place / "sub").mkdir()
    (place / "Makefile").write_text("test:\n\ttrue\n")
    monkeypatch.chdir(place / "sub")
    assert main(["init", "--dry-run"]) == 0
    said = f"this folder is a part of {place}; to gate the whole project, run this there"
    assert said in capsys.readouterr().err
    (place / "sub" / "Makefile").write_text("test:\n\ttrue\n")
    assert main(["init", "--dry-run"]) == 0
    assert "is a part of" not in capsys.readouterr().err


def workspace(place):
    """Make a workspace with a gate of its own, and two members of which one has tests."""
    (place / "package.json").write_text('{"workspaces": ["packages/*"]}')
    (place / "Makefile").write_text("lint:\n\t@true\n")
    for name, text in {"a": "test:\n\t@pwd > here\n", "b": "all:\n"}.items():
        folder = place / "packages" / name
        folder.mkdir(parents=True)
        (folder / "Makefile").write_text(text)
    return place / "packages" / "a"


def test_members_of_a_workspace_get_files_of_their_own(place, capsys):
    member = workspace(place)
    assert main(["init", "--yes"]) == 0
    root = tomllib.loads((place / "notyet.toml").read_text())
    assert root == {"members": ["packages/*"], "gates": {"lint": {"run": "make lint"}}}
    assert gates(member) == {"tests": {"run": "make test"}}
    assert (member / "here").read_text() == f"{member}\n"
    assert not (place / "packages" / "b" / "notyet.toml").exists()
    said = capsys.readouterr().out
    assert "packages/a:tests  packages/a/Makefile:1  make test (in packages/a)" in said
    assert "packages/a:tests  passed" in said
    assert said.count("trusted: 1 gate of this file in force now") == 2
    assert main(["trust", "--show"]) == 0


@pytest.mark.rule("J6")
def test_a_member_that_changed_is_gated_from_the_root(place):
    (place / ".git").rmdir()
    member = workspace(place)
    git(place, "init", "-q")
    assert main(["init", "--yes", "--no-try"]) == 0
    git(place, "add", "-A")
    git(place, "commit", "-qm", "members")
    ask_hook(payload("claude", place, hook_event_name="SessionStart", source="startup"))
    (member / "Makefile").write_text("test:\n\t@echo wrong; exit 1\n")
    answer = ask_hook(payload("claude", place))
    assert "packages/a:tests" in answer.stdout
    assert stops()[-1][0] == "blocked"


def test_a_dry_run_in_a_workspace_prints_the_files_of_members_as_comments(place, capsys):
    workspace(place)
    assert main(["init", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert set(tomllib.loads(text)) == {"members", "gates"}
    assert "# packages/a/notyet.toml:\n#   # Makefile:1\n#   [gates.tests]\n" in text


def test_the_file_of_a_member_that_is_there_is_kept(place, capsys):
    member = workspace(place)
    (member / "notyet.toml").write_text("# theirs\n")
    assert main(["init", "--yes", "--no-try"]) == 0
    assert (member / "notyet.toml").read_text() == "# theirs\n"
    assert "packages/a:tests" not in capsys.readouterr().out


def test_an_update_names_members_without_a_file(place, capsys):
    workspace(place)
    (place / "notyet.toml").write_text('gates.lint = "make lint"\n')
    assert main(["init", "--update", "--yes"]) == 1  # not trusted
    named = "note: members with checks and without a notyet.toml: packages/a; run this there"
    assert named in capsys.readouterr().err
