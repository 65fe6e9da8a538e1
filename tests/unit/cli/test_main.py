import shlex
import subprocess
import sys
from importlib import import_module

import pytest

from notyet.cli import demo
from notyet.cli.main import COMMANDS, GROUPS, main, parsed, summaries


@pytest.mark.parametrize("argv", [["nonsense"], ["demo", "--nonsense"], ["--json", "status"]])
def test_a_wrong_command_line_says_what_is_wrong(argv, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(argv)
    assert leaving.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("notyet")


def test_a_command_with_a_typo_is_guessed(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["statsu", "--json"])
    assert leaving.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said == "notyet: there is no command 'statsu'; did you mean `status`?"


def test_a_command_like_no_other_is_not_guessed_nor_obeyed_by_a_terminal(capsys):
    with pytest.raises(SystemExit):
        main(["\x1b[2J" + "x" * 1000])
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert len(said) < 200
    assert said.endswith("see all commands with: notyet --help\n")


def test_notyet_alone_is_a_short_page_that_begins_with_the_answer(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[1].startswith("NO ")
    assert "  notyet init " in said
    assert "notyet --help" in said
    assert said.endswith("next: notyet init\n")
    assert len(said.splitlines()) < 12


def test_notyet_alone_needs_no_home(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "notyet"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nNO " in done.stdout


def test_a_host_is_not_a_command_but_can_be_installed(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["claude"])
    assert leaving.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("run: notyet install claude")


def test_windows_is_refused_in_one_sentence():
    code = "import sys; sys.platform = 'win32'; import notyet.cli.main"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    (said,) = done.stderr.splitlines()
    assert "WSL" in said


def test_every_command_is_in_one_group_with_its_summary(capsys):
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert sorted(set(COMMANDS) - set(grouped)) == []
    with pytest.raises(SystemExit):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    for name, summary in summaries(COMMANDS).items():
        assert f" {name} {summary} " in said


EVERY_EXAMPLE = [
    pytest.param(name, line, id=line)
    for name in COMMANDS
    for line, _ in import_module(COMMANDS[name]).EXAMPLES
]


def words_of(line):
    """Return what notyet is given by a line of a shell."""
    (part,) = [part.split() for part in line.split(" | ") if part.strip().startswith("notyet ")]
    words = shlex.split(" ".join(part[1:]))
    return words[: min(words.index(sign) if sign in words else len(words) for sign in "<>")]


@pytest.mark.parametrize(("name", "line"), EVERY_EXAMPLE)
def test_every_example_is_a_command_line_that_is_understood(name, line, monkeypatch):
    assert parsed(words_of(line)).command == name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_ends_with_examples(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    with pytest.raises(SystemExit) as leaving:
        main([name, "--help"])
    assert leaving.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: notyet {name}")
    _, _, shown = said.partition("\nexamples:\n")
    for line, what in import_module(COMMANDS[name]).EXAMPLES:
        assert f"  {line}" in shown
        assert what.split()[0] in shown


def test_ctrl_c_ends_a_command_with_130(monkeypatch, capsys):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "notyet: interrupted\n"


def test_a_reader_that_has_seen_enough_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m notyet demo | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("Agents say done. notyet checks.\n", "")
