import subprocess
import sys

import pytest

from notyet.config.document import BadSyntax
from notyet.config.read_yaml import read


@pytest.mark.rule("J7")
def test_keys_and_items_are_found_where_they_stand():
    document = read(
        "stop:\n  commands:\n    - run: |\n        a: b\n      x: 1\n    - {y: [2, 3]}\n"
    )
    assert document.value == {"stop": {"commands": [{"run": "a: b\n", "x": 1}, {"y": [2, 3]}]}}
    assert document.locate(("stop", "commands")) == (2, 3)
    assert document.locate(("stop", "commands", 0)) == (3, 7)
    assert document.locate(("stop", "commands", 0, "x")) == (5, 7)
    assert document.locate(("stop", "commands", 1, "y", 1)) == (6, 15)
    assert document.locate(("stop", "elsewhere")) == (1, 1)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1.5", 1.5),
        (".5e1", 5.0),
        ("-.inf", -float("inf")),
        ("2024-01-01", "2024-01-01"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ('!!int "7"', 7),
        ('"\\ud83d\\ude00"', "😀"),
        ("<<", "<<"),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(written, value):
    document = read(f"a: {written}\n")
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
        (
            "a: !!binary aGk=\n",
            (1, 4),
            '`a` has the tag "tag:yaml.org,2002:binary", which is ignored',
        ),
        ("a: !mine {b: 1}\n", (1, 4), '`a` has the tag "!mine", which is ignored'),
        ("a: !mine [b]\n", (1, 4), '`a` has the tag "!mine", which is ignored'),
        ("a: !!int x\n", (1, 4), '`a` is not a readable number: "x"'),
        (f"a: {'9' * 500}\n", (1, 4), f'`a` is not a readable number: "{"9" * 39}…"'),
    ],
)
def test_what_json_could_not_say_is_a_mistake_and_the_rest_is_read(text, place, message):
    document = read(f"{text}good: 1\n")
    assert document.value["good"] == 1
    finding = document.findings[0]
    assert (finding.line, finding.column, finding.message) == (*place, message)


def test_an_empty_text_and_one_of_comments_hold_nothing():
    assert read("").value is None
    assert read("# hello\n").value is None


def test_an_alias_stands_for_what_it_names():
    assert read("a: &x [1, {b: 2}]\nc: *x\n").value == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}


@pytest.mark.uncounted
def test_a_few_lines_that_stand_for_billions_are_refused():
    bomb = "a0: &a0 [x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(BadSyntax, match="has more than 200000 entries"):
        read(bomb)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: [1\nb: 2\n", (2, 2), "expected ',' or ']'"),
        ("a:\n\t- b\n", (2, 1), "cannot start any token"),
        ("a: *x\n", (1, 4), "undefined alias"),
        ("a: 1\n---\nb: 2\n", (2, 1), "single document"),
        ("x: 1\na: \0\n", (2, 4), "special characters are not allowed"),
        ("a: &x [*x]\n", (1, 4), "an alias is inside"),
        ("[" * 200 + "]" * 200, (1, 102), "deep"),
        pytest.param("[" * 9000, (0, 0), "deep", marks=pytest.mark.uncounted),
        ('"\\UFFFFFFFF"', (0, 0), "invalid YAML"),
    ],
)
def test_bad_syntax_is_said_with_its_place(text, place, words):
    with pytest.raises(BadSyntax) as caught:
        read(text)
    assert words in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_tabs_come_with_the_hint_to_use_spaces():
    with pytest.raises(BadSyntax) as caught:
        read("a:\n\t- b\n")
    assert caught.value.hint == "indent with spaces"


def test_pyyaml_is_loaded_only_for_yaml():
    code = (
        "import sys\n"
        "from notyet.config.schema import examine\n"
        "examine('a = 1', 'f', 'notyet')\n"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
