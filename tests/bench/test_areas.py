"""Every area of the benchmark runs, and measures what was promised of it; how fast is not asked."""

import subprocess
import sys

import pytest
from bench.areas import AREAS
from bench.goals import GOALS
from bench.measure import TINY, Missing
from bench.running import run_apart, run_within
from bench.trees import STATUS, grow, path_of
from bench.words import key_of, verdict_of

from bench import cchooks_venv, homes, peers

ELSEWHERE = {"growth.tasks": "supervisor"}


def area_of(key):
    return ELSEWHERE.get(key, key.partition(".")[0])


def test_every_promise_belongs_to_an_area():
    assert {area_of(key) for key in GOALS} <= {area.module for area in AREAS}


@pytest.mark.uncounted
@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.module)
def test_an_area_runs_and_measures_what_was_promised(area):
    table = run_apart(area, TINY)
    assert table.failure == ""
    assert table.results
    keys = {key_of(result) for result in table.results}
    assert keys >= {key for key in GOALS if area_of(key) == area.module}
    assert all(verdict_of(result) in {"", "reached", "MISSED"} for result in table.results)


def test_an_area_that_fails_says_why_and_stops_nobody(tmp_path, capfd):
    path = tmp_path / "results.json"
    assert run_within("no_such_area", TINY, str(path)) == 0
    assert "No module named 'bench.no_such_area'" in path.read_text()
    assert "Traceback" in capfd.readouterr().err


def test_a_tree_is_committed_and_unchanged(tmp_path):
    (tmp_path / "notyet.toml").write_text("")
    grow(tmp_path, 150)
    said = subprocess.run(STATUS, cwd=tmp_path, capture_output=True, check=True).stdout
    assert all(line.startswith(b"# ") for line in said.split(b"\0") if line)
    listed = subprocess.run(["git", "ls-files"], cwd=tmp_path, capture_output=True, check=True)
    assert len(listed.stdout.split()) == 151
    assert (tmp_path / path_of(149)).is_file()


def test_the_hook_is_started_as_install_wrote_it(tmp_path):
    home = homes.Home(tmp_path)
    settings = (tmp_path / ".claude" / "settings.json").read_text()
    assert home.line in settings
    place = home.project("one", f"[gates.g]\n{homes.ALWAYS}")
    assert home.last_stop(place) == ("passed", "allowed")
    assert home.last_stop(home.project("bare", "")) == ()


def test_a_hook_that_ends_otherwise_is_not_measured(tmp_path):
    home = homes.Home(tmp_path)
    place = home.project("one", "")
    home.command = [sys.executable, "-c", "raise SystemExit(3)"]
    with pytest.raises(RuntimeError, match="ended with 3"):
        home.hook(place)()


@pytest.fixture
def home(tmp_path):
    return homes.Home(tmp_path)


def test_a_peer_that_is_not_there_is_named_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("HK_BIN", raising=False)
    monkeypatch.setenv("CONCLAUDE_BIN", "/no/such/program")
    missing = {peer.what: peer.why for peer in peers.found(TINY) if isinstance(peer, Missing)}
    assert missing["bash + jq"] == "jq is not installed"
    assert missing["node"] == "node is not installed"
    assert missing["hk"] == "HK_BIN is not set"
    assert missing["conclaude"] == "CONCLAUDE_BIN names no program: /no/such/program"


def test_a_peer_that_does_not_run_its_gate_is_not_measured(home):
    idle = peers.Peer("idle", (sys.executable, "-c", "pass"), "idle.py", "GATE", "")
    assert peers.prepare(idle, home) == "it did not run its gate"
    broken = peers.Peer("broken", (sys.executable, "-c", "exit(1)"), "x.py", "GATE", "")
    assert peers.prepare(broken, home).startswith("it failed: ")


def test_a_peer_runs_its_gate(home):
    plain = next(peer for peer in peers.found(TINY) if peer[0].startswith("Python"))
    assert peers.prepare(plain, home) == ""


def test_a_compiled_peer_is_the_one_that_a_variable_names(monkeypatch, tmp_path, home):
    program = tmp_path / "hk"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo hk 9.8.7; exit; }\n'
        """eval "$(sed -n 's/.*check = "\\(.*\\)" } } }.*/\\1/p' hk.pkl)"\n"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("HK_BIN", str(program))
    peer = next(peer for peer in peers.found(TINY) if peer[0] == "hk")
    assert peer.argv == (str(program), "agent", "stop-hook")
    assert "hk@9.8.7#/Config.pkl" in peer.text
    assert peers.prepare(peer, home) == ""


def test_cchooks_that_cannot_be_fetched_is_said_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    (tmp_path / "file").write_text("in the way")
    python, why = cchooks_venv.python_with_cchooks()
    assert python == ""
    assert why.startswith("it cannot be fetched: ")
