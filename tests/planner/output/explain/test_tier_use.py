"""Which tiers and rates a plan waits for: rates by hand, and plans whose rows lie in every tier."""

import math
from dataclasses import replace

import pytest

from cost_models.vocabulary import Evidence, Kernel, Phase, Scheme, Tier
from planner.domain.plan.plan import Evaluation, TierLoad
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.output.explain.explanation import Explanation, explain
from planner.output.explain.shadow_prices import AT_LEAST, AT_MOST, RE_EVALUATION, RELAXATION, ShadowPrice
from planner.output.explain.text.explanation import explanation_text
from planner.output.explain.text.layout import WIDTH
from planner.output.explain.tier_use import Binding, binding, binding_rate, busiest_rate
from planner.verification.evaluate_placement import score
from tests.planner.output.explain.test_alternatives import solved
from tests.support.planning.builders import ROOFLINE, SCM, SSD, make_cluster, make_hardware, make_problem, make_table

KERNEL_OF = {
    Tier.DDR: Kernel.FUSED_UVM_CACHING,
    Tier.SCM: Kernel.FUSED_UVM_CACHING,
    Tier.SSD: Kernel.KEY_VALUE,
}
MEDIA = SCM | SSD | {"ssd_write_bytes_per_second": 5e8}


def in_tier(tier: Tier, **changes: float) -> Problem:
    """Two tables on one rank whose rows lie in one tier, behind caches."""
    wanted = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE}),
        compute_kernels=frozenset({KERNEL_OF[tier]}),
        cache_load_factors=(0.1,),
    )
    tables = [make_table(f"t{i}", 100_000, 64, pooling_factor=8.0, constraints=wanted) for i in range(2)]
    other = {"scm_bytes": 0.0} if tier is Tier.DDR else {"ddr_bytes": 20e6} if tier is Tier.SCM else {}
    numbers = MEDIA | other | changes
    return make_problem(*tables, cluster=make_cluster(1, 1, **numbers), runtime="generic")


def evaluated(problem: Problem) -> tuple[Explanation, Evaluation]:
    placement = solved(problem).placement
    return explain(problem, placement, ROOFLINE), score(problem, placement, ROOFLINE)


def load(tier: Tier, read_bytes: float, written_bytes: float, operations: float = 0.0) -> TierLoad:
    return TierLoad(
        tier=tier,
        busiest_rank=0,
        read_bytes=read_bytes,
        written_bytes=written_bytes,
        operations=operations,
        busy_seconds=1.0,
        utilization=0.5,
    )


@pytest.mark.parametrize(
    ("tier", "amounts", "expected"),
    [
        (Tier.DDR, (1.0, 100.0), "ddr_bytes_per_second"),  # reads and writes share one rate
        (Tier.SCM, (5.0, 1.0), "scm_bytes_per_second"),  # 5 s against 2 s
        (Tier.SCM, (5.0, 3.0), "scm_write_bytes_per_second"),  # against 6 s
        (Tier.SSD, (5.0, 1.0, 10.0), "ssd_reads_per_second"),  # 10 operations take 10 s, 5 bytes 5 s
        (Tier.SSD, (5.0, 1.0, 4.0), "ssd_bytes_per_second"),
        (Tier.SSD, (5.0, 2.0, 4.0), "ssd_write_bytes_per_second"),  # 8 s
    ],
)
def test_the_rate_that_takes_most_of_the_time(tier: Tier, amounts: tuple[float, ...], expected: str) -> None:
    known = make_cluster(**MEDIA).hardware
    rates = {
        "ddr_bytes_per_second": 1.0,
        "scm_bytes_per_second": 1.0,
        "scm_write_bytes_per_second": 0.5,
        "ssd_reads_per_second": 1.0,
        "ssd_bytes_per_second": 1.0,
        "ssd_write_bytes_per_second": 0.25,
    }
    numbers = {name: replace(known.numbers[name], value=value) for name, value in rates.items()}
    assert busiest_rate(load(tier, *amounts), replace(known, numbers=numbers)) == expected


def test_hardware_that_states_no_rate_has_none_that_binds() -> None:
    assert busiest_rate(load(Tier.SCM, 1.0, 1.0), make_hardware()) is None


@pytest.mark.parametrize("tier", KERNEL_OF)
def test_the_tier_that_rows_are_fetched_from_and_its_rate_are_named(tier: Tier) -> None:
    """A tier that is a thousand times slower than the link is what the plan waits for; more of its rate saves time."""
    own = {Tier.DDR: "ddr_bytes_per_second", Tier.SCM: "scm_bytes_per_second", Tier.SSD: "ssd_bytes_per_second"}[tier]
    found, evaluation = evaluated(in_tier(tier, **{own: 2e6}))
    assert found.binding.rate == own
    prices = {price.resource: price for price in found.shadow_prices}
    assert binding_rate(found.shadow_prices, Phase.PREFETCH) == own
    saved = prices[own]
    assert saved.saved_seconds == pytest.approx(math.fsum(saved.phase_seconds.values()))
    assert saved.phase_seconds[Phase.PREFETCH] > 0
    uses = {use.tier: use for use in found.tiers}
    assert uses[tier].rate == own
    reported = {one.tier: one for one in evaluation.tiers}
    for use in found.tiers:
        (rank,) = evaluation.ranks
        assert (use.used_bytes, use.capacity_bytes) == (rank.bytes[use.tier], rank.capacity_bytes[use.tier])
        assert use.busy_seconds == (reported[use.tier].busy_seconds if use.tier in reported else 0.0)
    assert uses[Tier.HBM].busiest_rank is None
    document = found.to_document()
    assert document["binding"] == {"rate": own, "tiers": []}
    rates = {phase["name"]: phase["rate"] for phase in document["phases"]}  # type: ignore[attr-defined]
    assert rates["prefetch"] == own
    text = explanation_text(found, name="x")
    assert f"the rate that binds most is {own}" in " ".join(text.split())
    assert f"prefetch          {own}" in text
    assert f"  {tier.label}  " in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_the_tier_whose_bytes_are_short_is_named() -> None:
    """Host memory takes one table of two; the other one is in slower storage-class memory."""
    wanted = TableConstraints(compute_kernels=frozenset({Kernel.FUSED_UVM_CACHING}), cache_load_factors=(0.1,))
    tables = [make_table(f"t{i}", 100_000, 64, pooling_factor=8.0, constraints=wanted) for i in range(2)]
    cluster = make_cluster(1, 1, **MEDIA | {"ddr_bytes": 40e6, "scm_bytes_per_second": 1e7})
    found, _ = evaluated(make_problem(*tables, cluster=cluster, runtime="generic"))
    prices = {price.resource: price.saved_seconds for price in found.shadow_prices}
    assert found.binding.tiers == (Tier.DDR,)
    assert prices["ddr_bytes"] is not None
    assert prices["ddr_bytes"] > prices["scm_bytes"] == prices["hbm_bytes"] == 0
    text = " ".join(explanation_text(found, name="x").split())
    assert "memory that binds: ddr" in text
    assert "hbm_bytes or scm_bytes, 1 GB more on every rank of one host: saves nothing" in text


def price(resource: str, saved_seconds: float | None, method: str = RE_EVALUATION) -> ShadowPrice:
    return ShadowPrice(
        resource=resource,
        change="",
        saved_seconds=saved_seconds,
        direction=AT_MOST if method == RELAXATION else AT_LEAST,
        method=method,
        evidence=Evidence.MEASURED,
        note="",
    )


def test_what_saves_nothing_does_not_bind() -> None:
    prices = [price("hbm_bytes", 1.0, RELAXATION), price("a_rate", 0.0), price("another", None)]
    assert binding(prices, ()) == Binding(rate=None, tiers=())
    assert binding([*prices, price("third", 1e-9)], ()).rate == "third"
    assert binding_rate(prices, Phase.PREFETCH) is None


def test_a_plan_in_the_device_memory_alone_has_no_table_of_tiers() -> None:
    found, _ = evaluated(make_problem(make_table("a", 1000, 64), cluster=make_cluster(1, 2)))
    assert [use.tier for use in found.tiers] == [Tier.HBM]
    assert "What tiers hold" not in explanation_text(found, name="x")
