"""Every exit code on the page is one that a command really ends with."""

import re
from pathlib import Path

import pytest

from notyet.cli.main import COMMANDS
from stories import World

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
GATES = """printf '[gates.ready]\\nrun = "%s"\\nwhen = "always"\\n' "test -e ready" > notyet.toml
notyet trust --yes > /dev/null
"""
STOP = """echo '{"hook_event_name":"Stop","session_id":"s","cwd":"'$PROJECT'"}' > stop.json
"""
AGENT = """printf '[[turn]]\\nsay = "Done!"\\n%.0s' 1 2 3 4 5 6 > agent.toml
"""
HANGS = """cat > agent.toml <<'END'
[[turn]]
steps = [{ tool = "bash", run = "touch started; exec sleep 1000" }]
END
notyet with scripted:agent.toml Go. --json > result 2> said & pid=$!
until [ -e started ]; do sleep 0.05; done
"""
# Bash lets what it starts in the background ignore Ctrl-C.
CHECKS = """printf '[gates.long]\\nrun = "%s"\\n' "touch started; sleep 1000" > notyet.toml
notyet trust --yes > /dev/null
env --default-signal=INT notyet check > said 2>&1 & pid=$!
until [ -e started ]; do sleep 0.05; done
"""
REPLAYS = (
    GATES
    + STOP
    + """notyet hook --host claude < stop.json
printf '[gates.slow]\\nrun = "touch started; exec sleep 1000"\\n' > notyet.toml
notyet trust --yes > /dev/null
notyet replay --run & pid=$!
until [ -e started ]; do sleep 0.05; done
"""
)
ACP = """mkfifo editor; sleep 60 > editor &
env --default-signal=INT notyet acp -- sh -c 'touch started; cat' < editor & pid=$!
until [ -e started ]; do sleep 0.05; done
"""
SERVES = """notyet page --no-open > address & pid=$!
until [ -s address ]; do sleep 0.05; done
"""
SHARED = "NOTYET_SHARE=postgresql://me@127.0.0.1:1/x"
# With a fleet: a queue, and a worker whose agent does not end.
FLEET = "notyet tasks queue agents > /dev/null\n"
WORKS = (
    FLEET
    + """cat > agent.toml <<'END'
[[turn]]
steps = [{ tool = "bash", run = "touch started; exec sleep 1000" }]
END
notyet worker --queue agents > said & pid=$!
notyet submit Go. --queue agents --agent scripted:agent.toml --cwd $PROJECT
until [ -e started ]; do sleep 0.05; done
"""
)
LEAVES = """until grep -q draining said; do sleep 0.05; done
"""
WITH = "notyet with scripted:agent.toml Go."
TESTED = """git init -q; echo 'def test_it(): assert True' > test_it.py; git add .
git -c user.name=A -c user.email=a@b.c commit -qm Begin
"""
# What is run, in a new project; the last command counts.
RUNS = {
    ("hook", 0): "notyet hook --host claude < /dev/null",
    ("conclaude", 0): STOP + "notyet conclaude Stop < stop.json",
    ("conclaude", 1): "notyet conclaude Stopp",
    ("conclaude", 2): GATES + STOP + "notyet conclaude Stop < stop.json",
    ("trust", 0): GATES + "notyet trust --show",
    ("trust", 1): "notyet trust",
    ("status", 0): GATES + "notyet install claude --yes > /dev/null; notyet status",
    ("status", 1): "notyet status",
    ("status", 2): "notyet status --why --payload missing.json",
    ("hosts", 0): "notyet hosts",
    ("gates", 0): "notyet gates",
    ("gates", 1): "notyet gates nothing-like-it",
    ("gates", 2): "notyet gates a b",
    ("guard", 0): TESTED + "notyet guard",
    ("guard", 1): TESTED + "rm test_it.py; notyet guard",
    ("guard", 2): "notyet guard no-such-commit",
    ("ship", 0): f"{SHARED} notyet ship",
    ("ship", 1): GATES + STOP + f"notyet hook --host claude < stop.json\n{SHARED} notyet ship",
    ("ship", 2): "notyet ship",
    ("hosts", 2): "notyet hosts claude",
    ("with", 0): AGENT + WITH,
    ("with", 1): GATES + AGENT + f"NOTYET_LEDGER=/dev/null {WITH}",
    ("with", 2): "notyet with nobody Go.",
    ("with", 3): GATES + AGENT + f"{WITH} --max-blocks 1",
    ("with", 4): GATES + AGENT + f"{WITH} --max-blocks 9",
    ("with", 5): GATES
    + """printf '[[turn]]\\nsay = "Done!"\\n[[turn]]\\nsay = "BLOCKED: which port?"\\n' > agent.toml
"""
    + WITH,
    ("with", 6): AGENT
    + """mkdir .claude; cat > .claude/settings.json <<'END'
{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo '{\\"continue\\": false}'"}]}]}}
END
notyet trust --yes --read claude > /dev/null
"""
    + WITH,
    ("with", 127): "notyet with claude Go.",
    ("with", 130): HANGS + "kill -INT -$pid; wait $pid",
    ("with", 129): HANGS + "kill -HUP $pid; wait $pid",
    ("with", 143): HANGS + "kill -TERM $pid; wait $pid",
    ("with", 137): HANGS
    + """id=$(notyet tasks --json | grep -o '"id": "t[a-z0-9]*"' | head -1 | cut -d '"' -f 4)
notyet tasks kill $id; wait $pid""",
    ("acp", 0): "sleep 0.1 | notyet acp -- cat",
    ("acp", 2): "notyet acp",
    ("acp", 127): "echo | notyet acp -- no-such-agent",
    ("acp", 129): ACP + "kill -HUP $pid; wait $pid",
    ("acp", 130): ACP + "kill -INT $pid; wait $pid",
    ("acp", 143): ACP + "kill -TERM $pid; wait $pid",
    ("acp", 137): "mkfifo in; notyet acp -- sh -c 'kill -KILL $$' <> in",
    ("tasks", 0): "notyet tasks",
    ("tasks", 1): "notyet tasks show tk3",
    ("submit", 0): FLEET + "notyet submit Go. --queue agents --agent claude",
    ("submit", 1): "notyet submit Go. --queue agents --agent claude",
    ("submit", 2): "notyet submit Go.",
    ("worker", 0): FLEET
    + "notyet worker --queue agents > said & pid=$!\n"
    + "until [ -s said ]; do sleep 0.05; done; kill $pid; wait $pid",
    ("worker", 1): "notyet worker --queue agents",
    ("worker", 2): "notyet worker",
    ("worker", 129): WORKS + "kill -HUP $pid\n" + LEAVES + "kill -HUP $pid; wait $pid",
    ("worker", 143): WORKS + "kill -TERM $pid\n" + LEAVES + "kill -TERM $pid; wait $pid",
    ("install", 0): "notyet install claude --yes",
    ("install", 1): "notyet install claude",
    ("install", 2): "notyet install emacs",
    ("uninstall", 0): "notyet uninstall claude --yes",
    ("uninstall", 1): "notyet install claude --yes; notyet uninstall claude",
    ("uninstall", 2): "notyet uninstall emacs",
    ("off", 0): "notyet off 5m",
    ("off", 1): "CLAUDECODE=1 notyet off",
    ("on", 0): "notyet on",
    ("on", 1): """notyet off
file=~/.local/state/notyet/off/places$PROJECT/off.json
rm "$file"; mkdir "$file"; notyet on""",
    ("demo", 0): "notyet demo",
    ("demo", 1): 'rm "$BIN/git"; notyet demo',
    ("completion", 0): "notyet completion bash",
    ("completion", 2): "notyet completion tcsh",
    ("init", 0): "notyet init --dry-run",
    ("init", 1): "CLAUDECODE=1 notyet init --yes",
    ("validate", 0): GATES + "notyet validate",
    ("validate", 1): "echo 'lint = 5' > notyet.toml; notyet validate",
    ("schema", 0): "notyet schema",
    ("schema", 1): "touch .notyet; notyet schema --write",
    ("check", 0): GATES + "touch ready; notyet check",
    ("check", 1): GATES + "notyet check",
    ("check", 2): "notyet check --payload missing.json",
    ("check", 129): CHECKS + "kill -HUP $pid; wait $pid",
    ("check", 130): CHECKS + "kill -INT $pid; wait $pid",
    ("check", 143): CHECKS + "kill -TERM $pid; wait $pid",
    ("log", 0): "notyet log",
    ("log", 1): "notyet log 77",
    ("log", 2): "notyet log --since soon",
    ("page", 0): "notyet page --save stops.html",
    ("page", 1): "notyet page --no-open > address &\n"
    "until [ -s address ]; do sleep 0.05; done; port=$(cut -d : -f 3 address | cut -d / -f 1)\n"
    "notyet page --no-open --port $port; code=$?; kill %1; wait %1; (exit $code)",
    ("page", 129): SERVES + "kill -HUP $pid; wait $pid",
    ("page", 143): SERVES + "kill -TERM $pid; wait $pid",
    ("page", 2): "notyet page --no-open --port 65536",
    ("replay", 0): "notyet replay",
    ("replay", 1): GATES
    + STOP
    + "notyet hook --host claude < stop.json; touch other.toml; notyet replay --config other.toml",
    ("replay", 2): "notyet replay --since soon",
    ("replay", 129): REPLAYS + "kill -HUP $pid; wait $pid",
    ("replay", 143): REPLAYS + "kill -TERM $pid; wait $pid",
    ("alone", 0): "notyet",
    ("alone", 2): "notyet nonsense",
}
# Of all commands; what interrupts one is tested with `main`.
ANY = {
    1: "notyet completion bash > /dev/full",
    2: "notyet off --nonsense",
    130: "",
    141: """mkfifo out; sleep 1000 < out & pid=$!
exec 3> out; kill $pid; wait $pid
notyet completion bash >&3""",
}


def sections():
    """Return the commands and codes of the page; of "" where it is about all commands."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        names = re.findall(r"`notyet (\w+)`", title)
        names = ["alone"] if title == "`notyet` alone" else names
        names = [""] if title.startswith("All commands") else names
        codes = [
            c for row in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE) for c in row.split(",")
        ]
        for name in names:
            found[name] = [int(code) for code in codes] or [0]
    return found


KNOWN = sections()
EVERY = [(name, code) for name, codes in KNOWN.items() if name for code in codes]


def code_of(script, folder, fleet=""):
    world = World(folder, fleet)
    said = world.run(f"set -m\n{script}\necho CODE $?\n")
    return int(said.rpartition("CODE ")[2]), said


def test_every_command_has_its_codes_on_the_page():
    assert sorted(set(COMMANDS) - set(KNOWN)) == []


def test_every_code_on_the_page_has_a_run():
    assert sorted(set(EVERY) - set(RUNS)) == []
    assert sorted(KNOWN[""]) == sorted(ANY)


@pytest.mark.parametrize(("name", "code"), EVERY)
def test_the_command_ends_with_this_code(name, code, tmp_path, request):
    script, fleet = RUNS[name, code], ""
    if script.startswith(FLEET):
        fleet = request.getfixturevalue("cluster").url(schema=f"{name}{code}")
    found, said = code_of(script, tmp_path, fleet)
    assert found == code, said


@pytest.mark.parametrize("code", [code for code, script in ANY.items() if script])
def test_any_command_may_end_with_this_code(code, tmp_path):
    found, said = code_of(ANY[code], tmp_path)
    assert found == code, said


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_command_line_is_a_2_but_never_for_hooks(name, tmp_path):
    found, said = code_of(f"notyet {name} --nonsense < /dev/null", tmp_path)
    assert found == {"hook": 0, "conclaude": 1}.get(name, 2), said
    assert "Traceback" not in said
