"""The demo as a timeline that is printed while it happens."""

from __future__ import annotations

import sys

from notyet.cli.lines import Lines
from notyet.core.text import first_line
from notyet.core.verdict import Block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.cli.demo_cast import Role
    from notyet.core.verdict import Decision
    from notyet.supervise import Progress


_NEWS = (
    "FAILED",
    "It is the same",
    "This is the last",
    "Your report was not delivered",
)  # lines that differ from send-back to send-back


class Timeline:
    """Prints what happens, as it happens."""

    def __init__(self) -> None:
        self._lines = Lines(sys.stdout)
        self._paint = self._lines.paint
        self._line = self._lines.line
        self._event = self._lines.event
        self._names: dict[str, str] = {}  # of tasks
        self._has_shown_all = False
        self.outcomes: dict[str, list[str]] = {}

    def opening(self, config: str) -> None:
        """Say what is going to happen."""
        self._line(self._paint("Agents say done. notyet checks.", "bold"))
        self._line()
        self._line(
            "A main agent gets a task and gives two parts of it to subagents. Whenever one of"
        )
        self._line("them wants to stop, the gates of the project's notyet.toml are asked. One that")
        self._line("fails sends the agent back, with its output:")
        self._line()
        for line in config.splitlines():
            self._line(f"    {self._paint(line, 'dim')}".rstrip())

    def scene(self, *roles: Role) -> None:
        """Introduce who is coming."""
        self._line()
        for role in roles:
            self._line(f"{self._paint(role.name, 'bold', 'cyan')} {role.about}")

    def cast(self, task: str, role: Role) -> None:
        """Say whose task this is."""
        self._names[task] = role.name

    def hear(self, progress: Progress) -> None:
        """Show something that happens to a task."""
        name = self._names.get(progress.task_id, "")
        if progress.kind == "text":
            self._event(name, f'"{progress.text}"')
        elif progress.kind == "tool":
            self._event(name, self._paint(f"{progress.tool} {progress.text}", "dim"))
        elif progress.kind == "decided" and progress.decision is not None:
            self.outcomes.setdefault(name, []).append(progress.decision.outcome)
            self._decided(name, progress.decision)
        elif progress.kind == "delivered":
            self._event("notyet", f"the report of {name} goes to whoever gave the task")

    def _decided(self, name: str, decision: Decision) -> None:
        asked = "  ".join(
            f"{report.gate}: {report.status} ({report.seconds:.1f}s)" for report in decision.reports
        )
        self._event("gates", f"of {name}  {self._paint(asked, 'dim')}")
        if isinstance(decision.verdict, Block):
            count = f"send-back {decision.count} of {decision.limit}"
            self._event("notyet", f"{name}: {self._paint('not yet', 'bold', 'red')} ({count})")
            for line in self._worth_showing(decision.verdict.prompt):
                self._event("", self._paint(f"| {line}".rstrip(), "dim"))
        else:
            colour = "green" if decision.outcome == "passed" else "yellow"
            word = self._paint(f"may stop: {decision.outcome}", "bold", colour)
            self._event("notyet", f"{name} {word}{': ' if decision.why else ''}{decision.why}")

    def _worth_showing(self, prompt: str) -> list[str]:
        """Return what an agent is told: all of it once, then what is new."""
        lines = prompt.splitlines()
        if not self._has_shown_all:
            self._has_shown_all = True
            return lines
        return [line for line in lines if line.startswith(_NEWS)]

    def closing(self, roles: tuple[Role, ...], prompts: Mapping[str, str]) -> int:
        """Say how each agent fared; return how many fared otherwise than they must."""
        self._line()
        wrong = 0
        for role in roles:
            outcomes = tuple(self.outcomes.get(role.name, ()))
            as_it_must = outcomes == role.outcomes
            unheard = [said for said in role.hears if said not in prompts.get(role.name, "")]
            mark = self._paint("ok", "green")
            if not as_it_must or unheard:
                wrong += 1
                mark = self._paint("WRONG", "bold", "red")
            stops = f"{len(outcomes)} stop{'' if len(outcomes) == 1 else 's'}"
            self._line(f"{role.name:<4}  {stops:<7}  {' > '.join(outcomes)}  {mark}")
            if not as_it_must:
                self._line(f"      expected {' > '.join(role.outcomes)}")
            for said in unheard:
                self._line(f"      never heard: {first_line(said)}")
        return wrong
