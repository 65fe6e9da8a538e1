"""Which files of a repository are the scripts that gates run."""

import pytest

from notyet.gates.guard.gate_scripts import gate_scripts

FILES = {
    "check.sh": "#!/bin/bash\nscripts/inner.sh --all\n",
    "scripts/inner.sh": "pytest\n",
    "scripts/gate.py": "print()\n",
    "tools/lint/__main__.py": "print()\n",
    "Makefile": "test: build\n\t@cd web && ./run-all\n\t-bash scripts/inner.sh\n",
    "web/run-all": "#!/usr/bin/env bash\nnpm test\n",
    "web/package.json": '{"scripts": {"pretest": "node setup.js", "test": "mocha"}}',
    "web/setup.js": "1\n",
    "package.json": '{"scripts": {"check": "sh check.sh", "build": "tsc"}}',
    "tox.ini": "[testenv]\n",
    "noxfile.py": "import nox\n",
    ".pre-commit-config.yaml": "repos: []\n",
    "tests/test_a.py": "def test_a(): pass\n",
    "src/a.py": "a = 1\n",
    "loop.sh": "sh loop.sh\n. ./loop.sh\n",
}


def found(line, folder="", **more):
    command = {"line": line, "dir": f"/repo/{folder}", "file": "/repo/notyet.toml"} | more
    return set(gate_scripts([command], "/repo", FILES.get))


@pytest.mark.parametrize(
    ("line", "scripts"),
    [
        ("pytest tests/test_a.py src/a.py", set()),
        ("ruff check src/a.py", set()),
        ("./check.sh", {"check.sh", "scripts/inner.sh"}),
        ("bash -e scripts/inner.sh", {"scripts/inner.sh"}),
        ("sh -c 'bash scripts/inner.sh && true'", {"scripts/inner.sh"}),
        (". scripts/inner.sh", {"scripts/inner.sh"}),
        ("cd scripts && ./inner.sh", {"scripts/inner.sh"}),
        ("CI=1 timeout 60 uv run --frozen python scripts/gate.py", {"scripts/gate.py"}),
        ("python -m tools.lint", {"tools/lint/__main__.py"}),
        ("python3 -m tox -e py", {"tox.ini"}),
        ("tox", {"tox.ini"}),
        ("uvx nox -s tests", {"noxfile.py"}),
        ("coverage run -m scripts.gate", {"scripts/gate.py"}),
        ("pre-commit run -a", {".pre-commit-config.yaml"}),
        ("npm run check", {"package.json", "check.sh", "scripts/inner.sh"}),
        ("npm --prefix web test", {"web/package.json", "web/setup.js"}),
        ("npm install", set()),
        (
            "make -s test",
            {
                *("Makefile", "web/run-all", "web/package.json", "web/setup.js"),
                "scripts/inner.sh",
            },
        ),
        ("sh ../../etc/passwd; sh /etc/passwd; sh", set()),
        ("sh loop.sh", {"loop.sh"}),
        ("echo 'unclosed; sh check.sh", {"check.sh", "scripts/inner.sh"}),
    ],
)
def test_a_command_line_names_its_scripts(line, scripts):
    assert found(line) == scripts


def test_a_gate_runs_in_its_own_folder():
    assert found("npm t", "web") == {"web/package.json", "web/setup.js"}
    assert found("./check.sh", "../elsewhere") == set()


def test_fix_python_and_uses_name_scripts_too():
    assert found("ruff check", fix="bash scripts/inner.sh") == {"scripts/inner.sh"}
    assert found("", python="scripts/gate.py:check") == {"scripts/gate.py"}
    assert found("", uses="pre-commit") == {".pre-commit-config.yaml"}


def test_a_huge_and_a_hostile_line_take_little():
    assert found("a " * 1_000_000) == set()
    assert found("((((" * 100_000 + "'\"`$(") == set()
