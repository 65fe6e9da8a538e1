"""A supervisor is killed at points of its life, and what it leaves is recovered (K7).

Here a part of the points; `make soak` takes all of them, and ends recoveries as well.
"""

import os
import subprocess
import sys

import pytest

from crash.scenarios import SCENARIOS
from stores import URL

TESTS = os.path.dirname(os.path.dirname(__file__))
EVERY = {"file": "9", "postgresql": "17"}  # so that each scenario meets another part of a cycle


def run(module, *args):
    """Run a module in a process of its own, which has no threads yet and may fork."""
    return subprocess.run(
        [sys.executable, "-m", module, *args],
        env=os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{os.path.dirname(TESTS)}"},
        cwd=os.path.dirname(TESTS),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
    )


@pytest.mark.rule("K7", "K1", "K2", "K4", "K8", "K16", "K18", "B3")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_wherever_a_supervisor_is_killed_each_result_arrives_and_no_prompt_twice(
    scenario, pytestconfig
):
    every = EVERY[pytestconfig.option.store]
    done = run("crash.harness", scenario, "--every", every, "--jobs", "1")
    assert done.returncode == 0, done.stdout


@pytest.mark.rule("K7")
def test_a_recovery_that_is_killed_is_recovered_too():
    done = run("crash.harness", "block_then_pass", "--every", "11", "--then", "11", "--jobs", "1")
    assert done.returncode == 0, done.stdout


@pytest.mark.rule("K7", "K18")
def test_a_supervisor_that_was_suspended_for_longer_than_its_lease_sends_no_prompt_twice():
    done = run("crash.harness", "block_then_pass", "--suspend", "--every", "5", "--jobs", "2")
    assert done.returncode == 0, done.stdout


@pytest.mark.rule("K7", "K18")
def test_200_subagents_in_two_processes_of_which_one_is_killed_lose_nothing(pytestconfig):
    ledger = ["--ledger", os.environ[URL]] if pytestconfig.option.store == "postgresql" else []
    done = run("bench.soak_supervised", "--tasks", "200", "--at-once", "40", *ledger)
    assert done.returncode == 0, done.stdout
    assert "nothing lost" in done.stdout


@pytest.mark.rule("K7", "K8", "K18")
def test_a_database_that_crashes_five_times_loses_nothing(pytestconfig):
    if pytestconfig.option.store == "file":
        pytest.skip("about PostgreSQL: make test-postgres")
    done = run("crash.database", "--tasks", "100", "--at-once", "20", "--crashes", "5")
    assert done.returncode == 0, done.stdout
    assert "nothing lost" in done.stdout
