"""The stop that `check` and `status --why` are about: made up, or a payload that a host sent.

Options change it. From there on it is read as any stop, by its host's data.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.core.event import StopEvent
from notyet.core.record import replace
from notyet.core.remote import LOCAL, remote_from
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.hook.payload import Unreadable, payload_from
from notyet.hosts import DEFAULT, HOSTS, host_named
from notyet.hosts.detect import detect

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import Scope

EVENTS = {"stop": "agent", "subagent_stop": "subagent"}
NAMES = ("agent_type", "agent_id", "agent_name")
_MADE_UP = "made-up"  # the session and the subagent of a made-up stop
_STDIN = "-"
_MAX_BYTES = 32 * 1024 * 1024 + 1  # one more than the hook takes, which then says so


@dataclass(frozen=True, kw_only=True)
class DescribedStop:
    """A stop: the payload, its host, and the fields that options change."""

    content: bytes
    payload: Mapping[str, Any]
    host: str = ""  # empty: the payload tells
    changes: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""  # the file of a payload; empty for a made-up stop

    @property
    def host_name(self) -> str:
        """The host of the payload, which may be one that we do not speak to."""
        return self.host or detect(self.payload)

    def changed(self, event: StopEvent) -> StopEvent:
        """Return an event with the fields that options change."""
        return replace(event, **self.changes) if self.changes else event


def add_event_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the stop."""
    group = parser.add_argument_group("the stop")
    group.add_argument(
        "--as", dest="as_host", choices=HOSTS, metavar="HOST", help=f"one of {', '.join(HOSTS)}"
    )
    group.add_argument(
        "--event", choices=tuple(EVENTS), metavar="EVENT", help=f"one of {', '.join(EVENTS)}"
    )
    group.add_argument("--agent-type", metavar="TYPE", help="of a subagent, such as coder")
    group.add_argument("--agent-id", metavar="ID", help="of a subagent")
    group.add_argument("--agent-name", metavar="NAME", help="of a subagent")
    group.add_argument(
        "--payload", metavar="FILE", help="what a host sent, instead of a made-up stop; - is stdin"
    )
    group.add_argument(
        "--workspace", metavar="URL", help="where the agent's files are: ssh://host/path, or local"
    )


def described_stop(args: argparse.Namespace, cwd: str, session: str = _MADE_UP) -> DescribedStop:
    """Return the stop that the options describe; a made-up one has this session.

    Raises NotyetError.
    """
    changes: dict[str, Any] = {
        name: getattr(args, name) or None for name in NAMES if getattr(args, name) is not None
    }
    if args.event:
        changes["scope"] = EVENTS[args.event]
    if args.workspace is not None:
        changes["workspace"] = _workspace(args.workspace)
    if args.payload is not None:
        content, payload = _sent(args.payload)
        origin = _name(args.payload)
        host = args.as_host or ""
        return DescribedStop(
            host=host, content=content, payload=payload, changes=changes, origin=origin
        )
    # A made-up stop with such a name is a subagent's.
    if not args.event and not changes.keys().isdisjoint(NAMES):
        changes["scope"] = "subagent"
    return _made_up(args.as_host or DEFAULT, cwd, session, changes)


def read_stop(stop: DescribedStop, environ: Mapping[str, str]) -> StopEvent:
    """Read a stop as its host's hook reads it. Raises NotyetError if it is not a stop."""
    host = stop.host_name
    if host not in HOSTS:
        known = ", ".join(HOSTS)
        raise NotyetError(
            f"{stop.origin}: this looks like {host}, which notyet does not support yet; "
            f"read it as another host with --as ({known})"
        )
    event = host_named(host).read_event(stop.payload, environ)
    if not isinstance(event, StopEvent):
        name = host_named(host).event_in(stop.payload)
        what = f"{visible(name)[:80] or 'this'} is not a stop"
        raise NotyetError(f"{stop.origin}: {what}; use the payload of Stop or SubagentStop")
    return stop.changed(event)


def _made_up(host: str, cwd: str, session: str, changes: dict[str, Any]) -> DescribedStop:
    """Return a made-up stop in the words of a host."""
    is_subagent = changes.get("scope") == "subagent"
    scope: Scope = "subagent" if is_subagent else "agent"
    if host_named(host).stops and not host_named(host).event_name(scope):  # ours has no names
        raise NotyetError(
            f"{host_named(host).title} does not report when a subagent stops; "
            "leave out --event and the options of a subagent"
        )
    event = StopEvent(
        scope=scope,
        host=host,
        session_id=session,
        agent_id=_MADE_UP if is_subagent else None,  # every host gives them one
        cwd=cwd,
    )
    payload, _ = host_named(host).write_event(event, "")
    content = json.dumps(payload).encode()
    return DescribedStop(host=host, content=content, payload=payload, changes=changes)


def _workspace(url: str) -> str:
    try:
        return "" if url == LOCAL else remote_from(url).url
    except ValueError as error:
        raise NotyetError(f"--workspace {visible(url)}: {error}") from None


def _name(path: str) -> str:
    return "<stdin>" if path == _STDIN else visible(path)


def _sent(path: str) -> tuple[bytes, dict[str, Any]]:
    """Read a payload from a file or stdin. Raises NotyetError."""
    try:
        if path == _STDIN:
            content = sys.stdin.buffer.read(_MAX_BYTES)
        else:
            with open(path, "rb") as file:
                content = file.read(_MAX_BYTES)
    except (OSError, ValueError) as error:
        raise NotyetError(f"{_name(path)}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return content, payload_from(content, [])
    except Unreadable as error:
        why = str(error).replace("no event on stdin", "the payload is empty")
        why = why.replace("event on stdin", "payload")
        raise NotyetError(f"{_name(path)}: {why}") from None
