"""`notyet validate`: every mistake of every file at once, for a person or for CI."""

from __future__ import annotations

import os
import sys

from notyet.cli.person import refuse
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style
from notyet.config.compile import compile_text
from notyet.config.document import Mistake
from notyet.config.files import (
    CONCLAUDE,
    NAME,
    NATIVE,
    READABLE,
    ConfigFile,
    known_as,
    native_files,
    real_folder,
    root_of,
)
from notyet.config.host_files import host_files
from notyet.config.lint import lint
from notyet.config.readers import read_file
from notyet.config.schema import examine
from notyet.core.record import Record, replace
from notyet.core.text import visible
from notyet.status.waits import waits_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.status.waits import Wait

SUMMARY = "check configuration files, and say every mistake at once"
EXAMPLES = (
    ("notyet validate", "all files that would count here, trusted or not"),
    ("notyet validate notyet.toml .claude/settings.json", "these files"),
    ("notyet validate --json", "one JSON object, for a program"),
)
_EXECUTABLE = "mux-"


class Checked(Record, kw_only=True):
    """One file with all that is wrong, and all that may not be meant."""

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
        help="a notyet.toml, a file of another host, or a folder (default: all that counts here)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Check files; exit 1 when there is a mistake. Nothing is run, and nothing is trusted."""
    cwd = os.getcwd()
    environ = os.environ
    files = files_named(args.files, environ) if args.files else files_here(cwd, environ)
    wrong = "" if files else f"no {NAME} in {visible(cwd)} or above; write one with: notyet init"
    if "" in args.files:
        wrong = "the name of a file is empty; name one, or none to look at all that counts here"
    if wrong:
        if args.json:
            print(json_line({"ok": False, "files": []}))
        return refuse("validate", wrong)
    waits = waits_here(cwd, environ)
    checked = [_checked(file, waits) for file in files]
    if args.json:
        print(json_line(_plain(checked)))
    else:
        _show(checked)
    return 1 if any(one.mistakes for one in checked) else 0


def _checked(file: ConfigFile, waits: Sequence[Wait]) -> Checked:
    """Check one file."""
    shown = _relative(file.path)
    if not file.kind:
        hint = f"name a {NAME}, or a file of Claude Code, Codex, Mux or conclaude"
        message = "notyet does not read files of this name"
        if not os.path.lexists(file.path):
            message = "there is no such file"
        elif os.path.isdir(file.path):
            message = "there is no such file in this folder"
        mistake = Mistake(file=shown, message=message, hint=hint)
        return Checked(path=shown, kind="", mistakes=(mistake,))
    try:
        text, mistake_read = _text(file)
    except OSError as error:
        text, mistake_read = None, Mistake(file=shown, message=f"{error.strerror}")
    if text is None:
        assert mistake_read is not None
        wrong = replace(mistake_read, file=shown)
        return Checked(path=shown, kind=file.kind, mistakes=(wrong,))
    settings = compile_text(text, file.path, file.kind)
    is_native = file.kind == NATIVE
    document = examine(text, file.path, "notyet").document if is_native else None
    warnings = [*settings.warnings, *lint(settings, document, waits, os.environ)]
    return Checked(
        path=shown,
        kind=file.kind,
        gates=len(settings.gates),
        mistakes=tuple(_shortened(m) for m in settings.mistakes),
        warnings=tuple(_shortened(m) for m in warnings),
    )


def _text(file: ConfigFile) -> tuple[str | None, Mistake | None]:
    """Return a file's text, or why there is none. Raises OSError."""
    if file.kind.startswith(_EXECUTABLE):  # a program, whose bytes may be anything
        return file.tree.text_of(file.path), None
    return read_file(file.path)


def _shortened(mistake: Mistake) -> Mistake:
    return replace(mistake, file=_relative(mistake.file))


def _relative(path: str) -> str:
    """Return a path as people here would write it."""
    below = os.path.realpath(os.getcwd()).rstrip("/") + "/"
    return path.removeprefix(below)


def _show(checked: Sequence[Checked]) -> None:
    paint = Style(sys.stdout).paint
    for one in checked:
        for mistake in one.mistakes:
            print(paint(visible(str(mistake)), "red"))
        for warning in one.warnings:
            marked = replace(warning, message=f"warning: {warning.message}")
            print(paint(visible(str(marked)), "yellow"))
    mistakes = sum(len(one.mistakes) for one in checked)
    warnings = sum(len(one.warnings) for one in checked)
    gates = sum(one.gates for one in checked)
    where = _counted(len(checked), "file") if len(checked) > 1 else visible(checked[0].path)
    found = [_counted(number, word) for number, word in ((mistakes, "mistake"),) if number]
    found += [_counted(warnings, "warning")] if warnings else []
    colour = "red" if mistakes else "yellow" if warnings else "green"
    result = " and ".join(found) or f"no mistakes ({_counted(gates, 'gate')})"
    print(paint(f"{where}: {result}", colour))


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _plain(checked: Sequence[Checked]) -> dict[str, Any]:
    return {
        "ok": not any(one.mistakes for one in checked),
        "files": [
            {
                "path": one.path,
                "kind": one.kind,
                "gates": one.gates,
                "mistakes": [_fields(mistake) for mistake in one.mistakes],
                "warnings": [_fields(warning) for warning in one.warnings],
            }
            for one in checked
        ],
    }


def _fields(mistake: Mistake) -> dict[str, Any]:
    return {name: getattr(mistake, name) for name in Mistake._fields}


_EXECUTABLES = {"stop": "mux-stop", "subagent_stop": "mux-subagent-stop"}
_ENDS = {".toml": NATIVE, ".json": "claude", ".yaml": "conclaude", ".yml": "conclaude"}
_MUX = (".mux", ".xum")


def kind_of(path: str, environ: Mapping[str, str]) -> str:
    """Return the kind of a file by its name, and by the folder that it lies in; empty: unknown."""
    place, name = os.path.split(os.path.abspath(path))
    folder = os.path.basename(place)
    codex = environ.get("CODEX_HOME", "")
    end = os.path.splitext(name)[1]
    if name in CONCLAUDE:
        return "conclaude"
    if folder == ".codex" or (codex and os.path.realpath(place) == os.path.realpath(codex)):
        return "codex-toml" if end == ".toml" else "codex"
    if folder in _MUX:
        return _EXECUTABLES.get(name, "mux")
    return _ENDS.get(end, "")


def files_named(paths: Sequence[str], environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files that somebody named, each once; of a folder those that count in it."""
    found: dict[str, ConfigFile] = {}
    for path in paths:
        files = [ConfigFile(path=known_as(path), kind=kind_of(path, environ))]
        if os.path.isdir(path):
            files = files_here(path, environ) or files
        found |= {file.path: file for file in files}
    return list(found.values())


def files_here(cwd: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return what would be in force here if all of it was trusted, and hosts' own files here."""
    place = real_folder(cwd)
    found = native_files(place, environ, lambda _path: False)
    for host in READABLE:
        files = host_files(host, root_of(place), environ)
        # What a user has for all projects is not this project's.
        found += [file for file in files if not file.own]
    return found
