"""Installing and uninstalling change nothing but our own entries, however a file is written."""

import json
import tomllib

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from config_texts import json_texts, toml_texts
from notyet.config.document import Mistake
from notyet.install.own_line import own_line
from notyet.install.settings import CannotInstall, Place, settings_of

CLAUDE = settings_of("claude")
CODEX = settings_of("codex")
EVENTS = CLAUDE.events


JSON = Place(scope="user", path="/u/settings.json")
TOML = Place(scope="user", path="/u/config.toml", form="toml")
STARTS = st.sampled_from(["/x/notyet", "'/a b/é/notyet'", "", "'/\"q\\/notyet'"])
OURS = st.builds(CLAUDE.entries, STARTS, st.integers(1, 86400))
KEYS = st.sampled_from(["matcher", "type", "x", "é", '"', "\\"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
COMMANDS = ["lint", "notyet check", "", "./lint.sh && notyet hook", "notyet hook || mail"]
HANDLERS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(COMMANDS)},
    optional={"timeout": st.integers(0, 99), "x": LEAVES},
)
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLERS, max_size=3)}, optional={"matcher": st.sampled_from(["", "*", "a"])}
)
BLOCKS = st.dictionaries(
    st.sampled_from([*EVENTS, "PreToolUse", "Notification"]), st.lists(GROUPS, max_size=3)
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": LEAVES,
        "permissions": st.dictionaries(KEYS, LEAVES, max_size=3),
        "hooks": BLOCKS,
        "env": st.lists(LEAVES, max_size=3),
    },
)


@st.composite
def written(draw, settings=SETTINGS):
    """JSON in some of the ways in which people and programs write it."""
    value = draw(settings)
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
    ascii_only = draw(st.booleans())
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=ascii_only)
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\n\n"])))
    ends = draw(st.sampled_from(["", "\n", "\r\n", "\n\n", " \t"]))
    return draw(st.sampled_from(["", "\ufeff"])) + text + ends


def is_subsequence(short, long):
    rest = iter(long)
    return all(character in rest for character in short)


def meant(before, ours):
    """Return what a settings file shall say, made the simple way."""
    value = json.loads(json.dumps(before))
    for entry in ours:
        group = {"hooks": [entry.handler]}
        value.setdefault("hooks", {}).setdefault(entry.event, []).append(group)
    return value


def value_of(text):
    return json.loads(text.removeprefix("\ufeff"))


@given(written(), OURS)
def test_json_with_our_entries_says_what_it_said_and_our_entries(text, ours):
    after = CLAUDE.added(text, JSON, ours)
    assert value_of(after) == meant(value_of(text), ours)
    assert list(value_of(after)) == list(meant(value_of(text), ours))
    if "hooks" not in value_of(text) and value_of(text):
        assert is_subsequence(text, after)


@given(written(), OURS)
def test_installing_in_json_twice_changes_nothing_the_second_time(text, ours):
    after = CLAUDE.added(text, JSON, ours)
    assert CLAUDE.added(after, JSON, ours) == after


@given(written(), OURS, OURS)
def test_an_entry_of_ours_is_replaced_where_it_stands(text, ours, others):
    once = CLAUDE.added(text, JSON, ours)
    again = CLAUDE.added(once, JSON, others)
    assert again == CLAUDE.added(text, JSON, others)


def has_empty(value):
    """Tell whether a container is empty, so that nobody can tell whether we emptied it."""
    hooks = value.get("hooks", {"x": 1})
    return not value or not hooks or any(groups == [] for groups in hooks.values())


@given(written(), OURS)
def test_removing_our_entries_from_json_gives_back_what_it_said(text, ours):
    assume(isinstance(value_of(text), dict) and not has_empty(value_of(text)))
    without = CLAUDE.removed(CLAUDE.added(text, JSON, ours), JSON)
    assert value_of(without) == value_of(text)
    if "hooks" not in value_of(text):
        assert without == text


@given(written())
def test_what_is_not_ours_is_not_removed(text):
    assert CLAUDE.removed(text, JSON) == text


@given(json_texts(), OURS)
def test_any_json_at_all_is_kept_but_for_our_entries_or_refused(drawn, ours):
    text, _ = drawn
    before = json.loads(text)
    if not isinstance(before, dict):
        with pytest.raises(CannotInstall, match=r"^/u/settings.json:1:1: "):
            CLAUDE.added(text, JSON, ours)
        return
    after = CLAUDE.added(text, JSON, ours)
    assert value_of(after) == meant(before, ours)
    if "hooks" not in before and before:
        assert is_subsequence(text, after)
        assert CLAUDE.removed(after, JSON) == text


def plain(value):
    """Return a value as text, in which NaN equals itself and the order of keys does not count."""
    return json.dumps(value, sort_keys=True, default=repr)


# Hooks as Codex's users have them in TOML, among random other things.
HOOKS_IN_TOML = (
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command" # why\ncommand = "x"\n',
    '[hooks]\nStop = [{ hooks = [{ type = "command", command = "x" }] }]\n',
    '[hooks]\nStop = [\n  { hooks = [{ command = "x" }] }, # one\n  { hooks = [] }, # two\n]\n',
    '[hooks]\n# why\nStop = [\n  { hooks = [{ command = "x" }] } # last\n]\n',
    '[hooks.state."/a:stop:0:0"]\ntrusted_hash = "sha256:0"\n',
    '[hooks]\nSubagentStop = []\n[[hooks.Stop]]\nmatcher = ""\n\n  [[hooks.Stop.hooks]]\n',
    "# [[hooks.Stop]]\n",
    '[[hooks.Stop]]\nhooks = [{ command = "x" }]\n[other]\n[[hooks.PreToolUse]]\nhooks = []\n',
    '[[hooks."Stop"]]\n[["hooks".Stop.hooks]]\ncommand = """a\n[[hooks.Stop]]\n"""\n',
    "",
)


@given(
    toml_texts(), st.sampled_from(HOOKS_IN_TOML), st.sampled_from(["\n", "\r\n"]), OURS, st.data()
)
def test_toml_with_our_entries_says_what_it_said_and_our_entries(drawn, hooks, newline, ours, data):
    text, _ = drawn
    text = text.rstrip("\r\n") + newline + hooks.replace("\n", newline)
    text = text.removesuffix(newline) if data.draw(st.booleans()) else text
    try:
        before = tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError:
        assume(False)
    try:
        after = CODEX.added(text, TOML, ours)
    except CannotInstall:
        event("refused")
        return
    now = tomllib.loads(after.removeprefix("\ufeff").replace("\r\n", "\n"))
    was = plain(before)
    for entry in ours:
        before.setdefault("hooks", {}).setdefault(entry.event, []).append(
            {"hooks": [entry.handler]}
        )
    assert plain(now) == plain(before)
    assert CODEX.added(after, TOML, ours) == after
    without = CODEX.removed(after, TOML)
    if "SubagentStop = []" not in hooks and "hooks" not in was:
        assert plain(tomllib.loads(without.removeprefix("\ufeff").replace("\r\n", "\n"))) == was


@given(OURS)
def test_every_command_that_we_write_is_known_again(ours):
    for entry in ours:
        said = own_line(entry.command)
        assert said is not None
        assert (said.verb, said.host, said.timeout) == ("hook", "claude", entry.timeout)
        assert said.is_portable == entry.command.startswith("sh -c ")


def test_a_refusal_is_a_sentence_with_a_place():
    mistake = Mistake(file="/x", line=1, column=2, message="no")
    assert str(CannotInstall(mistake)) == "/x:1:2: no"
