"""The conformance of ledgers: ours pass it, and each broken one is told what it breaks."""

import itertools
import threading
from zlib import crc32

import pytest

import broken_ledgers
from notyet import Ledger
from notyet.ledger.memory import MemoryLedger
from notyet.testing import ledger_answers, promises
from notyet.testing.ledgers import ledger_conformance


def broken_promises(*args, **options):
    """Return the sentences that a conformance finds broken, with what it says of each."""
    with pytest.raises(AssertionError) as caught:
        ledger_conformance(*args, **options)
    first, *lines = str(caught.value).splitlines()
    assert first.startswith(f"the ledger breaks {len(lines)} of ")
    return [line.removeprefix("- ") for line in lines]


@pytest.mark.rule("B1", "B2", "B3", "B4", "B6", "B11", "B12", "B13", "N1")
def test_the_ledger_in_memory_keeps_every_promise():
    ledger_conformance(MemoryLedger)


@pytest.mark.rule("B1", "B2", "B3", "B4", "B6", "B11", "B12", "B13", "N1")
def test_the_ledger_of_a_file_keeps_every_promise(tmp_path):
    numbers = itertools.count()
    ledger_conformance(
        lambda: Ledger(tmp_path / f"{next(numbers)}.db"),
        reopen=lambda ledger: Ledger(ledger.path),
        unusable=lambda: Ledger(tmp_path),
    )


@pytest.mark.rule("B1", "B2", "B3", "B4", "B6", "B12", "B13", "N1")
@pytest.mark.parametrize(
    ("ledger", "broken"),
    [
        (
            broken_ledgers.CountsFromZero,
            "every stop has a number of its own, from 1 up: different numbers: 2",
        ),
        (
            broken_ledgers.KnowsOneTurnId,
            "a new turn id opens a turn, a known one never does (B4): the turns: ",
        ),
        (broken_ledgers.OneAgentPerSession, "agents are kept apart by host, session and id (B1): "),
        (
            broken_ledgers.RefusesOddIds,
            "any text can be an id (B4): it raised UnicodeEncodeError: ",
        ),
        (
            broken_ledgers.CountsLater,
            "a send-back is counted when `record` returns (B3): the counts: (0, 0, ",
        ),
        (
            broken_ledgers.NeverRefills,
            "a pass refills the count of its turn, never that of the session ",
        ),
        (
            broken_ledgers.RefillsTheSession,
            "a pass refills the count of its turn, never that of the session ",
        ),
        (
            broken_ledgers.ForgetsExtensions,
            "an extended limit is kept, never lowered, until the next turn (B2)",
        ),
        (
            broken_ledgers.ForgetsFailures,
            "failures that are alike are counted, one after another (B6): ",
        ),
        (
            broken_ledgers.SpendsTheNewTurn,
            "a late decision of an older turn spends the session's budget only ",
        ),
        (
            broken_ledgers.BelievesTheDecision,
            "stops at the same time never use more than the limit together ",
        ),
        (
            broken_ledgers.IgnoresTheCeiling,
            "stops of all turns stay below the session's ceiling, and 0 is none ",
        ),
        (
            broken_ledgers.KnowsNoEqualStops,
            "a stop equal to one that is being asked repeats it and counts ",
        ),
        (broken_ledgers.ComparesTooLittle, "stops that differ in anything are each real (B12): "),
        (
            broken_ledgers.RepeatsForever,
            "a blocked stop that comes again with its flag false repeats its answer",
        ),
        (
            broken_ledgers.IgnoresTheFlag,
            "an equal stop later is a real one, if its flag is not false (B12): ",
        ),
        (
            broken_ledgers.RepeatsAnyAnswer,
            "only the last answer of the turn is repeated, and only a block ",
        ),
        (
            broken_ledgers.DoesNotWait,
            "an answer is waited for, and is the decision with all that belongs to it ",
        ),
        (
            broken_ledgers.KeepsNoReports,
            "an answer is waited for, and is the decision with all that belongs to ",
        ),
        (
            broken_ledgers.WakesNobody,
            "an answer that nobody gives is None, and None comes in time (B12): ",
        ),
        (
            broken_ledgers.RemembersFailures,
            "nothing is spared that was never remembered (N1): ",
        ),
        (
            broken_ledgers.SparesTheUnknown,
            "what is unknown is neither remembered nor spared (N1): ",
        ),
        (
            broken_ledgers.PassesByName,
            "a pass is remembered for this question and these files, whoever stops (N1): ",
        ),
        (
            broken_ledgers.ForgetsPassesOfStops,
            "a stop's passes are remembered when `record` returns, and its failures never (N1): ",
        ),
        (
            broken_ledgers.MovesTheStart,
            "an agent begins once, however often its start is told (N1): ",
        ),
        (
            broken_ledgers.AddsToTheStart,
            "an agent begins once, however often its start is told (N1): ",
        ),
        (
            broken_ledgers.StartsOnlyWhatIsKnown,
            "a start of which the files are unknown is a start all the same (N1): ",
        ),
        (
            broken_ledgers.OneStartPerSession,
            "a subagent began with its own files, or else with those of its session (N1): ",
        ),
        (
            broken_ledgers.NoStartOfTheSession,
            "a subagent began with its own files, or else with those of its session (N1): ",
        ),
        (
            broken_ledgers.KnowsNoTasks,
            "nothing is unchanged for an agent with a task: that was to be done (N1): ",
        ),
        (
            broken_ledgers.KeepsRefutedPasses,
            "a failure takes back what passed on the same files, and no other pass (N1): ",
        ),
        (
            broken_ledgers.StartsAnew,
            "an agent that has stopped before does not begin, nor does a subagent (N1): ",
        ),
        (
            broken_ledgers.PrefersUnchanged,
            "that a gate passed counts before that nothing changed (N1): ",
        ),
        (
            broken_ledgers.GivesUpAnswers,
            "giving a stop up counts nothing, and changes no answer (B12): ",
        ),
        (
            broken_ledgers.CountsTwice,
            "a stop that is over, or unknown, cannot be counted: LedgerError (B3): ",
        ),
        (
            broken_ledgers.RaisesKeyErrors,
            "a stop that is over, or unknown, cannot be counted: LedgerError (B3)",
        ),
        (
            broken_ledgers.CountsSkips,
            "a skipped stop counts nothing and answers nobody (A10, B9): ",
        ),
        (broken_ledgers.LosesRaces, "threads lose no count (B3): the counts told: [1, "),
        (broken_ledgers.BelongsToOneThread, "threads lose no count (B3): it raised RuntimeError: "),
        (
            broken_ledgers.EntersWithoutALock,
            "of equal stops in many threads one is real, and all get its answer",
        ),
        (
            broken_ledgers.HasNoPatience,
            "`instant` is true or false, and every call can be given a patience: ",
        ),
    ],
)
def test_a_broken_ledger_is_told_which_promise_it_breaks(monkeypatch, ledger, broken):
    monkeypatch.setattr(ledger_answers, "_LONG", 1.0)
    found = broken_promises(ledger)
    assert any(line.startswith(broken) for line in found), found


def keeps_outputs(keep):
    """Return a kind of ledger that keeps outputs in this way."""

    class Keeps(MemoryLedger):
        def keep_output(self, begun, report):
            return keep(f"{begun.stop} {report.gate}".encode("utf-8", "replace"), report.output)

    return Keeps


@pytest.mark.parametrize(
    ("name", "mode", "most", "broken"),
    [
        ("one.log", 0o600, 10**6, "holds its output: False, not True"),
        ("{}.log", 0o644, 10**6, "who else may use"),
        ("{}.log", 0o600, 1000, "holds its output: False, not True"),
        ("{}.log", 0o600, 10**6, None),
    ],
    ids=["one for all", "for everybody", "cut", "right"],
)
def test_outputs_are_kept_whole_in_private_files_of_their_own(tmp_path, name, mode, most, broken):
    def keep(whose, output):
        path = tmp_path / name.format(crc32(whose))
        path.write_text(output[:most], encoding="utf-8", errors="replace")
        path.chmod(mode)
        return str(path)

    if broken is None:
        ledger_conformance(keeps_outputs(keep))
        return
    (found,) = broken_promises(keeps_outputs(keep))
    assert found.startswith("an output that is kept is a private file of its own, all of it")
    assert broken in found


@pytest.mark.parametrize(
    ("path", "broken"), [("/nowhere/log", "it raised FileNotFoundError"), (None, "NoneType")]
)
def test_a_path_of_an_output_leads_to_a_file(path, broken):
    (found,) = broken_promises(keeps_outputs(lambda *_: path))
    assert broken in found


@pytest.mark.rule("B3")
def test_a_durable_ledger_that_forgets_is_found_out():
    found = broken_promises(MemoryLedger, reopen=lambda _: MemoryLedger())
    assert [line.split(": ")[0] for line in found] == [
        "what `record` returned is there for whoever opens the ledger next (B3)",
        "an equal stop elsewhere waits for the first answer and repeats it (B12)",
        "ledgers that share a memory lose no count and no limit (B1, B3)",
        "passes and starts are there for whoever opens the ledger next (N1)",
    ]
    ledger_conformance(MemoryLedger, reopen=lambda ledger: ledger)


class CannotBeReached(MemoryLedger):
    def begin(self, event, patience=None):
        raise ConnectionRefusedError("nobody\nlistens")


def test_a_ledger_that_cannot_be_reached_must_say_so_as_a_ledger_error():
    (found,) = broken_promises(MemoryLedger, unusable=CannotBeReached)
    assert found == (
        "a ledger that cannot be used raises LedgerError, and nothing else:"
        " it raised ConnectionRefusedError: nobody listens"
    )
    (found,) = broken_promises(MemoryLedger, unusable=MemoryLedger)
    assert "begin returned Begun(" in found


class Hangs(MemoryLedger):
    def keep_output(self, begun, report):
        threading.Event().wait()


def test_a_ledger_that_hangs_is_named_and_the_other_promises_are_still_tried(monkeypatch):
    monkeypatch.setattr(promises, "TIME_LIMIT", 5.0)
    (found,) = broken_promises(Hangs)
    assert found.endswith("else the path is empty: it did not come back within 5 s")


def test_assertions_of_a_ledger_without_words_are_told_too():
    def cannot_be_made():
        raise AssertionError

    found = broken_promises(cannot_be_made)
    assert {line.rsplit(": ", 1)[1] for line in found} == {"an assertion failed"}


def test_what_a_test_framework_raises_goes_through():
    def skipping():
        pytest.skip("no database here")

    with pytest.raises(pytest.skip.Exception, match="no database here"):
        ledger_conformance(skipping)
