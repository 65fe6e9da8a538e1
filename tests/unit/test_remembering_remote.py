"""Gates with files on another machine are asked only when it matters: a real sshd (N1, M)."""

import pytest

from conftest import git
from gated_files import Place, statuses
from notyet import Ledger, replace
from notyet.core.remote import remote_from
from notyet.engine.unchanged import files_of
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
    from notyet.git import remote as workspace_remote

    trips = []
    real = workspace_remote.fingerprints_there

    def counted(remote, scopes, patience, reasons):
        trips.append(len(scopes))
        return real(remote, scopes, patience, reasons)

    monkeypatch.setattr(workspace_remote, "fingerprints_there", counted)
    (there / "docs").mkdir()
    (there / "docs" / "page.md").write_text("x")
    place.gates = [
        replace(place.gates[0], name=name, paths=paths)
        for name, paths in (("all", ()), ("code", ("*.py",)), ("docs", ("docs/**",)))
    ]
    about = {"workspace": warm_box.url(there)}
    place.stop(**about)
    assert trips == [3, 3]  # before, and after
    assert set(statuses(place.stop(**about)).values()) == {"remembered"}
    assert trips == [3, 3, 3]


def test_a_gate_there_depends_on_the_repository_of_the_folder_that_it_runs_in_too(place, there):
    gate = place.gates[0]
    about = stop(cwd=str(place.project), workspace=gate.check.workspace)
    for folder, more in (("", []), ("src", [f"{there}/src"]), ("../b", [f"{there}/../b"])):
        for written in (folder, f"{there}/{folder}"):
            other = replace(gate, check=replace(gate.check, dir=written))
            assert [part.scope.folder for part in files_of(other, about)] == [str(there), *more]


def test_a_link_there_into_another_repository_is_followed(place, there, tmp_path):
    other = repository(tmp_path / "there" / "other")
    (there / "link").symlink_to(other)
    gate = place.gates[0]
    place.gates = [replace(gate, check=replace(gate.check, dir=str(there / "link")))]
    place.stop()
    assert statuses(place.stop()) == {"g": "remembered"}
    (other / "code.py").write_text("two\n")
    assert statuses(place.stop()) == {"g": "allowed"}


def test_machines_that_say_nothing_leave_the_time_to_the_gates_here(place, tmp_path, monkeypatch):
    silent = tmp_path / "silent"
    silent.write_text("Host *\n  ProxyCommand sleep 100\n")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(silent))
    # Each of which could take all the time that there is for looking.
    there = [moved(place.gate(f"r{n}"), f"ssh://silent{n}/srv/app") for n in range(5)]
    place.gates = [*there, place.gate("here", then="false")]
    decision = place.stop(within=8)
    assert (decision.outcome, decision.why, place.asked) == ("blocked", "here", ["here"])


def test_a_start_on_machines_that_say_nothing_takes_one_time_for_all(place, tmp_path, monkeypatch):
    silent = tmp_path / "silent"
    silent.write_text("Host *\n  ProxyCommand sleep 100\n")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(silent))
    given = []
    from notyet.git import remote as workspace_remote

    real = workspace_remote.fingerprints_there

    def timed(remote, scopes, patience, reasons):
        given.append(patience)
        return real(remote, scopes, min(patience, 1), reasons)

    monkeypatch.setattr(workspace_remote, "fingerprints_there", timed)
    place.gates = [moved(place.gate(f"r{n}"), f"ssh://silent{n}/srv/app") for n in range(3)]
    place.begin()
    assert [round(patience) for patience in given] == [5, 4, 3]
    assert [tree for (tree,) in rows(place.ledger, "SELECT tree FROM starts")] == [""] * 3


def test_a_machine_that_cannot_be_reached_spares_nobody_and_holds_nobody(
    place, there, warm_box, tmp_path, monkeypatch
):
    about = {"workspace": warm_box.url(there)}
    place.stop(**about)
    unreachable(monkeypatch, warm_box, tmp_path)
    decision = place.stop(**about)
    assert (decision.outcome, statuses(decision)) == ("failed_open", {"g": "problem"})
    assert len(rows(place.ledger, "SELECT * FROM passes")) == 1
