"""Faults of our own side: files, switches, the ledger."""

import os

from hook_runs import trust
from notyet.config.off import switch_off
from notyet.ledger.file import default_path
from planted_programs import each_stop
from planting import plants
from status_world import GATES

# Our own side.


@plants("no-gates")
def no_file(world, monkeypatch):
    (world.folder / "elsewhere").mkdir()
    monkeypatch.chdir(world.folder / "elsewhere")


@plants("config-invalid")
def a_mistake_after_it_was_trusted(world, monkeypatch):
    (world.project / "notyet.toml").write_text("[gates.g]\nrunn = 1\n")


@plants("config-untrusted")
def nobody_looked(world, monkeypatch):
    other = world.folder / "other"
    other.mkdir()
    (other / "notyet.toml").write_text(GATES)
    monkeypatch.chdir(other)


@plants("config-changed")
def it_is_newer(world, monkeypatch):
    (world.project / "notyet.toml").write_text(f"{GATES}# and more\n")


@plants("config-removed")
def it_was_removed(world, monkeypatch):
    (world.project / "notyet.toml").unlink()


@plants("config-unreadable")
def it_is_a_folder_now(world, monkeypatch):
    (world.project / "notyet.toml").unlink()
    (world.project / "notyet.toml").mkdir()


@plants("workspace-not-asked")
def files_are_elsewhere(world, monkeypatch):
    path = world.project / "notyet.toml"
    path.write_text(f'workspace = "ssh://nowhere.invalid/srv/app"\n{GATES}')
    trust(path)


@plants("switched-off")
def here(world, monkeypatch):
    switch_off(str(world.project), 0, os.environ)


@plants("switched-off")
def everywhere(world, monkeypatch):
    switch_off("", 0, os.environ)


@plants("ledger-unusable")
def not_a_ledger(world, monkeypatch):
    path = world.folder / "stops.db"
    path.write_text("this is a letter to my mother")
    monkeypatch.setenv("NOTYET_LEDGER", str(path))


@plants("ledger-unusable")
def below_a_file(world, monkeypatch):
    (world.folder / "file").touch()
    monkeypatch.setenv("NOTYET_LEDGER", str(world.folder / "file" / "x" / "ledger.db"))


@plants("ledger-at-risk")
def it_was_damaged(world, monkeypatch):
    path = default_path(os.environ)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"x" * 4000)


# Our own side, as the host's settings move it.


@plants("config-untrusted", "claude")
def another_state_folder(world, monkeypatch):
    env = {"XDG_STATE_HOME": str(world.folder / "no")}
    world.change(lambda value: value.update(env=env))


@plants("ledger-unusable", "claude")
def another_ledger(world, monkeypatch):
    (world.folder / "file").touch()
    env = {"NOTYET_LEDGER": str(world.folder / "file" / "ledger.db")}
    world.change(lambda value: value.update(env=env))


def with_config(world, path):
    line = f"{world.notyet} hook --host {world.host} --timeout 1800 --config {path}"
    each_stop(world, line)


@plants("config-untrusted")
def its_own_file_that_nobody_trusted(world, monkeypatch):
    (world.folder / "other.toml").write_text(GATES)
    with_config(world, world.folder / "other.toml")


@plants("config-unreadable")
def its_own_file_that_is_gone(world, monkeypatch):
    with_config(world, world.folder / "no.toml")


@plants("gate-may-not-start")
def a_gate_whose_program_is_missing(world, monkeypatch):
    (world.project / "notyet.toml").write_text('[gates]\nlint = "./no-such-program --x"\n')
    trust(world.project / "notyet.toml")
