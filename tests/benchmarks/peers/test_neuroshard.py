"""NeuroShard's search: pieces, limits, and its known dead end."""

import numpy as np
import pytest

from benchmarks.peers.neuroshard import NeuroShardParams, NeuroShardResult, search
from benchmarks.peers.piece_costs import PieceCosts, halved_widths


def costs(
    dims: list[int], *, num_ranks: int, capacity: int = 10**9, per_column: list[float] | None = None
) -> PieceCosts:
    """Compute seconds in proportion to columns, plus as much communication; a byte per column."""
    widths = halved_widths(np.array(dims))
    compute = widths * np.array(per_column or [1.0] * len(dims))[:, None]
    return PieceCosts(
        widths=widths,
        seconds=np.stack([widths.astype(float), compute], axis=2),
        bytes=widths,
        is_compute=np.array([False, True]),
        capacity_bytes=np.full(num_ranks, capacity),
    )


def columns_held(result: NeuroShardResult, given: PieceCosts) -> list[list[bool]]:
    """Which columns of each table are covered; fails on overlap."""
    covered = [[False] * int(width) for width in given.widths[:, 0]]
    for table, level, column in zip(result.piece_table, result.piece_level, result.piece_column, strict=True):
        for position in range(column, column + given.widths[table, level]):
            assert not covered[table][position]
            covered[table][position] = True
    return covered


def test_halving_stops_at_four_columns() -> None:
    # 24 -> 12, and 6 is no multiple of 4; 20 -> 10 neither
    assert halved_widths(np.array([16, 24, 4, 20])).tolist() == [[16, 8, 4], [24, 12, 0], [4, 0, 0], [20, 0, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes": np.zeros((1, 2), dtype=np.int64)}, "same tables and levels"),
        ({"is_compute": np.array([True])}, "one entry of is_compute per phase"),
        ({"widths": np.array([[16, 8, 2]])}, "half of the one before"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    given = costs([16], num_ranks=2)
    fields = {name: getattr(given, name) for name in ("widths", "seconds", "bytes", "is_compute", "capacity_bytes")}
    with pytest.raises(ValueError, match=message):
        PieceCosts(**(fields | change))


def test_one_table_is_cut_until_all_ranks_share_it() -> None:
    # 16 columns on 4 ranks: uncut no rank may hold more than 1.5 x 4; 4 pieces of 4, 2 x 4 s each
    given = costs([16], num_ranks=4)
    result = search(given)
    assert result.cost_seconds == 8.0
    assert (result.num_halvings, sorted(result.piece_rank.tolist())) == (3, [0, 1, 2, 3])
    assert all(all(table) for table in columns_held(result, given))


def test_the_preserved_plan_is_within_the_limits_and_costs_what_it_says() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        dims = rng.choice([8, 16, 32, 64], size=12).tolist()
        given = costs(dims, num_ranks=4, capacity=int(sum(dims) / 4 * 1.3), per_column=rng.uniform(0.1, 5, 12).tolist())
        result = search(given)
        assert all(all(table) for table in columns_held(result, given))
        load, held = np.zeros(4), np.zeros(4)
        np.add.at(load, result.piece_rank, given.seconds[result.piece_table, result.piece_level].sum(axis=1))
        np.add.at(held, result.piece_rank, given.bytes[result.piece_table, result.piece_level])
        assert load.max() == pytest.approx(result.cost_seconds)
        assert (held <= given.capacity_bytes).all()


def test_step_time_takes_the_slowest_rank_of_each_phase() -> None:
    # Two tables that cannot be cut, on two ranks: 4 columns each, compute 4 and 40 s.
    given = costs([4, 4], num_ranks=2, per_column=[1.0, 10.0])
    assert search(given).cost_seconds == 44.0
    assert search(given, objective="step_time").cost_seconds == 44.0
    # Widths 4 and 8 with compute 40 and 4: slowest rank 4 + 40, by phase 8 + 40 (8 is not cut here)
    given = costs([4, 8], num_ranks=2, per_column=[10.0, 0.5])
    whole = NeuroShardParams(max_halvings=0)
    assert search(given, params=whole).cost_seconds == 44.0
    assert search(given, objective="step_time", params=whole).cost_seconds == 48.0


def test_costliest_first_and_ties_to_the_emptier_rank() -> None:
    # Compute 12, 8, 8, 4 on two ranks: 12 -> 0, 8 -> 1, 8 -> 1 (8 < 12), 4 -> 0: 16 each
    given = costs([4, 4, 4, 4], num_ranks=2, per_column=[1.0, 3.0, 2.0, 2.0])
    result = search(given)
    assert result.piece_rank.tolist() == [0, 0, 1, 1]
    assert result.cost_seconds == 16 + 8


def test_memory_sends_a_piece_elsewhere() -> None:
    given = costs([8, 8, 8], num_ranks=2, capacity=16, per_column=[9.0, 1.0, 1.0])
    result = search(given, params=NeuroShardParams(max_halvings=0))
    # 72 alone on rank 0; the other two on rank 1. With 8 bytes per rank nothing fits.
    assert result.piece_rank.tolist() == [0, 1, 1]
    tight = costs([8, 8, 8], num_ranks=2, capacity=8)
    assert search(tight).cost_seconds == np.inf


def test_its_dead_end() -> None:
    """Four tables of 4 columns on 16 ranks fit anywhere, yet no rank may hold over 1.5 x the mean of 1 column."""
    result = search(costs([4, 4, 4, 4], num_ranks=16))
    assert result.cost_seconds == np.inf
    assert (result.piece_rank.size, result.num_states) == (0, 1)
