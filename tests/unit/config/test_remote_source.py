"""The files of a workspace, as one look over SSH finds them (M5)."""

import os

import pytest

from notyet.config.find import MOST_BYTES
from notyet.config.remote import RemoteSource
from workspaces import PATIENCE, unreachable, write_there


def files_of(box, folder, *hosts):
    source = RemoteSource(box.url(folder), PATIENCE, hosts)
    assert source.problem == ""
    return source


def why_not(source, name):
    with pytest.raises(OSError) as caught:  # its words are what counts
        source.text_of(name)
    return caught.value.strerror


@pytest.mark.rule("M5")
def test_files_and_folders_around_are_seen_in_one_look(warm_box, tmp_path):
    app = tmp_path / "a" / "app"
    write_there(app, "notyet.toml", "near\n")
    write_there(app.parent, "notyet.toml", "far")
    (app.parent / ".git").mkdir()
    source = files_of(warm_box, app)
    assert source.text_of(warm_box.url(app / "notyet.toml")) == "near\n"
    assert source.text_of(warm_box.url(app.parent / "notyet.toml")) == "far"
    assert source.exists(warm_box.url(app.parent / ".git"))
    assert not source.exists(warm_box.url(app / ".git"))
    assert source.folder_id(warm_box.url(app / "notyet.toml")) == str(os.stat(app).st_ino)
    assert source.folder_id(warm_box.url(app / ".mux/stop")) == str(os.stat(app).st_ino)
    assert why_not(source, warm_box.url(tmp_path / "notyet.toml")) == "it is not there"


@pytest.mark.rule("M5", "J2", "J3")
def test_files_of_hosts_are_seen_where_they_are_wanted(warm_box, tmp_path):
    write_there(tmp_path, ".mux/stop", "#!/bin/sh\n", mode=0o755)
    write_there(tmp_path, ".xum/settings.json", "{}")
    write_there(tmp_path, ".claude/settings.json", "{}")
    source = files_of(warm_box, tmp_path, "mux")
    stop, settings, other = (
        warm_box.url(tmp_path / name)
        for name in (".mux/stop", ".xum/settings.json", ".claude/settings.json")
    )
    assert (source.is_executable(stop), source.is_executable(settings)) == (True, False)
    assert (source.exists(settings), source.exists(other)) == (True, False)
    source.look_for(["claude"])
    assert (source.exists(settings), source.exists(other)) == (True, True)


HOSTILE = [
    b"\n\n\nnotyet file x file x\nend\n",
    bytes(range(256)) * 40,
    "Ünïcödé 🦊 \u202e\x1b[2J\n".encode(),
]


@pytest.mark.rule("M4", "M5")
@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_is_in_a_file_arrives_as_it_is(warm_box, tmp_path, content):
    path = write_there(tmp_path, "notyet.toml", content)
    text = files_of(warm_box, tmp_path).text_of(warm_box.url(path))
    assert text.encode("utf-8", "surrogateescape") == content


@pytest.mark.rule("M4")
@pytest.mark.parametrize("name", ["it's a", "$(touch x)", "50%", "a\nb"])
def test_folders_of_any_name_are_looked_at(warm_box, tmp_path, name):
    folder = tmp_path / name
    write_there(folder, "notyet.toml", "x")
    source = files_of(warm_box, str(folder).replace("%", "%25"))
    assert source.text_of(f"{source.workspace}/notyet.toml") == "x"
    assert not (tmp_path / "x").exists()


@pytest.mark.rule("M5")
def test_other_kinds_of_paths_are_told_apart_without_waiting(warm_box, tmp_path):
    name = warm_box.url(tmp_path / "notyet.toml")
    path = tmp_path / "notyet.toml"
    path.mkdir()
    assert why_not(files_of(warm_box, tmp_path), name) == "it is a folder, not a file"
    path.rmdir()
    os.mkfifo(path)
    assert why_not(files_of(warm_box, tmp_path), name) == "it is not a regular file"
    path.unlink()
    path.symlink_to("nowhere")
    source = files_of(warm_box, tmp_path)
    assert source.exists(name)
    assert why_not(source, name) == "it is a link to a file that is not there"
    path.unlink()
    path.write_bytes(b"x" * (MOST_BYTES + 1))
    assert why_not(files_of(warm_box, tmp_path), name) == "it is larger than 4 MB"


@pytest.mark.rule("M3", "M5")
def test_a_workspace_that_is_no_folder_is_told_apart(warm_box, tmp_path):
    file = write_there(tmp_path, "file", "x")
    for path, words in ((tmp_path / "gone", "does not exist"), (file, "is not a folder")):
        source = RemoteSource(warm_box.url(path), PATIENCE)
        assert source.problem == f"{path} {words} on box"
        assert not source.exists(warm_box.url(path / "notyet.toml"))


@pytest.mark.rule("M3")
def test_an_unreachable_machine_is_named_and_tried_once(warm_box, tmp_path, monkeypatch):
    write_there(tmp_path, "notyet.toml", "x")
    unreachable(monkeypatch, warm_box, tmp_path)
    source = RemoteSource(warm_box.url(tmp_path), PATIENCE)
    assert "box" in source.problem
    assert "refused" in source.problem
    monkeypatch.setenv("NOTYET_SSH_CONFIG", warm_box.config)
    source.look_for(["mux"])
    assert source.problem
    assert source.problem in why_not(source, warm_box.url(tmp_path / "notyet.toml"))


@pytest.mark.rule("M5")
@pytest.mark.parametrize("login", ["fish", "tcsh", "busybox sh"])
def test_a_login_shell_of_any_kind_with_a_banner_is_looked_through(new_box, tmp_path, login):
    rc = {".config/fish/config.fish": "echo banner\n", ".cshrc": "echo banner\n"}
    box = new_box(login=login, rc=rc)
    path = write_there(tmp_path, "notyet.toml", "x = 1\n")
    assert files_of(box, tmp_path).text_of(box.url(path)) == "x = 1\n"


@pytest.mark.rule("M5")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("echo no", "sent an unexpected answer"),
        ("echo $5 end", "sent an unexpected answer"),
        ("exit 7", "exit code 7"),
        ("printf '\\033[31mred\\n' >&2; exit 1", ": red"),
    ],
)
def test_a_machine_that_answers_otherwise_is_not_believed(
    warm_box, tmp_path, monkeypatch, answer, words
):
    write_there(tmp_path, "notyet.toml", "x")
    monkeypatch.setattr("notyet.config.remote._LOOK", answer)
    unseen = RemoteSource(warm_box.url(tmp_path), PATIENCE).problem
    assert words in unseen
    assert "\x1b" not in unseen
