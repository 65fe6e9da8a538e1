import pytest

from notyet.config.document import BadSyntax
from notyet.config.readers import read_toml as read

TEXT = '''\
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
def test_keys_tables_and_items_are_found_where_they_stand(end):
    document = read(TEXT.replace("\n", end))
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
    document = read("[[a]]\nx = 1\n[a.b]\ny = 1\n[[a.c]]\n[[a]]\n[a.b]\ny = 2\n[[a.c]]\n[[a.c]]\n")
    assert document.locate(("a",)) == (1, 3)
    assert document.locate(("a", 0)) == (1, 3)
    assert document.locate(("a", 0, "b", "y")) == (4, 1)
    assert document.locate(("a", 1)) == (6, 3)
    assert document.locate(("a", 1, "b", "y")) == (8, 1)
    assert document.locate(("a", 1, "c", 1)) == (10, 5)


def test_a_table_is_found_at_its_own_header_also_after_a_mention():
    document = read("[a.b]\n[a]\n")
    assert document.locate(("a",)) == (2, 2)
    assert document.locate(("a", "b")) == (1, 4)


def test_what_is_not_in_the_text_is_found_at_the_closest_thing_around_it():
    document = read("\n[a]\nb = 1\n")
    assert document.locate(("a", "missing", 3)) == (2, 2)
    assert document.locate(("missing",)) == (1, 1)
    assert document.locate(()) == (1, 1)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a = 1\nb = \n", (2, 5), "invalid value"),
        ("a = 1\na = 2\n", (2, 6), "cannot overwrite a value"),
        ("[a\n", (1, 3), "expected ']'"),
        ("[a.b]\n[a.b]\n", (2, 5), "cannot declare `a.b` twice"),
        ("a = [1,\n2\n", (2, 2), "array"),
        ('a = "x', (1, 7), "unterminated string"),
        ("a = 1\rb = 2", (1, 6), "expected newline"),
        ("a = " + "9" * 5000, (0, 0), "limit"),
        ("a = " + "[" * 150 + "]" * 150, (1, 105), "deep"),
        ("a = " + "[" * 9000, (0, 0), "deep"),
        ("x = 1\nb" + ".a" * 150 + " = 1", (2, 1), "deep"),
    ],
)
def test_bad_syntax_is_said_with_its_place(text, place, words):
    with pytest.raises(BadSyntax) as caught:
        read(text)
    assert words in caught.value.message.lower()
    assert (caught.value.line, caught.value.column) == place


def test_a_byte_order_mark_is_a_mistake_and_the_rest_is_read():
    document = read("\ufeffa = 1\n")
    assert document.value == {"a": 1}
    assert document.locate(("a",)) == (1, 1)
    assert "byte order mark" in document.findings[0].message
