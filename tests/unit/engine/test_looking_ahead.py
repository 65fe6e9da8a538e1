"""What is done while git looks at files that gates depend on, and a look that begins early (N1)."""

import pytest

from gated_files import Place, statuses
from notyet import Ledger
from notyet.engine import unchanged as remembering
from notyet.engine.stop import Stop, check
from notyet.errors import LedgerError
from notyet.run.drive import drive_sync
from process_table import children
from support import stop

pytestmark = pytest.mark.rule("N1")


@pytest.fixture
def place(git_project, tmp_path):
    return Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))


def a_stop(place, said="done", **fields):
    return stop(cwd=str(place.project), last_message=said, **fields)


def check_of(place, event, **wishes):
    """Check a stop as the hook does."""
    gates = tuple(place.gates)
    return drive_sync(check(Stop(event, gates, place.ledger, warn=pytest.fail, **wishes)))


def test_what_can_wait_is_done_once_whether_or_not_gates_run(place):
    done = []
    for said in ("run", "skipped"):
        decision = check_of(place, a_stop(place, said), on_wait=lambda said=said: done.append(said))
        assert decision.outcome == "passed"
    assert (done, place.asked) == (["run", "skipped"], ["g"])


def test_what_comes_before_commands_is_done_once_and_only_if_one_runs(place):
    done = []
    place.gates = [place.gate("a"), place.gate("b", step=1)]
    for said in ("run", "skipped"):
        check_of(place, a_stop(place, said), before_commands=lambda said=said: done.append(said))
    assert (done, place.asked) == (["run"], ["a", "b"])


def test_a_look_that_is_not_waited_for_is_ended(place, monkeypatch):
    def broken(*_):
        raise LedgerError("ledger.db", "broken")

    monkeypatch.setattr(place.ledger, "begin", broken)
    before = children()
    decision = drive_sync(
        check(Stop(a_stop(place), tuple(place.gates), place.ledger, warn=place.warnings.append))
    )
    assert (decision.why, children()) == ("ledger", before)


def test_where_no_gate_depends_on_files_git_does_not_start(place, monkeypatch):
    monkeypatch.setattr(remembering, "Fingerprinting", lambda *_: pytest.fail("git was started"))
    place.gates = [place.gate(when="always")]
    assert check_of(place, a_stop(place)).outcome == "passed"


@pytest.mark.parametrize("change", [False, True])
def test_the_time_that_the_ledger_takes_is_not_that_of_the_look(place, monkeypatch, change):
    if change:
        place.write()  # which has to be read
    assert (statuses(place.stop()), place.asked) == ({"g": "allowed"}, ["g"])
    monkeypatch.setattr(remembering, "PATIENCE", 0.0)  # it is over when the look has begun
    begin = place.ledger.begin

    def held_up(*args):
        monkeypatch.setattr(remembering, "PATIENCE", 60.0)
        return begin(*args)

    monkeypatch.setattr(place.ledger, "begin", held_up)
    assert statuses(place.stop()) == {"g": "remembered"}
    assert (place.asked, place.warnings) == ([], [])
