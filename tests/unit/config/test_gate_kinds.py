"""Gates of notyet's own kinds in a `notyet.toml`: what is said about mistakes in them."""

import pytest

from notyet.config.compile import compile_text

ELSEWHERE = 'workspace = "ssh://dev@box/srv/app"'
NOT_THERE = (
    "works only on this machine, not in a workspace "
    '(write workspace = "local" if the files are here, too, or use a plain `run`)'
)


def compiled(*lines):
    return compile_text("\n".join(["[gates.a]", *lines, ""]), "/p/notyet.toml")


@pytest.mark.rule("J7")
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ['judge = "x"'],
            "1:8: `gates.a` needs `with`, the command that judges "
            '(write with = "claude -p --model haiku", or another command that reads a prompt)',
        ),
        (['guard = "tests"', ELSEWHERE], f"2:1: `gates.a.guard` {NOT_THERE}"),
        (['uses = "hk"', ELSEWHERE], f"2:1: `gates.a.uses` {NOT_THERE}"),
        (['run = "ruff {files}"', ELSEWHERE], f"2:1: `gates.a.run` with {{files}} {NOT_THERE}"),
        (['run = "true"', 'fix = "true"', ELSEWHERE], f"3:1: `gates.a.fix` {NOT_THERE}"),
        (
            ['run = "true"', "new_failures_only = true", ELSEWHERE],
            f"3:1: `gates.a.new_failures_only` {NOT_THERE}",
        ),
        (
            ['run = ["ruff", "--in={files}"]'],
            "2:1: `gates.a.run` must have {files} as an item of its own "
            '(write ["ruff", "check", "{files}"])',
        ),
        (
            ["run = \"ruff '{files}'\""],
            "2:1: `gates.a.run` must not quote {files} "
            "(each file is quoted already; leave the quotes out)",
        ),
        (
            ['run = "true"', "fix = 'black \"{files}\"'"],
            "3:1: `gates.a.fix` must not quote {files} "
            "(each file is quoted already; leave the quotes out)",
        ),
        (
            ['guard = "tests"', 'block = ["removed"]', 'tell = ["ci", "removed"]'],
            '4:1: `gates.a.tell` names "removed", which `block` names, too '
            "(keep it in one of them)",
        ),
        (
            ['guard = "test"'],
            '2:1: `gates.a.guard` must be "tests", not "test" (did you mean `tests`?)',
        ),
        (['judge = ""', 'with = "claude -p"'], "2:1: `gates.a.judge` must not be blank"),
        (
            ['preset = "hk"'],
            "2:1: `gates.a.preset` is not a known key (did you mean `uses`?)",
        ),
    ],
)
def test_a_gate_that_cannot_work_is_refused_in_one_sentence(lines, says):
    settings = compiled(*lines)
    assert [str(mistake) for mistake in settings.mistakes] == [f"/p/notyet.toml:{says}"]
    assert settings.gates == ()


@pytest.mark.rule("J7")
@pytest.mark.parametrize(
    ("line", "needs"),
    [("new_failures_only = true", "run"), ('fix = "true"', "run"), ("strict = true", "guard")],
)
def test_a_key_without_the_one_it_belongs_to_has_no_effect(line, needs):
    settings = compiled('python = "gates:check"', line)
    key = line.split()[0]
    said = f"/p/notyet.toml:3:1: `gates.a.{key}` has no effect without `{needs}`"
    assert [str(mistake) for mistake in settings.mistakes] == [said]
    [gate] = settings.gates
    assert key not in gate.check.options
    assert "kind" not in gate.check.options
    assert gate.step == 0


def test_a_gate_needs_one_of_the_kinds():
    [mistake] = compiled("slow = true").mistakes
    said = "`gates.a` needs `run`, `python`, `uses`, `guard`, `ran` or `judge`"
    assert mistake.message == said
