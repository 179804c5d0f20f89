"""Deadlines of counted work."""

import time

from planner.orchestration.family_sets.deadline import Deadline


def test_never_is_no_end() -> None:
    never = Deadline()
    assert not never.is_over()
    assert not never.after(0.5).is_over()
    assert not never.ended_work


def test_work_that_is_ended_is_remembered() -> None:
    past = Deadline(time.monotonic())
    assert not past.ended_work  # no one was ended yet
    assert past.is_over()
    assert past.ended_work


def test_an_earlier_one_is_remembered_by_both() -> None:
    whole = Deadline(time.monotonic() + 1000.0)
    assert not whole.after(0.5).is_over()
    assert whole.after(0.0).is_over()
    assert not whole.is_over()
    assert whole.ended_work
