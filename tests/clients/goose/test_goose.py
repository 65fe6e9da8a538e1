"""What is special about goose: its ids, its cap, and `notyet with`."""

import pytest

from clients.conftest import only
from clients.model.script import Run, Say
from clients.world import NOTYET

pytestmark = [only("goose"), pytest.mark.full]
READY = '[gates.ready]\nrun = "test -e ready"\n'
NEVER = '[limits]\nstuck_after = 0\n[gates.never]\nrun = "exit 1"\n'


@pytest.mark.rule("B8")
def test_we_stay_below_the_cap_that_its_user_sets(host):
    host.gates(NEVER)
    host.install()
    ran = host.run([Say("a"), Say("b")], GOOSE_STOP_HOOK_BLOCK_CAP="1")
    assert (ran.code, ran.text) == (0, "b")
    assert host.outcomes() == ["blocked", "capped"]
    assert "overriding and ending turn" not in ran.out


def test_sessions_of_two_data_folders_are_two_even_if_their_ids_are_the_same(host):
    host.gates("[limits]\nmax_blocks = 1\nstuck_after = 0\n" + READY)
    host.install()
    for name in ("one", "two"):
        folder = str(host.folder / name)
        host.run([Say("Done!"), Say(f"{name} is done.")], XDG_DATA_HOME=folder)
    assert host.outcomes() == ["blocked", "capped"] * 2
    assert len({stop.session_id for stop in host.stops()}) == 2


@pytest.mark.parametrize("is_installed", [False, True])
def test_notyet_with_runs_it_and_sends_it_back(host, is_installed):
    host.gates(READY)
    if is_installed:
        host.install()
    else:
        host.trust()
    folder = host.folder / "bin"
    folder.mkdir()
    (folder / "goose").symlink_to(host.program)
    ran = host.run(
        [Say("Done!"), Run("touch ready"), Say("Now it is.")],
        line=[str(NOTYET), "with", "goose", "do it"],
        PATH=f"{folder}:{host.environ['PATH']}",
    )
    assert (ran.code, ran.out.strip()) == (0, "Now it is."), ran.err
    decided = [stop for stop in host.stops() if stop.why != "supervised"]
    assert [stop.outcome for stop in decided] == ["blocked", "passed"]
