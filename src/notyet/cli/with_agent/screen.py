"""The progress of `notyet with` on stderr while an agent works: lines that stay, and a live view.

The view is below them: what the agent does now and since when, or the gates that run.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from notyet.cli.gate_words import RESULTS
from notyet.cli.progress import MARGIN, Jobs, QuietLines, fitted, spinner
from notyet.cli.signals import around_suspension
from notyet.cli.terminal import Style, one_line
from notyet.core.message import note
from notyet.core.text import bounded, clean, visible
from notyet.core.verdict import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from notyet.core.task import Result
    from notyet.core.verdict import Decision, Report
    from notyet.supervise import Progress

_MAX_ERROR = 600
_MIN_WORDS = 8  # columns of what the agent does
_GATING = "running the gates"
# What is done from some kinds of progress on; empty: nothing.
_PHASES = {
    "accepted": "working",
    "turn": "stopping",
    "settling": "stopping",
    "gating": _GATING,
    "decided": "stopping",
    "steering": "reading what failed",
    "ended": "",
}
_CONTINUES = {"text", "tool", "steering"}  # progress after a failure that was not the end


class Screen:
    """Prints progress. It never fails: the agent works on if the terminal is gone."""

    def __init__(self, agent: str) -> None:
        self._lines = QuietLines(sys.stderr, self._draw)
        self.paint = self._lines.paint
        self._gates_now = Jobs(Style(sys.stderr))
        self._now = ""  # what the agent does; empty: it does not work
        self._now_since = 0.0
        self._limit = self._blocks = 0
        self._exits = ExitStack()  # ends the view
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
        self._does("starting")
        if self._lines.writer is not None:
            writer = self._lines.writer
            self._exits.callback(writer.hide)
            self._exits.enter_context(around_suspension(writer.hide, writer.show))
            writer.show()
        self._event("task", f"{task}: {one_line(prompt, self._lines.room - len(task) - 2)}")

    def gates(self, names: Sequence[str], limit: int) -> None:
        """Print the gates that the agent has to pass."""
        self._limit = limit
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
        if self._task not in {"", progress.task_id}:
            return
        self._does(_PHASES.get(progress.kind, self._now))
        if progress.kind in self._kinds:
            if self._failure and progress.kind in _CONTINUES:
                self._event(self._agent, self.paint(_one_line_error(self._failure), "red"))
                self._failure = ""
            self._kinds[progress.kind](progress)

    def complain(self, why: str) -> None:
        """Print why the command failed."""
        self._lines.line(f"notyet with: {' '.join(clean(why).split())}")

    def gate_progress(self, task: str) -> Jobs | None:
        """Return what shows the gates of a task while they run."""
        return self._gates_now if task == self._task else None

    def close(self) -> None:
        """Wipe the view, and give a slow reader a moment for the rest."""
        self._exits.close()
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
            self._does(progress.text)
            self._event(self._agent, text)

    def _tool(self, progress: Progress) -> None:
        tool = one_line(visible(progress.tool), 40)
        given = one_line(progress.text, max(10, self._lines.room - len(tool) - 2))
        words = f"{tool}: {given}" if given not in {"", "{}"} else tool
        self._does(words)
        self._event(self._agent, self.paint(words, "dim"))

    def _error(self, progress: Progress) -> None:
        if progress.text != self._trouble:  # an agent that tries again repeats itself
            self._trouble = progress.text
            self._event(self._agent, self.paint(_one_line_error(progress.text), "yellow"))

    def _turn(self, progress: Progress) -> None:
        if progress.turn is not None:
            self._failure = progress.turn.error or ""

    def _gating(self, _progress: Progress) -> None:
        self._gates_now.clear()
        self._event("gates", self.paint("running ...", "dim"))

    def _decided(self, progress: Progress) -> None:
        decision = progress.decision
        if decision is None:
            return
        self._decision = decision
        if decision.reports:
            self._event("gates", "  ".join(self._report(report) for report in decision.reports))
        if isinstance(decision.verdict, Block):
            self._blocks, self._limit = decision.count, decision.limit
            self._sent_back = decision.verdict.prompt
            words = one_line(_noted(decision), self._lines.room - 9)
            self._event("notyet", f"{self.paint('not yet', 'bold', 'red')}: {words}")

    def _report(self, report: Report) -> str:
        word, colour = RESULTS[report.status]
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

    # -- the live view

    def _does(self, words: str) -> None:
        """Note what the agent does, and since when."""
        if words != self._now:
            self._now, self._now_since = words, time.monotonic()

    def _draw(self, columns: int, rows: int) -> list[str]:
        """Return the lines of the view. Called in another thread."""
        words, since, now = self._now, self._now_since, time.monotonic()
        if not words:
            return []
        blocks = f"sent back {self._blocks}/{self._limit}" if self._blocks else ""
        if words == _GATING:
            return self._gates_now.draw(columns, rows, blocks)
        rest = " · ".join(filter(None, (f"{now - since:.0f} s", blocks)))
        room = columns - MARGIN - 1 - len(rest) - 3
        said = f"{one_line(words, room)} · " if room >= _MIN_WORDS else ""
        start = [("  ", ""), (f"{spinner(now):>6}", "cyan"), (f"  {self._agent[:8]:<8}  ", "")]
        return [fitted([*start, (f"{said}{rest}", "dim")], columns - 1, self.paint)]


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
