"""How changed files look: as if the one who wrote them had added our entries."""

import pytest

from notyet.config.document import Mistake
from notyet.install import claude, codex
from notyet.install.edit import Step
from notyet.install.entry import Entry
from notyet.install.hooks_file import changed, document_of
from notyet.install.place import Place
from notyet.install.refused import CannotInstall
from notyet.install.splice_json import spliced as spliced_json
from notyet.install.splice_toml import spliced as spliced_toml

JSON = Place(scope="user", path="/u/s.json")
TOML = Place(scope="user", path="/u/c.toml", form="toml")
ONE = [Entry(event="Stop", command="notyet hook", timeout=9)]
HANDLER = '{"type": "command", "command": "notyet hook", "timeout": 9}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', f'{{"a": 1, "hooks": {{"Stop": [{{"hooks": [{HANDLER}]}}]}}}}'),
        (
            '{"a":[1,"b"]}',
            '{"a":[1,"b"],"hooks":{"Stop":[{"hooks":'
            '[{"type":"command","command":"notyet hook","timeout":9}]}]}}',
        ),
        (
            '{\n    "a": 1\n}\n',
            '{\n    "a": 1,\n    "hooks": {\n        "Stop": [\n            {\n'
            '                "hooks": [\n                    {\n'
            '                        "type": "command",\n'
            '                        "command": "notyet hook",\n'
            '                        "timeout": 9\n'
            "                    }\n                ]\n            }\n        ]\n    }\n}\n",
        ),
        (
            '{\n\t"hooks": {\n\t\t"Stop": [{"hooks": []}]\n\t}\n}',
            '{\n\t"hooks": {\n\t\t"Stop": [{"hooks": []}, {"hooks": [' + HANDLER + "]}]\n\t}\n}",
        ),
        (
            '{"hooks": {}, "a": 1}',
            f'{{"hooks": {{"Stop": [{{"hooks": [{HANDLER}]}}]}}, "a": 1}}',
        ),
    ],
)
def test_json_grows_in_its_own_style(before, after):
    assert claude.added(before, JSON, ONE) == after


BLOCK = (
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "notyet hook"\ntimeout = 9\n'
)
INLINE = '{ hooks = [{ type = "command", command = "notyet hook", timeout = 9 }] }'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("a = 1\n", f"a = 1\n\n{BLOCK}"),
        ("a = 1", f"a = 1\n\n{BLOCK}".rstrip("\n")),
        ("[x]\r\na = 1\r\n", f"[x]\n a = 1\n\n{BLOCK}".replace(" a", "a").replace("\n", "\r\n")),
        ("hooks = {}\n", f"hooks = {{ Stop = [{INLINE}] }}\n"),
        ("[hooks]\nStop = []\n", f"[hooks]\nStop = [{INLINE}]\n"),
        (
            "[hooks]\nStop = [\n  { hooks = [] }, # one\n]\n",
            f"[hooks]\nStop = [\n  {{ hooks = [] }}, # one\n  {INLINE},\n]\n",
        ),
        (
            "[hooks]\nStop = [\n  { hooks = [{}] } # one\n]\n",
            f"[hooks]\nStop = [\n  {{ hooks = [{{}}] }}, # one\n  {INLINE}\n]\n",
        ),
        ("hooks.Stop = [{ hooks = [] }]", f"hooks.Stop = [{{ hooks = [] }}, {INLINE}]"),
    ],
)
def test_toml_grows_in_its_own_style(before, after):
    assert codex.added(before, TOML, ONE) == after
    if before not in ("hooks = {}\n", "[hooks]\nStop = []\n"):
        assert codex.removed(after, TOML) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[a]\nx = [1, 2, 3] # c\n", "[a]\nx = [1, 3] # c\n"),
        ("[a]\nx = [1, # one\n 2, # two\n 3]\n", "[a]\nx = [1, # one\n # two\n 3]\n"),
        ("a.x = [1,\n 2]\n", "a.x = [1]\n"),
        ("a = { x = [1, 2] }\n", "a = { x = [1] }\n"),
    ],
)
def test_an_item_of_an_inline_array_is_dropped_with_one_comma(before, after):
    assert spliced_toml(before, [Step(do="drop", path=("a", "x", 1))]) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("a = { x = 1, y = 2 }\n", ("a", "x"), "a = { y = 2 }\n"),
        ("a = { x = 1, y = 2 }\n", ("a", "y"), "a = { x = 1 }\n"),
        ("a = { x = 1 }\n", ("a", "x"), "a = {  }\n"),
        ("a = [1, ]\n", ("a", 0), "a = []\n"),
        ("[a] # h\nx = 1 # c\ny = 2\n", ("a", "x"), "[a] # h\ny = 2\n"),
        ("# a\n[a]\nx = 1\n\n# about c\n[c]\n", ("a",), "# a\n\n# about c\n[c]\n"),
        ("[a]\nx = 1\n\n[b]\n", ("a",), "[b]\n"),
        ("a.x = 1\na.y.z = 2\nb = 3\n", ("a",), "b = 3\n"),
        ("[a]\n# my notes\nx = [ ]\n\n[c]\n", ("a",), "[a]\n# my notes\n\n[c]\n"),
        ("[a] # mine\nx = 1\n", ("a",), "[a] # mine\n"),
        ("[a]\nx = '#'\n# between\ny = 1\n", ("a",), "[a]\n# between\n"),
        ("[a] # mine\n[c]\n", ("a",), "[a] # mine\n[c]\n"),
        ("[a]\nx = 1 # about x\ny = 2\n", ("a",), ""),
        ("[a]\nx = '#'\n[[a.y]] # of us\n# and this\nz = 1\n", ("a",), ""),
        ("a = [ # list\n  1, # one\n  2\n]\n", ("a", 1), "a = [ # list\n  1 # one\n]\n"),
        ("a = [\n  1, # one\n  2, # two\n]\n", ("a", 1), "a = [\n  1, # one\n  # two\n]\n"),
        ("a = [\n  1, # one\n  2,\n]\n", ("a", 1), "a = [\n  1, # one\n]\n"),
    ],
)
def test_what_is_dropped_takes_nothing_else_with_it(before, path, after):
    assert spliced_toml(before, [Step(do="drop", path=path)]) == after


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("[a]\nx = 1 # c\n", ("a", "x"), 'é"\\\n\x7f', '[a]\nx = "é\\"\\\\\\n\\u007f" # c\n'),
        ("[a]\nx = 1\n[b]\n", ("a", "y z"), True, '[a]\nx = 1\n"y z" = true\n[b]\n'),
        ("[a]", ("a", "y"), 2, "[a]\ny = 2"),
        ("[a]\n", ("a", "y"), {"z": 1}, "[a]\n\n[a.y]\nz = 1\n"),
        ("", ("a", "b"), 1, "[a]\nb = 1\n"),
        ("", ("a",), {"e": {}, "l": [{"k": False}]}, "[a.e]\n\n[[a.l]]\nk = false\n"),
        ("a = { x.y = 1 }\n", ("a", "z"), 2, "a = { x.y = 1, z = 2 }\n"),
        ("[a]\nb = { c = 1 }\n", ("a", "b", "d", "e"), 2, "[a]\nb = { c = 1, d = { e = 2 } }\n"),
    ],
)
def test_a_value_is_put_where_it_belongs(before, path, value, after):
    assert spliced_toml(before, [Step(do="put", path=path, value=value)]) == after


def test_json_members_are_put_and_dropped_wherever_they_stand():
    text = '{"a": {"x": 1, "y": [1, 2]}, "b": 2}'
    assert spliced_json(text, [Step(do="drop", path=("a",))]) == '{"b": 2}'
    assert spliced_json(text, [Step(do="drop", path=("a", "y", 0))]).endswith('[2]}, "b": 2}')
    assert spliced_json(text, [Step(do="put", path=("a", "y", 1), value=[])]) == text.replace(
        "[1, 2]", "[1, []]"
    )


def test_a_result_that_does_not_mean_what_it_should_is_refused():
    text = '{"hooks": {"Stop": []}, "hooks": {"Stop": []}}'  # dropping one uncovers the other
    document = document_of(text, JSON)
    with pytest.raises(CannotInstall, match=r"^/u/s\.json: it is written in a way that cannot"):
        changed(text, JSON, document, [Step(do="drop", path=("hooks",))])
    text = "a.b.c = 1\n"  # a table that no header may open again
    document = document_of(text, TOML)
    with pytest.raises(CannotInstall, match=r"^/u/c\.toml: it is written in a way that cannot"):
        changed(text, TOML, document, [Step(do="put", path=("a", "b", "d"), value=1)])


def test_a_refusal_is_a_sentence_with_a_place():
    mistake = Mistake(file="/x", line=1, column=2, message="no")
    assert str(CannotInstall(mistake)) == "/x:1:2: no"
