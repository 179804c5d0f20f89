"""Many threads that do the same at once."""

import threading
from collections.abc import Callable


def race(number: int, action: Callable[[int], object]) -> list[object]:
    """Run an action in many threads at once; return results and exceptions."""
    results: list[object] = [None] * number
    barrier = threading.Barrier(number)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = action(index)
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
