"""The collector is paused inside, and on again after, whatever happens; where it was off it stays off."""

import gc

import pytest

from planner.solver.machine import no_collection


def test_it_is_on_again_after_an_error() -> None:
    assert gc.isenabled()
    seen = []

    @no_collection()
    def fail() -> None:
        seen.append(gc.isenabled())
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert seen == [False]
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
