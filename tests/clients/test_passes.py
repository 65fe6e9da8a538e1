"""A pass of one session is remembered in the next one of the same program."""

import pytest

from clients.conftest import newest
from clients.model.script import Run, Say

GATE = '[gates.tests]\nrun = "echo $PATH >> ../ran"\nwhen = "changed"\n'


@pytest.mark.rule("N1", "B12")
@newest
def test_a_pass_of_one_session_skips_the_gate_in_the_next(client):
    client.gates(GATE)
    client.install()
    for text in ("One.", "Two."):
        assert client.run([Run("touch new.txt"), Say(text)]).text == text
        (client.project / "new.txt").unlink()
    assert client.outcomes() == ["passed", "passed"]
    paths = (client.folder / "ran").read_text().splitlines()
    assert len(paths) == 1, paths
