"""What happens to each line between an editor and an agent.

Every line is passed on byte for byte, but for four: the end of a turn, which is held while gates
run; prompts of ours, and their answers; a cancellation of a turn whose end is held; and one of a
prompt that we replaced. Whatever is not understood is passed on.

    client ── session/prompt ──► agent works ── end ──► gates run ── passed ──► end ──► client
                                     ▲                      │
                                     └── session/prompt ◄── sent back
"""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import TYPE_CHECKING, Protocol

from notyet.acp import wire
from notyet.acp.heard import Heard
from notyet.acp.pipes import lines_in
from notyet.acp.turns import Session, Turn
from notyet.acp.wire import value
from notyet.core.verdict import Block

if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.acp.wire import Message
    from notyet.core.verdict import Decision

    Write = Callable[[bytes], None]

# Of lines that are passed on unread. A string cannot contain these bytes: its quotes are escaped.
_UPDATES = (b'"method":"session/update"', b'"method": "session/update"')
# May stand in a line that matters. The first two are in every end of a turn.
_MATTER = (b"stopReason", b"state_update", b'"result"', b'"error"')


class Checker(Protocol):
    """What runs the gates; `gating` has the real one."""

    @property
    def sums_up(self) -> bool:
        """Whether the agent's token counts are those of the whole session."""

    def starts(self, session: Session, *, is_new: bool) -> asyncio.Task[None] | None:
        """Note that a session was opened or loaded; prompts wait for the task."""

    async def check(self, turn: Turn, end: Message, show: Write) -> Decision | None:
        """Decide a turn; show it to the client. None: nothing was checked."""

    def agent_is(self, info: Message) -> None:
        """Note what the agent says about itself."""


class Proxy:
    """The lines of one client and one agent."""

    def __init__(
        self, checker: Checker, to_client: Write, to_agent: Write, log: Callable[[str], None]
    ) -> None:
        self.version = 1
        self._checker = checker
        self._to_client = to_client
        self._to_agent = to_agent
        self._log = log
        self._prefix = f"notyet-{uuid.uuid4().hex[:12]}"  # of our ids; the client has others
        self._number = 0
        self._sessions: dict[str, Session] = {}
        self._asked: dict[str, tuple[str, Message]] = {}  # requests about sessions, by id
        self._prompts: dict[str, Turn] = {}  # open ones, by the id that the agent will answer
        self._working: list[Session] = []  # of which lines are kept
        self._has_left = False  # the client

    # -- from the client

    def from_client(self, bundle: bytes) -> None:
        """Take lines of the client."""
        for line in lines_in(bundle):
            message = wire.parse(line)
            try:
                passes = message is None or (
                    not self._waits(message, line) and self._passes_to_agent(message)
                )
            except Exception as error:  # noqa: BLE001  # a fault of ours must not stop the client
                self._log(f"internal error, the line was passed on: {error!r}")
                passes = True
            if passes:
                self._to_agent(line)

    def _waits(self, message: Message, line: bytes) -> bool:
        """Keep a line about a session that begins: an agent must not edit before we have looked."""
        session = self._sessions.get(str(value(message, "params", "sessionId")))
        if session is None or session.starting is None:
            return False
        session.waiting.append(line)
        return True

    def _passes_to_agent(self, message: Message) -> bool:
        method, params, number = (message.get(name) for name in ("method", "params", "id"))
        if not isinstance(params, dict) or not isinstance(method, str):
            return True
        if number is not None and (method in wire.NEW_SESSION or method == "initialize"):
            self._asked[wire.key(number)] = (method, params)
        elif number is not None and method == wire.PROMPT:
            self._begin(params, number)
        elif method in wire.CLOSING:
            return self._cancel(method, params)
        elif method == wire.CANCEL_REQUEST:
            return self._cancel_request(message, params)
        return True

    def _begin(self, params: Message, number: object) -> None:
        """Begin a turn: a user's prompt wins against a gate, and against our follow-up (C9)."""
        name = params.get("sessionId")
        if not isinstance(name, str):
            return
        session = self._session(name)
        before, task = session.turn, wire.prompt_text(params)
        if before is not None and before.state == "gating":
            self._finish(before)
        turn = session.turn = Turn(session, number, task)
        self._work(turn)
        if self.version == 1:
            self._prompts[wire.key(number)] = turn
        elif before is not None and before.state == "working":
            before.state = "over"  # the agent takes the prompt into the work under way
            turn.has_run = before.has_run

    def _cancel(self, method: str, params: Message) -> bool:
        session = params.get("sessionId")
        turns = [turn for turn in self._open_turns() if turn.session.name == session]
        for turn in turns:
            turn.is_cancelled = True
        gating = [turn for turn in turns if turn.state == "gating"]
        for turn in gating:
            self._finish(turn, stop="cancelled")
        # The agent has nothing to cancel if gates were all that ran.
        return method != wire.CANCEL or not gating or len(turns) > len(gating)

    def _cancel_request(self, message: Message, params: Message) -> bool:
        asked = wire.key(params.get("requestId"))
        for turn in self._open_turns() if self.version == 1 else ():
            if wire.key(turn.asked) != asked:
                continue
            turn.is_cancelled = True
            if turn.state == "gating":
                self._finish(turn, error=(wire.CANCELLED, "Request cancelled"))
                return False
            if turn.own_id:
                ours = {**params, "requestId": turn.own_id}
                self._to_agent(wire.line_of({**message, "params": ours}))
                return False
        return True

    # -- from the agent

    def from_agent(self, bundle: bytes) -> None:
        """Take lines of the agent."""
        if self._are_quick(bundle):
            self._to_client(bundle)
            return
        passed: list[bytes] = []
        for line in lines_in(bundle):
            if self._is_quick(line):
                passed.append(line)
                continue
            if passed:  # before what we may say now
                self._to_client(b"".join(passed))
                passed = []
            message = wire.parse(line)
            try:
                passes = message is None or self._passes_to_client(message, line)
            except Exception as error:  # noqa: BLE001  # a fault of ours must not stop the agent
                self._log(f"internal error, the line was passed on: {error!r}")
                passes = True
            if passes:
                self._to_client(line)
        if passed:
            self._to_client(b"".join(passed))

    def _are_quick(self, bundle: bytes) -> bool:
        """Return True for updates of one turn that need not be parsed; keep them for its end."""
        turn = self._working[0].working() if len(self._working) == 1 else None
        if turn is None:
            return False
        count = bundle.count(b"\n")
        if sum(map(bundle.count, _UPDATES)) != count or any(word in bundle for word in _MATTER):
            return False
        if bundle.count(turn.session.mark) < count or not bundle.endswith(b"\n"):
            return False
        turn.heard.add(bundle)
        return True

    def _is_quick(self, line: bytes) -> bool:
        """Return True for an update that need not be parsed; keep it if it is of a turn."""
        if _UPDATES[0] not in line and _UPDATES[1] not in line:
            return False
        if _MATTER[0] in line or _MATTER[1] in line:
            return False
        is_known = not self._working
        for session in self._working:
            if session.mark in line:
                is_known = True
                turn = session.working()
                if turn is not None:
                    turn.heard.add(line)
        return is_known

    def _passes_to_client(self, message: Message, line: bytes) -> bool:
        method = message.get("method")
        if method == wire.UPDATE:
            return self._passes_update(message, line)
        if method is not None or "id" not in message:
            return True
        key = wire.key(message["id"])
        asked = self._asked.pop(key, None)
        if asked is not None:
            self._learn(*asked, message)
            return True
        turn = self._prompts.pop(key, None)
        if turn is not None:
            return self._passes_answer(turn, message, line)
        return self._passes_unasked(message)

    def _passes_unasked(self, message: Message) -> bool:
        """Take an answer to no request that is known: usually one that is none of our business."""
        if value(message, "result", "stopReason") is None:
            return not self._is_ours(message["id"])
        number = wire.key(message["id"])
        self._log(f"NOT CHECKED: the agent ended a turn by an answer with the unknown id {number}")
        waiting = [turn for turn in self._open_turns() if turn.state == "working"]
        if len(waiting) != 1:
            return True
        (turn,) = waiting  # else its client would wait for ever
        self._prompts.pop(wire.key(turn.own_id or turn.asked), None)
        what = "the send-back" if turn.own_id else "the prompt"
        self._say(turn, f"NOT CHECKED: the agent answered {what} with an unknown id")
        turn.held = turn.held or (message, b"")
        self._finish(turn)
        return False

    def _learn(self, method: str, params: Message, answer: Message) -> None:
        """Note the version, or a session, from an answer of the agent."""
        if wire.has_failed(answer):
            return
        found = wire.result_of(answer)
        if method == "initialize":
            self.version = 2 if found.get("protocolVersion") == 2 else 1  # noqa: PLR2004
            info = found.get("agentInfo") or found.get("info")
            self._checker.agent_is(info if isinstance(info, dict) else {})
            return
        old = params.get("sessionId")
        name = found.get("sessionId") or old
        if not isinstance(name, str):
            return
        parent = self._sessions.get(old) if isinstance(old, str) and name != old else None
        session = self._session(name)
        cwd = params.get("cwd")
        if isinstance(cwd, str) and cwd:
            session.cwd = cwd
        elif parent is not None:
            session.cwd = parent.cwd
        if method == "session/fork" and isinstance(old, str):
            session.counted_as = parent.counted_as if parent is not None else old
        session.starting = self._checker.starts(session, is_new=method == "session/new")
        if session.starting is not None:
            session.starting.add_done_callback(lambda _: self._started(session))

    def _started(self, session: Session) -> None:
        """Pass on what waited until the files at the start were known."""
        session.starting, waiting = None, session.waiting
        session.waiting = []
        self.from_client(b"".join(waiting))

    def _passes_answer(self, turn: Turn, message: Message, line: bytes) -> bool:
        """Take the answer to a prompt, the client's or ours."""
        is_ours = bool(turn.own_id)
        if self.version != 1 and not wire.has_failed(message):
            return False  # our prompt was accepted; its end comes as an update
        if is_ours and wire.has_failed(message):
            words = value(message, "error", "message")
            self._say(turn, f"NOT PASSED: the agent did not take the send-back: {words}")
            self._finish(turn)
            return False
        self._end(turn, wire.result_of(message), message, line)
        return False

    def _passes_update(self, message: Message, line: bytes) -> bool:
        """Take an update; in version 2 one of them is the end of a turn."""
        name, update = value(message, "params", "sessionId"), value(message, "params", "update")
        if not isinstance(name, str) or not isinstance(update, dict):
            return True
        turn = self._turn_of(name)
        working = turn is not None and turn.state == "working"
        if update.get("sessionUpdate") != "state_update":
            if turn is not None and working:
                turn.heard.add(line)
            return True
        if self.version == 1:
            return True
        if update.get("state") != "idle":
            if turn is None or turn.state == "over":  # the agent works without being asked
                turn = self._session(name).turn = Turn(self._session(name), None, "")
                self._work(turn)
            elif turn.state == "gating":  # it works again: this was not its end
                self._stop_check(turn)
                turn.state = "working"
                self._work(turn)
            turn.has_run = True
            return True
        if turn is None or not working:
            return turn is None or turn.state == "over"  # else it is said again, of a held end
        if not turn.has_run and not turn.heard.read(name).has_acted:
            return True  # it was idle before
        self._end(turn, update, message, line)
        return False

    # -- the end of a turn

    def _end(self, turn: Turn, end: Message, message: Message, line: bytes) -> None:
        """Hold the end of a turn and check it, or let it pass."""
        turn.held = (message, line)
        turn.spend(end.get("usage"))
        stop = end.get("stopReason") or wire.END_TURN
        newest = turn.session.turn  # the end of the user's newest prompt is what counts (C9)
        is_newest = newest is None or newest is turn or newest.state == "over"
        if turn.is_cancelled or self._has_left or not is_newest:
            self._finish(turn)
            return
        if stop != wire.END_TURN or wire.has_failed(message):
            if turn.own_id:
                self._say(turn, f"NOT PASSED: the agent was sent back, and ended with {stop}")
            self._finish(turn)
            return
        turn.state = "gating"
        turn.check = asyncio.get_running_loop().create_task(self._check(turn, end))

    async def _check(self, turn: Turn, end: Message) -> None:
        decision = None
        try:
            decision = await self._checker.check(turn, end, self._to_client)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not hold an agent
            words = f"NOT CHECKED: internal error: {type(error).__name__}: {error}"
            self._log(words)
            if turn.state == "gating":
                self._say(turn, words)
        if turn.state != "gating":
            return
        turn.decision = decision
        verdict = decision.verdict if decision is not None else None
        if decision is not None and decision.why == "background" and self.version != 1:
            self._to_client(turn.held[1] if turn.held else b"")
            turn.state = "working"  # it may say without a word in between that all has ended (B10)
            self._work(turn)
            return
        if not isinstance(verdict, Block):
            self._finish(turn)
            return
        self._number += 1
        turn.continues(f"{self._prefix}-{self._number}")
        self._prompts[wire.key(turn.own_id)] = turn
        self._work(turn)
        self._to_agent(wire.prompt(turn.own_id, turn.session.name, verdict.prompt))

    def _finish(self, turn: Turn, *, stop: str = "", error: tuple[int, str] | None = None) -> None:
        """Let the client see the end of a turn."""
        if turn.state == "over":
            return
        self._stop_check(turn)
        turn.state = "over"
        self._rest(turn)
        turn.heard = Heard()  # of a long session, only what is open is kept
        message, line = turn.held or ({}, b"")
        if self.version == 1:
            self._answer(turn, message, line, stop, error)
        elif turn.held and not stop and not turn.send_backs:
            self._to_client(line)
        elif turn.held or stop:
            update = dict(value(message, "params", "update") or {"state": "idle"})
            update.pop("sessionUpdate", None)
            update["stopReason"] = stop or update.get("stopReason")
            self._to_client(
                wire.update(turn.session.name, "state_update", self._with_meta(turn, update))
            )

    def _stop_check(self, turn: Turn) -> None:
        """End the gates of a turn, if they run."""
        if turn.state == "gating" and turn.close_display is not None:
            turn.close_display()
        if turn.check is not None and turn.check is not asyncio.current_task():
            turn.check.cancel()

    def _answer(
        self, turn: Turn, message: Message, line: bytes, stop: str, error: tuple[int, str] | None
    ) -> None:
        """Answer the client's prompt (version 1)."""
        if error is not None:
            self._to_client(wire.error(turn.asked, *error))
        elif line and not stop and not turn.send_backs:
            self._to_client(line)  # nothing was changed
        elif wire.has_failed(message) and not stop:
            self._to_client(
                wire.line_of({"jsonrpc": "2.0", "id": turn.asked, "error": message["error"]})
            )
        else:
            found = dict(wire.result_of(message))
            found["stopReason"] = stop or found.get("stopReason") or wire.END_TURN
            self._to_client(wire.result(turn.asked, self._with_meta(turn, found)))

    def _with_meta(self, turn: Turn, fields: Message) -> Message:
        """Add what came of a turn that was changed, and the tokens of all its runs."""
        if isinstance(fields.get("usage"), dict) and not self._checker.sums_up:
            fields["usage"] = {**fields["usage"], **turn.spent}
        meta = fields.get("_meta")
        decision = turn.decision
        ours = {
            "sendBacks": turn.send_backs,
            "outcome": decision.outcome if decision is not None else None,
            "stop": decision.stop if decision is not None else 0,
        }
        known = meta if isinstance(meta, dict) else {}
        return {**fields, "_meta": {**known, "notyet": ours}}

    def _say(self, turn: Turn, text: str) -> None:
        message = f"{self._prefix}-m{uuid.uuid4().hex[:8]}"
        self._to_client(wire.words(turn.session.name, message, f"\n\n**notyet**: {text}\n"))

    # -- sessions

    def _session(self, name: str) -> Session:
        if name not in self._sessions:
            self._sessions[name] = Session(name, os.getcwd())
        return self._sessions[name]

    def _turn_of(self, name: object) -> Turn | None:
        session = self._sessions.get(name) if isinstance(name, str) else None
        return session.turn if session is not None else None

    def _work(self, turn: Turn) -> None:
        if turn.session not in self._working:
            self._working.append(turn.session)

    def _rest(self, turn: Turn) -> None:
        session = turn.session
        if session.turn is turn:
            for older in self._open_turns():
                if older.session is session and older.state == "working":
                    session.turn, older.heard = older, turn.heard  # the agent still works on it
        if session.working() is None and session in self._working:
            self._working.remove(session)

    def _is_ours(self, number: object) -> bool:
        return isinstance(number, str) and number.startswith(self._prefix)

    # -- the end of a side

    def agent_ended(self, how: str) -> None:
        """Give every open turn an end that the client can show."""
        for turn in self._open_turns():
            if turn.state == "gating":
                self._finish(turn)
                continue
            if turn.own_id:
                self._say(turn, f"NOT PASSED: the agent was sent back, and ended ({how})")
            if self.version == 1:
                self._finish(turn, error=(wire.INTERNAL, f"the agent ended in its turn ({how})"))
            elif turn.own_id:
                self._finish(turn, stop=wire.END_TURN)

    def client_ended(self) -> None:
        """End the gates, and run no more: their result has no reader."""
        self._has_left = True
        for turn in self._open_turns():
            turn.state = "over"
            if turn.check is not None:
                turn.check.cancel()

    def checks(self) -> list[asyncio.Task[None]]:
        """Return the checks that have not ended, also those that were cancelled."""
        turns = [session.turn for session in self._sessions.values()]
        found = [turn.check for turn in turns if turn is not None]
        return [check for check in found if check is not None and not check.done()]

    def _open_turns(self) -> list[Turn]:
        turns = {id(turn): turn for turn in self._prompts.values()}
        for session in self._sessions.values():
            if session.turn is not None:
                turns[id(session.turn)] = session.turn
        return [turn for turn in turns.values() if turn.state != "over"]
