"""Writing a settings file: whole or not at all, and never over somebody else's change."""

import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from notyet.install.change import (
    Change,
    Stale,
    backups,
    keep_backup,
    replace_file,
    to_install,
    to_uninstall,
)
from notyet.install.settings import settings_of

SOURCE = str(Path(sys.modules["notyet"].__file__).parents[1])


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state" / "notyet")


def change(path, before, after):
    return Change(path=str(path), before=before, after=after)


def left_in(folder):
    return sorted(os.listdir(folder))


def test_a_new_file_is_written_with_its_folders(tmp_path, state):
    path = tmp_path / "a" / "b" / "settings.json"
    backup = change(path, None, b"{}\n").write(state)
    assert path.read_bytes() == b"{}\n"
    assert backup.endswith(".none")
    assert left_in(path.parent) == ["settings.json"]


def test_a_symbolic_link_stays_one(tmp_path, state):
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "claude.json"
    real.write_bytes(b"old")
    link = tmp_path / "settings.json"
    link.symlink_to("dotfiles/claude.json")
    change(link, b"old", b"new").write(state)
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert left_in(tmp_path / "dotfiles") == ["claude.json"]
    real.unlink()
    change(link, None, b"again").write(state)
    assert real.read_bytes() == b"again"


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path, state):
    path = tmp_path / "settings.json"
    for before in (b"old", None):
        path.write_bytes(b"theirs")
        with pytest.raises(Stale, match="changed by another program"):
            change(path, before, b"new").write(state)
        assert path.read_bytes() == b"theirs"
    path.unlink()
    with pytest.raises(Stale):
        change(path, b"old", b"new").write(state)
    assert not path.exists()


def test_a_file_that_was_ours_alone_goes_with_its_folder(tmp_path, state):
    path = tmp_path / ".codex" / "hooks.json"
    change(path, None, b"x").write(state)
    backup = Path(change(path, b"x", None).write(state))
    assert not path.parent.exists()
    assert (backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)) == (b"x", 0o600)
    change(path, None, b"x").write(state)
    (path.parent / "other").touch()
    change(path, b"x", None).write(state)
    assert left_in(path.parent) == ["other"]


def test_all_folders_that_we_made_go_and_no_others(tmp_path, state):
    path = tmp_path / ".agents" / "plugins" / "notyet" / "hooks.json"
    change(path, None, b"x").write(state)
    change(path, b"x", None).write(state)
    assert not (tmp_path / ".agents").exists()
    change(path, None, b"x").write(state)
    (tmp_path / ".agents" / "plugins" / "other").mkdir()
    change(path, b"x", None).write(state)
    assert left_in(tmp_path / ".agents" / "plugins") == ["other"]
    (tmp_path / ".agents" / "plugins" / "other").rmdir()
    change(path, None, b"x").write(state)  # into folders of which one is another's
    change(path, b"x", None).write(state)
    assert left_in(tmp_path / ".agents") == ["plugins"]


def test_a_folder_that_we_did_not_make_stays(tmp_path, state):
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    change(path, None, b"x").write(state)
    change(path, b"x", None).write(state)
    assert left_in(path.parent) == []


@pytest.mark.parametrize(
    ("host", "mine", "rest"),
    [
        ("copilot", "", None),
        ("goose", "", None),
        ("goose", '"mine": 1, ', {"mine": 1}),
        ("cursor", "", {"version": 1}),  # other programs write that file too
    ],
)
def test_a_file_that_only_notyet_writes_goes_also_without_a_backup(
    host, mine, rest, tmp_path, state
):
    settings = settings_of(host)
    file = settings.target("project", str(tmp_path), {})
    change = to_install(settings, file, settings.entries("", 60))
    path = Path(file.path)
    path.parent.mkdir(parents=True)
    path.write_text(change.after.decode().replace("{", "{" + mine, 1))
    after = to_uninstall(settings, file, state).after
    assert (after and json.loads(after)) == rest


def test_only_the_newest_copies_are_kept(tmp_path, state):
    path = str(tmp_path / "a.json")
    for number in range(15):
        keep_backup(state, path, str(number).encode() if number % 2 else None)
    found = backups(state, path)
    assert found == [None if n % 2 == 0 else str(n).encode() for n in range(14, 4, -1)]


@pytest.mark.parametrize("first", [b"first", None])
def test_the_newest_copy_without_entries_of_ours_is_kept_for_ever(tmp_path, state, first):
    path = str(tmp_path / "a.json")
    keep_backup(state, path, b"older", is_first=True)
    keep_backup(state, path, first, is_first=True)
    for number in range(15):
        keep_backup(state, path, str(number).encode())
    assert backups(state, path) == [*(str(n).encode() for n in range(14, 4, -1)), first]


def limited(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"},  # cut short, it would stay
        **options,
    )


WRITE = """
import sys
from notyet.install.change import Change
try:
    Change(path={path!r}, before={before!r}, after={after!r}).write({state!r})
except OSError as error:
    print(error.filename, error.strerror, sep=": ")
"""


def test_on_a_full_disk_the_old_file_stays_whole(tmp_path, state):
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")
    code = WRITE.format(path=str(path), before=b"old", after=b"x" * 9999, state=state)
    done = limited(code, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)))
    assert done.stdout == f"{path}: File too large\n"
    assert path.read_bytes() == b"old"
    assert left_in(tmp_path) == ["settings.json", "state"]


def test_the_difference_shows_files_that_come_and_go_and_missing_line_ends():
    made = change("/x", None, b"a\nb\n").diff()
    assert made == ["--- /dev/null", "+++ /x", "@@ -0,0 +1,2 @@", "+a", "+b"]
    assert change("/x", b"a\n", None).diff()[:2] == ["--- /x", "+++ /dev/null"]
    assert change("/x", b"a\n", b"a").diff()[3:] == ["-a", "+a\\ (no line end)"]
    assert change("/x", b"\xff\n", b"").diff()[3] == "-\udcff"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, None])
def test_a_replaced_file_keeps_its_mode_and_a_new_one_gets_the_usual_one(tmp_path, mode):
    path = tmp_path / "a"
    if mode is not None:
        path.write_bytes(b"old")
        path.chmod(mode)
    before = os.umask(0o027)
    try:
        replace_file(str(path), b"new")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == (0o640 if mode is None else mode)
    assert left_in(tmp_path) == ["a"]


def test_what_is_being_written_is_for_its_owner_only_from_the_first_byte(tmp_path, monkeypatch):
    seen, real = [], os.fchmod

    def fchmod(descriptor, mode):
        found = os.fstat(descriptor)
        seen.append((stat.S_IMODE(found.st_mode), found.st_size > 0))
        real(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", fchmod)
    replace_file(str(tmp_path / "a"), b"x" * 99)
    assert seen == [(0o600, True)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("owner", [1, 65534])
def test_a_file_of_another_user_is_refused_and_no_other_group_gets_the_rights(tmp_path, owner):
    tmp_path.chmod(0o777)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, owner, 1234)
    path.chmod(0o664)
    code = "import os; from notyet.install.change import replace_file\n"
    code += "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    code += f"replace_file({str(path)!r}, b'new')"
    said, found = limited(code).stderr, path.stat()
    if owner == 1:
        assert "it belongs to another user" in said
        assert (path.read_bytes(), found.st_uid, stat.S_IMODE(found.st_mode)) == (b"old", 1, 0o664)
    else:
        assert (said, path.read_bytes(), found.st_gid) == ("", b"new", 65534)
        assert stat.S_IMODE(found.st_mode) == 0o604
