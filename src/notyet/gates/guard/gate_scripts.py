"""The scripts that gates run: files that their command lines name, and what these name in turn."""

from __future__ import annotations

import re
import shlex
from posixpath import basename, join, normpath, realpath, relpath
from typing import TYPE_CHECKING, Any

from notyet.gates.guard.files import is_test
from notyet.gates.guard.settings import scripts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_MOST_FILES = 200  # that are read for what they name
_MOST_LINES = 5_000  # of one script
_DEEPEST = 4  # scripts that run scripts
_LONGEST_LINE = 4_000
_SEPARATORS = re.compile(r"&&|\|\||[;&|()\n`]|\$\(")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*+=")
_PREFIX = re.compile(r"^[\t @+-]++")  # of a recipe in a Makefile
_INTERPRETER = re.compile(
    r"(?:ba|da|z|k|fi)?sh|source|\.|(?:python|pypy)[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php"
)
# Words before the command that a runner starts; options of the runner are skipped.
_RUNNERS = frozenset(
    {
        *("uv", "uvx", "poetry", "pipenv", "rye", "pdm", "hatch", "pixi", "pipx", "npx", "bunx"),
        *("env", "time", "nice", "nohup", "exec", "command", "timeout", "xvfb-run", "sudo"),
        *("coverage", "run", "xargs", "if", "then", "else", "while", "do", "!"),
    }
)
_PACKAGE_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
# Programs that find their script by its name in the folder where they start.
_NAMED: Mapping[str, tuple[str, ...]] = {
    "make": _MAKEFILES,
    "gmake": _MAKEFILES,
    "tox": ("tox.ini", "tox.toml"),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "pre-commit": (".pre-commit-config.yaml",),
    "prek": (".pre-commit-config.yaml", "prek.toml"),
    "lefthook": ("lefthook.yml", "lefthook.yaml", ".lefthook.yml", "lefthook.toml"),
    "hk": ("hk.pkl", "hk.toml"),
}
_FILE_OPTIONS = frozenset({"-f", "--file", "--makefile", "-c", "--config", "--noxfile"})
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--prefix", "--cwd", "--dir"})


def gate_scripts(
    commands: Iterable[Mapping[str, Any]], root: str, read: Callable[[str], str | None]
) -> frozenset[str]:
    """Return the paths of the files that gates run, relative to the root of the repository.

    `commands` are those of a question; `read` returns the text of a file at the start of the
    session, or None if there was none. Test files are not scripts: other rules compare them.
    """
    search = _Search(read)
    for command in commands:
        folder = _inside(root, str(command.get("dir") or ""), str(command.get("file") or ""))
        if folder is None:
            continue
        for line in (command.get("line"), command.get("fix")):
            search.script(str(line or ""), folder, 0)
        if command.get("python"):
            search.file(join(folder, str(command["python"]).partition(":")[0]), folder, 0)
        if command.get("uses"):
            search.script(str(command["uses"]), folder, 0)
    return frozenset(search.found)


def _inside(root: str, folder: str, file: str) -> str | None:
    """Return a gate's folder relative to the root; empty for the root, None outside of it."""
    base = file.rpartition("/")[0] or root
    path = relpath(realpath(join(base, folder)), realpath(root))
    if path == ".." or path.startswith("../"):
        return None
    return "" if path == "." else path


class _Search:
    def __init__(self, read: Callable[[str], str | None]) -> None:
        self.found: dict[str, None] = {}
        self._read = read
        self._known: dict[str, str | None] = {}

    def script(self, text: str, folder: str, depth: int) -> None:
        """Add the files that the commands of a shell text run."""
        text = text.replace("\\\n", " ")
        for line in text.split("\n")[:_MOST_LINES]:
            if line.lstrip().startswith("#"):
                continue
            here = folder
            for part in _SEPARATORS.split(_PREFIX.sub("", line[:_LONGEST_LINE])):
                words = _words(part)
                if words[:1] == ["cd"] and len(words) > 1:
                    here = normpath(join(here, words[1]))
                elif words:
                    self._command(words, "" if here == "." else here, depth)

    def _command(self, words: list[str], folder: str, depth: int) -> None:
        words = list(_without_runners(words))
        if not words:
            return
        program, rest = basename(words[0]), words[1:]
        if "/" in words[0]:
            self.file(join(folder, words[0]), folder, depth)
        place = join(folder, _option(rest, _FOLDER_OPTIONS))
        if program in _PACKAGE_MANAGERS:
            self._package(rest, place, depth)
        for name in _NAMED.get(program, ()):
            self.file(join(place, _option(rest, _FILE_OPTIONS) or name), place, depth)
        if _INTERPRETER.fullmatch(program):
            self._interpreted(rest, folder, depth)

    def _interpreted(self, words: list[str], folder: str, depth: int) -> None:
        """Add the file that a shell or an interpreter runs, or what its text or module names."""
        for at, word in enumerate(words):
            following = words[at + 1] if at + 1 < len(words) else ""
            if word == "-m" and following:
                name = following.replace(".", "/")
                for path in (f"{name}.py", f"{name}/__main__.py"):
                    self.file(join(folder, path), folder, depth)
                self._command(words[at + 1 :], folder, depth)  # `python -m tox`
                return
            if re.fullmatch(r"-[a-z]*c", word):
                if depth < _DEEPEST:  # a separator within its quotes has parted the text
                    self.script(" ".join(words[at + 1 :]), folder, depth + 1)
                return
            if not word.startswith("-") and word != "run":
                self.file(join(folder, word), folder, depth)
                return

    def _package(self, words: list[str], folder: str, depth: int) -> None:
        """Add package.json, and the files that its named script runs."""
        path = normpath(join(folder, "package.json"))
        scripts = scripts_of(self._text(path) or "")
        named = [word for word in words if word in scripts or word in {"t", "test"}]
        if not named:
            return
        self.file(path, folder, depth)
        name = "test" if named[0] == "t" else named[0]
        if depth < _DEEPEST:
            for one in (f"pre{name}", name, f"post{name}"):
                self.script(scripts.get(one, ""), folder, depth + 1)

    def file(self, path: str, folder: str, depth: int) -> None:
        """Add a file of the repository, and what it names if it holds commands."""
        path = normpath(path)
        if path in self.found or path.startswith(("../", "/")) or is_test(path):
            return
        text = self._text(path)
        if text is None:
            return
        self.found[path] = None
        name = basename(path)
        holds_commands = (
            name in (*_MAKEFILES, "justfile", "Justfile")
            or name.endswith((".sh", ".bash", ".mk"))
            or re.match(r"#![^\n]{0,80}sh\b", text)
        )
        if holds_commands and depth < _DEEPEST:
            self.script(text, folder, depth + 1)

    def _text(self, path: str) -> str | None:
        if path not in self._known:
            self._known[path] = self._read(path) if len(self._known) < _MOST_FILES else None
        return self._known[path]


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:  # an unclosed quote, as a separator within quotes leaves it
        return part.replace("'", " ").replace('"', " ").split()


def _without_runners(words: list[str]) -> Iterator[str]:
    """Yield the words of the command that is run in the end."""
    at = 0
    while at < len(words):
        word = words[at]
        is_runner = basename(word) in _RUNNERS and not word.startswith(".")
        if not is_runner and not _ASSIGNMENT.match(word):
            break
        at += 1
        if is_runner:
            while at < len(words) and words[at].startswith("-"):
                if words[at] == "-m":  # `coverage run -m pytest`
                    yield "python"
                    yield from words[at:]
                    return
                at += 1
            if basename(word) == "timeout":
                at += 1
    yield from words[at:]


def _option(words: list[str], names: frozenset[str]) -> str:
    """Return the value of one of these options, or an empty text."""
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name in names:
            return value if sign else (words[at + 1] if at + 1 < len(words) else "")
    return ""
