"""What `notyet status` shows of gates, limits, sessions and decisions, and why, with `--why`."""

import io
import json
import os
from pathlib import Path

import pytest

from conftest import git
from hook_runs import ask, payload, trust
from notyet.cli.main import main
from notyet.cli.status_show import ledger_line, near, span
from notyet.status.lately import Lately
from status_world import World

GATES = """\
[limits]
max_blocks = 4
[gates.lint]
run = "test -e ready"
[gates.tests]
run = "true"
slow = true
paths = ["src/**"]
timeout = "90s"
[gates.review]
run = "true"
for = ["cod*"]
when = "always"
observe = true
"""


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    made = World("claude", tmp_path, monkeypatch, capsys)
    (made.project / ".git").rmdir()
    git(made.project, "init", "--quiet")
    made.write = lambda text: write(made, text)
    made.write(GATES)
    return made


def write(world, text):
    (world.project / "notyet.toml").write_text(text)
    trust(world.project / "notyet.toml")


def stop(world, **fields):
    ask(payload("claude", world.project, **fields), "--host", "claude")


def lines_of(said):
    return [" ".join(line.split()) for line in said.splitlines()]


def test_the_first_line_is_the_answer(world):
    code, said = world.shown()
    assert code == 0
    assert lines_of(said)[:2] == [
        "yes: 2 gates are asked at each stop of Claude Code",
        "but not subagents of Claude Code: none of them holds anybody, they only observe",
    ]


def test_a_gate_that_only_watches_is_not_said_to_have_blocked(world):
    world.write('[gates.bad]\nrun = "exit 1"\nobserve = true\nwhen = "always"\n')
    stop(world)
    (decision,) = world.status()[1]["decisions"]
    assert (decision["outcome"], decision["why"]) == ("observed", "bad would have blocked")


def test_gates_and_limits_stand_with_file_and_line(world):
    lines = lines_of(world.shown()[1])
    assert "gate stage for asked timeout from" in lines
    assert "lint 1 main agent when files changed 10m notyet.toml:3" in lines
    assert "tests 2 main agent when src/** changed 90s notyet.toml:5" in lines
    assert "review 1, observes cod* always 10m notyet.toml:10" in lines
    assert "max_blocks 4 notyet.toml:2" in lines
    assert "session_ceiling 50 default" in lines
    assert "wait_for_background yes default" in lines
    assert "claude cap 7 Claude Code overrides the 9th block in a row" in lines


def test_sessions_show_what_they_used_and_decisions_what_became_of_them(world):
    stop(world)
    stop(world, stop_hook_active=True)
    stop(world, session_id="s2", agent_id="a7", hook_event_name="SubagentStop", agent_type="coder")
    lines = lines_of(world.shown()[1])
    at = lines.index("sessions here")
    assert lines[at + 2].startswith("s2 a7 claude 1 0 of 4 passed ")
    assert lines[at + 3].startswith("s1 main claude 1 2 of 4 blocked ")
    at = lines.index("last decisions here")
    assert [line.split()[0] for line in lines[at + 2 : at + 5]] == ["3", "2", "1"]
    assert lines[at + 3].split()[2:] == ["blocked", "claude", "lint", "blocked"]
    assert any(line.startswith("ledger ") and line.endswith("kB)") for line in lines)


@pytest.mark.rule("B11")
def test_a_decision_that_the_host_overrode_is_shown_as_that(world):
    stop(world)
    stop(world, stop_hook_active=False, last_assistant_message="another turn")
    lines = lines_of(world.shown()[1])
    at = lines.index("last decisions here")
    assert "overridden" in lines[at + 3]


def test_a_program_reads_all_of_it_beside_what_it_read_before(world):
    stop(world)
    _, said = world.status()
    assert said["gated"] is True
    assert said["answer"]["says"].startswith("yes: 2 gates")
    assert {gate["name"]: gate["stage"] for gate in said["gates"]} == {
        "lint": 1,
        "review": 1,
        "tests": 2,
    }
    limits = {limit["name"]: (limit["value"], limit["source"]) for limit in said["limits"]}
    assert limits["max_blocks"] == (4, f"{world.project}/notyet.toml:2")
    assert limits["claude cap"][0] == 7
    (session,) = said["sessions"]
    assert (session["used"], session["limit"], session["source"]) == (1, 4, "max_blocks")
    assert [one["outcome"] for one in said["decisions"]] == ["blocked"]
    assert said["ledger"]["size"] > 0
    assert said["variables"] == []
    assert {"notyet", "folder", "ok", "faults", "hosts"} <= set(said)
    assert "setup" not in said["hosts"][0]
    assert said["hosts"][0]["cap"] == 8


def test_a_variable_that_switches_off_is_the_answer_and_is_named(world, monkeypatch):
    monkeypatch.setenv("NOTYET_DISABLE", "1")
    code, said = world.shown()
    assert code == 1
    lines = lines_of(said)
    assert lines[0].startswith("no: NOTYET_DISABLE is set")
    assert lines[1] == "to change that: run: unset NOTYET_DISABLE"
    assert "variables NOTYET_DISABLE" in lines


def test_gates_of_a_changed_file_that_stays_in_force_are_a_yes_with_a_but(world):
    (world.project / "notyet.toml").write_text(GATES + '[gates.more]\nrun = "true"\n')
    code, said = world.shown()
    assert code == 1
    lines = lines_of(said)
    assert lines[0].startswith("yes: 2 gates")
    assert lines[1].startswith("but ")


def test_hostile_names_cannot_paint(world):
    world.write('[gates."a\\u001b[31mb"]\nrun = "true"\n')
    stop(world, session_id="s\x1b[2J\nx")
    _, said = world.shown()
    assert "\x1b" not in said
    assert main(["status", "--why", "--agent-id", "a\x1b[2J"]) == 1
    assert "\x1b" not in world._capsys.readouterr().out


def test_a_ledger_that_is_none_is_said(world, monkeypatch, tmp_path):
    (tmp_path / "other.db").write_text("no ledger at all " * 100)
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path / "other.db"))
    code, said = world.shown()
    assert code == 1
    assert said.startswith("no: The ledger cannot be written")
    assert "it cannot be read: " in said


def why(world, *argv):
    world._capsys.readouterr()
    code = main(["status", "--why", *argv])
    return code, lines_of(world._capsys.readouterr().out)


def test_why_says_of_every_gate_what_it_would_do(world):
    code, lines = why(world)
    assert code == 0
    assert lines[0] == "a stop of the main agent of claude, session made-up"
    assert "lint asked notyet.toml:3 it is for the main agent; no pass of it is remembered" in lines
    assert "review not for it notyet.toml:10 it is not for the main agent" in lines
    assert lines[-1] == "0 of 4 send-backs used in this turn (max_blocks, notyet.toml:2)"


def test_why_knows_what_passed_and_when(world):
    (world.project / "ready").touch()
    stop(world)
    _, lines = why(world)
    (spared,) = [line for line in lines if line.startswith("lint ")]
    assert spared.startswith("lint spared notyet.toml:3 it is for the main agent; it passed on")
    assert spared.endswith("ago (stop 1)")


def test_why_is_meant_where_only_a_stop_is_described(world):
    world._capsys.readouterr()
    assert main(["status", "--agent-type", "coder"]) == 0
    assert "agent_type coder fits cod*" in world._capsys.readouterr().out


def test_why_takes_the_host_that_is_named(world):
    assert why(world, "codex")[1][0] == "a stop of the main agent of codex, session made-up"


def test_why_for_a_stop_that_meets_nobody_is_a_1(world):
    code, lines = why(world, "--agent-type", "writer")
    assert code == 1
    assert "nothing is asked: no gate applies" in lines


def test_why_reads_what_a_host_sent(world, monkeypatch):
    stop(world)
    sent = json.dumps(payload("claude", world.project, stop_hook_active=True))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sent.encode())))
    code, lines = why(world, "--as", "claude", "--payload", "-")
    assert code == 0
    assert lines[0] == "a stop of the main agent of claude, session s1"
    assert lines[-1].startswith("1 of 4 send-backs used")


def test_why_of_a_workspace_that_a_file_names_connects_to_nobody(world):
    world.write('workspace = "ssh://nowhere.invalid/srv"\n[gates]\nlint = "true"\n')
    code, lines = why(world)
    assert code == 0
    said = " ".join(lines)
    assert "lint asked" in said
    assert "on another machine, which was not asked" in said
    assert "no pass of it is remembered" in " ".join(why(world, "--workspace", "local")[1])


def test_why_folds_reasons_where_a_terminal_is_narrow(world, monkeypatch):
    monkeypatch.setattr("notyet.cli.status_why.width", lambda: 60)
    _, lines = why(world)
    at = next(n for n, line in enumerate(lines) if line.startswith("lint asked"))
    said = " ".join(lines[at : at + 2])
    assert said == "lint asked notyet.toml:3 it is for the main agent; no pass of it is remembered"


def test_why_for_programs_is_one_object(world):
    world._capsys.readouterr()
    assert main(["status", "--why", "--json"]) == 0
    said = json.loads(world._capsys.readouterr().out)["why"]
    assert (said["host"], said["limit"], said["off"]) == ("claude", 4, "")
    gates = {gate["gate"]: gate for gate in said["gates"]}
    assert (gates["lint"]["applies"], gates["lint"]["asked"]) == (True, True)
    assert gates["lint"]["spared"]["because"] == "no pass of it is remembered"
    assert gates["review"]["spared"] is None


def test_why_says_that_nothing_is_trusted_or_on(world):
    (world.project / "notyet.toml").write_text("[gates]\n")
    main(["off"])
    code, lines = why(world)
    assert code == 1
    assert any(line.startswith("nothing is asked: notyet is off in ") for line in lines)
    assert any(line.startswith("note: ") and "changed since" in line for line in lines)


def test_options_about_a_stop_do_not_go_with_asking(world, capsys):
    assert main(["status", "--ask", "--agent-type", "coder"]) == 2
    assert "--why" in capsys.readouterr().err


def test_a_payload_that_is_none_is_a_2_with_its_place(world, capsys):
    Path("bad.json").write_text('{"a": }')
    assert main(["status", "--why", "--payload", "bad.json"]) == 2
    assert capsys.readouterr().err.startswith("notyet status: bad.json:1:7: ")


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "none"), (600, "10m"), (5400, "90m"), (7200, "2h"), (1.5, "1.5s")]
)
def test_time_spans_are_written_as_in_a_file(seconds, text):
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "none yet"),
        (999, "999 bytes"),
        (1_500, "1.5 kB"),
        (25_000, "25 kB"),
        (3e15, "3000000 GB"),
    ],
)
def test_sizes_are_for_people(size, text):
    assert ledger_line(Lately(path="/l", size=int(size))) == f"/l ({text})"


def test_paths_are_as_short_as_they_can_be(monkeypatch):
    monkeypatch.setenv("HOME", "/home/you")
    assert near("/p/a/notyet.toml:3", "/p/a") == "notyet.toml:3"
    assert near("/home/you/x", "/p") == "~/x"
    assert near("/other/x", "") == "/other/x"
    assert near("default", os.getcwd()) == "default"
