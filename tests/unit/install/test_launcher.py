"""The launcher with its pack: the same answers as without, whatever became of either."""

import json
import os
import re
import shlex
import shutil
import stat
import sys
from pathlib import Path

import pytest

from hook_runs import FAILING, new_project, payload
from launching import copy_of_package, from_pack, laid, started
from notyet.install.launcher import (
    has_pack,
    installation,
    is_laid,
    is_launcher_of,
    launcher_path,
    may_be_used,
    own_folder,
    own_root,
    remove,
    text,
)
from notyet.install.notyet_line import notyet_line
from wire import VECTORS

PAYLOADS = sorted((VECTORS / "payloads").glob("*/*.json"))[::3]
OTHER = "[gates.g]\nrun = 'echo ran; exit 1'\n[gates.h]\nrun = 'true'\n[start]\ntell = true\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "notyet"
    laid(folder)
    return folder


@pytest.fixture(scope="module")
def bare(whole, tmp_path_factory):
    """The same launcher, to which the pack is missing."""
    folder = tmp_path_factory.mktemp("bare") / "notyet"
    folder.mkdir()
    Path(launcher_path(str(folder))).write_text(text(str(folder), own_root()))
    return folder


def test_what_is_laid_is_for_its_user_only_and_known_again(tmp_path):
    pack = laid(tmp_path / "share" / "notyet")
    folder = pack.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == [
        f"hook.{sys.implementation.cache_tag}.pack",
        "launch.py",
    ]
    assert is_laid(str(folder), own_root())
    assert not is_launcher_of(str(folder), "/elsewhere")
    assert not is_laid(str(tmp_path), own_root())


@pytest.mark.parametrize("config", ["", OTHER], ids=["none", "gates"])
def test_every_payload_gets_the_same_answer_with_and_without_the_pack(
    whole, bare, tmp_path, config
):
    project = tmp_path / "p"
    if config:
        new_project(project, config)
    else:
        project.mkdir()
    ways = {"packed": whole, "plain": bare}
    for path in PAYLOADS:
        host = path.parent.name
        told = json.loads(path.read_text()) | {"cwd": str(project)}
        answers = [
            started(folder, told, "--host", host, NOTYET_LEDGER=str(tmp_path / f"{way}.db"))
            for way, folder in ways.items()
        ]
        assert answers[0] == answers[1], path.name


def rotten(pack):
    """Yield what may become of a pack, as a word and a way to do it."""
    content = pack.read_bytes()
    magic = content[9:13]
    yield "cut short", lambda: pack.write_bytes(content[: len(content) // 2])
    yield "of another Python", lambda: pack.write_bytes(content.replace(magic, b"abcd", 1))
    yield "one byte changed", lambda: pack.write_bytes(content[:-99] + b"\0" + content[-98:])
    yield "a folder", lambda: (pack.unlink(), pack.mkdir())
    yield "a pipe", lambda: (shutil.rmtree(pack), os.mkfifo(pack))
    yield "a link to nowhere", lambda: (pack.unlink(), pack.symlink_to("/no/such/file"))


def test_whatever_became_of_the_pack_the_answer_is_the_same(bare, tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    pack = laid(tmp_path / "notyet")
    told = payload("claude", project)
    for number, (what, do) in enumerate(rotten(pack)):
        do()
        ledgers = [f"{tmp_path}/{number}-{way}.db" for way in ("packed", "plain")]
        answers = [
            started(folder, told, "--host", "claude", NOTYET_LEDGER=ledger)
            for folder, ledger in zip((pack.parent, bare), ledgers, strict=True)
        ]
        assert answers[0] == answers[1], what
        assert b'"decision"' in answers[0][1], what
        assert not has_pack(str(pack.parent)), what
        assert from_pack(pack.parent) == [], what


def test_a_source_that_changed_is_imported_and_not_taken_from_the_pack(tmp_path):
    root = copy_of_package(tmp_path / "lib")
    pack = laid(tmp_path / "notyet", root)
    assert "notyet.hook.main" in from_pack(pack.parent)
    source = root / "notyet" / "hook" / "main.py"
    source.write_text(f"{source.read_text()}\nraise ImportError('changed')\n")
    assert not is_laid(str(pack.parent), str(root))
    code, stdout, _ = started(pack.parent, payload("claude", tmp_path), "--host", "claude")
    assert code == 0
    assert "any more (ImportError), so nothing was checked" in json.loads(stdout)["systemMessage"]


@pytest.mark.parametrize(
    ("module", "source", "why"),
    [
        ("hook/main.py", b"def", "SyntaxError"),
        ("hook/payload.py", b"raise SystemExit(2)", "SystemExit"),
        ("hook/main.py", b"def serve(argv):\n    1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_package_that_is_not_whole_is_told_of_and_never_ends_with_2(
    tmp_path, module, source, why
):
    root = copy_of_package(tmp_path / "lib")
    pack = laid(tmp_path / "notyet", root)
    (root / "notyet" / module).write_bytes(source)
    code, stdout, stderr = started(pack.parent, payload("claude", tmp_path), "--host", "claude")
    assert (code, stderr) == (0, b"")
    said = json.loads(stdout)["systemMessage"]
    assert re.search(rf"cannot be started from {root} any more \({why}\)", said)


def test_after_an_upgrade_of_python_the_package_is_found_beside_the_old_place(tmp_path):
    now = "python{}.{}".format(*sys.version_info)
    old = tmp_path / "100% it's" / "lib" / now / "site-packages"
    known = text(str(tmp_path), str(old)).replace(f"/{now}/", "/python3.0/")
    (tmp_path / "launch.py").write_text(known)
    copy_of_package(old)
    project = new_project(tmp_path / "p", FAILING)
    code, stdout, _ = started(tmp_path, payload("claude", project), "--host", "claude")
    assert (code, json.loads(stdout)["decision"]) == (0, "block")


def test_every_installation_has_a_folder_which_upgrades_of_python_do_not_change(monkeypatch):
    home = {"HOME": "/h"}
    venv = "/venv/lib/python{}.{}/site-packages".format(*sys.version_info)
    folder = own_folder(home, venv)
    assert folder == f"/h/.local/share/notyet/{installation(venv)}"
    assert notyet_line(f"python3 {launcher_path(folder)} hook").launcher == launcher_path(folder)
    assert own_folder(home, "/src") != own_folder(home, "/src2") != folder
    assert own_folder({}, venv) == ""
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    assert own_folder(home, "/venv/lib/python3.99/site-packages") == folder
    assert own_folder(home, "/other/lib/python3.99/site-packages") != folder


def test_removing_leaves_what_is_not_ours(tmp_path):
    folder = tmp_path / "notyet"
    laid(folder)
    (folder / "mine.txt").touch()
    remove(str(folder))
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    laid(tmp_path / "other" / "notyet")
    remove(str(tmp_path / "other" / "notyet"))
    assert not (tmp_path / "other").exists()
    remove(str(tmp_path / "other"))


def test_a_mention_of_the_launcher_is_found_in_json_and_toml(tmp_path):
    folder = "/a 'b' \"é\"/notyet"
    file = tmp_path / "settings"
    assert not may_be_used(folder, str(file), str(file.parent))
    assert not may_be_used(folder, str(file / "below"), str(file.parent))
    file.write_text(json.dumps(f"python {shlex.quote(f'{folder}/launch.py')} hook"))
    assert may_be_used(folder, str(file), str(file.parent))
    assert not may_be_used("/b/notyet", str(file), str(file.parent))
    file.unlink()
    file.mkdir()
    assert may_be_used(folder, str(file), str(file.parent))  # nobody knows
