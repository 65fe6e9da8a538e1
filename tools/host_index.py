"""Keeps the index of hosts true: `HOSTS` in hosts/__init__.py, and all of hosts/signs.py.

A hook must not load the modules of all hosts, and a host must not be named in more than one file.
Without arguments it checks; with --write it rewrites both.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from notyet.hosts.detect import parsed

SOURCE = Path(__file__).resolve().parent.parent / "src" / "notyet" / "hosts"
FIRST = ("claude", "codex")  # what most people look for
LAST = ("mux", "conclaude", "notyet", "unknown")  # not agents of their own
_HOST = re.compile(r"^HOST = ", re.MULTILINE)
_LINE = re.compile(r"^HOSTS = \(.*?\)$", re.MULTILINE | re.DOTALL)
HEAD = '''\
"""How payloads tell their host, and which programs run agents; see `hosts/detect.py`.

Written by tools/host_index.py (`make docs`) from the modules of the hosts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.hosts.detect import Sign

'''


def names() -> list[str]:
    """Return the hosts that have a module or package of their own."""
    found = [
        path.parent.name if path.name == "__init__.py" else path.stem
        for path in (*SOURCE.glob("*.py"), *SOURCE.glob("*/__init__.py"))
        if _HOST.search(path.read_text(encoding="utf-8"))
    ]
    own = sorted(name for name in found if name not in (*FIRST, *LAST))
    return [*FIRST, *own, *(name for name in LAST if name in found)]


def pages() -> dict[Path, str]:
    """Return both files as they should be."""
    init = SOURCE / "__init__.py"
    text = init.read_text(encoding="utf-8")
    text = _LINE.sub(lambda _: f"HOSTS = {tuple(names())!r}", text)
    others = import_module("notyet.hosts.known_programs").OTHERS
    hosts = [import_module(f"notyet.hosts.{name}").HOST for name in names()]
    signs = tuple(
        (host.name, tuple(map(parsed, host.signs))) for host in (*hosts, *others) if host.signs
    )
    programs = sorted({host.program for host in (*hosts, *others)} - {""})
    index = f"{HEAD}SIGNS: tuple[tuple[str, tuple[Sign, ...]], ...] = {signs!r}\n"
    index += f"PROGRAMS = frozenset({programs!r})\n"
    return {init: _formatted(text), SOURCE / "signs.py": _formatted(index)}


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    line = [str(ruff), "format", "--quiet", "--stdin-filename", str(SOURCE / "x.py"), "-"]
    return subprocess.run(line, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Check both files, or rewrite them."""
    wrong = [path for path, text in pages().items() if text != _current(path)]
    if "--write" in sys.argv:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
        return 0
    for path in wrong:
        print(f"{path.name} is not what the hosts say; run: make docs")
    return 1 if wrong else 0


def _current(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
