"""How the hook answers a host: the way from a payload to a reply, in one class.

Whatever is wrong on the way ends in a reply that allows the stop. What is rarely needed is imported
where it is.
"""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.config import load as configuration
from notyet.config.find import may_be_off, state_folder
from notyet.core.event import StopEvent, parents_key
from notyet.core.record import replace
from notyet.core.text import clean, visible
from notyet.core.verdict import LOUD, UNCHECKED, Allow, in_log, skipped
from notyet.errors import LedgerError, attempt
from notyet.hook.payload import Unreadable, no_workspace, of_wrong_kind, unusable
from notyet.hook.process import OutOfTime, be_brief, be_undisturbed, host_started_at
from notyet.hosts import DEFAULT, HOSTS, host_named, time_to_answer
from notyet.hosts.host import Reply
from notyet.light import real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from notyet.config.load import Setup
    from notyet.core.event import StartEvent
    from notyet.core.verdict import Decision
    from notyet.git.fingerprint import FileSet
    from notyet.hook.payload import HostCall
    from notyet.ledger.ledger import Ledger

PROBE = "NOTYET_PROBE"  # the variable that marks a stop made up by `notyet status`
PROBE_SESSION = "notyet-status-"  # how the name of its session begins; no host names one so
_LOOK = 20.0  # seconds to look at files in a workspace elsewhere, where there is time
_LAST = 1.0  # seconds for what follows the answer
_RECORDING = 1.0  # seconds at least to record a stop that is not checked
_WRITE_BACK_EVERY = 4  # stops, of which one shortens the ledger's log
_NOT_FOR_USERS = frozenset({"inside", "supervised", "unreadable"})  # causes they cannot fix


def reply_of(hook: Hook) -> Reply:
    """Return the reply of a hook, with warnings on stderr where the host has a place for them.

    Raises OutOfTime if the time is up while it gives up or recovers.
    """
    try:
        reply = hook.answer()
    except OutOfTime:
        be_undisturbed()
        reply = hook.give_up()
    except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the agent
        reply = hook.recover(error)
    be_undisturbed()  # no answer is lost while it is recorded
    warnings = (*hook.call.options.warnings, *hook.warnings)
    if reply.code or not warnings:  # with an exit code, the agent reads all of stderr
        return reply

    words = [" ".join(clean(line).splitlines()) for line in warnings]
    lines = [f"notyet: {line}" for line in dict.fromkeys(words)]
    # Hosts without a place for notes get them on stderr, maybe a second time.
    notes = [part for part in reply.stderr.split(" | ") if part and part.strip() not in lines]
    stderr = "\n".join([*lines, " | ".join(notes)]).strip()
    return Reply(stdout=reply.stdout, stderr=stderr)


class Hook:
    """One call of ours by a host."""

    sees_all = False  # whether gates are loaded, too, that surely do not apply to this stop

    def __init__(self, call: HostCall, before_commands: Callable[[], None] | None = None) -> None:
        self.call = call
        self.before_commands = before_commands
        self.environ = call.environ
        self.host = call.options.host or DEFAULT
        self._works_in = ""  # in place of the agent's folder, where gates are off
        self.workspace = ""  # chosen by a caller in a host's place; may be "local"
        self.warnings = call.warnings
        self.event: StopEvent | None = None
        self.session: object = None  # as the payload has it, even if it is no event
        self.looked: dict[FileSet, str] = {}  # fingerprints that are known before the gates run
        self.members: list[tuple[str, Sequence[str]]] = []  # projects with members, and their globs

    def answer(self) -> Reply:
        """Follow the line from payload to reply."""
        if self.environ.get("NOTYET_INSIDE"):  # a gate's own agent is never gated (E11)
            return self.allow_and_record(
                "inside", "NOTYET_INSIDE is set: a gate's own agent is not gated"
            )
        try:
            payload = self.call.payload()
        except Unreadable as error:
            return self.allow_and_record("unreadable", str(error))
        self.session = host_named(self.host).value(payload, "session_id")
        not_ours = self._find_caller(payload)
        if not_ours is not None:
            return self.allow_and_record("host", not_ours) if not_ours else self.allow_reply()
        host = host_named(self.host)
        self.session = host.value(payload, "session_id")
        payload = payload | self.call.options.fields_for(host)
        event = host.read_event(payload, self.environ)
        if event is None:
            return self._allow_other_event(payload)
        if self.host == "notyet" or of_wrong_kind(payload, host):
            self.warnings += unusable(payload, event, host)
        # A supervisor gates the main agent and briefs it; the hook does so for subagents.
        is_others = event.scope == "agent" and self._is_supervised(event.session_id, payload)
        if not isinstance(event, StopEvent):
            if is_others:
                return self.allow_reply()
            from notyet.hook.start import answer_start

            return answer_start(self, event)
        self.event = event
        if is_others:
            why = "NOTYET_SUPERVISED is set: the supervisor runs the gates itself"
            return self.allow_and_record("supervised", why)
        why = no_workspace(payload, event) if self.host == "notyet" else ""  # others name none
        if why:
            self.allow_and_record("unreadable", why)
            return self.allow_reply(f"notyet: {why}")
        return self.answer_stop(event)

    def _find_caller(self, payload: dict[str, Any]) -> str | None:
        """Find out which host calls; return why it is not checked, None if it is."""
        named = self.call.options.host
        if named and not host_named(named).is_foreign(payload):
            is_repeated = host_named(named).is_repeated(payload, self.environ)
            return "" if is_repeated or self._stands_aside(payload) else None
        from notyet.hook.caller import find_caller

        found, why, warning = find_caller(named, payload, self.environ)
        self.call.is_from(found)
        self.host = found if found in HOSTS else self.host
        self.warnings += [warning] if warning else []
        return "" if why is None and self._stands_aside(payload) else why

    def _stands_aside(self, payload: dict[str, Any]) -> bool:
        """Return True for a plugin's hook if the host's settings call us, too (B12)."""
        if self.call.options.via != "plugin":
            return False
        from notyet.hook.caller import is_registered_too

        host = host_named(self.host)
        self.session = host.value(payload, "session_id")
        return not self.is_probe() and is_registered_too(host, payload, self.environ)

    def _is_supervised(self, session: str, payload: dict[str, Any]) -> bool:
        mark = self.environ.get("NOTYET_SUPERVISED")
        if not mark:
            return False
        from notyet.config.caller import is_supervised

        state = state_folder(self.environ)
        names = dict.fromkeys((session, str(self.session)))  # ours may differ from the host's
        # Codex keeps no transcript of threads that a program has for itself.
        is_helper = payload.get("transcript_path", "") is None
        if any(is_supervised(mark, name, state, is_helper=is_helper) for name in names):
            return True
        self.warnings.append(
            "NOTYET_SUPERVISED names no supervisor of this session; gated as usual"
        )
        return False

    def answer_stop(self, event: StopEvent) -> Reply:
        """Answer a stop."""
        off = self.switched_off(event)
        if off:
            return self.allow_and_record("off", off)
        setup = self.load(event, _LOOK)
        if self.is_probe():
            from notyet.hook.probe import would_run

            return self.allow_reply(would_run(event, setup))
        if setup.gates or setup.observers or setup.notifications:
            decision = self.check(event, setup)
            if decision is not None and decision.why not in {"no-gate", "untrusted"}:
                return self._reply(event, decision, setup)
        return self._without_gates(event, setup)

    def switched_off(self, event: StopEvent | StartEvent) -> str:
        """Return why nothing is gated here; empty when gating is on. Raises OutOfTime.

        Gates of the project that the session was started in are off only if they are off there.
        """
        if self.call.is_out_of_time:
            raise OutOfTime
        if not may_be_off(self.environ):
            return ""
        from notyet.config.off import switched_off

        off = switched_off(event.cwd, self.environ)
        project = off and self._started_in(event)
        if project and not switched_off(project, self.environ):
            self._works_in, off = project, ""
        return off

    def _started_in(self, event: StopEvent | StartEvent) -> str:
        return self.call.started_in(host_named(self.host), parents_key(event))

    def load(self, event: StopEvent | StartEvent, longest: float) -> Setup:
        """Return what is in force where the agent works; `longest` is for files elsewhere."""
        session, project = parents_key(event), self._started_in(event)
        setup = configuration.load(
            self._works_in or event.cwd,
            self.host,
            self.environ,
            only=self.call.options.config,
            project=project,
            workspace=self.workspace or event.workspace,
            # The gates need their time after that.
            patience=configuration.NO_LOOK
            if self.is_probe()
            else min(longest, self.time_left() / 3),
            event=None if self.sees_all or self.is_probe() else self.event,
            members=None if self.sees_all or self.is_probe() else self._members,
        )
        self.call.shares = setup.shares
        if setup.linked and not self.sees_all and not self.is_probe():
            from notyet.config.compiled import note_work_trees

            try:  # noqa: SIM105  # contextlib takes time to load
                note_work_trees(state_folder(self.environ), setup.linked)
            except OSError:
                pass  # it only makes a report possible
        if self.sees_all or self.is_probe() or not session.strip():
            return setup
        is_new = not project and bool(setup.gates)
        if is_new or (setup.left and event.scope == "agent"):
            from notyet.config.sessions import with_note

            try:
                known = (self.environ, self.host, session)
                return with_note(setup, *known, real_folder(event.cwd) if is_new else "")
            except OSError as error:
                self.warnings.append(f"where this session was started was not recorded: {error}")
        return setup

    def _members(
        self, root: str, globs: Sequence[str], known: Sequence[str]
    ) -> Iterable[str] | None:
        """Return the members of a project whose files count; None for all."""
        self.members.append((root, globs))
        if self.event is None:  # a start: of trusted ones there is nothing to say yet
            from notyet.config.members import untrusted_members

            return untrusted_members(root, globs, known, self.warnings.append)
        from notyet.engine.members import changed_members

        patience = min(_LOOK, self.time_left() / 4)
        try:
            project = (root, globs, known)
            ledger = self._open_ledger()
            return changed_members(self.event, ledger, patience, project, self.looked)
        except LedgerError:  # which is said when the stop is entered
            return None

    def check(self, event: StopEvent, setup: Setup) -> Decision | None:
        """Run the gates that apply, and record the decision; None if none applies."""
        from notyet.core.plan import missing_names, select

        gates = select(event, setup.gates)
        host = host_named(self.host)
        if host.waits_by_hook and not self.call.options.timeout:
            from notyet.hook.caller import settings_patience

            self.call.waits(settings_patience(host, event, gates, self.environ) or host.timeout)
        started, within = monotonic(), self.time_left()
        if not gates and not setup.observers and not setup.notifications:
            self.warnings += missing_names(event, setup.gates)
            return None
        from notyet.core.limits import Limits
        from notyet.engine.stop import Stop, check
        from notyet.run.drive import drive_sync

        event = completed(event, setup)
        stop = Stop(
            event,
            gates,
            self._open_ledger(),
            declared=setup.gates,
            limits=Limits(**setup.limits),
            within=within,
            warn=self.warnings.append,
            watches=self._watches(setup),
            before_commands=self.before_commands,
            on_wait=self._use_wait,
            looked=self.looked,
            unchecked=setup.unchecked,
            untrusted=() if setup.gates else setup.distrust,
            members=self.members,
        )
        decision = drive_sync(check(stop))
        self.warnings += [line for line in self.repaired() if line not in self.warnings]
        if setup.notifications:
            from notyet.engine.desktop import notify_desktop

            left = started + within + min(_LAST, within / 8) - monotonic()
            self.warnings += notify_desktop(event, decision, setup, self.environ, left)
        return decision

    def _open_ledger(self) -> Ledger:
        """Return the ledger. It stays open: closing costs a checkpoint, before our answer."""
        from notyet.ledger.ledger import Ledger

        if self.call.ledger is None:
            self.call.ledger = Ledger(patience=self.patience())  # calls end earlier (E9)
            self.call.ledger.called_at = host_started_at()
        return self.call.ledger

    def _watches(self, setup: Setup) -> list[Any]:
        if not setup.observers:
            return []
        from notyet.engine.observers import Watch, observer_of

        return [Watch(observer_of(observer)) for observer in setup.observers]

    def _use_wait(self) -> None:
        """Load what is needed after the gates, and shorten the ledger's log, while they run."""
        import notyet.core.settle  # noqa: F401  # loaded for later

        ledger = self.call.ledger
        if ledger is not None and ledger.newest % _WRITE_BACK_EVERY == 0:
            ledger.connection.write_back()  # the next process has less to read

    def repaired(self) -> Sequence[str]:
        """Return the warnings if the ledger was damaged, so that counting began anew."""
        return self.call.ledger.connection.repairs if self.call.ledger is not None else ()

    def _without_gates(self, event: StopEvent, setup: Setup) -> Reply:
        if setup.untrusted:
            return self.allow_and_record("untrusted", *setup.distrust, *setup.warnings)
        if setup.unreadable or setup.warnings:
            return self.allow_and_record("config", *setup.warnings)
        if event.workspace:  # then the project is on that machine
            return self.allow_reply(self._untold(event, setup))
        if not event.cwd:
            return self.allow_and_record(
                "unreadable", "the event has no cwd, so no project was found"
            )
        if not light.isdir(event.cwd):
            return self.allow_and_record("unreadable", f"the folder {visible(event.cwd)} is gone")
        return self.allow_reply(self._untold(event, setup))

    def _untold(self, event: StopEvent, setup: Setup) -> str:
        """Return which subagents did not pass, for a main agent without gates of its own (N3)."""
        is_gated = setup.gates or setup.gates_others or setup.observers
        if not is_gated or event.scope != "agent" or self.sees_all or self.is_probe():
            return ""
        from notyet.config.sessions import forget_untold, has_untold

        session = (self.environ, self.host, parents_key(event))
        if not has_untold(*session):
            return ""
        try:
            lines = self._open_ledger().take_untold(event, _RECORDING)
            forget_untold(*session)  # not before: a ledger that is locked would lose it
        except LedgerError as error:
            self.warnings.append(f"{error} (which subagents did not pass is unknown)")
            return ""
        return " | ".join(f"notyet: {line}" for line in lines)

    def _reply(self, event: StopEvent, decision: Decision, setup: Setup) -> Reply:
        from notyet.core.message import note

        if event.scope == "subagent" and decision.outcome in LOUD:
            from notyet.config.sessions import mark_untold

            try:  # noqa: SIM105  # contextlib takes time to load
                mark_untold(self.environ, self.host, parents_key(event))
            except OSError:
                pass  # a stop with gates names it anyway
        said = note(decision)
        others = [line for line in (*setup.warnings, *setup.distrust) if line not in said]
        notes = [said, *(f"notyet: {line}" for line in others)]
        notes += [f"notyet: {line}" for line in self.repaired()]
        line = clean(" | ".join(part for part in notes if part))
        return host_named(self.host).write_reply(decision.verdict, line, event, setup.reply)

    def patience(self) -> float:
        """Return how many seconds the host waits."""
        return self.call.patience

    def time_left(self) -> float:
        """Return how many seconds there are for the gates."""
        return max(0.0, time_to_answer(self.patience()) - (monotonic() - self.call.started))

    def is_probe(self) -> bool:
        """Return True if `notyet status` made up this stop, to see what happens to it.

        An agent can set a variable, in the settings of its host; but it cannot name its session.
        """
        mark = self.environ.get(PROBE, "")
        return mark.startswith(PROBE_SESSION) and self.session == mark

    def allow_reply(self, note: str = "") -> Reply:
        """Return the reply that allows a stop in its host's words."""
        host = host_named(self.host)
        if not note:
            return Reply(stdout=host.silence)

        event = self.event or StopEvent(host=self.host)
        return host.write_reply(Allow(), clean(note), event, {})

    # A stop that is not checked.

    def allow_and_record(self, cause: str, *words: str) -> Reply:
        """Allow a stop unchecked: say why on stderr and to the user, and record it (G5).

        Nothing is said of a stop that a supervisor checks: some hosts show stderr to the user.
        """
        number, unrecorded = 0, []
        try:
            if not self.is_probe():
                number = self.record_skip(cause, words)
        except LedgerError as error:
            unrecorded.append(f"that was not recorded: {error}")
        if cause not in _NOT_FOR_USERS:
            words = (f"{UNCHECKED}: {'; '.join(words)}{in_log(number)}",)
        repaired = self.repaired()
        self.warnings += (*(words if cause != "supervised" else ()), *unrecorded, *repaired)
        news = repaired if cause in _NOT_FOR_USERS else (*words, *repaired)
        return self.allow_reply(" | ".join(f"notyet: {line}" for line in news))

    def record_skip(self, cause: str, words: Sequence[str]) -> int:
        """Record a stop that is allowed unchecked; return its number. Raises LedgerError."""
        from notyet.ledger.ledger import Ledger

        ledger = Ledger(patience=max(_RECORDING, self.time_left()))
        self.call.ledger = self.call.ledger or ledger
        event = self.event or StopEvent(host=self.host)
        try:
            return ledger.skip(event, skipped(cause, *words))
        finally:
            ledger.close()

    def _allow_other_event(self, payload: Mapping[str, Any]) -> Reply:
        """Answer an event that is not about starting or stopping."""
        host = host_named(self.host)
        name = host.event_in(payload)
        if name in host.ignored:
            return self.allow_reply()
        if not name:
            return self.allow_and_record(
                "unreadable", f"the event on stdin has no {host.fields['event'][0]}"
            )
        stops = " and ".join(host.stops)
        self.warnings.append(f"{name[:80]} is not about a stop; use notyet for {stops}")
        return self.allow_reply()

    def give_up(self) -> Reply:
        """Allow the stop because the host waits no longer."""
        why = f"no answer within the {self.patience():g} s that the host waits"
        try:
            # A stop that was begun in the ledger is recorded there as cancelled.
            if self.call.ledger is None or not self.call.ledger.newest:
                be_brief()
                return self.allow_and_record("deadline", why)
        except OutOfTime:  # not even recorded in time
            be_undisturbed()
        why = f"{UNCHECKED}: {why}{in_log(self.call.ledger.newest if self.call.ledger else 0)}"
        self.warnings.append(why)
        return self.allow_reply(f"notyet: {why}")

    def record_signal(self, number: int) -> None:
        """Record that a signal ended this process before it answered. Raises LedgerError."""
        self.host = self.call.host if self.call.host in HOSTS else self.host
        host, payload = host_named(self.host), self.call.known
        self.session = host.value(payload, "session_id")
        event: StopEvent | StartEvent | None = StopEvent(host=self.host)
        if payload:
            event = host.read_event(payload | self.call.options.fields_for(host), self.environ)
        if isinstance(event, StopEvent) and not self.is_probe():
            self.event = event
            self.record_skip("signal", (f"ended by signal {number} before an answer",))

    def recover(self, error: Exception) -> Reply:
        """Allow the stop after a fault of ours, even if that fault happens again."""
        why = f"internal error: {type(error).__name__}: {error}"
        reply: Reply
        reply, again = attempt(self.allow_and_record, "internal", why)
        if again is None:
            return reply
        self.warnings.append(f"{UNCHECKED}: {why}")
        return Reply()  # every host accepts an empty answer


def completed(event: StopEvent, setup: Setup) -> StopEvent:
    """Return an event with what its payload does not say, and the gates are to know."""
    if event.last_message is None:
        host = host_named(event.host if event.host in HOSTS else DEFAULT)  # or a program's own
        event = replace(event, last_message=host.last_message(event))
    if setup.workspace:  # a file may have named one
        event = replace(event, workspace=setup.workspace)
    return event
