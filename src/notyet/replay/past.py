"""The stops to be replayed, turn by turn: each with those before it, which it depends on."""

from __future__ import annotations

import os

from notyet.config.load import NO_LOOK, load
from notyet.config.off import switched_off
from notyet.core.definition import definition_of
from notyet.core.limits import History, Limits
from notyet.core.record import replace
from notyet.core.remote import is_remote
from notyet.core.text import visible
from notyet.git.place import repository_of
from notyet.ledger.history import Counted, counted, decided
from notyet.ledger.past import Wish, stops, these
from notyet.replay.replay import Then, Today

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.config.load import Draft, Setup
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past import Past

    Programs = Mapping[str, tuple[str, str]]  # task -> who supervised it, and which agent it is

_MOST_BEFORE = 50  # stops of a turn that are read although nobody wants to see them


def chosen(ledger: Ledger, wish: Wish, numbers: Sequence[int] = ()) -> list[Past]:
    """Return the stops that somebody wants replayed, the oldest first."""
    found = these(ledger, sorted(set(numbers))) if numbers else stops(ledger, wish)
    return sorted(found, key=lambda past: past.id)


def turns(ledger: Ledger, pasts: Sequence[Past]) -> list[list[Then]]:
    """Return the turns that these stops are in, each from its beginning, as far as it is known."""
    counts = counted(ledger, [past.id for past in pasts])
    groups: dict[tuple[int, int], list[Past]] = {}
    for past in pasts:
        known = counts.get(past.id)
        # One that was let go before it was counted belongs to no turn.
        key = (known.agent, known.turn) if known is not None and known.turn else (0, -past.id)
        groups.setdefault(key, []).append(past)
    before = _before(counts, groups)
    earlier = {past.id: past for past in these(ledger, sorted(before))}
    for number, key in before.items():
        if number in earlier:
            groups[key].append(earlier[number])
    return [
        [
            Then(past=past, counted=counts.get(past.id) or _uncounted(past))
            for past in sorted(group, key=lambda past: past.id)
        ]
        for group in groups.values()
    ]


def programs(ledger: Ledger, pasts: Sequence[Past]) -> dict[str, tuple[str, str]]:
    """Return who supervised the tasks of these stops, and which agents they are."""
    from notyet.ledger.tasks import Tasks

    tasks = Tasks(ledger)
    views = [
        view
        for task in dict.fromkeys(past.task for past in pasts if past.task)
        for view in tasks.views(task)
    ]
    return {view.task.id: (view.program, view.agent) for view in views}


def _before(
    counts: dict[int, Counted], groups: dict[tuple[int, int], list[Past]]
) -> dict[int, tuple[int, int]]:
    """Return the stops that lie before the last one of a turn, and are not there; and its turn."""
    last = {key: max(past.id for past in group) for key, group in groups.items()}
    there = {past.id for group in groups.values() for past in group}
    found: dict[tuple[int, int], list[int]] = {}
    for known in counts.values():
        key = (known.agent, known.turn)
        if key in last and known.stop < last[key] and known.stop not in there:
            found.setdefault(key, []).append(known.stop)
    return {
        number: key for key, numbers in found.items() for number in sorted(numbers)[-_MOST_BEFORE:]
    }


def _uncounted(past: Past) -> Counted:
    return Counted(
        stop=past.id,
        agent=0,
        turn=0,
        outcome=decided(past.outcome, past.why),
        history=History(turn=1),
    )


SUPERVISOR = "notyet with"
_HOST = "notyet"


class Places:
    """Configuration by place, host and workspace. Connects to no other machine."""

    def __init__(
        self,
        environ: Mapping[str, str],
        draft: Draft | None = None,
        programs: Programs | None = None,
    ) -> None:
        self._environ = environ
        self._draft = draft
        self._programs = programs or {}
        self._known: dict[tuple[str, ...], Today | str] = {}
        self.said: dict[str, None] = {}  # what a person should know, in order

    def today(self, past: Past) -> Today | str:
        """Return what is in force where a stop was; or why that cannot be known."""
        event = past.event
        agent = ""
        if past.host == _HOST and past.task:
            program, agent = self._programs.get(past.task, ("", ""))
            if not program:
                return "nothing is known any more of its task"
            if program != SUPERVISOR:
                return "a program asked gates of its own"
            agent = agent or "?"
        key = (event.cwd, past.host, event.workspace, agent)
        if key not in self._known:
            self._known[key] = self._look(*key)
        return self._known[key]

    def answer(self, cwd: str, definition: str, report: Report) -> None:
        """Take a gate's answer of just now, for all stops in this folder."""
        for key, today in self._known.items():
            if key[0] == cwd and isinstance(today, Today):
                answers = {**today.asked_now, definition: report}
                self._known[key] = replace(today, asked_now=answers)

    def _look(self, cwd: str, host: str, workspace: str, agent: str) -> Today | str:
        if not cwd and not workspace:
            return "it names no folder"
        if not workspace and not os.path.isdir(cwd):
            return f"its folder is gone: {visible(cwd)}"
        off = switched_off(cwd, self._environ)
        if off:
            self.said[f"gating is {off}; replayed as if it were on"] = None
        setup = self._load(cwd, host, agent, workspace)
        if isinstance(setup, str):
            return setup
        for said in (*setup.warnings, *setup.distrust):
            self.said[said] = None
        if setup.unseen:
            there = visible(setup.workspace)
            self.said[f"{there} was not looked at; what was trusted of it counts"] = None
        cause = "untrusted" if setup.untrusted else "config" if setup.unreadable else "no-gate"
        return Today(
            gates=setup.gates,
            definitions={gate.name: definition_of(gate) for gate in setup.gates},
            limits=Limits(**setup.limits),
            workspace=setup.workspace,
            no_gate=cause,
            has_git=bool(workspace or repository_of(cwd)),
        )

    def _load(self, cwd: str, host: str, agent: str, workspace: str) -> Setup | str:
        """Load what is in force for an agent whose files were in a workspace, if in any.

        The record does not tell whether the host named the workspace, or a file. It is taken for a
        file's where one here names it today, or would in the draft.
        """
        if not workspace:
            return self._loaded(cwd, host, agent, "", self._draft)
        here = self._loaded(cwd, host, agent, "", None)
        if self._draft is None and here.workspace == workspace:
            return here
        if self._draft is not None:
            drafted = self._loaded(cwd, host, agent, "", self._draft)
            if workspace in {here.workspace, drafted.workspace}:
                return drafted
            return f"its files were in {visible(workspace)}, of which the file here says nothing"
        return self._loaded(cwd, host, agent, workspace, None)

    def _loaded(
        self, cwd: str, host: str, agent: str, workspace: str, draft: Draft | None
    ) -> Setup:
        setup = load(
            cwd,
            host,
            self._environ,
            agent=agent,
            workspace=workspace,
            patience=NO_LOOK,
            draft=draft,
        )
        if is_remote(workspace) and not setup.workspace:
            return replace(setup, workspace=workspace)
        return setup
