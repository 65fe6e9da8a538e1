"""The answer to "am I gated?", and what stands behind it."""

import json
import os

import pytest

from hook_runs import new_project, trust
from notyet.config.load import load
from notyet.config.settings import Setup
from notyet.core.gate import Command, Gate, Match
from notyet.install.place import Place
from notyet.install.registered import Registration
from notyet.status.faults.fault import fault
from notyet.status.gated import answered, caps_here, gates_here, limits_here, size_of, whom
from notyet.status.hosts import HostStatus
from notyet.status.probe import Probe


def gate(name="lint", **fields):
    return Gate(name=name, check=Command(script="true"), **fields)


PLACE = Place(path="/settings", scope="user", form="json")
EVENTS = ("Stop", "SubagentStop")


def registered(event, line):
    command = "notyet hook"
    fields = {"group": 0, "index": 0, "command": command, "handler": {}, "line": line}
    return Registration(place=PLACE, event=event, **fields)


def host(name="claude", title="Claude Code", gates=(), faults=(), limits=(), **fields):
    """A host that calls us, with what is known of it."""
    entries = tuple(registered(event, line) for line, event in enumerate(EVENTS, 1))
    setup = Setup(gates=tuple(gates), limits=dict(limits))
    known = {"registrations": entries, "setup": setup, "reached": dict.fromkeys(EVENTS, "")}
    known |= fields
    return HostStatus(host=name, title=title, is_here=True, faults=tuple(faults), **known)


def said_of(*statuses):
    """The state, and all sentences of the answer."""
    found = answered([], statuses, Setup())
    return found.state, found.says, *found.but


CODEX = ("codex", "Codex")
UNTRUSTED = fault("config-untrusted", "Nobody trusted it.", where="/p/notyet.toml", fix="run: x")
UNAPPROVED = fault("hook-untrusted", "Nobody approved it.", host="codex", fix="approve it")


def test_gates_that_a_host_calls_are_a_yes():
    said = answered([], [host(gates=[gate(), gate("tests")])], Setup())
    assert (said.is_gated, said.fix) == (True, "")
    assert said.says == "yes: 2 gates are asked at each stop of Claude Code"


def test_one_gate_is_one_gate_and_subagents_are_named():
    both = [gate(), gate("review", match=Match(events=("subagent",)))]
    assert answered([], [host(gates=both)], Setup()).says == (
        "yes: 1 gate is asked at each stop of Claude Code, and 1 more at those of subagents"
    )
    assert answered([], [host(gates=both[1:])], Setup()).says == (
        "yes: 1 gate is asked at each stop of subagents of Claude Code"
    )


FOR_CODERS = Match(events=("subagent",), agents=("coder",))
WATCHING = "none of them holds anybody, they only observe"


def test_gates_that_only_watch_hold_nobody():
    asked = "no: 1 gate is asked at each stop of"
    main = host(gates=[gate(observe=True)])
    assert said_of(main) == ("no", f"{asked} Claude Code; {WATCHING}")
    subagents = host(gates=[gate(observe=True, match=FOR_CODERS)])
    assert said_of(subagents) == ("no", f"{asked} coder subagents of Claude Code; {WATCHING}")


@pytest.mark.parametrize(
    ("matches", "stops"),
    [
        ([FOR_CODERS], "each stop of coder subagents"),
        ([FOR_CODERS, FOR_CODERS], "each stop of coder subagents"),
        ([Match(events=("subagent",), never=("Explore",))], "each stop of subagents but Explore"),
        (
            [FOR_CODERS, Match(events=("subagent",), agents=("impl-*", "x"))],
            "stops of coder subagents, impl-*, x subagents",
        ),
    ],
)
@pytest.mark.rule("D1")
def test_it_is_said_of_which_subagents_a_gate_is_asked(matches, stops):
    gates = [gate(f"g{n}", match=match) for n, match in enumerate(matches)]
    _, says = said_of(host(gates=gates))
    assert says.endswith(f" asked at {stops} of Claude Code")


@pytest.mark.rule("D1")
@pytest.mark.parametrize(
    ("agents", "never"), [(("coder",), ("*",)), (("coder",), ("cod*",)), (("im-*",), ("im-*",))]
)
def test_a_gate_that_can_never_be_asked_gates_nobody(agents, never):
    nobody = gate(match=Match(events=("subagent",), agents=agents, never=never))
    found = answered([], [host(gates=[nobody])], Setup())
    assert (found.state, found.says, found.fix) == (
        "no",
        "no: lint is never asked: `never` leaves out all that `for` names",
        "change `never`",
    )
    other = gate("review", match=FOR_CODERS)
    assert said_of(host(gates=[nobody, other]))[1].startswith("yes: 1 gate is asked")


def test_a_gate_for_all_but_every_subagent_is_one_for_the_main_agent():
    main = gate(match=Match(events=("agent", "subagent"), never=("*",)))
    assert said_of(host(gates=[main])) == (
        "yes",
        "yes: 1 gate is asked at each stop of Claude Code",
    )


ELSEWHERE = Command(script="true", workspace="ssh://box/srv")


@pytest.mark.rule("M5")
def test_a_gate_on_a_machine_that_was_not_asked_is_perhaps():
    far = Gate(name="far", check=ELSEWHERE)
    found = answered([], [host(gates=[far])], Setup())
    assert (found.state, found.says, found.fix) == (
        "perhaps",
        "perhaps: 1 gate is for the stops of Claude Code, but far runs on ssh://box/srv, which "
        "was not asked",
        "run: notyet status --ask",
    )
    assert said_of(host(gates=[gate(), far])) == (
        "yes",
        "yes: 2 gates are asked at each stop of Claude Code",
        "perhaps not all: far runs on ssh://box/srv, which was not asked",
    )
    asked = Probe(command="x", says="the agent may stop", asked=True)
    assert said_of(host(gates=[far], probe=asked))[0] == "yes"
    beside = gate(observe=True)
    assert said_of(host(gates=[beside, far]))[0] == "perhaps"


def test_what_was_really_asked_and_gave_no_answer_is_a_no():
    probe = Probe(command="x", says="notyet: let go unchecked: lint: cannot_start", asked=True)
    found = answered([], [host(gates=[gate()], probe=probe)], Setup())
    assert (found.state, found.says, found.fix) == (
        "no",
        "no: 1 gate is asked at each stop of Claude Code; asked just now, let go unchecked: "
        "lint: cannot_start",
        "see: notyet check",
    )
    both = [gate(match=Match(events=("agent", "subagent")))]
    assert said_of(host(gates=both, probe=probe))[0] == "no"
    review = gate("review", match=FOR_CODERS)
    assert said_of(host(gates=[review], probe=probe))[0] == "yes"


def test_where_only_subagents_are_held_it_is_said_that_the_main_agent_is_not():
    both = host(gates=[gate(observe=True), gate("review", match=FOR_CODERS)])
    assert said_of(both) == (
        "yes",
        "yes: 1 gate is asked at each stop of coder subagents of Claude Code",
        f"not the main agent: {WATCHING}",
    )


@pytest.mark.rule("B1")
def test_with_no_send_back_at_all_nobody_is_held():
    state, says = said_of(host(gates=[gate()], limits={"max_blocks": 0}))
    assert state == "no"
    assert says.endswith("; max_blocks is 0, so nobody is sent back")


def test_a_gate_for_an_ending_that_the_host_never_has_is_none():
    only = gate(match=Match(endings=("error",)))
    assert said_of(host(gates=[only])) == (
        "no",
        "no: lint is for an ending by error, which no stop of Claude Code has",
    )
    both = gate(match=Match(endings=("error", "done")))
    assert said_of(host(gates=[both]))[0] == "yes"


UNTRIED = "its command was not tried, because it also runs other commands"


def test_what_was_not_tried_is_perhaps():
    unknown = host(gates=[gate(), gate("tests")], reached=dict.fromkeys(EVENTS, UNTRIED))
    found = answered([], [unknown], Setup())
    assert not found.is_gated
    assert (found.state, found.says) == (
        "perhaps",
        f"perhaps: 2 gates are for the stops of Claude Code, but {UNTRIED}",
    )


def test_a_host_that_is_known_to_gate_is_a_yes_beside_one_of_which_nobody_knows():
    unknown = host(*CODEX, gates=[gate()], reached=dict.fromkeys(EVENTS, UNTRIED))
    assert said_of(unknown, host(gates=[gate()])) == (
        "yes",
        "yes: 1 gate is asked at each stop of Claude Code",
        f"perhaps not with Codex: {UNTRIED}",
    )


def test_a_matcher_that_leaves_subagents_out_is_no_yes_for_them():
    left_out = "the matcher `reviewer` keeps notyet from those it does not fit"
    reached = {"Stop": "", "SubagentStop": left_out}
    only = host(gates=[gate(match=FOR_CODERS)], reached=reached)
    assert said_of(only)[0] == "perhaps"
    both = host(gates=[gate("main"), gate(match=FOR_CODERS)], reached=reached)
    assert said_of(both) == (
        "yes",
        "yes: 1 gate is asked at each stop of Claude Code",
        f"perhaps not subagents of Claude Code: {left_out}",
    )


MISSING = fault("partly-registered", "It does not call notyet at SubagentStop.", host="claude")


def test_a_stop_that_is_missing_counts_for_those_whose_stop_it_is():
    fields = {
        "registrations": (registered("Stop", 1),),
        "reached": {"Stop": ""},
        "faults": [MISSING],
    }
    assert said_of(host(gates=[gate()], **fields))[0] == "yes"
    assert said_of(host(gates=[gate(), gate("review", match=FOR_CODERS)], **fields)) == (
        "yes",
        "yes: 1 gate is asked at each stop of Claude Code",
        "not subagents of Claude Code: It does not call notyet at SubagentStop.",
    )
    assert said_of(host(gates=[gate(match=FOR_CODERS)], **fields))[:2] == (
        "no",
        "no: It does not call notyet at SubagentStop.",
    )


def test_an_entry_that_is_wrong_counts_for_its_own_stop_and_a_command_for_each_that_has_it():
    gates = [gate(), gate("review", match=FOR_CODERS)]
    at = {"host": "claude", "where": registered("SubagentStop", 2).where}
    entry = fault("matcher-broken", "It never runs.", **at)
    assert said_of(host(gates=gates, faults=[entry]))[0] == "yes"
    command = fault("program-missing", "It is gone.", **at)
    assert said_of(host(gates=gates, faults=[command]))[:2] == ("no", "no: It is gone.")


def test_where_the_main_agent_is_not_held_it_is_said_that_its_subagents_are():
    fields = {"registrations": (registered("SubagentStop", 2),), "reached": {"SubagentStop": ""}}
    assert said_of(host(gates=[gate(), gate("review", match=FOR_CODERS)], **fields)) == (
        "no",
        "no: Claude Code does not call notyet at Stop.",
        "1 gate is asked at each stop of coder subagents of Claude Code",
    )


def test_of_several_hosts_those_that_do_not_gate_are_a_but():
    hosts = [host(gates=[gate()]), host(*CODEX, gates=[gate()], faults=[UNAPPROVED])]
    said = answered([], hosts, Setup())
    assert said.is_gated
    assert said.says.endswith("of Claude Code")
    assert said.but == ("not with Codex: Nobody approved it.",)


def test_a_file_of_ours_that_is_wrong_is_a_but_while_another_is_in_force():
    said = answered([UNTRUSTED], [host(gates=[gate()])], Setup(gates=(gate(),)))
    assert said.is_gated
    assert said.but == ("/p/notyet.toml: Nobody trusted it.",)


def test_a_switch_comes_before_everything_else():
    off = fault("switched-off", "notyet is off.", fix="run: notyet on")
    said = answered([UNTRUSTED, off], [host(gates=[gate()])], Setup(gates=(gate(),)))
    assert (said.is_gated, said.says, said.fix) == (False, "no: notyet is off.", "run: notyet on")


def test_without_gates_the_file_that_nobody_trusted_is_the_reason():
    said = answered([UNTRUSTED], [host()], Setup())
    assert said.says == "no: /p/notyet.toml: Nobody trusted it."


def test_without_a_host_that_calls_there_is_no_gate():
    nobody = HostStatus(host="claude", title="Claude Code", is_here=False)
    codex = HostStatus(host="codex", title="Codex", is_here=True)
    said = answered([], [nobody, codex], Setup(gates=(gate(),)))
    assert (said.says, said.fix) == (
        "no: nothing calls notyet here",
        "run: notyet install codex",
    )
    said = answered([], [nobody], Setup(gates=(gate(),)))
    assert said.fix.endswith("or run an agent that is gated with: notyet with")


def test_when_no_host_is_well_the_first_fault_is_the_reason():
    said = answered([], [host(*CODEX, gates=[gate()], faults=[UNAPPROVED])], Setup())
    assert (said.says, said.fix) == ("no: Nobody approved it.", "approve it")


def test_where_a_host_has_no_gates_its_own_fault_is_the_reason():
    unreadable = fault("config-unreadable", "It is gone.", where="/x.toml", fix="write it")
    said = answered([], [host(faults=[unreadable])], Setup(gates=(gate(),)))
    assert (said.says, said.fix) == ("no: /x.toml: It is gone.", "write it")


def test_gates_that_are_for_another_host_are_none_for_this_one():
    said = answered([], [host()], Setup(gates=(gate(),)))
    assert said.says == "no: no gate is for Claude Code"


def test_gates_are_listed_by_stage_with_their_hosts():
    one = Setup(gates=(gate("slow", priority=-1), gate()))
    other = Setup(gates=(gate(),))
    found = gates_here({"claude": one, "codex": other})
    assert [(each.name, each.stage, each.hosts) for each in found] == [
        ("lint", 1, ("claude", "codex")),
        ("slow", 2, ("claude",)),
    ]


def test_gates_of_a_file_that_nobody_trusted_are_listed_as_that(tmp_path):
    folder = new_project(tmp_path / "p", '[gates]\nlint = "true"\n', trusted=False)
    (one,) = gates_here({"claude": load(str(folder), "claude", os.environ)})
    assert (one.name, one.trusted, one.stage, one.line) == ("lint", False, 0, 2)


def test_a_file_that_cannot_be_read_lists_nothing(tmp_path):
    folder = new_project(tmp_path / "p", '[gates]\nlint = "true"\n', trusted=False)
    setup = load(str(folder), "claude", os.environ)
    (folder / "notyet.toml").unlink()
    assert gates_here({"claude": setup}) == []


@pytest.mark.parametrize(
    ("match", "said"),
    [
        (Match(), "main agent"),
        (Match(events=("agent", "subagent")), "all"),
        (Match(events=("subagent",)), "subagents"),
        (Match(events=("subagent",), agents=("coder", "impl-*")), "coder, impl-*"),
        (Match(events=("subagent",), never=("Explore",)), "subagents but Explore"),
    ],
)
def test_it_is_said_for_whom_a_gate_is(match, said):
    assert whom(gate(match=match)) == said


def sources(setup):
    return {one.name: (one.value, one.source) for one in limits_here(setup, os.environ)}


def test_every_limit_names_the_file_and_line_that_it_comes_from(tmp_path):
    own = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write("[limits]\nmax_blocks = 9\nstuck_after = 2\n")
    folder = new_project(tmp_path / "p", "[limits]\n\nmax_blocks = 5\n")
    assert sources(load(str(folder), "claude", os.environ)) == {
        "max_blocks": (5, f"{folder}/notyet.toml:3"),
        "stuck_after": (2, f"{own}/notyet.toml:3"),
        "session_ceiling": (50, "default"),
        "wait_for_background": (True, "default"),
    }


def test_the_line_is_that_of_the_version_in_force(tmp_path):
    folder = new_project(tmp_path / "p", "[limits]\nmax_blocks = 5\n")
    (folder / "notyet.toml").write_text("# new\n\n[limits]\nmax_blocks = 7\n")
    found = sources(load(str(folder), "claude", os.environ))
    assert found["max_blocks"] == (5, f"{folder}/notyet.toml:2")


def test_a_limit_of_openclaw_s_file_names_both(tmp_path):
    folder = new_project(tmp_path / "p", "", trusted=False)
    (folder / "openclaw.json").write_text(
        '{"agents": {"defaults": {"subagents": {"maxSteerRestarts": 8}}}}'
    )
    (folder / "notyet.toml").write_text('[read]\nopenclaw = "openclaw.json"\n')
    trust(folder / "notyet.toml")
    found = sources(load(str(folder), "claude", os.environ))
    assert found["max_blocks"] == (8, f"openclaw.json ({folder}/notyet.toml:2)")


def test_openclaw_s_file_is_read_anew_for_the_user_s_own_file(tmp_path):
    own = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write('[read]\nopenclaw = "o.json"\n')
    for number in (8, 6):
        with open(os.path.join(own, "o.json"), "w") as file:
            known = {"subagents": {"maxSteerRestarts": number}}
            json.dump({"agents": {"defaults": known}}, file)
        found = sources(load(str(tmp_path), "claude", os.environ))
        assert found["max_blocks"] == (number, f"o.json ({own}/notyet.toml:2)")


def test_a_limit_of_a_record_that_is_gone_names_its_file(tmp_path):
    setup = Setup(limits={"max_blocks": 2}, limit_files={"max_blocks": "/gone/notyet.toml"})
    assert sources(setup)["max_blocks"] == (2, "/gone/notyet.toml")


@pytest.mark.parametrize(
    ("cap", "most", "words"), [(8, 7, "9th"), (1, 1, "2nd"), (10, 9, "11th"), (21, 20, "22nd")]
)
def test_a_host_s_own_cap_is_shown_as_what_it_leaves(cap, most, words):
    (one,) = caps_here([host(cap=cap)])
    assert (one.name, one.value) == ("claude cap", most)
    assert one.source.startswith(f"Claude Code overrides the {words} block in a row")
    assert one.source.endswith("less than max_blocks") is (most < 3)


def test_a_host_without_a_cap_is_not_shown():
    assert caps_here([host(), host(setup=None, cap=8)]) == []


def test_the_size_counts_what_sqlite_keeps_beside_the_file(tmp_path):
    (tmp_path / "l").write_text("12345")
    (tmp_path / "l-wal").write_text("123")
    assert (size_of(str(tmp_path / "l")), size_of(str(tmp_path / "none"))) == (8, 0)
