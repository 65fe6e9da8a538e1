"""Gates with files on another machine are asked only when it matters: a real sshd (N1, M)."""

import pytest

from conftest import git
from gated_files import Place, statuses
from notyet import Ledger, replace
from notyet.core.remote import remote_from
from notyet.remembering import files_of
from support import rows, stop
from workspaces import unreachable

pytestmark = pytest.mark.rule("N1")


def repository(folder):
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    (folder / "code.py").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


@pytest.fixture
def there(tmp_path):
    return repository(tmp_path / "there" / "app")


@pytest.fixture
def place(git_project, tmp_path, there, warm_box):
    """A project here, with a gate that runs there."""
    place = Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))
    place.gates = [moved(place.gate(), warm_box.url(there))]
    return place


def moved(gate, workspace):
    check = replace(gate.check, workspace=workspace, dir=remote_from(workspace).path)
    return replace(gate, check=check)


def test_the_files_there_spare_a_gate_of_an_agent_that_works_there(place, there, warm_box):
    about = {"workspace": warm_box.url(there)}
    place.begin(**about)
    assert place.stop(**about).why == "unchanged"
    place.write()  # here, where it does not work
    assert place.stop(**about).why == "unchanged"
    (there / "code.py").write_text("two\n")
    assert statuses(place.stop(**about)) == {"g": "allowed"}
    assert statuses(place.stop(**about)) == {"g": "remembered"}
    assert place.asked == ["g"]


def test_the_files_of_an_agent_here_count_for_a_gate_there_too(place, there):
    place.stop()
    assert statuses(place.stop()) == {"g": "remembered"}
    place.write()
    assert statuses(place.stop()) == {"g": "allowed"}
    (there / "new.py").write_text("x")
    assert statuses(place.stop()) == {"g": "allowed"}
    for _ in range(2):  # an agent of whose files nobody knows
        assert statuses(place.stop(cwd="/")) == {"g": "allowed"}


def test_the_files_of_an_agent_there_count_for_a_gate_here_too(place, there, warm_box):
    about = {"workspace": warm_box.url(there)}
    place.gates = [place.gate()]
    place.stop(**about)
    assert statuses(place.stop(**about)) == {"g": "remembered"}
    (there / "code.py").write_text("two\n")
    assert statuses(place.stop(**about)) == {"g": "allowed"}
    place.write()
    assert statuses(place.stop(**about)) == {"g": "allowed"}


def test_two_workspaces_of_one_machine_both_count(place, there, tmp_path, warm_box):
    other = repository(tmp_path / "there" / "other")
    about = {"workspace": warm_box.url(other)}
    place.stop(**about)
    assert statuses(place.stop(**about)) == {"g": "remembered"}
    (other / "code.py").write_text("two\n")
    assert statuses(place.stop(**about)) == {"g": "allowed"}
    (there / "code.py").write_text("two\n")
    assert statuses(place.stop(**about)) == {"g": "allowed"}


def test_paths_narrow_the_files_there(place, there, warm_box):
    about = {"workspace": warm_box.url(there)}
    place.gates = [replace(place.gates[0], paths=("*.py",))]
    place.stop(**about)
    (there / "page.md").write_text("x")
    assert statuses(place.stop(**about)) == {"g": "remembered"}
    (there / "code.py").write_text("two\n")
    assert statuses(place.stop(**about)) == {"g": "allowed"}


def test_all_files_on_a_machine_are_looked_at_in_one_round_trip(
    place, there, warm_box, monkeypatch
):
    from notyet.workspace import remote as workspace_remote

    trips = []
    real = workspace_remote.fingerprints_there

    def counted(remote, scopes, patience):
        trips.append(len(scopes))
        return real(remote, scopes, patience)

    monkeypatch.setattr(workspace_remote, "fingerprints_there", counted)
    place.gates = [
        replace(place.gates[0], name=name, paths=paths)
        for name, paths in (("all", ()), ("code", ("*.py",)), ("docs", ("docs/**",)))
    ]
    about = {"workspace": warm_box.url(there)}
    place.stop(**about)
    assert trips == [3, 3]  # before, and after
    assert set(statuses(place.stop(**about)).values()) == {"remembered"}
    assert trips == [3, 3, 3]


def test_a_gate_that_runs_outside_of_its_workspace_depends_on_that_folder_too(place, there):
    gate = place.gates[0]
    inside = replace(gate, check=replace(gate.check, dir=f"{there}/src"))
    outside = replace(gate, check=replace(gate.check, dir="/srv/other"))
    about = stop(cwd=str(place.project), workspace=gate.check.workspace)
    assert [part.scope.folder for part in files_of(inside, about)] == [str(there)]
    assert [part.scope.folder for part in files_of(outside, about)] == [str(there), "/srv/other"]


def test_a_machine_that_cannot_be_reached_spares_nobody_and_holds_nobody(
    place, there, warm_box, tmp_path, monkeypatch
):
    about = {"workspace": warm_box.url(there)}
    place.stop(**about)
    unreachable(monkeypatch, warm_box, tmp_path)
    decision = place.stop(**about)
    assert (decision.outcome, statuses(decision)) == ("failed_open", {"g": "problem"})
    assert len(rows(place.ledger, "SELECT * FROM passes")) == 1
