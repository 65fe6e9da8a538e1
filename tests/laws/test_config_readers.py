import json
import re
import tomllib

import pytest
import tomlkit
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from notyet.config.compile import examine
from notyet.config.document import BadSyntax
from notyet.config.readers import READERS, read_json, read_toml, read_yaml
from notyet.config.schema import FORMATS

PIECES = (
    "a", "b.c", "é", "1", "-", "0x1f", "1e5", "true", "null", "nan", ".inf", "~", " ", "\t", "\n",
    "\r\n", "\r", "=", ":", ": ", "- ", ",", "[", "]", "[[", "]]", "{", "}", '"', "'", '"""', "'''",
    "\\", "\\u0041", "\\UFFFFFFFF", "#", "//", "/*", "&x ", "*x", "!!int ", "!!binary ", "!!set ",
    "!y ", "|", ">", "%YAML 1.1\n", "---\n", "...", "? ", "<<: ", "@", "`", "\0", "\x85", "\ufeff",
    "\u2028", "1979-05-27T07:32:00Z", "\ud800", "\U00010000", "gates", "run", "hooks",
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES)).map("".join))


@pytest.mark.parametrize("syntax", READERS)
@given(text=TEXTS)
@example(text="[" * 5000)
@example(text="a = " + "[" * 5000)
@example(text="a = " + "[" * 200 + "]" * 200)
@example(text="- " * 3000)
@example(text='{"a":' * 3000)
@example(text="a = " + "1" * 5000)
@example(text="1" * 5000)
@example(text='"\\U00110000"')
@example(text='"\\UFFFFFFFF"')
@example(text="a: &a [*a]")
@example(text="a." * 3000 + "b = 1")
@example(text="[x]\na = {'a'." + '"a" . ' * 3000 + "b = 1}")
@example(text="a." * 1_000_000 + "b = 1")
def test_whatever_the_text_a_reader_reads_it_or_raises_bad_syntax(syntax, text):
    lines = sum(text.count(end) for end in ("\n", "\r", "\x85", "\u2028", "\u2029")) + 1
    bad = document = None
    try:
        document = READERS[syntax](text)
    except BadSyntax as error:
        bad = error
    if bad:
        assert bad.message
        assert 0 <= bad.line <= lines
    else:
        for path in paths_in(document.value):
            line, column = document.positions[path]
            assert 1 <= line <= lines
            assert column >= 1


@pytest.mark.rule("J7")
@pytest.mark.parametrize("name", FORMATS)
@given(text=TEXTS)
def test_whatever_the_text_examining_it_gives_mistakes_and_never_raises(name, text):
    examined = examine(text, "FILE", name)
    assert isinstance(examined.value, dict)
    for mistake in examined.mistakes:
        assert str(mistake).startswith("FILE")
        assert "\n" not in mistake.message or "this is not" in mistake.message


def paths_in(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield from paths_in(inner, (*path, key))


KEYS = st.sampled_from(["a", "b", "gates", "b c", "é", "x.y", "1", 'q"', "back\\slash", "true"])
LEAVES = st.one_of(st.booleans(), st.integers(-9, 9), st.sampled_from(["", "x", "a: b", "#", "\n"]))
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=4)


def found(document, value, text):
    """Yield each key and item with the text that begins where it was found."""
    assert document.value == value
    assert set(paths_in(value)) == set(document.positions)
    lines = text.splitlines(keepends=True)
    for path, (line, column) in document.positions.items():
        yield path, "".join(lines[line - 1 :])[column - 1 :]


def value_at(value, path):
    for key in path:
        value = value[key]
    return value


@pytest.mark.rule("J7")
@given(TABLES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_key_and_item_of_a_json_text_is_found_where_it_stands(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for path, rest in found(read_json(text), value, text):
        written = json.JSONDecoder().raw_decode(rest)[0]
        assert written == (path[-1] if isinstance(path[-1], str) else value_at(value, path))


@pytest.mark.rule("J7")
@given(TABLES, st.sampled_from(["\n", "\r\n"]))
def test_every_key_of_a_toml_text_is_found_where_it_stands(value, end):
    text = tomlkit.dumps(value).replace("\n", end)
    for path, rest in found(read_toml(text), tomllib.loads(text), text):
        if isinstance(path[-1], str):
            key = re.match(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""", rest)[0]
            assert list(tomllib.loads(f"{key} = 1")) == [path[-1]]


@pytest.mark.rule("J7")
@given(TABLES, st.sampled_from([True, False, None]))
def test_every_key_and_item_of_a_yaml_text_is_found_where_it_stands(value, flow):
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, width=10_000)
    for path, rest in found(read_yaml(text), value, text):
        if isinstance(path[-1], str):
            assert rest.startswith(path[-1]) or rest[0] in "\"'"
