"""The scripts of a package.json, run by whichever of npm, pnpm, yarn and bun the project uses."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING

from notyet.config.shell import commands
from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.config.document import Document
    from notyet.project.folder import Folder

_FILE = "package.json"
# The first of these that checks and does not write: a twin before the one that mostly writes.
_SCRIPTS = {
    "format": (
        *("format:check", "check:format", "format-check", "check-format", "format:ci"),
        *("fmt:check", "fmt:ci", "prettier:check", "lint:format", "format", "fmt", "prettier"),
    ),
    "lint": ("lint:check", "check:lint", "lint-check", "lint:ci", "ci:lint", "lint", "lint:js"),
    "types": (
        *("typecheck", "type-check", "check-types", "check:types", "types:check", "check:type"),
        *("ts:check", "tsc", "types", "test:types"),
    ),
    "build": ("build",),
    "tests": ("test", "test:ci", "test:run", "test:unit", "tests"),
}
_MAYBE = frozenset(("format", "fmt", "prettier", "lint:format"))  # checks only with one of:
_CHECKING = frozenset(("--check", "-c", "--list-different", "-l", "check", "ci"))
_PLACEHOLDER = "no test specified"  # what `npm init` writes
_ENDLESS = frozenset(
    ("--watch", "--watchAll", "--watch=true", "--watchAll=true", "watch", "nodemon")
)
_SHORT_WATCH = frozenset(("ava", "mocha", "rollup", "tsc", "vite", "vue-tsc", "webpack"))  # of `-w`
_WRITING = frozenset(
    ("--fix", "--write", "--apply", "--updateSnapshot", "--update-snapshots", "--unsafe")
)
_SHORT_WRITE = {"-w": "prettier", "-u": "jest", "--update": "vitest"}
_SAYING = frozenset((":", "echo", "exit", "printf", "true"))
# Programs that build without writing to sources; any other program of a build may.
_BUILDING = frozenset(
    (
        *("astro", "del-cli", "esbuild", "mkdir", "next", "nuxt", "parcel", "premove", "rimraf"),
        *("rm", "rolldown", "rollup", "svelte-kit", "tsc", "tsdown", "tsup", "unbuild", "vite"),
        *("vue-tsc", "webpack"),
    )
)
_ALL_OF = frozenset(("npm-run-all", "run-p", "run-s"))  # run all scripts that they name
_LOCKS = {
    "pnpm": ("pnpm-lock.yaml",),
    "yarn": ("yarn.lock",),
    "bun": ("bun.lock", "bun.lockb"),
    "npm": ("package-lock.json", "npm-shrinkwrap.json"),
}
_STARTS = {"npm": "npx --no-install", "pnpm": "pnpm exec", "yarn": "yarn run", "bun": "bunx"}
_TSCONFIG = "tsconfig.json"


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield a gate for each script that checks something, and for TypeScript without a script."""
    document = folder.json(_FILE)
    scripts = at(document, "scripts")
    known = scripts if isinstance(scripts, dict) else {}
    manager = _manager(folder)
    names = set()
    has_tsc = False
    for name, keys in _SCRIPTS.items():
        key = next((key for key in keys if _is_check(name, key, known, folder)), "")
        if key:
            names.add(name)
            has_tsc |= any("tsc" in word for words in _steps(known, key) for word in words[:2])
            run = _test(manager) if key == "test" else f"{manager} run {key}"
            yield _proposal(
                folder, name, manager, run, (_FILE, document.locate(("scripts", key))[0])
            )
    uses_it = not folder.has(_FILE) or "typescript" in _dependencies(document)
    if folder.has(_TSCONFIG) and uses_it and not has_tsc and "types" not in names:
        run = f"{package_program(folder)} tsc --noEmit"
        yield _proposal(folder, "types", "tsc", run, (_TSCONFIG, 1))


def _proposal(folder: Folder, name: str, tool: str, run: str, place: tuple[str, int]) -> Proposal:
    is_installed = not _dependencies(folder.json(_FILE)) or any(
        map(folder.above, ("node_modules", ".pnp.cjs"))
    )
    return Proposal(
        name=name,
        tool=tool,
        run=run,
        file=place[0],
        line=place[1],
        install=install(folder),
        is_installed=is_installed,
    )


def install(folder: Folder) -> str:
    """Return the command that installs the dependencies of a package; empty without a package."""
    if not folder.has(_FILE):
        return ""
    manager = _manager(folder)
    has_lock = any(map(folder.above, _LOCKS["npm"]))
    return "npm ci" if manager == "npm" and has_lock else f"{manager} install"


def package_program(folder: Folder) -> str:
    """Return how a program that a package depends on is started."""
    return _STARTS[_manager(folder)]


def _dependencies(document: Document) -> set[str]:
    tables = (at(document, key) for key in ("dependencies", "devDependencies"))
    return {str(name) for table in tables if isinstance(table, dict) for name in table}


def _steps(
    scripts: Mapping[str, object], key: str, seen: set[str] | None = None
) -> Iterator[list[str]]:
    """Yield the commands of a script, of those before and after it, and of those it runs."""
    seen = set() if seen is None else seen
    for name in (f"pre{key}", key, f"post{key}"):
        script = scripts.get(name)
        if not isinstance(script, str) or name in seen:
            continue
        seen.add(name)
        for step in commands(script):
            words = [word for word in step if "=" not in word or word.startswith("-")]
            words = words[words[:1] == ["cross-env"] :]
            if not words:
                continue
            is_list = words[0] in _ALL_OF
            named = [word for word in words[1:] if word in scripts and word != name]
            inner = named if is_list else named[:1] if words[0] in _LOCKS else []
            for other in inner:
                yield from _steps(scripts, other, seen)
            if not inner:
                yield words


def _is_check(name: str, key: str, scripts: Mapping[str, object], folder: Folder) -> bool:
    """Return True if a script looks at something, ends, and changes nothing."""
    script = scripts.get(key)
    if not isinstance(script, str) or _PLACEHOLDER in script:
        return False
    steps = list(_steps(scripts, key))
    if all(words[0] in _SAYING for words in steps) or any(map(_watches, steps)):
        return False
    if any(map(_writes, steps)):
        return False
    if key in _MAYBE:
        return all(not _CHECKING.isdisjoint(words) for words in steps)
    return name != "build" or all(_builds(words, folder) for words in steps)


def _watches(words: list[str]) -> bool:
    """Return True if a command does not end by itself."""
    known = set(words)
    is_short = "-w" in known and not _SHORT_WATCH.isdisjoint(known)
    # `--watch false` says the opposite.
    is_on = all(after != "false" for word, after in pairwise(words) if word in _ENDLESS)
    return is_short or (is_on and not _ENDLESS.isdisjoint(known))


def _writes(words: list[str]) -> bool:
    is_short = any(short in words and word in words for short, word in _SHORT_WRITE.items())
    return is_short or not _WRITING.isdisjoint(words)


def _builds(words: list[str], folder: Folder) -> bool:
    """Return True if a command of a build leaves the sources alone."""
    program = os.path.basename(words[0])
    if program != "tsc":
        return program in _BUILDING
    # Without a folder for its output, it writes beside the sources.
    text = folder.text(_TSCONFIG) + " ".join(words)
    return any(word in text for word in ("outDir", "outFile", "noEmit"))


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
