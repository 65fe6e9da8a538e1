"""What the page on setting up says is found, and what it says of validate is printed."""

from pathlib import Path

import pytest

from notyet.cli.main import main
from notyet.project import detect

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "set-up.md").read_text(encoding="utf-8")
# What shows each command of the page.
SHOWS = {
    "pytest -q": ("pytest.ini", ""),
    "ruff check .": ("ruff.toml", ""),
    "ruff format --check .": ("pyproject.toml", "[tool.ruff.format]\n"),
    "mypy": ("mypy.ini", "[mypy]\nfiles = src\n"),
    "pyright": ("pyrightconfig.json", "{}"),
    "tox": ("tox.ini", ""),
    "nox": ("noxfile.py", ""),
    "npm test": ("package.json", '{"scripts": {"test": "x"}}'),
    "npm run lint": ("package.json", '{"scripts": {"lint": "x"}}'),
    "cargo test --quiet": ("Cargo.toml", "[package]\n"),
    "cargo clippy --quiet -- -D warnings": ("Cargo.toml", "[package]\n"),
    "cargo fmt --all --check": ("Cargo.toml", "[package]\n"),
    "go test ./...": ("go.mod", "module x\n"),
    "go vet ./...": ("go.mod", "module x\n"),
    "golangci-lint run": ("go.mod", "module x\n", ".golangci.yml"),
    "pre-commit run --all-files": (".pre-commit-config.yaml", "repos: []\n"),
    "ruff check --no-fix .": ("ruff.toml", "fix = true\n"),
    "ty check": ("ty.toml", ""),
    "python3 manage.py test": ("manage.py", 'os.environ.setdefault("DJANGO_X")\n'),
    "npx --no-install tsc --noEmit": ("tsconfig.json", "{}"),
    "npx --no-install biome ci .": ("biome.json", "{}"),
    "./gradlew check --quiet": ("build.gradle", "", "gradlew"),
    "./mvnw --batch-mode --quiet verify": ("pom.xml", "", "mvnw"),
    "bundle exec rspec": ("Gemfile", "", ".rspec"),
    "bundle exec rake test": ("Gemfile", "", "Rakefile", "task :test\n"),
    "bundle exec rubocop": ("Gemfile", "gem 'rubocop'\n"),
    "composer run-script test": ("composer.json", '{"scripts": {"test": "x"}}'),
    "composer run-script phpstan": ("composer.json", '{"scripts": {"phpstan": "x"}}'),
    "vendor/bin/pint --test": ("composer.json", '{"require-dev": {"laravel/pint": "1"}}'),
    "mix test": ("mix.exs", ""),
    "mix format --check-formatted": ("mix.exs", "", ".formatter.exs"),
    "dotnet test X.sln": ("X.sln", ""),
    "swift test --quiet": ("Package.swift", ".testTarget()\n"),
    "deno task test": ("deno.json", '{"tasks": {"test": "x"}}'),
    "deno test": ("deno.json", "{}"),
    "deno lint": ("deno.json", "{}"),
    "deno fmt --check": ("deno.json", "{}"),
    "cmake --build build && ctest --test-dir build --output-on-failure": (
        "CMakeLists.txt",
        "enable_testing()\n",
    ),
    "prek run --all-files": ("prek.toml", ""),
    "lefthook run pre-commit --all-files": ("lefthook.yml", "pre-commit:\n"),
    "hk check --all": ("hk.pkl", ""),
    "make test": ("Makefile", "test:\n"),
    "just test": ("justfile", "test:\n"),
    "task test": ("Taskfile.yml", "tasks:\n  test:\n"),
    "python3 -m unittest": (
        "test_x.py",
        "import unittest\nclass T(unittest.TestCase): ...\n",
    ),
}


def test_every_command_of_the_page_is_shown_by_something():
    rows = PAGE.split("## What it looks for")[1].split("\n\n")[1].splitlines()[2:]
    named = {part for row in rows for part in row.split("|")[3].split("`")[1::2]}
    assert named == set(SHOWS)


@pytest.mark.parametrize("command", SHOWS)
def test_a_command_of_the_page_is_found(command, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    shown = SHOWS[command]
    for name, text in zip(shown[::2], [*shown[1::2], ""], strict=False):
        (tmp_path / name).write_text(text)
    assert command in [one.run for one in detect(str(tmp_path)).proposals]


def test_the_mistake_of_the_page_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = '[limits]\nmax_blocks = 3\n\n[gates]\nlint = "true"\n'
    text += '[gates.tests]\ntimeuot = 5\nrun = "true"\n'
    (tmp_path / "notyet.toml").write_text(text)
    assert main(["validate"]) == 1
    shown = PAGE.split("$ notyet validate\n")[1].split("```")[0]
    assert capsys.readouterr().out == shown
