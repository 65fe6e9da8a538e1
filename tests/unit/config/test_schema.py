import jsonschema
import pytest

from notyet.cli.schema import pages
from notyet.config.compile import examine
from notyet.config.schema import FORMATS
from notyet.config.shapes import Either, ListOf, MapOf, Table
from notyet.hosts.conclaude.schema import CONCLAUDE


def tables_in(shape, name=""):
    """Every table below a shape, with a name for messages."""
    if isinstance(shape, Table):
        yield name, shape
        for key, field in shape.fields.items():
            yield from tables_in(field.shape, f"{name}.{key}")
    elif isinstance(shape, ListOf | MapOf):
        yield from tables_in(shape.item, name)
    elif isinstance(shape, Either):
        for inner in shape.shapes:
            yield from tables_in(inner, name)


@pytest.mark.parametrize("page", pages())
def test_every_json_schema_is_one(page):
    jsonschema.Draft202012Validator.check_schema(pages()[page])


@pytest.mark.parametrize("name", FORMATS)
def test_every_key_is_documented_and_its_default_is_a_value_it_may_have(name):
    for where, table in tables_in(FORMATS[name].shape):
        for key, field in table.fields.items():
            assert field.doc.endswith("."), f"{where}.{key}"
            if field.default is not None:
                found = []
                field.shape.check(field.default, (), found)
                assert found == [], f"{where}.{key}"


@pytest.mark.rule("J5")
def test_all_24_sections_of_conclaude_are_accepted_also_when_they_hold_nothing():
    assert len(CONCLAUDE.fields) == 24
    for value in ("", " {}", " ~"):
        text = "".join(f"{key}:{value}\n" for key in CONCLAUDE.fields)
        assert examine(text, "f", "conclaude").mistakes == ()


@pytest.mark.rule("E4")
@pytest.mark.parametrize(("key", "wrong"), [("maxOutputLines", 10001), ("timeout", 0)])
def test_a_conclaude_command_outside_its_ranges_is_a_mistake(key, wrong):
    text = f"stop:\n  commands:\n    - run: x\n      {key}: {wrong}\n"
    (mistake,) = examine(text, "f", "conclaude").mistakes
    assert (mistake.line, mistake.column) == (4, 7)


@pytest.mark.rule("J4")
def test_codex_hooks_are_read_as_toml_too_beside_everything_else_in_the_file():
    text = """
model = "gpt"
[hooks.state."x:stop:0:0"]
trusted_hash = "sha256:0"
[[hooks.Stop]]
[[hooks.Stop.hooks]]
type = "command"
command = "x"
timeout = 1.5
[[hooks.Stop.hooks]]
type = "command"
command = 5
"""
    examined = examine(text, "config.toml", "hooks-toml")
    assert [str(mistake) for mistake in examined.mistakes] == [
        "config.toml:12:1: `hooks.Stop[0].hooks[1].command` must be a string, not 5 "
        "(write it in quotes)"
    ]
    hooks = examined.value["hooks"]["Stop"][0]["hooks"]
    assert hooks == [{"type": "command", "command": "x", "timeout": 1.5}]


@pytest.mark.rule("J1")
def test_unknown_events_and_keys_in_a_hooks_block_are_the_hosts_business():
    text = (
        '{"env": {}, "hooks": {"Unheard": [{"hooks": 1}], "Stop": [{"x": 1, "hooks": '
        '[{"type": "http", "url": "u", "y": 2}]}, {"matcher": ""}, {"matcher": null}]}}'
    )
    assert examine(text, "f", "hooks").mistakes == ()


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "5"])
def test_a_file_that_is_no_table_is_one_mistake(text):
    examined = examine(text, "f", "hooks")
    assert examined.value == {}
    assert len(examined.mistakes) == (text != "null")
