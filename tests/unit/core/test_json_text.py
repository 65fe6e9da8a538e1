"""JSON without the `json` package."""

import importlib.util
import json
import subprocess
import sys

import pytest

from notyet.core import json_text
from notyet.core.json_text import dumps, loads, loads_strictly

NOT_JSON = [
    "", " ", "{", "[1,]", "{'a': 1}", '{"a" 1}', "nul", "1 2", '"a', "01", "+1", "\ufeff{}",
    "NaN", "-Infinity", "[Infinity]", '"\\x"', '"\\ud8"', "9" * 5000, "\x00", "{}\x00",
]  # fmt: skip


@pytest.fixture(params=["usual", "without _json", "strange _json"])
def reader(request, monkeypatch):
    """The module as it is, and as it would be on an interpreter that is not the usual one."""
    if request.param == "usual":
        return json_text
    spec = importlib.util.spec_from_file_location("json_text_elsewhere", json_text.__file__)
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


def test_what_is_wrong_is_said_with_its_place():
    with pytest.raises(ValueError, match="line 2 column 1"):
        loads('{"a": 1,\n}')
    with pytest.raises(ValueError, match="NaN is not JSON"):
        loads("[NaN]")
    with pytest.raises(ValueError, match="a set has no JSON"):
        dumps({1})
    assert loads_strictly("{}") == {}


def test_the_json_package_is_not_loaded_for_what_is_json():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from notyet.core.json_text import dumps, loads, loads_strictly;"
        "assert loads(dumps({'a': [1.5, None]})) == loads_strictly('{\"a\": [1.5, null]}');"
        "assert 'json' not in sys.modules and 're' not in sys.modules"
    )
    import notyet

    src = notyet.__path__[0].rsplit("/", 1)[0]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, src], capture_output=True)
    assert done.returncode == 0, done.stderr
