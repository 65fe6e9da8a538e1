"""`notyet init` where there is a notyet.toml already: it is left alone, or gets more gates."""

import tomllib

import pytest

from installs import converse
from notyet.cli.main import main

MAKEFILE = "test:\n\t@echo ran >> ran\nlint:\n\t@false\n"


@pytest.fixture
def shop(place):
    """A project with two targets."""
    (place / "Makefile").write_text(MAKEFILE)
    return place


def test_the_file_that_is_there_is_left_alone_and_what_is_missing_is_said(shop, capsys):
    (shop / "notyet.toml").write_text('[gates]\ntests = "make test"\n')
    for argv in (["init", "--yes"], ["init"]):
        assert main(argv) == 1
        said = capsys.readouterr().out
        assert "already exists, and is left alone" in said
        assert "to add them, run: notyet init --update" in said
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


FILE = """\
# ours
[limits]
max_blocks = 5 # as agreed

[gates]
tests = "make test" # all of them
"""


def trust(shop, text):
    (shop / "notyet.toml").write_text(text)
    assert main(["trust", "--yes"]) == 0


def test_an_update_adds_what_is_missing_and_changes_nothing_else(shop, capsys):
    trust(shop, FILE)
    (shop / "Makefile").write_text(MAKEFILE.replace("false", "echo fine"))
    capsys.readouterr()
    assert main(["init", "--update", "--yes"]) == 0
    text = (shop / "notyet.toml").read_text()
    assert text.startswith(f"{FILE}\n# Makefile:3, passed in ")
    assert tomllib.loads(text)["gates"] == {"tests": "make test", "lint": {"run": "make lint"}}
    shown = said(capsys)
    assert '  +[gates.lint]\n  +run = "make lint"\n' in shown
    assert "trusted: 2 gates of this file in force now" in shown
    assert not (shop / "ran").exists()
    assert main(["init", "--update", "--yes"]) == 0
    assert "it has a gate for everything that was found" in said(capsys)
    assert (shop / "notyet.toml").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        'gates = { tests = "make test" } # inline\n',
        'gates.tests = "make test" # dotted\n[limits]\nmax_blocks = 5\n',
        "[limits] # none\nmax_blocks = 5\n",
        "",
    ],
)
def test_an_update_knows_every_way_to_write_gates(shop, text, capsys):
    trust(shop, text)
    assert main(["init", "--update", "--yes", "--no-try"]) == 0
    now = (shop / "notyet.toml").read_text()
    assert set(tomllib.loads(now)["gates"]) == {"tests", "lint"}
    assert all(line in now for line in text.replace(" }", "").split(" # ")[1:])


def test_a_dry_run_of_an_update_prints_the_file_alone(shop, capsys):
    (shop / "notyet.toml").write_text(FILE)
    assert main(["init", "--update", "--dry-run"]) == 0
    assert set(tomllib.loads(said(capsys))["gates"]) == {"tests", "lint"}
    assert (shop / "notyet.toml").read_text() == FILE


@pytest.mark.rule("N5")
def test_an_update_trusts_no_change_that_was_not_shown_for_it(shop, capsys):
    trust(shop, FILE)
    (shop / "notyet.toml").write_text(FILE.replace("make test", "true"))
    capsys.readouterr()
    assert main(["init", "--update", "--yes", "--no-try"]) == 1
    shown = said(capsys)
    assert "in force now" not in shown
    assert "Try it now: review the file, then put it into force: notyet trust" in shown


@pytest.mark.parametrize("text", ["[gates\n", "gates = 5\n"])
def test_an_update_leaves_a_broken_file_alone(shop, text, capsys):
    (shop / "notyet.toml").write_text(text)
    assert main(["init", "--update", "--yes"]) == 1
    assert "it has mistakes; see them with: notyet validate" in capsys.readouterr().err
    assert (shop / "notyet.toml").read_text() == text


def test_an_update_leaves_a_file_alone_that_changes_meanwhile(shop, capsys):
    (shop / "Makefile").write_text("test:\n\t@echo '# theirs' >> notyet.toml\n")
    trust(shop, "")
    assert main(["init", "--update", "--yes"]) == 1
    assert "changed in the meantime; it is left alone" in capsys.readouterr().err
    assert (shop / "notyet.toml").read_text() == "# theirs\n"


def test_an_update_leaves_a_link_alone_and_asks_otherwise(shop, capsys):
    (shop / "real.toml").write_text("")
    (shop / "notyet.toml").symlink_to("real.toml")
    assert main(["init", "--update", "--yes"]) == 1
    assert "it is a link; it is left alone" in capsys.readouterr().err
    (shop / "notyet.toml").unlink()
    (shop / "notyet.toml").write_text("")
    code, seen = converse(shop, ["init", "--update"], [b"n\n"])
    assert code == 1
    assert "Enter  run each gate once, add to notyet.toml and trust it" in seen
    assert (shop / "notyet.toml").read_text() == ""


def test_status_does_not_advise_to_make_a_file_that_is_there(shop, capsys):
    main(["status"])
    assert "fix: notyet init\n" in said(capsys)
    trust(shop, "")
    capsys.readouterr()
    main(["status"])
    update = f"add a gate to {shop}/notyet.toml, or run: notyet init --update"
    assert update in " ".join(said(capsys).split())
