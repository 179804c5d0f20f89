"""A place for a process: the process outlives whoever asked for it first, and dies with the place."""

import contextlib
import gc
import os
import signal
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Future
from functools import partial
from pathlib import Path

import pytest
from pebble import ProcessExpired, ProcessPool
from pebble.pool.channel import ChannelMutex

from api.execution.processes import slot as process_slot
from api.execution.processes.slot import ProcessSlot
from tests.support.contracts.race import race
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def own_pid(_: object) -> int:
    return os.getpid()


def parent_pid(_: object) -> int:
    return os.getppid()


def take_a_while(_: object) -> int:
    time.sleep(1.5)
    return os.getpid()


def hang(_: object) -> None:
    time.sleep(3600)


def leave_as_if_all_were_well(_: object) -> None:
    os._exit(0)


def leave_in_the_manner_of_scripts(_: object) -> None:
    sys.exit(0)


def stop_while_it_is_heard(_: object) -> None:
    """As where the process is stopped while it sends its answer."""
    (mutex,) = (item for item in gc.get_objects() if isinstance(item, ChannelMutex))
    mutex.acquire()
    os.kill(os.getpid(), signal.SIGSTOP)


def test_work_goes_on_when_the_thread_that_began_it_has_ended() -> None:
    found: dict[str, object] = {}
    with ProcessSlot(None) as slot:

        def begin() -> None:
            found["pid"] = slot.schedule(own_pid, None, None).result()
            found["work"] = slot.schedule(take_a_while, None, None)
            time.sleep(0.3)

        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
        assert found["work"].result(timeout=PATIENCE_SECONDS) == found["pid"]
        assert slot.schedule(own_pid, None, None).result() == found["pid"]
    # Gone with its place.
    wait_until(lambda: not os.path.exists(f"/proc/{found['pid']}"))


@thorough
def test_what_processes_are_forked_from_may_be_killed() -> None:
    """Also then they do not die with whoever happened to need a process next."""
    with ProcessSlot(None) as first, ProcessSlot(None) as second:
        parent = second.schedule(parent_pid, None, None).result()
        assert first.schedule(parent_pid, None, None).result() == parent
        work = first.schedule(take_a_while, None, None)
        time.sleep(0.3)
        os.kill(parent, signal.SIGKILL)
        assert isinstance(work.exception(timeout=PATIENCE_SECONDS), ProcessExpired)
        again = ready(first, parent)
        assert ready(second, parent) == again
        pid = second.schedule(own_pid, None, None).result()
        first.discard()
        time.sleep(0.3)
        assert second.schedule(own_pid, None, None).result() == pid


def ready(slot: ProcessSlot, before: int) -> int:
    """The parent of a place's process, once it is another one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        assert time.monotonic() < deadline
        with contextlib.suppress(ProcessExpired, BrokenExecutor):
            found = slot.schedule(parent_pid, None, None).result()
            if found != before:
                return found
        time.sleep(0.1)


def start_slowly(done: Path, _memory_bytes: int | None) -> None:
    time.sleep(1.5)
    done.touch()


def test_a_process_is_ready_once_it_has_prepared_itself(tmp_path: Path) -> None:
    done, stopping = tmp_path / "done", threading.Event()
    with ProcessSlot(None, partial(start_slowly, done)) as slot:
        threading.Timer(0.2, stopping.set).start()
        slot.wait_until_ready(stopping)
        assert not done.exists()
        stopping.clear()
        slot.wait_until_ready(stopping)
        assert done.exists()
        done.unlink()
        slot.wait_until_ready(stopping)  # it is the same process
        assert not done.exists()


def test_a_process_that_cannot_be_had_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no more processes")

    with ProcessSlot(None) as slot:
        monkeypatch.setattr(ProcessPool, "schedule", fail)
        slot.wait_until_ready(threading.Event())  # it comes back


def test_a_process_that_cannot_be_had_says_nothing_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no more processes")

    with ProcessSlot(None) as slot:
        monkeypatch.setattr(ProcessPool, "schedule", fail)
        with pytest.raises(BrokenExecutor, match="no more processes"):
            slot.schedule(own_pid, None, None)
        monkeypatch.undo()
        assert slot.schedule(own_pid, None, None).result() != os.getpid()


def test_a_process_that_leaves_with_code_0_has_failed_and_is_noticed_at_once() -> None:
    with ProcessSlot(None) as slot:
        work = slot.schedule(leave_as_if_all_were_well, None, 3600)
        assert isinstance(work.exception(timeout=PATIENCE_SECONDS), ProcessExpired)
        assert slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS) != os.getpid()


def test_a_process_that_is_reported_to_end_by_others_has_failed() -> None:
    """Those that talk to a Ray cluster end with code 0 then."""

    with ProcessSlot(None, start=leave_on_request) as slot:
        pid = slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS)
        work = slot.schedule(hang, None, None)
        wait_until(work.running)
        os.kill(pid, signal.SIGTERM)
        assert isinstance(work.exception(timeout=PATIENCE_SECONDS), ProcessExpired)


def leave_on_request(_memory_bytes: int | None) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def test_what_would_end_a_thread_does_not_end_the_one_that_asks() -> None:
    with ProcessSlot(None) as slot:
        error = slot.schedule(leave_in_the_manner_of_scripts, None, None).exception(timeout=PATIENCE_SECONDS)
    assert isinstance(error, RuntimeError)
    assert "SystemExit" in str(error)


@thorough
def test_a_process_that_takes_up_nothing_is_lost_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessSlot(None) as slot:
        pid = slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS)
        monkeypatch.setattr(process_slot, "_BEGIN_SECONDS", 1.0)
        os.kill(pid, signal.SIGSTOP)
        assert isinstance(slot.schedule(own_pid, None, 3600).exception(timeout=PATIENCE_SECONDS), BrokenExecutor)
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
        monkeypatch.undo()
        assert slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS) != pid


def test_work_that_comes_while_the_process_is_lost_is_reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool has seen that it is broken, and what came in that moment is in no list of its own."""
    with ProcessSlot(None) as slot:
        pid = slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS)
        queue, broken = ProcessPool.schedule, threading.Event()

        def late(pool: ProcessPool, *work: object, **options: object) -> Future[object]:
            if broken.is_set():
                return queue(pool, *work, **options)
            broken.set()
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not pool.active)
            return Future()

        monkeypatch.setattr(ProcessPool, "schedule", late)
        monkeypatch.setattr(process_slot, "_BEGIN_SECONDS", 2 * PATIENCE_SECONDS)  # nothing waits for that
        assert isinstance(slot.schedule(own_pid, None, 3600).exception(timeout=PATIENCE_SECONDS), BrokenExecutor)
        assert slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS) != pid


@thorough
def test_a_process_that_cannot_be_stopped_at_the_limit_is_stopped_soon_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_slot, "_BEGIN_SECONDS", 5.0)
    monkeypatch.setattr(process_slot, "_KILL_SECONDS", 1.0)
    with ProcessSlot(None) as slot:
        pid = slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS)
        assert isinstance(
            slot.schedule(stop_while_it_is_heard, None, 0.5).exception(timeout=PATIENCE_SECONDS), TimeoutError
        )
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
        monkeypatch.undo()
        assert slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS) != pid


def test_no_work_waits_for_a_process_that_is_discarded() -> None:
    with ProcessSlot(None) as slot:
        begun = slot.schedule(hang, None, None)
        wait_until(begun.running)
        waiting = slot.schedule(own_pid, None, None)
        slot.discard()
        for work in (begun, waiting):
            assert isinstance(work.exception(timeout=PATIENCE_SECONDS), BrokenExecutor)
        assert slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS) != os.getpid()


def test_work_that_is_cancelled_is_over_at_once() -> None:
    with ProcessSlot(None) as slot:
        work = slot.schedule(hang, None, None)
        wait_until(work.running)
        assert work.cancel()
        assert isinstance(work.exception(timeout=1), CancelledError)


def test_threads_that_need_a_process_at_the_same_time_find_one_process() -> None:
    with ProcessSlot(None) as slot:

        def ask(number: int) -> int:
            if number % 2:
                slot.warm_up()
            return slot.schedule(own_pid, None, None).result(timeout=PATIENCE_SECONDS)

        assert len(set(race(16, ask))) == 1


def test_no_work_is_forgotten_where_its_place_is_discarded_meanwhile() -> None:
    with ProcessSlot(None) as slot:

        def ask(number: int) -> Future[int] | None:
            if number % 4 == 0:
                slot.discard()
                return None
            return slot.schedule(own_pid, None, None)

        for work in race(16, ask):
            if isinstance(work, Future):
                assert isinstance(work.exception(timeout=PATIENCE_SECONDS), BrokenExecutor | None)
            else:
                assert isinstance(work, BrokenExecutor | None)
