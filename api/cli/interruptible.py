"""Ctrl-C during long work."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import FrameType
from typing import TypeVar

Value = TypeVar("Value")

#: ``timeout`` and other wrappers signal a command and then its process group: both signals come within this time.
_SAME_INTERRUPT_SECONDS = 1.0


@contextlib.contextmanager
def repeats_ignored() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` once if a wrapper sends an interrupt twice: the second would end its handling.

    A process that ignores Ctrl-C, as jobs do that scripts start in the background, goes on ignoring it.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()  # the only one that handles signals
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    last_seconds = -math.inf

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last_seconds
        now_seconds = time.monotonic()
        if now_seconds - last_seconds >= _SAME_INTERRUPT_SECONDS:
            last_seconds = now_seconds
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interruptible(work: Callable[[], Value]) -> Value:
    """Return what ``work`` returns. An interrupt abandons the work, in a thread that ends with the process.

    The work has a thread of its own, because Python handles signals in the main thread only, between two of its
    instructions: compiled code there would delay them.
    """
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # whatever it is, it belongs to the caller
            future.set_exception(error)

    threading.Thread(target=run, name="interruptible", daemon=True).start()
    return future.result()
