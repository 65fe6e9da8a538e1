"""`notyet.light` does what `os`, `os.path` and `json` do, without loading them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import notyet
from notyet import light

PARTS = st.sampled_from(["/", "//", "a", ".", "..", "b c", "é", "", " ", "~", "~nobody"])
PATHS = st.lists(PARTS, max_size=7).map("".join)
OF_ONE = [
    "abspath",
    "basename",
    "dirname",
    "exists",
    "expanduser",
    "isabs",
    "isdir",
    "isfile",
    "lexists",
    "normpath",
    "realpath",
    "split",
]


@pytest.mark.parametrize("name", OF_ONE)
@given(path=PATHS)
def test_each_function_says_of_any_path_what_its_namesake_says(name, path):
    assert getattr(light, name)(path) == getattr(os.path, name)(path)


@given(st.lists(PATHS, min_size=1, max_size=4))
def test_parts_are_joined_as_its_namesake_joins_them(parts):
    assert light.join(*parts) == os.path.join(*parts)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "absolute").symlink_to(tmp_path / "link" / "deep")
    (tmp_path / "real" / "deep" / "up").symlink_to("../..")
    (tmp_path / "nowhere").symlink_to("missing/further")
    (tmp_path / "round").symlink_to("about")
    (tmp_path / "about").symlink_to("round")
    before = tmp_path / "real"
    for number in range(45):
        (tmp_path / f"hop{number}").symlink_to(before)
        before = tmp_path / f"hop{number}"
    return tmp_path


@pytest.mark.parametrize("name", ["realpath", "exists", "lexists", "isdir", "isfile"])
@pytest.mark.parametrize(
    "path",
    [
        "link/file",
        "link/deep/up/link/file",
        "absolute/up/real",
        "absolute/../file",
        "nowhere",
        "nowhere/..",
        "round",
        "round/below",
        "hop44/file",
        "missing/../real",
        "real/file/below",
    ],
)
def test_links_are_followed_as_its_namesake_follows_them(name, path, tree, monkeypatch):
    monkeypatch.chdir(tree)
    for given_as in (path, str(tree / path)):
        assert getattr(light, name)(given_as) == getattr(os.path, name)(given_as)


def test_names_of_any_bytes_survive_both_ways():
    name = b"\xff\xc3\xa9 x"
    assert light.fsdecode(name) == os.fsdecode(name)
    assert light.fsencode(light.fsdecode(name)) == name


NOT_JSON = [
    "", " ", "{", "[1,]", "{'a': 1}", '{"a" 1}', "nul", "1 2", '"a', "01", "+1", "\ufeff{}",
    "NaN", "-Infinity", "[Infinity]", '"\\x"', '"\\ud8"', "9" * 5000, "\x00", "{}\x00",
]  # fmt: skip


@pytest.fixture(params=["usual", "without _json", "strange _json"])
def reader(request, monkeypatch):
    """The module as it is, and as it would be on an interpreter that is not the usual one."""
    if request.param == "usual":
        return light
    spec = importlib.util.spec_from_file_location("light_elsewhere", light.__file__)
    module = importlib.util.module_from_spec(spec)
    if request.param == "without _json":
        monkeypatch.setitem(sys.modules, "_json", None)
    spec.loader.exec_module(module)
    if request.param == "strange _json":

        def wants_more(settings):
            return settings.array_hook

        def takes_less(markers):
            return markers

        module.make_scanner, module.make_encoder = wants_more, takes_less
    return module


def test_json_is_read_on_every_interpreter(reader):
    for text in ('{"a": [1, 2.5, null, true, "\\u00e9\\ud83d\\ude00"]}', " 1 ", '"x"', "\n[]\r\t"):
        assert reader.loads(text) == reader.loads_strictly(text) == json.loads(text)


def test_json_is_written_on_every_interpreter(reader):
    value = {"z": 0, "a": [1, 2.5, None, True, 'é😀"\n\x00'], "b": {}, "c": [], "d": (1,)}
    assert reader.dumps(value) == json.dumps(value)
    for wrong in (float("nan"), {1: object()}, {(1, 2): 3}, [b"x"], {1, 2}):
        with pytest.raises(ValueError):
            reader.dumps(wrong)


@pytest.mark.parametrize("text", NOT_JSON)
def test_what_is_not_json_is_a_value_error(reader, text):
    for read in (reader.loads, reader.loads_strictly):
        with pytest.raises(ValueError):
            read(text)


def test_a_line_break_inside_a_text_is_forgiven_by_one_and_not_by_the_other(reader):
    assert reader.loads('{"a": "one\ntwo\x00"}') == {"a": "one\ntwo\x00"}
    with pytest.raises(ValueError, match="control character"):
        reader.loads_strictly('{"a": "one\ntwo"}')


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000])
def test_what_is_nested_too_deeply_is_a_value_error(reader, text):
    for read in (reader.loads, reader.loads_strictly):
        with pytest.raises(ValueError):
            read(text)


def test_what_holds_itself_is_a_value_error(reader):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError):
        reader.dumps(endless)


def test_the_json_package_is_not_loaded_for_what_is_json():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from notyet.light import dumps, loads, loads_strictly;"
        "assert loads(dumps({'a': [1.5, None]})) == loads_strictly('{\"a\": [1.5, null]}');"
        "assert 'json' not in sys.modules and 're' not in sys.modules"
    )
    src = notyet.__path__[0].rsplit("/", 1)[0]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, src], capture_output=True)
    assert done.returncode == 0, done.stderr
