"""What a ledger promises about passes and starts: which gates need not be asked (N1)."""

from __future__ import annotations

from functools import partial

from notyet.core.event import StartEvent
from notyet.core.verdict import Allow, Block, Report
from notyet.ledger.passes import Wanted
from notyet.testing.ledger_counts import ODD_TEXTS, decision, stop
from notyet.testing.promises import Promise, at_once, expect, into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notyet.ledger import AnyLedger

PASSES: list[Promise] = []
PASSES_IF_DURABLE: list[Promise] = []
_promise = into(PASSES)
_promise_if_durable = into(PASSES_IF_DURABLE)


def wanted(tree: str = "t1", definition: str = "d", **fields: str) -> Wanted:
    known = {"gate": "g", "definition": definition, "scope": "s", "tree": tree}
    return Wanted(**(known | fields))


def passed(tree: str = "t1", definition: str = "d", **fields: Any) -> Report:
    return Report(gate="g", answer=Allow(), definition=definition, passed_on=tree, **fields)


def start(**fields: Any) -> StartEvent:
    return StartEvent(**({"session_id": "s1"} | fields))


def spared(ledger: AnyLedger, *each: Wanted, **fields: Any) -> dict[str, str]:
    return dict(ledger.recall(stop(**fields), each or (wanted(),)))


@_promise("nothing is spared that was never remembered (N1)")
def _nothing(ledger: AnyLedger) -> None:
    expect("what is spared", spared(ledger), {})
    expect("what is spared of nothing", dict(ledger.recall(stop(), ())), {})


@_promise("a pass is remembered for this question and these files, whoever stops (N1)")
def _pass(ledger: AnyLedger) -> None:
    ledger.remember([passed()])
    expect("the same again", spared(ledger), {"g": "passed"})
    expect("of another agent", spared(ledger, session_id="other", agent_id="a"), {"g": "passed"})
    expect("by another name", spared(ledger, wanted(gate="h")), {"h": "passed"})
    expect("on other files", spared(ledger, wanted("t2")), {})
    expect("another question", spared(ledger, wanted(definition="e")), {})
    ledger.remember([passed("t2")])
    both = [wanted(gate="one"), wanted("t2", gate="two"), wanted("t3", gate="three")]
    expect("of several", spared(ledger, *both), {"one": "passed", "two": "passed"})


@_promise("a stop's passes are remembered when `record` returns, and its failures never (N1)")
def _recorded(ledger: AnyLedger) -> None:
    begun = ledger.begin(stop())
    failed = Report(gate="h", answer=Block("no"), definition="h")
    reports = (passed(), failed, Report(gate="i", answer=Allow(), definition="i"))
    ledger.record(begun, decision(begun, reports=reports))
    asked = [wanted(), wanted("", "h", gate="h"), wanted("", "i", gate="i")]
    expect("what is spared", spared(ledger, *asked), {"g": "passed"})


@_promise("a failure takes back what passed on the same files, and no other pass (N1)")
def _refuted(ledger: AnyLedger) -> None:
    failed = Report(gate="g", answer=Block("no"), definition="d", failed_on="t1")
    asked = [wanted(), wanted("t2", gate="other files"), wanted("t1", "e", gate="other question")]
    rest = {"other files": "passed", "other question": "passed"}
    for how in ("remember", "record"):
        ledger.remember([passed(), passed("t2"), passed("t1", "e")])
        if how == "remember":
            ledger.remember([failed])
        else:
            begun = ledger.begin(stop("failed"))
            ledger.record(begun, decision(begun, reports=(failed,)))
        expect(f"what is spared after {how}", spared(ledger, *asked), rest)
    ledger.remember([passed(), failed])
    expect("what passes and fails at once", spared(ledger), {})
    ledger.remember([passed()])
    expect("what passes again", spared(ledger), {"g": "passed"})


@_promise("what is unknown is neither remembered nor spared (N1)")
def _unknown(ledger: AnyLedger) -> None:
    ledger.remember([passed("", "d"), passed("t1", "")])
    ledger.remember_start(start(), {"s": ""})
    asked = [wanted("", "d", gate="files"), wanted("t1", "", gate="question")]
    expect("what is spared", spared(ledger, *asked), {})


@_promise("files that an agent began with are unchanged, for that agent (N1)")
def _unchanged(ledger: AnyLedger) -> None:
    ledger.remember_start(start(), {"s": "t1", "other": "t9"})
    expect("with these files", spared(ledger), {"g": "unchanged"})
    expect("with others", spared(ledger, wanted("t2")), {})
    expect("of another scope", spared(ledger, wanted("t1", scope="other")), {})
    expect("of a scope nobody knew", spared(ledger, wanted("t1", scope="new")), {})
    expect("in another session", spared(ledger, session_id="s2"), {})
    expect("on another host", spared(ledger, host="codex"), {})


@_promise("that a gate passed counts before that nothing changed (N1)")
def _both(ledger: AnyLedger) -> None:
    ledger.remember_start(start(), {"s": "t1"})
    ledger.remember([passed()])
    expect("what is spared", spared(ledger), {"g": "passed"})


@_promise("an agent begins once, however often its start is told (N1)")
def _once(ledger: AnyLedger) -> None:
    ledger.remember_start(start(), {"s": "t1"})
    ledger.remember_start(start(source="compact"), {"s": "t2", "new": "t2"})
    asked = [wanted(), wanted("t2", gate="later"), wanted("t2", gate="new", scope="new")]
    expect("what is spared", spared(ledger, *asked), {"g": "unchanged"})


@_promise("an agent that has stopped before does not begin, nor does a subagent (N1)")
def _late_start(ledger: AnyLedger) -> None:
    for about in ({}, {"agent_id": "a", "scope": "subagent"}):
        begun = ledger.begin(stop(**about))
        ledger.record(begun, decision(begun))
        ledger.remember_start(start(**about), {"s": "t1"})
        expect("what is spared", spared(ledger, **about), {})
    ledger.remember_start(start(agent_id="b", scope="subagent"), {"s": "t1"})
    expect("of one that is new", spared(ledger, agent_id="b"), {"g": "unchanged"})


@_promise("a start of which the files are unknown is a start all the same (N1)")
def _unknown_start(ledger: AnyLedger) -> None:
    ledger.remember_start(start(), {"s": ""})
    ledger.remember_start(start(), {"s": "t1"})
    expect("what is spared", spared(ledger), {})


@_promise("a subagent began with its own files, or else with those of its session (N1)")
def _subagents(ledger: AnyLedger) -> None:
    ledger.remember_start(start(), {"s": "t1"})
    ledger.remember_start(start(scope="subagent", agent_id="own"), {"s": "t2"})
    both = (wanted(gate="session's"), wanted("t2", gate="own"))
    for agent, cause in (("own", "own"), ("none", "session's"), ("", "session's")):
        said = spared(ledger, *both, agent_id=agent or None)
        expect(f"what is spared for {agent or 'the main agent'}", said, {cause: "unchanged"})


@_promise("nothing is unchanged for an agent with a task: that was to be done (N1)")
def _tasks(ledger: AnyLedger) -> None:
    ledger.remember_start(start(), {"s": "t1"})
    expect("what is spared", spared(ledger, task_id="t"), {})
    ledger.remember([passed()])
    expect("what is spared after a pass", spared(ledger, task_id="t"), {"g": "passed"})


@_promise("any text can be a definition, a scope, a fingerprint or an id (N1)")
def _odd(ledger: AnyLedger) -> None:
    for text in ODD_TEXTS:
        ledger.remember([passed(text, text)])
        ledger.remember_start(start(session_id=text, agent_id=text), {text: text})
    for text in ODD_TEXTS:
        asked = [
            wanted(text, text, gate="passed"),
            wanted(text, "none", gate="unchanged", scope=text),
        ]
        said = spared(ledger, *asked, session_id=text, agent_id=text)
        expect("what is spared", said, {"passed": "passed", "unchanged": "unchanged"})


@_promise("many who remember at once lose nothing (N1)")
def _many(ledger: AnyLedger) -> None:
    def work(name: int) -> None:
        for n in range(10):
            ledger.remember([passed(f"{name} {n}")])
            ledger.remember_start(start(session_id=f"{name} {n}"), {"s": f"{name} {n}"})

    jobs: list[Callable[[], None]] = [partial(work, name) for name in range(4)]
    at_once(jobs)
    trees = [f"{name} {n}" for name in range(4) for n in range(10)]
    asked = [wanted(tree, gate=tree) for tree in trees]
    expect("the passes", spared(ledger, *asked), dict.fromkeys(trees, "passed"))
    for tree in trees:
        found = spared(ledger, wanted(tree, "other"), session_id=tree)
        expect("the start", found, {"g": "unchanged"})


@_promise_if_durable("passes and starts are there for whoever opens the ledger next (N1)")
def _durable(ledger: AnyLedger, reopen: Callable[[AnyLedger], AnyLedger]) -> None:
    ledger.remember([passed()])
    ledger.remember_start(start(), {"s": "t2"})
    again = reopen(ledger)
    asked = [wanted(), wanted("t2", gate="h")]
    expect("what is spared", spared(again, *asked), {"g": "passed", "h": "unchanged"})
    again.remember_start(start(), {"s": "t3"})
    expect("what a start elsewhere changes", spared(ledger, wanted("t3")), {})
