"""The calls of tools that a transcript tells about: commands, edits and others."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from notyet.hosts.transcript import table_in

if TYPE_CHECKING:
    Kind = Literal["command", "edit", "read", "other"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LONGEST_COMMAND = 64 * 1024  # characters; a longer one is no evidence
_OUTPUT_HEAD, _OUTPUT_TAIL = 2_000, 6_000  # characters that are kept
MOST_PATHS = 1_000
COMMANDS = _names("""
    Bash bash exec_command shell shell_command local_shell container.exec run_shell_command
    Execute
    """)
_EDITS = _names("""
    Write Edit MultiEdit NotebookEdit apply_patch write_file replace edit create str_replace
    str_replace_editor Create ApplyPatch write patch multiedit notebook_edit
    """)
_READS = _names("""
    Read Grep Glob LS TodoWrite WebFetch WebSearch ToolSearch BashOutput TaskOutput
    read_file list_directory search_file_content grep_search glob web_fetch
    google_web_search web_search read_many_files todo_write view read_bash rg grep list
    todowrite todoread webfetch update_plan view_image report_intent read
    """)
_PATH_KEYS = ("file_path", "filePath", "path", "notebook_path", "absolute_path")
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call of a tool, as the host wrote it down."""

    kind: Kind
    command: str = ""
    paths: tuple[str, ...] = ()  # that an edit names, as the agent wrote them
    folder: str = ""  # where it ran, if the host says so
    succeeded: bool | None = None  # None: the host does not say
    output: str = ""  # both ends of it
    begun: int = 0  # where in the transcript the call stands
    ended: int | None = None  # where its result stands; None: nowhere
    started: float | None = None  # when the agent made it, in seconds since 1970
    time: float | None = None  # of the result
    background: bool = False  # it went on after its result


@dataclass
class _Open:
    """A call whose result may follow."""

    kind: Kind
    begun: int
    command: str = ""
    paths: tuple[str, ...] = ()
    folder: str = ""
    succeeded: bool | None = None
    output: str = ""
    ended: int | None = None
    started: float | None = None
    time: float | None = None
    background: bool = False
    is_certain: bool = False  # the host told the exit code as a number, not in a text
    made: object = None  # what the agent asked for


@dataclass
class Calls:
    """The calls that were read so far, by their id."""

    is_known: bool = False  # a line had the shape of a transcript
    folder: str = ""  # of the session, where only its head names it
    _calls: dict[str, _Open] = field(default_factory=dict)
    _messages: dict[str, int] = field(default_factory=dict)  # where they were first seen

    def first_seen(self, message: str, number: int) -> int:
        """Return where a message was seen first."""
        return self._messages.setdefault(message, number)

    def begin(
        self,
        number: int,
        key: object,
        name: object,
        given: object,
        folder: object = "",
        *,
        time: float | None = None,
    ) -> None:
        """Note a call; the same one again changes nothing."""
        if not isinstance(key, str) or not isinstance(name, str):
            return
        arguments = table_in(given)
        call = _Open(kind=_kind_of(name, arguments), begun=number, started=time, made=(name, given))
        call.folder = folder if isinstance(folder, str) else ""
        place = arguments.get("workdir") or arguments.get("directory") or arguments.get("dir_path")
        if isinstance(place, str) and place and call.kind == "command":
            call.folder = os.path.join(call.folder, place)
        if call.kind == "command":
            call.command = _command_in(arguments)
            call.background = _is_background(arguments)
            if _PATCH in call.command:
                call.kind, call.paths = "edit", _patched(call.command)
        elif call.kind == "edit":
            call.paths = _paths_in(arguments, given)
        known = self._calls.get(key)
        if known is not None and known.made == call.made:
            return
        if known is not None and known.ended is not None:
            # The programs of some models count calls from 0 in every turn.
            self._calls[f"{key} {known.begun}"] = known
        self._calls[key] = call

    def end(
        self,
        number: int,
        key: object,
        *,
        succeeded: bool | None,
        output: object = "",
        time: float | None = None,
        is_certain: bool = False,
    ) -> None:
        """Note the result of a call; an exit code that was told as a number stays."""
        call = self._calls.get(key) if isinstance(key, str) else None
        if call is None or (call.is_certain and not is_certain):
            return
        call.succeeded, call.is_certain = succeeded, is_certain
        call.ended, call.time = number, time
        call.output = _both_ends(output) if isinstance(output, str) else ""

    def change(self, key: object, **facts: Any) -> None:
        """Change what is known of a call."""
        call = self._calls.get(key) if isinstance(key, str) else None
        for name, value in facts.items() if call else ():
            setattr(call, name, value)

    def is_command(self, key: object) -> bool:
        """Return True if a call is known to be a command."""
        call = self._calls.get(key) if isinstance(key, str) else None
        return call is not None and call.kind == "command"

    def finished(self) -> list[ToolCall]:
        """Return the calls in the order in which they began."""
        return [
            ToolCall(
                kind=call.kind,
                command=call.command,
                paths=call.paths,
                folder=call.folder,
                succeeded=None if call.background else call.succeeded,
                output=call.output,
                begun=call.begun,
                ended=call.ended,
                started=call.started,
                time=call.time,
                background=call.background,
            )
            for call in sorted(self._calls.values(), key=lambda call: call.begun)
        ]


def _kind_of(name: str, arguments: dict[str, Any]) -> Kind:
    if name in COMMANDS:
        return "command"
    if name in _EDITS:
        is_view = arguments.get("command") == "view"  # of an editor with several commands
        return "read" if is_view else "edit"
    return "read" if name in _READS else "other"


def _command_in(arguments: dict[str, Any]) -> str:
    """Return the shell text of a call; empty for one that is too long or in no known shape."""
    given = arguments.get("command", arguments.get("cmd"))
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        is_shell = len(given) == 3 and os.path.basename(given[0]) in {"bash", "sh", "zsh"}  # noqa: PLR2004  # shell, option, text
        is_text = is_shell and given[1] in {"-c", "-lc"}
        given = given[2] if is_text else shlex.join(given)
    return given if isinstance(given, str) and len(given) <= _LONGEST_COMMAND else ""


def _is_background(arguments: dict[str, Any]) -> bool:
    flags = ("run_in_background", "is_background", "fireAndForget", "detach")
    return any(arguments.get(flag) is True for flag in flags) or arguments.get("mode") == "async"


def _paths_in(arguments: dict[str, Any], given: object) -> tuple[str, ...]:
    for key in _PATH_KEYS:
        if isinstance(arguments.get(key), str):
            return (arguments[key],)
    texts = [given, *arguments.values()]
    return next((_patched(text) for text in texts if isinstance(text, str) and _PATCH in text), ())


def _patched(text: str) -> tuple[str, ...]:
    """Return the files that a patch names."""
    return tuple(name.strip() for name in _PATCHED.findall(text)[:MOST_PATHS])


def _both_ends(text: str) -> str:
    if len(text) <= _OUTPUT_HEAD + _OUTPUT_TAIL:
        return text
    return f"{text[:_OUTPUT_HEAD]}\n[...]\n{text[-_OUTPUT_TAIL:]}"
