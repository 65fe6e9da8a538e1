"""The list of error messages says for each what to do."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "errors.md"
MODULE = """
HINT = "write it below the first"
AT = "the run at the start"
refuse("check", "git is not there; install it and try again")
refuse("check", f"{AT} took over {seconds} s")
ShapeError("must not be empty", HINT)
ShapeError(f"must be {words}, not {value}")
print("this is no message of an error")
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location(
        "error_reference_tool", ROOT / "tools" / "error_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "one.py").write_text(MODULE)
    monkeypatch.setattr(module, "SOURCE", tmp_path)
    return module


def test_every_row_of_the_page_says_what_to_do():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert len(rows) > 200
    assert [row for row in rows if row.endswith("|  |")] == []


def test_a_fix_comes_from_the_message_from_its_hint_or_from_the_list(tool):
    found = tool.found_messages()
    fixes = {"the run at the start took over … s": "wait", "must be …, not …": "correct it"}
    assert tool.complaints(found, fixes) == []
    rows = [line for line in tool.page(found, fixes).splitlines() if line.startswith("| ")]
    assert [row for row in rows if row != "| what you read | what to do |"] == [
        "| git is not there | install it and try again |",
        "| the run at the start took over … s | wait |",
        "| must be …, not … | correct it |",
        "| must not be empty | write it below the first |",
    ]


def test_a_message_without_a_fix_and_a_fix_without_a_message_are_named(tool):
    fixes = {"must be …, not …": "correct it", "gone": "do nothing"}
    assert tool.complaints(tool.found_messages(), fixes) == [
        "tools/error_fixes.toml has no fix for: the run at the start took over … s",
        "tools/error_fixes.toml names no message: gone",
    ]
