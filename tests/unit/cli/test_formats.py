"""`--format github` and `--format junit` of `check` and `validate`, as their readers parse them."""

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hook_runs import FAILING, PASSING, gate, new_project
from notyet.cli.formats import Case, github, junit
from notyet.cli.main import main
from notyet.core.text import clean

OBSERVED = '[gates.watch]\nrun = "false"\nobserve = true\n'
BROKEN = '[gates.gone]\nrun = "no-such-program-at-all"\nif_broken = "allow"\n'
LATER = '[gates.later]\nrun = "true"\nslow = true\n'
OTHERS = '[gates.sub]\nrun = "true"\nfor = ["coder"]\n'


def commands(text):
    """Return the workflow commands of an output as (level, properties, message).

    As GitHub's runner reads them: split at line ends, `::`, the first space, commas and `=`; then
    unescaped.
    """
    found = []
    for line in re.split("\r\n|\n|\r", text):
        if not line.startswith("::"):
            continue
        head, message = line[2:].split("::", 1)
        level, _, said = head.partition(" ")
        values = dict(pair.split("=", 1) for pair in said.split(","))
        found.append((level, {k: plain(v) for k, v in values.items()}, plain(message)))
    return found


def plain(text):
    for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, sign)
    return text


def cases(text):
    """Return the testcases of JUnit XML by name: how each ended, its message and its text."""
    root = ET.fromstring(text)  # noqa: S314  # it is our own
    found = {}
    for case in root.iter("testcase"):
        (element,) = case if len(case) else (ET.Element("passed"),)
        ended = "passed" if element.tag == "system-out" else element.tag
        found[case.get("name")] = (ended, element.get("message", ""), element.text or "")
    for suite in (root, *root):
        assert int(suite.get("tests")) == len(list(root.iter("testcase")))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(count)) == len(list(root.iter(tag)))
    return found


@pytest.mark.parametrize(
    ("text", "argv", "code", "ended"),
    [
        (PASSING, (), 0, {"ok": "passed"}),
        (PASSING + FAILING + LATER, (), 1, {"ok": "passed", "bad": "failure", "later": "skipped"}),
        (PASSING + OBSERVED, (), 0, {"ok": "passed", "watch": "skipped"}),
        (PASSING + BROKEN, (), 2, {"ok": "passed", "gone": "error"}),
        (PASSING + OTHERS, (), 0, {"ok": "passed", "sub": "skipped"}),
        (PASSING + OTHERS, ("sub",), 2, {"sub": "error"}),
        (OTHERS, (), 2, {"sub": "skipped", "notyet check": "error"}),
        (PASSING, ("none",), 2, {"notyet check": "error"}),
        ("", (), 2, {"notyet check": "error"}),
        (gate('echo \'{"decision": "halt", "reason": "no"}\''), (), 1, {"g": "failure"}),
        (gate("sleep 9"), ("--timeout", "1"), 2, {"g": "error"}),
    ],
)
def test_a_check_is_green_only_if_every_gate_passed(  # noqa: PLR0917  # a row of the table
    check, tmp_path, text, argv, code, ended
):
    folder = new_project(tmp_path / "p", text)
    done = check(folder, *argv, "--format", "junit")
    assert done.code == code
    assert {name: said[0] for name, said in cases(done.out).items()} == ended
    assert bool({"failure", "error"} & {*ended.values()}) == bool(code)
    done = check(folder, *argv, "--format", "github")
    assert done.code == code
    levels = [level for level, _, _ in commands(done.out)]
    assert ("error" in levels) == bool(code)


def test_an_untrusted_file_is_an_error(check, place):
    (place / "notyet.toml").write_text(PASSING)
    done = check(place, "--format", "junit")
    said = f"NOT CHECKED: {place}/notyet.toml is not trusted; run: notyet trust"
    assert (done.code, cases(done.out)) == (2, {f"{place}/notyet.toml": ("error", said, "")})
    done = check(place, "--format", "github")
    values = {"file": "notyet.toml", "title": "notyet check"}
    assert (done.code, commands(done.out)) == (2, [("error", values, said)])


def test_what_a_gate_printed_is_shown_where_the_gate_stands(check, tmp_path, monkeypatch):
    script = r"printf '50%%, a: b\r\n::error::no\n]]>&\377\000\033[31mred\033[0m'; exit 3"
    text = f"[gates.bad]\nhint = 'Fix it.'\nrun = '''{script}'''\n"
    folder = new_project(tmp_path / "p", text)
    printed = "50%, a: b\n::error::no\n]]>&\N{REPLACEMENT CHARACTER}red\nHint: Fix it."
    done = check(folder, "--format", "junit")
    ended, message, shown = cases(done.out)["bad"]
    assert (ended, shown) == ("failure", printed)
    assert message.startswith("FAILED bad (exit 3): printf ")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    done = check(folder, "--format", "github")
    ((level, values, message),) = commands(done.out)
    assert (level, message.partition("\n")[2]) == ("error", printed)
    assert values == {"file": "p/notyet.toml", "line": "1", "title": "notyet check"}
    assert done.out.splitlines()[1:] == ["blocked: the agent would be sent back by bad"]


def test_only_the_end_of_a_long_output_is_annotated(check, tmp_path):
    folder = new_project(tmp_path / "p", gate("seq 100; exit 1"))
    ((_, _, message),) = commands(check(folder, "--format", "github").out)
    assert message.split("\n")[1:] == [str(number) for number in range(61, 101)]


def test_a_file_gets_its_format_and_a_person_the_text(check, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    folder = new_project(tmp_path / "p", FAILING)
    done = check(folder, "--format", "junit=out.xml", "--format", "text=out.txt")
    assert "\x1b[" in done.out
    assert "FAILED bad" in done.out
    assert cases((folder / "out.xml").read_text())["bad"][0] == "failure"
    said = (folder / "out.txt").read_text()
    assert "FAILED bad" in said
    assert "\x1b" not in said
    done = check(folder, "--json", "--format", "github=out.log")
    assert json.loads(done.out)["outcome"] == "blocked"
    assert len(commands((folder / "out.log").read_text())) == 1


def test_a_check_whose_results_cannot_be_written_is_not_passed(check, tmp_path):
    done = check(new_project(tmp_path / "p", PASSING), "--format", "junit=no/out.xml")
    assert (done.code, done.err) == (2, "notyet check: no/out.xml: No such file or directory\n")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--format", "yaml"), "one of text, json, github, junit, not 'yaml'"),
        (("--format", "junit="), "a file name must follow 'junit='"),
        (("--json", "--format", "junit=-"), "cannot both go to stdout; write --format junit=FILE"),
    ],
)
def test_a_bad_format_is_refused_before_a_gate_runs(check, tmp_path, argv, said):
    folder = new_project(tmp_path / "p", gate("touch ran"))
    done = check(folder, *argv)
    assert done.code == 2
    assert said in done.err
    assert not (folder / "ran").exists()


def test_every_mistake_is_a_case_and_an_annotation(git_project, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(git_project))
    folder = Path(git_project, "a, b")
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "notyet.toml").write_text('[gates]\na = 5\n[gates.b]\nrun = "true"\nx = 1\n')
    assert main(["validate", "--format", "junit"]) == 1
    ended = [(said[0], name[:16]) for name, said in cases(capsys.readouterr().out).items()]
    assert ended == [
        ("failure", "notyet.toml:2:1:"),
        ("failure", "notyet.toml:5:1:"),
    ]
    assert main(["validate", "--format", "github"]) == 1
    (first, second) = commands(capsys.readouterr().out)
    place = {"file": "a, b/notyet.toml", "col": "1", "title": "notyet validate"}
    assert first[:2] == ("error", place | {"line": "2"})
    assert second[1] == place | {"line": "5"}
    assert second[2].startswith("`gates.b.x` is not a known key")


def test_a_file_without_mistakes_passes_and_its_warnings_are_shown(place, capsys):
    (place / "notyet.toml").write_text('[gates]\na = "no-such-thing"\n')
    assert main(["validate", "--format", "junit"]) == 0
    assert [said[0] for said in cases(capsys.readouterr().out).values()] == ["skipped", "passed"]
    assert main(["validate", "--format", "github"]) == 0
    assert [level for level, _, _ in commands(capsys.readouterr().out)] == ["warning"]
    os.remove("notyet.toml")
    assert main(["validate", "--format", "junit"]) == 1
    assert [said[0] for said in cases(capsys.readouterr().out).values()] == ["error"]


@given(st.text(), st.text(), st.text(min_size=1))
def test_any_text_is_one_command_and_well_formed_xml(message, details, file):
    case = Case(name="g", status="failed", message=message, details=details, file=file)
    shown = github("a", [case], "done")
    ((level, values, said),) = commands(shown)
    assert (level, values["title"]) == ("error", "a")
    assert len(re.split("\r\n|\n|\r", shown)) == 2
    shown.encode()  # no lone surrogates
    assert said.startswith(clean(message).rstrip())
    ((ended, _, _),) = cases(junit("a", [case], "done")).values()
    assert ended == "failure"
