"""The scripts of a package.json, run by whichever of npm, pnpm, yarn and bun the project uses."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from notyet.config.shell import commands
from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_FILE = "package.json"
_SCRIPTS = {
    "format": ("format:check", "check:format", "format-check", "prettier:check"),
    "lint": ("lint",),
    "types": ("typecheck", "type-check", "check-types", "types"),
    "build": ("build",),
    "tests": ("test",),
}
_PLACEHOLDER = "no test specified"  # what `npm init` writes
_ENDLESS = frozenset(
    ("--watch", "--watchAll", "--watch=true", "--watchAll=true", "watch", "nodemon")
)
_SHORT_WATCH = frozenset(("ava", "mocha", "rollup", "tsc", "vite", "vue-tsc", "webpack"))  # of `-w`
_WRITING = frozenset(("--fix", "--write", "--updateSnapshot"))
_SAYING = frozenset((":", "echo", "exit", "printf", "true"))
_LOCKS = {
    "pnpm": ("pnpm-lock.yaml",),
    "yarn": ("yarn.lock",),
    "bun": ("bun.lock", "bun.lockb"),
    "npm": ("package-lock.json", "npm-shrinkwrap.json"),
}


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield a gate for each script that checks something."""
    document = folder.json(_FILE)
    scripts = at(document, "scripts")
    if not isinstance(scripts, dict):
        return
    manager = _manager(folder)
    for name, keys in _SCRIPTS.items():
        for key in keys:
            if _is_check(scripts.get(key)):
                yield Proposal(
                    name=name,
                    tool=manager,
                    run=f"{manager} run {key}" if key != "test" else _test(manager),
                    file=_FILE,
                    line=document.locate(("scripts", key))[0],
                )
                break


def _is_check(script: object) -> bool:
    """Return True if a script looks at something, ends, and changes nothing."""
    if not isinstance(script, str) or _PLACEHOLDER in script:
        return False
    started = [words for words in commands(script) if words]
    if all(words[0] in _SAYING for words in started):
        return False
    return not any(_watches(words) or not _WRITING.isdisjoint(words) for words in started)


def _watches(words: list[str]) -> bool:
    """Return True if a command does not end by itself."""
    known = set(words)
    is_short = "-w" in known and not _SHORT_WATCH.isdisjoint(known)
    # `--watch false` says the opposite.
    is_on = all(after != "false" for word, after in pairwise(words) if word in _ENDLESS)
    return is_short or (is_on and not _ENDLESS.isdisjoint(known))


def _manager(folder: Folder) -> str:
    """Return the program that runs scripts, by the package or by its lock file."""
    manager = at(folder.json(_FILE), "packageManager")
    name = manager.partition("@")[0] if isinstance(manager, str) else ""
    if name in _LOCKS:
        return name
    found = (name for name, locks in _LOCKS.items() if any(map(folder.above, locks)))
    return next(found, "npm")


def _test(manager: str) -> str:
    # `bun test` is a runner of its own, and not the script.
    return "bun run test" if manager == "bun" else f"{manager} test"
