"""What a project checks itself with is found in its files, and nowhere else."""

import pytest

from notyet.project import detect
from projects import shown


def install(folder, *names):
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)


def test_tables_of_pyproject_show_the_tools(project):
    text = '[project]\nname = "x"\n[tool.ruff]\n[tool.ruff.format]\n[tool.mypy]\nfiles = "src"\n'
    root = project({"pyproject.toml": text + "[tool.pyright]\n[tool.pytest.ini_options]\n"})
    assert shown(root) == {
        "format": "ruff format --check . |  | pyproject.toml:4",
        "lint": "ruff check . |  | pyproject.toml:3",
        "types-mypy": "mypy |  | pyproject.toml:5",
        "types-pyright": "pyright |  | pyproject.toml:7",
        "tests": "pytest -q |  | pyproject.toml:8",
    }


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"pytest.ini": "[pytest]\n"}, "pytest.ini:1"),
        ({"tox.ini": "[tox]\n\n[pytest]\n"}, "tox.ini:3"),
        ({"requirements-dev.txt": "# a\nPyTest>=7\n"}, "requirements-dev.txt:2"),
        ({"pyproject.toml": '[project]\ndependencies = ["pytest"]\n'}, "pyproject.toml:2"),
        (
            {"pyproject.toml": '[dependency-groups]\ndev = [\n"a",\n"pytest>8"]\n'},
            "pyproject.toml:4",
        ),
        (
            {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'},
            "pyproject.toml:2",
        ),
    ],
)
def test_pytest_is_shown_in_many_ways(project, files, place):
    assert shown(project(files))["tests"].endswith(f"| {place}")


@pytest.mark.parametrize(
    ("config", "run"),
    [
        ({"mypy.ini": "[mypy]\nstrict = true\n[mypy-x]\nfiles = src\n"}, "mypy ."),
        ({"setup.cfg": "[mypy]\npackages=a\n"}, "mypy"),
        ({"pyproject.toml": "[tool.mypy]\nstrict = true\n"}, "mypy ."),
    ],
)
def test_mypy_is_told_the_files_unless_it_knows_them(project, config, run):
    assert shown(project(config))["types"].split(" |")[0] == run


@pytest.mark.parametrize(
    ("files", "tools", "run"),
    [
        ({"uv.lock": ""}, ["uv"], "uv run --with pytest pytest -q"),
        ({"uv.lock": ""}, [], "uv run --with pytest pytest -q"),
        ({"uv.lock": "", ".venv/bin/pytest": ""}, [], ".venv/bin/pytest -q"),
        ({"pyproject.toml": "[tool.hatch.envs.default]\n"}, ["hatch"], "hatch run pytest -q"),
        ({"pyproject.toml": '[tool.hatch.version]\npath = "x"\n'}, ["hatch"], "pytest -q"),
        ({"venv/bin/pytest": ""}, [], "venv/bin/pytest -q"),
        ({}, [], "pytest -q"),
    ],
)
def test_the_manager_of_a_project_starts_its_programs(project, files, tools, run):
    install(project.tools, *tools)
    assert shown(project({"pytest.ini": "", **files}))["tests"].split(" |")[0] == run


def test_a_folder_of_a_project_uses_the_environment_of_the_project(project):
    root = project({"api/pytest.ini": "", ".venv/bin/pytest": ""})
    assert shown(root) == {"api-tests": "../.venv/bin/pytest -q | api | api/pytest.ini:1"}


def test_tox_and_nox_count_where_there_is_no_pytest(project):
    assert shown(project({"tox.ini": "[tox]\n"})) == {"tests": "tox |  | tox.ini:1"}


def test_cargo_tests_lints_and_formats(project):
    assert shown(project({"Cargo.toml": '# x\n[package]\nname = "x"\n'})) == {
        "format": "cargo fmt --all --check |  | Cargo.toml:2",
        "lint": "cargo clippy --quiet -- -D warnings |  | Cargo.toml:2",
        "tests": "cargo test --quiet |  | Cargo.toml:2",
    }


def test_go_tests_and_vets(project):
    assert shown(project({"go.mod": "\nmodule x\n"})) == {
        "lint": "go vet ./... |  | go.mod:2",
        "tests": "go test ./... |  | go.mod:2",
    }


def test_a_target_counts_only_for_what_nothing_else_is_about(project):
    root = project({"Makefile": "test:\nlint:\ncheck:\n", "pytest.ini": ""})
    assert {name: line.split()[0] for name, line in shown(root).items()} == {
        "tests": "pytest",
        "lint": "make",
    }


def test_tests_of_the_standard_library_are_the_last_resort(project):
    tests = "import unittest\n\nclass T(unittest.TestCase):\n    pass\n"
    root = project({"a.py": tests, "test_a.py": tests})
    assert shown(root) == {"tests": "python3 -m unittest |  | test_a.py:3"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import unittest.mock\nclass T(TestCase): pass\n", False),
        ("import unittest\ndef test_x(): pass\n", False),
        ("import unittest\nclass T: # TestCase\n pass\n", False),
        ("from django.test import TestCase\nclass T(TestCase): pass\n", False),
        ("from unittest import TestCase\nclass T(TestCase): pass\n", True),
        ("import unittest\nclass T(\n    Mixin,\n    unittest.TestCase,\n): pass\n", True),
    ],
)
def test_only_a_class_of_tests_shows_unittest(project, text, found):
    assert bool(shown(project({"test_a.py": text}))) is found


def test_pre_commit_checks_all_files(project):
    root = project({".pre-commit-config.yaml": "# x\nrepos: []\n", ".venv/bin/pre-commit": ""})
    assert shown(root) == {
        "pre-commit": ".venv/bin/pre-commit run --all-files |  | .pre-commit-config.yaml:2"
    }


def test_folders_one_level_down_are_looked_at(project):
    package = {"scripts": {"test": "x"}}
    root = project(
        {
            "web/package.json": package,
            "api v2/go.mod": "module x\n",
            "node_modules/x/package.json": package,
            "node_modules/package.json": package,
            "docs/package.json": package,
            ".hidden/package.json": package,
            "deep/er/package.json": package,
        }
    )
    assert shown(root) == {
        "api-v2-lint": "go vet ./... | api v2 | api v2/go.mod:1",
        "api-v2-tests": "go test ./... | api v2 | api v2/go.mod:1",
        "web-tests": "npm test | web | web/package.json:3",
    }


@pytest.mark.parametrize(
    ("name", "text", "own"),
    [
        ("package.json", '{"scripts": {"test": "jest", "lint": "x"}}', {"tests", "lint"}),
        ("Makefile", "test:\n", {"tests"}),
        ("go.mod", "module x\n", {"tests", "lint"}),
        ("Cargo.toml", "[package]\n", {"tests", "lint", "format"}),
        (".pre-commit-config.yaml", "repos: []\n", set()),
    ],
)
def test_scripts_targets_and_modules_of_a_folder_are_its_own(project, name, text, own):
    found = shown(project({name: text, f"web/{name}": text}))
    assert {gate for gate in found if gate.startswith("web-")} == {f"web-{gate}" for gate in own}


def test_a_folder_that_no_gate_can_name_is_left_out_and_said(project):
    root = project({"~x/go.mod": "module x\n", "~y/README": "", "a/go.mod": "module x\n"})
    assert set(shown(root)) == {"a-lint", "a-tests"}
    (note,) = detect(root).notes
    assert note.startswith("the folder ~x has a name that no gate can have")


def test_two_tools_for_the_same_are_told_apart(project):
    root = project({"pytest.ini": "", "package.json": {"scripts": {"test": "x"}}})
    assert set(shown(root)) == {"tests-pytest", "tests-npm"}


def test_paths_are_said_where_they_are_evident(project):
    root = project({"api/ruff.toml": "", "api/Cargo.toml": "[package]\n", "pytest.ini": ""})
    paths = {one.name: one.paths for one in detect(root).proposals}
    assert "api/**/*.py" in paths["api-lint-ruff"]
    assert "api/**/*.rs" in paths["api-format"]
    assert paths["tests"] == ()


def test_a_broken_file_is_told_with_its_place_and_the_rest_is_found(project):
    root = project(
        {
            "pyproject.toml": "[tool.ruff]\nx = \n",
            "web/package.json": '{"scripts": {\n  "test": "x",\n}}',
            "go.mod": "module x\n",
        }
    )
    found = detect(root)
    assert [one.tool for one in found.proposals] == ["go", "go"]
    assert [str(mistake).split(": ")[0] for mistake in found.mistakes] == [
        "pyproject.toml:2:5",
        "web/package.json:2:14",
    ]
