"""Agents in linked work trees: their gates run on their own files, and need no new trust."""

import pytest

from clients.conftest import NEWEST, newest, newest_claude, world_of
from clients.model.script import Run, Say, Spawn
from clients.test_with import Supervised

TESTS = '[gates.tests]\nrun = "pwd -P >> ../where; sh ./main.sh"\n'
GOOD, BROKEN = "exit 0\n", "exit 1\n"
BREAK, FIX = Run("echo exit 1 > main.sh"), Run("echo exit 0 > main.sh")
LEARNS = [BREAK, Say("Done."), FIX, Say("Now it is.")]
each_place = pytest.mark.parametrize("place", ["project/wt/x", "beside"])


def commit(world, toml=TESTS):
    """Commit a project whose tests pass, trust its gates, and register with the program."""
    world.gates(toml)
    (world.project / "main.sh").write_text(GOOD)
    (world.project / ".gitignore").write_text("wt/\n.claude/\n")
    world.install()
    world.git("add", ".")
    world.git("commit", "--quiet", "-m", "gates")


def linked(world, place):
    """Let the program work in a linked work tree; return the main one."""
    main, tree = world.project, world.folder / place
    world.git("worktree", "add", "--quiet", str(tree))
    world.project = tree
    return main


@pytest.mark.rule("E7", "N5")
@each_place
@newest
def test_a_broken_work_tree_is_blocked_and_a_broken_main_checkout_is_not_asked(client, place):
    commit(client)
    main = linked(client, place)
    client.run(LEARNS)
    assert client.outcomes() == ["blocked", "passed"]
    (main / "main.sh").write_text(BROKEN)
    client.run([Say("Nothing to do.")])
    assert client.outcomes() == ["blocked", "passed", "passed"]
    where = {client.project.parent / "where"}
    assert {*client.folder.rglob("where")} == where  # and never in the main checkout


@pytest.mark.rule("E7", "N5")
@newest_claude
def test_claude_code_in_a_work_tree_that_it_makes_itself(claude):
    commit(claude)
    (claude.project / "main.sh").write_text(BROKEN)
    ran = claude.run(LEARNS, args=("--worktree", "feat"))
    assert ran.text == "Now it is."
    assert claude.outcomes() == ["blocked", "passed"]
    (where,) = claude.folder.rglob("where")
    assert {*where.read_text().split()} == {str(claude.project / ".claude/worktrees/feat")}


@pytest.mark.rule("E7", "N5")
@newest_claude
def test_a_subagent_in_a_work_tree_of_its_own(claude):
    commit(claude, TESTS + 'for = "subagents"\n')
    (claude.project / "main.sh").write_text(BROKEN)
    claude.ungated = {"main"}
    claude.run(
        {
            "main": [Spawn("[actor: coder] Code it.", isolated=True), Say("It is coded.")],
            "coder": LEARNS,
        }
    )
    assert claude.outcomes() == ["blocked", "passed"]
    (where,) = claude.folder.rglob("where")
    assert not {str(claude.project)} & {*where.read_text().split()}


@pytest.mark.rule("E7", "N5")
@each_place
@pytest.mark.parametrize("host", NEWEST)
def test_a_supervised_agent(tmp_path, host, place):
    with world_of(host, tmp_path, Supervised).scenario() as agent:
        commit(agent)
        main = linked(agent, place)
        (main / "main.sh").write_text(BROKEN)
        ran = agent.run(LEARNS)
        assert (ran.code, ran.text) == (0, "Now it is.")
        assert agent.outcomes() == ["blocked", "passed"]
        assert [*agent.folder.rglob("where")] == [agent.project.parent / "where"]
