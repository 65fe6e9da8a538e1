"""What importing costs, in multiples of a bare interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import notyet
from bench.measure import Effort, Result, Row, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = os.path.dirname(os.path.dirname(notyet.__file__))


def measure(effort: Effort) -> list[Result]:
    """Start interpreters in turns."""

    def starting(code: str) -> Callable[[], object]:
        command = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path[:0] = [{SOURCE!r}]; {code}",
        ]
        return lambda: subprocess.run(command, check=True)

    figures = interleaved(
        effort.rounds(40),
        1,
        bare=starting("pass"),
        notyet=starting("import notyet"),
        core=starting("import notyet.core.plan, notyet.core.settle"),
        engine=starting("import notyet.engine.engine"),
        asyncio=starting("import asyncio"),
    )
    bare = figures["bare"]
    return [
        Row("import notyet", "bare interpreter", bare, figures["notyet"], 1.2),
        Row("import the pure core", "bare interpreter", bare, figures["core"], 1.5),
        Row("import the engine", "bare interpreter", bare, figures["engine"], 2.0),
        Row("  asyncio, for scale", "bare interpreter", bare, figures["asyncio"]),
    ]
