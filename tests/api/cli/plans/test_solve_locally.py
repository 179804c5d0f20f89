"""What a command does before it solves."""

import threading

import pytest

from api.cli.plans import solve_locally


def test_compilation_leaves_the_main_thread_to_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba loses an interrupt that comes in the middle: only a thread that waits is sure to hear of it."""
    threads = []
    monkeypatch.setattr(solve_locally, "is_warm", lambda: False)
    monkeypatch.setattr(solve_locally, "warm", lambda: threads.append(threading.current_thread()))
    solve_locally.compile_search()
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
