"""The file that a scripted agent follows, and what is said of a wrong one."""

import pytest

from notyet.agents.script import (
    Fail,
    Garbage,
    Hang,
    Say,
    Scene,
    Script,
    Tool,
    Wait,
    Write,
    plain,
    read_script,
    script_from,
)
from notyet.core.event import Usage
from notyet.errors import Refused

FULL = """
model = "scripted/one"
after = "error"
forgetful = true

[[turn]]
say = "Done!"
usage = { input = 900, output = 40 }

[[turn]]
refuse = 2
stop = "max_tokens"
steps = [
  { tool = "bash", input = { script = "make test" }, run = "make test" },
  { tool = "echo", run = ["echo", "a b"] },
  { write = "src/shop.py", text = "total = sum" },
  { wait = 0.2 },
  { garbage = 20 },
  { hang = true },
  { say = "Later." },
  { fail = "overloaded", recover = "It went well.", after = 0.5 },
]
"""
SCRIPT = Script(
    model="scripted/one",
    after="error",
    forgetful=True,
    turns=(
        Scene(steps=(Say("Done!"),), usage=Usage(input=900, output=40, total=940)),
        Scene(
            refuse=2,
            stop_reason="max_tokens",
            steps=(
                Tool("bash", {"script": "make test"}, "make test"),
                Tool("echo", {}, ("echo", "a b")),
                Write("src/shop.py", "total = sum"),
                Wait(0.2),
                Garbage(20),
                Hang(),
                Say("Later."),
                Fail("overloaded", "It went well.", 0.5),
            ),
        ),
    ),
)


def step(content):
    return f"[[turn]]\nsteps = [{{{content}}}]"


def written(tmp_path, text):
    path = tmp_path / "script.toml"
    path.write_text(text)
    return str(path)


def test_a_file_says_all_that_a_script_in_python_says(tmp_path):
    assert read_script(written(tmp_path, FULL)) == SCRIPT


def test_a_script_survives_being_written_as_plain_values():
    assert script_from(plain(SCRIPT), "x") == SCRIPT
    short = Script.saying("One.", "Two.")
    assert script_from(plain(short), "x") == short


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("turn = 1", "script.toml: turn must be a list, not 1"),
        ("", r"script.toml: there is no \[\[turn\]\]"),
        ("[[turn]]\nsai = 'x'", "turn 1: sai is unknown; did you mean `say`"),
        ("[[turn]]\nzzz = 'x'", "turn 1: zzz is unknown; it knows steps, say"),
        ("[[turn]]\nsteps = [1]", "turn 1, step 1: must be a table, not int"),
        ("[[turn]]\nsteps = [{}]", "step 1: a step does one of say, .*; it has none"),
        ("[[turn]]\nsteps = [{say='a', wait=1}]", "step 1: .* it has say and wait"),
        ("[[turn]]\nsteps = [{wait='1'}]", "step 1: wait must be a number of seconds, not '1'"),
        ("[[turn]]\nsteps = [{wait=-1}]", "wait must be .* not -1"),
        ("[[turn]]\nsteps = [{wait=true}]", "wait must be .* not True"),
        ("[[turn]]\nrefuse = 1.5", "refuse must be a whole number from 0 on, not 1.5"),
        ("[[turn]]\nusage = {tokens = 1}", "turn 1, usage: tokens is unknown"),
        ("after = 'stop'\n[[turn]]", "after must be one of repeat, error, not 'stop'"),
        ("[[turn]\n", "script.toml is not TOML"),
        (step("wait=nan"), "turn 1, step 1: wait must be .* not nan"),
        (step("wait=inf"), "turn 1, step 1: wait must be .* not inf"),
        (step("wait=1979-05-27"), "turn 1, step 1: wait must be .* not datetime.date"),
        (step("fail='x', after=inf"), "turn 1, step 1: after must be .* not inf"),
        (step("tool='x', input={a=1979-05-27}"), "turn 1, step 1: Object of type date is not JSON"),
        (step("write='../x'"), "step 1: write must be the path of a file below the .*: '../x'"),
        (step("write='/etc/x'"), "step 1: write must be the path of a file below the folder"),
        (step("write='a/'"), "step 1: write must be the path of a file below the folder"),
    ],
)
def test_every_mistake_in_a_file_is_said_with_its_place(text, message, tmp_path):
    with pytest.raises(Refused, match=message):
        read_script(written(tmp_path, text))


def test_a_file_that_is_missing_or_no_text_is_said(tmp_path):
    with pytest.raises(Refused, match=r"none\.toml cannot be read: No such file"):
        read_script(str(tmp_path / "none.toml"))
    (tmp_path / "b.toml").write_bytes(b"\xff")
    with pytest.raises(Refused, match="is not TOML"):
        read_script(str(tmp_path / "b.toml"))


def test_a_file_outside_of_the_folder_cannot_be_written_from_python_either():
    with pytest.raises(ValueError, match="below the folder"):
        Write("../x")
    assert Write("..x/a..b").path == "..x/a..b"
