"""Gates on another machine always run: nothing is remembered of files there (N1)."""

import pytest

from gated_files import Place, statuses
from notyet import Ledger, replace
from notyet.core.remote import remote_from


@pytest.mark.rule("N1", "M1")
@pytest.mark.parametrize("is_agent_there", [False, True])
def test_a_gate_there_always_runs(git_project, tmp_path, warm_box, is_agent_there):
    url = warm_box.url(git_project)
    place = Place(git_project, tmp_path, Ledger(tmp_path / "ledger.db"))
    gate = place.gate()
    check = replace(gate.check, workspace=url, dir=remote_from(url).path)
    place.gates = [replace(gate, check=check)]
    about = {"workspace": url} if is_agent_there else {}
    place.begin(**about)
    for _ in range(2):
        assert statuses(place.stop(**about)) == {"g": "allowed"}
    assert place.asked == ["g", "g"]
