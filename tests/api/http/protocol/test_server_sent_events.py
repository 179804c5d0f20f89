"""Streams of solves: nothing is missed, nobody polls for himself, and everybody goes when the server stops."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from api.http.protocol.server_sent_events import Listeners, SolveStreams
from api.services.errors import ApiError
from api.services.solves.database_watch import SolveWatch
from api.services.solves.notifications import SolveNotifications
from api.store.database import Database, TenantStore
from api.store.solves.records import EventRecord, SolveMark
from api.store.sql.connections import sqlite_engines
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.store.solve_events import OTHER, SOLVE
from tests.support.contracts.store.values import new_solve
from tests.support.service.background import in_background

PROGRESS = {"incumbent_seconds": 1.0, "bound_seconds": 0.5, "relative_gap": 1.0, "partitioner": "greedy"}


class CountingDatabase(Database):
    """Counts what is read, and may fail."""

    num_looks = 0
    fails = False

    def marks(self, solve_ids: Collection[str]) -> dict[str, SolveMark]:
        self.num_looks += 1
        self.check()
        return super().marks(solve_ids)

    def for_tenant(self, tenant: str) -> "CountingStore":
        return CountingStore(self, tenant)

    def check(self) -> None:
        if self.fails:
            raise OperationalError("", None, Exception("gone"))


class CountingStore(TenantStore):
    """Counts what is read, and fails as its database does."""

    num_reads = 0

    def __init__(self, database: CountingDatabase, tenant: str) -> None:
        super().__init__(database.engines, tenant)
        self.database = database

    def events(self, solve_id: str, *, after: int) -> list[EventRecord]:
        self.num_reads += 1
        self.database.check()
        return super().events(solve_id, after=after)


class Setting:
    """A store with two solves, one running, and streams of them; other processes do not tell the signals."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.database = CountingDatabase(sqlite_engines(folder / "db.sqlite", busy_timeout_seconds=30))
        self.store = self.database.for_tenant(DEFAULT_TENANT)
        self.signals = SolveNotifications()
        self.signals.attach()
        for number in (1, 2):
            new = replace(new_solve(number), assumptions=[], warnings=[])
            self.store.accept(new, max_queued=9, reuse=True)
        self.database.begin(SOLVE, executor_id="a", now=10.0)
        self.listeners = Listeners(options.pop("max_listeners", 2000))
        self.streams = SolveStreams(self.store, self.signals, self.listeners, **options)
        self.watch = SolveWatch(self.database, self.signals, poll_seconds=0.05)

    def found(self, seconds: float) -> None:
        progress = {**PROGRESS, "incumbent_seconds": seconds}
        self.database.save_incumbent(SOLVE, attempt=1, document=b"plan", progress=progress, now=11.0)

    def finish(self) -> None:
        self.database.finish(SOLVE, state="failed", now=12.0, error={"code": "c", "message": "m", "hint": ""})


def run(test: Callable[[], Coroutine[object, object, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(limited())


def parsed(content: bytes) -> list[tuple[str, str | None, object]]:
    """Name, number and data of every event; comments are left out."""
    events = []
    for block in content.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            events.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return events


async def all_of(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])


def names(content: bytes) -> list[tuple[str, str | None]]:
    return [(name, number) for name, number, _ in parsed(content)]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_what_another_process_does_is_streamed(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        async with in_background(setting.watch.run):
            task = asyncio.create_task(all_of(setting.streams.stream(SOLVE, after=0)))
            await until(lambda: setting.store.num_reads == 1)
            setting.found(3.0)
            await until(lambda: setting.store.num_reads == 2)
            setting.found(2.0)
            setting.finish()
            content = await task
        state, first, second, end = parsed(content)
        assert state[0] == "state"
        assert state[2]["state"] == "running"
        assert first == ("progress", "1", {**PROGRESS, "incumbent_seconds": 3.0, "at_seconds": 1.0})
        assert second[:2] == ("progress", "2")
        assert end[:2] == ("end", "2")
        assert end[2]["state"] == "failed"
        assert setting.listeners.number == 0
        setting.database.close()

    run(test)


def test_a_solve_that_begins_to_run_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        async with in_background(setting.watch.run):
            task = asyncio.create_task(all_of(setting.streams.stream(OTHER, after=0)))
            await until(lambda: setting.store.num_reads == 1)
            setting.database.begin(OTHER, executor_id="a", now=20.0)
            await until(lambda: setting.store.num_reads >= 2)
            setting.store.request_cancel(OTHER, now=21.0)
            setting.database.finish(OTHER, state="cancelled", now=22.0)
            content = await task
        states = [data["state"] for _, _, data in parsed(content)]
        assert states == ["queued", "running", "cancelled"]
        setting.database.close()

    run(test)


@pytest.mark.parametrize(("after", "numbers"), [(0, ["1", "2"]), (1, ["2"]), (2, []), (99, [])])
def test_an_ended_solve_sends_what_was_not_seen_and_its_end_at_once(
    tmp_path: Path, after: int, numbers: list[str]
) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        setting.found(3.0)
        setting.found(2.0)
        setting.finish()
        content = await all_of(setting.streams.stream(SOLVE, after=after))
        assert names(content) == [*(("progress", number) for number in numbers), ("end", "2")]
        setting.database.close()

    run(test)


def test_a_thousand_idle_listeners_cost_one_query_a_look(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        tasks = [asyncio.create_task(all_of(setting.streams.stream(SOLVE, after=0))) for _ in range(1000)]
        await until(lambda: setting.listeners.number == 1000)
        await until(lambda: setting.store.num_reads == 1)
        for _ in range(5):
            await setting.watch.look()
        await asyncio.sleep(0.05)
        assert setting.database.num_looks == 5
        assert setting.store.num_reads <= 2  # the first look tells once
        before = setting.store.num_reads
        setting.found(3.0)
        await setting.watch.look()
        await until(lambda: setting.store.num_reads == before + 1)
        setting.finish()
        await setting.watch.look()
        contents = await asyncio.gather(*tasks)
        assert len(set(contents)) == 1
        assert names(contents[0]) == [("state", None), ("progress", "1"), ("end", "1")]
        assert setting.store.num_reads == before + 2
        setting.database.close()

    run(test)


def test_no_one_listens_and_nothing_is_asked(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        await setting.watch.look()
        assert setting.database.num_looks == 0
        setting.database.close()

    run(test)


def test_silence_is_broken_by_heartbeats(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path, heartbeat_seconds=0.05)
        stream = setting.streams.stream(SOLVE, after=0)
        chunks = [await anext(stream) for _ in range(5)]
        assert sum(chunk.startswith(b":") for chunk in chunks) == 4  # all but the state
        await stream.aclose()
        setting.database.close()

    run(test)


def test_listeners_that_leave_are_not_counted(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path, max_listeners=50)
        for _ in range(4):
            tasks = [asyncio.create_task(all_of(setting.streams.stream(SOLVE, after=0))) for _ in range(50)]
            await until(lambda: setting.listeners.number == 50)
            with pytest.raises(ApiError, match="50 streams"):
                await setting.streams.check(SOLVE)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert setting.listeners.number == 0
            assert setting.signals.awaited == set()
        await setting.streams.check(SOLVE)
        with pytest.raises(ApiError, match="no solve"):
            await setting.streams.check("nothing")
        setting.database.close()

    run(test)


def test_streams_stop_without_an_end_where_the_server_stops(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        tasks = [asyncio.create_task(all_of(setting.streams.stream(SOLVE, after=0))) for _ in range(3)]
        await until(lambda: setting.store.num_reads == 1)
        setting.signals.shutdown()
        late = all_of(setting.streams.stream(OTHER, after=0))
        for content in await asyncio.gather(*tasks, late):
            assert names(content) == [("state", None)]
        setting.database.close()

    run(test)


def test_a_store_that_fails_for_a_while_ends_no_stream(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        async with in_background(setting.watch.run):
            task = asyncio.create_task(all_of(setting.streams.stream(SOLVE, after=0)))
            await until(lambda: setting.store.num_reads == 1)
            looks = setting.database.num_looks
            setting.database.fails = True
            await until(lambda: setting.database.num_looks > looks + 2)
            setting.signals.changed(SOLVE)
            await until(lambda: setting.store.num_reads > 1)
            setting.database.fails = False
            setting.finish()
            assert names(await task) == [("state", None), ("end", "0")]
        setting.database.close()

    run(test)


def test_a_wait_for_a_fit_sees_its_end_in_another_process(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        version = setting.store.add_fit("m", request={"seed": 0}, max_fitting=9, now=1.0).version
        with setting.signals.listening(f"m@{version}") as ended:
            async with in_background(setting.watch.run):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 0.3)
                assert not ended.is_set()
                setting.store.finish_fit("m", version, now=2.0, error={"code": "killed"})
                await asyncio.wait_for(ended.wait(), 10)
        setting.database.close()

    run(test)


def test_a_wait_for_the_end_sees_what_another_process_does(tmp_path: Path) -> None:
    async def test() -> None:
        setting = Setting(tmp_path)
        with setting.signals.listening(SOLVE) as ended:
            async with in_background(setting.watch.run):
                setting.found(3.0)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 0.3)
                assert not ended.is_set()
                setting.finish()
                await ended.wait()
        setting.database.close()

    run(test)
