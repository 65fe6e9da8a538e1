import pytest

from notyet.config.compile import compile_text
from notyet.core.gate import Command, Gate, Match, Source
from notyet.core.verdict import OUTCOMES

FILE = "/project/notyet.toml"
DEFAULTS = {"pass_codes": [0], "hint": ""}


def gates_of(text):
    settings = compile_text(text, FILE)
    assert settings.mistakes == ()
    return settings.gates


def gate_of(text):
    (gate,) = gates_of(f"[gates.g]\n{text}")
    return gate


def mistakes_of(text):
    return [mistake.message for mistake in compile_text(text, FILE).mistakes]


@pytest.mark.rule("E6", "E7", "E8")
def test_the_short_form_is_a_script_run_in_the_folder_of_its_file_for_ten_minutes():
    assert gates_of('[gates]\nmypy = "uv run mypy src"\n') == (
        Gate(
            name="mypy",
            check=Command(script="uv run mypy src", dir="/project", options=DEFAULTS),
            timeout=600.0,
            if_broken="block",
            when="changed",
            source=Source(FILE, 2),
        ),
    )


def test_a_gate_with_every_key_becomes_a_gate_with_every_field():
    text = """
[gates.tests]
run = "uv run pytest -q"
slow = true
paths = ["src/**", "tests/**"]
when = "always"
timeout = "10m30s"
pass_codes = [0, 5]
hint = "Fix the cause, not the assertion."
if_broken = "block"
for = "all"
never = ["Explore"]
dir = "apps/./web"
observe = true
endings = ["done", "error"]
env = { CI = "1", EMPTY = "" }
"""
    (gate,) = gates_of(text)
    assert gate == Gate(
        name="tests",
        check=Command(
            script="uv run pytest -q",
            dir="/project/apps/web",
            env=(("CI", "1"), ("EMPTY", "")),
            options={
                "pass_codes": [0, 5],
                "hint": "Fix the cause, not the assertion.",
            },
        ),
        match=Match(events=("agent", "subagent"), never=("Explore",), endings=("done", "error")),
        priority=-1,
        timeout=630.0,
        if_broken="block",
        observe=True,
        when="always",
        paths=("src/**", "tests/**"),
        source=Source(FILE, 2),
    )


@pytest.mark.parametrize("glob", ["[a", "pytest {a,b}", "a\\nb", ""])
def test_a_pattern_that_no_command_can_match_is_a_mistake_of_the_file(glob):
    settings = compile_text(f'[gates.g]\nran = ["pytest*", "{glob}"]\n', FILE)
    (mistake,) = settings.mistakes
    assert "`gates.g.ran[1]`" in str(mistake)


@pytest.mark.rule("N1")
@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("", "must not be blank"),
        ("/src/**", 'must be a glob of files below the file\'s folder, not "/src/**"'),
        ("~/src", "must be a glob of files below the file's folder"),
        ("../other/**", "must be a glob of files below the file's folder"),
        ("a\\nb", "contains a line break or control character"),
        ("src/{a,b}.py", "is not a valid pattern: braces are not supported"),
        ("src/[a", "is not a valid pattern: "),
        ("!docs/**", "but files cannot be left out (name the files that count)"),
        (":(exclude)docs", "but files cannot be left out"),
        ("src\\\\a.py", '(did you mean "src/a.py"?)'),
        ("**.py", '(write it like "src/**/*.py")'),
    ],
)
def test_a_path_that_git_would_take_otherwise_is_a_mistake_and_then_all_files_count(glob, words):
    settings = compile_text(f'[gates.g]\nrun = "x"\npaths = ["ok/**", "{glob}"]\n', FILE)
    (mistake,) = settings.mistakes
    assert (mistake.line, words in str(mistake)) == (3, True), mistake
    assert settings.gates[0].paths == ()


@pytest.mark.rule("E8")
def test_a_list_is_a_program_and_its_arguments_and_a_text_one_script_of_many_lines():
    assert gate_of('run = ["ruff", "check", ""]').check.argv == ("ruff", "check", "")
    assert gate_of('run = """\ncd x\nmake\n"""').check.script == "cd x\nmake\n"


@pytest.mark.rule("N4")
def test_a_python_function_is_kept_by_name():
    check = gate_of('python = "my.gates:tests_ran"\ninterpreter = ".venv/bin/python"').check
    assert check.argv == ("python", "my.gates:tests_ran")
    assert check.options["python"] == "my.gates:tests_ran"
    assert check.options["interpreter"] == ".venv/bin/python"
    assert gate_of('python = "gates:f"').check.options["interpreter"] == ""


@pytest.mark.rule("N1")
@pytest.mark.parametrize(
    ("more", "when"),
    [("", "always"), ('when = "changed"', "changed"), ('paths = ["src/**"]', "changed")],
)
def test_a_python_function_without_paths_runs_at_every_stop(more, when):
    assert gate_of(f'python = "gates:f"\n{more}').when == when


@pytest.mark.parametrize(
    ("whom", "match"),
    [
        ('"main"', Match()),
        ('"subagents"', Match(events=("subagent",))),
        ('"all"', Match(events=("agent", "subagent"))),
        ('"coder-*"', Match(events=("subagent",), agents=("coder-*",))),
        ('["coder", "impl-*"]', Match(events=("subagent",), agents=("coder", "impl-*"))),
    ],
)
def test_a_gate_is_for_the_main_agent_for_subagents_or_for_kinds_of_them(whom, match):
    assert gate_of(f'run = "x"\nfor = {whom}').match == match


@pytest.mark.rule("D1")
@pytest.mark.parametrize("pattern", ["", " ", "[a", "{a,b}", "[z-a]"])
def test_a_bad_or_empty_pattern_is_a_mistake_and_never_a_silent_no_match(pattern):
    for key in (f'for = ["{pattern}"]', f'never = ["{pattern}"]'):
        settings = compile_text(f'[gates.g]\nrun = "x"\n{key}\n', FILE)
        assert len(settings.mistakes) == 1
        assert settings.mistakes[0].line == 3
        assert settings.gates == ()


@pytest.mark.rule("E7")
@pytest.mark.parametrize("folder", ["/etc", "..", "a/../../b", "~", "~/x", "./../x"])
def test_a_gate_cannot_run_outside_the_folder_of_its_file(folder):
    settings = compile_text(f'[gates.g]\nrun = "x"\ndir = "{folder}"\n', FILE)
    assert settings.gates == ()
    assert "below the file's folder" in settings.mistakes[0].message


def test_a_priority_beside_slow_is_a_mistake_and_the_number_counts():
    settings = compile_text('[gates.g]\nrun = "x"\nslow = true\npriority = 7\n', FILE)
    assert settings.gates[0].priority == 7
    assert [mistake.line for mistake in settings.mistakes] == [3]


@pytest.mark.rule("E10")
def test_pass_codes_are_exit_codes_and_there_is_at_least_one():
    assert gate_of('run = "x"\npass_codes = [0, 255]').check.options["pass_codes"] == [0, 255]
    text = '[gates.g]\nrun = "x"\npass_codes = {}\n'
    assert mistakes_of(text.format("[]")) == ["`gates.g.pass_codes` must not be empty"]
    assert len(mistakes_of(text.format("[-1, 256, true]"))) == 3


@pytest.mark.parametrize("name", ['""', '"  "', '"a\\nb"', f'"{"x" * 81}"', '"\\u0000"'])
def test_a_gate_has_a_name_that_fits_on_a_line(name):
    settings = compile_text(f'[gates]\n{name} = "x"\ngood = "y"\n', FILE)
    assert [gate.name for gate in settings.gates] == ["good"]
    assert len(settings.mistakes) == 1


def test_an_observer_is_told_of_all_outcomes_or_of_those_it_names():
    text = """
[observers.all]
run = "logger"
[observers.some]
python = "m:f"
timeout = "2s"
on = ["capped", "stuck"]
dir = "x"
env = { A = "b" }
"""
    everything, some = compile_text(text, FILE).observers
    assert everything.name == "all"
    assert everything.check == Command(script="logger", dir="/project")
    assert everything.timeout == 10.0
    assert everything.on == OUTCOMES
    assert everything.source == Source(FILE, 2)
    assert some.on == ("capped", "stuck")
    assert some.timeout == 2.0
    assert some.check.options == {"python": "m:f", "interpreter": ""}


@pytest.mark.rule("J8", "J9")
def test_the_other_tables_say_what_else_is_read_told_and_answered(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    text = """
"$schema" = "https://example.com/x.json"
[start]
tell = true
[read]
hosts = ["claude", "mux", "claude"]
openclaw = "conf/openclaw.json"
[reply]
claude = "block"
"""
    settings = compile_text(text, FILE)
    assert [mistake.file for mistake in settings.mistakes] == ["/project/conf/openclaw.json"]
    assert settings.start_tell is True
    assert settings.read_hosts == ("claude", "mux")
    assert settings.openclaw == "/project/conf/openclaw.json"
    assert settings.reply == {"claude": "block"}
    at_home = compile_text('[read]\nopenclaw = "~/o.json"\n', FILE)
    assert at_home.openclaw == "/home/me/o.json"


def test_of_hundreds_of_mistakes_the_first_200_are_reported():
    text = "".join(f'[gates.g{n}]\nrun = "true"\nwrong = 1\n' for n in range(300))
    settings = compile_text(text, FILE)
    assert len(settings.gates) == 300
    assert str(settings.mistakes[-1]) == f"{FILE}: and 100 more mistakes"


@pytest.mark.parametrize("jobs", ["0", "-1", "1.5", '"2"'])
def test_there_is_room_for_at_least_one_job(jobs):
    found = compile_text(f"[limits]\njobs = {jobs}\n", FILE)
    assert "`limits.jobs` must be a whole number from 1 to " in str(found.mistakes[0])
    assert found.limits == {}
    assert compile_text("[limits]\njobs = 3\n", FILE).limits == {"jobs": 3}
