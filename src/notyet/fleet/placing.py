"""Placing tasks on workers, by DBOS: the only module that knows it.

DBOS decides which worker takes a queued task, and when; it knows nothing of conversations. A
placement is one workflow without steps: nothing of it is replayed, all of it may be repeated.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from notyet.errors import LedgerError, Refused
from notyet.ledger.connection import expect_readable
from notyet.ledger.postgres import USE_OWNER, PostgresConnection
from notyet.ledger.postgres_transaction import Transaction, Writer

try:
    import psycopg
    import sqlalchemy as sa
    from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer
    from dbos import error as dbos_error
except ImportError:
    raise Refused(
        "a fleet needs dbos, which is not installed; in a checkout, run: pip install '.[fleet]'"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime
    from typing import TypeVar

    from notyet.core.task import Order
    from notyet.fleet.queue import Queue
    from notyet.ledger.ledger import Ledger

    T = TypeVar("T")
    Enqueue = Callable[[str, str, Order, Queue], None]  # task, placement

_PLACE, _SCHEDULED = "place", "scheduled"  # names of workflows; never changed
_VERSION = "1"  # of what a placement means: workers of all versions take all placements
_POLL = 0.5  # seconds between two looks of a worker into a queue
_PAUSE = 0.05
_OF_DBOS = "_dbos"  # the end of the name of its schema
_LONGEST_NAME = 63
_OLD = 2 * 86_400  # seconds after which a placement that ended is forgotten


class Placing:
    """The queues, placements and schedules of a fleet."""

    _serving: ClassVar[Placing | None] = None  # in this process

    def __init__(self, ledger: Ledger) -> None:
        connection = ledger.connection
        if not isinstance(connection, PostgresConnection):
            raise Refused(
                f"a fleet needs PostgreSQL, not {ledger.path}; write postgresql://USER@HOST/NAME"
            )
        for name in ("dbos", "sqlalchemy.pool"):  # they log what is said in one sentence here
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._ledger = ledger
        self._connection = connection
        self._schema = connection.schema
        if len(self._tables) > _LONGEST_NAME:  # PostgreSQL would cut it off
            what = f"the schema of a fleet has at most {_LONGEST_NAME - len(_OF_DBOS)} characters"
            raise Refused(f"{what}; {self._schema} has {len(self._schema)}")
        self._url = _url(connection.options)
        pool = {"pool_size": 4, "max_overflow": 4, "pool_pre_ping": True}
        self._engine = sa.create_engine(self._url, **pool)
        self._dbos: DBOS | None = None
        self._client = DBOSClient(
            system_database_engine=self._engine,
            dbos_system_schema=self._tables,
            serializer=DBOSPortableJSONSerializer(),
            application_name="notyet",
            lazy=True,
            retry_connection_errors=False,
        )

    def prepare(self) -> None:
        """Create the tables of the ledger and of DBOS. Raises LedgerError."""
        if self._connection.is_pooled():
            what = "a fleet cannot run behind pgbouncer in transaction mode"
            raise LedgerError(self._ledger.path, f"{what}; set pool_mode = session, or go past it")
        self._ledger.connection.write(lambda _db: None)
        url = self._url.render_as_string(hide_password=False)
        self._asked(partial(DBOS.migrate, url, schema=self._tables))

    def define(self, queue: Queue) -> None:
        """Make the lanes of a queue, or change what they allow."""
        former = self._lanes([queue.name])  # tasks may wait in lanes of other limits
        for lane in queue.lanes(former):
            limit, most = lane.limit, queue.per_worker
            if limit.at_once is not None and most is not None:
                most = min(most, limit.at_once)
            rate = {"limit": limit.rate, "period": limit.period} if limit.rate else None
            kind = "partition" if lane.is_shared else ""
            allowed = {
                f"{kind or 'global'}_concurrency": limit.at_once,
                f"{kind}_limiter".lstrip("_"): rate,
            }
            register = partial(self._client.register_queue, lane.name, worker_concurrency=most)
            self._asked(partial(register, polling_interval_sec=_POLL, **allowed))

    def write(self, work: Callable[[Any, Enqueue], T]) -> T:
        """Run one transaction of the ledger and of DBOS together; `work` may be repeated."""
        ends = time.monotonic() + self._connection.patience
        while True:
            try:
                with self._engine.begin() as connection:
                    driver = connection.connection.driver_connection
                    settings = {"search_path": self._schema, "lock_timeout": "1s"}
                    sets = (f"set_config('{name}', '{to}', true)" for name, to in settings.items())
                    begin = (
                        f"SELECT max(version), {', '.join(sets)} FROM {self._schema}.ledger_version"  # noqa: S608  # our own names
                    )
                    (version, *_) = connection.exec_driver_sql(begin).one()
                    expect_readable(self._ledger.path, version)
                    writer = Writer(self._schema)
                    db = Transaction(driver, self._schema, 1.0, writer=writer)  # type: ignore[arg-type]
                    result = work(db, partial(self._enqueue, connection))
                    db.flush()
                    return result
            except sa.exc.DBAPIError as error:
                if not self._connection.may_retry(error.orig) or time.monotonic() > ends:
                    raise self._connection.fault(error.orig) from error
            except psycopg.Error as error:
                if not self._connection.may_retry(error) or time.monotonic() > ends:
                    raise self._connection.fault(error) from error
            time.sleep(_PAUSE)

    def _enqueue(
        self, connection: sa.Connection, task: str, placement: str, order: Order, queue: Queue
    ) -> None:
        lane, part = queue.lane_of(order.model)
        options: dict[str, Any] = {
            "workflow_name": _PLACE,
            "workflow_id": placement,
            "queue_name": lane,
            "queue_partition_key": part,
            "app_version": _VERSION,
            "priority": order.priority or queue.priority,
        }
        self._client.enqueue_in_transaction(connection, options, task)  # type: ignore[arg-type]

    # -- workers

    def serve(
        self,
        worker: str,
        queues: Sequence[str],
        room: Callable[[], int],
        place: Callable[[str, str], Awaitable[None]],
        submit: Callable[[str, dict[str, Any]], Awaitable[None]],
    ) -> None:
        """Take placements from queues, `room` more at any time, and submit what schedules say.

        Raises Refused if this process has a worker: DBOS serves one.
        """
        if Placing._serving is not None:
            raise Refused("this process has a worker already; start another process for the next")
        Placing._serving = self
        self._dbos = DBOS(
            config={
                "name": "notyet",
                "system_database_url": self._url.render_as_string(hide_password=False),
                "dbos_system_schema": self._tables,
                "serializer": DBOSPortableJSONSerializer(),
                "executor_id": worker,
                "application_version": _VERSION,
                "log_level": "CRITICAL",
                "scheduler_polling_interval_sec": 5.0,
            }
        )

        @DBOS.workflow(name=_PLACE, max_recovery_attempts=None)
        async def placed(task: str) -> None:
            await place(task, str(DBOS.workflow_id))

        @DBOS.workflow(name=_SCHEDULED, max_recovery_attempts=None)
        async def scheduled(at: datetime | str, order: dict[str, Any]) -> None:
            await submit(at if isinstance(at, str) else at.isoformat(), order)

        DBOS.listen_queues(self._lanes(queues))
        self._asked(DBOS.launch)
        # Not public. A DBOS without them lets a worker take as much as the queue says, which then
        # waits here while other workers have room; and a worker must restart for new lanes.
        with suppress(AttributeError):
            _bound(self._dbos._sys_db, self._dbos._active_workflows_set, room)  # noqa: SLF001

    def listen(self, queues: Sequence[str]) -> None:
        """Take placements from all lanes of these queues, also from those of former limits."""
        lanes = self._lanes(queues)
        if self._dbos is not None and hasattr(self._dbos, "_listening_queues"):
            self._dbos._listening_queues = lanes  # noqa: SLF001

    def _lanes(self, queues: Sequence[str]) -> list[str]:
        lanes = [lane.name for lane in self._asked(self._client.list_queues)]
        return [lane for lane in lanes if lane.partition(":")[0] in queues]

    def stop(self, patience: int) -> None:
        """Take no more placements; wait so many seconds for those that were taken."""
        if Placing._serving is self:
            self._dbos = None
            DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=patience)
            Placing._serving = None

    def left_by_dead(self, living: set[str]) -> list[str]:
        """Return placements that were taken by workers which do not live."""
        found = self._asked(
            partial(
                self._client.list_workflows,
                status="PENDING",
                name=_PLACE,
                load_input=False,
                load_output=False,
            )
        )
        return [one.workflow_id for one in found if one.executor_id not in living]

    def held(self, placements: list[str]) -> set[str]:
        """Return those of these placements that wait or are with a worker."""
        if not placements:
            return set()
        found = self._asked(
            partial(
                self._client.list_workflows,
                workflow_ids=placements,
                status=["ENQUEUED", "DELAYED", "PENDING"],
                load_input=False,
                load_output=False,
            )
        )
        return {one.workflow_id for one in found}

    def cancel(self, placements: list[str]) -> None:
        """Free the slots of placements."""
        if placements:
            self._asked(partial(self._client.cancel_workflows, placements))

    def forget_old(self) -> None:
        """Delete a few placements that ended long ago."""
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - _OLD))
        ended = self._asked(
            partial(
                self._client.list_workflows,
                status=["SUCCESS", "ERROR", "CANCELLED"],
                completed_before=before,
                limit=500,
                load_input=False,
                load_output=False,
            )
        )
        if ended:
            old = [one.workflow_id for one in ended]
            self._asked(partial(self._client.delete_workflows, old))

    # -- schedules

    def schedule(self, name: str, cron: str, order: dict[str, Any]) -> None:
        """Make a schedule, or change it. Raises Refused."""
        entry = {
            "schedule_name": name,
            "workflow_name": _SCHEDULED,
            "schedule": cron,
            "context": order,
        }
        try:
            self._asked(partial(self._client.apply_schedules, [entry]))  # type: ignore[list-item]
        except dbos_error.DBOSException:
            raise Refused(f"invalid times {cron!r}; write for example 0 3 * * *") from None

    def unschedule(self, name: str) -> None:
        """Delete a schedule."""
        self._asked(partial(self._client.delete_schedule, name))

    def close(self) -> None:
        """Close the connections."""
        self._client.destroy()
        self._engine.dispose()

    @property
    def _tables(self) -> str:
        return f"{self._schema}{_OF_DBOS}"

    def _asked(self, call: Callable[[], T]) -> T:
        """Call DBOS; a fault of the database becomes a LedgerError."""
        try:
            return call()
        except sa.exc.DBAPIError as error:
            if isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
                role = self._connection.options.get("user") or "your role"
                grant = f"CREATE SCHEMA {self._tables} AUTHORIZATION {role}"
                what = f"{role} lacks a right; {USE_OWNER}, or have an administrator run: {grant}"
                raise LedgerError(self._ledger.path, what) from error
            raise self._connection.fault(error.orig) from error


def _bound(database: Any, active: Any, room: Callable[[], int]) -> None:
    """Let DBOS take no more placements from its database than there is room for."""
    known, count = database.get_queue, active.count_for_queue

    def get_queue(name: str, **options: Any) -> Any:
        queue = known(name, **options)
        if queue is not None:
            most = count(name) + max(0, room())
            queue._worker_concurrency = min(queue._worker_concurrency or most, most)  # noqa: SLF001
        return queue

    database.get_queue = get_queue


def new_placement(task: str) -> str:
    """Return the id of another placement of a task."""
    return f"{task}:{uuid4().hex}"


def task_of(placement: str) -> str:
    """Return the task of a placement."""
    return placement.partition(":")[0]


def _url(options: dict[str, Any]) -> sa.URL:
    known = {name: str(value) for name, value in options.items() if value is not None}
    return sa.URL.create(
        "postgresql+psycopg",
        username=known.pop("user", None),
        password=known.pop("password", None),
        database=known.pop("dbname", None),
        query=known,
    )
