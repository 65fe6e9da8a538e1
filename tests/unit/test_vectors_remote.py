"""What hook commands say means the same when they run in a workspace elsewhere (M1)."""

import base64
import shlex

import pytest

from notyet import Command, Engine, Gate, Match
from notyet.core.record import replace
from notyet.core.remote import remote_from
from notyet.core.verdict import Block, Problem
from notyet.hosts import command_dialect, start_dialect
from notyet.hosts.conclaude import hooks as conclaude
from notyet.run.command_runner import run_together
from notyet.run.ssh_job import remote_job
from support import stop, substop
from wire import check_reading, ended, gate_of, replies, starts, vectors, verdict_of

pytestmark = pytest.mark.rule("M1")

IN_TIME = 60.0
SOON = 2.0  # for what takes for ever
HOOKS = ("notyet", "claude", "codex", "mux")
MISSING = ("no-such-program",)


def acting(fields):
    """Return a script that prints what a vector says, and ends as it does."""
    wanted = ended(fields)
    lines = [
        f"echo {base64.b64encode(content).decode()} | base64 -d {target}"
        for content, target in ((wanted.stdout, ""), (wanted.stderr, ">&2"))
        if content
    ]
    if wanted.timed_out:
        lines.append("exec sleep 60")
    elif wanted.code is None:
        lines.append(f"kill -{wanted.signal} $$")
    else:
        lines.append(f"exit {wanted.code}")
    return "\n".join(lines)


def argv_of(vector):
    return MISSING if vector["exit"].get("problem") else ("/bin/sh", "-c", acting(vector["exit"]))


def time_of(vector):
    return SOON if vector["exit"].get("timed_out") else IN_TIME


def ends(vector):
    """Leave out what only somebody from outside does, and what only our own child says."""
    is_cut = vector["exit"].get("cancelled") or vector["exit"].get("timed_out")
    return not is_cut and "python" not in vector.get("options", {})


def never_ends(vector):
    return vector["exit"].get("timed_out", False)


def run_there(warm_box, chosen):
    """Run what the vectors describe on the machine; return how each ended."""
    remote = remote_from(warm_box.url())
    jobs = [
        remote_job(remote, argv=argv_of(v), dir=remote.path, environ={}, timeout=time_of(v))
        for v in chosen
    ]
    return run_together(jobs)


def check_ending(real, fields):
    """Compare how a command ended there with how the vector says it does."""
    wanted = ended(fields)
    assert real.stdout == wanted.stdout
    assert real.stderr == wanted.stderr
    assert real.timed_out == wanted.timed_out
    if wanted.problem:
        assert shlex.join(MISSING) in real.problem
    else:
        assert real.problem == ""
    if not wanted.timed_out:
        assert (real.code, real.signal) == (wanted.code, wanted.signal)


def scope_of(vector):
    return vector.get("scope", "agent")


CASES = sorted({(speaks, scope_of(vector)) for speaks in HOOKS for vector in replies(speaks)})


@pytest.mark.parametrize(("speaks", "scope"), CASES)
def test_every_answer_of_a_hook_is_understood_as_if_it_ran_here(warm_box, speaks, scope):
    event = stop() if scope == "agent" else substop()
    chosen = [vector for vector in replies(speaks) if scope_of(vector) == scope and ends(vector)]
    gates = [
        Gate(
            name=vector["id"],
            check=Command(
                argv=argv_of(vector),
                speaks=speaks,
                workspace=warm_box.url(),
                options=vector.get("options", {}),
            ),
            match=Match(events=scope),
            timeout=IN_TIME,
        )
        for vector in chosen
    ]
    decision = Engine(gates).check_sync(event)
    for vector, report in zip(chosen, decision.reports, strict=False):
        check_report(report, vector["expect"])
    assert len(decision.reports) == len(chosen)


def check_report(report, expect):
    """Compare a report with what a vector says is read; of a problem only its kind."""
    wanted = {"warning": "", "tell_user": "", "hidden": False} | expect
    if wanted["answer"] == "problem":
        assert report.answer == Problem(wanted["problem"], report.answer.detail), report
    else:
        said = {k: wanted[k] for k in ("prompt", "reason", "note", "extend") if k in wanted}
        assert report.answer == verdict_of({"kind": wanted["answer"]} | said), report
    if wanted["warning"]:
        wanted["warning"] = f"on box: {wanted['warning']}"
    for name in ("warning", "tell_user", "hidden"):
        assert getattr(report, name) == wanted[name], report


def conclaude_gate(vector):
    gate = gate_of("conclaude", vector)
    return replace(gate, check=replace(gate.check, script="npm test"))


def test_commands_of_conclaude_end_there_as_they_end_here(warm_box):
    chosen = list(filter(ends, vectors("conclaude", "replies.json")))
    for vector, real in zip(chosen, run_there(warm_box, chosen), strict=True):
        check_ending(real, vector["exit"])
        told = {"problem": vector["exit"].get("problem", "")} if real.problem else {}
        read = command_dialect("conclaude").read_reply(
            conclaude_gate(vector), replace(real, **told)
        )
        check_reading(read, vector["expect"])


@pytest.mark.rule("F13")
def test_start_hooks_end_there_as_they_end_here(warm_box):
    chosen = [(speaks, v) for speaks in ("claude", "codex") for v in starts(speaks) if ends(v)]
    ended_there = run_there(warm_box, [vector for _, vector in chosen])
    for (speaks, vector), real in zip(chosen, ended_there, strict=True):
        check_ending(real, vector["exit"])
        reading = start_dialect(speaks).read_context(real, vector["start"])
        wanted = start_dialect(speaks).read_context(ended(vector["exit"]), vector["start"])
        if isinstance(wanted.answer, Problem):
            assert reading.answer.kind == wanted.answer.kind
        else:
            assert reading == wanted


@pytest.mark.rule("M2")
def test_what_takes_for_ever_there_is_out_of_time_as_it_is_here(warm_box):
    chosen = [
        (speaks, vector)
        for speaks in (*HOOKS, "conclaude")
        for vector in filter(never_ends, vectors(speaks, "replies.json"))
    ]
    assert len(chosen) >= 8
    run_there(warm_box, [{"exit": {"code": 0}}])  # to connect may take longer than they have
    ended_there = run_there(warm_box, [vector for _, vector in chosen])
    for (speaks, vector), real in zip(chosen, ended_there, strict=True):
        check_ending(real, vector["exit"])
        if "start" in vector:
            assert start_dialect(speaks).read_context(real, vector["start"]).context == ""
            continue
        gate = conclaude_gate(vector) if speaks == "conclaude" else gate_of(speaks, vector)
        check_reading(command_dialect(speaks).read_reply(gate, real), vector["expect"])


@pytest.mark.rule("D3", "F4")
@pytest.mark.parametrize(
    ("scope", "outcome", "ran"), [("stop", "blocked", "1"), ("subagentStop", "blocked", "1234")]
)
def test_commands_of_conclaude_are_asked_there_in_their_order(
    warm_box, tmp_path, scope, outcome, ran
):
    scripts = ("printf 1 >> ran; exit 3", "printf 2 >> ran", "printf 3 >> ran; exit 4")
    commands = [{"run": script} for script in scripts]
    commands[2] |= {"block": True} if scope == "subagentStop" else {}
    commands.append({"run": "printf 4 >> ran"})
    settings = {scope: {"commands": commands if scope == "stop" else {"*": commands}}}
    gates = [
        replace(gate, check=replace(gate.check, dir="", workspace=warm_box.url(tmp_path)))
        for gate in conclaude.gates(settings, "/.conclaude.yaml", lambda _path: 1)
    ]
    decision = Engine(gates).check_sync(stop() if scope == "stop" else substop())
    assert (decision.outcome, (tmp_path / "ran").read_text()) == (outcome, ran)
    first, *_ = decision.reports
    failed = "Command failed with exit code 3: printf 1 >> ran; exit 3"
    assert (first.answer, first.observed) == (Block(failed), scope == "subagentStop")
