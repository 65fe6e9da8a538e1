"""Compile the text of a configuration file of any kind into `FileSettings`.

Read, check against the schema, compile: a mistake in a file does not affect the rest of it (J7).
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from shlex import join, quote
from typing import TYPE_CHECKING, Any

from notyet.config.compiled import FileObserver, FileSettings
from notyet.config.document import BadSyntax, Document, Mistake
from notyet.config.files import ConfigFile
from notyet.config.find import FILE_NAME, KIND_NOTYET, LOCAL_SOURCE, parent, user_folder
from notyet.config.gate_schema import ALL, GATE, MAIN, OBSERVER, SUBAGENTS
from notyet.config.pyproject import TABLE, in_place, is_pyproject
from notyet.config.readers import READERS, read_file, read_json
from notyet.config.schema import FORMATS
from notyet.config.shapes import check
from notyet.core.gate import EVERY_AGENT, Command, Gate, Match, Source
from notyet.core.record import replace
from notyet.core.remote import LOCAL, is_remote, remote_from
from notyet.core.verdict import OUTCOMES
from notyet.gates.failures.commands import refusals
from notyet.gates.kinds import ABOUT_GIT, FILES, KINDS, WITH_FILES
from notyet.hosts import command_dialect
from notyet.hosts.files import EXECUTABLE, format_of, host_of
from notyet.hosts.hook_commands import gates, starters
from notyet.hosts.openclaw import OPENCLAW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.config.document import Path
    from notyet.config.find import FileSource
    from notyet.core.event import Scope

_MOST_MISTAKES = 200
_SLOW = -1  # the priority of gates that run when the quick ones passed
_MOST_FIXES = 1_000_000  # gates with `fix` come before others of their priority
# Keys that are told to the process of a gate.
_TOLD = (
    *("strict", "block", "tell", "allow", "with", "calls", "fix"),
    *("new_failures_only", "report", "baseline_timeout"),
)
_LOCAL_ONLY = frozenset({"kind", "new_failures_only"})
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
_LONGEST_SCRIPT = 100_000  # bytes; the system refuses an argument of 128 KiB
_EVENTS: dict[str, tuple[Scope, ...]] = {
    MAIN: ("agent",),
    SUBAGENTS: ("subagent",),
    ALL: ("agent", "subagent"),
}


def compile_text(
    text: str,
    path: str,
    kind: str = KIND_NOTYET,
    source: FileSource = LOCAL_SOURCE,
    *,
    workspace: str = "",
) -> FileSettings:
    """Return what a file of this kind says, with every mistake in it.

    The path of a file in a workspace is its address; what it names runs there (M1). `workspace`
    replaces the one that a `notyet.toml` names for all of its gates.
    """
    if kind == KIND_NOTYET:
        settings = _NotyetToml(examine(text, path, KIND_NOTYET), workspace).settings()
        return _with_openclaw(settings) if settings.openclaw else settings
    host, form = host_of(kind), format_of(kind)
    if form == EXECUTABLE:
        settings = _executable(text, path, kind, source)
    elif form == host.name:
        settings = _host_format(text, path, host.name)
    else:
        settings = _hooks(text, path, host.name, form)
    return _moved(settings, path, kind) if is_remote(path) else settings


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What is right in a file, where it stands, and everything that is wrong."""

    file: str
    value: dict[str, Any]
    document: Document | None
    mistakes: tuple[Mistake, ...]

    def line(self, path: Path) -> int:
        """Return the line of a key or item."""
        return self.document.locate(path)[0] if self.document else 0

    def mistake(self, path: Path, message: str, hint: str = "") -> Mistake:
        """Return a mistake at a key or item."""
        line, column = self.document.locate(path) if self.document else (0, 0)
        return Mistake(file=self.file, line=line, column=column, message=message, hint=hint)


def examine(text: str, file: str, format_name: str) -> Examined:
    """Read and check a file's text. Whatever is wrong becomes a mistake; nothing is raised."""
    form = FORMATS[format_name]
    try:
        is_table = format_name == KIND_NOTYET and is_pyproject(file)
        document = READERS[form.syntax](in_place(text) if is_table else text)
        document = _inner(document) if is_table else document
    except BadSyntax as bad:
        return Examined(file=file, value={}, document=None, mistakes=(bad.in_file(file),))
    value = {} if document.value is None else document.value  # an empty YAML file
    clean, problems = check(value, form.shape)
    found = [*document.findings]
    found += [BadSyntax(message, *document.locate(path), hint) for path, message, hint in problems]
    found.sort(key=lambda bad: (bad.line, bad.column))
    mistakes = [bad.in_file(file) for bad in found[:_MOST_MISTAKES]]
    if len(found) > _MOST_MISTAKES:
        more = f"and {len(found) - _MOST_MISTAKES} more mistakes"
        mistakes.append(Mistake(file=file, message=more))
    return Examined(file=file, value=clean or {}, document=document, mistakes=tuple(mistakes))


def _inner(document: Document) -> Document:
    """Return what `[tool.notyet]` says, and where."""
    value = document.value
    for name in TABLE:
        value = value.get(name, {})
    depth = len(TABLE)
    places = document.positions.items()
    inner = {path[depth:]: place for path, place in places if path[:depth] == TABLE}
    return Document(value=value, positions=inner, findings=document.findings)


class _NotyetToml:
    """A `notyet.toml` (J6), and where its commands would run.

    A file in a workspace can name commands for its own machine only: it must not make us connect
    to another one.
    """

    def __init__(self, examined: Examined, workspace: str) -> None:
        self._file = examined.file
        self._examined = examined
        self._value = examined.value
        self._mistakes = [*examined.mistakes]
        self._warnings: list[Mistake] = []
        self._fixes = 0  # gates with `fix` so far
        self._home = parent(self._file) if is_remote(self._file) else ""  # its own workspace
        self._folder = (
            remote_from(self._home).path
            if self._home
            else os.path.dirname(os.path.abspath(self._file))
        )
        named = workspace or self._value.get("workspace", "")
        if self._home and named not in {"", LOCAL, self._home}:
            message = f"`workspace` has no effect in a file of the workspace {self._home}"
            self._warnings.append(examined.mistake(("workspace",), message))
        self._named = "" if self._home else named
        self._workspace = self._home or ("" if named == LOCAL else named)

    def settings(self) -> FileSettings:
        """Return what the file says."""
        value = self._value
        read = value.get("read", {})
        observers = value.get("observers", {})
        share = self._share(value.get("share", {}))
        return FileSettings(
            file=self._file,
            gates=self._gates(),
            limits=value.get("limits", {}),
            members=self._members(value.get("members", ())),
            root=value.get("root", False),
            ledger=value.get("ledger", {}),
            share=share,
            shares=bool(share.get("to") or share.get("otel")),
            observers=tuple(self._observer(name, entry) for name, entry in observers.items()),
            start_tell=value.get("start", {}).get("tell"),
            read_hosts=tuple(dict.fromkeys(read.get("hosts", ()))),
            workspace=self._named,
            openclaw=self._openclaw(read.get(OPENCLAW, "")),
            reply=value.get("reply", {}),
            mistakes=tuple(self._mistakes),
            warnings=tuple(self._warnings),
        )

    def _members(self, globs: Sequence[str]) -> tuple[str, ...]:
        """Return the globs of members."""
        if globs and self._home:
            message = "`members` has no effect in a file of a workspace"
            self._warnings.append(self._examined.mistake(("members",), message))
            return ()
        return tuple(dict.fromkeys(globs))

    def _share(self, share: dict[str, Any]) -> dict[str, Any]:
        """Return where stops are copied to; nothing in a project's file, where it is a mistake."""
        users = os.path.join(user_folder(os.environ), FILE_NAME)
        if not share or os.path.realpath(self._file) == os.path.realpath(users):
            return share
        message = "`share` would send your stops to an address that a project chooses"
        hint = "move it to ~/.config/notyet/notyet.toml"
        self._mistakes.append(self._examined.mistake(("share",), message, hint))
        return {}

    def _openclaw(self, path: str) -> str:
        """Return the path of OpenClaw's file, which sets `max_blocks` (J9)."""
        if path and self._home:
            message = "`read.openclaw` has no effect in a file of a workspace"
            self._warnings.append(Mistake(file=self._file, message=message))
            return ""
        return os.path.join(self._folder, os.path.expanduser(path)) if path else ""

    def _gates(self) -> tuple[Gate, ...]:
        """Return the gates; none if there is a mistake in the machine they would run on."""
        written = self._examined.document.value if self._examined.document else {}
        if "workspace" in written and "workspace" not in self._value:
            return ()
        entries = self._value.get("gates", {})
        read = [
            self._gate(name, {"run": entry} if isinstance(entry, str) else entry)
            for name, entry in entries.items()
        ]
        return tuple(gate for gate in read if gate is not None)

    def _gate(self, name: str, entry: dict[str, Any]) -> Gate | None:
        named = entry.get("workspace", "")
        if self._home and named not in {"", LOCAL, self._home}:
            message = f"`gates.{name}.workspace` names another machine or folder than the file's"
            hint = f'leave it out, or write "{LOCAL}" for the machine that the file is on'
            where = ("gates", name, "workspace")
            self._mistakes.append(self._examined.mistake(where, message, hint))
            return None
        workspace = self._home or named or self._workspace
        full = GATE.filled(entry) | {k: v for k, v in _defaults(entry).items() if k not in entry}
        options = {key: full[key] for key in ("pass_codes", "hint")} | _options(entry)
        if not self._is_possible(name, entry, options, is_elsewhere=is_remote(workspace)):
            return None
        if "fix" in options:
            self._fixes += 1
        return Gate(
            name=name,
            check=self._command(entry, workspace, options),
            match=_match(full),
            priority=_SLOW if full["slow"] and "priority" not in entry else full["priority"],
            # Two that change files must not run together, nor beside a check that reads them.
            step=self._fixes - _MOST_FIXES if "fix" in options else 0,
            timeout=float(full["timeout"]),
            if_broken=full["if_broken"],
            unreachable_blocks="if_broken" in entry or not is_remote(workspace),
            observe=full["observe"],
            when=full["when"],
            paths=tuple(full["paths"]),
            source=self._source("gates", name),
        )

    def _is_possible(
        self, name: str, entry: dict[str, Any], options: dict[str, Any], *, is_elsewhere: bool
    ) -> bool:
        """Return False, with a mistake, for keys that are right alone and cannot work together."""
        run = entry.get("run", "")
        if is_elsewhere and _LOCAL_ONLY.intersection(options):
            key = next((key for key in (*KINDS, "fix", "new_failures_only") if key in entry), "run")
            what = f"with {FILES} " if key == "run" else ""
            hint = f'write workspace = "{LOCAL}" if the files are here, too, or use a plain `run`'
            self._refuse(name, f"{what}works only on this machine, not in a workspace", key, hint)
            return False
        if "judge" in entry and "with" not in entry:
            hint = 'write with = "claude -p --model haiku", or another command that reads a prompt'
            self._refuse(name, "needs `with`, the command that judges", hint=hint)
            return False
        for key in ("run", "fix"):
            wrong = _wrong_files(entry.get(key, ""))
            if wrong:
                self._refuse(name, wrong[0], key, hint=wrong[1])
                return False
        both = [group for group in entry.get("tell", ()) if group in entry.get("block", ())]
        if both:
            hint = "keep it in one of them"
            self._refuse(name, f'names "{both[0]}", which `block` names, too', "tell", hint)
            return False
        if entry.get("new_failures_only") and run:
            for refusal in refusals(_line(run)):
                self._refuse(name, f"cannot be used: {refusal}", "new_failures_only")
        return True

    def _refuse(self, name: str, message: str, key: str = "", hint: str = "") -> None:
        where = ("gates", name, key) if key else ("gates", name)
        words = f"`{'.'.join(where)}` {message}"
        self._mistakes.append(self._examined.mistake(where, words, hint))

    def _observer(self, name: str, entry: dict[str, Any]) -> FileObserver:
        """Return an observer; it runs on the machine of its file."""
        full = OBSERVER.filled(entry)
        return FileObserver(
            name=name,
            check=self._command(entry, self._home, {}),
            timeout=float(full["timeout"]),
            on=tuple(full.get("on", OUTCOMES)),
            source=self._source("observers", name),
        )

    def _command(self, entry: dict[str, Any], workspace: str, options: dict[str, Any]) -> Command:
        run = entry.get("run", "")
        argv: tuple[str, ...] = () if isinstance(run, str) else tuple(run)
        if "python" in entry:
            # The interpreter is found where the command runs (N4).
            argv = ("python", entry["python"])
            options = options | {
                "python": entry["python"],
                "interpreter": entry.get("interpreter", ""),
            }
        kind = _kind_of(entry)
        if kind:
            argv = (f"{kind} = {json.dumps(entry[kind], ensure_ascii=False)}",)  # as people read it
        folder = remote_from(workspace).path if is_remote(workspace) else self._folder
        return Command(
            script=run if isinstance(run, str) else "",
            argv=argv,
            dir=os.path.normpath(os.path.join(folder, entry.get("dir", ""))),
            workspace=workspace,
            env=tuple(entry.get("env", {}).items()),
            options=options,
        )

    def _source(self, *path: str) -> Source:
        return Source(self._file, self._examined.line(path))


def _kind_of(entry: dict[str, Any]) -> str:
    """Return the kind of notyet's own that a gate is; empty for a command or a function."""
    return next((key for key in KINDS if key in entry), "")


def _defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of a gate that depend on its kind."""
    kind = KINDS.get(_kind_of(entry))
    if kind is None:
        # A function is about what an agent says, unless it names files.
        return {"when": "always"} if "python" in entry and not entry.get("paths") else {}
    is_about_commits = entry.get("uses", "").startswith(ABOUT_GIT)
    return {
        "when": "always" if is_about_commits else kind.when,
        "if_broken": kind.if_broken,
        "priority": kind.priority,
    }


def _options(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what a gate of notyet's own kind, or a command that needs more, is told."""
    kind = _kind_of(entry)
    alone = {part for part, whole in GATE.needs if whole not in entry}  # these have no effect
    options = {key: entry[key] for key in _TOLD if entry.get(key) and key not in alone}
    if kind:
        return options | {"kind": kind, kind: entry[kind], "paths": entry.get("paths", [])}
    if "fix" in options or FILES in _line(entry.get("run", "")):
        options |= {"kind": WITH_FILES, "paths": entry.get("paths", [])}
    return options


def _wrong_files(run: str | list[str]) -> tuple[str, str] | None:
    """Return what is wrong with how a command asks for files, and what to write."""
    if isinstance(run, list):
        if any(FILES in word and word != FILES for word in run):
            return f"must have {FILES} as an item of its own", f'write ["ruff", "check", "{FILES}"]'
        return None
    if any(f"{mark}{FILES}{mark}" in run for mark in "'\""):
        return f"must not quote {FILES}", "each file is quoted already; leave the quotes out"
    return None


def _line(run: str | list[str]) -> str:
    return run if isinstance(run, str) else join(run)


def _match(full: dict[str, Any]) -> Match:
    agents = full["for"]
    events = _EVENTS.get(agents) if isinstance(agents, str) else None
    return Match(
        events=events or ("subagent",),
        agents=EVERY_AGENT if events else agents,
        never=full["never"],
        endings=full["endings"],
    )


def _moved(settings: FileSettings, path: str, kind: str) -> FileSettings:
    """Return settings whose commands run in the workspace of their file."""
    project = ConfigFile(path=path, kind=kind).project

    def there(check: Any) -> Any:
        return replace(check, workspace=project, dir="")

    return replace(
        settings,
        gates=tuple(replace(gate, check=there(gate.check)) for gate in settings.gates),
        starters=tuple(replace(one, check=there(one.check)) for one in settings.starters),
    )


def _hooks(text: str, path: str, speaks: str, form: str) -> FileSettings:
    examined = examine(text, path, form)
    warnings: list[Mistake] = []

    def complain(where: Path, message: str) -> None:
        warnings.append(examined.mistake(where, message))

    stops = gates(speaks, examined.value, path, examined.line, complain)
    starts = starters(speaks, examined.value, path, examined.line, complain)
    return FileSettings(
        file=path,
        gates=tuple(stops),
        starters=tuple(starts),
        mistakes=examined.mistakes,
        warnings=tuple(warnings),
    )


def _host_format(text: str, path: str, host: str) -> FileSettings:
    examined = examine(text, path, host)
    found = command_dialect(host).gates(examined.value, path, examined.line)
    return FileSettings(
        file=path,
        gates=tuple(found),
        notifications=examined.value.get("notifications") or {},
        mistakes=examined.mistakes,
    )


def _executable(text: str, path: str, kind: str, source: FileSource) -> FileSettings:
    """Return the gate for an executable such as `.mux/stop` (J3).

    Of a shell script, the trusted text runs, whatever the file says by then. Another program can
    only run by its path, so it does not run at all once it changed.
    """
    itself = remote_from(path).path if is_remote(path) else path
    if source.exists(path) and not source.is_executable(path):
        hint = f"run chmod +x {quote(itself)}"
        mistake = Mistake(file=path, message="is not executable, so it does not run", hint=hint)
        return FileSettings(file=path, mistakes=(mistake,))
    shell = _shell_of(text)
    host = host_of(kind)
    by_text = Command(argv=(shell, "-c", text, itself), speaks=host.name) if shell else None
    gate = Gate(
        name=f"{host.name} {'/'.join(path.split('/')[-2:])}",
        check=by_text or Command(argv=(itself,), speaks=host.name, options={"by_path": True}),
        match=Match(events=("subagent" if "-subagent-" in kind else "agent",)),
        timeout=host.timeout,
        source=Source(path, 1),
    )
    return FileSettings(file=path, gates=(gate,))


def _shell_of(text: str) -> str:
    """Return the shell of a script that can run as text; empty for any other program.

    Without a `#!` line it is bash, as in hosts.
    """
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST_SCRIPT or "\0" in text:
        return ""
    if "BASH_SOURCE" in text:  # it wants the path of its file
        return ""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        return "bash"
    words = first[2:].split()
    names = [os.path.basename(word) for word in words]
    if names[:1] == ["env"]:
        names = names[1:]
    return names[0] if len(names) == 1 and names[0] in _SHELLS else ""


def _with_openclaw(settings: FileSettings) -> FileSettings:
    """Return settings with the limit of steer-restarts from OpenClaw's file (J9)."""
    text, mistake = read_file(settings.openclaw)
    number = None if text is None else _steer_restarts(text)
    limits = dict(settings.limits)
    if number is not None:
        limits.setdefault("max_blocks", number)
    elif mistake is None:
        where = "agents.defaults.subagents.maxSteerRestarts"
        mistake = Mistake(file=settings.openclaw, message=f"has no whole number at {where}")
    mistakes = settings.mistakes if mistake is None else (*settings.mistakes, mistake)
    return replace(settings, limits=limits, mistakes=mistakes)


def _steer_restarts(text: str) -> int | None:
    """Return the limit in OpenClaw's file, which may be JSON5 or YAML."""
    try:
        value: Any = read_json(text).value
    except BadSyntax:
        bare = re.sub(r"//[^\n]*|/\*.*?\*/|(?:^|(?<=\s))#[^\n]*", "", text, flags=re.DOTALL)
        found = re.findall(r"""\bmaxSteerRestarts["']?\s*:\s*(\d{1,9})\b""", bare)
        return int(found[0]) if len(found) == 1 else None
    for key in ("agents", "defaults", "subagents", "maxSteerRestarts"):
        value = value.get(key) if isinstance(value, dict) else None
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if is_number else None
