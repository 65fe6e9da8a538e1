"""What `notyet check --as HOST` says a host would see is what `notyet hook` really answers."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hook_runs import ENTRY, HOSTS, clean_environ, new_project, payload, run_hook, trust

HALTING = """echo '{"decision": "halt", "reason": "enough is enough"}'"""
WORDS = """echo '{"decision": "block", "prompt": "Mend \\u00e4 this.", "reason": "broken"}'"""


def gates(**commands):
    """Write gates that are always asked."""
    lines = []
    for name, given in commands.items():
        more = given if isinstance(given, dict) else {"run": given}
        fields = {"when": "always"} | more
        lines += [f"[gates.{name}]", *(f"{key} = {json.dumps(v)}" for key, v in fields.items())]
    return "\n".join(lines) + "\n"


SITUATIONS = {
    "pass": gates(a="true", b="echo fine"),
    "block": gates(a="true", b="echo it is broken; echo really >&2; exit 1"),
    "block in words": gates(a=WORDS),
    "two block": gates(a="echo one; exit 1", b="echo two; exit 3"),
    "a hint": gates(a={"run": "exit 1", "hint": "Mend the cause."}),
    "halt": gates(a=HALTING, b="exit 1"),
    "broken": gates(a="no-such-program-here"),
    "broken, which blocks": gates(a={"run": "no-such-program", "if_broken": "block"}),
    "broken and block": gates(a="no-such-program-here", b="exit 1"),
    "bad answer": gates(a="""echo '{"decision": "perhaps"}'"""),
    "timeout": gates(a={"run": "sleep 60", "timeout": 0.2}),
    "observed": gates(a={"run": "exit 1", "observe": True}),
    "a later stage": gates(a="exit 1", b={"run": "true", "slow": True}),
    "only when it matters": '[gates]\na = "true"\nb = "exit 1"\n',
    "not for this agent": gates(a={"run": "exit 1", "for": ["coder"]}),
    "no send-backs": "[limits]\nmax_blocks = 0\n" + gates(a="exit 1"),
    "nothing": "[limits]\nmax_blocks = 2\n",
    "an old way to answer": '[reply]\nclaude = "block"\n' + gates(a="exit 1"),
    "hostile": gates(a="""printf '\\033[31mred\\033[0m \\377\\000 end'; exit 1"""),
}


def checked(file, host, **environ):
    """Run `notyet check --json` as a person does; return what it says of the reply."""
    ended = subprocess.run(
        [sys.executable, "-I", ENTRY, "check", "--as", host, "--payload", file, "--json"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        env=clean_environ(**environ),
        cwd="/",
    )
    assert ended.stderr == b""
    return json.loads(ended.stdout), ended.returncode


def timeless(text):
    """Hide how long gates took and which stop it is, in which two runs differ."""
    return re.sub(r" \(notyet log \d+\)", "", re.sub(r"\d+\.\d s", "N s", text))


def assert_equal(folder, host, sent, *, options=(), **environ):
    file = folder / "payload.json"
    file.write_text(json.dumps(sent))
    said, code = checked(file, host, **environ)
    ended = run_hook(file.read_bytes(), "--host", host, *options, environ=clean_environ(**environ))
    reply = said["reply"]
    assert timeless(reply["stdout"]) == timeless(ended.stdout.decode())
    assert timeless(reply["stderr"]) == timeless(ended.stderr.decode())
    assert (reply["host"], reply["code"]) == (host, ended.returncode)
    statuses = {report["status"] for report in said["reports"] if not report["observed"]}
    blocks = not statuses.isdisjoint({"blocked", "halted"})
    unchecked = not said["reports"] or said["untrusted"] or "problem" in statuses
    unchecked = unchecked or ("not_asked" in statuses and not blocks)
    assert code == (2 if unchecked else 1 if blocks else 0)
    return said


# What hosts are told apart by; the rest is the same for all, up to the words for one.
EVERYWHERE = ("pass", "block", "halt", "broken")
REPLIES = [(host, s) for host in HOSTS for s in SITUATIONS if host == "claude" or s in EVERYWHERE]


@pytest.mark.parametrize(("host", "situation"), REPLIES)
def test_the_reply_is_the_hooks_to_the_byte(tmp_path, host, situation):
    folder = new_project(tmp_path / "p", SITUATIONS[situation])
    assert_equal(folder, host, payload(host, folder))


def start(folder):
    """Begin a session, so that it is known with which files."""
    begun = {"hook_event_name": "SessionStart", "source": "startup"}
    run_hook(payload("claude", folder, **begun), "--host", "claude")


@pytest.mark.rule("N1")
@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ("", "skipped"),
        ('[gates.b]\nrun = "true"\nwhen = "always"\n', "passed"),
        ('[gates.b]\nrun = "exit 2"\nwhen = "always"\n', "blocked"),
        ('[gates.b]\nrun = "exit 2"\nwhen = "always"\nslow = true\n', "blocked"),
        ('[gates.b]\nrun = "no-such-program"\nwhen = "always"\nslow = true\n', "blocked"),
    ],
)
def test_the_reply_is_that_of_a_stop_which_spares_those_whose_files_did_not_change(
    git_project, more, outcome
):
    folder = new_project(Path(git_project), f'[gates.a]\nrun = "exit 1"\n{more}')
    start(folder)
    said = assert_equal(folder / ".git", "claude", payload("claude", folder))
    assert (said["held"], said["outcome"]) == (True, "blocked")  # for they were asked
    assert said["reports"][0]["spared"] == "unchanged"
    assert said["stop"]["outcome"] == outcome


@pytest.mark.rule("N1")
def test_what_came_of_asking_and_what_a_stop_would_do_are_both_said(check, git_project):
    folder = new_project(Path(git_project), '[gates]\na = "exit 1"\n')
    start(folder)
    file = folder / ".git" / "payload.json"
    file.write_text(json.dumps(payload("claude", folder)))
    done = check(folder, "--payload", file, "--as", "claude")
    assert done.code == 1
    assert "run now, blocked: the agent would be sent back by a\n" in done.out
    assert "a stop now would skip a: the agent may stop\n" in done.out
    assert "not checked: no file changed since this session began (a)" in done.out


@pytest.mark.parametrize("host", HOSTS)
def test_a_subagent_gets_the_hooks_reply_too(tmp_path, host):
    folder = new_project(tmp_path / "p", gates(a={"run": "exit 1", "for": ["coder"]}))
    if host == "notyet":
        sent = payload(host, folder, scope="subagent", agent_type="coder", agent_id="x")
    else:
        sent = payload(
            host, folder, hook_event_name="SubagentStop", agent_type="coder", agent_id="x"
        )
    said = assert_equal(folder, host, sent)
    assert said["verdict"] == "block"


@pytest.mark.parametrize("host", HOSTS)
def test_untrusted_files_are_reported_as_by_the_hook(tmp_path, host):
    folder = new_project(tmp_path / "p", gates(a="exit 1"), trusted=False)
    said = assert_equal(folder, host, payload(host, folder))
    (file,) = said["untrusted"]
    assert file["file"] == f"{folder}/notyet.toml"
    assert file["run"].startswith("notyet trust")


def test_hooks_of_other_hosts_are_asked_as_the_hook_asks_them(tmp_path):
    folder = tmp_path / "p"
    (folder / ".conclaude.yaml").parent.mkdir()
    (folder / ".conclaude.yaml").write_text(
        "stop:\n  commands:\n    - run: 'echo no >&2; exit 1'\n      showStderr: true\n"
    )
    trust(folder / ".conclaude.yaml", "conclaude")
    said = assert_equal(folder, "conclaude", payload("conclaude", folder))
    assert said["verdict"] == "block"
