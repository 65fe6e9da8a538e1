"""Gates in a workspace on another machine, asked by an engine (M1, M4, M5)."""

import asyncio
import json
import os
import threading

import pytest

from notyet import Block, Command, Engine, Gate, Match, Starter, StartEvent
from notyet.engine.observers import EVERY_DECISION, Observer
from notyet.run import ssh_job as elsewhere
from support import both_ways, gate, run_sync, stop, substop, wait_for

# Writes down, in the folder it runs in, what a gate is given.
TELL = """
cat > "$WHO.json"
env -0 > "$WHO.env"
pwd -P > "$WHO.pwd"
for path in "$NOTYET_TRANSCRIPT_PATH" "$MUX_TRANSCRIPT_PATH" "$CONCLAUDE_AGENT_TRANSCRIPT_PATH"; do
  [ -z "$path" ] || cat "$path" > "$WHO.copy"
done
"""
DIALECTS = ("notyet", "claude", "codex", "mux", "conclaude")


@pytest.fixture
def project(tmp_path):
    """A project on the other machine, whose name is a trap for whoever quotes badly."""
    folder = tmp_path / "there" / 'it\'s a "pröject" $(x) \\ `y`\nof two lines'
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def here(tmp_path):
    """Where the agent runs, with its transcripts."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "main.jsonl").write_text('{"main": "é"}\n')
    (folder / "child.jsonl").write_text('{"child": 1}\n')
    return folder


def url(warm_box, folder):
    return warm_box.url(str(folder).replace("%", "%25"))


def command(name, script, **fields):
    where = {key: fields.pop(key) for key in ("workspace", "dir", "env") if key in fields}
    return Gate(name=name, check=Command(script=script, **where), **fields)


def telling(speaks, **fields):
    options = {"section": "subagentStop"} if speaks == "conclaude" else {}
    check = Command(script=TELL, speaks=speaks, env=(("WHO", speaks),), options=options, **fields)
    return Gate(name=speaks, check=check, match=Match(events=("agent", "subagent")))


def environ_of(project, who):
    entries = (project / f"{who}.env").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def payload_of(project, who):
    return json.loads((project / f"{who}.json").read_text())


@both_ways
@pytest.mark.rule("M1", "M4", "M5", "H1", "H2", "H3", "H4", "H5")
def test_a_gate_there_sees_the_paths_of_that_machine_only(
    warm_box, project, here, run, monkeypatch
):
    monkeypatch.setenv("A_SECRET_OF_OURS", "x")
    event = substop(
        cwd=str(here),
        workspace=url(warm_box, project),
        transcript_path=str(here / "main.jsonl"),
        agent_transcript_path=str(here / "child.jsonl"),
    )
    decision = run(Engine([telling(speaks) for speaks in DIALECTS]), event)
    assert [(r.status, r.warning, r.output) for r in decision.reports] == [("allowed", "", "")] * 5
    there = str(project)
    for who in DIALECTS:
        payload, environ = payload_of(project, who), environ_of(project, who)
        assert payload["cwd"] == there
        assert (project / f"{who}.pwd").read_text() == f"{there}\n"
        assert environ["NOTYET_INSIDE"] == "1"
        assert environ["NOTYET_GATE"]
        assert "A_SECRET_OF_OURS" not in environ
        told = json.dumps(payload) + json.dumps({k: v for k, v in environ.items() if k != "PATH"})
        assert str(here) not in told
        if who != "codex":  # it has no variable for that
            continue
        sent = payload["transcript_path"], payload["agent_transcript_path"]
        assert sent[0].endswith("/transcript.jsonl")
        assert sent[1].endswith("/agent_transcript.jsonl")
    for who, variable, copy in (
        ("notyet", "NOTYET_PROJECT_DIR", '{"main": "é"}\n'),
        ("claude", "CLAUDE_PROJECT_DIR", ""),
        ("mux", "XUM_PROJECT_DIR", '{"child": 1}\n'),
        ("conclaude", "CONCLAUDE_CONFIG_DIR", '{"child": 1}\n'),
    ):
        environ = environ_of(project, who)
        assert environ[variable] == there
        assert not copy or (project / f"{who}.copy").read_text() == copy
    assert payload_of(project, "notyet")["workspace"] == event.workspace
    sent = payload_of(project, "claude")["transcript_path"]
    wait_for(lambda: not os.path.exists(os.path.dirname(sent)))  # removed after


@pytest.mark.rule("M5")
def test_of_a_long_transcript_the_last_lines_are_sent_and_that_is_said(
    warm_box, project, here, monkeypatch
):
    monkeypatch.setattr(elsewhere, "MOST_COPIED", 25)
    (here / "main.jsonl").write_text("".join(f"line {n:04}\n" for n in range(10)))
    event = stop(workspace=url(warm_box, project), transcript_path=str(here / "main.jsonl"))
    decision = run_sync(Engine([telling("notyet")]), event)
    assert (project / "notyet.copy").read_text() == "line 0008\nline 0009\n"
    assert decision.reports[0].warning == (
        "it was given a shortened copy: transcript_path without its first 80 bytes"
    )


@both_ways
@pytest.mark.rule("M1", "E7")
def test_each_gate_of_a_stage_runs_where_it_belongs(warm_box, project, here, tmp_path, run):
    other, below = tmp_path / "other", project / "below"
    other.mkdir()
    below.mkdir()
    say = "pwd -P; exit 1"
    gates = [
        gate("function", lambda event: Block(event.cwd)),
        command("theirs", say),
        command("there", say, workspace=url(warm_box, other)),
        command("below", say, workspace=url(warm_box, project), dir=str(below)),
        command("relative", say, workspace=url(warm_box, project), dir="below"),
        command("folder here", say, dir=str(tmp_path)),
        command("here", say, workspace="local"),
    ]
    decision = run(Engine(gates), stop(cwd=str(here), workspace=url(warm_box, project)))
    ran = {report.gate: report.output for report in decision.reports[1:]}
    assert ran == {
        "theirs": str(project),
        "there": str(other),
        "below": str(below),
        "relative": str(below),
        "folder here": str(tmp_path),
        "here": str(here),
    }
    assert decision.reports[0].answer == Block(str(here))


@both_ways
@pytest.mark.rule("M3")
def test_a_workspace_that_is_not_there_is_a_problem_that_names_it(warm_box, tmp_path, run):
    gates = [command("g", "true", workspace=url(warm_box, tmp_path / "gone"))]
    decision = run(Engine(gates))
    assert decision.outcome == "failed_open"
    (report,) = decision.reports
    assert report.answer.kind == "cannot_start"
    assert f"{tmp_path}/gone" in report.answer.detail


@pytest.mark.rule("M2", "E2")
def test_cancelling_a_check_ends_the_command_there(warm_box, tmp_path):
    async def cancelled():
        script = "echo $$ > pid; sleep 60"
        gates = [command("c", script, workspace=url(warm_box, tmp_path))]
        checking = asyncio.ensure_future(Engine(gates).check(stop()))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking

    asyncio.run(cancelled())
    pid = (tmp_path / "pid").read_text().strip()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.rule("M2", "E9")
def test_the_hosts_deadline_ends_a_gate_there(warm_box, tmp_path):
    script = "echo $$ > pid; sleep 60"
    gates = [command("c", script, workspace=url(warm_box, tmp_path), if_broken="block")]
    for within in (2, 20):  # it may not even have begun
        decision = Engine(gates).check_sync(stop(), within=within)
        # While it has not begun, its machine could not be reached; then it is too slow.
        assert decision.reports[0].answer.kind in {"timeout", "deadline", "unreachable"}
        if (tmp_path / "pid").exists():
            break
    pid = (tmp_path / "pid").read_text().strip()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


@both_ways
@pytest.mark.rule("M1")
def test_observers_run_here_unless_they_name_a_workspace(warm_box, project, here, run):
    def watching(name, **fields):
        check = Command(script=TELL, env=(("WHO", name),), **fields)
        return Observer(EVERY_DECISION, check, name=name)

    observers = [watching("here"), watching("there", workspace=url(warm_box, project))]
    event = stop(
        cwd=str(here),
        workspace=url(warm_box, project),
        transcript_path=str(here / "main.jsonl"),
    )
    warned = []
    run(Engine([gate("g", None)], observers=observers, warn=warned.append), event)
    assert warned == []
    assert (here / "here.json").exists()
    told = payload_of(project, "there")
    assert (told["event"]["cwd"], told["decision"]["outcome"]) == (str(project), "passed")
    assert (project / "there.copy").read_text() == '{"main": "é"}\n'
    environ = environ_of(project, "there")
    assert environ["NOTYET_OUTCOME"] == "passed"
    assert environ["NOTYET_PROJECT_DIR"] == str(project)


@pytest.mark.rule("M1", "F13")
def test_start_hooks_run_here_unless_they_name_a_workspace(warm_box, project, here, monkeypatch):
    def starter(name, **fields):
        script = 'echo "$CLAUDE_PROJECT_DIR"; cat > payload.json\n' + fields.pop("more", "")
        return Starter(name=name, check=Command(script=script, speaks="claude", **fields))

    copied = """sed -n 's/.*"transcript_path": *"\\([^"]*\\)".*/\\1/p' payload.json | xargs cat"""
    there = starter("there", workspace=url(warm_box, project), more=copied)
    starters = [starter("here"), there]
    (here / "main.jsonl").write_text("first\nsecond\n")
    monkeypatch.setattr(elsewhere, "MOST_COPIED", 10)
    event = StartEvent(
        session_id="s1",
        cwd=str(here),
        workspace=url(warm_box, project),
        transcript_path=str(here / "main.jsonl"),
    )
    warned = []
    told = asyncio.run(Engine(starters=starters, warn=warned.append).start(event))
    assert told == f"{here}\n\n{project}\nsecond"
    assert json.loads((project / "payload.json").read_text())["cwd"] == str(project)
    lost = "it was given a shortened copy: transcript_path without its first 6 bytes"
    assert warned == [f"start hook there: {lost}"]


@pytest.mark.rule("C4", "M5")
def test_transcripts_are_not_read_on_the_thread_of_a_loop(monkeypatch, tmp_path):
    monkeypatch.setenv("NOTYET_SSH_CONFIG", os.devnull)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    threads, read = [], elsewhere.read_transcripts

    def reading(event):
        threads.append(threading.current_thread())
        return read(event)

    monkeypatch.setattr(elsewhere, "read_transcripts", reading)
    where = {"script": "true", "workspace": "ssh://no-such-machine.invalid/srv"}
    engine = Engine(
        [Gate(name="g", check=Command(**where))],
        observers=[Observer(EVERY_DECISION, Command(**where), name="o")],
        starters=[Starter(name="s", check=Command(**where, speaks="claude"))],
        warn=lambda _warning: None,
    )

    async def both():
        await engine.start(StartEvent(session_id="s1"))
        await engine.check(stop())

    asyncio.run(both())
    assert len(threads) == 3
    assert threading.main_thread() not in threads
