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


class Timeline:
    """Prints what happens, as it happens."""

    def __init__(self) -> None:
        self._paint = Style(sys.stdout).paint
        self._started = time.monotonic()

    def opening(self) -> None:
        """Say what is going to happen."""
        self._line(self._paint("Agents say done. notyet checks.", "bold"))
        self._line()
        self._line("Three scripted agents get the same task: make total() work for every basket.")
        self._line("Each time one wants to stop, two gates are asked: do the tests pass, and is")
        self._line("no print left over? A gate that blocks sends the agent back, with the reason.")

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
            for line in decision.verdict.prompt.splitlines():
                self._event("", self._paint(f"| {line}", "dim"))
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
