"""How changed files look: as if the one who wrote them had added our entries."""

import pytest

from notyet.install.edit import NotEditable, edited
from notyet.install.settings import CannotInstall, Entry, SettingsFile, settings_of

CLAUDE, CODEX = settings_of("claude"), settings_of("codex")
JSON = SettingsFile(scope="user", path="/u/s.json")
TOML = SettingsFile(scope="user", path="/u/c.toml", form="toml")
ONE = [Entry(event="Stop", command="notyet hook", timeout=9)]
HANDLER = '{"type": "command", "command": "notyet hook", "timeout": 9}'
SPREAD = """{
    "a": ["x", "y"],
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "notyet hook",
                        "timeout": 9
                    }
                ]
            }
        ]
    }
}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', f'{{"a": 1, "hooks": {{"Stop": [{{"hooks": [{HANDLER}]}}]}}}}'),
        ('{\n    "a": ["x", "y"]\n}\n', SPREAD),
        ('{\r\n    "a": ["x", "y"]\r\n}\r\n', SPREAD.replace("\n", "\r\n")),
        ('\ufeff{\n    "a": ["x", "y"]\n}\n', "\ufeff" + SPREAD),
        ("", SPREAD.replace('    "a": ["x", "y"],\n', "").replace("    ", "  ")),
        (
            '{"hooks": {"Stop": [{"hooks": []}]}, "a" : 1}',
            f'{{"hooks": {{"Stop": [{{"hooks": []}}, {{"hooks": [{HANDLER}]}}]}}, "a" : 1}}',
        ),
    ],
)
def test_json_grows_in_its_own_style(before, after):
    assert CLAUDE.text_with(before, JSON, ONE) == after
    if before:
        assert CLAUDE.text_without(after, JSON) == before


BLOCK = (
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "notyet hook"\ntimeout = 9\n'
)
INLINE = '{hooks = [{type = "command", command = "notyet hook", timeout = 9}]}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("# mine\na = 1 # b\n", f"# mine\na = 1 # b\n\n{BLOCK}"),
        ("[x]\r\na = 1\r\n", f"[x]\na = 1\n\n{BLOCK}".replace("\n", "\r\n")),
        ("hooks = {}\n", f"hooks = {{Stop = [{INLINE}]}}\n"),
        (
            "[hooks]\nStop = [\n  { hooks = [] }, # one\n]\n",
            f"[hooks]\nStop = [\n  {{ hooks = [] }}, # one\n  {INLINE},\n]\n",
        ),
        ("hooks.Stop = [{ hooks = [] }]", f"hooks.Stop = [{{ hooks = [] }}, {INLINE}]"),
        (
            '[[hooks.Stop]]\nhooks = [{ command = "x" }]\n[other]\n',
            f'[[hooks.Stop]]\nhooks = [{{ command = "x" }}]\n{BLOCK}[other]\n',
        ),
    ],
)
def test_toml_grows_in_its_own_style(before, after):
    assert CODEX.text_with(before, TOML, ONE) == after


@pytest.mark.parametrize("before", ["[[hooks]]", '[[hooks]]\nevent = "Stop"\ncommand = "x"', "[a]"])
def test_a_table_at_the_end_of_toml_need_not_end_its_line(before):
    kimi = settings_of("kimi")
    text = kimi.text_with(before, TOML, kimi.entries("", 60))
    assert text.startswith(f"{before}\n")
    assert kimi.text_without(text, TOML) == f"{before}\n"


@pytest.mark.parametrize(
    "before",
    [
        "[hooks]\nStop = [\n  { hooks = [] }, # one\n]\n",
        "hooks.Stop = [{ hooks = [] }]",
        '[[hooks.Stop]]\nhooks = [{ command = "x" }] # why\n[other]\n',
    ],
)
def test_removing_our_entries_from_toml_gives_back_every_byte_beside_other_hooks(before):
    assert CODEX.text_without(CODEX.text_with(before, TOML, ONE), TOML) == before


def test_an_edit_that_would_not_mean_what_it_should_is_refused():
    text = '{"hooks": {"Stop": []}, "hooks": {"Stop": []}}'  # dropping one uncovers the other
    with pytest.raises(NotEditable):
        edited(text, "json", lambda settings: settings.pop("hooks"))


@pytest.mark.parametrize(
    ("settings", "place", "text", "why"),
    [
        (CLAUDE, JSON, '{\n  // mine\n  "a": 1\n}', "/u/s.json:2:3: "),
        (CLAUDE, JSON, "[1]", "/u/s.json:1:1: expected a table, not list"),
        (CLAUDE, JSON, "null", "/u/s.json:1:1: expected a table, not null"),
        (CLAUDE, JSON, '{"hooks": {"Stop": 5}}', "/u/s.json:1:12: `hooks.Stop` is not a list"),
        (CODEX, TOML, "hooks = 5\n", "/u/c.toml:1:1: `hooks` is not a table"),
        (
            CODEX,
            TOML,
            '[hooks]\nStop = []\n[[hooks.Stop]]\nx = "y"\n',
            "/u/c.toml:",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused_with_the_place(settings, place, text, why):
    with pytest.raises(CannotInstall) as refused:
        settings.text_with(text, place, ONE)
    assert str(refused.value).startswith(why)
