"""`notyet check`: run the gates now, as a stop would, and show what fails."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
from typing import TYPE_CHECKING

from notyet.cli.formats import (
    Case,
    add_format_options,
    chosen,
    ci_printers,
    refused,
    relative,
    write_all,
)
from notyet.cli.gate_words import MARKS, how_it_ended, result
from notyet.cli.person import refuse
from notyet.cli.progress import Progress
from notyet.cli.rehearsal import AnswerOption, Rehearsal, rehearse
from notyet.cli.signals import ended_in_order
from notyet.cli.stop_options import add_event_options, described_stop
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, cut, folded, one_line, table, width
from notyet.config.document import did_you_mean
from notyet.core.gate import Command
from notyet.core.remote import remote_from
from notyet.core.text import clean, listed, visible
from notyet.core.verdict import UNCHECKED, Allow, Block, Halt, Problem
from notyet.errors import NotyetError
from notyet.hook.process import written
from notyet.run.groups import sweep

if TYPE_CHECKING:
    from typing import Any, TextIO

    from notyet.cli.formats import Status
    from notyet.cli.terminal import Cell
    from notyet.core.gate import Gate, Source
    from notyet.core.verdict import Answer, Decision, Report

SUMMARY = "run the gates now, as a stop would"
EXAMPLES = (
    ("notyet check", "run every gate that a stop of the main agent would meet"),
    ("notyet check tests lint", "only these"),
    ("notyet check --as claude", "with the exact answer that Claude Code would get"),
    ("notyet check --event subagent_stop --agent-type coder", "as for a subagent of this type"),
    ("notyet check --payload stop.json", "as for what a host really sent"),
    ("notyet check --answer 'tests=block:Fix the tests.'", "as if this gate had answered so"),
    ("notyet check --json", "for programs"),
    ("notyet check --format github --format junit=gates.xml", "for CI"),
)
_USAGE = _NOT_RUN = 2  # exit codes


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these gates")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        type=_answer,
        metavar="NAME=VERDICT[:WORDS]",
        help="do not run this gate: take it to answer allow, block, halt, broken or exit:N",
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S", help="seconds that the host waits for an answer"
    )
    add_format_options(parser)
    add_event_options(parser)


def _answer(text: str) -> AnswerOption:
    try:
        return AnswerOption.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> str:
    try:
        is_right = float(text) > 0
    except ValueError:
        is_right = False
    if not is_right:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return text


def run(args: argparse.Namespace) -> int:
    """Run the gates; exit 2 if one gave no answer or there is none, else 1 if one blocks."""
    cwd = os.getcwd()
    if os.environ.get("NOTYET_INSIDE"):  # it would run itself, for ever (E11)
        return refuse("check", "this runs inside a gate, and a gate does not run the gates", _USAGE)
    try:
        outputs = chosen(args)
    except ValueError as error:
        return refuse("check", str(error), _USAGE)
    try:
        done = _rehearse(args, cwd)
    except NotyetError as error:
        return refused("check", outputs, visible(str(error)), _USAGE)
    if done.unknown:
        return refused("check", outputs, visible(_unknown(done)), _USAGE)
    if done.trouble:
        refuse("check", done.trouble)
    printers = {
        "text": lambda stream: Show(stream, cwd).all(done, args.as_host),
        "json": lambda stream: print(json_line(json_of(done, args.as_host)), file=stream),
        **ci_printers("check", cases_of(done, cwd), _in_short(done)),
    }
    is_written = write_all("check", outputs, printers)
    if done.is_unchecked or not is_written:
        return _NOT_RUN
    return 1 if done.blocks else 0


def _rehearse(args: argparse.Namespace, cwd: str) -> Rehearsal:
    """Run the gates with progress on the terminal; a signal ends them too."""
    # A session of its own: what a judge may cost in one is counted for agents.
    stop = described_stop(args, cwd, f"check-{secrets.token_hex(8)}")
    with ended_in_order(sweep), Progress("looking at the files ...") as progress:
        return rehearse(
            stop,
            os.environ,
            names=args.names,
            answers=args.answer,
            timeout=args.timeout or "",
            progress=progress.jobs,
        )


def _unknown(done: Rehearsal) -> str:
    names = [gate.name for gate in done.setup.gates]
    there = f"choose one of {listed(names)}" if names else "no gates are in force here"
    hint = did_you_mean(done.unknown[0], names) or there
    said = f"there is no gate {done.unknown[0]!r}; {hint}"
    # It may be in a file, or in a part of one, that is not in force.
    return " | ".join([said, *done.setup.warnings, *done.setup.distrust])


_UNCHANGED = {
    "passed": "it passed on these files before",
    "unchanged": "no file changed since this agent began",
}
_WHY_NOT_RUN = {
    "background": "other work of this session still runs, and will wake the agent",
    "untrusted": "these gates are not trusted yet; review them with: notyet trust",
    "config": "no configuration file can be read",
    "no-session": "the event has no session_id",
}
_MAX_NOTE = 400  # columns
_INDENT = "  "
_MAX_LINES = 40  # of what a failed gate printed


def json_of(done: Rehearsal, host: str | None) -> dict[str, Any]:
    """Return a check as plain types; for a host, with the exact reply."""
    decision, event, setup = done.decision, done.event, done.setup
    verdict = decision.verdict
    at_a_stop = done.stop_decision or decision
    gates = {gate.name: gate for gate in setup.gates}
    reason = verdict.reason if isinstance(verdict, Halt) else None
    said: dict[str, Any] = {
        **_verdict(decision),
        "held": not isinstance(verdict, Allow),
        "prompt": verdict.prompt if isinstance(verdict, Block) else None,
        "reason": verdict.because if isinstance(verdict, Block) else reason,
        "host": event.host,
        "event": "subagent_stop" if event.scope == "subagent" else "stop",
        "folder": event.cwd,
        "workspace": event.workspace,
        "stop": _verdict(at_a_stop),
        "reports": [_report(report, gates[report.gate], done) for report in decision.reports],
        "unasked": [_place(gate) | {"why": why} for gate, why in done.not_applying],
        "untrusted": [{"file": f.path, "run": f.command} for f in setup.untrusted],
        "notes": list(done.notes),
    }
    if host:
        said["reply"] = {
            "host": host,
            "stdout": written(done.reply.stdout).decode(),
            "stderr": written(done.reply.stderr).decode(),
            "code": done.reply.code,
        }
    return said


def _verdict(decision: Decision) -> dict[str, Any]:
    verdict = type(decision.verdict).__name__.lower()
    return {"verdict": verdict, "outcome": decision.outcome, "why": decision.why}


def _place(gate: Gate) -> dict[str, Any]:
    file, line = (gate.source.file, gate.source.line) if gate.source is not None else ("", 0)
    return {"gate": gate.name, "file": file, "line": line}


def _report(report: Report, gate: Gate, done: Rehearsal) -> dict[str, Any]:
    return _place(gate) | {
        "status": report.status,
        "words": _words(report.answer),
        "exit": report.exit,
        "seconds": round(report.seconds, 3),
        "output": report.output,
        "observed": report.observed,
        "warning": report.warning,
        "definition": report.definition,
        "workspace": report.workspace,
        "answered": report.gate in done.answered and report.answer is not None,
        "spared": done.skipped_unchanged.get(report.gate, ""),
    }


def _words(answer: Answer | None) -> str:
    if isinstance(answer, Block):
        return answer.because
    if isinstance(answer, Halt):
        return answer.reason
    return str(answer) if isinstance(answer, Problem) else ""


def cases_of(done: Rehearsal, cwd: str) -> list[Case]:
    """Return a check as cases: one per gate, and one for whatever else was not checked.

    One of them failed or is an error if, and only if, the check does not exit with 0.
    """
    cases = [_case(report, done, cwd) for report in done.decision.reports]
    for gate, why in done.not_applying:
        is_named = gate.name in done.names
        cases.append(
            Case(
                **_named_place(gate, cwd),
                status="error" if is_named else "skipped",
                message=f"{UNCHECKED}: {gate.name}: {why}" if is_named else why,
            )
        )
    cases += [
        Case(
            name=file.path,
            status="warning" if done.names else "error",
            message=f"{UNCHECKED}: {visible(file.distrust)}",
            file=relative(file.path, cwd),
        )
        for file in done.setup.untrusted
    ]
    cases += [
        Case(name="notyet check", status="error", message=f"{UNCHECKED}: {visible(words)}")
        for words in done.setup.unchecked
    ]
    said = _in_short(done)
    if done.is_unchecked and not any(case.status == "error" for case in cases):
        cases.append(Case(name="notyet check", status="error", message=said))
    known = " ".join([said, *done.setup.distrust, *done.setup.unchecked])
    broken = tuple(f"gate {case.name} " for case in cases if case.status == "error")
    notes = [note for note in (done.trouble, *done.notes) if note and note not in known]
    notes = [note for note in notes if not note.startswith(broken)]
    cases += [Case(name="note", status="warning", message=visible(note)) for note in notes]
    return cases


def _in_short(done: Rehearsal) -> str:
    return one_line(summary(done, done.decision)[0], _MAX_NOTE)


def _case(report: Report, done: Rehearsal, cwd: str) -> Case:
    """Return the case of a gate that applies."""
    gate = next(gate for gate in done.setup.gates if gate.name == report.gate)
    answer, is_not_run = report.answer, report.answer is None
    failed = isinstance(answer, Block | Halt)
    status: Status = "failed" if failed else "passed"
    message = _title(report, gate) if failed else ""
    if isinstance(answer, Problem) or (is_not_run and not done.blocks):
        status, message = "error", f"{UNCHECKED}: {report.gate}: {answer or _how(report, done)}"
    elif is_not_run:
        status, message = "skipped", _how(report, done)
    if report.observed and status in {"failed", "error"}:
        status, message = "warning", f"{message} (it only observes)"
    details = report.output
    if message and not is_not_run:
        details = "\n".join([*_printed(report), *_hint(gate)])
    return Case(
        **_named_place(gate, cwd),
        status=status,
        message=one_line(message, _MAX_NOTE),
        details=details,
        seconds=report.seconds,
    )


def _named_place(gate: Gate, cwd: str) -> dict[str, Any]:
    """Return a gate's name, and the file and line that define it."""
    place = _place(gate)
    return {"name": gate.name, "file": relative(place["file"], cwd), "line": place["line"]}


class Show:
    """Prints what came of a check."""

    def __init__(self, stream: TextIO, cwd: str) -> None:
        self._style = Style(stream)
        self._stream = stream
        self._cwd = os.path.realpath(cwd)

    def all(self, done: Rehearsal, host: str | None) -> None:
        """Print everything; for a host, also what the agent would read, and the exact reply."""
        self._gates(done)
        if not host:
            self._failures(done)
        unchanged = done.skipped_unchanged.items()
        rows = [(name, _UNCHANGED.get(why, why)) for name, why in unchanged]
        self._list("a stop would skip now:", rows)
        apart = [(_named(gate, self._cwd), why) for gate, why in done.not_applying]
        self._list("not for this stop:", apart)
        self._notes(done)
        self._verdict(done, host)
        if host:
            self._words(done)
            self._reply(done, host)

    def _line(self, text: str = "", *colours: str) -> None:
        print(self._style.paint(text, *colours), file=self._stream)

    def _gates(self, done: Rehearsal) -> None:
        """Print a line for each gate: its mark, its seconds, and how it went."""
        rows: list[tuple[Cell, ...]] = []
        for report in done.decision.reports:
            has_run = report.answer is not None and report.gate not in done.answered
            took = f"{report.seconds:.1f} s" if has_run else ""
            mark, colour = MARKS.get(report.status, "-"), result(report)[1]
            rows.append(((f"{mark} {report.gate}", colour), took, (_how(report, done), colour)))
        columns = width(self._stream) - len(_INDENT)
        head = ("", "time", "")
        for line in table(head, rows, self._style, right=("time",), columns=columns)[1:]:
            self._line(f"{_INDENT}{line}")
        if rows:
            self._line()

    def _failures(self, done: Rehearsal) -> None:
        """Print the end of what each gate printed that failed."""
        gates = {gate.name: gate for gate in done.setup.gates}
        for report in done.decision.reports:
            if not isinstance(report.answer, Block | Halt | Problem):
                continue
            gate = gates[report.gate]
            title = _title(report, gate, _where(gate.source, self._cwd))
            self._line(one_line(title, _MAX_NOTE), "bold", result(report)[1])
            lines = _printed(report)
            if len(lines) > _MAX_LINES:
                left_out = len(lines) - _MAX_LINES
                self._line(f"  ... {left_out} lines left out (all: notyet check --json)", "dim")
            for line in lines[-_MAX_LINES:]:
                self._line(f"{_INDENT}{cut(line, _MAX_NOTE)}".rstrip())
            for line in _hint(gate):
                self._line(line)
            self._line()

    def _list(self, title: str, rows: list[tuple[str, str]]) -> None:
        if rows:
            self._line(title, "bold")
            for line in table(("", ""), rows, self._style)[1:]:
                self._line(f"  {line}")
            self._line()

    def _notes(self, done: Rehearsal) -> None:
        said = summary(done, done.decision)[0]
        notes = [note for note in done.notes if note not in said]
        for note in notes:
            self._line(f"{self._style.paint('!', 'yellow')} {one_line(visible(note), _MAX_NOTE)}")
        if notes:
            self._line()

    def _verdict(self, done: Rehearsal, host: str | None) -> None:
        verdict = done.decision.verdict
        words, colour = summary(done, done.decision)
        at_a_stop = _at_a_stop(done)
        if at_a_stop:
            words = f"run now, {words}"
        more = ""
        if not host and not isinstance(verdict, Allow):
            who = "it" if isinstance(verdict, Block) else "its user"
            command = " ".join(["notyet check", *map(shlex.quote, done.names), "--as"])
            more = f" (what {who} would read: {visible(command)} {done.event.host})"
        self._line(folded(one_line(words, _MAX_NOTE) + more, 0), colour)
        if at_a_stop:
            self._line(one_line(at_a_stop, _MAX_NOTE), "yellow")

    def _words(self, done: Rehearsal) -> None:
        """Print what the agent or its user would read."""
        verdict = done.decision.verdict
        when = " at a stop that runs all gates" if _at_a_stop(done) else ""
        text = ""
        if isinstance(verdict, Block):
            self._line(f"The agent would read{when}:")
            text = verdict.prompt
        elif isinstance(verdict, Halt) and verdict.reason.strip():
            self._line(f"Its user would read{when}:")
            text = verdict.reason
        for line in ["", *clean(text).splitlines()] if text else ():
            self._line(f"  {line}".rstrip())

    def _reply(self, done: Rehearsal, host: str) -> None:
        """Print the bytes that a host would get, each stream under its name."""
        reply = done.reply
        self._line()
        self._line(f"{host} would get, from `notyet hook`:", "bold")
        for name, text in (("stdout", reply.stdout), ("stderr", reply.stderr)):
            label = self._style.paint(f"{name}:", "cyan")
            if not text:
                self._line(f"{label} {self._style.paint('(nothing)', 'dim')}")
                continue
            self._line(label)
            self._line(clean(text).removesuffix("\n"))
        self._line(f"{self._style.paint('exit code:', 'cyan')} {reply.code}")


def _how(report: Report, done: Rehearsal) -> str:
    """Return what explains a result: how it went, the problem, or why the gate did not run."""
    if report.answer is None:
        why = ": a gate before it blocks" if done.decision.outcome != "skipped" else ""
        return f"not run{why}"
    watched = f"{result(report)[0]}, but only observes" if report.observed else ""
    watched = watched if not isinstance(report.answer, Allow) else ""
    how = how_it_ended(report)
    if report.gate in done.answered:
        how = "--answer"
    there = f"on {remote_from(report.workspace).destination}" if report.workspace else ""
    return " · ".join(filter(None, (how, there, watched)))


def _title(report: Report, gate: Gate, where: str = "") -> str:
    """Return the title of a gate that failed: how it ended, and its command."""
    assert isinstance(gate.check, Command)  # files hold no functions
    ended = report.exit if report.exit != "exit 0" else ""  # then it printed its answer
    how = ", ".join(filter(None, (ended, where)))
    word = result(report)[0].upper()
    return f"{word} {report.gate}{f' ({how})' if how else ''}: {gate.check.first_line}"


def _hint(gate: Gate) -> list[str]:
    assert isinstance(gate.check, Command)
    hint = gate.check.options.get("hint")
    return [f"Hint: {one_line(hint, _MAX_NOTE)}"] if hint else []


def _printed(report: Report) -> list[str]:
    """Return the lines that a gate printed, or else said."""
    text = report.output if report.output.strip() else _words(report.answer)
    lines = clean(text).strip("\n").split("\n")
    told = clean(report.tell_user).strip()
    return [*lines, *told.split("\n")] if told and told not in text else lines


def _where(source: Source | None, cwd: str) -> str:
    """Return the file and line of a gate, relative to a folder."""
    if source is None:
        return ""
    file = visible(relative(source.file, cwd))
    return f"{file}:{source.line}" if source.line else file


def _named(gate: Gate, cwd: str) -> str:
    where = _where(gate.source, cwd)
    return f"{gate.name} ({where})" if where else gate.name


def summary(done: Rehearsal, decision: Decision) -> tuple[str, str]:
    """Return in one sentence what a decision means for the agent, and its colour."""
    if decision.outcome == "passed":
        return "passed: the agent may stop", "green"
    if decision.outcome == "blocked":
        return f"blocked: the agent would be sent back by {decision.why}", "red"
    if decision.outcome == "halted":
        names = listed([r.gate for r in decision.reports if isinstance(r.answer, Halt)])
        return f"halted: the agent's turn would be ended by {names}", "red"
    if decision.outcome == "failed_open":
        return f"NOT CHECKED: {decision.why}", "yellow"
    if decision.outcome == "observed":
        return f"passed: {decision.why}, but only observes", "green"
    if decision.outcome != "skipped":
        return f"NOT PASSED: {decision.why}", "yellow"
    return _skipped(done, decision), "yellow"


def _at_a_stop(done: Rehearsal) -> str:
    """Return what a stop would do now, if it differs because it skips unchanged gates (N1)."""
    decision = done.stop_decision or done.decision
    if decision.verdict == done.decision.verdict:
        return ""
    unchanged = f"a stop now would skip {listed([*done.skipped_unchanged])}"
    if isinstance(decision.verdict, Allow):
        return f"{unchanged}: the agent may stop"
    return f"{unchanged}: {summary(done, decision)[0]}"


def _skipped(done: Rehearsal, decision: Decision) -> str:
    why, warnings = decision.why, listed(decision.warnings)
    if why == "ledger":
        return f"NOT CHECKED: a stop would be allowed: {warnings}"
    if why != "no-gate":
        return f"nothing was run: {_WHY_NOT_RUN.get(why) or warnings or why}"
    if done.setup.gates or done.not_applying:
        return "nothing was run: no gate is for this stop"
    return "nothing was run: there are no gates here; to write some, run: notyet init"
