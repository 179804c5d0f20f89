"""Caches of operators by hand: what tables of one rank share, and what keeps them apart."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem
from planner.options.runtimes.registry import RUNTIMES
from planner.pricing.memory.ledger import LINES
from planner.pricing.placed_work import PlacedLedger, PlacedWork
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.planning.whole_tables import whole_table

NARROW, WIDE = make_table("narrow", 400_000_000, 16), make_table("wide", 1_000_000, 512)


def ledger(
    problem: Problem, *, kernel: Kernel = Kernel.FUSED_UVM_CACHING, reserved: tuple[float | None, ...] = ()
) -> PlacedLedger:
    """The ledger of the tables of a problem, all whole on the one rank, with a fifth of their rows cached."""
    stated = reserved or (None,) * len(problem.tables)
    tables = tuple(
        whole_table(table, kernel=kernel, cache_load_factor=0.2, cache_reserved_bytes=reserved_bytes)
        for table, reserved_bytes in zip(problem.tables, stated, strict=True)
    )
    return PlacedWork.of(problem, Placement(world_size=1, ranks_per_host=1, tables=tables)).ledger(problem)


def lines(
    problem: Problem, *, kernel: Kernel = Kernel.FUSED_UVM_CACHING, reserved: tuple[float | None, ...] = ()
) -> dict[str, float]:
    """Bytes by line, all tiers together."""
    return dict(
        zip(LINES, ledger(problem, kernel=kernel, reserved=reserved).lines[0].sum(axis=0).tolist(), strict=True)
    )


def problem_of(*tables: object, **given: object) -> Problem:
    return make_problem(*tables, cluster=make_cluster(1, 1), **given)  # type: ignore[arg-type]


def test_tables_of_mixed_widths_share_slots_as_wide_as_the_widest() -> None:
    """A fifth of 401,000,000 rows, in sets of 32 slots of 512 columns of 4 bytes."""
    held = lines(problem_of(NARROW, WIDE))
    assert held["cache"] == 80_200_000 * 512 * 4
    assert held["cache_index"] == 401_000_000 * 4 + 80_200_000 * 16


def test_numbers_below_a_byte_keep_them_apart() -> None:
    held = lines(problem_of(NARROW, WIDE), reserved=(0.25, 0.5))
    assert held["cache"] == 80_000_000 * 16 * 4 + 200_000 * 512 * 4
    assert held["cache_index"] == 401_000_000 * 4 + 80_200_000 * 16


@pytest.mark.parametrize(
    "other",
    [
        replace(WIDE, module_path="other"),
        replace(WIDE, pooling="mean"),
        make_table("wide", 1_000_000, 512, data_type="fp16"),
        make_table("wide", 1_000_000, 512, optimizer="adagrad"),
    ],
)
def test_operators_are_of_one_module_pooling_type_and_optimizer(other: object) -> None:
    held = lines(problem_of(NARROW, other))
    assert held["cache"] == 80_000_000 * 16 * 4 + 200_000 * 512 * other.data_type.element_bytes  # type: ignore[attr-defined]


def test_widths_are_apart_while_rows_are_fetched_ahead_and_slots_have_locks() -> None:
    held = lines(problem_of(NARROW, WIDE, pipeline=PREFETCH_PIPELINE))
    assert held["cache"] == 80_000_000 * 16 * 4 + 200_000 * 512 * 4
    assert held["cache_index"] == 401_000_000 * 4 + 80_200_000 * (16 + 4)


def test_a_runtime_that_makes_no_operators_has_a_cache_per_table() -> None:
    held = lines(problem_of(NARROW, WIDE, runtime="generic"))
    assert held["cache"] == 80_000_000 * 16 * 4 + 200_000 * 512 * 4


def test_an_operator_rounds_the_slots_of_all_its_tables_together() -> None:
    """A fifth of 202 rows are 40 slots, two sets; a fifth of 101 is one set. Of 140 rows they are 28 slots, one set."""
    pair = problem_of(make_table("a", 101, 16), make_table("b", 101, 16))
    assert lines(pair, reserved=(0.5, 0.5))["cache"] == 64 * 16 * 4
    assert lines(pair, reserved=(0.5, 0.25))["cache"] == 64 * 16 * 4
    few = problem_of(make_table("a", 70, 16), make_table("b", 70, 16))
    assert lines(few, reserved=(0.5, 0.5))["cache"] == 32 * 16 * 4


def test_rows_on_ssd_have_buffers_in_host_memory_and_no_table_of_rows() -> None:
    """A fifth of 1,000,000 rows: 6,250 sets of 32 slots, with 16 B of tags each, and 12 B in each of two buffers."""
    held = lines(problem_of(WIDE), kernel=Kernel.KEY_VALUE, reserved=(0.5,))
    assert held["cache"] == 200_000 * 2048
    assert held["cache_index"] == 200_000 * 16
    assert held["eviction_buffers"] == 2 * (200_000 * (2048 + 12) + 4)
    assert held["write_buffers"] == 2 * 1024**3


def test_the_bytes_of_shards_add_up_to_those_of_their_rank() -> None:
    found = ledger(problem_of(*(make_table(f"t{i}", 1000 + 7 * i, 16) for i in range(5))))
    assert found.shard_bytes.sum() == found.lines.sum()
    assert np.array_equal(found.shard_bytes, np.rint(found.shard_bytes))


@pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE])
@pytest.mark.parametrize(
    ("runtime", "pipeline"), [("generic", "none"), ("generic", PREFETCH_PIPELINE), ("torchrec", PREFETCH_PIPELINE)]
)
@pytest.mark.parametrize("rows", [1_000_003, 1_000_200])
@pytest.mark.parametrize("widths", [(32, 96), (48, 80), (64, 64), (16, 32, 80)])
def test_pieces_of_a_table_take_no_more_on_one_rank_than_apart(
    widths: tuple[int, ...], runtime: str, pipeline: str, kernel: Kernel, rows: int
) -> None:
    """A search adds up pieces; where it may cut a cached table into unequal ones, some come to lie on one rank."""
    table = make_table("cut", rows, 128)
    problem = make_problem(table, cluster=make_cluster(1, 4), runtime=runtime, pipeline=pipeline)
    assert not RUNTIMES[runtime].needs_equal_pieces(problem)

    def most_bytes(ranks: list[int]) -> float:
        shards = Shards.of_columns(
            rank=ranks,
            row_offset=0,
            num_rows=table.num_embeddings,
            column_offset=np.cumsum((0, *widths[:-1])),
            num_columns=widths,
            tier=kernel.tier(Tier.HBM),
        )
        placed = whole_table(
            table, kernel=kernel, sharding_type=Scheme.COLUMN_WISE, shards=shards, cache_load_factor=0.1
        )
        placement = Placement(world_size=4, ranks_per_host=4, tables=(placed,))
        return float(PlacedWork.of(problem, placement).ledger(problem).lines.sum())

    assert most_bytes([0] * len(widths)) <= most_bytes(list(range(len(widths))))
