"""`notyet.paths` does what `os.path` does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet import paths, system

PARTS = st.sampled_from(["/", "//", "a", ".", "..", "b c", "é", "", " ", "~", "~nobody"])
PATHS = st.lists(PARTS, max_size=7).map("".join)
OF_ONE = [name for name in paths.__all__ if hasattr(os.path, name) and name != "join"]


@pytest.mark.parametrize("name", OF_ONE)
@given(path=PATHS)
def test_each_function_says_of_any_path_what_its_namesake_says(name, path):
    assert getattr(paths, name)(path) == getattr(os.path, name)(path)


@given(st.lists(PATHS, min_size=1, max_size=4))
def test_parts_are_joined_as_its_namesake_joins_them(parts):
    assert paths.join(*parts) == os.path.join(*parts)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "absolute").symlink_to(tmp_path / "link" / "deep")
    (tmp_path / "real" / "deep" / "up").symlink_to("../..")
    (tmp_path / "nowhere").symlink_to("missing/further")
    (tmp_path / "round").symlink_to("about")
    (tmp_path / "about").symlink_to("round")
    before = tmp_path / "real"
    for number in range(45):
        (tmp_path / f"hop{number}").symlink_to(before)
        before = tmp_path / f"hop{number}"
    return tmp_path


@pytest.mark.parametrize("name", ["realpath", "exists", "lexists", "isdir", "isfile"])
@pytest.mark.parametrize(
    "path",
    [
        "link/file",
        "link/deep/up/link/file",
        "absolute/up/real",
        "absolute/../file",
        "nowhere",
        "nowhere/..",
        "round",
        "round/below",
        "hop44/file",
        "missing/../real",
        "real/file/below",
    ],
)
def test_links_are_followed_as_its_namesake_follows_them(name, path, tree, monkeypatch):
    monkeypatch.chdir(tree)
    for given_as in (path, str(tree / path)):
        assert getattr(paths, name)(given_as) == getattr(os.path, name)(given_as)


def test_a_name_that_no_file_can_have_is_not_there():
    for name in ("a\0b", "\ud800"):
        assert not paths.exists(name)
        assert not paths.lexists(name)
        assert not paths.isdir(name)
        assert paths.real_folder(name) == ""
        with pytest.raises(ValueError):  # what the system says differs
            paths.realpath(name)


def test_names_of_any_bytes_survive_both_ways():
    name = b"\xff\xc3\xa9 x"
    assert system.fsdecode(name) == os.fsdecode(name)
    assert system.fsencode(system.fsdecode(name)) == name


def test_variables_are_those_that_everybody_here_sees(monkeypatch):
    monkeypatch.setenv("NOTYET_OF_A_TEST", "seen")
    assert system.variables()["NOTYET_OF_A_TEST"] == "seen"


def test_variables_are_the_same_without_os():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from notyet import system\n"
        "found = dict(system.variables())\n"
        "assert 'os' not in sys.modules\n"
        "import os; assert found == dict(os.environ), found"
    )
    source = os.path.dirname(os.path.dirname(paths.__file__))
    environ = {"PLAIN": "1", b"ODD": b"\xff\xc3\xa9"}
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, source],
        env=environ,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
