"""What is special about Copilot: other files that it runs, trust, its cap, and its git."""

import json

import pytest

from clients.conftest import only
from clients.model.script import Run, Say, Spawn
from clients.world import NOTYET
from commands import until

READY = '[gates.ready]\nrun = "test -e ready"\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
ENDLESS = "[limits]\nmax_blocks = 30\nstuck_after = 0\n"
LEARNS = [Say("Done!"), Run("touch ready"), Say("Now it is.")]


def with_notyet(host):
    """Return a PATH on which the line of a project's settings finds notyet."""
    return {"PATH": f"{NOTYET.parent}:{host.environ['PATH']}"}


def also_for_claude(host):
    """Let the project register notyet with Claude Code, too."""
    done = host.notyet("install", "claude", "--project", "--yes", **with_notyet(host))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.rule("G6")
@pytest.mark.parametrize("own", [(), ("--user",), ("--project",)], ids=["no", "user", "project"])
@only("copilot")
def test_a_line_for_claude_code_gates_copilot_and_no_stop_is_counted_twice(host, own):
    host.gates(READY)
    also_for_claude(host)
    if own:
        host.install(*own)
    ran = host.run(LEARNS, **with_notyet(host))
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert len(host.WIRE.prompts(ran.model.asked()[1].news)) == 1
    assert host.outcomes() == ["blocked", "passed"]
    assert [stop.count for stop in host.stops()] == [1, 1]
    assert {stop.host for stop in host.stops()} == {"copilot"}


@pytest.mark.full
@pytest.mark.rule("C8", "G6")
@pytest.mark.parametrize("is_claudes", [False, True])
@only("copilot")
def test_a_stop_inside_of_a_subagent_is_not_its_parents(host, is_claudes):
    host.gates(READY + 'for = "all"\n')
    if is_claudes:
        also_for_claude(host)
    else:
        host.install()
    ran = host.run(
        {
            "main": [Spawn("[actor: writer] Write it."), Say("It is written.")],
            "writer": [Say("Done."), Run("touch ready"), Say("All of it is written.")],
        },
        **with_notyet(host),
    )
    assert (ran.code, ran.text) == (0, "It is written."), ran.err
    told = [(stop.scope, stop.last_message, stop.outcome) for stop in host.stops()]
    assert told == [
        ("subagent", "Done.", "blocked"),
        ("subagent", "All of it is written.", "passed"),
        ("agent", "It is written.", "passed"),
    ]


@pytest.mark.full
@pytest.mark.rule("B8")
@only("copilot")
def test_our_limit_stays_below_copilots_cap(host):
    host.gates(ENDLESS + NEVER)
    host.install()
    ran = host.run([Say(f"Try {n}.") for n in range(host.MOST_BLOCKS + 1)])
    assert (ran.code, ran.text) == (0, f"Try {host.MOST_BLOCKS}."), ran.err
    assert host.outcomes() == ["blocked"] * host.MOST_BLOCKS + ["capped"]
    assert "the last" in host.WIRE.prompts(ran.model.asked()[-1].news)[0]


@pytest.mark.full
@pytest.mark.rule("B8")
@only("copilot")
def test_a_subagent_has_no_cap_but_ours(host):
    host.gates(ENDLESS.replace("30", "10") + NEVER + 'for = "subagents"\n')
    host.install()
    host.ungated = {"main"}
    ran = host.run(
        {
            "main": [Spawn("[actor: writer] Write it."), Say("It is not written.")],
            "writer": [Say(f"Try {n}.") for n in range(11)],
        }
    )
    assert (ran.code, ran.text) == (0, "It is not written."), ran.err
    assert host.outcomes() == ["blocked"] * 10 + ["capped"]


@pytest.mark.full
@only("copilot")
def test_a_folder_that_is_not_trusted_is_found(host):
    host.gates(NEVER)
    host.distrust_project()
    done = host.notyet("install", "copilot", "--project", "--yes", **with_notyet(host))
    assert "start copilot here and trust the folder" in done.stdout
    assert _faults(host) == ["folder-not-trusted"]
    ran = host.run([Say("Done.")], **with_notyet(host))
    assert (ran.text, host.stops()) == ("Done.", [])
    host.runs.remove(ran)  # of which the ledger rightly knows nothing
    host.trust_project()
    assert _faults(host) == []
    host.run([Say("Done."), Say("BLOCKED: it is never right.")], **with_notyet(host))
    assert host.outcomes() == ["blocked", "handed_back"]
    assert _faults(host) == []  # Copilot wrote its file anew, with comments
    host.run([Say("Done."), Say("BLOCKED: no.")], **with_notyet(host), COPILOT_ALLOW_ALL="true")
    assert len(host.stops()) == 4


def _faults(host):
    done = host.notyet("status", "copilot", "--json", **with_notyet(host))
    (copilot,) = json.loads(done.stdout)["hosts"]
    return list(dict.fromkeys(fault["code"] for fault in copilot["faults"]))


@pytest.mark.full
@pytest.mark.rule("N1")
@only("copilot")
def test_gates_and_notyet_use_git_as_copilot_configures_it(host):
    host.gates("""
[gates.clean]
when = "changed"
run = "git config safe.bareRepository; git diff --exit-code --stat HEAD -- file.txt"
""")
    host.install()
    host.git("add", ".")
    host.git("commit", "--quiet", "-m", "two")
    host.run([Say("Nothing to do.")])
    commit = "git -c user.name=t -c user.email=t@localhost commit --quiet -am three"
    host.run([Run("echo two >> file.txt"), Say("Done!"), Run(commit), Say("Committed.")])
    assert host.outcomes() == ["skipped", "blocked", "passed"]
    unchanged, failed, _ = host.stops()
    assert unchanged.why == "unchanged"
    assert failed.reports[0].said.split()[:2] == ["explicit", "file.txt"]


@pytest.mark.full
@pytest.mark.rule("F13")
@only("copilot")
def test_what_a_start_says_is_before_the_first_request(host):
    host.gates('[start]\ntell = true\n\n[gates.good]\nrun = "true"\n')
    host.install()
    ran = host.run([Say("Done.")])
    assert "good" in "".join(ran.model.asked()[0].texts)


@pytest.mark.full
@pytest.mark.parametrize("has_hook", [False, True])
@only("copilot")
def test_notyet_with_gates_copilot_from_outside(host, has_hook):
    host.gates(READY)
    if has_hook:
        host.install()
    host.trust()
    (host.folder / "bin").mkdir()
    (host.folder / "bin" / "copilot").symlink_to(host.program)
    line = [str(NOTYET), "with", "copilot", "do it", "--", "--allow-all-tools"]
    ran = host.run(LEARNS, line=line, PATH=f"{host.folder}/bin:{host.environ['PATH']}")
    assert (ran.code, ran.out.strip()) == (0, "Now it is."), ran.err
    decided = [stop for stop in host.stops() if stop.why != "supervised"]
    assert [stop.outcome for stop in decided] == ["blocked", "passed"]
    assert len(host.stops()) == (4 if has_hook else 2)


@pytest.mark.full
@pytest.mark.rule("C4")
@only("copilot")
def test_an_interrupt_during_a_gate_ends_the_gate_though_copilot_leaves_the_hook_running(host):
    host.gates('[gates.long]\nrun = "touch begun; sleep 1000 & sleep 1000"\n')
    host.install()
    with host.start([Say("Done!")]) as under_way:
        assert until((host.project / "begun").exists, 60)
        under_way.interrupt()
        ran = under_way.wait()
    assert len(ran.model.requests) == 1
    assert host.outcomes() in (["skipped"], ["asking"])  # as the hook was given time, or not
