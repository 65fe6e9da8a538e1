"""A hook obeys `[tool.notyet]` in a pyproject.toml as it does a notyet.toml (J6)."""

import json

import pytest

from hook_runs import FAILING, ask, loaded, new_project, payload, stops, told, trust

TABLE = '[tool.notyet.gates.bad]\nrun = "echo it is broken; exit 1"\nwhen = "always"\n'


def new_table(folder, text=TABLE, *, trusted=True):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    if trusted:
        trust(folder / "pyproject.toml")
    return folder


@pytest.mark.rule("J6", "N5")
def test_a_trusted_table_blocks_whatever_else_changes_in_the_file(tmp_path):
    project = new_table(tmp_path / "p")
    (project / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n{TABLE}\n[tool.ruff]\n')
    reply = ask(payload("claude", project))
    assert json.loads(reply.stdout)["decision"] == "block"
    assert "trusted" not in told(reply)
    assert stops() == [("blocked", "bad")]


@pytest.mark.rule("J6", "N5")
def test_an_untrusted_table_is_not_checked_and_said(tmp_path):
    project = new_table(tmp_path / "p", trusted=False)
    reply = ask(payload("claude", project))
    assert f"{project}/pyproject.toml is not trusted" in told(reply)
    assert stops() == [("skipped", "untrusted")]


@pytest.mark.rule("J7", "N5")
@pytest.mark.parametrize("change", ["[project]\n", "[tool.notyet]\nroot = \n", "\0", None])
def test_a_table_that_was_broken_or_removed_stays_in_force_as_it_was_trusted(tmp_path, change):
    project = new_table(tmp_path / "p")
    if change is None:
        (project / "pyproject.toml").unlink()
    else:
        (project / "pyproject.toml").write_text(change)
    reply = ask(payload("claude", project))
    assert json.loads(reply.stdout)["decision"] == "block"
    assert "since it was trusted" in told(reply)


@pytest.mark.rule("J6", "J7")
def test_a_broken_table_takes_no_other_file_down(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    inner = new_table(project / "inner", "[tool.notyet]\nroot = \n", trusted=False)
    reply = ask(payload("claude", inner))
    assert json.loads(reply.stdout)["decision"] == "block"
    assert f"{inner}/pyproject.toml is not trusted" in told(reply)


def test_a_pyproject_without_our_table_loads_nothing_more(tmp_path):
    (tmp_path / "p").mkdir()
    _, bare = loaded(payload("claude", tmp_path / "p"))
    new_table(tmp_path / "p", "[project]\nname = 'x'\n", trusted=False)
    said, modules = loaded(payload("claude", tmp_path / "p"))
    assert (said, modules) == (b"", bare)
