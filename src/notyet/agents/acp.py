"""`AcpSession`: a conversation with any agent that speaks ACP.

The agent's program is started at the first prompt and stays for the next ones. A session that is
reopened starts it again, and loads the conversation where the agent can.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.acp import wire
from notyet.acp.client import AgentError, Client, environment
from notyet.acp.heard import Facts, usage_of
from notyet.acp.marks import Marks
from notyet.acp.turns import Spending
from notyet.agents.program_session import NO_PROCESS, ProgramSession, may_hold_secrets
from notyet.agents.transcript_writer import Transcript
from notyet.agents.turn_builder import TurnBuilder
from notyet.config.find import state_folder
from notyet.core.session import News, Turn
from notyet.errors import Refused, SendError
from notyet.hosts.acp_agents import acp_agent
from notyet.run.agent_program import end_orphan
from notyet.run.cannot_start import CannotStart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from notyet.acp.wire import Message
    from notyet.core.session import StopReason

    # Called with what the agent wants to do; returns whether it may.
    Permit = Callable[[str], Awaitable[bool]]

NAME = "acp"
_TO_STOP = 10.0  # seconds in which an agent ends a cancelled turn
_IDLE = 900.0  # seconds without a prompt, after which an agent that can load sessions is ended
_STOPS: Mapping[str, StopReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "max_turn_requests": "max_turns",
    "refusal": "refusal",
    "cancelled": "cancelled",
}


async def denied(_what: str) -> bool:
    """Refuse whatever an agent wants to do."""
    return False


class AcpSession(ProgramSession):
    """One conversation. `argv` is the command line of an agent that speaks ACP over stdio."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        session: str | None = None,
        folder: str | None = None,
        permit: Permit = denied,
    ) -> None:
        """`permit` answers the agent's requests for permission."""
        if not argv:
            raise Refused('name the agent\'s command, as in: notyet with acp:"goose acp" "..."')
        super().__init__(NAME, folder)
        self._argv = tuple(argv)
        self._cwd = os.path.abspath(cwd)
        self._known = acp_agent(self._argv)
        self.id: str | None = session
        self.permit = permit
        self._marks = Marks(state_folder(os.environ))
        self._spending = Spending()
        self._client: Client | None = None
        self._builder: TurnBuilder | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._closing: asyncio.Future[None] | None = None
        self._asking: asyncio.Future[Message] | None = None
        self._sending = self._aborted = False

    @classmethod
    def reopened(cls, ref: Mapping[str, Any]) -> AcpSession:
        """Return the session with this `ref`. Raises KeyError or ValueError for an invalid one."""
        argv, path = ref["args"], ref["transcript"]
        if not isinstance(argv, list) or not isinstance(path, str) or not path:
            raise ValueError("args and transcript must be a list and a path")
        session = cls(
            [str(word) for word in argv],
            cwd=ref["cwd"],
            session=ref["session"],
            folder=os.path.dirname(path) or ".",
        )
        session._transcript = Transcript(path)
        session._orphan = (ref["pid"], ref["started"], ref["mark"])
        session._is_reopened = True
        return session

    def ref(self) -> dict[str, object]:
        """Return what reopens the session; without a command line that may hold a secret."""
        pid, started, mark = self._orphan
        return {
            "agent": NAME,
            "session": self.id,
            "cwd": self._cwd,
            "args": None if may_hold_secrets(self._argv) else list(self._argv),
            "command": "" if may_hold_secrets(self._argv) else shlex.join(self._argv),
            "transcript": self._transcript.path,
            "pid": pid,
            "started": started,
            "mark": mark,
        }

    async def send(self, prompt: str, key: str) -> Turn:
        """Send a prompt and wait for its turn to end."""
        if self._sending:
            raise SendError("the agent still works on another prompt; wait for its turn to end")
        self._sending, self._aborted = True, False
        if self._resting is not None:
            self._resting.cancel()
        try:
            await end_orphan(*(NO_PROCESS if self._client else self._orphan))
            return await self._noting_refusal(key, self._send(prompt, key))
        except asyncio.CancelledError:
            await asyncio.shield(self._end_turn())
            raise
        finally:
            self._sending, self._builder, self._asking = False, None, None
            if self._client is not None and self._client.can_load:
                self._resting = asyncio.get_running_loop().call_later(_IDLE, self._rest)

    async def abort(self) -> None:
        """End the running turn, or an orphan of a crash; the second call kills."""
        if not self._sending:
            if self._client is None:
                await end_orphan(*self._orphan)
                self._orphan = NO_PROCESS
            return
        is_again, self._aborted = self._aborted, True
        client = self._client
        if client is None or client.ended.done():
            return
        if is_again or self.id is None:
            await client.program.kill()
            return
        client.notify(wire.CANCEL, {"sessionId": self.id})
        asyncio.get_running_loop().call_later(_TO_STOP, self._give_up_on, client, self._builder)

    async def close(self) -> None:
        """End the agent's program; a later prompt starts it again, and loads the conversation."""
        await self._end_program()
        self._marks.remove()

    # -- one turn

    async def _send(self, prompt: str, key: str) -> Turn:
        began = time.monotonic()
        self._write_prompt(key, prompt)
        client = await self._connected()
        builder = self._builder = TurnBuilder(self._notify, self._transcript, key)
        if self._is_aborted():  # meanwhile
            self._fates[key] = False
            return Turn(text="", stop_reason="cancelled")
        block = {"type": "text", "text": prompt}
        asked = client.request(wire.PROMPT, {"sessionId": self.id, "prompt": [block]})
        self._asking = asyncio.ensure_future(asked)
        try:
            end = await asyncio.shield(self._asking)
        except AgentError as error:
            builder.flush()
            builder.fail(str(error))
            end = {}
        else:
            builder.flush()
            self._fates[key] = True
            self._finish(builder, end)
        if builder.is_accepted:
            self._fates[key] = True
        if self._is_aborted():
            builder.stop_reason, builder.error = "cancelled", None
        return builder.turn(self._spent(builder, end), (time.monotonic() - began) * 1000)

    def _finish(self, builder: TurnBuilder, end: Message) -> None:
        """Note how a turn ended; some agents say `end_turn` after a failed call of their model."""
        stop = end.get("stopReason")
        facts = Facts(builder.text, builder.is_accepted, (), builder.tool_calls, None)
        signs = self._known.failures if self._known is not None else ()
        failed = self._spending.failed_call(end, facts, sums_up=self._sums_up, signs=signs)
        if stop == wire.END_TURN and failed:
            builder.fail(failed)
        elif isinstance(stop, str) and stop in _STOPS:
            builder.finish(_STOPS[stop])
        else:
            builder.fail(f"the agent ended its turn for a reason that is unknown: {stop!r}")

    def _is_aborted(self) -> bool:
        return self._aborted

    @property
    def _sums_up(self) -> bool:
        return self._known is not None and self._known.sums_up

    def _spent(self, builder: TurnBuilder, end: Message) -> dict[str, int]:
        usage = usage_of(end.get("usage"))
        if usage is None:
            return builder.spent()
        counts = {name: getattr(usage, name) for name in builder.spent()}
        return self._spending.of_this_turn(counts) if self._sums_up else counts

    async def _connected(self) -> Client:
        """Return the agent with its session open. Raises SendError."""
        if self._client is not None and not self._client.ended.done():
            return self._client
        named = shlex.join(self._argv)[:200]
        try:
            client = Client(
                self._argv, self._cwd, environment(self._marks.variable), self._update, self._reply
            )
        except CannotStart as error:
            raise SendError(f"{named} cannot be started: {error}") from None
        program = client.program
        self._client, self._orphan = client, (program.pid, program.started, program.mark)
        self._notify(News(kind="ref"))
        try:
            await client.begin()
            if self.id is None:
                self.id = await client.new_session(self._cwd)
            else:
                await client.load_session(self.id, self._cwd)
            with suppress(OSError):  # its own hook then gates the stop, too
                self._marks.add(self.id, self.id)
        except AgentError as error:
            await self._end_program()
            raise SendError(f"{named}: {error}") from None
        self._notify(News(kind="ref"))
        return client

    def _update(self, session: str, update: Message) -> None:
        """Take what the agent does; what it replays of an earlier turn is not news."""
        builder = self._builder
        if builder is None or session != self.id:
            return
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            builder.piece(wire.text_of(update.get("content")))
        elif kind == "tool_call" and builder.is_new(update.get("toolCallId")):
            given = update.get("rawInput")
            command = wire.value(update, "rawInput", "command")
            name = update.get("name") or update.get("title")
            builder.use(name, given, command if isinstance(command, str) else None)
        elif kind == "tool_call_update" and update.get("status") in {"completed", "failed"}:
            found = update.get("content")
            blocks = [wire.value(one, "content") for one in found or () if isinstance(one, dict)]
            builder.answered(wire.text_of(blocks))

    async def _reply(self, method: str, params: Message) -> object:
        """Answer what the agent asks; None for what we do not do."""
        if method != "session/request_permission":
            return None
        options = [one for one in params.get("options") or () if isinstance(one, dict)]
        call = params.get("toolCall")
        what = wire.value(params, "toolCall", "title") or params.get("title") or "a tool call"
        shown = wire.value(params, "toolCall", "rawInput", "command") if call else None
        words = f"{what}: {shown}" if isinstance(shown, str) and shown not in str(what) else what
        wanted = "allow" if await self.permit(str(words)) else "reject"
        for kind in (f"{wanted}_once", f"{wanted}_always"):
            for option in options:
                if option.get("kind") == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return {"outcome": {"outcome": "cancelled"}}

    # -- the program

    def _rest(self) -> None:
        """End a program that has had no prompt for long."""
        if not self._sending:
            self._closing = asyncio.ensure_future(self._end_program())

    async def _end_turn(self) -> None:
        """End a turn that nobody waits for; an agent that does not is ended itself."""
        client, asking = self._client, self._asking
        if client is None or client.ended.done() or asking is None or asking.done():
            if asking is None:  # it was still starting
                await self._end_program()
            return
        client.notify(wire.CANCEL, {"sessionId": self.id})
        await asyncio.wait({asking}, timeout=_TO_STOP)
        if not asking.done():
            await self._end_program()
        if not asking.cancelled():
            asking.exception()  # it is nobody's

    def _give_up_on(self, client: Client, builder: TurnBuilder | None) -> None:
        """Kill an agent that does not end a cancelled turn."""
        if self._builder is builder and builder is not None and not client.ended.done():
            client.program.end_within(0)

    async def _end_program(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await asyncio.shield(client.close())
        self._orphan = NO_PROCESS
