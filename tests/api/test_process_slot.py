"""A place for a process: the process outlives whoever asked for it first, and dies with the place."""

import os
import threading
import time

from api.process_slot import ProcessSlot


def own_pid(_: object) -> int:
    return os.getpid()


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
