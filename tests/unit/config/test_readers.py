"""Readers: values with their positions, and what is wrong with a text."""

import os
import subprocess
import sys

import pytest

from notyet.config.document import BadSyntax
from notyet.config.find import MOST_BYTES
from notyet.config.readers import READERS, read_file, read_json, read_toml, read_yaml

TOML = '''\
# comment
top.dotted = 1
"quoted \\u0041" = """
[not.a.table]
x = 1
"""

[gates]
mypy = "x"
\ttabbed = [
    1,  # one
    { a = 1, b.c = 2 },
    [ 3, 4 ],
]
[gates.'lit eral']
é = 1
'''.replace("é =", '"é" =')


@pytest.mark.rule("J7")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_keys_tables_and_items_of_toml_are_found_where_they_stand(end):
    document = read_toml(TOML.replace("\n", end))
    assert document.locate(("top",)) == (2, 1)
    assert document.locate(("top", "dotted")) == (2, 5)
    assert document.locate(("quoted A",)) == (3, 1)
    assert document.locate(("gates",)) == (8, 2)
    assert document.locate(("gates", "mypy")) == (9, 1)
    assert document.locate(("gates", "tabbed")) == (10, 2)
    assert document.locate(("gates", "tabbed", 0)) == (11, 5)
    assert document.locate(("gates", "tabbed", 1)) == (12, 5)
    assert document.locate(("gates", "tabbed", 1, "b", "c")) == (12, 16)
    assert document.locate(("gates", "tabbed", 2, 1)) == (13, 10)
    assert document.locate(("gates", "lit eral")) == (15, 8)
    assert document.locate(("gates", "lit eral", "é")) == (16, 1)


def test_tables_in_arrays_of_tables_are_told_apart():
    document = read_toml(
        "[[a]]\nx = 1\n[a.b]\ny = 1\n[[a.c]]\n[[a]]\n[a.b]\ny = 2\n[[a.c]]\n[[a.c]]\n"
    )
    assert document.locate(("a",)) == (1, 3)
    assert document.locate(("a", 0)) == (1, 3)
    assert document.locate(("a", 0, "b", "y")) == (4, 1)
    assert document.locate(("a", 1)) == (6, 3)
    assert document.locate(("a", 1, "b", "y")) == (8, 1)
    assert document.locate(("a", 1, "c", 1)) == (10, 5)


def test_what_is_not_in_the_text_is_found_at_the_closest_thing_around_it():
    document = read_toml("\n[a]\nb = 1\n")
    assert document.locate(("a", "missing", 3)) == (2, 2)
    assert document.locate(("missing",)) == (1, 1)
    assert document.locate(()) == (1, 1)


def test_a_byte_order_mark_in_toml_is_a_mistake_and_the_rest_is_read_toml():
    document = read_toml("\ufeffa = 1\n")
    assert document.value == {"a": 1}
    assert document.locate(("a",)) == (1, 1)
    assert "byte order mark" in document.findings[0].message


@pytest.mark.rule("J7")
def test_a_key_written_twice_in_json_is_a_mistake_and_the_last_one_counts():
    document = read_json('{"a": {"x": 1},\n "a": {"y": 2}}')
    assert document.value == {"a": {"y": 2}}
    finding = document.findings[0]
    assert (finding.line, finding.column) == (2, 2)
    assert "`a` is written twice" in finding.message
    assert document.locate(("a",)) == (2, 2)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("true", True),
        ("~", None),
        ("12", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5e1", 5.0),
        ("2024-01-01", "2024-01-01"),
        ('!!int "7"', 7),
        ("<<", "<<"),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(written, value):
    document = read_yaml(f"a: {written}\n")
    assert document.value == {"a": value}
    assert document.findings == ()


@pytest.mark.rule("J7")
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\na: 2\n", (2, 1), "`a` is written twice; the first one counts"),
        ("x:\n  7: 1\n", (2, 3), 'a key of `x` must be a string, not "7"'),
        ("true: 1\n", (1, 1), 'a key of the file must be a string, not "true"'),
        ("? [a]\n: 1\n", (1, 3), "a key of the file must be a string, not a list or table"),
        ("a: !!int x\n", (1, 4), '`a` is not a readable number: "x"'),
    ],
)
def test_what_json_could_not_say_is_a_mistake_and_the_rest_is_read_yaml(text, place, message):
    document = read_yaml(f"{text}good: 1\n")
    assert document.value["good"] == 1
    finding = document.findings[0]
    assert (finding.line, finding.column, finding.message) == (*place, message)


def test_a_few_lines_that_stand_for_billions_are_refused():
    bomb = "a0: &a0 [x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(BadSyntax, match="has more than 200000 entries"):
        read_yaml(bomb)


@pytest.mark.parametrize(
    ("syntax", "text", "place", "words", "hint"),
    [
        ("toml", "a = 1\nb = \n", (2, 5), "invalid value", ""),
        ("toml", "a = 1\na = 2\n", (2, 6), "cannot overwrite a value", ""),
        ("toml", "[a.b]\n[a.b]\n", (2, 5), "cannot declare `a.b` twice", ""),
        ("toml", "a = [1,\n2\n", (2, 2), "array", ""),
        ("toml", "a = 1\rb = 2", (1, 6), "expected newline", ""),
        ("toml", "a = " + "[" * 150 + "]" * 150, (1, 105), "deep", ""),
        ("toml", "a = " + "[" * 9000, (0, 0), "deep", ""),
        ("toml", "x = 1\nb" + ".a" * 150 + " = 1", (2, 1), "deep", ""),
        ("json", "\n // hi\n{}", (2, 2), "json has no comments", "remove the comment"),
        ("json", '{"a": 1,}', (1, 8), 'trailing comma before "}"', "remove the last comma"),
        ("json", "{\"a\": 'b'}", (1, 7), "expecting value", "write strings in double quotes"),
        ("json", '{"a": 1 "b": 2}', (1, 9), "expecting ',' delimiter", ""),
        ("json", "[NaN]", (0, 0), "nan is not a number in json", ""),
        ("json", "{} {}", (1, 4), "extra data", ""),
        ("yaml", "a: [1\nb: 2\n", (2, 2), "expected ',' or ']'", ""),
        ("yaml", "a:\n\t- b\n", (2, 1), "cannot start any token", "indent with spaces"),
        ("yaml", "a: *x\n", (1, 4), "undefined alias", ""),
        ("yaml", "x: 1\na: \0\n", (2, 4), "special characters are not allowed", ""),
        ("yaml", "a: &x [*x]\n", (1, 4), "an alias is inside", ""),
        ("yaml", "[" * 200 + "]" * 200, (1, 102), "deep", ""),
        pytest.param("yaml", "[" * 9000, (0, 0), "deep", ""),
        ("yaml", '"\\UFFFFFFFF"', (0, 0), "invalid yaml", ""),
    ],
)
def test_bad_syntax_is_said_with_its_place(syntax, text, place, words, hint):
    with pytest.raises(BadSyntax) as caught:
        READERS[syntax](text)
    assert words in caught.value.message.lower()
    assert (caught.value.line, caught.value.column, caught.value.hint) == (*place, hint)


def test_pyyaml_is_loaded_only_for_yaml():
    code = (
        "import sys\n"
        "from notyet.config.compile import examine\n"
        "examine('a = 1', 'f', 'notyet')\n"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_file_that_is_not_there_a_folder_a_pipe_and_a_device_are_one_mistake_each(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    said = {}
    for path in (tmp_path / "none", tmp_path, tmp_path / "pipe", "/dev/null", "a\0b"):
        text, mistake = read_file(str(path))
        assert text is None
        assert mistake.file == str(path)
        said[path] = mistake.message
    assert list(said.values()) == [
        "cannot be read: No such file or directory",
        "is a folder, not a file",
        "is not a regular file",
        "is not a regular file",
        "cannot be read: no file can have this name",
    ]


def test_a_file_over_four_megabytes_is_not_read(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(b"#" * MOST_BYTES)
    assert read_file(str(path))[1] is None
    path.write_bytes(b"#" * (MOST_BYTES + 1))
    text, mistake = read_file(str(path))
    assert text is None
    assert "larger than 4 MB" in mistake.message


def test_bytes_that_are_not_utf8_are_named_with_their_place(tmp_path):
    path = tmp_path / "latin"
    path.write_bytes("é = 1\né".encode() + b"\xe9")
    assert str(read_file(str(path))[1]) == f"{path}:2:2: is not UTF-8: byte 0xe9 (save it as UTF-8)"
