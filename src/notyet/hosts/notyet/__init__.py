"""Programs that send events in notyet's own format, and are answered in it (W5)."""

from __future__ import annotations

from notyet.hosts.host import Host, Reply
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Allow, Block, Halt


class OwnFormat(Host, kw_only=True):
    """A program that writes events in notyet's own words, and reads answers in them."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a stop (W5)."""
        from notyet.hosts.notyet.events import read

        del environ
        return read(payload)

    def write_reply(
        self,
        verdict: Allow | Block | Halt,
        note: str,
        event: StopEvent | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Reply:
        """Answer with one JSON object and exit code 0."""
        from notyet.core.verdict import Block, Halt

        del event, settings
        reply: dict[str, Any] = {"decision": type(verdict).__name__.lower()}
        if isinstance(verdict, Block):
            reply |= {"prompt": verdict.prompt, "reason": verdict.because, "extend": verdict.extend}
        elif isinstance(verdict, Halt):
            reply["reason"] = verdict.reason
        else:
            reply |= {"extend": verdict.extend} if verdict.extend else {}
            reply |= {"reason": verdict.note} if verdict.note else {}
        if note:
            reply["systemMessage"] = note
        return Reply(stdout=dumps(reply))

    def write_context(self, text: str, event: StartEvent, note: str = "") -> Reply:
        """Put a text before a starting agent's first request."""
        del event
        reply = {"additionalContext": text, "systemMessage": note}
        return Reply(stdout=dumps({name: words for name, words in reply.items() if words}))


HOST = OwnFormat(
    name="notyet",
    title="notyet",
    signs=("scope session_id",),
    fields={"session_id": ("session_id",), "cwd": ("cwd",)},
    silence='{"decision": "allow"}',
)
