"""TorchRec's planner re-made: its packing and its proposals."""

from collections.abc import Sequence

import numpy as np
import pytest

from planner.orchestration.baselines import torchrec_search
from planner.orchestration.baselines.torchrec_options import Cluster, Option, Placement
from planner.orchestration.baselines.torchrec_packing import PreparedOption, max_rank_seconds, pack
from planner.orchestration.baselines.torchrec_search import search


def option(placement: Placement, shards: Sequence[tuple[float, int]], *, scheme: str = "") -> PreparedOption:
    """An option of (seconds, bytes) shards, all in one phase."""
    return PreparedOption(
        Option(
            scheme=scheme or placement.name,
            placement=placement,
            seconds=np.array([[seconds] for seconds, _ in shards], dtype=float),
            bytes=np.array([[held] for _, held in shards], dtype=np.int64),
        )
    )


def cluster(num_hosts: int, per_host: int, capacity: int = 100) -> Cluster:
    return Cluster(ranks_per_host=per_host, capacity_bytes=np.full((num_hosts * per_host, 1), capacity))


def packed(chosen: list[PreparedOption], where: Cluster, **named: str) -> list[list[int]] | None:
    ranks = pack(chosen, where, **named)
    return None if ranks is None else [found.tolist() for found in ranks]


def test_largest_first_to_the_least_loaded_rank() -> None:
    a, b, c = (option(Placement.RANK, [shard]) for shard in ((1.0, 5), (4.0, 9), (2.0, 7)))
    # by bytes: b on 0, c on 1, a (1 s) on 1, which has 2 s to b's 4
    assert packed([a, b, c], cluster(1, 2)) == [[1], [0], [1]]
    # with a of 5 s: by bytes as before, by seconds a on 0, b on 1, c on 1
    a = option(Placement.RANK, [(5.0, 5)])
    assert packed([a, b, c], cluster(1, 2)) == [[1], [0], [1]]
    assert packed([a, b, c], cluster(1, 2), sort_by="seconds") == [[0], [1], [1]]


def test_ties_go_round_the_hosts() -> None:
    tables = [option(Placement.RANK, [(1.0, 1)]) for _ in range(4)]
    assert packed(tables, cluster(2, 2)) == [[0], [2], [1], [3]]


def test_everyone_first_then_what_is_left() -> None:
    free = option(Placement.RANK, [(1.0, 50)])
    world = option(Placement.WORLD, [(5.0, 60), (1.0, 10)])
    # rank 0 has 40 bytes left, so the table of 50 goes to rank 1 although both came later
    assert packed([free, world], cluster(1, 2)) == [[1], [0, 1]]
    assert packed([free, option(Placement.WORLD, [(1.0, 60), (1.0, 60)])], cluster(1, 2)) is None
    assert packed([option(Placement.WORLD, [(1.0, 1)] * 3)], cluster(1, 2)) is None  # 3 shards, 2 ranks


def test_hosts_by_their_seconds() -> None:
    first = option(Placement.HOST_ROWS, [(1.0, 30), (1.0, 30)])
    second = option(Placement.HOST_ROWS, [(1.0, 20), (1.0, 20)])
    columns = option(Placement.HOST_COLUMNS, [(1.0, 5), (3.0, 5), (1.0, 5)])
    # host 0, host 1 (idle), then host 0 (tied): its ranks are level, the wide piece on 1, the last on 0
    assert packed([first, second, columns], cluster(2, 2)) == [[0, 1], [2, 3], [0, 1, 0]]


def test_a_host_that_is_too_full_is_left_as_it_was() -> None:
    big = option(Placement.WORLD, [(0.0, 60), (0.0, 60), (9.0, 10), (9.0, 10)])
    columns = option(Placement.HOST_COLUMNS, [(1.0, 40), (1.0, 40), (1.0, 40)])
    small = option(Placement.RANK, [(1.0, 40)])
    # host 0 is idle, takes two pieces of three, fails and keeps nothing: the small one still fits there
    assert packed([big, columns, small], cluster(2, 2)) == [[0, 1, 2, 3], [2, 3, 2], [0]]
    assert packed([big, option(Placement.HOST_ROWS, [(1.0, 95), (1.0, 95)])], cluster(2, 2)) is None
    assert packed([option(Placement.HOST_ROWS, [(1.0, 1)])], cluster(2, 2)) is None  # one shard, two ranks


def test_grid_over_hosts() -> None:
    busy = option(Placement.WORLD, [(0.0, 60), (0.0, 10), (1.0, 10), (1.0, 10), (2.0, 10), (2.0, 10)])
    two = option(Placement.HOSTS, [(1.0, 50)] * 4)
    # hosts 0, 1 first, but rank 0 has only 40 bytes left: hosts 1, 2
    assert packed([busy, two], cluster(3, 2)) == [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5]]
    many = option(Placement.HOSTS, [(1.0, 10)] * 8)
    assert packed([many], cluster(3, 2)) == [[0, 1, 2, 3, 4, 5, 0, 1]]
    assert packed([option(Placement.HOSTS, [(1.0, 10)] * 3)], cluster(3, 2)) is None
    assert packed([option(Placement.HOSTS, [(1.0, 60)] * 8)], cluster(3, 2)) is None


def test_the_rating_is_the_slowest_rank() -> None:
    chosen = [option(Placement.RANK, [(1.0, 1), (2.0, 1)]), option(Placement.RANK, [(2.5, 1)])]
    assert max_rank_seconds(chosen, [np.array([0, 0]), np.array([1])], 2) == 3.0


def test_walk_moves_the_table_with_the_most_bytes() -> None:
    fast_big, slow_small = option(Placement.RANK, [(1.0, 9)]), option(Placement.RANK, [(2.0, 1)])
    middle, weightless = option(Placement.RANK, [(1.5, 5)]), option(Placement.RANK, [(0.5, 0)])
    tables = [[slow_small, fast_big, middle], [middle, slow_small], [weightless, slow_small]]
    walk = [one.options for one in torchrec_search.greedy_walk(tables, by_largest_shard=True)]
    # 9 -> 5; then 5 and 5: the first table; then the second; the third holds nothing and never moves
    assert walk == [(1, 0, 0), (2, 0, 0), (0, 0, 0), (0, 1, 0)]


def test_largest_shard_and_sum_order_options_differently() -> None:
    whole, cut = option(Placement.RANK, [(4.0, 8)]), option(Placement.RANK, [(3.0, 4), (3.0, 4)])
    assert next(torchrec_search.greedy_walk([[whole, cut]], by_largest_shard=True)).options == (1,)
    assert next(torchrec_search.greedy_walk([[whole, cut]], by_largest_shard=False)).options == (0,)


def test_uniform_proposals_need_every_table() -> None:
    slow, fast = (option(Placement.RANK, [(s, 1)], scheme="a") for s in (2.0, 1.0))
    other = option(Placement.RANK, [(0.1, 1)], scheme="b")
    assert [one.options for one in torchrec_search.uniform([[other, slow, fast], [slow]])] == [(2, 0)]


def test_grid_only_where_small() -> None:
    two = [option(Placement.RANK, [(s, 1)]) for s in (2.0, 1.0)]
    assert [one.options for one in torchrec_search.grid([two, two])] == [(1, 1), (1, 0), (0, 1), (0, 0)]
    assert list(torchrec_search.grid([two] * 14)) == []  # 16,384


def test_search_keeps_the_best_and_counts() -> None:
    whole = option(Placement.RANK, [(4.0, 8)], scheme="whole").option
    cut = option(Placement.RANK, [(2.5, 4), (2.5, 4)], scheme="cut").option
    result = search([[whole, cut]], cluster(1, 2, capacity=5))
    assert (result.max_rank_seconds, result.chosen_option) == (2.5, (1,))
    assert (result.num_proposals, result.num_packed, result.proposer) == (2, 1, "grid")
    assert [ranks.tolist() for ranks in result.shard_ranks] == [[0, 1]]
    nothing = search([[whole]], cluster(1, 2, capacity=5))
    assert (nothing.max_rank_seconds, nothing.chosen_option, nothing.proposer) == (np.inf, (), "")


@pytest.mark.parametrize("seed", range(20))
def test_proposals_that_are_left_out_change_nothing(seed: int) -> None:
    generator = np.random.default_rng(seed)
    tables = []
    for _ in range(9):
        held, seconds = int(generator.integers(8, 40)), float(generator.integers(2, 9))
        whole = option(Placement.RANK, [(seconds, held)], scheme="whole")
        cut = option(Placement.RANK, [(seconds * 0.6, held // 2)] * 2, scheme="cut")
        rows = option(Placement.WORLD, [(seconds * 0.3, -(-held // 4))] * 4, scheme="rows")
        copies = option(Placement.WORLD, [(seconds * 0.2, held)] * 4, scheme="copies")
        tables.append([one.option for one in (whole, cut, rows, copies)])
    ranks = cluster(2, 2, capacity=90)
    every, few = (search(tables, ranks, packs_all=packs_all) for packs_all in (True, False))
    assert (few.max_rank_seconds, few.chosen_option) == (every.max_rank_seconds, every.chosen_option)
    assert (few.proposer, few.num_proposals) == (every.proposer, every.num_proposals)
    assert few.num_packed < every.num_packed or every.num_packed == 0


def test_placed_tables_are_a_limit() -> None:
    whole = option(Placement.RANK, [(4.0, 8)], scheme="whole").option
    cut = option(Placement.RANK, [(2.5, 4), (2.5, 4)], scheme="cut").option
    result = search([[whole, cut]], cluster(1, 2, capacity=50), max_placed_tables=1)
    assert (result.is_cut, result.num_proposals, result.chosen_option) == (True, 1, (1,))


def test_a_time_limit_is_reported() -> None:
    whole = option(Placement.RANK, [(4.0, 8)]).option
    result = search([[whole]], cluster(1, 2), time_limit_seconds=-1.0)
    assert (result.is_cut, result.num_proposals) == (True, 0)
