"""Keeps docs/reference/python.md true: the public names, as their own docstrings explain them.

Without arguments it checks; with --write it rewrites the page.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import notyet
import notyet.fleet
from notyet.core.record import Record

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
HEAD = """\
# Python reference

Generated from the code by `make docs`. [Put gates into your own agent](../how-to/embed.md) shows
how it fits together.
"""
GROUPS = {
    "Asking": ("Engine", "Gate", "Function", "Command", "Match", "Observer", "Starter", "Source"),
    "The event": ("StopEvent", "Usage", "BackgroundTask", "StartEvent"),
    "Verdicts": ("Allow", "Block", "Halt"),
    "What came of it": ("Decision", "Report", "Problem"),
    "Counting": ("Limits", "History", "Ledger"),
    "Supervising": ("Supervisor", "SupervisorSettings", "Handle", "Progress"),
    "Tasks": ("Task", "Result", "Announcement", "TaskView"),
    "Agents": ("Session", "Turn", "News"),
    "Fleets": ("Fleet", "Queue", "Worker", "Workspaces"),
    "Helpers": ("last_message", "replace"),
    "Errors": (
        "NotyetError",
        "LedgerError",
        "LedgerBusy",
        "LedgerNewer",
        "LedgerNeedsRepair",
        "Refused",
        "SendError",
        "Undeliverable",
        "LifecycleError",
    ),
}


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [_entry(name) for name in names]
    return "\n".join(parts)


def _entry(name: str) -> str:
    is_fleets = name in notyet.fleet.__all__  # an extra, which `import notyet` does not load
    thing = getattr(notyet.fleet if is_fleets else notyet, name)
    title = f"notyet.fleet.{name}" if is_fleets else name
    lines = [f"### `{title}`\n", f"{inspect.getdoc(thing)}\n"]
    if inspect.isclass(thing) and issubclass(thing, Record):
        lines += ["| field | type | default |", "|---|---|---|", *_fields(thing), ""]
    elif inspect.isclass(thing) and not issubclass(thing, Exception):
        for method, found in vars(thing).items():
            is_of_class = isinstance(found, classmethod)
            function = found.__func__ if is_of_class else found
            if inspect.isfunction(function) and (method == "__init__" or method[0] != "_"):
                what = name if method == "__init__" else f"{name}." * is_of_class + method
                doc = "" if method == "__init__" else f"  \n{inspect.getdoc(function)}"
                lines.append(f"- `{_signature(what, function)}`{doc}")
        lines.append("")
    elif inspect.isfunction(thing):
        lines += [f"`{_signature(name, thing)}`\n"]
    return "\n".join(lines)


def _fields(record: type[Record]) -> list[str]:
    rows = []
    for field in record._fields:
        kind = record.__annotations__[field].replace("|", "\\|")
        default = f"`{record._defaults[field]!r}`" if field in record._defaults else "required"
        rows.append(f"| `{field}` | `{kind}` | {default} |")
    return rows


def _signature(name: str, function: object) -> str:
    signature = inspect.signature(function)  # type: ignore[arg-type]  # whatever is public
    kept = [p for p in signature.parameters.values() if p.name not in {"self", "cls"}]
    text = str(signature.replace(parameters=kept)).replace("''", "\0").replace("'", "")
    text = re.sub(r"<function (\w+) at \w+>", r"\1", text).replace("<factory>", "{}")
    text = text.replace("\0", "''")  # an empty text is a default; other quotes are around types
    waits = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{waits}{name}{text}".replace(" -> None", "")


def main(write: bool) -> int:  # noqa: FBT001  # the option of a command line
    """Check or rewrite the page."""
    missing = set(notyet.__all__) - {name for names in GROUPS.values() for name in names}
    fresh = page()
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    if missing:
        print(f"no group in tools/api_reference.py names {', '.join(sorted(missing))}")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        print("docs/reference/python.md is old: run make docs")
    else:
        print(f"{len(notyet.__all__)} public names, each documented")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
