"""Codex's trust in hooks, reproduced: recorded hashes, and where they are written."""

import json
import tomllib
from pathlib import Path

import pytest

from notyet.install import codex
from notyet.install.codex_trust import forgotten, hash_of, key, trusted
from notyet.install.entry import entries
from notyet.install.place import Place
from notyet.install.refused import CannotInstall

VECTORS = Path(__file__).parents[2] / "vectors" / "install" / "codex_hashes.json"
RECORDED = json.loads(VECTORS.read_text())["entries"]
CONFIG = Place(scope="user", path="/u/.codex/config.toml", form="toml")
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
        "model = 'x'",
        "[hooks]\n[hooks.state]\n",
        "[hooks.state]\n\n[a]\nb = 1\n",
        f"[hooks.state.{json.dumps(NAME)}]\nenabled = true # yes\n\n[a]\nb = 1\n",
        f"[hooks.state.{json.dumps(NAME)}]\nenabled = true",
        f"[hooks.state.{json.dumps(NAME)}]\ntrusted_hash = 'old' # stale\n",
        f"[hooks.state]\n{json.dumps(NAME)} = {{ enabled = true }}\n",
        f"[hooks.state]\n{json.dumps(NAME)} = {{}}\n",
        f"[hooks.state]\n{json.dumps(NAME)}.trusted_hash = 'old'\n",
        "hooks = { state = {} }\n",
        "hooks = { Stop = [], state = { x = { trusted_hash = 'y' } } }\nz = 1\n",
        "hooks = {}\n",
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
    gone = forgotten(after, CONFIG, {NAME: "sha256:new", OTHER: "sha256:too"})
    left = tomllib.loads(gone).get("hooks", {}).get("state", {})
    assert not {NAME, OTHER} & set(left)
    if json.dumps(NAME) not in text and "{}" not in text:
        assert gone == text


def test_trust_in_something_else_is_not_taken_back():
    text = f"[hooks.state.{json.dumps(NAME)}]\ntrusted_hash = 'a'\n"
    assert forgotten(text, CONFIG, {NAME: "b", OTHER: "c"}) == text
    assert forgotten("", CONFIG, {NAME: "b"}) == ""


@pytest.mark.parametrize(
    "text",
    [
        "hooks = 5\n",
        "[hooks]\nstate = 'x'\n",
        f"[hooks.state]\n{json.dumps(NAME)} = 3\n",
        f"[hooks.state]\n{json.dumps(NAME)}.enabled = true\n",
        "[[hooks.state]]\n",
    ],
)
def test_a_file_that_has_something_else_there_is_refused(text):
    with pytest.raises(CannotInstall, match=r"^/u/\.codex/config\.toml:"):
        trusted(text, CONFIG, {NAME: "sha256:new"})


def test_keys_name_the_folder_as_codex_does(tmp_path):
    (tmp_path / "real" / ".codex").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    home = {"HOME": str(tmp_path / "link")}
    named = home | {"CODEX_HOME": str(tmp_path / "link" / ".codex")}
    assert codex.home(home) == str(tmp_path / "link" / ".codex")  # its default is not resolved
    assert codex.home(named) == str(tmp_path / "real" / ".codex")


def test_what_is_trusted_are_the_entries_of_the_file_as_it_will_be(tmp_path):
    environ = {"HOME": str(tmp_path)}
    place = codex.target("user", "/", environ)
    theirs = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "lint"}]}]}}'
    text = codex.added(theirs, place, entries("codex", "/x/notyet", 60))
    change = codex.approval(place, text, environ)
    assert change.before is None
    written = tomllib.loads(change.after.decode())["hooks"]["state"]
    assert [name.removeprefix(f"{place.path}:") for name in written] == [
        "stop:1:0",
        "subagent_stop:0:0",
        "session_start:0:0",
        "subagent_start:0:0",
    ]
    assert codex.approval(place, text, {}) is None
    assert codex.disapproval(place, text, environ) is None
