"""The answer of `notyet status`: yes, perhaps or no, and of whom that is not true."""

import pytest

from notyet.config.load import Setup
from notyet.core.gate import Command, Gate, Match
from notyet.core.message import UNCHECKED
from notyet.install.settings import Registration, SettingsFile
from notyet.status.answer import answer_of
from notyet.status.fault import CODES, Fault, fault
from notyet.status.probe import Probe
from notyet.status.report import HostStatus

PLACE = SettingsFile(path="/settings", scope="user", form="json")
EVENTS = ("Stop", "SubagentStop")
CODEX = ("codex", "Codex")
FOR_CODERS = Match(events=("subagent",), agents=("coder",))
UNTRUSTED = fault("config-untrusted", "It is not trusted.", where="/p/notyet.toml", fix="run: x")
UNAPPROVED = fault("hook-untrusted", "It is not approved.", host="codex", fix="approve it")
UNTRIED = "its command was not tried, because it also runs other commands"
CHECKED = "yes: stops of Claude Code are checked by"
PARTLY = CHECKED.replace("yes", "partly")
CODERS = "yes: stops of coder subagents of Claude Code are checked by 1 gate"
UNKNOWN = dict.fromkeys(EVENTS, UNTRIED)
NO_SUBAGENT = Match(events=("agent", "subagent"), never=("*",))


def gate(name="lint", **fields):
    return Gate(name=name, check=Command(script="true"), **fields)


FAR = Gate(name="far", check=Command(script="true", workspace="ssh://box/srv"))
REVIEW = gate("review", match=FOR_CODERS)
NEVER = gate(match=Match(events=("subagent",), agents=("a",), never=("*",)))


def host(name="claude", title="Claude Code", gates=(), faults=(), limits=(), **fields):
    """A host that calls us, with what is known of it."""
    known = {"path": ("hooks", "Stop", 0, "hooks", 0), "command": "notyet hook", "handler": {}}
    entries = tuple(Registration(file=PLACE, event=event, **known) for event in EVENTS)
    setup = Setup(gates=tuple(gates), limits=dict(limits))
    known = {"entries": entries, "setup": setup, "reached": dict.fromkeys(EVENTS, "")} | fields
    return HostStatus(host=name, title=title, is_here=True, faults=tuple(faults), **known)


def of_event(event):
    """A fault that concerns one event only."""
    what = f"Claude Code does not call notyet at {event}."
    return Fault(code="partly-registered", level="fault", what=what, fix="x", events=(event,))


def asked(says):
    return Probe(command="x", says=says, asked=True)


@pytest.mark.rule("B1", "D1", "M5")
@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ([host(gates=[gate(), gate("tests")])], [f"{CHECKED} 2 gates"]),
        ([host(gates=[gate(), REVIEW])], [f"{CHECKED} 1 gate, those of subagents by 1 more"]),
        ([host(gates=[REVIEW])], [CODERS]),
        (
            [host(gates=[gate(match=Match(events=("subagent",), never=("Explore",)))])],
            ["yes: stops of subagents except Explore of Claude Code are checked by 1 gate"],
        ),
        # Gates that send no agent back.
        (
            [host(gates=[gate(observe=True)])],
            ["no: stops of Claude Code are checked by 1 gate, but they only observe"],
        ),
        (
            [host(gates=[gate(observe=True), REVIEW])],
            [
                CODERS,
                "not main agents of Claude Code: they only observe",
            ],
        ),
        (
            [host(gates=[gate()], limits={"max_blocks": 0})],
            [
                "no: stops of Claude Code are checked by 1 gate, but max_blocks is 0, so no agent "
                "is sent back"
            ],
        ),
        (
            [host(gates=[gate(match=Match(endings=("error",)))])],
            ["no: lint: not for agents that are done"],
        ),
        ([host(gates=[gate(match=NO_SUBAGENT)])], [f"{CHECKED} 1 gate"]),
        # Gates on another machine.
        (
            [host(gates=[FAR])],
            [
                "perhaps: 1 gate is for stops of Claude Code, but far: runs on ssh://box/srv, "
                "which was not connected to"
            ],
        ),
        (
            [host(gates=[gate(), FAR])],
            [
                f"{CHECKED} 2 gates",
                "perhaps not all: far: runs on ssh://box/srv, which was not connected to",
            ],
        ),
        ([host(gates=[FAR], probe=asked("the agent may stop"))], [f"{CHECKED} 1 gate"]),
        (
            [host(gates=[gate()], probe=asked(f"notyet: {UNCHECKED}: lint: cannot_start"))],
            [
                "no: stops of Claude Code are checked by 1 gate, but they ran just now: "
                f"{UNCHECKED}: lint: cannot_start"
            ],
        ),
        # Commands that were not tried.
        (
            [host(gates=[gate()], reached=UNKNOWN)],
            [f"perhaps: 1 gate is for stops of Claude Code, but {UNTRIED}"],
        ),
        (
            [host(*CODEX, gates=[gate()], reached=UNKNOWN), host(gates=[gate()])],
            [f"{CHECKED} 1 gate", f"perhaps not Codex: {UNTRIED}"],
        ),
        (
            [host(gates=[gate(), REVIEW], reached={"Stop": "", "SubagentStop": "a matcher"})],
            [f"{CHECKED} 1 gate", "perhaps not subagents of Claude Code: a matcher"],
        ),
        # Faults, and whose stops they concern.
        ([host(gates=[gate()], faults=[of_event("SubagentStop")])], [f"{PARTLY} 1 gate"]),
        (
            [host(gates=[gate(), REVIEW], faults=[of_event("SubagentStop")])],
            [
                f"{PARTLY} 1 gate",
                "not subagents of Claude Code: Claude Code does not call notyet at SubagentStop.",
            ],
        ),
        (
            [host(gates=[gate(), REVIEW], reached={"SubagentStop": ""})],
            [
                "no: Claude Code does not call notyet at Stop.",
                "stops of coder subagents of Claude Code are checked by 1 gate",
            ],
        ),
        (
            [host(gates=[gate()]), host(*CODEX, gates=[gate()], faults=[UNAPPROVED])],
            [f"{PARTLY} 1 gate", "not Codex: It is not approved."],
        ),
        ([host(*CODEX, gates=[gate()], faults=[UNAPPROVED])], ["no: It is not approved."]),
        (
            [host(gates=[gate()], faults=[fault("folder-not-accepted", "Unknown.", fix="do")])],
            ["perhaps: 1 gate is for stops of Claude Code, but Unknown."],
        ),
    ],
)  # fmt: skip
def test_the_answer_says_only_what_is_known(statuses, says):
    found = answer_of([], statuses, Setup())
    assert [found.says, *found.but] == says
    assert found.says.startswith(f"{found.state}: ")
    has_fix = found.state in {"no", "partly"} or "connected" in found.says or "Unk" in found.says
    assert bool(found.fix) == has_fix


@pytest.mark.parametrize("code", [code for code, level in CODES.items() if level == "fault"])
@pytest.mark.parametrize("whose", ["notyet", "host"])
def test_no_fault_leaves_a_yes(code, whose):
    wrong = fault(code, "It is wrong.", fix="do something")
    in_force = Setup(gates=(gate(),))
    assert answer_of([], [host(gates=[gate()])], in_force).state == "yes"
    own, of_host = ([wrong], []) if whose == "notyet" else ([], [wrong])
    said = answer_of(own, [host(gates=[gate()], faults=of_host)], in_force)
    assert said.state in {"partly", "no"}
    assert said.fix == "do something"


def test_faults_of_our_own_side():
    off = fault("switched-off", "notyet is off.", fix="run: notyet on")
    in_force = Setup(gates=(gate(),))
    said = answer_of([UNTRUSTED, off], [host(gates=[gate()])], in_force)
    assert (said.state, said.says, said.fix) == ("no", "no: notyet is off.", "run: notyet on")
    said = answer_of([UNTRUSTED], [host(gates=[gate()])], in_force)
    assert (said.state, said.but) == ("partly", ("/p/notyet.toml: It is not trusted.",))
    said = answer_of([UNTRUSTED], [host()], Setup())
    assert said.says == "no: /p/notyet.toml: It is not trusted."
    assert answer_of([], [host(gates=[NEVER])], in_force).says == "no: no gate is for Claude Code"


def test_without_a_host_that_calls_there_is_no_check():
    absent = HostStatus(host="claude", title="Claude Code", is_here=False)
    codex = HostStatus(host="codex", title="Codex", is_here=True)
    said = answer_of([], [absent, codex], Setup(gates=(gate(),)))
    assert (said.says, said.fix) == ("no: no host calls notyet here", "run: notyet install codex")
    assert "notyet with" in answer_of([], [absent], Setup(gates=(gate(),))).fix
    broken = fault("file-invalid", "Codex cannot read this file.", where="/c:2:3", fix="correct it")
    codex = HostStatus(host="codex", title="Codex", is_here=True, faults=(broken,))
    said = answer_of([], [absent, codex], Setup(gates=(gate(),)))
    assert said.says == "no: Codex cannot read this file."
    assert said.fix == "correct it at /c:2:3, then run: notyet install codex"
