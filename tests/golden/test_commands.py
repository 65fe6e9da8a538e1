"""`--json` of the commands, and the messages that agents read, are as recorded."""

import json
import re

import pytest

from golden.world import World, compare, short_folder, stop

GATES = """\
[gates]
lint = "echo fine"
[gates.tests]
run = "cat failures; test ! -s failures"
hint = "Fix the cause, not the assertion."
[gates.e2e]
run = "true"
slow = true
[gates.log]
run = "false"
observe = true
[gates.coders]
run = "echo no tests; exit 1"
for = ["coder"]
"""
FAILURES = "FAILED test_shop.py::test_empty\n1 failed, 2 passed\n"


@pytest.fixture
def world():
    with short_folder() as folder:
        yield World(folder)


def story(world):
    """Have agents of three hosts meet the gates; return the answers."""
    world.write("failures", FAILURES)
    world.trust(GATES)
    sent = [
        ("claude", {}),
        ("claude", {"active": True}),
        ("claude", {"active": True, "message": "BLOCKED: which shop?"}),
        ("claude", {"agent": "coder"}),
        ("codex", {}),
        ("notyet", {}),
        ("notyet", {"active": True}),
        ("notyet", {"active": True}),
    ]
    for host, fields in sent:
        payload = stop(host, world, f"session-{host}", **fields)
        world.run("hook", "--host", host, payload=payload)
    world.write("failures", "")
    payload = stop("codex", world, "session-codex", active=True)
    world.run("hook", "--host", "codex", payload=payload)


def test_the_log_is_as_recorded(world):
    answers = {"log of nothing": world.run("log", "--json")}
    answers["stats of nothing"] = world.run("log", "--stats", "--json")
    story(world)
    runs = [("log",), ("log", "--stats"), *(("log", str(number)) for number in (1, 3, 4, 9, 99))]
    runs += [("log", "--outcome", "stuck"), ("log", "--host", "codex"), ("log", "--gate", "coders")]
    runs += [("log", "--session", "session-n", "-n", "1"), ("log", "--all", "-n", "2")]
    for argv in runs:
        answers[" ".join(argv)] = world.run(*argv, "--json")
    stats = answers["log --stats"]  # gates come by the seconds they took
    stats["stdout"] = "\n".join(sorted(stats["stdout"].splitlines()))
    compare("commands/log.json", answers)


def test_the_status_is_as_recorded(world):
    answers = {"no gates": world.run("status", "--json")}
    world.write("notyet.toml", GATES)
    answers["untrusted"] = world.run("status", "--json")
    story(world)
    runs = [
        ("status",),
        ("status", "codex"),
        ("status", "--why"),
        ("status", "--why", "--as", "mux"),
    ]
    runs += [("status", "--why", "--agent-type", "coder"), ("status", "--ask")]
    for argv in runs:
        answers[" ".join(argv)] = world.run(*argv, "--json")
    world.run_as_person("off")
    answers["off"] = world.run("status", "--json")
    compare("commands/status.json", answers)


def test_checks_are_as_recorded(world):
    answers = {"no gates": world.run("check", "--json")}
    world.write("notyet.toml", GATES)
    answers["untrusted"] = world.run("check", "--json")
    world.write("failures", FAILURES)
    world.trust(GATES)
    runs = [("check",), ("check", "lint"), ("check", "nothing"), ("check", "lint", "log")]
    runs += [("check", "--event", "subagent_stop", "--agent-type", "coder")]
    runs += [("check", "--as", host) for host in ("claude", "codex", "mux", "conclaude", "notyet")]
    runs += [("check", "--answer", f"tests={said}") for said in ("allow", "halt:Over.", "broken")]
    for argv in runs:
        answers[" ".join(argv)] = world.run(*argv, "--json")
    world.write("failures", "")
    answers["all pass"] = world.run("check", "--json")
    compare("commands/check.json", answers)


def test_tasks_are_as_recorded(world):
    answers = {"none": world.run("tasks", "--json")}
    world.write("failures", FAILURES)
    world.trust(GATES)
    first = '[[turn]]\nsay = "Done!"\n\n[[turn]]\nsteps = '
    world.write("agent.toml", first + '[{ write = "failures", text = "" }, { say = "Now." }]\n')
    command = ("with", "scripted:agent.toml", "Fix it.")
    answers["passed"] = world.run(*command, "--label", "one", "--json")
    world.write("failures", FAILURES)
    world.write("agent.toml", '[[turn]]\nsay = "Done!"\n[[turn]]\nsay = "Really!"\n')
    answers["capped"] = world.run(*command, "--max-blocks", "1", "--json")
    for argv in (("tasks",), ("tasks", "--all"), ("tasks", "show", "nothing")):
        answers[" ".join(argv)] = world.run(*argv, "--json")
    for said in (answers["passed"], answers["capped"]):
        said["stderr"] = "..."  # progress, with times
    text = json.dumps(answers)
    for number, task in enumerate(dict.fromkeys(re.findall(r'"task\\": \\"(\w+)', text)), 1):
        text = text.replace(task, f"TASK-{number}")
    compare("commands/tasks.json", json.loads(text))


MESSAGES = {
    "first": (GATES, [{}]),
    "same-failure": (GATES, [{}, {"active": True}]),
    "last": ("[limits]\nmax_blocks = 1\n" + GATES, [{}]),
    "last-of-two": ("[limits]\nmax_blocks = 2\n" + GATES, [{}, {"active": True}]),
    "subagent": (GATES, [{"agent": "coder"}]),
    "subagent-same-failure": (GATES, [{"agent": "coder"}, {"agent": "coder", "active": True}]),
    "several": ('[gates]\na = "echo one; exit 1"\nb = "echo two >&2; exit 2"\nc = "true"\n', [{}]),
    "silent": ('[gates]\na = "exit 1"\n', [{}]),
    "long-output": (
        "[gates]\na = 'for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do "
        'echo "line $i$j of a long output that is cut somewhere"; done; done; false\'\n',
        [{}],
    ),
    "broken": ('[gates.a]\nrun = ["no-such-program"]\n', [{}]),
    "timed-out": (
        '[gates.a]\nrun = "echo begun; sleep 9"\ntimeout = "500ms"\n',
        [{}],
    ),
    "with-broken": (
        '[gates]\na = "false"\n[gates.b]\nrun = "no-such-program"\nif_broken = "allow"\n',
        [{}],
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_agent_reads_what_is_recorded(name, world):
    text, stops = MESSAGES[name]
    world.write("failures", FAILURES)
    if "same-failure" in name:
        world.git("init", "--quiet")
    world.trust(text)
    for fields in stops:
        payload = stop("notyet", world, "s", **fields)
        said = world.run("hook", "--host", "notyet", payload=payload)
    compare(f"messages/{name}.txt", json.loads(said["stdout"])["prompt"] + "\n")
