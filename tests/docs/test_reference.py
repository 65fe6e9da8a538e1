"""What the reference pages say is what the code does."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from notyet.cli.main import COMMANDS
from notyet.config.compile import examine

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "notyet"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(language):
    """Return every block of a language in the documentation, with its page."""
    return [
        pytest.param(part.split("```")[0], id=f"{page.name} {number}")
        for page in PAGES
        for number, part in enumerate(page.read_text().split(f"```{language}\n")[1:])
    ]


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_toml_example_is_a_valid_notyet_toml(text):
    tomllib.loads(text)
    assert examine(text, "example", "notyet").mistakes == ()


@pytest.mark.parametrize("text", blocks("json"))
def test_every_json_example_is_a_valid_hooks_block(text):
    assert json.loads(text)
    assert examine(text, "example", "hooks").mistakes == ()


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_yaml_example_is_a_valid_conclaude_file(text):
    assert examine(text, "example", "conclaude").mistakes == ()


def test_every_variable_that_the_code_names_is_on_the_page():
    page = (DOCS / "reference" / "environment.md").read_text()
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    named = set(re.findall(r"\bNOTYET_[A-Z_]+[A-Z]\b", source))
    named -= set(re.findall(r"^(NOTYET_[A-Z_]+) = ", source, re.MULTILINE))  # names of our own
    named |= set(re.findall(r"""environ(?:\.get\(|\[)["']([A-Z_]+)["']""", source))
    named |= set(re.findall(r"""["']([A-Z_]+)["'] in os\.environ""", source))
    assert len(named) > 8
    assert sorted(name for name in named if f"`{name}`" not in page) == []


def test_what_gates_find_is_on_the_page():
    from notyet import StopEvent
    from notyet.core.gate import COMMAND_DIALECTS
    from notyet.hosts import command_dialect

    page = (DOCS / "reference" / "environment.md").read_text()
    event = StopEvent(scope="subagent", session_id="s", agent_id="a", agent_name="n", error="e")
    for name in COMMAND_DIALECTS:
        _, environ = command_dialect(name).write_event(event, "/folder")
        for variable in environ:
            documented = variable.replace("XUM_", "MUX_")
            assert f"`{documented}`" in page, variable


def test_every_command_has_its_exit_codes_on_the_page():
    page = (DOCS / "reference" / "exit-codes.md").read_text()
    for command in COMMANDS:
        assert f"notyet {command}" in page, command


def test_every_command_and_every_dialect_has_a_page():
    from notyet.hosts import HOSTS

    for host in HOSTS:
        assert (DOCS / "reference" / "wire" / f"{host}.md").exists(), host
    for page in ("claude-code", "codex", "mux", "conclaude", "gemini", "qwen", "goose"):
        assert (DOCS / "how-to" / f"{page}.md").exists()
