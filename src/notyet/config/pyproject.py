"""`[tool.notyet]` in a `pyproject.toml`: the same as a `notyet.toml` beside it (J6).

Only that table is read and trusted, whatever else the file says. It is cut out by its lines, since
a hook parses no TOML.
"""

from __future__ import annotations

from notyet.config.find import PYPROJECT

TABLE = ("tool", "notyet")
_OURS = ("[tool.notyet]", "[tool.notyet.", "[[tool.notyet.")
_QUOTES = ('"""', "'''")


def is_pyproject(path: str) -> bool:
    """Return True if a path names a `pyproject.toml`."""
    return path.endswith(f"/{PYPROJECT}") or path == PYPROJECT


def table_of(text: str) -> str:
    """Return the lines of `[tool.notyet]` and the tables in it; empty if there is none."""
    return "".join(f"{line}\n" for line in _lines(text) if line is not None)


def in_place(text: str) -> str:
    """Return a text of which only the lines of `[tool.notyet]` are left, each in its place."""
    return "\n".join(line or "" for line in _lines(text))


def _lines(text: str) -> list[str | None]:
    """Return the lines of a text, with None for each that is not ours."""
    if _OURS[0][:-1] not in text:
        return []
    lines: list[str | None] = []
    is_ours, quotes = False, ""  # which quotes are open in a string of several lines
    end = 0  # after our last line; comments before a header are about the next table
    for line in text.replace("\r\n", "\n").split("\n"):
        if not quotes and _is_header(line):
            lines[end:] = [None] * (len(lines) - end)
            is_ours = line.lstrip().startswith(_OURS)
        lines.append(line if is_ours else None)
        if not is_ours:
            end = len(lines)
            continue
        if quotes or not line.lstrip().startswith("#"):
            odd = [sign for sign in ((quotes,) if quotes else _QUOTES) if line.count(sign) % 2]
            quotes = ("" if quotes else odd[0]) if odd else quotes
            end = len(lines) if line.strip() else end
    lines[end:] = [None] * (len(lines) - end)
    return lines


def _is_header(line: str) -> bool:
    """Return True for the header of a table, not for an item of a list that has its own line."""
    header = line.partition("#")[0].strip()
    name = header.lstrip("[")
    is_table = header.endswith("]") and name != header and "," not in name
    return is_table and (name[0].isalnum() or name[0] in "_-")
