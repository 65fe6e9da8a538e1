"""`notyet tasks`, and what programs with supervisors of their own left behind."""

import asyncio

import pytest

from notyet import Engine, Ledger, Supervisor
from notyet.testing import Hang, Scene, Script, ScriptedSession
from with_runs import tasks

pytestmark = pytest.mark.rule("K18")


def test_a_task_of_another_program_is_left_to_it_unless_a_person_ends_it(tmp_path):
    ledger = Ledger()

    async def leave():
        session = ScriptedSession(Script(turns=(Scene(steps=(Hang(),)),)), folder=str(tmp_path))
        async with Supervisor(Engine(), ledger, program="my bot") as supervisor:
            return (await supervisor.spawn(session, "Write a poem.")).task_id

    task = asyncio.run(leave())
    listed = tasks(tmp_path)
    assert "its program continues it when it runs again" in listed.stdout
    assert "running" in listed.stdout
    ended = tasks(tmp_path, "kill", task)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{task} was left by a dead process, and is interrupted now\n"
    assert "interrupted" in tasks(tmp_path).stdout
