"""Made-up stops: which one `check` and `status --why` are to be about, as their options say it.

A stop is made up in the words of a host, or is a payload that a host really sent; options change
it. From there on it goes the way of any stop: the dialect of its host reads it.
"""

from __future__ import annotations

import json
import sys

from notyet.core.event import StopEvent
from notyet.core.record import Record, replace
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.hosts import DEFAULT, HOSTS, host_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

EVENTS = {"stop": "agent", "subagent_stop": "subagent"}
NAMES = ("agent_type", "agent_id", "agent_name")
_MADE_UP = "made-up"  # the session, and the subagent, of a stop that nobody sent
_STDIN = "-"
_MOST_BYTES = 32 * 1024 * 1024 + 1  # one more than the hook takes, which then says so


class About(Record, kw_only=True):
    """A stop to ask about: in whose words, what was said, and what is changed of that."""

    content: bytes
    payload: Mapping[str, Any]
    host: str = ""  # as somebody said; empty: the payload tells
    changes: Mapping[str, Any] = {}
    origin: str = ""  # the file of a payload; empty for a stop that is made up

    @property
    def spoken(self) -> str:
        """The host in whose words this is, if we speak its language, else another's name."""
        from notyet.hosts.detect import detect

        return self.host or detect(self.payload)

    def changed(self, event: StopEvent) -> StopEvent:
        """Return an event with what the options say in place of what it says."""
        return replace(event, **self.changes) if self.changes else event


def add_event_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which stop it is about."""
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


def about(args: argparse.Namespace, cwd: str) -> About:
    """Return what the options say, before any dialect has read it. Raises NotyetError."""
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
        return About(host=host, content=content, payload=payload, changes=changes, origin=origin)
    # Only a subagent has such names here; a main agent has one only if its payload says so.
    if not args.event and not changes.keys().isdisjoint(NAMES):
        changes["scope"] = "subagent"
    return _made_up(args.as_host or DEFAULT, cwd, changes)


def read(stop: About, environ: Mapping[str, str]) -> StopEvent:
    """Read a stop as its host's hook reads it. Raises NotyetError for what is none."""
    from notyet.hosts.detect import LIKE_DEFAULT

    host = stop.spoken
    if host in LIKE_DEFAULT:
        host = DEFAULT
    if host not in HOSTS:
        known = ", ".join(HOSTS)
        raise NotyetError(
            f"{stop.origin}: this looks like {host}, which is not spoken yet; "
            f"say with --as as whom to read it ({known})"
        )
    event = host_named(host).read_event(stop.payload, environ)
    if not isinstance(event, StopEvent):
        name = stop.payload.get("hook_event_name")
        what = f"{visible(name)[:80]} is no stop" if isinstance(name, str) else "this is no stop"
        raise NotyetError(f"{stop.origin}: {what}; take the payload of Stop or SubagentStop")
    event = stop.changed(event)
    _expect_told(host, event, stop.changes, environ)
    return event


def _expect_told(
    host: str, event: StopEvent, changes: Mapping[str, Any], environ: Mapping[str, str]
) -> None:
    """Refuse a stop that this host never tells of: its hook would not know these names either."""
    if changes.keys().isdisjoint(NAMES):
        return
    payload, _ = host_named(host).write_event(event, "")
    # Of a host with a place for it, the name is what somebody gave with `hook --agent`.
    payload["agent_name"] = event.agent_name
    told = host_named(host).read_event(payload, environ)
    for name in NAMES:
        if name in changes and changes[name] != getattr(told, name):
            who = "a subagent" if event.scope == "subagent" else "the main agent"
            option = "--" + name.replace("_", "-")
            raise NotyetError(
                f"{option}: {host} does not say this of {who} that stops, so its hook never knows"
                f" it; leave it out, or take another host with --as"
            )


def _made_up(host: str, cwd: str, changes: dict[str, Any]) -> About:
    """Return a stop in the words of a host."""

    is_subagent = changes.get("scope") == "subagent"
    event = StopEvent(
        scope="subagent" if is_subagent else "agent",
        host=host,
        session_id=_MADE_UP,
        agent_id=_MADE_UP if is_subagent else None,  # every host gives them one
        cwd=cwd,
    )
    payload, _ = host_named(host).write_event(event, "")
    content = json.dumps(payload).encode()
    return About(host=host, content=content, payload=payload, changes=changes)


def _workspace(url: str) -> str:
    from notyet.core.remote import LOCAL, remote_from

    try:
        return "" if url == LOCAL else remote_from(url).url
    except ValueError as error:
        raise NotyetError(f"--workspace {visible(url)}: {error}") from None


def _name(path: str) -> str:
    return "<stdin>" if path == _STDIN else visible(path)


def _sent(path: str) -> tuple[bytes, dict[str, Any]]:
    """Read a payload. Raises NotyetError that says where it is wrong."""
    from notyet.hook.payload import Unreadable, payload_from

    try:
        if path == _STDIN:
            content = sys.stdin.buffer.read(_MOST_BYTES)
        else:
            with open(path, "rb") as file:
                content = file.read(_MOST_BYTES)
    except OSError as error:
        raise NotyetError(f"{_name(path)}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise NotyetError(f"{_name(path)}: {error}") from None
    try:
        return content, payload_from(content, [])
    except Unreadable as error:
        raise NotyetError(_place_of_mistake(_name(path), content, str(error))) from None


def _place_of_mistake(name: str, content: bytes, otherwise: str) -> str:
    """Say with line and column what is wrong with a payload, in words for whoever wrote it."""
    from notyet.config.document import BadSyntax, Mistake
    from notyet.config.readers import read_json

    text = content.decode("utf-8", "replace")
    if not text.strip():
        return f"{name}: the payload is empty"
    if len(content) < _MOST_BYTES:
        try:
            read_json(text)
        except BadSyntax as bad:
            said = Mistake(
                file=name, line=bad.line, column=bad.column, message=bad.message, hint=bad.hint
            )
            return str(said)
    return f"{name}: {otherwise.replace('event on stdin', 'payload')}"
