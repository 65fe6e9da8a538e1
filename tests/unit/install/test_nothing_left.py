"""`notyet uninstall --all --purge` leaves a home as it was: the same files, in bytes."""

import json
import os
import stat

import pytest

from stories import World

# What users have in files that notyet changes, or beside them.
USERS = {
    ".claude/settings.json": '{\n    "model": "opus",  \n    "hooks": {}\n}\n',
    ".codex/config.toml": 'model = "gpt"  # mine\n',
    ".gemini/settings.json": '{"theme": "dark"}',
    ".qwen/settings.json": "{}\n",
    ".factory/settings.json": '{"hooks": {"Stop": []}}\n',
    ".hermes/config.yaml": "# mine\nmodel: x\n",
    ".kimi-code/config.toml": "# mine\n",
    ".config/opencode/opencode.json": "{}\n",
    ".local/bin/tool": "mine\n",
}
USED = """\
set -e
git -C "$PROJECT" commit --quiet --allow-empty -m one
cd "$PROJECT"
notyet init --yes || true
for name in $NAMES; do notyet install $name --yes; done
for event in SessionStart Stop Stop; do
  for name in $NAMES; do
    printf '{"hook_event_name":"%s","session_id":"s-%s","cwd":"%s"}' $event $name "$PROJECT" |
      notyet hook --host $name || true
  done
  echo changed >> work.txt
done
notyet with scripted:agent.toml "Work." || true
notyet check --as claude || true
notyet demo
notyet off 5m
notyet on
notyet log
notyet status || true
notyet replay || true
notyet page --save saved.html
notyet schema --write
notyet completion bash > /dev/null
"""
GATES = """\
[gates]
lint = "test ! -e work.txt"

[gates.tests]
run = "echo 1 failed in 0.1s; exit 1"
new_failures_only = true

[gates.guard]
guard = "tests"
"""
AGENT = '[[turn]]\nsay = "Done."\nsteps = [{ write = "made.txt", text = "x" }]\n'


def everything(folder):
    """Return all that is in a folder: kinds, modes, and contents."""
    found = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            mode = os.lstat(path).st_mode
            content = ""
            if stat.S_ISLNK(mode):
                content = os.readlink(path)
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = file.read()
            found[os.path.relpath(path, folder)] = (oct(mode), content)
    return found


@pytest.fixture
def world(tmp_path):
    """A world with a project of gates, and a home in use."""
    world = World(tmp_path)
    world.environ = {k: v for k, v in world.environ.items() if not k.startswith("XDG_")}
    (world.project / "notyet.toml").write_text(GATES)
    (world.project / "agent.toml").write_text(AGENT)
    for name, text in USERS.items():
        path = world.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return world


def test_a_home_is_as_it_was_before(world):
    known = [json.loads(line) for line in world.run("notyet hosts --json\n").splitlines()]
    hosts = [one for one in known if one["settings"] and one["name"] == one["installed_as"]]
    world.environ["NAMES"] = " ".join(one["name"] for one in hosts)
    assert len(hosts) > 12
    before = everything(world.home)
    printed = world.run("notyet trust --yes\n" + USED)
    assert everything(world.home).keys() - before.keys(), printed
    assert all(f"installed for {host['title']}" in printed for host in hosts), printed
    assert " demo" in printed or "cyd" in printed
    assert os.path.exists(world.project / "saved.html"), printed
    printed = world.run("notyet uninstall --all --purge --yes\n")
    after = everything(world.home)
    assert sorted(after.keys() - before.keys()) == [], printed
    assert {name: after.get(name) for name in before} == before
    assert "nothing is stored" in world.run("notyet uninstall --all --purge --yes\n")
