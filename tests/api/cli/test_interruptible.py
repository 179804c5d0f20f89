"""Ctrl-C reaches a command once, and its work ends."""

import signal
import threading

import pytest

from api.cli.interruptible import interruptible, repeats_ignored
from tests.support.waiting import PATIENCE_SECONDS


def interrupt_and_wait() -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)
    threading.Event().wait(PATIENCE_SECONDS)


def test_an_interrupt_ends_the_work() -> None:
    with pytest.raises(KeyboardInterrupt):
        interruptible(interrupt_and_wait)


def test_an_interrupt_that_is_sent_twice_is_raised_once() -> None:
    with repeats_ignored():
        with pytest.raises(KeyboardInterrupt):
            interruptible(interrupt_and_wait)
        signal.raise_signal(signal.SIGINT)  # while the best plan is written
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_later_interrupt_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.cli.interruptible._SAME_INTERRUPT_SECONDS", 0.0)
    with repeats_ignored():
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)


def test_a_process_that_ignores_interrupts_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with repeats_ignored():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_the_work_raises_is_raised() -> None:
    def work() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        interruptible(work)


def test_other_threads_run_commands_too() -> None:
    found: list[object] = []

    def command() -> None:
        with repeats_ignored():
            found.append(interruptible(lambda: "the plan"))

    thread = threading.Thread(target=command)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert found == ["the plan"]
