"""Command lines of gates that are Python: a project's functions (N4), and notyet's own kinds."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CHILD = os.path.join(_PACKAGE, "run", "python_child.py")
_KIND = os.path.join(_PACKAGE, "gates", "child.py")
_VENV = ".venv/bin/python"
# The modules that the child needs if notyet is not installed there. Anything else that a gate
# imports of notyet comes from the package that is installed there.
_MODULES = (
    "__init__.py",
    "errors.py",
    "light.py",
    "run/__init__.py",
    "run/python_child.py",
    "hosts/__init__.py",
    "hosts/hook_answers.py",
    "hosts/host.py",
    "hosts/notyet/__init__.py",
    "hosts/notyet/events.py",
    "hosts/notyet/hooks.py",
    "hosts/wire.py",
)
_CORE = "core"
# Any Python there may run it, so it uses syntax that all versions have.
_MAIN = """\
import sys

if sys.version_info < (3, 11):
    said = "Python %d.%d is too old there, 3.11 or later is needed; name one with interpreter"
    sys.stdout.write('{"problem": "' + said % sys.version_info[:2] + '"}')
    sys.exit(1)

import os
from importlib.machinery import PathFinder

installed = PathFinder.find_spec("notyet", sys.path[1:])

import notyet.core
import notyet.hosts
import notyet.run
from notyet.run.python_child import main

for place in (installed and installed.submodule_search_locations) or ():
    for package in (notyet, notyet.core, notyet.hosts, notyet.run):
        package.__path__.append(os.path.join(place, *package.__name__.split(".")[1:]))

sys.exit(main())
"""
# Finds the interpreter there: $1 is the project, $2 the configured interpreter, if any.
_CHOOSE = """\
case $2 in
  "") p=$1/%s; [ -x "$p" ] || p=python3 ;;
  *) p=$HOME/${2#"~/"} ;;
esac
if ! command -v "$p" > /dev/null 2>&1; then
  echo "there is no $p; name an interpreter that is there with: interpreter" >&2
  exit 127
fi
exec "$p" "$3" "$1" "$4"
"""
_archive = b""


def argv_for(options: Mapping[str, Any], folder: str) -> tuple[str, ...]:
    """Return the command line that calls a function with the event on its stdin."""
    return (_interpreter(options, folder), _CHILD, folder, options["python"])


def argv_of_kind(kind: str) -> tuple[str, ...]:
    """Return the command line of a gate of notyet's own, which gets its question on stdin."""
    # -P: nothing of the folder that it runs in is imported.
    return (sys.executable, "-P", _KIND, kind)


def _interpreter(options: Mapping[str, Any], folder: str) -> str:
    chosen: str = options.get("interpreter") or ""
    if chosen:
        chosen = os.path.expanduser(chosen)
        return chosen if "/" not in chosen else os.path.join(folder, chosen)
    own = os.path.join(folder, _VENV)
    return own if os.access(own, os.X_OK) else sys.executable


def argv_there(options: Mapping[str, Any], folder: str, archive_path: str) -> tuple[str, ...]:
    """Return the command line like `argv_for`, on another machine, with a copy of `archive`."""
    chosen: str = options.get("interpreter") or ""
    if chosen and not chosen.startswith("~/"):
        program = chosen if "/" not in chosen else os.path.join(folder, chosen)
        return (program, archive_path, folder, options["python"])
    choose = _CHOOSE % _VENV
    return ("/bin/sh", "-c", choose, "sh", folder, chosen, archive_path, options["python"])


def archive() -> bytes:
    """Return the child and the modules it needs as a zip archive that Python can run."""
    global _archive  # noqa: PLW0603  # made once
    if not _archive:
        from zipfile import ZIP_DEFLATED, ZipFile

        packed = io.BytesIO()
        with ZipFile(packed, "w", ZIP_DEFLATED) as file:
            file.writestr("__main__.py", _MAIN)
            for name in _modules():
                with open(os.path.join(_PACKAGE, name), "rb") as source:
                    file.writestr(f"notyet/{name}", source.read())
        _archive = packed.getvalue()
    return _archive


def _modules() -> Iterator[str]:
    yield from _MODULES
    for name in sorted(os.listdir(os.path.join(_PACKAGE, _CORE))):
        if name.endswith(".py"):
            yield f"{_CORE}/{name}"
