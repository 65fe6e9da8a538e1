import subprocess
import sys

import pytest

import notyet
from notyet.cli import demo
from notyet.cli.main import COMMANDS, main
from notyet.cli.style import Style


def test_every_command_is_in_the_help(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"notyet {notyet.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["demo", "--nonsense"]])
def test_a_wrong_command_line_says_what_is_wrong(argv, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(argv)
    assert leaving.value.code == 2
    assert "usage: notyet" in capsys.readouterr().err


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


class Terminal:
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environ", "painted"),
    [({}, "\x1b[1;31mx\x1b[0m"), ({"NO_COLOR": "1"}, "x"), ({"TERM": "dumb"}, "x")],
)
def test_colour_is_for_terminals_whose_owner_does_not_mind(monkeypatch, environ, painted):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Style(Terminal()).paint("x", "bold", "red") == painted


def test_no_colour_where_nobody_looks():
    assert Style(sys.__stdin__).paint("x", "red") == "x" or sys.__stdin__.isatty()
