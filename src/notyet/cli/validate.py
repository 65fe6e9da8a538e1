"""`notyet validate`: every mistake of every file at once, for a person or for CI."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.cli.formats import (
    Case,
    add_format_options,
    chosen,
    ci_printers,
    refused,
    relative,
    write_all,
)
from notyet.cli.person import refuse
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, counted
from notyet.config.compile import compile_text, examine
from notyet.config.document import Mistake
from notyet.config.files import ConfigFile, host_files, toml_files
from notyet.config.find import (
    FILE_NAME,
    KIND_NOTYET,
    LOCAL_SOURCE,
    PYPROJECT,
    has_table,
    known_as,
    real_folder,
    root_of,
    text_of,
)
from notyet.config.lint import linked_members, lint
from notyet.config.pyproject import in_place
from notyet.config.readers import read_file
from notyet.core.record import as_dict, replace
from notyet.core.text import visible
from notyet.hosts import host_named
from notyet.hosts.files import READABLE
from notyet.status.host_faults import waits_here

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from notyet.cli.formats import Status
    from notyet.status.host_faults import Wait

SUMMARY = "check configuration files, and report every mistake at once"
EXAMPLES = (
    ("notyet validate", "all files that apply here, trusted or not"),
    ("notyet validate notyet.toml .claude/settings.json", "these files"),
    ("notyet validate --json", "one JSON object, for a program"),
    ("notyet validate --format github", "annotations, for GitHub"),
)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One file with its mistakes and warnings."""

    path: str
    kind: str
    gates: int = 0
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a notyet.toml, a file of a host, or a folder (default: all files that apply here)",
    )
    add_format_options(parser)


def run(args: argparse.Namespace) -> int:
    """Check files, without running or trusting anything; exit 1 when there is a mistake."""
    cwd = os.getcwd()
    environ = os.environ
    files = files_named(args.files, environ) if args.files else files_here(cwd, environ)
    wrong = (
        "" if files else f"no {FILE_NAME} in {visible(cwd)} or above; write one with: notyet init"
    )
    if "" in args.files:
        wrong = "a file name is empty; name a file, or none to check all files here"
    try:
        outputs = chosen(args)
    except ValueError as error:
        return refuse("validate", str(error))
    if wrong:
        write_all("validate", outputs, {"json": lambda stream: print(_json([]), file=stream)})
        return refused("validate", outputs, wrong, 1)
    waits = waits_here(cwd, environ)
    checked = [_check(file, waits) for file in files]
    printers = {
        "text": lambda stream: _show(checked, stream),
        "json": lambda stream: print(_json(checked), file=stream),
        **ci_printers("validate", _cases(checked), _summary(checked)[0]),
    }
    is_written = write_all("validate", outputs, printers)
    return 1 if not is_written or any(one.mistakes for one in checked) else 0


def files_named(paths: Sequence[str], environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files that were named, each once; of a folder, those that count in it."""
    found: dict[str, ConfigFile] = {}
    for path in paths:
        files = [ConfigFile(path=known_as(path), kind=kind_of(path, environ))]
        if os.path.isdir(path):
            files = files_here(path, environ) or files
        found |= {file.path: file for file in files}
    return list(found.values())


def files_here(cwd: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files that would be in force here if all were trusted, and hosts' files here."""
    place = real_folder(cwd)
    found = toml_files(place, environ, lambda _path: False)
    for host in READABLE:
        files = host_files(host, root_of(place), environ)
        found += [file for file in files if not file.is_users]  # what a user has for all projects
    return found


def kind_of(path: str, environ: Mapping[str, str]) -> str:
    """Return the kind of a file by its path; empty if it is unknown."""
    path = os.path.abspath(path)
    folder, name = os.path.split(path)
    end = os.path.splitext(name)[1]
    if name == FILE_NAME:
        return KIND_NOTYET
    alike = {".toml": KIND_NOTYET}
    for host in map(host_named, READABLE):
        home = os.path.realpath(environ.get(host.home_variable) or os.devnull)
        for _, theirs, kind in (file for group in host.hook_files.groups for file in group):
            around, known = os.path.split(theirs)
            is_theirs = os.path.basename(folder) == around or os.path.realpath(folder) == home
            if name == known and (is_theirs or not around):
                return kind
            if is_theirs and around and end == os.path.splitext(known)[1]:
                return kind
            alike.setdefault(os.path.splitext(known)[1] or "/", kind)
    return alike.get(end, "")


def _check(file: ConfigFile, waits: Sequence[Wait]) -> Checked:
    text, mistake = _text(file)
    if text is None:
        assert mistake is not None
        return Checked(path=_relative(file.path), kind=file.kind, mistakes=(_shortened(mistake),))
    settings = compile_text(text, file.path, file.kind)
    document = examine(text, file.path, KIND_NOTYET).document if file.kind == KIND_NOTYET else None
    warnings = [*settings.warnings, *lint(settings, document, waits, os.environ)]
    mistakes = [*settings.mistakes, *_beside(file)]
    mistakes += linked_members(settings, document) if document is not None else ()
    return Checked(
        path=_relative(file.path),
        kind=file.kind,
        gates=len(settings.gates),
        mistakes=tuple(map(_shortened, mistakes)),
        warnings=tuple(map(_shortened, warnings)),
    )


def _beside(file: ConfigFile) -> list[Mistake]:
    """Return the mistake that the same folder has a second file of ours, which does not count."""
    folder, name = os.path.split(file.path)
    other = os.path.join(folder, PYPROJECT)
    if name != FILE_NAME or not has_table(other, LOCAL_SOURCE):
        return []
    lines = in_place(text_of(other)).split("\n")
    line = next(number for number, line in enumerate(lines, 1) if line)
    message = f"[tool.notyet] has no effect beside {FILE_NAME}"
    hint = f"move it into {FILE_NAME}"
    return [Mistake(file=other, line=line, column=1, message=message, hint=hint)]


def _text(file: ConfigFile) -> tuple[str | None, Mistake | None]:
    """Return a file's text, or why it cannot be checked."""
    if not file.kind:
        message = "notyet does not read files of this name"
        if not os.path.lexists(file.path):
            message = "there is no such file"
        elif os.path.isdir(file.path):
            message = "there is no such file in this folder"
        hint = f"name a {FILE_NAME}, or a file of Claude Code, Codex, Mux or conclaude"
        return None, Mistake(file=file.path, message=message, hint=hint)
    if os.path.splitext(file.path)[1]:
        return read_file(file.path)
    try:  # a program, whose bytes may be anything
        return file.source.text_of(file.path), None
    except OSError as error:
        return None, Mistake(file=file.path, message=f"{error.strerror}")


def _shortened(mistake: Mistake) -> Mistake:
    return replace(mistake, file=_relative(mistake.file))


def _relative(path: str) -> str:
    return relative(path, os.getcwd())


def _cases(checked: Sequence[Checked]) -> list[Case]:
    """Return each mistake and warning as a case, and each file that has no mistake."""
    cases = []
    for one in checked:
        found: list[tuple[Status, Mistake]] = [("failed", mistake) for mistake in one.mistakes]
        found += [("warning", warning) for warning in one.warnings]
        cases += [
            Case(
                name=visible(str(mistake)),
                status=status,
                message=visible(mistake.message + (f" ({mistake.hint})" if mistake.hint else "")),
                file=mistake.file,
                line=mistake.line,
                column=mistake.column,
            )
            for status, mistake in found
        ]
        if not one.mistakes:
            cases.append(Case(name=visible(one.path), status="passed", file=one.path))
    return cases


def _show(checked: Sequence[Checked], stream: TextIO) -> None:
    paint = Style(stream).paint
    for one in checked:
        for mistake in one.mistakes:
            print(paint(visible(str(mistake)), "red"), file=stream)
        for warning in one.warnings:
            marked = replace(warning, message=f"warning: {warning.message}")
            print(paint(visible(str(marked)), "yellow"), file=stream)
    print(paint(*_summary(checked)), file=stream)


def _summary(checked: Sequence[Checked]) -> tuple[str, str]:
    """Return what was found in one line, and its colour."""
    mistakes = sum(len(one.mistakes) for one in checked)
    warnings = sum(len(one.warnings) for one in checked)
    gates = sum(one.gates for one in checked)
    where = counted(len(checked), "file") if len(checked) > 1 else visible(checked[0].path)
    found = [counted(n, word) for n, word in ((mistakes, "mistake"), (warnings, "warning")) if n]
    colour = "red" if mistakes else "yellow" if warnings else "green"
    result = " and ".join(found) or f"no mistakes ({counted(gates, 'gate')})"
    return f"{where}: {result}", colour


def _json(checked: Sequence[Checked]) -> str:
    is_ok = bool(checked) and not any(one.mistakes for one in checked)
    files = [
        {
            "path": one.path,
            "kind": one.kind,
            "gates": one.gates,
            "mistakes": [as_dict(mistake) for mistake in one.mistakes],
            "warnings": [as_dict(warning) for warning in one.warnings],
        }
        for one in checked
    ]
    return json_line({"ok": is_ok, "files": files})
