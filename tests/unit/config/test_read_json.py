import pytest

from notyet.config.document import BadSyntax
from notyet.config.readers import read_json as read


@pytest.mark.rule("J7")
def test_keys_and_items_are_found_where_they_stand():
    document = read('{\r\n  "a": [1, {"é": 2}],\n\t"b" : {"c\\n": -1.5e3}, "d": [true, null]\n}')
    assert document.value == {"a": [1, {"é": 2}], "b": {"c\n": -1500.0}, "d": [True, None]}
    assert document.locate(("a",)) == (2, 3)
    assert document.locate(("a", 0)) == (2, 9)
    assert document.locate(("a", 1, "é")) == (2, 13)
    assert document.locate(("b", "c\n")) == (3, 9)
    assert document.locate(("b", "nothing")) == (3, 2)


def test_a_byte_order_mark_is_accepted():
    document = read('\ufeff{"a": 1}')
    assert document.value == {"a": 1}
    assert document.locate(("a",)) == (1, 2)


@pytest.mark.rule("J7")
def test_a_key_written_twice_is_a_mistake_and_the_last_one_counts():
    document = read('{"a": {"x": 1},\n "a": {"y": 2}}')
    assert document.value == {"a": {"y": 2}}
    finding = document.findings[0]
    assert (finding.line, finding.column) == (2, 2)
    assert "`a` is written twice" in finding.message
    assert document.locate(("a",)) == (2, 2)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("", (1, 1), "expecting value", ""),
        ("\n // hi\n{}", (2, 2), "JSON has no comments", "remove the comment"),
        ('{"a": 1, /* x */ "b": 2}', (1, 10), "JSON has no comments", "remove the comment"),
        ('{"a": 1,}', (1, 8), 'a comma stands before "}"', "remove the last comma"),
        ("[1,\n]", (1, 3), 'a comma stands before "]"', "remove the last comma"),
        ("{a: 1}", (1, 2), "expecting property name enclosed in double quotes", ""),
        ("{\"a\": 'b'}", (1, 7), "expecting value", "strings stand in double quotes"),
        ('{"a": 1 "b": 2}', (1, 9), "expecting ',' delimiter", ""),
        ("[NaN]", (0, 0), "NaN is not a number in JSON", ""),
        ("{} {}", (1, 4), "extra data", ""),
        ('["a', (1, 2), "unterminated string", ""),
        ('["a\n"]', (1, 4), "invalid control character", ""),
    ],
)
def test_bad_syntax_is_said_with_its_place(text, place, message, hint):
    with pytest.raises(BadSyntax) as caught:
        read(text)
    assert caught.value.message == f"invalid JSON: {message}"
    assert (caught.value.line, caught.value.column, caught.value.hint) == (*place, hint)


@pytest.mark.parametrize(("text", "why"), [("[" * 100_000, "deep"), ("1" * 5000, "digits")])
def test_endless_nesting_and_numbers_are_refused(text, why):
    with pytest.raises(BadSyntax, match=why):
        read(text)
