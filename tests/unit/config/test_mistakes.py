"""Broken files, and word for word what is said about them."""

from pathlib import Path

import pytest

from notyet.config.compile import compile_text, examine

BROKEN = Path(__file__).parents[2] / "vectors" / "config" / "broken"
FILES = {"notyet.toml": "notyet", "conclaude.yaml": "conclaude", "settings.json": "hooks"}


@pytest.mark.rule("J7")
@pytest.mark.parametrize("file", FILES)
def test_every_mistake_in_a_broken_file_is_reported_with_its_place_and_a_hint(file):
    examined = examine((BROKEN / file).read_text(), file, FILES[file])
    said = "".join(f"{mistake}\n" for mistake in examined.mistakes)
    assert said == (BROKEN / f"{file}.mistakes.txt").read_text()


@pytest.mark.rule("J7")
def test_gates_that_are_right_survive_their_broken_neighbours():
    settings = compile_text((BROKEN / "notyet.toml").read_text(), "/p/notyet.toml")
    assert [gate.name for gate in settings.gates] == ["good", "tests"]
    tests = settings.gates[1]
    assert tests.timeout == 600
    assert tests.check.options == {"pass_codes": [0], "hint": ""}
    assert settings.limits == {}
    assert settings.observers == ()
    assert settings.read_hosts == ()


@pytest.mark.rule("J7")
def test_conclaude_commands_that_are_right_survive_their_broken_neighbours():
    value = examine((BROKEN / "conclaude.yaml").read_text(), "f", "conclaude").value
    assert value["stop"] == {"commands": [{"run": "pytest"}, {"run": "cargo test"}]}
    assert value["subagentStop"] == {"commands": {"coder": [{"run": "echo good"}]}}
    assert value["preToolUse"] == {"whatever": [1, 2]}


@pytest.mark.rule("J7")
def test_hooks_that_are_right_survive_their_broken_neighbours():
    value = examine((BROKEN / "settings.json").read_text(), "f", "hooks").value
    assert value["hooks"]["Stop"] == [
        {
            "hooks": [
                {"type": "command", "command": "good", "unknown": 1},
                {"type": "command", "command": "slow"},
                {"type": "prompt", "prompt": "fine"},
            ]
        }
    ]
    assert value["hooks"]["Unheard"] == 5
