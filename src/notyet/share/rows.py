"""What leaves the machine of a stop: without words, unless the user wants them shared.

Words are what agents and gates said, and folders. A project is a digest: of its git remote, so that
it is the same on every machine, or else of its folder on this machine.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING

from notyet.core.text import bounded, clean
from notyet.git.repository import top_of
from notyet.git.run import GitCommand, Output, Unknown, run
from notyet.run.proc import own_machine
from notyet.status.stop_words import said

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from notyet.core.verdict import Report
    from notyet.ledger.past_stops import PastStop

_MOST_WORDS = 8_000  # characters of one text
_LONGEST_NAME = 200
_LARGEST = (1 << 63) - 1
_GIT_PATIENCE = 5.0  # seconds
_MOST_REMOTES = 64 * 1024  # bytes
_REMOTES = ("config", "--get-regexp", r"^remote\..*\.url$")
_ORIGIN = "remote.origin.url "
# Why a stop was skipped, in one word. All else is a sentence.
_CAUSE = re.compile(r"[a-z][a-z-]{0,29}")


def digest(*parts: str) -> str:
    """Return a digest that does not tell what it is of."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=8).hexdigest()


class Projects:
    """The projects of stops; each folder is looked up once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def of(self, past: PastStop) -> str:
        """Return the digest of a stop's project; empty if its folder is unknown."""
        name = self.name(past)
        return digest(name) if name else ""

    def of_folder(self, folder: str) -> str:
        """Return the digest of the project around a folder."""
        return digest(self._named(folder, ""))

    def name(self, past: PastStop) -> str:
        """Return what identifies a stop's project: its remote, else machine and folder."""
        return self._named(past.place, past.event.workspace)

    def _named(self, place: str, workspace: str) -> str:
        key = place, workspace
        if key not in self._names:
            top = top_of(place) if place else ""
            remote = workspace or (remote_of(top) if top else "")
            here = f"{own_machine()} {top or place}" if place else ""
            self._names[key] = remote or here
        return self._names[key]


def remote_of(top: str) -> str:
    """Return the remote of a repository, the same for every way to write it; empty for none."""
    printed = Output(_MOST_REMOTES)
    try:
        run([GitCommand(top, _REMOTES, printed.take, top)], monotonic() + _GIT_PATIENCE)
    except Unknown:  # there is no git
        return ""
    lines = bytes(printed).decode("utf-8", "replace").splitlines()
    lines.sort(key=lambda line: not line.startswith(_ORIGIN))
    found = [normalized(line.partition(" ")[2]) for line in lines]
    return next(filter(None, found), "")


def normalized(url: str) -> str:
    """Return host and path of a remote, without user, password, port and `.git`."""
    scheme, has_scheme, rest = url.strip().partition("://")
    if has_scheme:
        host, _, path = rest.partition("/")
    else:
        host, _, path = scheme.partition(":")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    path = path.strip("/").removesuffix(".git")
    is_local = scheme == "file" or "/" in host or not host
    return "" if is_local or not path else f"{host}/{path}"


def stop_row(past: PastStop, projects: Projects, *, words: bool) -> dict[str, Any]:
    """Return a stop by the columns of the team's table."""
    usage = past.event.usage
    row: dict[str, Any] = {
        "id": past.id,
        "at": past.begun_at,
        "host": past.host,
        "session": past.session_id,
        "agent": past.agent_id,
        "turn": past.turn,
        "project": projects.of(past),
        "outcome": past.outcome,
        "why": past.why if past.outcome == "skipped" and _CAUSE.fullmatch(past.why) else "",
        "count": past.count,
        "max_blocks": past.limit,
        "seconds": _seconds(past),
        "model": (past.event.model or "")[:_LONGEST_NAME] or None,
        "tokens_in": whole(usage.input) if usage else None,
        "tokens_out": whole(usage.output) if usage else None,
    }
    if words:
        row["words"] = {
            "project": projects.name(past),
            "folder": past.place,
            "said": _text(past.event.last_message or ""),
            "prompt": _text(past.prompt),
            "reason": _text(past.reason),
            "why": _text(past.why),
            "warnings": [_text(line) for line in past.warnings],
        }
    return row


def report_rows(past: PastStop, *, words: bool) -> list[dict[str, Any]]:
    """Return the reports of a stop by the columns of the team's table."""
    return [
        {
            "stop": past.id,
            "position": position,
            "gate": gate_name(report.gate, words=words),
            "status": report.status,
            "seconds": report.seconds,
            "observed": report.observed,
            "held": report.held,
            "definition": report.definition,
        }
        | ({"words": _report_words(report)} if words else {})
        for position, report in enumerate(past.reports)
    ]


def gate_name(name: str, *, words: bool) -> str:
    """Return a gate's name without the command and the folder that notyet may have put into it.

    Hooks of other hosts are called `claude Stop[0] npm test`, gates of members `web/app:tests`.
    """
    if words:
        return name[:_LONGEST_NAME]
    before, has_command, _ = name.partition("] ")
    name = f"{before}]" if has_command else name
    folder, _, own = name.rpartition(":")
    return (own if "/" in folder else name)[:_LONGEST_NAME]


def explanation(report: Report) -> str:
    """Return what a gate said, as `notyet log` shows it."""
    words, reason = said(report)
    return _text(words or reason)


def _report_words(report: Report) -> dict[str, Any]:
    words, reason = said(report)
    return {
        "said": _text(words),
        "reason": _text(reason),
        "output": "" if report.hidden else _text(report.output),
        "exit": report.exit,
        "warning": _text(report.warning),
    }


def whole(number: int) -> int:
    """Return a number of an agent in the range that others can hold."""
    return max(0, min(number, _LARGEST))


def _seconds(past: PastStop) -> float | None:
    return None if past.ended_at is None else max(0.0, past.ended_at - past.begun_at)


def _text(text: str) -> str:
    return bounded(clean(text), _MOST_WORDS)


def rows_of(
    stops: Sequence[PastStop], projects: Projects, *, words: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of stops, and those of their reports."""
    found = [stop_row(past, projects, words=words) for past in stops]
    return found, [row for past in stops for row in report_rows(past, words=words)]
