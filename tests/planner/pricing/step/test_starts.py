"""Which kinds a plan has, who prices them, and that the search and the score of a plan agree on them."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.protocol import CostModel
from cost_models.vocabulary import NUM_PHASES, Phase, Scheme
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price
from planner.pricing.step.starts import starts_of_families, starts_of_placement
from planner.solver.evaluate import rank_loads, step_seconds_of, used_kinds
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table

MICRO = 1e-6
LIMITS = SolveLimits(time_limit_seconds=30.0, work_limit_seconds=0.2)
LATENCY = {"intra_host_latency_seconds": 10 * MICRO, "inter_host_latency_seconds": 20 * MICRO}


def only(*schemes: Scheme) -> TableConstraints:
    return TableConstraints(sharding_types=frozenset(schemes))


def problem(**changes: object) -> Problem:
    """Two modules on two hosts: row_wise and table_wise in the first, table_wise in the second."""
    tables = (
        make_table("rows", 4000, 64, module_path="a", constraints=only(Scheme.ROW_WISE)),
        make_table("whole", 1000, 64, module_path="a", constraints=only(Scheme.TABLE_WISE)),
        make_table("other", 1000, 64, module_path="b", constraints=only(Scheme.TABLE_WISE)),
        make_table("more", 900, 64, module_path="b", constraints=only(Scheme.TABLE_WISE)),
    )
    return make_problem(*tables, cluster=make_cluster(2, 2, **LATENCY), pipeline="train_sparse_dist", **changes)


def scored(one: Problem, cost_model: CostModel = ROOFLINE) -> tuple[object, float, float]:
    """The score of some plan, what the search believes of it, and what it would be without starts."""
    families = enumerate_families(one)
    priced = price(one, families, cost_model)
    assignment = Greedy(first_only=True).solve(priced, LIMITS).assignment
    assert assignment is not None
    placement = to_placement(one, families, priced, assignment)
    evaluation = score(one, placement, cost_model)
    without = score(replace(one, counts_starts=False), placement, cost_model)
    return evaluation, step_seconds_of(priced, assignment), without.objective_seconds


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
def test_the_search_and_the_score_agree(objective: str) -> None:
    evaluation, believed, without = scored(problem(objective=objective))
    assert believed == pytest.approx(evaluation.objective_seconds, rel=1e-12)
    # Each kind: two all-to-alls of ids, one exchange forward, one backward.
    assert evaluation.objective_seconds - without == pytest.approx(3 * 4 * 20 * MICRO)


def test_a_plan_lists_its_kinds_by_module() -> None:
    evaluation, _, _ = scored(problem())
    assert [(one.module, one.sharding_type) for one in evaluation.starts] == [
        ("a", Scheme.ROW_WISE),
        ("a", Scheme.TABLE_WISE),
        ("b", Scheme.TABLE_WISE),
    ]
    for one in evaluation.starts:
        assert one.phase_seconds == pytest.approx(
            {Phase.INPUT_COMM: 40 * MICRO, Phase.FORWARD_COMM: 20 * MICRO, Phase.BACKWARD_COMM: 20 * MICRO}
        )
        assert one.seconds == pytest.approx(80 * MICRO)


def test_every_rank_pays_whatever_lies_there() -> None:
    with_starts, _, _ = scored(problem())
    without, _, _ = scored(problem(counts_starts=False))
    for one, other in zip(with_starts.ranks, without.ranks, strict=True):
        more = {phase: one.seconds[phase] - other.seconds[phase] for phase in one.seconds}
        assert more[Phase.INPUT_COMM] == pytest.approx(120 * MICRO)
        assert more[Phase.BACKWARD_COMPUTE] == 0.0
    assert without.starts == ()


def test_starts_are_hidden_as_their_phase_is() -> None:
    """A pipeline hides the exchange of ids, its starts included."""
    dense = replace(problem().dense, forward_seconds=1.0)
    hidden, believed, without = scored(problem(dense=dense))
    assert believed == pytest.approx(hidden.objective_seconds, rel=1e-12)
    assert hidden.objective_seconds - without == pytest.approx(3 * 2 * 20 * MICRO)


@pytest.mark.parametrize(
    ("changes", "cost_model"),
    [({"counts_starts": False}, ROOFLINE), ({}, TORCHREC), ({"runtime": "generic"}, ROOFLINE)],
)
def test_who_has_none(changes: dict[str, object], cost_model: CostModel) -> None:
    one = problem(**changes)
    families = [(family.table, family.scheme) for family in enumerate_families(one).families]
    kinds, seconds = starts_of_families(one, families, cost_model)
    assert (kinds.shape, seconds.shape) == ((0,), (0, NUM_PHASES))
    evaluation, believed, without = scored(one, cost_model)
    assert believed == evaluation.objective_seconds == without
    assert evaluation.starts == ()


def test_hardware_without_latencies_has_none() -> None:
    one = replace(problem(), cluster=make_cluster(2, 2))
    families = [(family.table, family.scheme) for family in enumerate_families(one).families]
    assert starts_of_families(one, families, ROOFLINE)[1].shape == (0, NUM_PHASES)


def test_sequences_are_a_module_of_their_own() -> None:
    tables = (
        make_table("bag", module_path="a", constraints=only(Scheme.TABLE_WISE)),
        make_table("ids", module_path="a", pooling="none", constraints=only(Scheme.TABLE_WISE)),
    )
    one = make_problem(*tables, cluster=make_cluster(1, 2, **LATENCY))
    families = enumerate_families(one)
    kinds, seconds = starts_of_families(one, [(family.table, family.scheme) for family in families.families], ROOFLINE)
    assert kinds.tolist() == [0, 1]
    # Without a pipeline sizes are exchanged by each kind.
    assert seconds[:, Phase.INPUT_COMM] == pytest.approx([30 * MICRO] * 2)


def test_hardware_numbers_of_starts_are_listed() -> None:
    evaluation, _, _ = scored(problem())
    assert "inter_host_latency_seconds" in evaluation.hardware_numbers


def test_kinds_of_an_assignment() -> None:
    one = problem()
    families = enumerate_families(one)
    priced = price(one, families, ROOFLINE)
    assignment = Greedy(first_only=True).solve(priced, LIMITS).assignment
    assert assignment is not None
    assert used_kinds(priced, assignment).tolist() == [True] * 3
    placement = to_placement(one, families, priced, assignment)
    found = starts_of_placement(one, placement, ROOFLINE, one.cluster.hardware)
    loads = rank_loads(priced, assignment).seconds
    assert found.by_phase.shape == loads.shape[1:]
    assert np.array_equal(found.seconds, priced.kind_start_seconds)
