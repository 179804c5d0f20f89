"""Stashed tables, followed through a step: what does not fit, waits too long or cannot be stashed."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.pricing.memory.stash import Copies
from planner.verification.stash import follow, stashed_bytes
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table

ROWS, COLUMNS = 1_000_000, 64  # 256 MB
DENSE = Dense(forward_seconds=0.1, backward_seconds=0.2, activation_bytes=1e9)


def problem(hbm_bytes: float = 2e9, stash: Stash | None = None, **changes: object) -> Problem:
    tables = [make_table(name, ROWS, COLUMNS) for name in "abcdef"]
    cluster = make_cluster(1, 1, hbm_bytes=hbm_bytes)
    settings = {"dense": DENSE, "stash": stash or Stash(), "pipeline": "train_sparse_dist"} | changes
    return make_problem(*tables, cluster=cluster, **settings)


def placed(stashed: str, kernel: Kernel = Kernel.FUSED) -> Placement:
    shards = Shards.of_columns(
        rank=[0], row_offset=0, num_rows=ROWS, column_offset=0, num_columns=COLUMNS, tier=Tier.HBM
    )
    return Placement(
        world_size=1,
        ranks_per_host=1,
        tables=tuple(
            TablePlacement(
                name=name,
                sharding_type=Scheme.TABLE_WISE,
                compute_kernel=kernel,
                shards=shards,
                stash_weights=name in stashed,
            )
            for name in "abcdef"
        ),
    )


def codes(of: Problem, placement: Placement) -> list[str]:
    return [issue.code for issue in verify(of, placement)]


def test_stashed_weights_make_room_for_activations() -> None:
    # 1.54 GB of tables and 1 GB of activations in 2 GB: 0.54 GB must leave, three tables of 256 MB do
    assert codes(problem(), placed("")) == ["memory"]
    assert codes(problem(), placed("ab")) == ["memory"]
    assert codes(problem(), placed("abc")) == []


def test_copies_must_end_before_what_is_free_is_full() -> None:
    # 0.46 of 1 GB are free: at 30 GB/s, 0.768 GB take 25.6 ms of the 46 ms until activations fill it
    assert codes(problem(stash=Stash(link_share=0.5)), placed("abc")) == ["stash-wait"]
    assert codes(problem(stash=Stash(link_share=0.5, max_wait_seconds=0.006)), placed("abc")) == []


def test_tables_must_fit_while_no_activations_are_there() -> None:
    assert "memory" in codes(problem(hbm_bytes=1.5e9), placed("abcdef"))


def test_what_may_not_be_stashed_is_refused() -> None:
    only_a = problem(hbm_bytes=20e9, stash=Stash(tables=frozenset("a")))
    assert codes(only_a, placed("a")) == []
    assert codes(only_a, placed("ab")) == ["stash"]
    without = replace(problem(hbm_bytes=20e9), stash=None)
    assert codes(without, placed("a")) == ["stash"]
    assert "stash" in codes(problem(hbm_bytes=20e9), placed("a", Kernel.DENSE))


def test_bytes_are_those_of_the_rectangles() -> None:
    assert stashed_bytes(problem(), placed("abc")).tolist() == [3 * ROWS * COLUMNS * 4]


def test_waits_are_those_of_the_closed_form() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        dense = Dense(
            forward_seconds=rng.uniform(0, 0.2),
            backward_seconds=rng.uniform(0, 0.4),
            activation_bytes=rng.uniform(1, 3e9),
        )
        one = problem(dense=dense, stash=Stash(link_share=rng.uniform(0.1, 1)))
        copies = Copies.of(one)
        assert copies is not None
        stashed, free = rng.uniform(0, 3e9), rng.uniform(0, 4e9)
        expected = [float(wait[0]) for wait in copies.wait_seconds(np.array([stashed]), np.array([free]))]
        missing, waits = follow(one, stashed_bytes=stashed, free_bytes=free)
        assert waits == pytest.approx(expected, abs=1e-12)
        assert missing == pytest.approx(max(0.0, copies.needed_bytes(np.array([free]))[0] - stashed))
