"""Every host's settings come back byte for byte, or are refused with the reason and untouched."""

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

from notyet.cli.main import main
from notyet.config.readers import read_yaml
from notyet.install.settings import installable, settings_of

HOSTS = [name for name in installable() if settings_of(name).host.layout != "file"]
PLUGINS = [name for name in installable() if name not in HOSTS]
JSON = {
    "empty": b"",
    "blank": b" \n",
    "an object": b"{}",
    "tabs": b'{\n\t"a": 1,\n\t"b": [\n\t\t1.50,\n\t\t1e3\n\t]\n}\n',
    "CRLF": b'{\r\n  "a": {"b": null},\r\n  "c": "d"\r\n}\r\n',
    "one line": b'{"a":1,"\\u00e9":"\xc3\xa9"}',
    "no last newline": b'{\n    "a": [ ]\n}',
    "BOM": b'\xef\xbb\xbf{"a": 1}\n',
    "empty hooks": b'{"hooks": {}, "z": 1}',
    "line comment": b'{\n  // mine\n  "a": 1\n}\n',
    "block comment": b'{"a": 1 /* mine */}',
    "trailing comma": b'{"a": 1,}',
    "duplicate keys": b'{"a": 1, "a": 2}',
    "duplicate hooks": b'{"hooks": {"x": []}, "hooks": {"y": []}}',
    "a list": b"[]",
    "hooks is text": b'{"hooks": "x"}',
    "hooks is null": b'{"hooks": null}',
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "cut": b'{"a": {"b": ',
    "NUL": b'{"a": "\0"}',
}
TOML = {
    "empty": b"",
    "comments": b'# mine\nk = "v"  # why\n\n[t] # here\na = 1\n',
    "CRLF": b'k = "v"\r\n\r\n[t]\r\na = 1 # c\r\n',
    "tabs": b"[t]\n\ta\t=\t1\n",
    "no last newline": b"k = 1",
    "other hooks": b'[[hooks]]\nname = "x"\ntype = "y"\ncommand = "z"\n',
    "inline": b'hooks = [{name = "x", command = "z"}]\n',
    "duplicate keys": b"a = 1\na = 2\n",
    "hooks is a table": b"[hooks]\na = 1\n",
    "not UTF-8": b'a = "\xff"\n',
    "cut": b"a = [1,",
}
YAML = {
    "empty": b"",
    "comments": b"# mine\nmodel:\n  default: x  # why\n",
    "CRLF": b"a: 1\r\nb:\r\n  - c\r\n",
    "no last newline": b"a: 1",
    "other hooks": b"hooks:\n  pre_verify:\n    - command: x\n",
    "hooks is text": b"hooks: x\n",
    "duplicate keys": b"a: 1\na: 2\n",
    "a list": b"- a\n",
    "tabs": b"a:\n\t- b\n",
    "not UTF-8": b"a: \xff\n",
    "cut": b"a: [1,",
}
FORMS = {".json": JSON, ".toml": TOML, ".yaml": YAML}
EMPTY = {".json": b"{}\n", ".toml": b"", ".yaml": b"a: 1\n"}
CASES = [
    pytest.param(host, content, id=f"{host}: {what}")
    for host in HOSTS
    for what, content in FORMS[Path(settings_of(host).host.settings["user"]).suffix].items()
]
# What no host may refuse: an ordinary file of a person.
ORDINARY = {"empty", "an object", "CRLF", "one line", "no last newline", "comments"}

pytestmark = pytest.mark.usefixtures("place")


def settings_file(home, host):
    path = home / settings_of(host).host.settings["user"]
    path.parent.mkdir(parents=True)
    return path


def parsed(path):
    text = path.read_text(encoding="utf-8-sig")
    return read(text, path.suffix)


def read(text, suffix):
    if suffix == ".yaml":
        return read_yaml(text).value
    return tomllib.loads(text) if suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize(("host", "content"), CASES)
def test_a_file_comes_back_byte_for_byte_or_is_refused(host, content, home, capsys, request):
    path = settings_file(home, host)
    path.write_bytes(content)
    code = main(["install", host, "--yes"])
    said = capsys.readouterr()
    if code:
        what = request.node.callspec.id.partition(": ")[2]
        strict = host == "codex"  # which reads nothing of a file that has a key it does not know
        assert what not in ORDINARY or strict, said.err
        assert said.err.startswith(f"notyet install: {path}")
        assert said.err.count("\n") == 1
        assert path.read_bytes() == content
        return
    assert "notyet" in path.read_text()
    parsed(path)
    assert main(["uninstall", host, "--yes"]) == 0, capsys.readouterr().err
    assert path.read_bytes() == content


@pytest.mark.parametrize("host", [*HOSTS, *PLUGINS])
def test_a_new_file_goes_with_what_was_made_for_it(host, home):
    settings = settings_of(host)
    path = home / settings.host.settings["user"]
    before = sorted(home.rglob("*"))
    assert main(["install", host, "--yes"]) == 0
    assert "notyet" in path.read_text()
    assert main(["install", host, "--yes"]) == 0  # nothing more to do
    assert main(["uninstall", host, "--yes"]) == 0
    assert not path.exists()
    own = (home / ".local", home / "state")  # backups, and the launcher
    made = [one for one in home.rglob("*") if one not in before and one.is_file()]
    assert [one for one in made if not any(one.is_relative_to(where) for where in own)] == []


@pytest.mark.parametrize("host", HOSTS)
def test_a_link_stays_a_link_and_a_mode_a_mode(host, home):
    path = settings_file(home, host)
    real = home / "dotfiles" / path.name
    real.parent.mkdir()
    content = EMPTY[path.suffix]
    real.write_bytes(content)
    real.chmod(0o440)
    path.symlink_to(os.path.relpath(real, path.parent))
    assert main(["install", host, "--yes"]) == 0
    assert path.is_symlink()
    assert "notyet" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o440
    assert main(["uninstall", host, "--yes"]) == 0
    assert path.is_symlink()
    assert real.read_bytes() == content


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")
@pytest.mark.parametrize("host", HOSTS)
def test_a_file_of_another_user_stays_theirs(host, home):
    path = settings_file(home, host)
    path.write_bytes(EMPTY[path.suffix])
    os.chown(path, 12345, 12346)
    assert main(["install", host, "--yes"]) == 0  # root may; others are refused (test_change.py)
    assert "notyet" in path.read_text()
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)
    assert main(["uninstall", host, "--yes"]) == 0
    assert path.read_bytes() == EMPTY[path.suffix]
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "codex"])
def test_what_a_person_adds_between_stays(host, home):
    path = settings_file(home, host)
    assert main(["install", host, "--yes"]) == 0
    text = path.read_text()
    added = {".toml": f"mine = 1\n{text}", ".yaml": f"mine: 1\n{text}"}
    path.write_text(added.get(path.suffix) or text.replace("{", '{"mine": 1, ', 1))
    assert parsed(path)["mine"] == 1
    assert main(["uninstall", host, "--yes"]) == 0
    assert parsed(path) in ({"mine": 1}, {"mine": 1, **settings_of(host).host.beside})
