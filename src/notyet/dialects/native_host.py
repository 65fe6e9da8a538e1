"""A host that speaks as we do: our own events, and our own words in reply."""

from __future__ import annotations

from notyet.core.json_text import dumps
from notyet.core.verdict import Block, Halt
from notyet.dialects import Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Allow


def read_event(
    payload: Mapping[str, Any],
    environ: Mapping[str, str],  # noqa: ARG001  # of the protocol
) -> StopEvent | StartEvent | None:
    """Read an event in our own words; what is of the wrong type counts as missing (W5)."""
    from notyet.dialects import native_payload

    return native_payload.read(payload)


def write_reply(
    verdict: Allow | Block | Halt,
    note: str,
    event: StopEvent,  # noqa: ARG001  # of the protocol
    settings: Mapping[str, str],  # noqa: ARG001  # as above
) -> Reply:
    """Answer a host that speaks as we do: one JSON object, exit 0."""
    said: dict[str, Any] = {"decision": type(verdict).__name__.lower()}
    if isinstance(verdict, Block):
        said |= {"prompt": verdict.prompt, "reason": verdict.because, "extend": verdict.extend}
    elif isinstance(verdict, Halt):
        said["reason"] = verdict.reason
    else:
        said |= {"extend": verdict.extend} if verdict.extend else {}
        said |= {"reason": verdict.note} if verdict.note else {}
    if note:
        said["systemMessage"] = note
    return Reply(stdout=dumps(said))


def write_context(told: str, event: StartEvent) -> Reply:  # noqa: ARG001  # of the protocol
    """Put a text before a starting agent's first request."""
    return Reply(stdout=dumps({"additionalContext": told}))
