"""What would be in force with a file that nobody trusted: for comparing, never for running."""

import os
from pathlib import Path

import pytest

from config_places import write_user_toml
from hook_runs import trust
from notyet.config.find import state_folder
from notyet.config.load import NO_LOOK, Draft, load


@pytest.fixture
def project(tmp_path):
    """A project with a trusted file."""
    folder = tmp_path / "p"
    (folder / ".git").mkdir(parents=True)
    (folder / "notyet.toml").write_text('[gates]\nold = "true"\n')
    trust(folder / "notyet.toml")
    return folder


def drafted(folder, text, path=""):
    draft = Draft(text=text, path=str(path))
    return load(str(folder), "claude", os.environ, patience=NO_LOOK, draft=draft)


def sources(setup):
    return {gate.name: gate.source.file for gate in setup.gates}


def test_a_draft_stands_where_the_file_is_that_is_in_force(project, tmp_path):
    (project / "below").mkdir()
    found = drafted(project / "below", '[gates]\nnew = "false"\n', tmp_path / "new.toml")
    assert sources(found) == {"new": str(project / "notyet.toml")}
    assert found.gates[0].check.dir == str(project)
    assert (found.untrusted, found.warnings) == ((), ())


def test_a_draft_that_is_a_projects_own_file_stands_for_itself(project):
    nearer = project / "below" / "notyet.toml"
    nearer.parent.mkdir()
    nearer.write_text("")
    found = sources(drafted(nearer.parent, '[gates]\nnew = "x"\n', nearer))
    assert found == {"old": str(project / "notyet.toml"), "new": str(nearer)}
    elsewhere = drafted(nearer.parent, '[gates]\nnew = "x"\n')
    assert sources(elsewhere) == {"new": str(project / "notyet.toml")}


def test_the_users_own_file_counts_beside_a_draft(project):
    write_user_toml('[limits]\nmax_blocks = 7\n[gates]\nmine = "x"\n')
    found = drafted(project, '[gates]\nnew = "x"\n')
    assert set(sources(found)) == {"mine", "new"}
    assert found.limits == {"max_blocks": 7}


def remembered():
    """Return all that is kept of trust."""
    state = Path(state_folder(os.environ))
    return {path: path.read_text() for path in state.rglob("*.json")}


def test_a_draft_is_neither_remembered_nor_in_force(project):
    before = remembered()
    drafted(project, '[gates]\nnew = "x"\n')
    assert before
    assert remembered() == before
    assert set(sources(load(str(project), "claude", os.environ))) == {"old"}
