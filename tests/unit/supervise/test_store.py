"""The calls of a supervisor to its ledger: in threads, and in order."""

import asyncio
import threading

import pytest

from notyet import Ledger
from notyet.supervise.context import Store


@pytest.fixture
def store(tmp_path):
    store = Store(Ledger(tmp_path / "ledger.db"), 1.0, lambda _: None)
    store.open()
    yield store
    store.close()


def test_a_cancelled_caller_goes_on_after_its_call(store):
    order, may_end = [], threading.Event()

    def call():
        may_end.wait(30)
        order.append("call")

    async def caller():
        try:
            await store(call)
        finally:
            order.append("caller")

    async def main():
        calling = asyncio.ensure_future(caller())
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.sleep(0.01)
        may_end.set()
        await asyncio.wait({calling})
        assert calling.cancelled()

    asyncio.run(main())
    assert order == ["call", "caller"]


def test_all_calls_can_be_waited_for(store):
    ended, may_end = [], threading.Event()

    def call():
        may_end.wait(30)
        ended.append(1)

    async def main():
        calls = [asyncio.ensure_future(store(call)) for _ in range(3)]
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, may_end.set)
        await store.finish()
        assert len(ended) == 3
        await asyncio.gather(*calls)

    asyncio.run(main())


@pytest.mark.file_only("one writes at a time")
def test_a_file_has_one_thread(store):
    async def main():
        names = await asyncio.gather(
            *(store(lambda: threading.current_thread().name) for _ in range(20))
        )
        assert len(set(names)) == 1

    asyncio.run(main())
