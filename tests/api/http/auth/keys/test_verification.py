"""Verified keys are remembered for five seconds, and their uses are written once in a while."""

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace

import pytest
from sqlalchemy.exc import OperationalError

from api.http.auth.keys import verification as key_ring
from api.http.auth.keys.format import Key
from api.http.auth.keys.verification import ApiKeyVerifier
from api.http.auth.principal import Principal
from api.services.errors import ApiError
from api.store.access.keys import ApiKeyRecord
from tests.support.service.background import in_background
from tests.support.waiting import PATIENCE_SECONDS

KEY = Key("0" * 12, "s" * 43)
HEADER = f"Bearer {KEY.text}"
RECORD = ApiKeyRecord(id=KEY.id, name="n", secret_digest=KEY.digest, scopes=["read"], created_at=1.0)


class Store:
    """Keys in a dictionary, which counts how often it is asked."""

    def __init__(self, *records: ApiKeyRecord) -> None:
        self.records = {record.id: record for record in records}
        self.reads, self.written, self.fails = 0, [], False

    def api_key(self, key_id: str) -> ApiKeyRecord | None:
        self.reads += 1
        self._fail()
        return self.records.get(key_id)

    def record_api_key_uses(self, used_at: Mapping[str, float]) -> None:
        self._fail()
        self.written.append(dict(used_at))

    def _fail(self) -> None:
        if self.fails:
            raise OperationalError("", {}, Exception("the disk is gone"))


class Hands:
    """A ring whose clocks are moved by hand."""

    def __init__(self, *records: ApiKeyRecord) -> None:
        self.store, self.now = Store(*records), 100.0
        self.ring = ApiKeyVerifier(self.store, clock=lambda: self.now, ticks=lambda: self.now)

    async def show(self, header: str | None = HEADER) -> Principal | ApiError:
        return await self.ring.caller(header)


def run(test: Coroutine[object, object, None]) -> None:
    asyncio.run(test)


def test_a_key_that_is_known() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        assert await hands.show() == Principal(KEY.id, frozenset({"read"}))
        assert await hands.show(HEADER.replace("Bearer", "bearer")) == Principal(KEY.id, frozenset({"read"}))

    run(test())


@pytest.mark.parametrize(
    ("header", "record"),
    [
        (None, RECORD),
        ("", RECORD),
        (f"Basic {KEY.text}", RECORD),
        (KEY.text, RECORD),
        (f"{HEADER}, {HEADER}", RECORD),
        (HEADER, None),
        (f"Bearer {Key(KEY.id, 't' * 43).text}", RECORD),
        (HEADER, replace(RECORD, revoked_at=50.0)),
        (HEADER, replace(RECORD, expires_at=100.0)),
    ],
)
def test_others_are_outsiders(header: str | None, record: ApiKeyRecord | None) -> None:
    async def test() -> None:
        hands = Hands(*([] if record is None else [record]))
        caller = await hands.show(header)
        assert isinstance(caller, ApiError)
        assert caller.kind.code == "unauthorized"
        assert caller.headers["WWW-Authenticate"].startswith("Bearer")
        assert KEY.secret not in repr(caller)
        await hands.ring.write_uses()
        assert hands.store.written == []

    run(test())


def test_a_key_that_was_revoked_elsewhere_is_refused_after_five_seconds() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        await hands.show()
        hands.store.records[KEY.id] = replace(RECORD, revoked_at=100.0)
        hands.now = 104.9
        assert isinstance(await hands.show(), Principal)
        assert hands.store.reads == 1
        hands.now = 105.0
        assert isinstance(await hands.show(), ApiError)

    run(test())


def test_a_key_that_was_revoked_here_is_refused_at_once() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        await hands.show()
        hands.store.records[KEY.id] = replace(RECORD, revoked_at=100.0)
        hands.ring.forget(KEY.id)
        assert isinstance(await hands.show(), ApiError)

    run(test())


def test_a_remembered_key_expires_in_time() -> None:
    async def test() -> None:
        hands = Hands(replace(RECORD, expires_at=101.0))
        assert isinstance(await hands.show(), Principal)
        hands.now = 101.0
        assert isinstance(await hands.show(), ApiError)
        assert hands.store.reads == 1

    run(test())


def test_many_who_show_a_key_at_once_ask_the_database_once() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        authenticator = await asyncio.gather(*(hands.show() for _ in range(200)))
        assert all(isinstance(caller, Principal) for caller in authenticator)
        assert hands.store.reads == 1

    run(test())


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        hands = Hands()
        monkeypatch.setattr(key_ring, "MAX_REMEMBERED", 3)
        for number in (1, 2, 3, 4, 4, 1):
            await hands.show(f"Bearer {Key(f'{number:012x}', 's' * 43).text}")
        assert hands.store.reads == 5  # the second look at 4 is from memory, and 1 was forgotten for 4

    run(test())


def test_a_store_that_fails_is_no_reason_to_refuse_a_key_nor_to_take_it() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        hands.store.fails = True
        caller = await hands.show()
        assert isinstance(caller, ApiError)
        assert caller.kind.code == "storage-unavailable"
        hands.store.fails = False
        assert isinstance(await hands.show(), Principal)

    run(test())


def test_uses_are_written_together_and_again_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        await hands.show()
        hands.now = 101.0
        await hands.show()
        hands.store.fails = True
        await hands.ring.write_uses()
        hands.store.fails = False
        await hands.ring.write_uses()
        await hands.ring.write_uses()
        assert hands.store.written == [{KEY.id: 101.0}]

    with caplog.at_level(logging.WARNING):
        run(test())
    assert "written later" in caplog.text


def test_uses_are_written_at_the_end() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        async with in_background(hands.ring.run):
            await hands.show()
            assert hands.store.written == []
        assert hands.store.written == [{KEY.id: 100.0}]

    run(test())


def test_uses_are_written_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_ring.WRITTEN_EVERY_SECONDS == 60
    monkeypatch.setattr(key_ring, "WRITTEN_EVERY_SECONDS", 0.01)

    async def test() -> None:
        hands = Hands(RECORD)
        async with in_background(hands.ring.run):
            await hands.show()
            while not hands.store.written:
                await asyncio.sleep(0.01)

    run(test())


def test_keys_that_someone_makes_up_push_out_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(key_ring, "MAX_REMEMBERED", 3)
        hands = Hands(RECORD)
        await hands.show()
        for number in range(20):
            assert isinstance(await hands.show(f"Bearer {Key(f'{number + 1:012x}', 's' * 43).text}"), ApiError)
        before = hands.store.reads
        assert await hands.show() == Principal(KEY.id, frozenset({"read"}))
        assert hands.store.reads == before
        # A key that is made after somebody guessed its id is known as soon as it is forgotten here.
        late = replace(RECORD, id=f"{20:012x}")
        hands.store.records[late.id] = late
        hands.ring.forget(late.id)
        assert isinstance(await hands.show(f"Bearer {Key(late.id, 's' * 43).text}"), Principal)

    run(test())


def test_few_reads_happen_at_once() -> None:
    async def test() -> None:
        hands, now, most = Hands(), 0, 0

        def api_key(_: str) -> None:
            nonlocal now, most
            now, most = now + 1, max(most, now + 1)
            time.sleep(0.01)
            now -= 1

        hands.store.api_key = api_key
        headers = [f"Bearer {Key(f'{number:012x}', 's' * 43).text}" for number in range(40)]
        answers = await asyncio.gather(*(hands.show(header) for header in headers))
        assert all(isinstance(answer, ApiError) for answer in answers)
        assert 1 <= most <= 4

    run(test())


def test_a_key_that_is_read_while_it_is_revoked_is_not_remembered() -> None:
    async def test() -> None:
        hands = Hands(RECORD)
        began, go = threading.Event(), threading.Event()
        read = hands.store.api_key

        def slow(key_id: str) -> ApiKeyRecord | None:
            record = read(key_id)
            began.set()
            go.wait(timeout=PATIENCE_SECONDS)
            return record

        hands.store.api_key = slow
        early = asyncio.create_task(hands.show())
        await asyncio.to_thread(began.wait, 30)
        hands.store.records[KEY.id] = replace(RECORD, revoked_at=100.0)
        hands.ring.forget(KEY.id)
        go.set()
        await early
        assert isinstance(await hands.show(), ApiError)

    run(test())
