"""Bytes and work of HugeCTR's dynamic tables: by hand, and as a simulator's maps grow."""

import random
from dataclasses import replace

import numpy as np
import pytest

from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.pipeline import plan
from planner.pricing.hash_tables.hugectr import map_slots, mapped_bytes, num_maps
from planner.pricing.hash_tables.slot_columns import slot_columns
from planner.pricing.shard_work import build_work
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.runtimes.hugectr_simulator import DynamicTable

FIRST = 1_048_576


def dynamic(name: str = "d", ids: int = 5_000_000, dim: int = 32, *, optimizer: str = "adagrad") -> Table:
    found = HashTable(mode="hugectr", eviction="none", expected_rows=ids)
    return replace(make_table(name, ids, dim, optimizer=optimizer), hash_table=found)


def work_of(problem: Problem, scheme: Scheme) -> ShardWork:
    number = len(problem.tables)
    return build_work(
        problem,
        table_columns(problem),
        table=np.arange(number),
        scheme=np.full(number, scheme, dtype=np.int8),
        kernel=np.full(number, Kernel.FUSED, dtype=np.int8),
        shard_columns=np.array([table.embedding_dim for table in problem.tables]),
    )


def problem_of(*tables: Table) -> Problem:
    return make_problem(*tables, cluster=make_cluster(1, 4), runtime="hugectr")


def lines_of(problem: Problem, scheme: Scheme) -> dict[str, list[float]]:
    work = work_of(problem, scheme)
    return {line: held.tolist() for line, held in mapped_bytes(work, work.shard_rows).items()}


def test_a_table_by_hand() -> None:
    """5,000,000 ids and 1,024 lookups on one GPU: 1, 2 and 4 million slots have room for 4.4 million less 30,000.

    So there are four maps, 15,728,640 slots; of weights and of state.
    """
    found = lines_of(problem_of(dynamic()), Scheme.TABLE_WISE)
    slots = 15 * FIRST
    assert found == {
        "weights": [slots * 128],
        "optimizer_state": [slots * 128],
        "row_keys": [2 * slots * 16 + 2 * 3 * 128 * 8],
    }


def test_rows_over_all_gpus_by_hand() -> None:
    """A quarter of the ids: two maps have room for 1,877,436."""
    found = lines_of(problem_of(dynamic(optimizer="sgd")), Scheme.ROW_WISE)
    assert found == {
        "weights": [3 * FIRST * 128],
        "optimizer_state": [0],
        "row_keys": [3 * FIRST * 16 + 2 * 3 * 128 * 8],
    }


def test_adam_keeps_two_numbers_of_state_for_each_weight() -> None:
    (once,), (twice,) = (
        lines_of(problem_of(dynamic(optimizer=name)), Scheme.TABLE_WISE)["optimizer_state"]
        for name in ("adagrad", "adam")
    )
    assert twice == 2 * once


@pytest.mark.parametrize(
    ("ids", "maps"), [(1, 1), (619_145, 1), (619_146, 2), (1_867_436, 2), (1_867_437, 3), (10**9, 11)]
)
def test_a_map_is_added_before_the_last_is_full(ids: int, maps: int) -> None:
    assert num_maps(np.array([float(ids)])).tolist() == [maps]
    assert map_slots(np.array([float(ids)])).tolist() == [(2**maps - 1) * FIRST]


@pytest.mark.parametrize("seed", range(20))
def test_bytes_are_those_of_the_simulator_s_maps(seed: int) -> None:
    """Ids come in steps, and all of them have come before the last."""
    rng = random.Random(seed)
    optimizer = rng.choice(["sgd", "adagrad", "adam"])
    table = dynamic(ids=rng.randint(1_000, 60_000_000), dim=rng.choice([4, 16, 128]), optimizer=optimizer)
    problem, scheme = problem_of(table), rng.choice([Scheme.TABLE_WISE, Scheme.ROW_WISE])
    work, numbers = work_of(problem, scheme), {"sgd": 0, "adagrad": 1, "adam": 2}[optimizer]
    weights, state = DynamicTable(table.embedding_dim), DynamicTable(table.embedding_dim * numbers)
    ids, lookups = int(work.shard_rows[0]), int(work.lookups[0])
    for part in (ids // 3, ids // 3, ids - 2 * (ids // 3), 0):
        weights.lookup(max(part, lookups), part)
        if numbers:
            state.lookup(max(part, lookups), part)
    found = {line: held[0] for line, held in lines_of(problem, scheme).items()}
    if ids > 3 * lookups:  # else a first step looked up more at once than a step of the job does
        assert found["weights"] == weights.value_bytes()
        assert found["optimizer_state"] == state.value_bytes()
        assert found["row_keys"] == weights.other_bytes() + state.other_bytes()


def test_plans_hold_the_maps_of_their_ranks() -> None:
    """Whatever the scheme; tables without hash tables are no dynamic ones, and keep 8 bytes of an id with every row."""
    problem = problem_of(dynamic("a", 5_000_000), dynamic("b", 40_000_000, 64))
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=5, seed=0))
    assert result.plan is not None
    for rank, load in enumerate(result.plan.evaluation.ranks):
        held = 0.0
        for placed in result.plan.placement.tables:
            (table,) = [one for one in problem.tables if one.name == placed.name]
            for shard in placed.shards:
                if shard.rank == rank:
                    lookups = 64 * 4 * 4 / len(placed.shards)
                    held += float(map_slots(np.array([shard.num_rows + lookups]))[0]) * table.embedding_dim * 4
        assert load.ledger_bytes[Tier.HBM]["weights"] == held


def test_prices_are_of_the_maps_that_a_lookup_searches() -> None:
    """Four times a key and two windows of 64 bytes in each of four maps, and four launches."""
    columns = slot_columns(problem_of(dynamic(), dynamic("few", 1000)))
    assert columns.lookup_bytes.tolist() == [4 * (4 * 128 + 16), 4 * (128 + 16)]
    assert columns.launches.tolist() == [4, 4]
    assert columns.bytes_per_slot.tolist() == [0, 0]
