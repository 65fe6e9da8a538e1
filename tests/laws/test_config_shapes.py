"""What our checks accept, the JSON Schemas accept, gates are made of, and compiling keeps."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet.cli.schema import pages
from notyet.config.compile import compile_text
from notyet.config.compiled import freeze, thaw
from notyet.config.schema import FORMATS
from notyet.config.shapes import (
    Choice,
    Either,
    Flag,
    Glob,
    ListOf,
    MapOf,
    Number,
    Seconds,
    Table,
    Text,
    Whole,
    check,
)
from notyet.core.limits import Limits
from notyet.core.record import replace
from notyet.light import dumps, loads

JUNK = st.one_of(st.none(), st.booleans(), st.integers(-2, 300), st.text(max_size=3), st.just([]))
TEXTS = st.sampled_from(["x", "", " ", "m:f", "a.b:c.d", "..", "dir", "A_B", "*", "main", "x\ny"])
SPANS = st.one_of(st.sampled_from(["10m", "1h30m", "500ms", "5", "1.5s"]), st.integers(0, 9))


def values(shape):
    """Values that often fit a shape, and sometimes nearly do."""
    if isinstance(shape, Table):
        return table_values(shape)
    good = next((make(shape) for kind, make in MAKERS.items() if isinstance(shape, kind)), JUNK)
    return st.one_of(good, good, good, good, good, JUNK)


MAKERS = {
    Flag: lambda _shape: st.booleans(),
    Whole: lambda shape: st.integers(shape.least - 1, (shape.most or 9) + 1),
    Number: lambda _shape: st.floats(0, 100),
    Seconds: lambda _shape: SPANS,
    Choice: lambda shape: st.sampled_from(shape.options),
    Text: lambda _shape: TEXTS,
    Glob: lambda _shape: TEXTS,
    ListOf: lambda shape: st.lists(values(shape.item), max_size=2),
    MapOf: lambda shape: st.dictionaries(TEXTS, values(shape.item), max_size=2),
    Either: lambda shape: st.one_of([values(inner) for inner in shape.shapes]),
}


@st.composite
def table_values(draw, table):
    keys = list(table.fields)
    wanted = [key for key in keys if table.fields[key].required]
    wanted += [draw(st.sampled_from(table.one_of))] if table.one_of else []
    wanted += draw(st.lists(st.sampled_from(keys), max_size=2)) if keys else []
    value = {key: draw(values(table.fields[key].shape)) for key in dict.fromkeys(wanted)}
    return value | ({"unknown": 1} if draw(st.integers(0, 9)) == 9 else {})


VALIDATORS = {name: jsonschema.Draft202012Validator(page) for name, page in pages().items()}


@pytest.mark.parametrize("name", ["notyet", "conclaude", "hooks"])
@given(data=st.data())
def test_what_is_accepted_without_a_mistake_the_json_schema_accepts(name, data):
    form = FORMATS[name]
    value = data.draw(values(form.shape))
    clean, found = check(value, form.shape)
    if not found:
        VALIDATORS[form.page].validate(value)
    again, mistakes = check(clean, form.shape)
    assert mistakes == []
    assert again == clean


def toml_of(value):
    """A value as inline TOML; nothing, which TOML cannot say, is an empty list."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {toml_of(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return "[]" if value is None else json.dumps(value)


@pytest.mark.rule("J7")
@given(values(FORMATS["notyet"].shape))
def test_whatever_a_file_says_its_settings_are_made_and_survive_compiling(value):
    text = "".join(f"{json.dumps(key)} = {toml_of(item)}\n" for key, item in value.items())
    settings = compile_text(text, "/p/notyet.toml")
    assert thaw(loads(dumps(freeze(settings)))) == replace(settings, mistakes=())
    Limits(**settings.limits)
