"""The progress of `notyet with` on stderr while an agent works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from notyet.cli.terminal import QuietLines, one_line
from notyet.core.message import note
from notyet.core.text import bounded, clean, visible
from notyet.core.verdict import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from notyet.core.task import Result
    from notyet.core.verdict import Decision, Report
    from notyet.supervise import Progress

_MAX_ERROR = 600
_CONTINUES = {"text", "tool", "steering"}  # progress after a failure that was not the end
_STATUS = {
    "allowed": ("passed", "green"),
    "blocked": ("failed", "red"),
    "halted": ("halted", "yellow"),
    "problem": ("broken", "yellow"),
    "not_asked": ("not run", "dim"),
    "remembered": ("passed before", "green"),
    "unchanged": ("unchanged", "dim"),
}


class Screen:
    """Prints progress. It never fails: the agent works on if the terminal is gone."""

    def __init__(self, agent: str) -> None:
        self._lines = QuietLines(sys.stderr)
        self.paint = self._lines.paint
        self._agent = agent
        self._task = ""
        self._sent_back = ""  # the prompt of the last send-back
        self._failure = ""  # the error of the last run
        self._trouble = ""  # the last error that the agent reported while it worked
        self._decision: Decision | None = None
        self._kinds: dict[str, Callable[[Progress], None]] = {
            "text": self._text,
            "tool": self._tool,
            "error": self._error,
            "turn": self._turn,
            "gating": self._gating,
            "decided": self._decided,
            "steering": self._steered,
        }

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return self._lines.seconds

    def begin(self, task: str, prompt: str) -> None:
        """Print the task."""
        self._task = task
        self._event("task", f"{task}: {one_line(prompt, self._lines.room - len(task) - 2)}")

    def gates(self, names: Sequence[str], limit: int) -> None:
        """Print the gates that the agent has to pass."""
        times = "1 send-back" if limit == 1 else f"{limit} send-backs"
        self._event("gates", one_line(f"{', '.join(names)} (at most {times})", self._lines.room))

    def say(self, text: str, *, who: str = "notyet") -> None:
        """Print a text for the user, in full: it may name a command to run."""
        self._event(who, " ".join(clean(text).split()))

    def warn(self, text: str) -> None:
        """Print a warning."""
        self._event("notyet", self.paint(" ".join(clean(text).split()), "yellow"))

    def on_progress(self, progress: Progress) -> None:
        """Print what happens to our task, not to others that are recovered."""
        if self._task in {"", progress.task_id} and progress.kind in self._kinds:
            if self._failure and progress.kind in _CONTINUES:
                self._event(self._agent, self.paint(_one_line_error(self._failure), "red"))
                self._failure = ""
            self._kinds[progress.kind](progress)

    def complain(self, why: str) -> None:
        """Print why the command failed."""
        self._lines.line(f"notyet with: {' '.join(clean(why).split())}")

    def flush(self) -> None:
        """Give a slow reader a moment for the rest."""
        self._lines.flush()

    def ended(self, result: Result) -> None:
        """Print how it ended."""
        words, colour = _ending(result, self._decision)
        self._event("notyet", f"{self.paint(words, 'bold', colour)} ({_figures(result)})")
        for text in result.unsent:
            self.warn(f"not sent, because the agent has ended: {text}")
        if result.rejected:
            self.warn("its last answer was empty; the one before, which a gate sent back, is kept")

    def _text(self, progress: Progress) -> None:
        text = one_line(progress.text, self._lines.room)
        if text:
            self._event(self._agent, text)

    def _tool(self, progress: Progress) -> None:
        tool = one_line(visible(progress.tool), 40)
        given = one_line(progress.text, max(10, self._lines.room - len(tool) - 2))
        words = f"{tool}: {given}" if given not in {"", "{}"} else tool
        self._event(self._agent, self.paint(words, "dim"))

    def _error(self, progress: Progress) -> None:
        if progress.text != self._trouble:  # an agent that tries again repeats itself
            self._trouble = progress.text
            self._event(self._agent, self.paint(_one_line_error(progress.text), "yellow"))

    def _turn(self, progress: Progress) -> None:
        if progress.turn is not None:
            self._failure = progress.turn.error or ""

    def _gating(self, _progress: Progress) -> None:
        self._event("gates", self.paint("running ...", "dim"))

    def _decided(self, progress: Progress) -> None:
        decision = progress.decision
        if decision is None:
            return
        self._decision = decision
        if decision.reports:
            self._event("gates", "  ".join(self._report(report) for report in decision.reports))
        if isinstance(decision.verdict, Block):
            self._sent_back = decision.verdict.prompt
            words = one_line(_noted(decision), self._lines.room - 9)
            self._event("notyet", f"{self.paint('not yet', 'bold', 'red')}: {words}")

    def _report(self, report: Report) -> str:
        word, colour = _STATUS[report.status]
        word = f"{word}, only observed" if report.observed else word
        was_asked = report.answer is not None and not report.spared
        seconds = f" ({report.seconds:.1f}s)" if was_asked else ""
        return f"{visible(report.gate)} {self.paint(word, colour)}{seconds}"

    def _steered(self, progress: Progress) -> None:
        if progress.text != self._sent_back:  # else `_decided` printed it
            words = one_line(progress.text, self._lines.room - 9)
            self._event("notyet", f"{self.paint('steered', 'bold', 'cyan')}: {words}")

    def _event(self, who: str, text: str) -> None:
        self._lines.event(who[:8], text)


def _one_line_error(error: str) -> str:
    """Return an error with its start and its end, where programs say what was wrong."""
    return one_line(bounded(clean(error), _MAX_ERROR), 2 * _MAX_ERROR)


def _noted(decision: Decision) -> str:
    return note(decision).removeprefix("notyet: ")


def _ending(result: Result, decision: Decision | None) -> tuple[str, str]:
    """Return how a task ended, and its colour."""
    if result.ending in {"error", "timeout"}:
        return f"the agent failed: {_one_line_error(result.error or result.ending)}", "red"
    if result.ending != "done":
        return result.ending, "yellow"
    if result.outcome == "halted":
        return f"ended by a gate: {one_line(result.stop_reason or '', 300)}", "yellow"
    if result.outcome == "skipped":
        return "done; nothing was checked", "green"
    if result.outcome == "observed":
        return "done; the gates only observed", "green"
    said = _noted(decision) if decision is not None else ""
    said = said or one_line(f"{result.outcome}: {result.stop_reason or ''}".rstrip(": "), 300)
    return said, "green" if result.outcome == "passed" else "yellow"


def _figures(result: Result) -> str:
    parts = [f"{result.generation} run{'s' if result.generation > 1 else ''}"]
    if result.usage.total:
        parts.append(f"{result.usage.total} tokens")
    return ", ".join(parts)
