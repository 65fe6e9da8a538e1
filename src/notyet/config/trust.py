"""Trust: which version of a file is in force if it changed, was removed or is not trusted (N5).

A hook loads this module only if a file is not as it was trusted, or needs more than its record: it
is another host's, or it names a workspace.
"""

from __future__ import annotations

import time
from shlex import quote

from notyet.config.compiled import (
    DAMAGED,
    Trusted,
    freeze,
    is_unchanged,
    read_record,
    sealed,
    thaw,
    write_record,
)
from notyet.config.find import KIND_NOTYET, PYPROJECT, parent, state_folder, trusted_part
from notyet.config.load import in_project, with_checks
from notyet.config.records import place_of, work_tree
from notyet.core.gate import Command
from notyet.core.record import Record, replace
from notyet.core.text import visible
from notyet.git.worktrees import seems_linked
from notyet.hosts.files import host_of
from notyet.light import LOCAL, dumps, is_remote, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.compiled import FileSettings
    from notyet.config.files import ConfigFile
    from notyet.config.load import Layers


class Candidate(Record, kw_only=True):
    """A file that can be trusted: what it says now, and what was trusted before."""

    file: ConfigFile
    text: str
    settings: FileSettings
    before: Trusted | None = None

    @property
    def is_trusted(self) -> bool:
        """True if this very text was trusted."""
        return self.before is not None and self.before.content == self.text

    @property
    def is_outdated(self) -> bool:
        """True if the trusted text compiles to something else now: a file it names changed, say."""
        if self.before is None or not self.is_trusted:
            return False
        now = loads(dumps(freeze(self.settings)))
        return _without_lines(self.before.compiled) != _without_lines(now)


def _without_lines(compiled: Mapping[str, Any]) -> dict[str, Any]:
    """Return compiled settings without lines, which other tables of a `pyproject.toml` move."""
    apart = dict(compiled)
    for key in ("gates", "observers"):
        apart[key] = [
            {**one, "source": {**one.get("source", {}), "line": 0}} for one in apart.get(key, ())
        ]
    return apart


def candidate(file: ConfigFile, environ: Mapping[str, str]) -> Candidate:
    """Read a file that a person may want to trust. Raises OSError."""
    text = file.source.text_of(file.path)
    settings, part = _compile(file, text), trusted_part(file.path, text)
    before = read_record(state_folder(environ), file.path, file.place)
    return Candidate(file=file, text=part, settings=settings, before=before)


def hosts_read(file: ConfigFile, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts whose files a file wants to be read; none if it cannot be read."""
    try:
        return () if file.is_gone else candidate(file, environ).settings.read_hosts
    except OSError:
        return ()


def grant(chosen: Candidate, environ: Mapping[str, str]) -> None:
    """Trust the text that was read, not what the file may say by now. Raises OSError."""
    record = Trusted(
        path=chosen.file.path,
        content=chosen.text,
        compiled=freeze(chosen.settings),
        at=time.time(),
        folder=chosen.file.source.folder_id(place_of(chosen.file.path)),
    )
    write_record(state_folder(environ), record)


def add_trusted_version(layers: Layers, file: ConfigFile) -> None:
    """Add the trusted version of a file, or list the file as untrusted or unreadable."""
    file = _as_trusted(layers, file)
    text, why = _text_of(layers, file)
    record = _record(layers, file, text)
    if _is_copy(layers, file, record, text):
        layers.project = parent(file.path)
    elif record is None and (no_tree := _why_no_work_tree(layers, file)):
        _add_untrusted(layers, replace(file, no_work_tree=no_tree))
    elif record is None and text is None:
        _add_unreadable(layers, file)
    elif record is None or (record.content != text and not _stays(file, record)):
        if not layers.agent or _has_content(file, text):
            _add_untrusted(layers, replace(file, is_replaced=record is not None))
    else:
        settings = _settings_of(layers, file, record)
        if settings is not None:
            _put_in_force(layers, file, record, settings, (text, why))


def _as_trusted(layers: Layers, file: ConfigFile) -> ConfigFile:
    """Return a file with the place of the record that counts for it.

    A file that was trusted by its path may be in a linked work tree now, because an agent made its
    folder one. What was trusted stays in force there, and no stop passes.
    """
    if file.is_users or is_remote(file.path) or not layers.has_own_trust(file):
        return file
    layers.add_unchecked(
        f"{visible(parent(file.path))} became a work tree of {visible(work_tree(file.path)[1])} "
        f"since its gates were trusted; if that is right, run: notyet trust --revoke "
        f"{visible(quote(file.path))}"
    )
    return replace(file, place=file.path)


def _add_untrusted(layers: Layers, file: ConfigFile) -> None:
    """List a file as untrusted; if it was in force here before, no stop passes."""
    layers.untrusted.append(file)
    if file.is_replaced or layers.is_recorded(file.path):
        layers.unchecked.append(file.distrust)


def add_draft(layers: Layers, file: ConfigFile, text: str) -> None:
    """Add what a file would say, for a comparison: it needs no trust, and nothing is recorded."""
    settings = _compile(file, text)
    layers.is_new(file)
    layers.project = parent(file.path)
    draft = Trusted(path=file.path, content=text, compiled={})
    layers.put(file, _placed(layers, file, draft, settings))


def _compile(file: ConfigFile, text: str, workspace: str = "") -> FileSettings:
    from notyet.config.compile import compile_text

    return compile_text(text, file.path, file.kind, file.source, workspace=workspace)


def _text_of(layers: Layers, file: ConfigFile) -> tuple[str | None, str]:
    """Return a file's text, or why it cannot be read."""
    if file.is_gone:
        return None, "it was removed"
    if file.source.problem and not file.source.exists(file.path):
        return None, file.source.problem
    try:
        return trusted_part(file.path, file.source.text_of(file.path)), ""
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        layers.warnings.append(f"{visible(file.path)} cannot be read: {reason}")
        return None, reason


def _record(layers: Layers, file: ConfigFile, text: str | None) -> Trusted | None:
    """Return the record that counts for a file; the user's own file is compiled if it changed."""
    record = read_record(layers.state, file.path, file.place)
    if not file.is_users:  # a record without a time is of a file that was the user's own once
        return record if record is not None and record.at else None
    if text is None:
        return record
    if record is not None and is_unchanged(record, text, is_users=True):
        return replace(record, content=text)
    settings = _compile(file, text)
    layers.warnings += [str(problem) for problem in (*settings.mistakes, *settings.warnings)]
    if settings.mistakes and not settings.gates:  # it may have gates that cannot be read
        layers.add_unchecked(str(settings.mistakes[0]))
    record = Trusted(path=file.path, content=text, compiled=freeze(settings))
    # Mistakes are reported at every stop, and OpenClaw's file may say another number then (J9).
    if layers.state and not settings.mistakes and not settings.openclaw:
        try:
            kept = sealed(text) if settings.shares else text
            write_record(layers.state, replace(record, content=kept))
        except OSError as error:
            layers.warnings.append(f"{layers.state} cannot be written: {error.strerror}")
    return record


def _add_unreadable(layers: Layers, file: ConfigFile) -> None:
    layers.unreadable.append(file.path)
    if file.is_gone:
        layers.add_unchecked(
            f"{visible(file.path)} was removed since it was trusted, and what was trusted "
            f"of it cannot be read; run: {file.command} --revoke"
        )
    elif file.is_users:
        layers.add_unchecked(layers.warnings[-1])  # why it cannot be read


def _why_no_work_tree(layers: Layers, file: ConfigFile) -> str:
    """Return why a file without trust is not in a linked work tree, if it was or seems to be."""
    if file.is_users or is_remote(file.path):
        return ""
    root, main = work_tree(parent(file.path))
    known = read_record(layers.state, file.path, file.path)
    is_linked = root != main
    if known and known.work_tree_of and not (is_linked and known.work_tree_of == main):
        return f"{parent(file.path)} is no longer in a work tree of {known.work_tree_of}"
    if is_linked:
        return ""
    return f"git does not list {root} as a work tree" if root and seems_linked(root) else ""


def _has_content(file: ConfigFile, text: str | None) -> bool:
    """Return True if a file holds anything that would be run: most settings of hosts do not.

    A supervisor reads the files of every host, and should ask to trust only those that matter.
    """
    settings = _compile(file, text or "")
    return bool(
        settings.gates or settings.starters or settings.mistakes or file.kind == KIND_NOTYET
    )


def _is_copy(layers: Layers, file: ConfigFile, record: Trusted | None, text: str | None) -> bool:
    """Return True if a file in the workspace is a copy of the one here that named the workspace.

    As a file of its own it would move gates of that one, and keep them as they were. But such a
    copy must not remove gates that were trusted there later, so the newer trust wins.
    """
    named = layers.named_by
    if named is None or file.kind != KIND_NOTYET or not is_remote(file.path):
        return False
    if text is None and record is not None:
        text = record.content
    if text != named.content:
        return False
    if record is None or record.content == text:
        return True
    if record.at >= named.at:
        return False
    layers.warnings.append(
        f"{visible(file.path)} changed since it was trusted, and says the same as "
        f"{visible(named.path)}: that one alone is in force; run: {file.command} --revoke"
    )
    return True


def _stays(file: ConfigFile, record: Trusted) -> bool:
    """Return True if the last trusted version stays in force, now that the file differs.

    Another folder under the same name is another project, which was never trusted.
    """
    place = file.place or place_of(file.path)
    now = file.source.folder_id(place)
    # A branch may have a folder that the main work tree does not have.
    if not now and (file.source.problem or place != file.path):
        return True
    return file.is_users or not record.folder or record.folder == now


def _put_in_force(
    layers: Layers,
    file: ConfigFile,
    record: Trusted,
    settings: FileSettings,
    now: tuple[str | None, str],
) -> None:
    """Add a trusted version; `now` is the text of the file by now, or why it cannot be read."""
    text, why = now
    is_program = any(_is_by_path(gate.check) for gate in settings.gates)
    if is_program and text != record.content:
        settings = _refuse_program(file, settings, text, why)
        layers.not_run += [file.path] if text is None and file.source.problem else []
    _warn_changed(layers, file, record, text, is_run=not is_program)
    _warn_ledger(layers, file, settings)
    settings = _placed(layers, file, record, settings)
    _add_starters(layers, file, record)
    layers.put(file, settings)


def _refuse_program(
    file: ConfigFile, settings: FileSettings, text: str | None, why: str
) -> FileSettings:
    """Return settings whose gates cannot start: the file is the command, and any program by now.

    Without these gates, hiding the file would remove them.
    """
    changed = "was removed" if file.is_gone else f"could not be read: {why}"
    changed = changed if text is None else "changed since it was trusted"
    refused = {"refused": f"{visible(file.path)} {changed}"}
    return with_checks(settings, lambda check: replace(check, options={**check.options, **refused}))


def _warn_ledger(layers: Layers, file: ConfigFile, settings: FileSettings) -> None:
    """Warn of `[ledger]` in a project: it would remove what other projects look back at."""
    if file.kind == KIND_NOTYET and not file.is_users and settings.ledger:
        layers.warnings.append(
            f"{visible(file.path)}: [ledger] has an effect only in your own notyet.toml; "
            "move it to ~/.config/notyet/notyet.toml"
        )


def _is_by_path(check: object) -> bool:
    """Return True if a command runs its own file, whatever that holds at the time."""
    return isinstance(check, Command) and bool(check.options.get("by_path"))


def _settings_of(layers: Layers, file: ConfigFile, record: Trusted) -> FileSettings | None:
    """Return what a record compiles to, even one that another version of notyet wrote."""
    try:
        return thaw(record.compiled)
    except DAMAGED:
        pass
    if file.path.endswith((".yaml", ".yml")):  # a hook does not find PyYAML
        layers.unreadable.append(file.path)
        layers.add_unchecked(
            f"{visible(file.path)} was trusted with another version of notyet; run: {file.command}"
        )
        return None
    settings = _compile(file, record.content)
    layers.warnings += [str(mistake) for mistake in settings.mistakes]
    return settings


def _warn_changed(
    layers: Layers, file: ConfigFile, record: Trusted, text: str | None, *, is_run: bool
) -> None:
    if text is None and file.source.problem:
        layers.offline.append(file.path)  # one warning covers all files of a machine
    elif file.is_gone:
        stays = "that version stays in force until you"
        rest = stays if is_run else "it cannot be run: put it back, or"
        is_linked = file.place not in {"", file.path}
        gone = "is not in this work tree" if is_linked else "was removed since it was trusted"
        rest = rest.replace("that", "the trusted") if is_linked else rest
        layers.warnings.append(f"{_named(file)} {gone}; {rest} run: {file.command} --revoke")
    elif text is not None and record.content != text:
        rest = "that version stays in force" if is_run else "it is not run"
        layers.warnings.append(
            f"{visible(file.path)} changed since it was trusted; {rest} until you run: "
            f"{file.command}"
        )


def _named(file: ConfigFile) -> str:
    """Return the name of what is trusted: of a `pyproject.toml`, only our table."""
    is_table = file.path.endswith(f"/{PYPROJECT}")
    return f"[tool.notyet] of {visible(file.path)}" if is_table else visible(file.path)


def _placed(
    layers: Layers, file: ConfigFile, record: Trusted, settings: FileSettings
) -> FileSettings:
    """Follow a file's `workspace`; return its settings as they are then."""
    if not settings.workspace or layers.is_elsewhere or layers.is_placed:
        return settings
    if layers.is_here:
        return _compile(file, record.content, LOCAL)
    layers.is_placed = not file.is_users
    if settings.workspace == LOCAL:
        layers.workspace, layers.named_by = "", None
    else:
        layers.workspace, layers.named_by = settings.workspace, record
    return settings


def _add_starters(layers: Layers, file: ConfigFile, record: Trusted) -> None:
    """Add the start hooks of a host's file; only where an agent is supervised."""
    if not layers.agent or file.kind == KIND_NOTYET or not host_of(file.kind).context:
        return
    for starter in _compile(file, record.content).starters:
        check = starter.check
        assert isinstance(check, Command)
        if layers.is_elsewhere and not check.workspace:
            check = replace(check, workspace=LOCAL)
        if file.root and not is_remote(file.root):
            check = in_project(check, file.root)
        layers.starters.append((file, replace(starter, check=check)))
