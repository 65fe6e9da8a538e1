"""A trusted text that means something else by now is brought up to date by `notyet trust`."""

import json
import os

import pytest

from config_places import write
from notyet.cli.main import main
from notyet.config.compiled import read_record, write_record
from notyet.config.find import state_folder
from notyet.config.load import load
from notyet.core.record import replace

pytestmark = pytest.mark.rule("N5")
READS = '[read]\nopenclaw = "openclaw.json"\n[gates]\na = "true"\n'


def openclaw(place, number):
    said = {"agents": {"defaults": {"subagents": {"maxSteerRestarts": number}}}}
    (place / "openclaw.json").write_text(json.dumps(said))


def in_force(place, host="notyet"):
    return load(str(place), host, os.environ)


@pytest.mark.rule("J9")
def test_a_new_number_in_openclaws_file_counts_once_a_person_trusts_again(place, capsys):
    openclaw(place, 5)
    write(place, "notyet.toml", READS)
    openclaw(place, 0)
    assert in_force(place).limits == {"max_blocks": 5}  # an agent may have written that
    capsys.readouterr()
    assert main(["trust"]) == 0
    assert "brought up to date: 1 gate of this file in force now" in capsys.readouterr().out
    assert in_force(place).limits == {"max_blocks": 0}
    assert main(["trust"]) == 0
    assert "brought up to date" not in capsys.readouterr().out


@pytest.mark.rule("J9")
def test_a_number_that_went_away_is_a_mistake_and_the_old_one_stays(place, capsys):
    openclaw(place, 5)
    write(place, "notyet.toml", READS)
    (place / "openclaw.json").write_text("{}")
    assert main(["trust"]) == 1
    assert "has no whole number at agents.defaults" in capsys.readouterr().out
    assert in_force(place).limits == {"max_blocks": 5}


@pytest.mark.rule("J3")
def test_an_executable_is_trusted_only_once_it_can_be_run(place, capsys):
    path = write(place, ".mux/stop", "exit 2\n", trusted=False, mode=0o644)
    assert main(["trust", "--yes", "--read", "mux"]) == 1
    said = "is not executable, so it does not run"
    assert f"{said} (run chmod +x {path})" in capsys.readouterr().out
    path.chmod(0o755)
    assert main(["trust", "--yes", "--read", "mux"]) == 0
    assert [gate.name for gate in in_force(place, "mux").gates] == ["mux .mux/stop"]


def test_a_record_of_another_version_is_written_anew(place, capsys):
    path = write(place, ".conclaude.yaml", "stop: {commands: [{run: lint}]}\n")
    state = state_folder(os.environ)
    known = read_record(state, str(path))
    write_record(state, replace(known, compiled=dict(known.compiled) | {"format": -1}))
    found = in_force(place, "conclaude")
    assert found.gates == ()
    assert "was trusted with another version of notyet; run: notyet trust" in found.warnings[0]
    assert main(["trust", "--read", "conclaude"]) == 0
    assert "brought up to date" in capsys.readouterr().out
    assert [gate.check.line for gate in in_force(place, "conclaude").gates] == ["lint"]
