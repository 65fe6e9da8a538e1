"""`CommandLineSession`: an agent's own program, started anew for each turn.

How each program is started is its host's data (`hosts.host.CommandLine`). Its `ref` is kept in
the ledger, so it holds no secrets.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import TYPE_CHECKING

from notyet.agents.formats import READERS
from notyet.agents.program_session import NO_PROCESS, ProgramSession, may_hold_secrets
from notyet.agents.transcript_writer import Transcript
from notyet.agents.turn_builder import TurnBuilder
from notyet.core.session import News, Turn
from notyet.core.text import clean
from notyet.errors import Refused, SendError
from notyet.hosts.known_programs import headless
from notyet.run.agent_program import AgentProgram, end_orphan
from notyet.run.cannot_start import CannotStart
from notyet.run.spawn import Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SUPERVISED = "NOTYET_SUPERVISED"  # our own hook leaves the main stop to the supervisor
_LINGER = 60.0  # seconds without output after its answer, until it is killed
_TAIL = 600  # characters of stderr that an error quotes


class CommandLineSession(ProgramSession):
    """One conversation. The agent's process lives only while a turn does."""

    def __init__(
        self,
        name: str,
        *,
        cwd: str,
        args: Sequence[str] = (),
        session: str | None = None,
        program: str | None = None,
        folder: str | None = None,
    ) -> None:
        super().__init__(name, folder)
        self._name = name
        usual, self._command = headless()[name]
        self._cwd = os.path.abspath(cwd)
        self._args = tuple(args)
        self._has_secrets = may_hold_secrets(self._args)
        self._program = program or usual
        self._has_begun = self._is_named = session is not None
        if session is not None and self._command.takes_names and not _is_uuid(session):
            raise Refused(f"{name} does not have the conversation {session}; give its whole id")
        self.id: str | None = session or (str(uuid.uuid4()) if self._command.chooses else None)
        # Unknown for a conversation that another program started.
        self._totals: dict[str, int] | None = {} if session is None else None
        self._running: AgentProgram | None = None
        self._sending = self._aborted = False

    @classmethod
    def reopened(cls, ref: Mapping[str, Any]) -> CommandLineSession:
        """Return the session with this `ref`. Raises KeyError or ValueError for an invalid one."""
        for name in ("cwd", "program", "transcript"):
            if not isinstance(ref[name], str) or not ref[name]:
                raise ValueError(f"{name} must be a string, not {ref[name]!r}")
        path = ref["transcript"]
        session = cls(
            ref["agent"],
            cwd=ref["cwd"],
            args=ref["args"] or (),
            program=ref["program"],
            folder=os.path.dirname(path) or ".",
        )
        if ref["session"]:
            session.id = ref["session"]
            session._has_begun, session._is_named = ref["begun"], ref["named"]
        session._transcript = Transcript(path)
        session._has_secrets = ref["args"] is None
        session._totals = ref["totals"]
        session._orphan = (ref["pid"], ref["started"], ref["mark"])
        session._is_reopened = True
        return session

    def ref(self) -> dict[str, object]:
        """Return what reopens the session, without values of the environment.

        If an argument may hold a secret, none is included: the ledger keeps this.
        """
        pid, started, mark = self._orphan
        return {
            "agent": self._name,
            "session": self.id,
            "begun": self._has_begun,
            "named": self._is_named,
            "cwd": self._cwd,
            "args": None if self._has_secrets else list(self._args),
            "program": self._program,
            "transcript": self._transcript.path,
            "totals": None if self._totals is None else dict(self._totals),
            "pid": pid,
            "started": started,
            "mark": mark,
        }

    async def send(self, prompt: str, key: str) -> Turn:
        """Run the agent with a prompt and wait for it to end."""
        if self._sending:
            raise SendError(f"{self._name} still works on another prompt; wait for its turn to end")
        self._sending, self._aborted = True, False
        try:
            return await self._noting_refusal(key, self._send(prompt, key))
        finally:
            self._sending, self._running, self._orphan = False, None, NO_PROCESS

    async def abort(self) -> None:
        """End the running turn, or an orphan of a crash; the second call kills."""
        if not self._sending:
            await end_orphan(*self._orphan)
            self._orphan = NO_PROCESS
            return
        is_again, self._aborted = self._aborted, True
        if self._running is not None:
            await (self._running.kill() if is_again else self._running.stop())

    # -- one turn

    async def _send(self, prompt: str, key: str) -> Turn:
        await end_orphan(*self._orphan)
        if self._aborted:
            self._fates[key] = False
            return Turn(text="", stop_reason="cancelled")
        began = time.monotonic()
        self._write_prompt(key, prompt)
        form = self._command.resume if self._has_begun else self._command.start
        builder, running = await self._run(form, prompt, key)
        if not self._aborted and self._needs_other_form(form, builder, running):
            form = self._command.start if self._has_begun else self._command.resume
            builder, running = await self._run(form, prompt, key)
        if not self._aborted and self._is_unknown(form, builder, running):
            raise SendError(
                f"{self._name} does not have the conversation {self.id}; it may have been deleted, "
                "or belong to another folder"
            )
        return self._turn(builder, running, (time.monotonic() - began) * 1000)

    async def _run(self, form: str, prompt: str, key: str) -> tuple[TurnBuilder, AgentProgram]:
        builder = TurnBuilder(self._notify, self._transcript, key)
        words = self._command.words(form, self._args, self.id or "", prompt)
        argv = (self._program, *words)
        # With the session, if known: an agent that this one starts inherits the mark.
        is_known = self.id and not self._command.renames
        mark = f"{os.getpid()}:{self.id}" if is_known else str(os.getpid())
        environ = {**os.environ, _SUPERVISED: mark}
        stdin = b"" if "{prompt}" in form else prompt.encode("utf-8", "replace")
        job = Job(argv=argv, dir=self._cwd, environ=environ, stdin=stdin)
        try:
            running = AgentProgram(job, lambda line: self._read_line(line, builder, key))
        except CannotStart as error:
            hint = f"; {self._command.install}" if "not found on the PATH" in str(error) else ""
            raise SendError(f"{self._name} cannot be started: {error}{hint}") from None
        self._running = running
        self._orphan = (running.pid, running.started, running.mark)
        self._notify(News(kind="ref"))
        await running.wait()
        builder.flush()
        return builder, running

    def _read_line(self, line: bytes, builder: TurnBuilder, key: str) -> None:
        try:
            entry = json.loads(line.decode("utf-8", "replace"), strict=False)
            READERS[self._command.output](entry, builder)
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
            builder.unread += 1  # not JSON, or not of this format
            return
        if builder.is_accepted:
            self._fates[key] = True
        self._adopt(builder)
        is_over = builder.is_finished and not self._command.answers_early
        if is_over and self._running is not None:
            self._running.end_within(_LINGER)

    def _adopt(self, builder: TurnBuilder) -> None:
        """Take the id that the agent gives the conversation, once it has our prompt."""
        if builder.session is None or not (builder.is_accepted or not self._command.chooses):
            return
        if builder.session != self.id or not self._has_begun:
            self.id, self._has_begun = builder.session, True
            self._notify(News(kind="ref"))

    def _needs_other_form(self, form: str, builder: TurnBuilder, running: AgentProgram) -> bool:
        """Return True if the other form is right: an earlier turn was cut off at its start."""
        # A conversation that the user named is never started anew.
        if builder.is_accepted or self._is_named or not self._command.chooses:
            return False
        said = running.stderr() + (builder.error or "")
        if form is self._command.start:
            return bool(self._command.taken) and self._command.taken in said
        return self._is_unknown(form, builder, running)

    def _is_unknown(self, form: str, builder: TurnBuilder, running: AgentProgram) -> bool:
        if builder.is_accepted or form is not self._command.resume:
            return False
        said = running.stderr() + (builder.error or "")
        return any(words in said for words in self._command.unknown)

    def _turn(self, builder: TurnBuilder, running: AgentProgram, duration_ms: float) -> Turn:
        if self._aborted:
            builder.stop_reason, builder.error = "cancelled", None
        elif builder.error is None and not builder.is_finished:
            builder.fail(self._why(builder, running))
        spent = builder.spent()
        if self._command.sums_up and builder.figures is not None:
            before = spent if self._totals is None else self._totals
            self._totals = dict(spent)
            spent = {name: max(0, n - before.get(name, 0)) for name, n in spent.items()}
        self._orphan = NO_PROCESS
        self._notify(News(kind="ref"))
        return builder.turn(spent, duration_ms)

    def _why(self, builder: TurnBuilder, running: AgentProgram) -> str:
        """Return why a turn has no answer."""
        ended = f"signal {running.signal}" if running.signal else f"exit code {running.code}"
        parts = [f"{self._name} ended without an answer ({ended})"]
        unread = builder.unread + running.too_long
        if unread:
            lines = "a line" if unread == 1 else f"{unread} lines"
            parts.append(f"{lines} of its output could not be read")
        said = clean(running.stderr()).strip().splitlines()
        # Warnings are not the cause, unless there is nothing else.
        matters = [line for line in said if not line.startswith("WARNING")] or said
        if matters:
            parts.append("\n".join(matters)[-_TAIL:])
        return ": ".join(parts)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
