"""`notyet schema`: what editors and checkers need to know."""

import json
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


def test_without_a_name_it_is_that_of_our_own_file(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "notyet.toml"


def test_it_is_written_where_git_leaves_it_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".notyet").mkdir()
    (tmp_path / ".notyet" / ".gitignore").write_text("mine\n")
    for name in FILES:
        assert main(["schema", name, "--write"]) == 0
    said = capsys.readouterr().out
    assert f"wrote {tmp_path}/.notyet/hooks.schema.json" in said
    assert said.count("#:schema ./.notyet/notyet.toml.schema.json") == 1
    assert (tmp_path / ".notyet" / ".gitignore").read_text() == "mine\n"
    written = {path.name for path in (tmp_path / ".notyet").iterdir()}
    assert written == {".gitignore", *(f"{page}.schema.json" for page in FILES.values())}


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


def test_a_folder_that_is_gone_is_said(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["schema", "--write"]) == 2
    assert "this folder is gone; go to another one" in capsys.readouterr().err
