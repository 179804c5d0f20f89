"""Long work beside the main thread, which alone hears of Ctrl-C: compiled code does not listen."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Value = TypeVar("Value")


def interruptible(work: Callable[[], Value]) -> Value:
    """Return what ``work`` returns; an interrupt leaves it behind, in a thread that ends with the process."""
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # whatever it is, it belongs to the caller
            future.set_exception(error)

    threading.Thread(target=run, name="plan", daemon=True).start()
    return future.result()
