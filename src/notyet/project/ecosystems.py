"""The table of ecosystems: the files that show one, its gates, and what it needs first."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from notyet.project.folder import Proposal
from notyet.project.node import install, package_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from notyet.project.folder import Folder


@dataclass(frozen=True)
class _Gate:
    """A command. Of gates with one name, the first counts whose signs are there."""

    name: str
    run: str  # `{sign}` is the file that shows it, `{npx}` starts a program of a Node package
    signs: tuple[str, ...] = ()  # one of them is there; see `Folder.sign`
    unless: tuple[str, ...] = ()  # none of them is there
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Ecosystem:
    """An ecosystem, which one of its signs shows."""

    tool: str
    signs: tuple[str, ...]
    gates: tuple[_Gate, ...]
    install: str = ""
    installed: tuple[str, ...] = ()  # one of them is there after `install`
    recursive: tuple[str, ...] = ()  # one of them is there: the gates cover inner folders, too
    # Beside others: always, only for names that no other has, or not at all.
    beside: Literal["always", "filling", "never"] = "always"


_DENO = ("deno.json", "deno.jsonc")
_LEFTHOOK = tuple(f"{dot}lefthook.{end}" for dot in ("", ".") for end in ("yml", "yaml"))
_LEFTHOOK_WRITES = tuple(f"{name}: stage_fixed: *true" for name in _LEFTHOOK)
_RUST_FILES = ("**/*.rs", "**/rustfmt.toml", "**/.rustfmt.toml", "**/Cargo.toml")
_WORKSPACE = ("Cargo.toml#workspace",)
_RUBOCOP = (".rubocop.yml", "Gemfile: rubocop")
_TESTS_OF_CMAKE = (r"CMakeLists.txt: (?i)\b(?:enable_testing|add_test|include *\( *ctest)\b",)
_TESTS_OF_SWIFT = ("Tests", "Package.swift: testTarget")


def _tasks(name: str) -> tuple[str, ...]:
    # By a pattern, because these files may have comments.
    return tuple(f'{file}: "{name}" *:' for file in _DENO)


_TABLE = (
    _Ecosystem(
        tool="cargo",
        signs=("Cargo.toml#package", "Cargo.toml#workspace"),
        recursive=_WORKSPACE,
        gates=(
            _Gate("format", "cargo fmt --all --check", paths=_RUST_FILES),
            _Gate("lint", "cargo clippy --workspace --quiet -- -D warnings", _WORKSPACE),
            _Gate("lint", "cargo clippy --quiet -- -D warnings"),
            _Gate("tests", "cargo test --workspace --quiet", _WORKSPACE),
            _Gate("tests", "cargo test --quiet"),
        ),
    ),
    _Ecosystem(
        tool="go",
        signs=("go.mod: ^module",),
        gates=(
            _Gate(
                "lint",
                "golangci-lint run",  # which vets, too
                tuple(f".golangci.{end}" for end in ("yml", "yaml", "toml", "json")),
            ),
            _Gate("lint", "go vet ./..."),
            _Gate("tests", "go test ./..."),
        ),
    ),
    _Ecosystem(
        tool="gradle",
        recursive=("settings.gradle", "settings.gradle.kts"),
        signs=tuple(
            f"{name}.gradle{end}" for name in ("build", "settings") for end in ("", ".kts")
        ),
        gates=(
            _Gate("check", "./gradlew check --quiet", ("gradlew",)),
            _Gate("check", "gradle check --quiet"),
        ),
    ),
    _Ecosystem(
        tool="maven",
        signs=("pom.xml",),
        recursive=("pom.xml: <modules>",),
        gates=(
            _Gate("check", "./mvnw --batch-mode --quiet verify", ("mvnw",)),
            _Gate("check", "mvn --batch-mode --quiet verify"),
        ),
    ),
    _Ecosystem(
        tool="ruby",
        signs=("Gemfile",),
        gates=(
            _Gate("lint", "bundle exec rubocop", _RUBOCOP),
            _Gate("lint", "bundle exec standardrb", (".standard.yml", "Gemfile: standard")),
            _Gate("tests", "bundle exec rspec", (".rspec", "spec/spec_helper.rb")),
            _Gate("tests", "bin/rails test", ("bin/rails",)),
            _Gate("tests", "bundle exec rake test", (r"Rakefile: TestTask|\btask\W+test\b",)),
        ),
        install="bundle install",
    ),
    _Ecosystem(
        tool="php",
        signs=("composer.json",),
        gates=(
            _Gate("format", "vendor/bin/pint --test", ('composer.json: "laravel/pint"',)),
            _Gate("types", "composer run-script phpstan", ("composer.json#scripts/phpstan",)),
            _Gate(
                "types",
                "vendor/bin/phpstan analyse --no-progress",
                ("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"),
            ),
            _Gate("tests", "composer run-script test", ("composer.json#scripts/test",)),
            _Gate("tests", "vendor/bin/phpunit", ("phpunit.xml", "phpunit.xml.dist")),
        ),
        install="composer install",
        installed=("vendor/autoload.php",),
    ),
    _Ecosystem(
        tool="mix",
        signs=("mix.exs",),
        gates=(
            _Gate("format", "mix format --check-formatted", (".formatter.exs",)),
            _Gate("lint", "mix credo", ("mix.exs: :credo",)),
            _Gate("tests", "mix test"),
        ),
        install="mix deps.get",
        installed=("deps", "mix.exs: deps: *\\[\\]"),
    ),
    _Ecosystem(
        tool="dotnet",
        signs=("*.sln", "*.slnx", "*.csproj", "*.fsproj"),
        recursive=("*.sln", "*.slnx"),
        gates=(_Gate("tests", "dotnet test {sign}"),),
    ),
    _Ecosystem(
        tool="swift",
        signs=("Package.swift",),
        gates=(
            _Gate("tests", "swift test --quiet", _TESTS_OF_SWIFT),
            _Gate("build", "swift build --quiet", unless=_TESTS_OF_SWIFT),
        ),
    ),
    _Ecosystem(
        tool="deno",
        signs=_DENO,
        gates=(
            _Gate("format", "deno task fmt:check", _tasks("fmt:check")),
            _Gate("format", "deno fmt --check"),
            _Gate("lint", "deno task lint", _tasks("lint")),
            _Gate("lint", "deno lint"),
            _Gate("types", "deno task check", _tasks("check")),
            _Gate("tests", "deno task test", _tasks("test")),
            _Gate("tests", "deno test"),
        ),
        beside="never",
    ),
    _Ecosystem(
        tool="cmake",
        recursive=("CMakeLists.txt",),
        signs=("CMakeLists.txt",),
        gates=(
            _Gate(
                "tests",
                "cmake --build build && ctest --test-dir build --output-on-failure",
                _TESTS_OF_CMAKE,
            ),
            _Gate("build", "cmake --build build", unless=_TESTS_OF_CMAKE),
        ),
        install="cmake -S . -B build",
        installed=("build/CMakeCache.txt",),
        beside="never",
    ),
    _Ecosystem(
        tool="biome",
        signs=("biome.json", "biome.jsonc"),
        gates=(_Gate("lint", "{npx} biome ci ."),),
        beside="filling",
    ),
    _Ecosystem(
        tool="lefthook",
        signs=tuple(f"{name}: ^pre-commit:" for name in _LEFTHOOK),
        gates=(
            _Gate(
                "lefthook",
                "{npx} lefthook run pre-commit --all-files",
                ('package.json: "lefthook"',),
                _LEFTHOOK_WRITES,
            ),
            _Gate("lefthook", "lefthook run pre-commit --all-files", unless=_LEFTHOOK_WRITES),
        ),
    ),
    _Ecosystem(tool="hk", signs=("hk.pkl",), gates=(_Gate("hk", "hk check --all"),)),
)


def proposals(folder: Folder, known: AbstractSet[str]) -> Iterator[Proposal]:
    """Yield the gates of the table, in a folder that has gates of these names already."""
    names = set(known)
    for row in _TABLE:
        place = _first(folder, row.signs)
        if place is None or (row.beside == "never" and names):
            continue
        taken = set(names) if row.beside == "filling" else set()
        for gate in row.gates:
            shown = _first(folder, gate.signs) if gate.signs else place
            if gate.name in taken or shown is None or _first(folder, gate.unless):
                continue
            taken.add(gate.name)
            yield _proposal(folder, row, gate, shown)
        names |= taken


def recursive(folder: Folder) -> set[str]:
    """Return the tools whose gates in this folder cover the folders in it."""
    return {row.tool for row in _TABLE if _first(folder, row.recursive)}


def _first(folder: Folder, signs: tuple[str, ...]) -> tuple[str, int] | None:
    return next(filter(None, map(folder.sign, signs)), None)


def _proposal(folder: Folder, row: _Ecosystem, gate: _Gate, shown: tuple[str, int]) -> Proposal:
    npx = package_program(folder) if "{npx}" in gate.run else ""
    run = gate.run.format(sign=shlex.quote(shown[0]), npx=npx)
    return Proposal(
        name=gate.name,
        tool=row.tool,
        run=run,
        file=shown[0],
        line=shown[1],
        paths=gate.paths,
        install=install(folder) if npx else row.install,
        is_installed=not row.installed or _first(folder, row.installed) is not None,
    )
