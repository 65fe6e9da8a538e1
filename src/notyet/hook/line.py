"""The straight line of `notyet hook` from a payload to a reply, behind the door that `hook` is.

It never raises, never exits 2 for a reason of our own, and whatever is wrong ends in a reply that
lets the agent go. Every stop is a cold start, so what is not needed on the way is not imported.
"""

from __future__ import annotations

import sys
from time import monotonic

from notyet import light
from notyet.config.find import may_be_off
from notyet.hook.payload import Unreadable, of_wrong_kind
from notyet.hook.process import OutOfTime, be_brief, be_undisturbed
from notyet.hosts import HOSTS, SILENCE, Reply, host_named, time_to_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.config.load import Setup
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Decision
    from notyet.hook.payload import Call

_LOOK = 20.0  # seconds to look at files in a workspace elsewhere, where there is time


def answered(hook: Hook) -> Reply:
    """Return the reply of a hook, with what is to be said besides, where there is a place.

    Raises OutOfTime where that comes while it gives up already, or recovers.
    """
    try:
        reply = hook.answer()
    except OutOfTime:
        be_undisturbed()
        reply = hook.give_up()
    except Exception as error:  # noqa: BLE001  # an agent must not meet a fault of ours
        reply = hook.recover(error)
    be_undisturbed()  # so that no answer is lost while it is written down
    said = (*hook.call.options.warnings, *hook.said)
    if reply.code or not said:  # with a code the agent reads all of stderr, and it is not for it
        return reply
    from notyet.core.text import clean
    from notyet.hosts import Reply

    words = [" ".join(clean(line).splitlines()) for line in said]
    lines = [f"notyet: {line}" for line in dict.fromkeys(words)]
    # Hosts without a place for notes get them on stderr, where they may have been said already.
    notes = [part for part in reply.stderr.split(" | ") if part and part.strip() not in lines]
    stderr = "\n".join([*lines, " | ".join(notes)]).strip()
    return Reply(stdout=reply.stdout, stderr=stderr)


class Hook:
    """One call of ours by a host."""

    sees_all = False  # whether gates are loaded, too, that are surely not for this stop

    def __init__(self, call: Call, prepare: Callable[[], None]) -> None:
        self.call = call
        self.prepare = prepare
        self.environ = call.environ
        self.host = call.options.host or "claude"
        self.workspace = ""  # as somebody says who asks in a host's place; may be "local"
        self.said = call.said
        self.event: StopEvent | None = None
        self.session: object = None  # as the payload has it, even if it is no event

    def answer(self) -> Reply:
        """Follow the line from payload to reply."""
        if self.environ.get("NOTYET_INSIDE"):  # a gate's own agent is never gated (E11)
            return self.let_go("inside", "NOTYET_INSIDE is set: a gate's own agent is not gated")
        try:
            payload = self.call.payload()
        except Unreadable as error:
            return self.let_go("unreadable", str(error))
        self.session = payload.get("session_id")
        stranger = self._stranger(payload)
        if stranger:
            return self.let_go("host", f"{stranger} is not spoken yet, so nothing was checked")
        payload = payload | self.call.options.said
        event = host_named(self.host).read_event(payload, self.environ)
        if event is None:
            return let_pass(self, payload)
        from notyet.core.event import StopEvent

        if self.host == "notyet" or of_wrong_kind(payload):
            from notyet.hook.unusable import unusable

            self.said += unusable(payload, event, self.host)
        # A supervisor gates the main agent and tells it of its gates; we do so for subagents.
        is_others = event.scope == "agent" and self._is_supervised(event.session_id)
        if isinstance(event, StopEvent):
            self.event = event
            if is_others:
                said = "NOTYET_SUPERVISED is set: the supervisor asks the gates itself"
                return self.let_go("supervised", said)
            nowhere = self._no_place(payload, event)
            if nowhere:
                self.let_go("unreadable", nowhere)
                return self.nothing(f"notyet: {nowhere}")
            return self.stopping(event)
        if is_others:
            return self.nothing()
        return starting(self, event)

    def _stranger(self, payload: Mapping[str, Any]) -> str:
        """Find out who calls; return the name of a host that we do not speak to."""
        if self.call.options.host:
            return ""
        if not self.call.host:
            from notyet.hosts.detect import detect

            self.call.is_from(detect(payload))
        if self.call.host in HOSTS:
            self.host = self.call.host
            return ""
        from notyet.hook.unusable import LIKE_CLAUDE, is_stop

        stranger = self.call.host
        if stranger not in LIKE_CLAUDE or not is_stop(payload):
            return stranger
        self.call.is_from(self.host)
        self.said.append(f"this looks like {stranger}; it is answered as Claude Code")
        return ""

    def _no_place(self, payload: Mapping[str, Any], event: StopEvent) -> str:
        if self.host != "notyet":  # others cannot name one
            return ""
        from notyet.hook.unusable import no_place

        return no_place(payload, event)

    def _is_supervised(self, session: str) -> bool:
        mark = self.environ.get("NOTYET_SUPERVISED")
        if not mark:
            return False
        from notyet.config.inside import is_supervised

        if is_supervised(mark, session):
            return True
        self.said.append("NOTYET_SUPERVISED names no supervisor of this session; gated as usual")
        return False

    def stopping(self, event: StopEvent) -> Reply:
        """Answer a stop."""
        off = self.switched_off(event.cwd)
        if off:
            return self.let_go("off", off)
        setup = self.load(event, _LOOK)
        if self.is_probe():
            from notyet.hook.probe import would_ask

            return self.nothing(would_ask(event, setup))
        if setup.gates or setup.observers or setup.notifications:
            decision = self.check(event, setup)
            if decision is not None and decision.why != "no-gate":
                return self._reply(event, decision, setup)
        return self._without_gates(event, setup)

    def switched_off(self, cwd: str) -> str:
        """Say why nothing is gated here; empty when the switch is on. Raises OutOfTime."""
        if self.call.is_out_of_time:
            raise OutOfTime
        if not may_be_off(self.environ):  # as nearly always
            return ""
        from notyet.config.off import switched_off

        return switched_off(cwd, self.environ)

    def check(self, event: StopEvent, setup: Setup) -> Decision | None:
        """Ask the gates, and write down what came of it; None where none is for this stop."""
        from notyet.core.plan import missing_names, select

        if not select(event, setup.gates) and not setup.observers and not setup.notifications:
            self.said += missing_names(event, setup.gates)
            return None
        self.prepare()
        from notyet.hook.check import check

        return check(event, setup, self.time_left(), self.environ, self.said)

    def mended(self) -> Sequence[str]:
        """Say that the ledger was damaged, so that counting began anew: its user must know."""
        from notyet.hook.check import mended

        return mended()

    def load(self, event: StopEvent | StartEvent, longest: float) -> Setup:
        """Return what is in force where the agent works; `longest` is for files elsewhere."""
        from notyet.config.load import NO_LOOK, load

        project = self.environ.get(host_named(self.host).project_variable, "")
        return load(
            event.cwd,
            self.host,
            self.environ,
            only=self.call.options.config,
            project=project,
            workspace=self.workspace or event.workspace,
            # Where files are elsewhere; the gates need their time after that.
            patience=NO_LOOK if self.is_probe() else min(longest, self.time_left() / 3),
            event=None if self.sees_all or self.is_probe() else self.event,
        )

    def _without_gates(self, event: StopEvent, setup: Setup) -> Reply:
        if setup.untrusted:
            return self.let_go("untrusted", *setup.distrust, *setup.warnings)
        if setup.unreadable or setup.warnings:
            return self.let_go("config", *setup.warnings)
        if event.workspace:  # then the project is there, wherever the host is here
            return self.nothing()
        if not event.cwd:
            return self.let_go("unreadable", "the event has no cwd, so no project was found")
        if not light.isdir(event.cwd):
            from notyet.core.text import visible

            return self.let_go("unreadable", f"the folder {visible(event.cwd)} is gone")
        return self.nothing()

    def _reply(self, event: StopEvent, decision: Decision, setup: Setup) -> Reply:
        from notyet.core.note import note
        from notyet.core.text import clean

        told = [note(decision)]
        told += [f"notyet: {line}" for line in (*setup.warnings, *setup.distrust, *self.mended())]
        line = clean(" | ".join(part for part in told if part))
        return host_named(self.host).write_reply(decision.verdict, line, event, setup.reply)

    def patience(self) -> float:
        """Return how many seconds the host waits."""
        return self.call.patience

    def time_left(self) -> float:
        """Return how many seconds there are for the gates."""
        return max(0.0, time_to_answer(self.patience()) - (monotonic() - self.call.started))

    def give_up(self) -> Reply:
        """Let the agent go because the host waits no longer."""
        return give_up(self)

    def recover(self, error: Exception) -> Reply:
        """Let the agent go after a fault of ours, even if that fault is in our way again."""
        return recover(self, error)

    def let_go(self, cause: str, *words: str) -> Reply:
        """Allow, say why on stderr and to the user, and write it down (G5)."""
        return let_go(self, cause, words)

    def write_down(self, cause: str, words: Sequence[str]) -> Sequence[str]:
        """Record a stop that is let go unchecked; return what became of the ledger, if anything.

        Raises LedgerError.
        """
        from notyet.hook.check import write_down

        return write_down(self.event, self.host, cause, words)

    def is_probe(self) -> bool:
        """Tell whether `notyet status` made up this stop, to see what becomes of it."""
        if "NOTYET_PROBE" not in self.environ:  # as nearly always
            return False
        from notyet.hook.probe import is_made_up

        return is_made_up(self.session, self.environ)

    def nothing(self, note: str = "") -> Reply:
        """Return the reply that lets an agent go in its host's words."""
        silence = SILENCE.get(self.host)
        if silence is not None and not note:
            return silence
        from notyet.core.event import StopEvent
        from notyet.core.text import clean
        from notyet.core.verdict import Allow

        event = self.event or StopEvent(host=self.host)
        return host_named(self.host).write_reply(Allow(), clean(note), event, {})


_LOOK_START = 5.0  # seconds to look at files, where only words depend on it, or one question less


def starting(hook: Hook, event: StartEvent) -> Reply:
    """Answer the start of an agent."""
    if hook.switched_off(event.cwd):
        return hook.nothing()
    setup = hook.load(event, 0.0)
    if any(gate.when == "changed" for gate in setup.gates):
        _remember(hook, event, setup)
    if setup.start_tell and setup.workspace:  # else nobody is told of what is there
        setup = hook.load(event, _LOOK_START)
    if not setup.start_tell:
        return hook.nothing()
    from notyet.core.message import briefing_for

    told = briefing_for(event, setup.gates)
    return host_named(hook.host).write_context(told, event) if told else hook.nothing()


def _remember(hook: Hook, event: StartEvent, setup: Setup) -> None:
    """Remember with which files the agent begins (N1); nothing of that may hold it up."""
    try:
        from notyet.hook.check import remember_start

        remember_start(event, setup, min(_LOOK_START, hook.time_left() / 3))
    except Exception as error:  # noqa: BLE001  # its gates are asked once more, that is all
        hook.said.append(f"{error} (with which files the agent begins was not remembered)")


# Causes that no user can mend, so that they are not told of them.
_NO_NEWS = frozenset({"inside", "supervised", "unreadable"})


def let_go(hook: Hook, cause: str, words: Sequence[str]) -> Reply:
    """Allow, say why on stderr and to the user, and write it down (G5)."""
    hook.said += words
    mended: Sequence[str] = ()
    try:
        if not hook.is_probe():
            mended = hook.write_down(cause, words)
    except Exception as error:  # noqa: BLE001  # without a record, but with an answer
        hook.said.append(f"that was not recorded: {error}")
    hook.said += mended
    news = mended if cause in _NO_NEWS else (*words, *mended)
    return hook.nothing(" | ".join(f"notyet: {line}" for line in news))


def let_pass(hook: Hook, payload: Mapping[str, Any]) -> Reply:
    """Let an event go that is not about starting or stopping."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str) or not name.strip():
        return hook.let_go("unreadable", "the event on stdin has no hook_event_name")
    hook.said.append(f"{name[:80]} is not about a stop; use notyet for Stop and SubagentStop")
    return hook.nothing()


def give_up(hook: Hook) -> Reply:
    """Let the agent go because the host waits no longer."""
    said = f"no answer within the {hook.patience():g} s that the host waits; let go unchecked"
    try:
        # A stop that was begun in the ledger is written down there as cancelled.
        ledger = getattr(sys.modules.get("notyet.hook.check"), "_ledger", None)
        if ledger is None or not ledger.newest:
            be_brief()
            return hook.let_go("deadline", said)
    except OutOfTime:  # not even written down in time
        be_undisturbed()
    hook.said.append(said)
    return hook.nothing(f"notyet: {said}")


def recover(hook: Hook, error: Exception) -> Reply:
    """Let the agent go after a fault of ours, even if that fault is in our way again."""
    said = f"internal error: {type(error).__name__}: {error}"
    try:
        return hook.let_go("internal", said)
    except Exception:  # noqa: BLE001  # nothing at all is an answer that every host takes
        hook.said.append(said)
        return Reply()
