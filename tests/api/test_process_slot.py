"""A place for a process: the process outlives whoever asked for it first, and dies with the place."""

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor

import pytest
from pebble import ProcessExpired, ProcessPool

from api.process_slot import ProcessSlot


def own_pid(_: object) -> int:
    return os.getpid()


def parent_pid(_: object) -> int:
    return os.getppid()


def take_a_while(_: object) -> int:
    time.sleep(1.5)
    return os.getpid()


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
        assert found["work"].result(timeout=30) == found["pid"]
        assert slot.schedule(own_pid, None, None).result() == found["pid"]
    # Gone with its place.
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{found['pid']}"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_processes_are_forked_from_may_be_killed() -> None:
    """Also then they do not die with whoever happened to need a process next."""
    with ProcessSlot(None) as first, ProcessSlot(None) as second:
        parent = second.schedule(parent_pid, None, None).result()
        assert first.schedule(parent_pid, None, None).result() == parent
        work = first.schedule(take_a_while, None, None)
        time.sleep(0.3)
        os.kill(parent, signal.SIGKILL)
        assert isinstance(work.exception(timeout=30), ProcessExpired)
        again = ready(first, parent)
        assert ready(second, parent) == again
        pid = second.schedule(own_pid, None, None).result()
        first.discard()
        time.sleep(0.3)
        assert second.schedule(own_pid, None, None).result() == pid


def ready(slot: ProcessSlot, before: int) -> int:
    """The parent of a place's process, once it is another one."""
    deadline = time.monotonic() + 30
    while True:
        assert time.monotonic() < deadline
        with contextlib.suppress(ProcessExpired, BrokenExecutor):
            found = slot.schedule(parent_pid, None, None).result()
            if found != before:
                return found
        time.sleep(0.1)


def test_a_process_that_cannot_be_had_says_nothing_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no more processes")

    with ProcessSlot(None) as slot:
        monkeypatch.setattr(ProcessPool, "schedule", fail)
        with pytest.raises(BrokenExecutor, match="no more processes"):
            slot.schedule(own_pid, None, None)
        monkeypatch.undo()
        assert slot.schedule(own_pid, None, None).result() != os.getpid()
