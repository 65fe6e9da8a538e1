"""A git worktree, and the main one that its repository has: hosts read settings there too."""

from __future__ import annotations

import os

from notyet.config.files import root_of
from notyet.config.readers import read_file


def main_root(folder: str) -> str:
    """Return the root of the main work tree, where a folder lies in another one; else nothing."""
    link = os.path.join(root_of(folder), ".git")
    if not os.path.isfile(link):  # as nearly always: the repository itself
        return ""
    said = _line(link)
    if not said.startswith("gitdir:"):
        return ""
    gitdir = os.path.join(root_of(folder), said.removeprefix("gitdir:").strip())
    common = _line(os.path.join(gitdir, "commondir"))
    if not common:  # of a submodule, which is a project of its own
        return ""
    shared = os.path.realpath(os.path.join(gitdir, common))
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else ""


def in_main(folder: str) -> str:
    """Return the folder of the main work tree that answers to this one; itself where it is one."""
    main = main_root(folder)
    if not main:
        return folder
    return os.path.normpath(os.path.join(main, os.path.relpath(folder, root_of(folder))))


def _line(path: str) -> str:
    text, _ = read_file(path)
    return (text or "").strip()
