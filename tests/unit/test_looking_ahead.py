"""What is done while git looks at files that gates depend on, and a look that begins early (N1)."""

import pytest

from gated_files import Place, statuses
from notyet import Ledger
from notyet.engine import unchanged as remembering
from notyet.engine.engine import check_meanwhile
from notyet.engine.stop import Deadline, begin_to_look
from notyet.run.drive import drive_sync
from process_table import children
from support import stop

pytestmark = pytest.mark.rule("N1")


@pytest.fixture
def place(git_project, tmp_path):
    return Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))


def a_stop(place, said="done", **fields):
    return stop(cwd=str(place.project), last_message=said, **fields)


def begun(place, event):
    return drive_sync(begin_to_look(event, place.gates, Deadline(None)))


def test_what_can_wait_is_done_once_whether_or_not_gates_are_asked(place):
    done = []
    for said in ("asked", "spared"):
        decision = check_meanwhile(
            place.engine(),
            a_stop(place, said),
            None,
            while_waiting=lambda said=said: done.append(said),
        )
        assert decision.outcome == "passed"
    assert (done, place.asked) == (["asked", "spared"], ["g"])


def test_a_look_that_has_begun_is_finished_by_the_check(place):
    event = a_stop(place)
    looking = begun(place, event)
    assert looking is not None
    assert check_meanwhile(place.engine(), event, None, remembering=looking).outcome == "passed"
    again = a_stop(place, "again")
    decision = check_meanwhile(place.engine(), again, None, remembering=begun(place, again))
    assert (statuses(decision), place.asked) == ({"g": "remembered"}, ["g"])


def test_a_look_that_nobody_waits_for_is_ended_by_whoever_began_it(place):
    before = children()
    event = a_stop(place, session_id="")
    looking = begun(place, event)
    assert check_meanwhile(place.engine(), event, None, remembering=looking).why == "no-session"
    looking.leave()
    assert children() == before


def test_where_no_gate_depends_on_files_nobody_looks(place):
    place.gates = [place.gate(when="always")]
    assert begun(place, a_stop(place)) is None


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
