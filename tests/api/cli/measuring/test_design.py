"""The designs: balanced from the first launch on, the same for a seed, within their limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cli.measuring.lookup_design import COLUMNS, LAUNCHES_PER_ROUND, LookupLimits, lookup_launch
from api.cli.measuring.rank_design import collective_launch, copy_launch
from api.cli.measuring.sequence import log_between, one_of, point

LIMITS = LookupLimits(lookups=100_000, weight_bytes=2**26)


@pytest.mark.parametrize("num_axes", [1, 3, 6])
@pytest.mark.parametrize("count", [16, 64, 256])
def test_points_cover_every_axis_evenly_wherever_they_stop(num_axes: int, count: int) -> None:
    points = np.array([point(index, num_axes, seed=3, stream=1) for index in range(count)])
    assert ((points >= 0) & (points < 1)).all()
    for axis in range(num_axes):
        in_quarter = np.histogram(points[:, axis], bins=4, range=(0, 1))[0]
        assert abs(in_quarter - count / 4).max() <= 3, axis  # by chance alone 7 of 256
        for other in range(axis):
            in_square = np.histogram2d(points[:, axis], points[:, other], bins=2, range=[[0, 1], [0, 1]])[0]
            assert abs(in_square - count / 4).max() <= 6, (axis, other)


@pytest.mark.parametrize("operation", ["gather", "stream"])
def test_copies_cover_rows_and_ranks_together(operation: str) -> None:
    """Every width is copied by one rank and by both."""
    launches = [copy_launch(index, 0, 2, is_cuda=False) for index in range(128)]
    some = [launch for launch in launches if launch.operation == operation]
    wide = [launch.copied_bytes > 1_500_000 for launch in some]
    both = [launch.contending == 2 for launch in some]
    table = np.histogram2d(wide, both, bins=2)[0]
    assert table.min() >= 10, table


def test_seeds_and_streams_differ() -> None:
    assert len({point(5, 2, seed, stream) for seed in range(3) for stream in range(3)}) == 9


def test_scales() -> None:
    assert log_between(0.5, 1, 100) == pytest.approx(10)
    assert log_between(0.7, 50, 20) == 50  # no room: the least
    assert [one_of(share, "abc") for share in (0.0, 0.34, 0.999)] == ["a", "b", "c"]


@given(st.integers(0, 5_000), st.integers(0, 2**20), st.floats(4_096, 2**24))
def test_a_launch_keeps_its_limits(index: int, seed: int, lookups: float) -> None:
    limits = LookupLimits(lookups=lookups, weight_bytes=2**28)
    launch = lookup_launch(index, seed, limits)
    assert launch == lookup_launch(index, seed, limits)
    assert launch.batch * sum(table.pooling for table in launch.tables) <= lookups * 1.05
    assert sum(4 * table.rows * table.columns for table in launch.tables) <= 2**28 * 1.05
    for table in launch.tables:
        assert table.columns in COLUMNS
        assert table.rows >= 100
        assert 0 <= table.alpha <= 1.4
        assert 0 <= table.seed < 2**63
    assert len({table.name for table in launch.tables}) == len(launch.tables)


def test_a_round_has_singles_and_groups_of_which_one_table_is_alone() -> None:
    for round_ in range(1, 9):
        launches = [lookup_launch(LAUNCHES_PER_ROUND * round_ + i, 0, LIMITS) for i in range(LAUNCHES_PER_ROUND)]
        *singles, group, alone, other, other_alone = launches
        assert [len(launch.tables) for launch in singles] == [1] * 2
        for several, one in ((group, alone), (other, other_alone)):
            assert 2 <= len(several.tables) <= 15
            assert one.tables[0] in several.tables
            assert len(one.tables) == 1
            assert (one.batch, one.data_type) == (several.batch, several.data_type)
        assert {launch.task for launch in launches} == {f"seed0-round{round_}"}
        names = [table.name for launch in (*singles, group, other) for table in launch.tables]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("place", [0, 2])
def test_the_first_table_and_the_first_group_are_measured_again(place: int) -> None:
    first, again = lookup_launch(place, 0, LIMITS), lookup_launch(10 * LAUNCHES_PER_ROUND + place, 0, LIMITS)
    assert again == first
    assert again.task == "seed0-round0"


def test_a_hundred_launches_hold_every_size_of_group() -> None:
    sizes = {len(lookup_launch(index, 0, LIMITS).tables) for index in range(6 * 14)}
    assert sizes == set(range(1, 16))


@given(st.integers(0, 5_000), st.integers(0, 2**20), st.integers(2, 16))
def test_collectives(index: int, seed: int, num_ranks: int) -> None:
    launch = collective_launch(index, seed, num_ranks)
    assert len(launch.part_bytes) == len(launch.start_seconds) == num_ranks
    assert all(part >= 4 and part % 4 == 0 for part in launch.part_bytes)
    assert 512 <= sum(launch.part_bytes) <= 17 * 2**20
    assert min(launch.start_seconds) == 0
    assert max(launch.start_seconds) <= 0.005
    assert (launch.direction != "") == (launch.operation == "all_to_all")
    if launch.operation != "all_to_all":
        assert len(set(launch.part_bytes)) == 1


@given(st.integers(0, 5_000), st.integers(0, 2**20), st.integers(1, 8), st.booleans())
def test_copies(index: int, seed: int, num_ranks: int, is_cuda: bool) -> None:
    launch = copy_launch(index, seed, num_ranks, is_cuda)
    assert 1 <= launch.contending <= num_ranks
    assert launch.copied_bytes > 0
    if launch.operation == "gather":
        assert 16 <= launch.row_bytes <= 4096
        assert launch.copied_bytes % launch.row_bytes == 0
    assert is_cuda or launch.operation in ("gather", "stream")
