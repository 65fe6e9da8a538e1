"""`[tool.notyet]` in a pyproject.toml is the same as a notyet.toml beside it (J6)."""

import os

import pytest

from config_places import commands, setup, write
from notyet.config.compile import compile_text
from notyet.config.files import ConfigFile
from notyet.config.pyproject import in_place, table_of
from notyet.config.trust import candidate

TEXT = """\
[project]
name = "x"

[tool.notyet]
members = ["packages/*"]

[tool.notyet.gates]  # ours
script = '''
# a comment of the script
[ -f x ]
[tool.ruff]
'''
list = [
  "a",
  [1, 2],
]
a = "x"

# About ruff.
[tool.ruff]
line-length = 100

[tool.notyet.limits]
max_blocks = 5
"""
TABLE = """\
[tool.notyet]
members = ["packages/*"]
[tool.notyet.gates]  # ours
script = '''
# a comment of the script
[ -f x ]
[tool.ruff]
'''
list = [
  "a",
  [1, 2],
]
a = "x"
[tool.notyet.limits]
max_blocks = 5
"""


def pyproject(folder, text, *, trusted=True):
    return write(folder, "pyproject.toml", text, trusted=trusted)


def test_the_table_is_cut_out_by_its_lines():
    assert table_of(TEXT) == TABLE == table_of(TABLE) == table_of(TEXT.replace("\n", "\r\n"))
    kept = in_place(TEXT).split("\n")
    assert [line for line in kept if line] == TABLE.removesuffix("\n").split("\n")
    assert all(line in {"", whole} for line, whole in zip(kept, TEXT.split("\n"), strict=True))


@pytest.mark.parametrize("text", ["", "[tool.notyetx]\na = 1\n", "[tool]\nnotyet = 1\n"])
def test_other_tables_are_not_ours(text):
    assert table_of(text) == ""


@pytest.mark.rule("J6", "N5")
def test_the_table_is_like_a_file_and_trusted_alone(tmp_path):
    path = pyproject(tmp_path, '[tool.notyet.gates]\na = "x"\n')
    assert commands(tmp_path) == ["x"]
    changed = '[project]\nname = "y"\n\n[tool.notyet.gates]\na = "x"\n\n# ruff\n[tool.ruff]\n'
    path.write_text(changed)
    assert (commands(tmp_path), setup(tmp_path).warnings) == (["x"], ())
    found = candidate(ConfigFile(path=str(path), kind="notyet"), os.environ)
    assert (found.is_trusted, found.is_outdated) == (True, False)
    path.write_text(changed.replace('"x"', '"z"'))
    assert commands(tmp_path) == ["x"]
    assert "changed since it was trusted" in setup(tmp_path).warnings[0]
    path.write_text("[project]\n")
    assert commands(tmp_path) == ["x"]
    (warning, *_) = setup(tmp_path).warnings
    assert warning.startswith("[tool.notyet] of ")
    assert "was removed since it was trusted" in warning


@pytest.mark.rule("N5")
def test_an_untrusted_table_is_reported_and_another_pyproject_is_not(tmp_path):
    pyproject(tmp_path, '[tool.notyet.gates]\na = "x"\n', trusted=False)
    assert [file.path for file in setup(tmp_path).untrusted] == [f"{tmp_path}/pyproject.toml"]
    pyproject(tmp_path / "a", "[project]\n", trusted=False)
    (tmp_path / "b" / "pyproject.toml").mkdir(parents=True)
    for name in ("a", "b"):
        found = setup(tmp_path / name)
        assert [file.path for file in found.untrusted] == [f"{tmp_path}/pyproject.toml"]


@pytest.mark.rule("J6", "N5")
def test_a_notyet_toml_beside_it_wins_but_hides_no_trusted_table(tmp_path):
    write(tmp_path, "notyet.toml", '[gates]\na = "file"\n')
    pyproject(tmp_path, '[tool.notyet.gates]\na = "table"\n', trusted=False)
    found = setup(tmp_path)
    assert ([gate.check.line for gate in found.gates], found.untrusted) == (["file"], ())
    pyproject(tmp_path, '[tool.notyet.gates]\na = "table"\n')
    assert [gate.name for gate in setup(tmp_path).gates] == ["a", "pyproject.toml:a"]


@pytest.mark.rule("J7")
def test_mistakes_have_the_line_and_column_of_the_whole_file():
    text = '[project]\nname = "x"\n[tool.notyet.gates]\ngood = "x"\nbad = 5\n'
    found = compile_text(text, "/p/pyproject.toml")
    assert [gate.name for gate in found.gates] == ["good"]
    assert [gate.source.line for gate in found.gates] == [4]
    (mistake,) = found.mistakes
    assert str(mistake).startswith("/p/pyproject.toml:5:1: `gates.bad` must be")


@pytest.mark.rule("J7")
def test_a_broken_table_is_a_mistake_with_its_place_whatever_is_broken_elsewhere():
    (mistake,) = compile_text("[project\n[tool.notyet]\nroot = \n", "/p/pyproject.toml").mistakes
    assert str(mistake).startswith("/p/pyproject.toml:3:8: invalid TOML")
    found = compile_text('= broken\n[tool.notyet.gates]\na = "x"\n', "/p/pyproject.toml")
    assert ([gate.name for gate in found.gates], found.mistakes) == (["a"], ())
    (mistake,) = compile_text("\n[tool.notyet]\nmembers = 1\n", "/p/pyproject.toml").mistakes
    assert (mistake.line, mistake.column) == (3, 1)
