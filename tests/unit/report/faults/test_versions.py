"""Asking a program for its version."""

import os

import pytest

from notyet.status.faults import programs as versions
from notyet.status.faults.programs import Version, find_program, version_of


@pytest.fixture
def said_by(tmp_path):
    def said_by(script):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return version_of(str(program), dict(os.environ))

    return said_by


@pytest.mark.parametrize(
    ("says", "text", "parts"),
    [
        ("2.1.325 (Claude Code)", "2.1.325", (2, 1, 325)),
        ("codex-cli 0.166.0", "0.166.0", (0, 166, 0)),
        ("WARNING: 3 things\ncodex-cli 0.150.0-alpha.2", "0.150.0", (0, 150, 0)),
        ("v1.2.3 and 4.5", "4.5", (4, 5)),
    ],
)
def test_the_first_number_with_dots_is_the_version(said_by, says, text, parts):
    version = said_by(f"echo '{says}'")
    assert (version.text, version.parts, version.problem) == (text, parts, "")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo hello", "it did not name a version"),
        ("", "it did not name a version"),
        ("head -c 9000000 /dev/zero", "it did not name a version"),
        ("echo '\033[31mbroken' >&2; exit 3", "it ended with exit code 3: broken"),
        ("exit 1", "it ended with exit code 1"),
        ("kill -9 $$", "it ended with signal 9"),
    ],
)
def test_a_program_that_names_none_is_told(said_by, script, problem):
    assert said_by(script) == Version(problem=problem)


def test_a_program_that_hangs_is_ended(said_by, monkeypatch):
    monkeypatch.setattr(versions, "PATIENCE", 0.3)
    assert said_by("sleep 60").problem == "it did not answer within 0.3 s"


def test_a_program_that_is_not_there_is_told():
    assert version_of("/no/such", {}).problem == "the program '/no/such' does not exist"
    assert Version().parts == ()


def test_a_program_is_found_on_the_path_that_is_given(tmp_path):
    assert find_program("sh", {"PATH": "/bin"}) == "/bin/sh"
    assert find_program("sh", {"PATH": str(tmp_path)}) == ""
    assert find_program("sh", {}) == ""
