"""`python = "module:function"` in a file: run in a child of the project's interpreter (N4)."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CHILD = os.path.join(_PACKAGE, "python_child.py")


def argv_for(options: Mapping[str, Any], folder: str) -> tuple[str, ...]:
    """Return the command line that calls a function with the event on its stdin."""
    return (_interpreter(options, folder), _CHILD, folder, options["python"])


def _interpreter(options: Mapping[str, Any], folder: str) -> str:
    chosen: str = options.get("interpreter") or ""
    if chosen:
        chosen = os.path.expanduser(chosen)
        return chosen if "/" not in chosen else os.path.join(folder, chosen)
    own = os.path.join(folder, ".venv", "bin", "python")
    return own if os.access(own, os.X_OK) else sys.executable
