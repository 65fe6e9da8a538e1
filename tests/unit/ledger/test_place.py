"""Where the ledger lies, and what is made of that place."""

import os

import pytest

from notyet import Ledger, LedgerError, light
from notyet.ledger import connection as place
from notyet.ledger import repair as disk
from notyet.ledger.connection import make_private
from support import decide, rows, stop

pytestmark = pytest.mark.file_only("its place")


def test_files_are_private_and_so_are_new_folders(tmp_path):
    before = os.umask(0)
    try:
        ledger = Ledger(tmp_path / "new" / "deep" / "ledger.db")
        ledger.begin(stop())
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path)): oct(path.stat().st_mode & 0o777)
        for path in tmp_path.rglob("*")
    }
    assert modes == {
        "new": "0o700",
        "new/deep": "0o700",
        "new/deep/ledger.db": "0o600",
        "new/deep/ledger.db-wal": "0o600",
        "new/deep/ledger.db-shm": "0o600",
    }


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"NOTYET_LEDGER": "/a/b.db"}, "/a/b.db"),
        ({"NOTYET_LEDGER": "~/b.db"}, "/home/ada/b.db"),
        ({"XDG_STATE_HOME": "/state"}, "/state/notyet/ledger.db"),
        ({"XDG_STATE_HOME": "relative"}, "/home/ada/.local/state/notyet/ledger.db"),
        ({"NOTYET_LEDGER": ""}, "/home/ada/.local/state/notyet/ledger.db"),
        ({}, "/home/ada/.local/state/notyet/ledger.db"),
    ],
)
def test_the_file_is_where_the_environment_says_or_in_the_state_folder(monkeypatch, environ, path):
    monkeypatch.setenv("HOME", "/home/ada")
    assert place.default_path(environ) == path


MOUNTS = """\
/dev/root / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
//nas/x /mnt/my\\040share cifs rw 0 0
tmpfs /home/ada/fast tmpfs rw 0 0
user@host: /mnt/ssh fuse.sshfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x.db", ""),
        ("/home/ada/x.db", "nfs4"),
        ("/home/ada/fast/x.db", ""),
        ("/mnt/my share/x.db", "cifs"),
        ("/mnt/ssh/x.db", "fuse.sshfs"),
        ("/homely/x.db", ""),
    ],
)
def test_network_file_systems_are_recognised(tmp_path, path, kind):
    table = tmp_path / "mounts"
    table.write_text(MOUNTS)
    assert disk.network_file_system(path, str(table)) == kind


def test_on_a_network_file_system_the_journal_is_a_plain_file_and_the_user_is_told(
    ledger, monkeypatch
):
    monkeypatch.setattr(place, "is_local", lambda _path: False)
    monkeypatch.setattr(disk, "network_file_system", lambda _path: "nfs4")
    (warning,) = ledger.begin(stop()).warnings
    assert "is on a network file system (nfs4)" in warning
    assert "set NOTYET_LEDGER" in warning
    assert rows(ledger, "PRAGMA journal_mode") == [("delete",)]
    assert ledger.begin(stop(last_message="x")).warnings == ()
    ledger.close()
    assert "network file system" in ledger.begin(stop(last_message="y")).warnings[0]


def test_a_file_that_is_removed_or_replaced_while_open_is_noticed(ledger):
    decide(ledger, stop())
    for suffix in ("", "-wal", "-shm"):
        os.unlink(ledger.path + suffix)
    begun = ledger.begin(stop())
    assert begun.history.blocks == 0
    assert begun.warnings == (
        f"ledger {ledger.path} was removed or replaced; counting starts over",
    )
    assert os.path.exists(ledger.path)


def test_without_a_home_folder_the_ledger_says_so(monkeypatch):
    monkeypatch.setattr(light, "expanduser", lambda path: path)
    ledger = Ledger(place.default_path({}) or "")
    assert place.default_path({}) == ""
    with pytest.raises(OSError, match="no home folder"):
        make_private("")
    assert ledger


def test_an_address_in_the_variable_is_refused_and_its_password_is_not_shown(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTYET_LEDGER", "postgresql://me:geheim@db/x")
    with pytest.raises(LedgerError, match="hooks and commands need a file; set NOTYET_LEDGER") as e:
        Ledger().begin(stop())
    assert "geheim" not in str(e.value)
    assert list(tmp_path.iterdir()) == []
