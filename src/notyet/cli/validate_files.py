"""The files that `notyet validate` looks at: those that are named, or those that count here."""

from __future__ import annotations

import os

from notyet.config.files import (
    CONCLAUDE,
    NATIVE,
    READABLE,
    ConfigFile,
    known_as,
    native_files,
    real_folder,
    root_of,
)
from notyet.config.files_hosts import host_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
