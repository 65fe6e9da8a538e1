"""The hook answers as recorded: every host in every set-up, every payload and vector."""

import base64
import json

import pytest

from golden.world import VECTORS, World, compare, short_folder, stop, vectors

HOSTS = ("claude", "codex", "mux", "conclaude", "notyet")
FAILS = '[gates.tests]\nrun = "echo 2 tests failed; exit 1"\n'
GATES_PY = """\
from notyet import Block
def tests(event):
    return Block("Write the changelog.")
"""
ANSWERS = '[gates]\ntests = "cat answer"\n'
ONCE = [{}]
TWICE = [{}, {"active": True}]
THRICE = [{}, {"active": True}, {"active": True}]

# What is in notyet.toml, and what happens to the stops of one agent.
SETUPS = {
    "passes": ('[gates]\ntests = "echo fine"\n', TWICE),
    "blocks": (FAILS, ONCE),
    "blocks-in-silence": ('[gates]\ntests = "exit 3"\n', ONCE),
    "blocks-by-json": (ANSWERS, [{"answer": {"decision": "block", "reason": "Add a test."}}]),
    "blocks-with-hint": (FAILS + 'hint = "Fix the cause."\n', ONCE),
    "blocks-then-passes": ('[gates]\ntests = "test -e $NEW || { touch $NEW; false; }"\n', TWICE),
    "halts": (ANSWERS, [{"answer": {"decision": "halt", "reason": "Budget spent."}}]),
    "observes": (FAILS + "observe = true\n", ONCE),
    "broken": ('[gates.tests]\nrun = ["no-such-program"]\nif_broken = "allow"\n', ONCE),
    "broken-blocks": ('[gates.tests]\nrun = ["no-such-program"]\n', ONCE),
    "not-found-by-shell": ('[gates]\ntests = "no-such-program 2> /dev/null"\n', ONCE),
    "killed": ('[gates]\ntests = "kill -9 $$"\n', ONCE),
    "times-out": ('[gates.tests]\nrun = "sleep 9"\ntimeout = "100ms"\n', ONCE),
    "capped": ("[limits]\nmax_blocks = 1\n" + FAILS, TWICE),
    "ceiling": ("[limits]\nsession_ceiling = 1\n" + FAILS, TWICE),
    "stuck": (FAILS, THRICE),
    "handed-back": (FAILS, [{}, {"active": True, "message": "BLOCKED: I need the password."}]),
    "several": (
        FAILS + '[gates]\nlint = "echo bad style >&2; exit 2"\ntypes = "true"\n'
        '[gates.e2e]\nrun = "true"\nslow = true\n[gates.log]\nrun = "false"\nobserve = true\n',
        TWICE,
    ),
    "subagents": (FAILS + 'for = ["coder"]\n', [{}, {"agent": "coder"}, {"agent": "explorer"}]),
    "subagent-capped": (
        "[limits]\nmax_blocks = 2\n" + FAILS + 'for = "subagents"\nnever = ["explorer"]\n',
        [{"agent": "coder"}] * 3 + [{"agent": "explorer"}],
    ),
    "no-session": (FAILS, [{"session_id": ""}]),
    "background": (
        FAILS,
        [{"background_tasks": [{"id": "b1", "type": "subagent", "status": "running"}]}],
    ),
    "claude-told-to-block": ('[reply]\nclaude = "block"\n' + FAILS, ONCE),
    "python": ('[gates]\ntests = { python = "gates:tests" }\n', ONCE),
}


@pytest.fixture
def world():
    with short_folder() as folder:
        yield World(folder)


def answers_of_hosts(world, stops):
    """Return what every host is answered at these stops, by `hook` and by conclaude's own words."""
    answers = {}
    for host in (*HOSTS, "conclaude Stop"):
        for number, fields in enumerate(map(dict, stops), 1):
            world.write("answer", json.dumps(fields.pop("answer", {})))
            argv, speaks = ("hook", "--host", host), host
            if host == "conclaude Stop":
                agent = fields.get("agent")
                argv = ("conclaude", "Hooks", "SubagentStop", "--agent", agent)
                argv, speaks = argv if agent else ("conclaude", "Stop"), "conclaude"
            payload = stop(speaks, world, host, **fields)
            new = str(world.home / f"new-{argv[0]}-{speaks}")
            answers[f"{host} {number}"] = world.run(*argv, payload=payload, NEW=new)
    return answers


@pytest.mark.parametrize("name", SETUPS)
def test_every_host_is_answered_as_recorded(name, world):
    text, stops = SETUPS[name]
    world.write("gates.py", GATES_PY)
    if name == "stuck":
        world.git("init", "--quiet")
    world.trust(text)
    compare(f"hook/{name}.json", answers_of_hosts(world, stops))


def test_without_gates_every_agent_may_stop(world):
    compare("hook/no-config.json", answers_of_hosts(world, ONCE))


def test_an_untrusted_file_is_told(world):
    world.write("notyet.toml", FAILS)
    answers = answers_of_hosts(world, ONCE)
    world.trust(FAILS)
    world.write("notyet.toml", FAILS + "# changed\n")
    answers |= {f"changed: {name}": said for name, said in answers_of_hosts(world, ONCE).items()}
    compare("hook/untrusted.json", answers)


def test_a_wrong_file_is_told(world):
    world.write("notyet.toml", "[gates.tests]\nrun = 5\n[limits]\nmax_blocks = -1\n")
    compare("hook/wrong-config.json", answers_of_hosts(world, ONCE))


def test_switched_off_every_agent_may_stop(world):
    world.trust(FAILS)
    world.run_as_person("off")
    answers = answers_of_hosts(world, ONCE)
    world.run_as_person("on")
    for name in ("NOTYET_DISABLE", "NOTYET_INSIDE"):
        payload = stop("claude", world, name)
        answers[name] = world.run("hook", "--host", "claude", payload=payload, **{name: "1"})
    compare("hook/off.json", answers)


def test_in_git_what_did_not_change_is_not_run(world):
    world.git("init", "--quiet")
    world.trust(
        '[gates]\ntests = "test ! -e wrong"\n[gates.docs]\nrun = "false"\npaths = ["docs/**"]\n'
    )
    world.write("docs/page", "old\n")
    world.git("add", ".")
    world.git("commit", "--quiet", "-m", "one")
    start = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s"}
    start |= {"cwd": str(world.project), "transcript_path": "/t"}
    hook = ("hook", "--host", "claude")
    answers = {"start": world.run(*hook, payload=start)}
    steps = {
        "unchanged": [],
        "wrong": ["wrong"],
        "wrong and docs": ["docs/page"],
        "another file": ["file"],
        "again": [],
    }
    for name, files in steps.items():
        for file in files:
            world.write(file, "text\n")
        payload = stop("claude", world, "s", active=bool(files))
        answers[name] = world.run(*hook, payload=payload)
    (world.project / "wrong").unlink()
    world.write("docs/page", "old\n")
    answers["right"] = world.run(*hook, payload=stop("claude", world, "s", active=True))
    compare("hook/git.json", answers)


@pytest.mark.parametrize("tell", ["true", "false"])
def test_starts_are_answered_as_recorded(tell, world):
    world.trust(f"[start]\ntell = {tell}\n" + FAILS + 'for = "all"\n')
    answers = {}
    for host in HOSTS[:-1]:
        for event in ("SessionStart", "SubagentStart", "UserPromptSubmit", "SessionEnd"):
            payload = stop(host, world, host, hook_event_name=event, source="startup")
            if event == "SubagentStart":
                payload |= {"agent_id": "a1", "agent_type": "coder"}
            answers[f"{host} {event}"] = world.run("hook", "--host", host, payload=payload)
    compare(f"hook/start-{tell}.json", answers)


def moved(value, world):
    """Return a payload with the folder of this project instead of that where it was recorded."""
    text = json.dumps(value).replace("/home/u/proj", str(world.project))
    return json.loads(text.replace("/home/u/", f"{world.home}/"))


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_recorded_payloads_are_answered_as_recorded(host, world):
    world.trust(FAILS + 'for = "all"\n')
    answers = {}
    for path in sorted((VECTORS / "payloads" / host).glob("*.json")):
        payload = moved(json.loads(path.read_text()), world)
        answers[path.name] = world.run("hook", payload=payload)
        payload["session_id"] += " again"  # two payloads that are alike within seconds count as one
        answers[f"{path.name}, of {host}"] = world.run("hook", "--host", host, payload=payload)
    compare(f"payloads/{host}.json", answers)


def test_the_host_is_found_in_the_payload(world):
    world.trust(FAILS + 'for = "all"\n')
    answers = {}
    for vector in vectors("payloads", "hosts.json"):
        payload = vector["payload"] | {"session_id": vector["id"]}
        if isinstance(payload.get("cwd", ""), str):
            payload["cwd"] = str(world.project)
        answers[vector["id"]] = world.run("hook", payload=payload)
    compare("payloads/hosts.json", answers)


def test_nonsense_never_blocks(world):
    world.trust(FAILS)
    contents = (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"hook_event_name": 5}', b"{}", b'"Stop"')
    answers = {
        f"{host} {content!r}": world.run("hook", "--host", host, payload=content)
        for host in HOSTS
        for content in contents
    }
    answers["no such host"] = world.run("hook", "--host", "nobody", payload=b"{}")
    answers["no such option"] = world.run("hook", "--nothing", payload=b"{}")
    compare("hook/nonsense.json", answers)


def can_be_run(vector):
    """Return True if a command can end as a vector says."""
    not_by_itself = {"problem", "cancelled", "timed_out"} & set(vector["exit"])
    return not not_by_itself and "python" not in vector.get("options", {})


def write_answer(world, fields):
    """Write the script that ends as a vector says."""
    for stream in ("stdout", "stderr"):
        coded = fields.get(f"{stream}_base64")
        text = fields.get(stream, "").encode() if coded is None else base64.b64decode(coded)
        world.write(stream, text)
    signal = fields.get("signal")
    end = f"kill -{signal} $$; sleep 9" if signal else f"exit {fields['code']}"
    world.write("answer", f"cat stdout; cat stderr >&2; {end}\n")


HOOKS_OF = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "mux": ".mux/settings.json",
}


def wire(world, speaks, options):
    """Have the project's gate be a hook command for this host."""
    if speaks == "notyet":
        lines = [f"{name} = {value}" for name, value in options.items() if name == "pass_codes"]
        world.trust("\n".join(['[gates.g]\nrun = "sh ./answer"\nfor = "all"', *lines]) + "\n")
    elif speaks == "conclaude":
        command = {"run": "sh ./answer", "showStdout": True, "showStderr": True}
        commands = {"stop": {"commands": [command]}}
        command = command | ({"block": options["block"]} if "block" in options else {})
        commands["subagentStop"] = {"commands": {"*": [command]}}
        world.write(".conclaude.yaml", json.dumps(commands))
        world.trust('[read]\nhosts = ["conclaude"]\n')
    else:
        hook = [{"hooks": [{"type": "command", "command": "sh ./answer"}]}]
        events = ("Stop", "SubagentStop", "SessionStart", "SubagentStart")
        world.write(HOOKS_OF[speaks], json.dumps({"hooks": dict.fromkeys(events, hook)}))
        world.trust(f'[read]\nhosts = ["{speaks}"]\n')


@pytest.mark.parametrize("speaks", HOSTS)
def test_answers_of_gates_are_understood_as_recorded(speaks, world):
    answers, wired = {}, None
    for vector in filter(can_be_run, vectors(speaks, "replies.json")):
        options = {k: v for k, v in vector.get("options", {}).items() if k != "section"}
        if options != wired:
            wire(world, speaks, options)
            wired = options
        write_answer(world, vector["exit"])
        section = vector.get("options", {}).get("section", "")
        is_subagent = section == "subagentStop" or vector.get("scope") == "subagent"
        fields = {"agent": "coder"} if is_subagent else {}
        if "start" in vector:
            event = {"agent": "SessionStart", "subagent": "SubagentStart"}[vector["start"]]
            other = "codex" if speaks == "claude" else "claude"  # a host runs its own hooks itself
            payload = stop(other, world, vector["id"], agent="coder", hook_event_name=event)
            payload["source"] = "startup"
            answers[vector["id"]] = world.run("hook", "--host", other, payload=payload)
            continue
        payload = stop("notyet", world, vector["id"], **fields)
        answers[vector["id"]] = world.run("hook", "--host", "notyet", payload=payload)
    compare(f"vectors/gates-{speaks}.json", answers)


@pytest.mark.parametrize("host", ["claude", "codex", "mux", "notyet"])
def test_hosts_are_answered_in_their_words_as_recorded(host, world):
    answers = {}
    world.trust('[gates.g]\nrun = "cat answer"\nfor = "all"\n')
    for vector in vectors(host, "hosts.json"):
        verdict, event = vector["verdict"], vector.get("event", {})
        words = verdict.get("prompt", verdict.get("reason", verdict.get("note")))
        answer = {"decision": verdict["kind"], "reason": words, "extend": verdict.get("extend")}
        answer = {name: value for name, value in answer.items() if value is not None}
        world.write("answer", json.dumps(answer))
        version = event.get("host_version")
        environ = {"AI_AGENT": f"claude-code_{version.replace('.', '-')}_agent"} if version else {}
        fields = {"agent": "coder"} if event.get("scope") == "subagent" else {}
        payload = stop(host, world, vector["id"], **fields)
        answers[vector["id"]] = world.run("hook", "--host", host, payload=payload, **environ)
    compare(f"vectors/hosts-{host}.json", answers)
