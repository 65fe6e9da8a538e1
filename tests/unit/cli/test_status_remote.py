"""`notyet status` where the files are in a workspace elsewhere (M)."""

import pytest

from hook_runs import trust
from status_world import World
from workspaces import trust_there, write_there


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    return World("claude", tmp_path, monkeypatch, capsys)


THERE = 'workspace = "{}"\n[gates.tests]\nrun = "exit 1"\n[gates.notes]\nrun = "true"\n{}'


@pytest.mark.rule("M5")
def test_it_says_where_gates_run_and_whether_it_connected(world, box, tmp_path):
    path = world.project / "notyet.toml"
    path.write_text(THERE.format(box.url(tmp_path), 'workspace = "local"\n'))
    trust(path)
    for name, value in box.environ.items():
        world.monkeypatch.setenv(name, value)
    code, said = world.shown("claude")
    assert code == 0
    assert "main agent files changed box notyet.toml:2" in " ".join(said.split())
    assert f"perhaps not all: tests: runs on {box.url(tmp_path)}, which" in said
    assert box.masters() == {}
    code, said = world.status("--ask")
    assert "sent back 1" in said["hosts"][0]["probe"]["says"]
    assert said["hosts"][0]["places"] == {"tests": box.url(tmp_path)}
    assert (code, said["faults"], said["hosts"][0]["faults"]) == (0, [], [])


@pytest.mark.rule("M5", "N5")
def test_a_trusted_program_there_that_was_not_looked_at_is_no_fault(world, warm_box, tmp_path):
    write_there(tmp_path, ".git/HEAD", "")
    write_there(tmp_path, ".mux/stop", "#!/bin/sh\nexit 2\n", mode=0o755)
    path = world.project / "notyet.toml"
    path.write_text(f'workspace = "{warm_box.url(tmp_path)}"\n[read]\nhosts = ["mux"]\n')
    trust(path)
    trust_there(warm_box, tmp_path, ".mux/stop")
    code, found = world.found()
    assert (code, list(found)) == (1, [])  # it is unknown whether it answers
