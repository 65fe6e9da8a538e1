import pytest

from notyet.config.compile import compile_text
from notyet.config.compiled import DAMAGED, FORMAT, FileObserver, FileSettings, freeze, thaw
from notyet.core.gate import Command, Gate, Match, Source
from notyet.core.record import replace
from notyet.light import dumps, loads

TEXT = """
[limits]
max_blocks = 5
[gates]
a = "x"
[gates.b]
run = ["x", "y"]
for = ["c*"]
never = ["d"]
env = { A = "b" }
timeout = "1m"
[gates.c]
python = "m:f"
slow = true
paths = ["src/**"]
when = "always"
[observers.o]
run = "z"
on = ["capped"]
[observers.p]
run = "z"
[start]
tell = false
[read]
hosts = ["mux"]
openclaw = "o.json"
[reply]
claude = "block"
[wrong]
"""


def test_settings_come_back_from_their_compiled_form_as_they_were():
    settings = compile_text(TEXT, "/p/notyet.toml")
    assert len(settings.mistakes) == 2
    assert thaw(loads(dumps(freeze(settings)))) == replace(settings, mistakes=())


def test_gates_of_other_hosts_come_back_too():
    gate = Gate(
        name="g",
        check=Command(script="x", speaks="conclaude", env=(("A", "b"),), options={"a": [1, {}]}),
        match=Match(events=("subagent",), agents=("a|b",), kind="codex", endings=("error",)),
        priority=3,
        step=4,
        timeout=None,
        if_broken="block",
        observe=True,
    )
    bare = Gate(name="h", check=Command(argv=("x",)))
    observer = FileObserver(name="o", check=Command(script="x"), source=Source("f", 3))
    settings = FileSettings(file="f", gates=(gate, bare), observers=(observer,))
    assert thaw(loads(dumps(freeze(settings)))) == settings


@pytest.mark.parametrize(
    "frozen",
    [
        {},
        [],
        None,
        {"format": FORMAT + 1, "file": "f"},
        {"format": FORMAT},
        {"format": FORMAT, "file": "f", "surprise": 1},
        {"format": FORMAT, "file": "f", "gates": 1},
        {"format": FORMAT, "file": "f", "gates": [{"name": "g"}]},
        {"format": FORMAT, "file": "f", "gates": [[]]},
        {"format": FORMAT, "file": "f", "gates": [{"name": "", "check": {"script": "x"}}]},
        {"format": FORMAT, "file": "f", "gates": [{"name": "g", "check": {"script": 1}}]},
        {"format": FORMAT, "file": "f", "observers": [{"name": "g", "check": {}}]},
    ],
)
def test_what_is_no_compiled_form_of_ours_is_refused(frozen):
    with pytest.raises(DAMAGED):
        thaw(frozen)
