"""Codex's trust in hooks, reproduced: recorded hashes, and where they are written."""

import json
import tomllib
from pathlib import Path

import pytest

from notyet.hosts.codex.trust import forgotten, hash_of, key, trusted
from notyet.install.settings import SettingsFile, settings_of

CLAUDE = settings_of("claude")
CODEX = settings_of("codex")
EVENTS = CLAUDE.events


VECTORS = Path(__file__).parents[2] / "vectors" / "install" / "codex_hashes.json"
RECORDED = json.loads(VECTORS.read_text())["entries"]
CONFIG = SettingsFile(scope="user", path="/u/.codex/config.toml", form="toml")
NAME = '/u/a "b"\\é/.codex/hooks.json:stop:0:0'
OTHER = "/u/hooks.json:subagent_stop:1:0"


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: entry["name"])
def test_the_hash_is_the_one_that_codex_computes(entry):
    assert hash_of(entry["event"], entry["handler"], entry["matcher"]) == entry["hash"]
    assert key("", entry["event"], entry["group"], entry["index"]) == f":{entry['name']}"


def state(text):
    return tomllib.loads(text)["hooks"]["state"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\nmodel = 'x' # why\n",
        "[hooks.state]\n\n[a]\nb = 1\n",
        f"[hooks.state.{json.dumps(NAME)}]\nenabled = true # yes\n\n[a]\nb = 1\n",
        f"[hooks.state.{json.dumps(NAME)}]\ntrusted_hash = 'old' # stale\n",
        f"[hooks.state]\n{json.dumps(NAME)} = {{ enabled = true }}\n",
        f"[hooks.state]\n{json.dumps(NAME)}.trusted_hash = 'old'\n",
        "hooks = { state = {} }\n",
        "hooks = { Stop = [], state = { x = { trusted_hash = 'y' } } }\nz = 1\n",
        "hooks.state.x.trusted_hash = 'y'\n",
        "[[hooks.Stop]]\nhooks = []\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_trust_is_written_into_whatever_stands_there(text, newline):
    text = text.replace("\n", newline)
    after = trusted(text, CONFIG, {NAME: "sha256:new", OTHER: "sha256:too"})
    assert state(after)[NAME]["trusted_hash"] == "sha256:new"
    assert state(after)[OTHER] == {"trusted_hash": "sha256:too"}
    for comment in ("# mine", "# why", "# yes", "# stale"):
        assert (comment in after) == (comment in text)
    if "enabled" in text:
        assert state(after)[NAME]["enabled"] is True
    assert trusted(after, CONFIG, {NAME: "sha256:new", OTHER: "sha256:too"}) == after
    if newline == "\r\n" and newline in text:
        assert after.replace("\r\n", "").count("\n") == 0
    gone = forgotten(after, CONFIG, {NAME: "sha256:new", OTHER: "sha256:too"}, ())
    left = tomllib.loads(gone).get("hooks", {}).get("state", {})
    assert not {NAME, OTHER} & set(left)
    if json.dumps(NAME) not in text and "{}" not in text and "[hooks.state]" not in text:
        assert gone.rstrip() == text.rstrip()
        assert gone == text or not text.endswith(newline)


def test_what_is_trusted_are_the_entries_of_the_file_as_it_will_be(tmp_path):
    environ = {"HOME": str(tmp_path)}
    place = CODEX.target("user", "/", environ)
    theirs = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "lint"}]}]}}'
    text = CODEX.text_with(theirs, place, CODEX.entries("/x/notyet", 60))
    change = CODEX.approval(place, text, environ)
    assert change.before is None
    written = tomllib.loads(change.after.decode())["hooks"]["state"]
    assert [name.removeprefix(f"{place.path}:") for name in written] == [
        "stop:1:0",
        "subagent_stop:0:0",
        "session_start:0:0",
        "subagent_start:0:0",
    ]
    assert CODEX.approval(place, text, {}) is None
    assert CODEX.trust_update(place, text, theirs, environ) is None


@pytest.mark.parametrize(
    "handler",
    [
        {"timeout": "5"},
        {"timeout": 1.5},
        {"timeout": True},
        {"timeout": -1},
        {"timeout": 2**63},
        {"async": None},
        {"statusMessage": 5},
        {"additionalContextLimit": -1},
        {"command": None},
    ],
)
def test_an_entry_that_codex_cannot_read_has_no_hash(handler):
    assert hash_of("Stop", {"command": "x"} | handler) == ""
    assert hash_of("Stop", {"command": "x"}, 5) == ""


def command(line, **more):
    return {"type": "command", "command": line} | more


OURS = command("/x/notyet hook --host codex", timeout=9)


def written(*groups):
    groups = [{"hooks": list(group)} for group in groups]
    return json.dumps({"hooks": {"Stop": groups, "SessionStart": groups}})


def state_of(place, text):
    """Trust in everything that stands in a text, as if a person had approved it."""
    known = {}
    for event, groups in json.loads(text)["hooks"].items():
        for at, group in enumerate(groups):
            for index, one in enumerate(group["hooks"]):
                known[key(place.path, event, at, index)] = {"trusted_hash": hash_of(event, one)}
    return known


def toml(known):
    blocks = []
    for name, said in known.items():
        lines = [f"{k} = {json.dumps(v)}\n" for k, v in said.items()]
        blocks.append(f"[hooks.state.{json.dumps(name)}]\n" + "".join(lines))
    return "\n".join(["model = 'x' # mine\n", *blocks])


MINE, YOURS = command("mine"), command("yours")
BEFORE = [
    [[OURS], [MINE], [YOURS]],
    [[MINE], [OURS, YOURS], [MINE]],
    [[OURS], [MINE, OURS, YOURS], [OURS], [OURS, MINE]],
    [[OURS, MINE], [], [OURS], [YOURS]],
    [[MINE], [OURS]],
]


@pytest.mark.parametrize("groups", BEFORE)
@pytest.mark.parametrize("install", [True, False])
def test_trust_moves_along_with_the_hooks_that_shift(groups, install, tmp_path):
    environ = {"HOME": str(tmp_path)}
    place = CODEX.target("user", "/", environ)
    before = written(*groups)
    ours = CODEX.entries("/x/notyet", 60)
    after = CODEX.text_with(before, place, ours) if install else CODEX.text_without(before, place)
    known = state_of(place, before)
    config = tmp_path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(toml(known))
    change = CODEX.trust_update(place, before, after, environ)
    left = state((change.after if change else config.read_bytes()).decode())
    theirs = {
        name: said
        for name, said in state_of(place, after).items()
        if not any(
            said["trusted_hash"] == hash_of(e, one.handler(CODEX.host))
            for one in ours
            for e in EVENTS
        )
    }
    assert {name: left.get(name) for name in theirs} == theirs
    rest = {name: said for name, said in left.items() if name not in theirs}
    assert len(rest) == (2 if install else 0)  # that in the old entries of ours, in their places
    if change:
        assert b"# mine" in change.after


def test_what_else_is_said_of_a_hook_that_moves_goes_with_it(tmp_path):
    environ = {"HOME": str(tmp_path)}
    place = CODEX.target("user", "/", environ)
    before = written([OURS], [MINE], [YOURS])
    ours, mine, yours = (key(place.path, "Stop", n, 0) for n in range(3))
    config = tmp_path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(toml({ours: {"enabled": False}, yours: {"enabled": False}}))
    change = CODEX.trust_update(place, before, CODEX.text_without(before, place), environ)
    # Of mine nothing was said, and what was said of ours must not be taken for it.
    assert state(change.after.decode()) == {mine: {"enabled": False}}
    assert f"hooks after ours move up in {place.path}" in change.note


def test_only_what_install_writes_is_approved(tmp_path):
    environ = {"HOME": str(tmp_path)}
    place = CODEX.target("user", "/", environ)
    groups = [
        [command("notyet conclaude Hooks Stop", timeout="x")],
        [command("./lint.sh && notyet hook")],
        [OURS | {"timeout": "5"}],
    ]
    assert CODEX.hashes(place, written(*groups)) == {}
