"""Members of a project: which folders they are, and what their files add (J6)."""

import os

import pytest

from config_places import setup, write
from notyet.cli import person
from notyet.cli.main import main
from notyet.config import members
from notyet.config.compile import compile_text
from notyet.config.find import state_folder
from notyet.config.load import load
from notyet.config.members import folders, is_member, members_around, trusted_members

ROOT = 'members = ["packages/*"]\n[gates]\nt = "root"\n'
MEMBER = '[gates]\nt = "own"\n'


@pytest.fixture
def project(tmp_path):
    """A trusted project with two members, one of them not trusted."""
    (tmp_path / ".git").mkdir()
    write(tmp_path, "notyet.toml", ROOT)
    write(tmp_path / "packages/a", "notyet.toml", MEMBER)
    write(tmp_path / "packages/b", "notyet.toml", MEMBER, trusted=False)
    (tmp_path / "packages/empty").mkdir()
    return tmp_path


def names(found):
    return [gate.name for gate in found.gates]


@pytest.mark.rule("J6", "N5")
def test_the_files_of_members_add_gates_that_are_named_after_their_folders(project):
    found = setup(project)
    assert names(found) == ["t", "packages/a:t"]
    assert found.gates[1].check.dir == str(project / "packages/a")
    assert [file.path for file in found.untrusted] == [f"{project}/packages/b/notyet.toml"]


@pytest.mark.rule("J6")
def test_a_member_that_the_agent_works_in_counts_once_and_under_the_same_name(project):
    assert names(setup(project / "packages/a")) == ["t", "packages/a:t"]


@pytest.mark.rule("J6")
def test_only_chosen_members_are_loaded(project):
    asked = []

    def choose(*args):
        asked.append(args)
        return ["packages/b", "packages/empty"]

    found = load(str(project), "claude", os.environ, members=choose)
    assert names(found) == ["t"]
    assert len(found.untrusted) == 1
    assert asked == [(str(project), ("packages/*",), ["packages/a"])]
    everything = load(str(project), "claude", os.environ, members=lambda *_: None)
    assert names(everything) == ["t", "packages/a:t"]


@pytest.mark.rule("J6", "N5")
def test_a_changed_root_file_and_a_removed_member_remove_no_gate(project):
    (project / "notyet.toml").write_text('[gates]\nt = "other"\n')
    (project / "packages/a/notyet.toml").unlink()
    assert names(setup(project)) == ["t", "packages/a:t"]
    warned = setup(project).warnings[1]
    assert warned.endswith(f"until you run: notyet trust {project}/packages/a --revoke")


@pytest.mark.rule("J6", "N5")
def test_a_member_whose_folder_was_removed_is_said_until_its_trust_is_taken_back(
    project, monkeypatch
):
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "")
    (project / "packages/a/notyet.toml").unlink()
    (project / "packages/a").rmdir()
    path = f"{project}/packages/a/notyet.toml"
    found = setup(project)
    assert names(found) == ["t"]
    assert found.warnings == (
        f"{project}/packages/a was removed since its gates were trusted; if that is right, run: "
        f"notyet trust --revoke {path}",
    )
    assert found.unchecked == found.warnings  # no stop passes
    assert main(["trust", "--revoke", path]) == 0
    assert setup(project).warnings == ()


@pytest.mark.rule("J6", "N5")
def test_a_member_that_became_a_link_has_gates_that_cannot_start(project):
    os.rename(project / "packages/a", project / "elsewhere")
    (project / "packages/a").symlink_to(project / "elsewhere")
    found = setup(project)
    assert names(found) == ["t", "packages/a:t"]
    refused = found.gates[1].check.options["refused"]
    assert refused == f"{project}/packages/a is a link, not a folder of the project"
    assert "refused" not in found.gates[0].check.options


@pytest.mark.rule("J6")
def test_a_link_is_not_a_member(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    write(outside, "notyet.toml", MEMBER)
    (project / "packages/link").symlink_to(outside)
    found = setup(project)
    assert names(found) == ["t", "packages/a:t"]
    assert found.warnings == (f"{project}/packages/link is a link, so it is not a member",)


@pytest.mark.rule("J6")
def test_a_table_is_a_members_file_too_and_members_can_have_members(project):
    write(project / "packages/c", "pyproject.toml", '[tool.notyet]\nmembers = ["x"]\n')
    write(project / "packages/c/x", "pyproject.toml", '[tool.notyet.gates]\nt = "x"\n')
    write(project / "packages/d", "pyproject.toml", "[project]\n", trusted=False)
    assert names(setup(project)) == ["t", "packages/a:t", "packages/c/x:t"]


@pytest.mark.rule("J6")
def test_members_change_nothing_for_the_other_gates(project):
    loose = 'root = true\nworkspace = "ssh://box/srv"\n[limits]\nmax_blocks = 0\n'
    write(project / "packages/a", "notyet.toml", f'{loose}[read]\nhosts = ["mux"]\n{MEMBER}')
    write(project, ".mux/settings.json", "{}", trusted=False)
    found = setup(project)
    assert names(found) == ["t", "packages/a:t"]
    assert (found.workspace, dict(found.limits), found.gates[0].check.workspace) == ("", {}, "")
    assert [file.kind for file in found.untrusted] == ["notyet"]


@pytest.mark.rule("J6")
def test_very_many_folders_are_bounded_and_hide_no_trusted_member(project, monkeypatch):
    monkeypatch.setattr(members, "MOST", 3)
    for number in range(5):
        write(project / f"packages/0{number}", "notyet.toml", "", trusted=False)
        (project / f"packages/1{number}").mkdir()
    found = setup(project)
    assert names(found) == ["t", "packages/a:t"]
    assert len(found.untrusted) == 3
    (warning,) = found.warnings
    assert warning == (
        f"{project}: `members` match more than 3 folders that are not trusted; the first 3 count"
    )
    monkeypatch.setattr(members, "_MOST_LISTED", 8)
    found = setup(project)
    assert names(found) == ["t", "packages/a:t"]


@pytest.mark.rule("J6")
def test_ten_thousand_empty_folders_count_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(members, "_MOST_LISTED", 50)
    write(tmp_path, "notyet.toml", 'members = ["**"]\n')
    write(tmp_path / "zz", "notyet.toml", MEMBER)
    for number in range(60):
        (tmp_path / f"a{number}").mkdir()
    found = setup(tmp_path)
    assert names(found) == ["zz:t"]
    assert "only 50 folders were looked at" in found.warnings[0]


@pytest.mark.parametrize(
    ("folder", "globs", "around"),
    [
        ("packages/a/src", ["packages/*"], ["packages/a"]),
        ("packages/a", ["packages/*"], ["packages/a"]),
        ("packages", ["packages/*"], []),
        ("other/a", ["packages/*", "lib?"], []),
        ("libs/x", ["packages/*", "lib?"], ["libs"]),
        ("a/b/c", ["a/**"], ["a", "a/b", "a/b/c"]),
        ("a/b/c", ["**/c"], ["a/b/c"]),
        ("a/.git/c", ["**", "a/*"], ["a"]),
        (".x/c", [".x/*"], [".x/c"]),
    ],
)
def test_members_are_found_by_the_paths_of_files(folder, globs, around):
    assert members_around(folder, globs) == around
    assert is_member(f"/p/{folder}", "/p", globs) == (folder in around)


def test_folders_are_listed_once_and_hidden_ones_are_not(tmp_path):
    for name in ("a/x", "a/y/z", "b/x", ".git/x", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    assert folders(str(tmp_path), ["a/*", "*/x", "none/*"], [100]) == ["a/x", "a/y", "b/x"]
    assert folders(str(tmp_path), ["a/**"], [100]) == ["a", "a/x", "a/y", "a/y/z"]


def test_without_a_state_folder_no_member_is_trusted(project):
    assert trusted_members("", str(project), ["packages/*"]) == []
    assert trusted_members(state_folder(os.environ), str(project), ["p*/*"]) == ["packages/a"]


@pytest.mark.rule("J6", "J7")
def test_a_glob_that_leaves_the_project_takes_nothing_else_down():
    found = compile_text('members = ["../x", "a/./b/", "."]\n[gates]\nt = "x"\n', "/p/notyet.toml")
    assert (found.members, [gate.name for gate in found.gates]) == (("a/b",), ["t"])
    assert [str(mistake).partition(" ")[0] for mistake in found.mistakes] == [
        "/p/notyet.toml:1:12:",
        "/p/notyet.toml:1:30:",
    ]


def test_members_have_no_effect_in_a_workspace():
    found = compile_text('members = ["a"]\n', "ssh://box/srv/notyet.toml")
    assert found.members == ()
    assert "`members` has no effect in a file of a workspace" in str(found.warnings[0])
