"""`notyet schema`: what editors and checkers need to know."""

import os
from pathlib import Path

import pytest

from notyet.cli.main import main

PAGES = Path(__file__).parents[3] / "docs" / "reference" / "schema"
FILES = {"notyet": "notyet.toml", "conclaude": "conclaude.yaml", "hooks": "hooks"}


@pytest.mark.parametrize("name", FILES)
def test_every_schema_is_printed_as_it_stands_in_the_documentation(name, capsys):
    assert main(["schema", name]) == 0
    page = PAGES / f"{FILES[name]}.schema.json"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_that_is_none_is_not_written_to(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    if kind == "link":
        (tmp_path / ".notyet").symlink_to("other")
    else:
        (tmp_path / ".notyet").write_text("")
    assert main(["schema", "--write"]) == 1
    assert f"notyet schema: {tmp_path}/.notyet" in capsys.readouterr().err
    assert os.listdir(tmp_path / "other") == []
