"""A server's cycle collector leaves alone what lives as long as the process."""

import gc
from collections.abc import Iterator

import pytest

from api.cli.service import process as collector
from tests.support.thorough import thorough


@pytest.fixture
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@thorough
@pytest.mark.usefixtures("_restored")
def test_what_exists_is_left_out_and_collections_are_rarer() -> None:
    before = gc.get_threshold()
    collector.tune_gc()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] > before[0]


@thorough
@pytest.mark.usefixtures("_restored")
def test_cycles_made_later_are_still_collected() -> None:
    collector.tune_gc()
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() >= 1
