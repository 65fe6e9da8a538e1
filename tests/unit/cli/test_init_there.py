"""`notyet init` where there is a notyet.toml already: it is left alone, and told of."""

import pytest

from notyet.cli.main import main

MAKEFILE = "test:\n\t@echo ran >> ran\nlint:\n\t@false\n"


@pytest.fixture
def shop(place):
    """A project with two targets."""
    (place / "Makefile").write_text(MAKEFILE)
    return place


def test_the_file_that_is_there_is_left_alone_and_what_is_missing_is_said(shop, capsys):
    (shop / "notyet.toml").write_text('[gates]\ntests = "make test"\n')
    for argv in (["init", "--yes"], ["init", "--dry-run"], ["init"]):
        assert main(argv) == 1
        said = capsys.readouterr().out
        assert "is there already, and is left alone" in said
        assert '  [gates.lint]\n  run = "make lint"\n' in said
        assert "gates.tests" not in said
    assert (shop / "notyet.toml").read_text() == '[gates]\ntests = "make test"\n'
    assert not (shop / "ran").exists()


@pytest.mark.parametrize("text", ["[gates\n", "gates = 5\n", "\xff"])
def test_a_file_that_is_there_may_be_broken(shop, text, capsys):
    (shop / "notyet.toml").write_bytes(text.encode("latin-1"))
    assert main(["init"]) == 1
    assert "[gates.tests]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ('# some day: make test\n[gates]\nslow = "make test-all"\n', True),
        ('[gates.tests]\nrun = "make test"\ndir = "web"\n', True),
        ('[gates]\nall = "X=1; make lint && make test"\n', False),
        ('[gates.tests]\nrun = ["make", "test"]\ndir = "./"\n', False),
        ('[gates.tests]\npython = "gates:tests"\n', True),
    ],
)
def test_only_what_a_gate_runs_in_that_folder_is_there(shop, text, missing, capsys):
    (shop / "web").mkdir()
    (shop / "gates.py").write_text("def tests(stop):\n    pass\n")
    (shop / "notyet.toml").write_text(text)
    assert main(["init"]) == 1
    assert ('run = "make test"' in capsys.readouterr().out) is missing


@pytest.mark.rule("N5")
def test_it_says_that_the_file_is_not_trusted_yet(place, capsys):
    (place / "Makefile").write_text("test:\n")
    path = place / "notyet.toml"
    path.write_text('[gates]\ntests = "make test"\n')
    words = "it is not trusted yet, so none of its gates is in force"
    assert main(["init"]) == 1
    assert f"{words}; review it, and put it into force with: notyet trust" in said(capsys)
    assert main(["trust", "--yes"]) == 0
    assert main(["init"]) == 1
    assert "trusted it yet" not in said(capsys)
    path.write_text('[gates]\ntests = "make test"\nmore = "true"\n')
    assert main(["init"]) == 1
    assert "it changed since it was trusted, so the trusted version is in force" in said(capsys)


def test_your_own_file_needs_no_trust(place, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place))
    own = place / "notyet"
    own.mkdir()
    (own / "notyet.toml").write_text('[gates]\ntests = "true"\n')
    monkeypatch.chdir(own)
    assert main(["init"]) == 1
    assert "trust" not in said(capsys)


def said(capsys):
    return capsys.readouterr().out
