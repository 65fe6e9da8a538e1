"""The JSON Schema of notyet.toml, as editors use it: by taplo, which Even Better TOML contains."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TAPLO = ROOT / "build" / "package-venv" / "bin" / "taplo"
SCHEMAS = ROOT / "docs" / "reference" / "schema"
EXAMPLES = sorted((ROOT / "examples").glob("*/notyet.toml"))
CATALOG = {"$schema": "https://json.schemastore.org/schema-catalog.json", "version": 1}
RIGHT = '#:schema ./.notyet/notyet.toml.schema.json\n[gates.tests]\nrun = "true"\ntimeout = "5m"\n'


def test_a_project_names_the_schema_that_notyet_writes(machine):
    machine.run(sys.executable, "-m", "notyet", "schema", "--write")
    machine.write("notyet.toml", RIGHT)
    machine.run(TAPLO, "lint", "notyet.toml")
    machine.write("notyet.toml", RIGHT.replace("timeout", "timeuot"))
    assert "notyet.toml:4:1" in machine.run(TAPLO, "lint", "notyet.toml", code=1)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_are_right(machine, path):
    machine.run(TAPLO, "lint", "--schema", (SCHEMAS / "notyet.toml.schema.json").as_uri(), path)


def test_an_editor_finds_the_schema_by_the_name_of_the_file(machine):
    """As with the catalog of SchemaStore; here its entry leads to our own file."""
    entry = json.loads((SCHEMAS / "schemastore.json").read_text())
    entry["url"] = (SCHEMAS / "notyet.toml.schema.json").as_uri()
    machine.write("catalog.json", json.dumps(CATALOG | {"schemas": [entry]}))
    catalog = ("--schema-catalog", (machine.project / "catalog.json").as_uri())
    machine.write("notyet.toml", "[gates]\nlint = 5\n")
    assert "notyet.toml:2:8" in machine.run(TAPLO, "lint", *catalog, "notyet.toml", code=1)
    machine.write("other.toml", "[gates]\nlint = 5\n")
    machine.run(TAPLO, "lint", *catalog, "other.toml")
