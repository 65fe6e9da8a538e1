"""`notyet trust --revoke`: what was trusted is not trusted any more, whatever can be seen of it."""

import os
import shutil

import pytest

from config_places import READS, hooks, write
from notyet.cli.main import main
from notyet.config.find import state_folder
from notyet.config.load import NO_LOOK, load
from notyet.config.records import has_record
from workspaces import load_there, unreachable, write_there

pytestmark = pytest.mark.usefixtures("place")


def is_known(path):
    return has_record(state_folder(os.environ), str(path))


def revoked(capsys, *argv):
    """Take trust back; return the files that are not trusted any more, and what else was said."""
    capsys.readouterr()
    code = main(["trust", "--revoke", *map(str, argv)])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert code == (0 if lines else 1)
    return sorted(line.removeprefix("no longer trusted: ") for line in lines), said.err


@pytest.fixture
def repository(tmp_path):
    """A folder of a repository, and hooks at the repository's beginning."""
    folder = tmp_path / "srv" / "repo"
    (folder / ".git").mkdir(parents=True)
    write_there(folder, ".mux/settings.json", hooks("mux says"))
    write_there(folder, ".mux/stop", "#!/bin/sh\n", mode=0o755)
    write_there(folder / "sub", "notyet.toml", READS.format("mux"))
    return folder


NAMES = (".mux/settings.json", ".mux/stop", "sub/notyet.toml")


@pytest.mark.rule("N5", "M5")
def test_all_that_was_trusted_for_a_workspace_is_taken_back_without_the_machine(
    warm_box, repository, capsys, tmp_path, monkeypatch
):
    url = warm_box.url(repository)
    assert main(["trust", f"{url}/sub", "--yes"]) == 0
    assert all(is_known(f"{url}/{name}") for name in NAMES)
    unreachable(monkeypatch, warm_box, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no ssh
    assert revoked(capsys, f"{url}/sub")[0] == [f"{url}/{name}" for name in NAMES]
    found = load_there(warm_box, repository / "sub", "mux", patience=NO_LOOK)
    assert found.gates == ()
    files, err = revoked(capsys, f"{url}/sub")
    assert (files, err) == ([], f"notyet trust: nothing of {url}/sub is trusted\n")


@pytest.mark.rule("N5")
def test_so_it_is_here_though_files_are_gone_and_a_repository_began_nearer(repository, capsys):
    sub = repository / "sub"
    assert main(["trust", str(sub), "--yes"]) == 0
    (sub / "notyet.toml").unlink()
    (sub / ".git").mkdir()
    shutil.rmtree(repository / ".mux")
    assert len(load(str(sub), "mux", os.environ).gates) == 2
    assert revoked(capsys, sub)[0] == [str(repository / name) for name in NAMES]
    assert load(str(sub), "mux", os.environ).gates == ()


def test_a_record_that_cannot_be_read_is_taken_back(place, capsys):
    write(place, "notyet.toml", "")
    for folder, _, names in os.walk(state_folder(os.environ)):
        for name in names:
            with open(os.path.join(folder, name), "w") as file:
                file.write("{")
    assert revoked(capsys)[0] == [f"{place}/notyet.toml"]
    assert not is_known(place / "notyet.toml")
