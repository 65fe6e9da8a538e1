"""Our own entries in settings files, known by what they run."""

from __future__ import annotations

from notyet.core.record import Record
from notyet.hosts.hook_commands import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from notyet.config.document import Document
    from notyet.install.place import Place


class Registration(Record, kw_only=True):
    """One entry of ours, and where it stands."""

    place: Place
    event: str
    group: int
    index: int
    command: str  # the whole line, with its arguments
    timeout: float | None = None  # None: not said, or not a number
    handler: dict[str, Any]  # as it stands there
    matcher: object = None
    line: int = 0
    column: int = 0

    @property
    def where(self) -> str:
        """The entry's file, line and column."""
        return f"{self.place.path}:{self.line}:{self.column}"


def registrations(host: str, place: Place, document: Document) -> list[Registration]:
    """Return our entries of a file, in the order in which they stand there."""
    found = []
    for event, at, group, index, handler in handlers(document.value):
        command, arguments = handler.get("command"), handler.get("args")
        if not isinstance(command, str) or not isinstance(arguments, list | None):
            continue
        if any(not isinstance(word, str) for word in arguments or ()):
            continue
        if not is_own(host, handler):
            continue
        has_arguments = arguments is not None and host != "codex"
        line, column = document.locate(("hooks", event, at, "hooks", index))
        found.append(
            Registration(
                place=place,
                event=event,
                group=at,
                index=index,
                command=_joined(command, arguments or []) if has_arguments else command,
                timeout=_seconds(handler.get("timeout")),
                handler=handler,
                matcher=group.get("matcher"),
                line=line,
                column=column,
            )
        )
    return found


def handlers(value: Any) -> Iterator[tuple[str, int, dict[str, Any], int, dict[str, Any]]]:
    """Yield every entry of a file, whatever else stands in it."""
    hooks = value.get("hooks") if isinstance(value, dict) else None
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict):
                    yield event, at, group, index, handler


def _joined(command: str, arguments: list[str]) -> str:
    from shlex import join

    return join([command, *arguments])


def _seconds(timeout: object) -> float | None:
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    return timeout if is_number else None  # type: ignore[return-value]  # as was just seen
