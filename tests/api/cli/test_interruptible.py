"""Ctrl-C reaches the work of a command, whatever drops the exception on the way."""

import signal
import threading

import pytest

from api.cli.interruptible import interruptible, recorded_interrupts
from tests.support.waiting import PATIENCE_SECONDS


class InterruptedFinalizer:
    """Python drops what a finalizer raises, an interrupt as well."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def interrupt_and_wait() -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)
    threading.Event().wait(PATIENCE_SECONDS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_finalizer_drops_ends_the_work_that_follows() -> None:
    with recorded_interrupts():
        InterruptedFinalizer()
        with pytest.raises(KeyboardInterrupt):
            interruptible(lambda: threading.Event().wait(PATIENCE_SECONDS))


def test_an_interrupt_ends_the_work_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with recorded_interrupts():
        with pytest.raises(KeyboardInterrupt):
            interruptible(interrupt_and_wait)
        assert interruptible(lambda: "the plan") == "the plan"
    assert signal.getsignal(signal.SIGINT) is before


def test_the_same_interrupt_sent_twice_counts_once() -> None:
    """Such as by ``timeout``, which signals a command and then its process group."""
    with recorded_interrupts():
        with pytest.raises(KeyboardInterrupt):
            interruptible(interrupt_and_wait)
        signal.raise_signal(signal.SIGINT)  # while the best plan is written
        assert interruptible(lambda: "the plan") == "the plan"


def test_an_interrupt_after_a_while_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.cli.interruptible._SAME_INTERRUPT_SECONDS", 0.0)
    with recorded_interrupts():
        with pytest.raises(KeyboardInterrupt):
            interruptible(interrupt_and_wait)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_process_that_ignores_interrupts_goes_on_ignoring_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with recorded_interrupts():
            signal.raise_signal(signal.SIGINT)
            assert interruptible(lambda: "the plan") == "the plan"
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
        with recorded_interrupts():
            found.append(interruptible(lambda: "the plan"))

    thread = threading.Thread(target=command)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert found == ["the plan"]
