"""The demo as a timeline that is printed while it happens."""

from __future__ import annotations

import sys
import time

from notyet.cli.style import Style
from notyet.core.verdict import Block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.cli.demo_cast import Story
    from notyet.core.verdict import Decision


_NEWS = (
    "FAILED",
    "It is the same",
    "This is the last",
)  # lines that differ from send-back to send-back


class Timeline:
    """Prints what happens, as it happens."""

    def __init__(self) -> None:
        self._paint = Style(sys.stdout).paint
        self._started = time.monotonic()
        self._has_shown_all = False

    def _worth_showing(self, prompt: str) -> list[str]:
        """Return what an agent is told: all of it once, then what is new."""
        lines = prompt.splitlines()
        if not self._has_shown_all:
            self._has_shown_all = True
            return lines
        return [line for line in lines if line.startswith(_NEWS)]

    def opening(self, config: str) -> None:
        """Say what is going to happen."""
        self._line(self._paint("Agents say done. notyet checks.", "bold"))
        self._line()
        self._line("Three scripted agents get the same task: make total() work for every basket.")
        self._line("Each time one wants to stop, the gates of the project's notyet.toml are asked.")
        self._line("One that fails sends the agent back, with its output:")
        self._line()
        for line in config.splitlines():
            self._line(f"    {self._paint(line, 'dim')}".rstrip())

    def story(self, story: Story) -> None:
        """Begin a story."""
        self._line()
        self._line(f"{self._paint(story.name, 'bold', 'cyan')} {story.about}")

    def said(self, name: str, text: str) -> None:
        """Show an agent's last message."""
        self._event(name, f'"{text}"')

    def decided(self, decision: Decision) -> None:
        """Show what the gates said and what came of it."""
        asked = "  ".join(
            f"{report.gate}: {report.status} ({report.seconds:.1f}s)" for report in decision.reports
        )
        self._event("gates", self._paint(asked, "dim"))
        if isinstance(decision.verdict, Block):
            count = f"send-back {decision.count} of {decision.limit}"
            self._event("notyet", f"{self._paint('not yet', 'bold', 'red')} ({count})")
            for line in self._worth_showing(decision.verdict.prompt):
                self._event("", self._paint(f"| {line}".rstrip(), "dim"))
        else:
            colour = "green" if decision.outcome == "passed" else "yellow"
            word = self._paint(f"may stop: {decision.outcome}", "bold", colour)
            self._event("notyet", f"{word}{': ' if decision.why else ''}{decision.why}")

    def closing(self, told: dict[Story, tuple[str, ...]]) -> int:
        """Say how each story ended; return how many ended otherwise than they must."""
        self._line()
        wrong = 0
        for story, outcomes in told.items():
            as_it_must = outcomes == story.outcomes
            wrong += not as_it_must
            mark = self._paint("ok", "green") if as_it_must else self._paint("WRONG", "bold", "red")
            self._line(f"{story.name}  {len(outcomes)} stops  {' > '.join(outcomes)}  {mark}")
            if not as_it_must:
                self._line(f"     expected {' > '.join(story.outcomes)}")
        return wrong

    def _event(self, who: str, text: str) -> None:
        at = f"{time.monotonic() - self._started:5.1f}s" if who else " " * 6
        self._line(f"  {self._paint(at, 'dim')}  {who:<6}  {text}")

    def _line(self, text: str = "") -> None:
        print(text, flush=True)
