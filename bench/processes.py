"""Whole processes as subjects: spawned and reaped with as little around them as Python can do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def starting(
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    stdin: str = os.devnull,
    expected: int = 0,
) -> Callable[[], None]:
    """Return what runs this once, and fails if it ends otherwise than expected."""
    words = list(argv)
    files = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]

    def run() -> None:
        os.chdir(cwd)
        child = os.posix_spawnp(words[0], words, environ, file_actions=files)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != expected:
            raise RuntimeError(f"{' '.join(argv)} ended with {code} in {cwd}")

    return run


def starting_at_once(
    argv: Sequence[str], count: int, *, cwd: str, environ: Mapping[str, str]
) -> Callable[[], None]:
    """Return what starts so many of these, and then reaps them all."""
    words = list(argv)
    files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]

    def run() -> None:
        os.chdir(cwd)
        children = [
            os.posix_spawnp(words[0], words, environ, file_actions=files) for _ in range(count)
        ]
        for child in children:
            os.waitpid(child, 0)

    return run
