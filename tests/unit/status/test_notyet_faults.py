"""What `notyet status` finds on our own side, beyond what is planted in a whole machine."""

import os
import resource
import signal
import sqlite3
from contextlib import closing

import pytest

from config_places import write_user_toml
from hook_runs import new_project, payload, run_hook, trust
from notyet.config.find import state_folder
from notyet.config.load import Setup, load
from notyet.config.records import record_path
from notyet.ledger.connection import default_path
from notyet.status import notyet_faults as own
from notyet.status.notyet_faults import notyet_faults


def found(folder, environ=None):
    environ = os.environ if environ is None else environ
    return notyet_faults(str(folder), environ, load(str(folder), "claude", environ))


@pytest.fixture
def project(tmp_path):
    return new_project(tmp_path / "p")


def test_without_a_home_there_is_no_ledger(project, monkeypatch):
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    codes = {one.code: one for one in found(project, {"PATH": "/bin"})}
    assert codes["ledger-unusable"].fix == "set HOME, or XDG_STATE_HOME"


def test_a_ledger_that_others_hold_is_at_risk(project, monkeypatch):
    monkeypatch.setattr(own, "_PATIENCE", 0.1)
    run_hook(payload("claude", project))
    with closing(sqlite3.connect(default_path(os.environ), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (one,) = found(project)
    assert (one.code, one.level) == ("ledger-unusable", "warning")


def test_a_folder_in_the_ledger_s_place_is_a_fault(project):
    os.makedirs(default_path(os.environ))
    (one,) = found(project)
    assert one.code == "ledger-unusable"
    assert "directory" in one.what


def test_a_disk_that_is_full_is_a_fault(project):
    run_hook(payload("claude", project))
    child = os.fork()
    if not child:  # a file that may not grow is as good as a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        codes = [(one.code, one.level) for one in found(project)]
        os._exit(codes != [("ledger-unusable", "fault")])
    assert os.waitpid(child, 0)[1] == 0


def test_a_file_trusted_with_another_notyet_is_untrusted(tmp_path):
    project = new_project(tmp_path / "p", '[read]\nhosts = ["conclaude"]\n')
    other = project / ".conclaude.yaml"
    other.write_text("stop:\n  commands:\n    - run: make\n")
    trust(other, "conclaude")
    record = record_path(state_folder(os.environ), str(other))
    with open(record, encoding="ascii") as file:
        text = file.read()
    with open(record, "w", encoding="ascii") as file:
        file.write(text.replace('"format": 2', '"format": 99'))
    (one,) = found(project)
    assert (one.code, one.where) == ("config-untrusted", str(other))


@pytest.mark.rule("N5")
@pytest.mark.parametrize(
    ("name", "code", "fix"),
    [
        (".conclaude.yml", "config-untrusted", "run: notyet trust ssh://box/srv --read conclaude"),
        (".mux/settings.json", "config-invalid", "make it readable"),
    ],
)
def test_a_file_there_that_says_nothing_is_named_with_what_to_do(tmp_path, name, code, fix):
    setup = Setup(unreadable=(f"ssh://box/srv/{name}",))
    (one,) = notyet_faults(str(tmp_path), os.environ, setup)
    assert (one.code, one.where, one.fix) == (code, f"ssh://box/srv/{name}", fix)


@pytest.mark.rule("J6")
def test_a_gate_that_replaces_the_users_own_is_noted(tmp_path):
    write_user_toml('[gates]\nlint = "mine"\nmore = "mine"\n')
    project = new_project(tmp_path / "p", '[gates]\nlint = "theirs"\n')
    (one,) = found(project)
    assert (one.code, one.level) == ("gate-replaced", "note")
    assert one.what == "The gate lint replaces the one of that name in your own notyet.toml."
    assert one.where == f"{project}/notyet.toml:2"
