"""What `notyet check --json` prints: one object with all that came of a check."""

from __future__ import annotations

import os

from rich.cells import cell_len

from notyet.cli.terminal import Style, one_line, padded, table
from notyet.core.record import replace
from notyet.core.text import clean, listed, visible
from notyet.core.verdict import Allow, Block, Halt, Problem
from notyet.hook.process import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from notyet.cli.check_asking import Checked
    from notyet.core.gate import Gate, Source
    from notyet.core.verdict import Answer, Report


def plain(checked: Checked, host: str | None) -> dict[str, Any]:
    """Return a check as plain types; with the exact reply, for a host."""
    decision, event = checked.decision, checked.event
    verdict = decision.verdict
    gates = {gate.name: gate for gate in checked.setup.gates}
    said: dict[str, Any] = {
        "verdict": type(verdict).__name__.lower(),
        "outcome": decision.outcome,
        "why": decision.why,
        "held": not isinstance(verdict, Allow),
        "prompt": verdict.prompt if isinstance(verdict, Block) else None,
        "reason": _reason(verdict),
        "host": event.host,
        "event": "subagent_stop" if event.scope == "subagent" else "stop",
        "folder": event.cwd,
        "workspace": event.workspace,
        "stop": _stop(checked),
        "reports": [_report(report, gates[report.gate], checked) for report in decision.reports],
        "unasked": [_place(gate) | {"why": why} for gate, why in checked.unasked],
        "untrusted": [{"file": f.path, "run": f.command} for f in checked.setup.untrusted],
        "notes": list(checked.notes),
    }
    if host:
        reply = checked.reply
        said["reply"] = {
            "host": host,
            "stdout": written(reply.stdout).decode(),
            "stderr": written(reply.stderr).decode(),
            "code": reply.code,
        }
    return said


def _stop(checked: Checked) -> dict[str, Any]:
    """Return what a stop would come to now, which leaves out whom it spares."""
    foretold = checked.foretold
    return {
        "verdict": type(foretold.verdict).__name__.lower(),
        "outcome": foretold.outcome,
        "why": foretold.why,
    }


def _reason(verdict: Allow | Block | Halt) -> str | None:
    if isinstance(verdict, Block):
        return verdict.because
    return verdict.reason if isinstance(verdict, Halt) else None


def _place(gate: Gate) -> dict[str, Any]:
    file, line = (gate.source.file, gate.source.line) if gate.source is not None else ("", 0)
    return {"gate": gate.name, "file": file, "line": line}


def _report(report: Report, gate: Gate, checked: Checked) -> dict[str, Any]:
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
        "answered": report.gate in checked.answered and report.answer is not None,
        "spared": checked.spared.get(report.gate, ""),  # why a stop would not ask it now
    }


def _words(answer: Answer | None) -> str:
    if isinstance(answer, Block):
        return answer.because
    if isinstance(answer, Halt):
        return answer.reason
    return str(answer) if isinstance(answer, Problem) else ""


_RESULTS = {
    "allowed": ("passed", "green"),
    "blocked": ("failed", "red"),
    "halted": ("halted", "red"),
    "problem": ("broken", "yellow"),
    "not_asked": ("not asked", "dim"),
}
_SPARED = {
    "passed": "it passed on these files before",
    "unchanged": "no file changed since this agent began",
}
_MOST_NOTE = 400
_MOST_NAME_SHOW = 60  # columns of a gate and its place


class Show:
    """Prints what came of a check."""

    def __init__(self, stream: TextIO, cwd: str) -> None:
        self._style = Style(stream)
        self._stream = stream
        self._cwd = os.path.realpath(cwd)

    def all(self, checked: Checked, host: str | None) -> None:
        """Print everything; for a host, also what it would be answered."""
        self._table(checked)
        self._others(checked)
        self._notes(checked)
        self._verdict(checked)
        if host:
            self._reply(checked, host)

    def _line(self, text: str = "") -> None:
        print(text, file=self._stream)

    def _table(self, checked: Checked) -> None:
        gates = {gate.name: gate for gate in checked.setup.gates}
        rows = [
            (
                report.gate,
                result(report),
                f"{report.seconds:.1f} s" if _was_asked(report, checked) else "",
                how(report, checked),
                place(gates[report.gate].source, self._cwd),
            )
            for report in checked.decision.reports
        ]
        if rows:
            head = ("gate", "result", "time", "how", "where")
            for line in table(head, rows, self._style, right=("time",)):
                self._line(line)
            self._line()

    def _others(self, checked: Checked) -> None:
        """Print which gates a stop would not have asked, and why."""
        spared = [(name, _SPARED.get(why, why)) for name, why in checked.spared.items()]
        self._list("a stop would not ask now:", spared)
        apart = [(_named(gate, self._cwd), why) for gate, why in checked.unasked]
        self._list("not for this stop:", apart)

    def _list(self, title: str, rows: list[tuple[str, str]]) -> None:
        if not rows:
            return
        self._line(self._style.paint(title, "bold"))
        names = [one_line(name, _MOST_NAME_SHOW) for name, _ in rows]
        width = max(map(cell_len, names))
        for name, (_, why) in zip(names, rows, strict=True):
            self._line(f"  {padded(name, width)}  {one_line(why, 200)}")
        self._line()

    def _notes(self, checked: Checked) -> None:
        said = summary(checked)[0]
        notes = [note for note in checked.notes if note not in said]
        for note in notes:
            self._line(f"{self._style.paint('!', 'yellow')} {one_line(visible(note), _MOST_NOTE)}")
        if notes:
            self._line()

    def _verdict(self, checked: Checked) -> None:
        verdict = checked.decision.verdict
        words, colour = summary(checked)
        stop = at_a_stop(checked)
        if stop:
            words = f"asked now, {words}"
        self._line(self._style.paint(one_line(words, _MOST_NOTE), colour))
        if stop:
            self._line(self._style.paint(one_line(stop, _MOST_NOTE), "yellow"))
        asked = " by a stop that asks all" if stop else ""
        if isinstance(verdict, Block):
            self._line(f"The agent would be told{asked}:")
            self._line()
            self._text(verdict.prompt)
        elif isinstance(verdict, Halt) and verdict.reason.strip():
            self._line(f"Its user would be told{asked}:")
            self._line()
            self._text(verdict.reason)

    def _text(self, text: str) -> None:
        for line in clean(text).splitlines():
            self._line(f"  {line}".rstrip())

    def _reply(self, checked: Checked, host: str) -> None:
        """Print the bytes that a host would see, each stream under its name."""
        reply = checked.reply
        self._line()
        self._line(self._style.paint(f"{host} would get, from `notyet hook`:", "bold"))
        for name, text in (("stdout", reply.stdout), ("stderr", reply.stderr)):
            label = self._style.paint(f"{name}:", "cyan")
            if not text:
                self._line(f"{label} {self._style.paint('(nothing)', 'dim')}")
                continue
            self._line(label)
            self._line(clean(text).removesuffix("\n"))
        self._line(f"{self._style.paint('exit code:', 'cyan')} {reply.code}")


def result(report: Report) -> tuple[str, str]:
    """Return in a word or two what a gate said, and their colour."""
    if report.observed and isinstance(report.answer, Block | Halt):
        return "would fail", "cyan"
    if report.failed_lightly:
        return "failed, holds nobody", "yellow"
    return _RESULTS.get(report.status, (report.status, "dim"))


def _was_asked(report: Report, checked: Checked) -> bool:
    return report.answer is not None and report.gate not in checked.answered


def how(report: Report, checked: Checked) -> str:
    """Say how a gate came to what it said: its exit, its problem, or why it was not asked."""
    if report.gate in checked.answered and report.answer is not None:
        return "--answer"
    if report.answer is None:
        return "a gate before it holds" if checked.decision.outcome != "skipped" else ""
    if isinstance(report.answer, Problem):
        return report.answer.kind.replace("_", " ")
    said = report.exit if report.exit != "exit 0" else ""
    if report.workspace:
        from notyet.core.remote import remote_from

        return f"{said} on {remote_from(report.workspace).destination}".strip()
    return said


def place(source: Source | None, cwd: str) -> str:
    """Return the file and the line of a gate, as seen from a folder."""
    if source is None:
        return ""
    file = source.file
    if file.startswith(cwd.rstrip("/") + "/"):
        file = file[len(cwd.rstrip("/")) + 1 :]
    return f"{visible(file)}:{source.line}" if source.line else visible(file)


def _named(gate: Gate, cwd: str) -> str:
    where = place(gate.source, cwd)
    return f"{gate.name} ({where})" if where else gate.name


def summary(checked: Checked) -> tuple[str, str]:
    """Say in one sentence what would become of the agent, and in which colour."""
    decision = checked.decision
    if decision.outcome == "passed":
        return "passed: the agent may stop", "green"
    if decision.outcome == "blocked":
        return f"held: the agent is sent back by {decision.why}", "red"
    if decision.outcome == "halted":
        names = listed([r.gate for r in decision.reports if isinstance(r.answer, Halt)])
        return f"held: the agent's turn is ended by {names}", "red"
    if decision.outcome == "failed_open":
        return f"let go unchecked: {decision.why}", "yellow"
    if decision.outcome == "observed":
        return f"passed: {decision.why}, but only observes", "green"
    if decision.outcome != "skipped":
        return f"let go, {decision.outcome}: {decision.why}", "yellow"
    return _nothing_asked(checked), "yellow"


def at_a_stop(checked: Checked) -> str:
    """Say what a stop would do now, if it is something else because it spares gates (N1)."""
    foretold = checked.foretold
    if foretold.verdict == checked.decision.verdict:
        return ""
    unasked = f"a stop now would not ask {listed([*checked.spared])}"
    if isinstance(foretold.verdict, Allow):
        return f"{unasked}: the agent may stop"
    return f"{unasked}: {summary(replace(checked, decision=foretold))[0]}"


def _nothing_asked(checked: Checked) -> str:
    decision, setup = checked.decision, checked.setup
    if decision.why == "background":
        return "nothing was asked: other work of this session goes on, and wakes the agent again"
    if decision.why == "untrusted":
        return "nothing was asked: nobody trusted these gates yet"
    if decision.why == "ledger":
        return f"a stop would let the agent go unchecked: {listed(decision.warnings)}"
    if decision.why == "config":
        return "nothing was asked: there is no file that can be read"
    if decision.why == "no-session":
        return "nothing was asked: the event has no session_id"
    if decision.why != "no-gate":
        return f"nothing was asked: {listed(decision.warnings) or decision.why}"
    if setup.gates or checked.unasked:
        return "nothing was asked: no gate is for this stop"
    return "nothing was asked: there are no gates here; to write some, run: notyet init"
