"""Offering files of a project to a person, for `notyet trust` and after an installation."""

from __future__ import annotations

import os
import sys

from notyet.cli.person import write_down
from notyet.config.files import (
    NAME,
    NATIVE,
    READABLE,
    ConfigFile,
    host_files,
    known_as,
    native_files,
)
from notyet.config.store import record_path, state_folder
from notyet.config.trust import candidate, grant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from notyet.cli.trust_show import Show

    Consent = Literal["given", "asked", "refused"]  # "refused": it is only looked at


def files_to_trust(path: str, hosts: Sequence[str], environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files of projects that need trust; the user's own ones do not."""
    path = os.path.realpath(path) if os.path.isdir(path) else known_as(path)
    if not os.path.isdir(path) and os.path.basename(path) != NAME:
        return _named(path, environ)
    state = state_folder(environ)

    def is_trusted(file: str) -> bool:
        return os.path.exists(record_path(state, file))

    folder = path if os.path.isdir(path) else os.path.dirname(path)
    native = native_files(folder, environ, is_trusted)
    wanted = dict.fromkeys([*hosts, *_hosts_read(native, environ)])
    found = [file for file in native if not file.own][:1]  # the nearest
    for host in wanted:
        found += [f for f in host_files(host, folder, environ, is_trusted) if not f.own]
    return found


def _named(path: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return a file of another host that was named itself."""
    folder = os.path.dirname(path)
    for place in (folder, os.path.dirname(folder)):
        for host in READABLE:
            for file in host_files(host, place, environ):
                if file.path == path:
                    return [file]
    return [ConfigFile(path=path, kind="notyet")] if os.path.exists(path) else []


def _hosts_read(files: list[ConfigFile], environ: Mapping[str, str]) -> list[str]:
    hosts: list[str] = []
    for file in files:
        if not file.is_gone:
            try:
                hosts += candidate(file, environ).settings.read_hosts
            except OSError:
                continue
    return hosts


def offer(file: ConfigFile, consent: Consent, environ: Mapping[str, str], show: Show) -> bool:
    """Show one file, and trust it if a person says so; tell whether it is trusted."""
    try:
        found = candidate(file, environ)
    except OSError as error:
        show.problem(file.path, str(error.strerror or error))
        return False
    show.file(found)
    if found.is_trusted or consent == "refused":
        return found.is_trusted
    if found.settings.mistakes:
        show.problem(file.path, "it has mistakes, so it cannot be trusted; correct them first")
        return False
    if consent != "given" and not agreed(
        "Trust this file, and run these commands?", show.command, "to trust this"
    ):
        print("nothing was changed")
        return False
    try:
        grant(found, environ)
    except OSError as error:
        show.problem(file.path, f"that cannot be remembered: {error.strerror or error}")
        return False
    count = len(found.settings.gates)
    write_down("trust", file.path, f"{count} gates")
    gates = f"{count} gate{'' if count == 1 else 's'} of this file"
    whose = "" if file.kind == NATIVE else ", for hosts that read it"
    show.done(f"trusted: {gates} in force now{whose}" if count else "trusted: it has no gates")
    return True


def agreed(question: str, command: str, purpose: str) -> bool:
    """Ask a person; nobody is there without a terminal."""
    if not sys.stdin.isatty():
        print(f"notyet {command}: not a terminal; add --yes {purpose}", file=sys.stderr)
        return False
    try:
        # Not on stdout, which may lead into a pager.
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return input().strip().lower() in {"y", "yes"}
    except EOFError:
        return False
