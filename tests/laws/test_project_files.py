"""Whatever stands in a project's files, a valid notyet.toml comes of it."""

import os
import tempfile

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notyet.cli.init import Trial, file_text
from notyet.config.compile import compile_text
from notyet.project import detect

NAMES = (
    "pyproject.toml",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "Makefile",
    "justfile",
    "Taskfile.yml",
    ".pre-commit-config.yaml",
    "setup.cfg",
    "requirements.txt",
    "test_x.py",
)
PIECES = (
    *("[tool.pytest]", "[tool.ruff]", "[tool]", "ruff = 5", "[project]", 'dependencies = ["mypy"]'),
    *("[package]", "[workspace", "[dependency-groups]", "dev = [1, {}]", "[tool.mypy]", "files=x"),
    *('{"scripts": {"test": "x", "lint": 5}}', '{"scripts": [', '"packageManager": "bun@1"', "}"),
    *("module x", "test:", "lint check : a", "tasks:", "  test:", "repos:", "[mypy]", "pytest>=1"),
    *("import unittest", "\x00", "\x1b[2K", "é", "\udcff", '"', "'''", "\\", "=", "[[", "\r", "\t"),
)
contents = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=8).map(
    lambda parts: "\n".join(parts).encode("utf-8", "surrogateescape")
)
folders = st.sampled_from(
    ("", "web", "a b", "[x]", 'q"\\', "é", "*", "~", "~root", "-x", "$(x)", "\udcff", "a\nb")
)
reasons = st.text(max_size=40)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.dictionaries(st.tuples(folders, st.sampled_from(NAMES)), contents, max_size=5),
    result=st.sampled_from(("passed", "failed", "left out", "not tried")),
    why=reasons,
    seconds=st.floats(0, 600),
)
def test_a_file_without_mistakes_comes_of_any_project(files, result, why, seconds):
    with tempfile.TemporaryDirectory() as root:
        for (folder, name), content in files.items():
            os.makedirs(os.path.join(root, folder), exist_ok=True)
            with open(os.path.join(root, folder, name), "wb") as file:
                file.write(content)
        found = detect(root)
        trials = [
            Trial(proposal=proposal, result=result, why=why, seconds=seconds)
            for proposal in found.proposals
        ]
        text = file_text(trials)
        text.encode()
        read = compile_text(text, os.path.join(root, "notyet.toml"))
    assert read.mistakes == ()
    names = [] if result == "left out" else [trial.proposal.name for trial in trials]
    assert [gate.name for gate in read.gates] == names
    assert [gate.check.script for gate in read.gates] == [
        trial.proposal.run for trial in trials if names
    ]
