"""Tables split by heat: what their hottest rows serve, and plans that keep those near."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.access.hot_rows import HOT_LOOKUP_SHARES, HotRowCurve, HotRowCurves, hot_row_curves, hot_row_shares
from planner.domain.problem.access import AccessCdf, AccessStatistics, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.host_memory_fallback import with_kernels_of
from planner.output.explain.explanation import explain
from planner.pipeline import plan
from planner.pricing.memory.ledger import LINES
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.evaluate_placement import bytes_by_tier, score
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

SKEWED = AccessCdf(points=((0.1, 0.8), (1.0, 1.0)))
UVM = frozenset({Kernel.FUSED, Kernel.FUSED_UVM})


def curve_of(access: AccessStatistics) -> HotRowCurve:
    (curve,) = hot_row_curves([access], [1000], np.array([200.0]))
    assert curve is not None
    return curve


def split_problem(*, runtime: str = "generic", rows: int = 100_000) -> Problem:
    """Two tables of 100,000 x 64 fp32, 25.6 MB each, on two ranks of 16 MB."""
    wanted = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}), compute_kernels=UVM)
    tables = [make_table(name, rows, 64, access=SKEWED, constraints=wanted) for name in "ab"]
    cluster = make_cluster(1, 2, hbm_bytes=16e6)
    return make_problem(*tables, cluster=cluster, runtime=runtime)


def test_the_hottest_rows_come_first() -> None:
    """A tenth of the rows serves 0.8 of the lookups, and half of the rows 0.8 + 0.2 x 4/9."""
    curve = curve_of(SKEWED)
    assert np.interp(0.1, curve.rows, curve.lookups) == pytest.approx(0.8)
    assert np.interp(0.5, curve.rows, curve.lookups) == pytest.approx(0.8 + 0.2 * 4 / 9)
    assert np.interp(0.1, curve.rows, curve.distinct) < 0.8  # repeats are of hot rows
    for one in (curve.rows, curve.lookups, curve.distinct):
        assert (one[0], one[-1]) == (0.0, 1.0)
        assert np.all(np.diff(one) >= 0)


def test_shards_of_all_tables_at_once_as_one_by_one() -> None:
    """Shards in any order, some of them not split, one of a table that nothing is known of."""
    accesses = (SKEWED, None, ZipfAccess(alpha=1.2))
    curves = HotRowCurves(accesses=accesses, num_rows=(1000, 500, 70_000), num_lookups=np.array([200.0, 90.0, 3000.0]))
    table, share = np.array([2, 0, 1, 2, 0, 2]), np.array([0.3, 0.0, 0.5, 0.001, 0.1, 0.3])
    together = curves.at(table, share)
    for shard in range(len(table)):
        alone = curves.at(table[shard : shard + 1], share[shard : shard + 1])
        assert [one[0] for one in alone] == [one[shard] for one in together]
    assert together[0][1] == together[0][2] == 0.0
    assert together[0][4] == pytest.approx(0.8)


def test_tables_are_split_where_hot_rows_serve_round_shares() -> None:
    curve = curve_of(ZipfAccess(alpha=1.2))
    served = np.interp(hot_row_shares(curve), curve.rows, curve.lookups)
    np.testing.assert_allclose(served, HOT_LOOKUP_SHARES)
    assert hot_row_shares(None) == []


def test_only_runtimes_that_number_rows_by_access_rate_are_offered_it() -> None:
    def hot(problem: Problem) -> set[float]:
        return {one.storage.hot_row_share for one in enumerate_families(problem).families} - {0.0}

    assert hot(split_problem(runtime="torchrec")) == set()
    assert len(hot(split_problem())) > 1
    table = split_problem().tables[0]
    named = replace(table, constraints=replace(table.constraints, hot_row_fractions=(0.25,)))
    assert hot(make_problem(named, cluster=make_cluster(), runtime="generic")) == {0.25}


def test_a_plan_keeps_hot_rows_near_and_is_verified() -> None:
    """Neither table fits a rank's 16 MB; its hottest rows, which most lookups want, do."""
    problem = split_problem()
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=SolveLimits(time_limit_seconds=2.0))
    assert result.plan is not None
    placement = result.plan.placement
    assert verify(problem, placement) == ()
    for placed in placement.tables:
        hot, cold = placed.shards
        assert (placed.compute_kernel, hot.rank) == (Kernel.FUSED_UVM, cold.rank)
        assert (hot.tier, hot.row_offset, hot.num_rows) == (Tier.HBM, 0, placed.hot_rows)
        assert (cold.tier, cold.row_offset, cold.num_rows) == (Tier.DDR, placed.hot_rows, 100_000 - placed.hot_rows)
        assert placed.hot_rows >= 10_000
    everything_far = replace(problem, runtime="torchrec")
    far = plan(everything_far, cost_model=ROOFLINE, partitioner=Portfolio(), limits=SolveLimits(time_limit_seconds=2.0))
    assert far.plan is not None
    assert result.plan.evaluation.objective_seconds < 0.5 * far.plan.evaluation.objective_seconds
    assert "hottest" in explain(problem, placement, ROOFLINE, max_tables=1).tables[0].reason


def test_bytes_of_a_split_table_are_those_of_its_parts() -> None:
    """k hot rows of 256 B and a remap of 4 B per row near, the other rows far."""
    problem = split_problem()
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=SolveLimits(time_limit_seconds=1.0))
    assert result.plan is not None
    placement = result.plan.placement
    found = bytes_by_tier(problem, placement)
    (one, *_) = placement.tables
    rank, hot = one.shards[0].rank, one.hot_rows
    assert found[rank, Tier.DDR] == (100_000 - hot) * 256
    ledger = score(problem, placement, ROOFLINE).ranks[rank].ledger_bytes[Tier.HBM]
    assert ledger["hot_rows"] == hot * 256
    assert ledger["remap"] == 400_000
    assert {line for line, amount in ledger.items() if amount} <= set(LINES)
    sizes = score(problem, placement, ROOFLINE).shard_bytes
    assert sizes[0] == hot * 256
    assert sizes.sum() == pytest.approx(found.sum())


@pytest.mark.parametrize(("what", "value"), [("row_offset", 1), ("rank", 1), ("tier", Tier.SSD)])
def test_hot_rows_apart_from_the_others_are_rejected(what: str, value: int) -> None:
    problem = split_problem()
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=SolveLimits(time_limit_seconds=1.0))
    assert result.plan is not None
    placed = next(one for one in result.plan.placement.tables if one.shards[0].rank == 0)
    hot, cold = placed.shards
    shards = type(placed.shards).of([replace(hot, **{what: value}), cold])  # type: ignore[arg-type]
    tables = tuple(replace(one, shards=shards) if one is placed else one for one in result.plan.placement.tables)
    assert verify(problem, replace(result.plan.placement, tables=tables)) != ()
    assert verify(replace(problem, runtime="torchrec"), result.plan.placement) != ()


def test_a_split_that_the_user_did_not_list_is_rejected_and_one_of_before_is_listed() -> None:
    problem = split_problem()
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=SolveLimits(time_limit_seconds=1.0))
    assert result.plan is not None
    placement = result.plan.placement
    share = placement.tables[0].hot_rows / 100_000

    def listing(*shares: float) -> Problem:
        tables = tuple(
            replace(table, constraints=replace(table.constraints, hot_row_fractions=shares)) for table in problem.tables
        )
        return replace(problem, tables=tables)

    assert verify(listing(share, placement.tables[1].hot_rows / 100_000), placement) == ()
    for shares in ((), (0.001,)):
        assert {issue.code for issue in verify(listing(*shares), placement)} == {"hot-rows"}
    other = replace(problem, tables=tuple(replace(table, access=ZipfAccess(alpha=1.3)) for table in problem.tables))
    assert share not in {one.storage.hot_row_share for one in enumerate_families(other).families}
    preserved = with_kernels_of(other, placement)
    assert share in {one.storage.hot_row_share for one in enumerate_families(preserved).families}


def test_hosts_without_accelerators_have_no_second_memory() -> None:
    cluster = make_cluster(1, 2, hbm_bytes=0.0)
    table = make_table(access=SKEWED, constraints=TableConstraints(compute_kernels=frozenset({Kernel.FUSED_UVM})))
    found = enumerate_families(make_problem(table, cluster=cluster, runtime="generic"))
    assert found.families == ()
    assert any("no accelerators" in why for _, why in found.scheme_issues[0])


def test_shares_of_shards_are_those_of_the_curves_of_their_tables() -> None:
    """A tenth of 1,000 rows gets 160 of 200 lookups: 100 x (1 - (1 - 0.008)^200) of them are touched, of the others
    900 x (1 - (1 - 0.2 / 900)^200).
    """
    curves = HotRowCurves(accesses=(None, SKEWED), num_rows=(1000, 1000), num_lookups=np.array([200.0, 200.0]))
    lookups, distinct = curves.at(np.array([1, 1, 0]), np.array([0.1, 0.0, 0.1]))
    near, far = 100 * (1 - (1 - 0.008) ** 200), 900 * (1 - (1 - 0.2 / 900) ** 200)
    np.testing.assert_allclose(lookups, [0.8, 0.0, 0.0])
    np.testing.assert_allclose(distinct, [near / (near + far), 0.0, 0.0])
