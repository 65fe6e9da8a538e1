"""`notyet hook` asks gates only when it matters: starts, stops, what is loaded (N1)."""

import json
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from conftest import git
from hook_runs import (
    ask,
    assert_allows,
    begin,
    clean_environ,
    command_line,
    ledger_path,
    new_project,
    payload,
    query,
    run_hook,
    stops,
)
from workspaces import write_there

pytestmark = pytest.mark.rule("N1")
MARKING = '[gates.g]\nrun = "echo asked >> ../marks; test ! -e bad"\nfor = "all"\n'


@pytest.fixture
def project(tmp_path):
    folder = new_project(tmp_path / "p", MARKING)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


def asked(project):
    marks = project.parent / "marks"
    return marks.read_text().count("asked") if marks.exists() else 0


def start(project, **fields):
    known = {"hook_event_name": "SessionStart", "source": "startup"} | fields
    return payload("claude", project, **known)


NOT_CHECKED = "notyet: not checked: no file changed since this session began ({})"


def stopped(host, project, n=0, **fields):
    """Return what the user reads at a stop that is allowed."""
    event = payload(host, project, last_assistant_message=f"{n}", **fields)
    reply = ask(event, "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    return json.loads(reply.stdout or "{}").get("systemMessage", "")


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_question_answered_without_touching_files_costs_nothing(project, host):
    known = {"hook_event_name": "SessionStart", "source": "startup"}
    for event in (payload(host, project, **known), payload(host, project)):
        done = run_hook(event, "--host", host)
        assert done.stderr == b""
        assert_allows(host, done.returncode, done.stdout)
    assert json.loads(done.stdout) == {"systemMessage": NOT_CHECKED.format("g")}
    assert (stops(), asked(project)) == ([("skipped", "unchanged")], 0)


@pytest.mark.rule("N3")
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_that_no_file_changed_is_said_once_in_a_session(project, host):
    for session in ("s1", "s2"):
        begin(host, project, session_id=session)
        told = [stopped(host, project, n, session_id=session) for n in range(3)]
        assert told == [NOT_CHECKED.format("g"), "", ""]
    (project / "good").write_text("x")
    assert stopped(host, project, session_id="s2") == ""
    (project / "good").unlink()
    assert stopped(host, project, session_id="s2") == ""
    assert [why for _, why in stops()] == ["unchanged"] * 6 + ["", "unchanged"]


@pytest.mark.rule("N3")
def test_only_gates_that_never_passed_on_these_files_are_named(tmp_path):
    text = '[gates]\none = "true"\ntwo = "false"\n[gates.three]\nrun = "false"\nobserve = true\n'
    project = new_project(tmp_path / "p", text)
    git(project, "init", "--quiet")
    begin("claude", project)
    assert stopped("claude", project) == NOT_CHECKED.format("one, two")
    ask(payload("claude", project, session_id="unknown"))  # one passes
    begin("claude", project, session_id="s2")
    assert stopped("claude", project, session_id="s2") == NOT_CHECKED.format("two")
    assert [outcome for outcome, _ in stops()] == ["skipped", "blocked", "passed"]


def test_what_a_subagent_did_not_change_is_not_said(project):
    begin("claude", project)
    child = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "coder"}
    assert stopped("claude", project, **child) == ""
    assert stopped("claude", project) == NOT_CHECKED.format("g")


def test_a_gate_is_asked_once_for_the_same_files(project):
    (project / "new.txt").write_text("x")
    for n in range(3):
        run_hook(payload("claude", project, last_assistant_message=f"{n}"))
    assert (stops(), asked(project)) == ([("passed", "")] * 3, 1)
    assert query("SELECT status FROM reports") == [("allowed",), ("remembered",), ("remembered",)]


@pytest.mark.rule("B12")
def test_a_pass_under_another_path_skips_no_gate(project, tmp_path):
    (project / "new.txt").write_text("x")
    event = payload("claude", project)
    run_hook(event, environ=clean_environ(PATH=f"{tmp_path}:{os.environ['PATH']}"))
    run_hook(event | {"last_assistant_message": "real"})
    assert (stops(), asked(project)) == ([("passed", "")] * 2, 2)


def test_a_subagent_that_changed_nothing_is_let_go(project):
    sub = {"agent_id": "a1", "agent_type": "coder"}
    ask(start(project))
    (project / "bad").write_text("by the main agent")
    ask(start(project, hook_event_name="SubagentStart", **sub))
    reply = ask(payload("claude", project, hook_event_name="SubagentStop", **sub))
    assert (reply.code, stops()) == (0, [("skipped", "unchanged")])
    reply = ask(payload("claude", project))
    assert json.loads(reply.stdout)["decision"] == "block"


def test_a_function_about_what_an_agent_says_runs_although_it_changed_no_file(tmp_path):
    # docs/how-to/codex.md
    text = '[gates.report]\npython = "gates:has_a_report"\nfor = ["worker", "default"]\n'
    project = new_project(tmp_path / "p", text)
    code = "from notyet import Block\ndef has_a_report(event):\n    return Block('A report!')\n"
    (project / "gates.py").write_text(code)
    git(project, "init", "--quiet")
    child = {"agent_id": "a1", "agent_type": "worker"}
    for name in ("SubagentStart", "SubagentStop"):
        reply = ask(payload("codex", project, hook_event_name=name, **child), "--host", "codex")
    assert "A report!" in json.loads(reply.stdout)["reason"]


def under_a_host(folder, name, *events, edits="true"):
    """Run hooks below a program of this name, one after the other, with edits before the last."""
    folder.mkdir()
    (folder / name).symlink_to("/bin/sh")
    lines = []
    for number, event in enumerate(events):
        (folder / f"{number}").write_bytes(json.dumps(event).encode())
        lines += [edits] * (number == len(events) - 1)
        lines.append(
            f"sh -c '{shlex.join(command_line('--host', name))}; true' < {folder}/{number}"
        )
    done = subprocess.run(
        [folder / name, "-c", "; ".join([*lines, "true"])],
        capture_output=True,
        env=clean_environ(),
        timeout=60,
    )
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("host", ["claude", "codex"])
@pytest.mark.parametrize("commits", [False, True])
def test_a_start_after_edits_does_not_make_them_unchanged(project, host, commits):
    begun = payload(host, project, hook_event_name="SessionStart", source="startup")
    git(project, "config", "user.name", "me")
    git(project, "config", "user.email", "me@example.com")
    # A while after the host began: the precision of that is 20 ms.
    edits = (
        f"sleep 0.1; cd {project} && echo bad > bad"
        + " && git add . && git commit -qm two" * commits
    )
    under_a_host(project.parent / "forged", host, begun, edits=edits)
    assert json.loads(ask(payload(host, project), "--host", host).stdout)["reason"]
    assert stops() == [("blocked", "g")]


def test_a_start_of_a_host_that_began_after_all_edits_counts(project):
    (project / "bad").write_text("of yesterday")
    time.sleep(0.05)  # more than the precision of a process's start
    under_a_host(project.parent / "bin", "claude", start(project))
    ask(payload("claude", project))
    assert stops() == [("skipped", "unchanged")]


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_what_goes_on_did_not_begin_here(project, source):
    (project / "bad").write_text("x")
    ask(start(project, source=source))
    assert json.loads(ask(payload("claude", project)).stdout)["decision"] == "block"


def test_a_start_that_cannot_be_remembered_is_a_start_with_a_line_on_stderr(project):
    os.makedirs(ledger_path())
    done = run_hook(start(project))
    assert (done.returncode, done.stdout.strip()) == (0, b"")
    assert b"the files at the start were not recorded" in done.stderr
    assert done.stderr.count(b"\n") <= 1


def test_a_stop_that_is_skipped_as_unchanged_runs_git_twice(project, tmp_path):
    run_hook(start(project))
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    program = folder / "git"
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    run_hook(payload("claude", project), environ=clean_environ() | {"PATH": path})
    assert stops() == [("skipped", "unchanged")]
    words = [line.split() for line in log.read_text().splitlines()]
    assert sorted(word for each in words for word in each if word in {"status", "ls-files"}) == [
        "ls-files",
        "status",
    ]
    assert len(words) == 2


def test_a_start_where_gates_are_off_is_not_remembered(project):
    environ = clean_environ(NOTYET_DISABLE="1")
    assert run_hook(start(project), environ=environ).returncode == 0
    assert not os.path.exists(ledger_path())


def in_the_box(box, app, text):
    """Make the app a repository, and let a file here say that the project is there."""
    (app / ".git").rmdir()
    git(app, "init", "--quiet")
    write_there(app, "code.py", "one\n")
    git(app, "add", ".")
    git(app, "commit", "--quiet", "-m", "one")
    return f'workspace = "{box.url(app)}"\n[gates.g]\n{text}'


def there(box, content):
    return run_hook(content, environ=clean_environ(**box.environ))


def test_gates_of_a_workspace_elsewhere_always_run(box, app, tmp_path):
    text = in_the_box(box, app, f'run = "echo asked >> {tmp_path}/marks; test ! -e bad"\n')
    here = new_project(tmp_path / "here", text)
    assert there(box, start(here)).returncode == 0
    for n in range(2):
        there(box, payload("claude", here, last_assistant_message=str(n)))
    assert (stops(), asked(here)) == ([("passed", "")] * 2, 2)
    write_there(app, "bad", "x")
    done = there(box, payload("claude", here, last_assistant_message="3"))
    assert json.loads(done.stdout)["decision"] == "block"


def test_a_machine_that_says_nothing_holds_up_no_start_for_long(box, app, tmp_path):
    here = new_project(tmp_path / "here", in_the_box(box, app, 'run = "true"\n'))
    silent = tmp_path / "silent"
    silent.write_text("Host box\n  ProxyCommand sleep 100\n")
    environ = clean_environ(**box.environ | {"NOTYET_SSH_CONFIG": str(silent)})
    done = run_hook(start(here), "--timeout", "4", environ=environ)
    assert (done.returncode, done.stdout.strip()) == (0, b"")
    assert [tree for (tree,) in query("SELECT tree FROM starts")] == [""]
    assert Path(here).is_dir()
