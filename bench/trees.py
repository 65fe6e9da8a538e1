"""Repositories of any size, quickly: all files have one content, so git keeps one object for them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

IN_A_FOLDER = 100
STATUS = ("git", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
_CONTENT = b"one line\n"
_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")


def grow(folder: str | Path, files: int) -> None:
    """Make a repository of a folder, with so many files that are committed and unchanged."""
    root = str(folder)
    _git(root, "init", "--quiet")
    blob = _git(root, "hash-object", "-w", "--stdin", stdin=_CONTENT).strip()
    entries = []
    for number in range(files):
        path = path_of(number)
        if number % IN_A_FOLDER == 0:
            os.mkdir(os.path.join(root, os.path.dirname(path)))
        file = os.open(os.path.join(root, path), os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(file, _CONTENT)
        os.close(file)
        entries.append(b"100644 %s\t%s\n" % (blob, path.encode()))
    _git(root, "update-index", "--add", "--index-info", stdin=b"".join(entries))
    # What was there before is part of it, too. As on any day nothing was just written: else git
    # looks at the content of all of them each time.
    _git(root, "add", "--all")
    _git(root, *_WHO, "commit", "--quiet", "-m", "all")
    _git(root, "update-index", "-q", "--really-refresh")


def path_of(number: int) -> str:
    """Return the path of a file in such a repository."""
    return f"folder{number // IN_A_FOLDER}/file{number}.txt"


def _git(root: str, *words: str, stdin: bytes = b"") -> bytes:
    command = ["git", "-c", "gc.auto=0", *words]
    return subprocess.run(command, cwd=root, input=stdin, stdout=subprocess.PIPE, check=True).stdout
