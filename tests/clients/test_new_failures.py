"""Agents in a project whose tests fail already: each answers only for what it broke."""

import json
import sys

from clients.conftest import newest
from clients.model.script import Run, Say

TESTS = [sys.executable, "-B", "-m", "unittest"]
GATE = f"[gates.tests]\nrun = {json.dumps(TESTS)}\nnew_failures_only = true\n"
HEAD = "import unittest\nfrom lib import double\n\n\nclass T(unittest.TestCase):\n"
OLD = "    def test_old(self):\n        self.assertEqual(double(1), 3)\n\n"
FINE = "    def test_fine(self):\n        self.assertEqual(double(2), 4)\n"
HARMLESS = Run("echo '# a line' >> lib.py")
BREAK, REPAIR = Run("sed -i 's/2 [*] x/2 - x/' lib.py"), Run("sed -i 's/2 - x/2 * x/' lib.py")


def red(world):
    """Commit a project of which one test fails, and register with the program."""
    world.gates(GATE)
    (world.project / "lib.py").write_text("def double(x):\n    return 2 * x\n")
    (world.project / "test_lib.py").write_text(HEAD + OLD + FINE)
    world.install()
    world.git("add", ".")
    world.git("commit", "--quiet", "-m", "red")


@newest
def test_an_agent_that_broke_nothing_is_released_and_its_user_told(client):
    red(client)
    ran = client.run([HARMLESS, Say("Done.")])
    assert ran.text == "Done."
    assert client.outcomes() == ["passed"]
    assert client.tells_user(ran, "tests: 1 failure, there at the start")


@newest
def test_an_agent_is_sent_back_with_only_what_it_broke_until_it_repaired_it(client):
    red(client)
    ran = client.run([BREAK, Say("Done."), REPAIR, Say("Now it is.")])
    assert ran.text == "Now it is."
    assert client.outcomes() == ["blocked", "passed"]
    (prompt,) = [
        prompt for request in ran.model.asked() for prompt in client.WIRE.prompts(request.news)
        if "check failed" in prompt
    ]  # fmt: skip
    assert "test_fine" in prompt
    assert "test_old" not in prompt
    assert "1 new failure since your session began. The 1 that was there at the start" in prompt
    assert client.tells_user(ran, "tests: 1 new failure, 1 that was there at the start")
    assert client.tells_user(ran, "tests: 1 failure, there at the start")
