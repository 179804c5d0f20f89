"""Long work in a thread of its own: the main thread, which alone receives Ctrl-C, must not run compiled code."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from types import FrameType
from typing import TypeVar

Value = TypeVar("Value")

#: An interrupt that Python raises inside a finalizer or a callback of a library is dropped: look for it this often.
_CHECK_SECONDS = 0.2
#: Wrappers signal a command and then its process group: what comes this soon after an interrupt is the same one.
_SAME_INTERRUPT_SECONDS = 1.0
_received = threading.Event()


@contextlib.contextmanager
def recorded_interrupts() -> Iterator[None]:
    """Record each Ctrl-C before ``KeyboardInterrupt`` is raised: ``interruptible`` finds what was dropped.

    Repeats within a second are ignored. A process that was started to ignore Ctrl-C, as scripts start jobs in the
    background, goes on ignoring it.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()  # the only one that handles signals
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    last_seconds = -math.inf

    def record(number: int, frame: FrameType | None) -> None:
        nonlocal last_seconds
        now_seconds = time.monotonic()
        if now_seconds - last_seconds < _SAME_INTERRUPT_SECONDS:
            return
        last_seconds = now_seconds
        _received.set()
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, record)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _received.clear()


def interruptible(work: Callable[[], Value]) -> Value:
    """Return what ``work`` returns. An interrupt abandons the work, in a thread that ends with the process.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C was pressed during the work, or before it without effect. A result that is there already is returned.
    """
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # whatever it is, it belongs to the caller
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="interruptible", daemon=True).start()
        while not _received.is_set():
            if wait((future,), timeout=_CHECK_SECONDS).done:
                return future.result()
        raise KeyboardInterrupt
    finally:
        _received.clear()
