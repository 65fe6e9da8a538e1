"""Every fault that `notyet status` knows, planted into a machine where all is well."""

import pytest

import planted_entries
import planted_own
import planted_programs
import planted_settings
from notyet.status.faults.fault import CODES
from planting import PLANTED
from status_world import World

_PLANTERS = (
    planted_entries,
    planted_settings,
    planted_programs,
    planted_own,
)  # which fill the list

# No fault, but then nobody is known to be gated.
NOT_A_YES = ("not-probed", "no-gates", "workspace-not-asked")


@pytest.fixture
def world_of(tmp_path, monkeypatch, capsys):
    return lambda host: World(host, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_healthy_machine_has_no_fault(world_of, host):
    world = world_of(host)
    assert world.found() == (0, {})


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_machine_with_the_launcher_has_no_fault_and_is_answered_by_it(world_of, host):
    world = world_of(host)
    world.launch()
    code, said = world.status()
    assert (code, said["hosts"][0]["faults"]) == (0, [])
    assert "would ask lint, tests" in said["hosts"][0]["probe"]["says"]
    assert "/launch.py hook" in said["hosts"][0]["probe"]["command"]


def test_after_an_upgrade_the_launcher_and_its_pack_are_both_told_of(world_of):
    world = world_of("claude")
    folder = world.launch()
    (folder / "launch.py").write_text((folder / "launch.py").read_text() + "# as it was before")
    for pack in folder.glob("*.pack"):
        pack.unlink()
    _, found = world.found()
    assert list(found) == ["launcher-other", "pack-outdated"]
    assert "is not as this notyet writes it" in found["launcher-other"]["what"]


def test_every_known_fault_is_planted_here():
    assert {param.values[2] for param in PLANTED} == set(CODES)


@pytest.mark.parametrize(("host", "plant", "code", "level"), PLANTED)
def test_a_planted_fault_is_found_and_nothing_else(world_of, host, plant, code, level):
    world = world_of(host)
    plant(world, world.monkeypatch)
    exit_code, found = world.found()
    assert list(found) == [code]
    assert found[code]["level"] == level
    assert found[code]["what"].endswith(".")
    assert found[code]["fix"]
    assert exit_code == (1 if level == "fault" or code in NOT_A_YES else 0)
