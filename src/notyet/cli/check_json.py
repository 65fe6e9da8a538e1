"""What `notyet check --json` prints: one object with all that came of a check."""

from __future__ import annotations

from notyet.cli.hook_process import written
from notyet.core.verdict import Allow, Block, Halt, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.cli.check_asking import Checked
    from notyet.core.gate import Gate
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
