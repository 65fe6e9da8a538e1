"""`notyet gates` explains what the schema and the presets have, and its examples can be pasted."""

import json

import pytest

from notyet.cli.main import main
from notyet.config.compile import compile_text
from notyet.config.gate_schema import GATE
from notyet.gates import kinds
from notyet.gates.presets import PRESETS


@pytest.fixture
def explained(tmp_path, monkeypatch, capsys):
    """Return what `notyet gates --json` says in a folder without any file of ours."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main(["gates", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_kind_of_gate_in_the_schema_is_listed(explained):
    listed = [kind["key"] for kind in explained["kinds"]]
    assert set(GATE.one_of) <= set(listed)
    assert list(kinds.PRESETS) == [preset["name"] for preset in explained["presets"]]
    assert set(kinds.PRESETS) == set(PRESETS)
    assert explained["gates"] == []


def test_every_key_that_belongs_to_a_kind_is_explained(explained):
    shown = {key for kind in explained["kinds"] for key in kind["keys"]}
    belongs = {part for part, _ in GATE.needs}
    assert belongs <= shown


@pytest.mark.parametrize("section", ["kinds", "presets"])
def test_every_example_can_be_pasted_into_a_file(explained, section, tmp_path):
    for one in explained[section]:
        settings = compile_text(one["example"], str(tmp_path / "notyet.toml"))
        assert not settings.mistakes, one
        assert not settings.warnings, one
        assert len(settings.gates) == 1
        [gate] = settings.gates
        if one.get("defaults"):
            assert {name: getattr(gate, name) for name in one["defaults"]} == one["defaults"]
