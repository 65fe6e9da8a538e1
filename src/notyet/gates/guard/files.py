"""What a file is to the guard, by its path: a test, a snapshot, settings, a script, CI, code."""

from __future__ import annotations

import re
from posixpath import basename, dirname, splitext

_LANGUAGES = {
    "python": (".py", ".pyi"),
    "javascript": (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"),
    "go": (".go",),
    "rust": (".rs",),
    "java": (".java", ".kt", ".kts"),
    "ruby": (".rb",),
    "csharp": (".cs",),
    "php": (".php",),
}
_OF_SUFFIX = {suffix: name for name, suffixes in _LANGUAGES.items() for suffix in suffixes}
# Real histories have shown how often these are right; the others only tell.
BLOCKING = frozenset({"python", "javascript"})

_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/", re.IGNORECASE)
# Sample projects that tests read are data, and other people's code is not this project's tests.
_NOT_TESTS = re.compile(
    r"(?:^|/)(?:__fixtures__|__testfixtures__|fixtures?|testdata|test-data|node_modules|vendor|"
    r"_vendor|third_party|site-packages)/"
)
_TEST_NAME = {
    "python": re.compile(r"^(?:test_.*|.*_test|tests?|conftest)\.py$"),
    "javascript": re.compile(r"(?:^|[._-])(?:tests?|spec|cy|e2e)\.[cm]?[jt]sx?$"),
    "go": re.compile(r"_test\.go$"),
    "rust": re.compile(r"(?:^|_)tests?\.rs$"),
    "java": re.compile(r"(?:Tests?|IT|Spec)\.kts?$|(?:Tests?|IT|TestCase)\.java$"),
    "ruby": re.compile(r"_(?:spec|test)\.rb$"),
    "csharp": re.compile(r"(?:Tests?|Specs?)\.cs$"),
    "php": re.compile(r"(?:Test|Spec|Cest)\.php$"),
}
_COLLECTED = re.compile(r"^(?:test_.*|.*_test|tests?)\.py$")
# pytest's `norecursedirs`, which it has by default.
_NOT_SEARCHED = re.compile(
    r"(?:^|/)(?:\.[^/]+|[^/]+\.egg|_darcs|build|CVS|dist|node_modules|venv)/"
)
_INFIX = re.compile(r"[._-](?:tests?|spec)\.[cm]?[jt]sx?$")
_RUST_TEST = re.compile(r"#\[(?:cfg\(test\)|(?:\w+::)*+test\b|rstest\b)")
_SNAPSHOT = re.compile(r"(?:^|/)__snapshots__/|\.(?:snap|ambr|snap\.new)$")
_CI = re.compile(
    r"^\.github/(?:workflows|actions)/|(?:^|/)(?:\.gitlab-ci[^/]*\.ya?ml|\.travis\.yml|"
    r"azure-pipelines[^/]*\.ya?ml|Jenkinsfile|\.drone\.yml|bitbucket-pipelines\.yml|"
    r"\.?appveyor\.yml|\.cirrus\.(?:yml|star))$|(?:^|/)\.(?:circleci|buildkite|gitlab-ci)/"
)
_SCRIPT = re.compile(
    r"(?:^|/)(?:GNUmakefile|[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml|package\.json|tox\.(?:ini|toml)|"
    r"noxfile\.py|\.pre-commit-config\.yaml|\.?lefthook\.ya?ml|composer\.json|Rakefile|"
    r"build\.gradle(?:\.kts)?|pom\.xml)$|\.(?:sh|bash)$|(?:^|/)\.husky/"
)
_SETTINGS = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?pytest\.(?:ini|toml)|\.?ruff\.toml|"
    r"\.?mypy\.ini|\.flake8|\.coveragerc|\.?pylintrc(?:\.toml)?|pyrightconfig\.json|ty\.toml|"
    r"\.eslintrc(?:\.\w+)?|eslint\.config\.\w+|\.eslintignore|tsconfig[^/]*\.json|biome\.jsonc?|"
    r"\.oxlintrc\.json|jest\.config\.\w+|vitest\.config\.\w+|vite\.config\.\w+|\.nycrc(?:\.\w+)?|"
    r"nyc\.config\.\w+|\.c8rc(?:\.\w+)?|\.taprc|\.mocharc\.\w+|playwright\.config\.\w+|"
    r"\.golangci\.\w+|clippy\.toml|\.rubocop[^/]*\.yml|\.simplecov|phpunit\.xml[^/]*|"
    r"phpstan\.neon[^/]*|package\.json|\.?codecov\.ya?ml|\.pre-commit-config\.yaml)$"
)
_NOTYET = re.compile(r"(?:^|/)\.?notyet\.toml$")


def language(path: str) -> str:
    """Return the language of a source file; empty for other files."""
    return _OF_SUFFIX.get(splitext(path)[1].lower(), "")


def is_test(path: str, text: str = "") -> bool:
    """Return True for a source file of tests; a Rust source counts if tests are inside it."""
    of = language(path)
    if not of or _NOT_TESTS.search(path):
        return False
    if of == "rust" and _RUST_TEST.search(text):
        return True
    in_folder = _TEST_FOLDER.search(path) and of != "go"
    return bool(in_folder or _TEST_NAME[of].search(basename(path)))


def is_collected(path: str) -> bool:
    """Return True unless a Python file has a name or a place that pytest leaves out by default."""
    if language(path) != "python":
        return True
    return bool(_COLLECTED.search(basename(path))) and not _NOT_SEARCHED.search(path)


def loses_tests(old: str, new: str) -> bool:
    """Return True if a test file got a name by which test runners do not find it."""
    if language(old) == "javascript" and dirname(old) == dirname(new):
        return bool(_INFIX.search(old)) and not _INFIX.search(new)
    return is_collected(old) and not is_collected(new)


def is_conftest(path: str) -> bool:
    """Return True for a conftest.py, which pytest loads for the tests below its folder."""
    return basename(path) == "conftest.py"


def is_snapshot(path: str) -> bool:
    """Return True for a file of expected output that a test runner writes."""
    return bool(_SNAPSHOT.search(path)) and not language(path)


def is_ci(path: str) -> bool:
    """Return True for a file that a CI service reads."""
    return bool(_CI.search(path))


def is_script(path: str) -> bool:
    """Return True for a file that usually holds the commands of checks."""
    return bool(_SCRIPT.search(path)) and not _NOT_TESTS.search(path)


def is_settings(path: str) -> bool:
    """Return True for a settings file of a test runner, linter, type checker or coverage tool."""
    return bool(_SETTINGS.search(path)) and not _NOT_TESTS.search(path)


def is_notyet_config(path: str) -> bool:
    """Return True for a file of notyet's own configuration."""
    return bool(_NOTYET.search(path))


def is_read(path: str) -> bool:
    """Return True if any rule reads the content of this file."""
    return bool(language(path)) or any(
        check(path) for check in (is_settings, is_script, is_ci, is_snapshot, is_notyet_config)
    )
