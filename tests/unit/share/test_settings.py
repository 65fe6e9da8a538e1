"""Where stops are shared: only a user decides, and a password stays in that user's file."""

import os
from pathlib import Path

import pytest

from hook_runs import PASSING, ask, new_project, payload
from notyet.cli.main import main
from notyet.config.compile import compile_text
from notyet.errors import Refused
from notyet.share.settings import Share, share_settings

ADDRESS = "postgresql://me:geheim@db/team"


def refusal(environ=os.environ, cwd="/"):
    with pytest.raises(Refused) as refused:
        share_settings(cwd, environ)
    said = str(refused.value)
    assert "\n" not in said
    assert "geheim" not in said
    return said


def write(path, text):
    Path(path).write_text(text)


def test_the_users_own_file_says_where(users_file):
    write(users_file, f'[share]\nto = "{ADDRESS}"\nwords = true\notel = "http://box:4318"\n')
    expected = Share(to=ADDRESS, words=True, otel="http://box:4318")
    assert share_settings("/", os.environ) == expected


def test_a_variable_replaces_a_key_of_the_file(users_file):
    write(users_file, f'[share]\nto = "{ADDRESS}"\nwords = true\n')
    given = {"NOTYET_SHARE": "postgres://ci@db/x", "NOTYET_SHARE_WORDS": "no"}
    environ = os.environ | given | {"NOTYET_SHARE_OTEL": "https://box"}
    assert share_settings("/", environ) == Share(to="postgres://ci@db/x", otel="https://box")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "write [share] into your own notyet.toml, or set NOTYET_SHARE"),
        ({"NOTYET_SHARE": "mysql://me:geheim@db"}, "`NOTYET_SHARE` must be an address like"),
        ({"NOTYET_SHARE": "postgresql:me:geheim"}, "`NOTYET_SHARE` must be an address like"),
        ({"NOTYET_SHARE_OTEL": "ftp://u:geheim@x"}, "`NOTYET_SHARE_OTEL` must be an address like"),
        (
            {"NOTYET_SHARE": ADDRESS, "NOTYET_SHARE_WORDS": "some"},
            "NOTYET_SHARE_WORDS must be true or false, not 'some'",
        ),
    ],
)
def test_a_wrong_variable_is_refused_in_one_sentence(variables, says):
    assert says in refusal(os.environ | variables)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('to = "me:geheim@db"', "`share.to` must be an address like"),
        ('otel = "box:4318"', "`share.otel` must be an address like"),
        ("to = 5", "`share.to` must be an address like"),
        (f'to = "{ADDRESS}"\nwords = "yes"', "`share.words` must be true or false"),
        (f'too = "{ADDRESS}"', "`share.too` is not a known key"),
    ],
)
def test_a_mistake_in_the_file_is_named_without_the_password(users_file, text, says):
    write(users_file, f"[share]\n{text}\n")
    assert says in refusal()


@pytest.mark.parametrize("name", ["notyet.toml", "pyproject.toml"])
def test_in_a_projects_file_it_is_a_mistake(tmp_path, name):
    table = "tool.notyet.share" if name == "pyproject.toml" else "share"
    settings = compile_text(f'[{table}]\nto = "{ADDRESS}"\n', str(tmp_path / name))
    assert (settings.share, settings.shares) == ({}, False)
    [mistake] = settings.mistakes
    assert mistake.line == 1
    said = str(mistake)
    assert "`share` would send your stops to an address that a project chooses" in said
    assert "move it to ~/.config/notyet/notyet.toml" in said
    assert "geheim" not in said


def test_a_project_that_shares_cannot_be_trusted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("notyet.cli.person.inside_agent", lambda _environ: "")
    project = new_project(tmp_path / "p", f'{PASSING}[share]\nto = "{ADDRESS}"\n', trusted=False)
    monkeypatch.chdir(project)
    assert main(["validate"]) == 1
    assert main(["trust", "--yes"]) == 1
    said = capsys.readouterr()
    assert "an address that a project chooses" in said.out + said.err


def test_a_file_that_a_project_passes_off_as_the_users_does_not_count(git_project):
    folder = Path(git_project) / ".config" / "notyet"
    folder.mkdir(parents=True)
    write(folder / "notyet.toml", f'[share]\nto = "{ADDRESS}"\n')
    environ = os.environ | {"XDG_CONFIG_HOME": str(folder.parent)}
    assert "nothing says where" in refusal(environ, cwd=str(git_project))


def stored_files():
    for folder, _, names in os.walk(os.environ["XDG_STATE_HOME"]):
        for name in names:
            path = Path(folder, name)
            yield path, path.read_bytes()


def test_a_password_is_stored_nowhere_else(users_file, tmp_path):
    project = new_project(tmp_path / "p")
    write(users_file, f'[share]\nto = "{ADDRESS}"\n')
    ask(payload("claude", project), "--host", "claude")
    ask(payload("claude", project), "--host", "claude")
    found = dict(stored_files())
    assert [path for path in found if b"shares" in found[path]], "it is compiled"
    assert [path for path, content in found.items() if b"geheim" in content] == []


def test_a_users_file_that_shares_is_compiled_once_and_again_when_it_changed(
    users_file, tmp_path, monkeypatch
):
    project = new_project(tmp_path / "p")
    compiled = []
    from notyet.config import compile as compiling

    original = compiling.compile_text

    def compile_text(text, path, *args, **options):
        compiled.append(path)
        return original(text, path, *args, **options)

    monkeypatch.setattr(compiling, "compile_text", compile_text)
    for text in ("", "", "[limits]\nmax_blocks = 5\n", "[limits]\nmax_blocks = 5\n"):
        write(users_file, f'[share]\nto = "{ADDRESS}"\n{text}')
        ask(payload("claude", project), "--host", "claude")
    assert len(compiled) == 2


def test_status_names_the_line_of_a_limit_in_a_users_file_that_shares(
    users_file, tmp_path, monkeypatch, capsys
):
    project = new_project(tmp_path / "p")
    write(users_file, f'[share]\nto = "{ADDRESS}"\n[limits]\nmax_blocks = 5\n')
    ask(payload("claude", project), "--host", "claude")
    monkeypatch.chdir(project)
    main(["status", "--json"])
    said = capsys.readouterr().out
    assert f"{users_file}:4" in said
    assert "geheim" not in said
