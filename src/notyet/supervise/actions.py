"""What people do with tasks, from any process: say, steer, interrupt, kill, retry, dismiss.

`notyet tasks` and the page share it. The owner of a task notices a move of another process (K18);
what a dead process of `notyet with` left is ended first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.agents import reopen
from notyet.core.record import Record
from notyet.core.text import clean, shortened
from notyet.engine.engine import Engine
from notyet.errors import Refused
from notyet.ledger.tasks import Tasks
from notyet.run.proc import is_stopped
from notyet.supervise.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from notyet.core.task import TaskView
    from notyet.ledger.ledger import Ledger

    T = TypeVar("T")

PROGRAM = "notyet with"  # whose tasks are ended, if its process is gone
_END_TIMEOUT = 30.0  # seconds for ending the agents that dead processes left behind
_DELIVERY_TIMEOUT = 5.0  # seconds
_LONGEST_NAME = 60


class Done(Record, kw_only=True):
    """What an action came to, as a sentence; `is_done` is False if nothing was left to do."""

    text: str
    is_done: bool = True


def act(
    ledger: Ledger,
    action: str,
    task: str,
    warn: Callable[[str], None],
    *,
    text: str = "",
    key: str = "",
) -> Done:
    """Carry out one of `ACTIONS`; a message with a known `key` is sent once. Raises Refused."""
    _check_owner(ledger, task, action)
    carry_out = ACTIONS[action]
    return _supervised(ledger, warn, lambda supervisor: carry_out(supervisor, task, text, key))


def end_orphans(ledger: Ledger, warn: Callable[[str], None]) -> None:
    """End the tasks of dead processes of `notyet with`; without any, nothing is written."""

    async def nothing(_supervisor: Supervisor) -> None:
        return

    if orphaned(ledger):
        _supervised(ledger, warn, nothing)


def _supervised(
    ledger: Ledger, warn: Callable[[str], None], work: Callable[[Supervisor], Awaitable[T]]
) -> T:
    async def recover_and_work() -> T:
        engine = Engine(ledger=ledger, warn=warn)
        async with Supervisor(engine, ledger, reopen, program=PROGRAM) as supervisor:
            for found in await recover(supervisor, ledger):
                warn(found)
            return await work(supervisor)

    return asyncio.run(recover_and_work())


def _check_owner(ledger: Ledger, task: str, action: str) -> None:
    """Refuse to wait for a process that cannot answer. Raises Refused."""
    views = Tasks(ledger).views(task)
    if not views or views[0].ended_at is not None:
        return
    view = views[0]
    if view.queue:
        return  # a worker will have it, if none has
    if action in NEED_TEXT and not view.owner_alive and view.program != PROGRAM:
        raise Refused(
            f"the process that has task {task} is gone; its program goes on with it when it runs "
            f"again, or end it with: notyet tasks kill {task}"
        )
    if view.owner_alive and is_stopped(view.owner_pid):
        raise Refused(
            f"process {view.owner_pid}, which has task {task}, is stopped; continue it with fg in "
            f"its terminal, or with: kill -CONT {view.owner_pid}"
        )


async def _say(supervisor: Supervisor, task: str, text: str, key: str) -> Done:
    await supervisor.say(task, text, key=key)
    return Done(text=f"{task} gets your message when its turn ends")


async def _steer(supervisor: Supervisor, task: str, text: str, key: str) -> Done:
    await supervisor.steer(task, text, key=key)
    return Done(text=f"{task} continues with your prompt")


async def _interrupt(supervisor: Supervisor, task: str, _text: str, _key: str) -> Done:
    return await _end(supervisor, task, supervisor.interrupt, "interrupted")


async def _kill(supervisor: Supervisor, task: str, _text: str, _key: str) -> Done:
    return await _end(supervisor, task, supervisor.kill, "killed")


async def _end(
    supervisor: Supervisor, task: str, end: Callable[[str], Awaitable[bool]], ending: str
) -> Done:
    view = await supervisor.task(task)
    # A worker would begin a fleet's task again that ended as interrupted.
    left = () if view.queue else await supervisor.recover(unfinished="end", only=task)
    if left:
        result = await left[0].result()
        return Done(text=f"{task} was left by a dead process, and is {result.ending} now")
    if await end(task):
        return Done(text=f"{task} is {ending}")
    view = await supervisor.task(task)
    return Done(text=f"{task} had ended before ({view.ending or 'done'})", is_done=False)


async def _retry(supervisor: Supervisor, task: str, _text: str, _key: str) -> Done:
    """Deliver a result again; to a supervised parent from here."""
    view = await supervisor.task(task)
    if view.task.scope == "agent" and view.delivery in {"delivered", "dismissed"}:
        said = f"its result was {view.delivery}; read it with: notyet tasks show {task}"
        return Done(text=said, is_done=False)
    await supervisor.retry(task)
    view = await supervisor.task(task)
    if view.task.parent and not view.owner_alive:  # its parent may still be at work elsewhere
        supervisor.deliver = supervisor.tell_parent
    loop = asyncio.get_running_loop()
    ends = loop.time() + _DELIVERY_TIMEOUT
    while view.delivery in {"pending", "leased"} and loop.time() < ends:
        await asyncio.sleep(0.1)
        view = await supervisor.task(task)
    if view.delivery == "suspended":
        return Done(text=f"still undelivered: {view.delivery_error}", is_done=False)
    if view.delivery == "delivered":
        return Done(text=f"the result of {task} is delivered")
    return Done(text=f"the result of {task} waits for the program that takes it")


async def _dismiss(supervisor: Supervisor, task: str, _text: str, _key: str) -> Done:
    view = await supervisor.task(task)
    if view.delivery == "delivered" and not view.maybe_unnotified:
        said = f"its result was delivered; read it with: notyet tasks show {task}"
        return Done(text=said, is_done=False)
    await supervisor.dismiss(task)
    said = f"the result of {task} is dismissed; it can still be read with: notyet tasks show {task}"
    return Done(text=said)


ACTIONS = {
    "say": _say,
    "steer": _steer,
    "interrupt": _interrupt,
    "kill": _kill,
    "retry": _retry,
    "dismiss": _dismiss,
}
NEED_TEXT = frozenset({"say", "steer"})


def orphaned(ledger: Ledger) -> list[TaskView]:
    """Return the tasks whose process is gone, without a fleet's: workers take those over."""
    return [view for view in Tasks(ledger).begun() if not view.owner_alive and not view.queue]


async def recover(supervisor: Supervisor, ledger: Ledger) -> list[str]:
    """End what dead processes left unfinished; return a line about each task.

    Their results stay in the outbox, for the program that launched them.
    """
    lost = orphaned(ledger)
    if not lost:
        return []
    handles = {one.task_id: one for one in await supervisor.recover(unfinished="end")}
    said = []
    for view in lost:
        handle = handles.get(view.task.id)
        if handle is None:  # another process was faster
            continue
        if await _has_ended(supervisor, view.task.id):
            said.append(
                f"{view.task.id} ({name_of(view)}) was left by a dead process, and is "
                f"interrupted; see: notyet tasks show {view.task.id}"
            )
        if view.task.scope == "agent":  # its user knows now, and no parent waits for it
            await handle.result()
    return said


async def _has_ended(supervisor: Supervisor, task: str) -> bool:
    loop = asyncio.get_running_loop()
    ends = loop.time() + _END_TIMEOUT
    while loop.time() < ends:
        if (await supervisor.task(task)).state in {"ended", "superseded"}:
            return True
        await asyncio.sleep(0.05)
    return False


def name_of(view: TaskView, most: int = _LONGEST_NAME) -> str:
    """Return a task's label, or the first words of its prompt, on one line."""
    words = clean((view.task.label or view.task.prompt)[: 20 * most]).split()
    return shortened(" ".join(words), most)


def remarks(view: TaskView) -> list[str]:
    """Return what a person may have to do something about."""
    task = view.task.id
    if view.ended_at is None:
        if view.owner_alive or view.state == "queued":
            return []
        if view.queue:
            return ["its worker is gone; another one takes it over"]
        end = f"notyet tasks kill {task}"
        return [f"its process is gone; its program continues it when it runs again, or: {end}"]
    if view.delivery == "suspended":
        error = shortened(" ".join(clean(view.delivery_error).split()), 200)
        return [f"undelivered: {error}; try again with: notyet tasks retry {task}"]
    if view.delivery in {"pending", "leased"} and not view.owner_alive:
        return ["undelivered: the program that takes its result is not running"]
    if view.maybe_unnotified and view.delivery != "dismissed":
        died = "its process died while it notified observers"
        return [f"maybe not delivered: {died}; hide this with: notyet tasks dismiss {task}"]
    return []
