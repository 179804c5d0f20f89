"""What more hardware would buy: against bounds and plans on the changed hardware itself."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.hardware.hardware import Hardware
from cost_models.hardware.laws.domain_law import DomainLaw
from cost_models.hardware.laws.hosts_law import HostsLaw
from cost_models.hardware.profile_fields import FIELDS
from cost_models.vocabulary import Evidence, Kernel, Tier
from planner.domain.formats.units import GIGABYTE
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.orchestration.placement.listed_plan import find_plan
from planner.output.explain.shadow_prices import ShadowPrice, hardware_prices, memory_price
from planner.pricing.price_options import prune
from planner.solver.bounds.chain import lower_bound
from planner.solver.problem import RelaxationHint, Scope, SolverProblem
from planner.verification.evaluate_placement import score
from tests.planner.output.explain.test_alternatives import solved, three_tables
from tests.support.cost_models.laws import domain_law, hosts_law, laws
from tests.support.planning.builders import (
    ROOFLINE,
    make_cluster,
    make_hardware,
    make_problem,
    make_table,
    random_priced,
)

RATES = ["hbm_bytes_per_second", "intra_host_bytes_per_second", "inter_host_bytes_per_second"]


def on(problem: Problem, hardware: Hardware) -> Problem:
    return replace(problem, cluster=replace(problem.cluster, hardware=hardware))


def prices(problem: Problem, placement: Placement | None = None) -> dict[str, ShadowPrice]:
    """Those of a placement, or of the one that a search finds, which differs with how busy the machine is."""
    found = find_plan(problem, placement or solved(problem).placement, ROOFLINE)
    return {price.resource: price for price in hardware_prices(found, ROOFLINE)}


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
def test_faster_hardware_is_what_the_plan_would_take_on_it(objective: str) -> None:
    """The saving is that of the score from the geometry, with the rate 1.1 times as high."""
    problem = three_tables(objective=objective)
    placement = solved(problem).placement
    found = prices(problem, placement)
    assert list(found) == RATES
    now = score(problem, placement, ROOFLINE).objective_seconds
    for rate, price in found.items():
        hardware = problem.cluster.hardware
        value = hardware.numbers[rate].value * 1.1
        faster = on(problem, hardware.with_overrides({rate: value}, {rate: FIELDS[rate].unit}))
        then = score(faster, placement, ROOFLINE).objective_seconds
        assert price.saved_seconds == pytest.approx(now - then, rel=1e-9, abs=1e-15)
        assert (price.direction, price.method) == ("at_least", "re_evaluation")
        assert price.evidence is Evidence.ESTIMATED
    assert max(price.saved_seconds or 0 for price in found.values()) > 0


@pytest.mark.parametrize(
    ("hosts", "rate", "law"),
    [(1, "intra_host_bytes_per_second", domain_law()), (2, "inter_host_bytes_per_second", hosts_law())],
)
def test_laws_of_a_link_are_scaled_with_it(hosts: int, rate: str, law: DomainLaw | HostsLaw) -> None:
    problem = make_problem(make_table("a", 400_000, 64), cluster=make_cluster(hosts, 2))
    measured = on(problem, problem.cluster.hardware.with_laws(laws(law)))
    placement = solved(measured).placement
    numbers = problem.cluster.hardware.numbers
    link = replace(numbers[rate], value=1.1 * numbers[rate].value)
    hardware = replace(problem.cluster.hardware, numbers={**numbers, rate: link}).with_laws(laws(law.faster(1.1)))
    # A link of a higher rate starts no earlier.
    rates_alone = (replace(one, counts_starts=False) for one in (measured, on(problem, hardware)))
    now, then = (score(one, placement, ROOFLINE).objective_seconds for one in rates_alone)
    assert prices(measured, placement)[rate].saved_seconds == pytest.approx(now - then, rel=1e-9)
    assert now > then


def test_what_is_not_there_or_not_used_has_no_invented_number() -> None:
    one_host = make_problem(make_table("a", 400_000, 64), cluster=make_cluster(1, 2))
    unused = prices(one_host)["inter_host_bytes_per_second"]
    assert (unused.saved_seconds, unused.evidence) == (0.0, None)
    assert "depends on it" in unused.note
    numbers = dict(make_hardware().numbers)
    del numbers["inter_host_bytes_per_second"]
    lacking = prices(on(one_host, replace(make_hardware(), numbers=numbers)))["inter_host_bytes_per_second"]
    assert (lacking.saved_seconds, lacking.evidence) == (None, None)
    assert lacking.note == "test has no such number"


def torn(seed: int, fill: float) -> SolverProblem:
    """A random instance in which the quick cut, over all ranks, takes most bytes."""
    priced = random_priced(seed, num_tables=6, fill=fill)
    quick = np.where(priced.shape_scope == Scope.WORLD, 0.3, 1.0)[:, None]
    return prune(replace(priced, shape_seconds=priced.shape_seconds * quick))


@pytest.mark.parametrize("seed", range(8))
def test_more_memory_lowers_the_bound_by_no_more(seed: int) -> None:
    """Convex: the relaxation's value falls by at most price times bytes."""
    priced = torn(seed, 0.9)
    bound = lower_bound(priced)
    price = memory_price(priced, bound.hint, Evidence.MEASURED, Tier(0))
    assert price.saved_seconds is not None
    assert price.saved_seconds > 0
    per_byte = price.saved_seconds / GIGABYTE / priced.ranks_per_host
    for more in (1.0, 5.0, 40.0):
        capacity = priced.capacity_bytes.copy()
        capacity[: priced.ranks_per_host] += more
        roomier = lower_bound(replace(priced, capacity_bytes=capacity)).seconds
        assert bound.seconds - roomier <= per_byte * more * priced.ranks_per_host * 1.001 + 1e-4


def test_memory_has_a_price_where_it_is_short_and_none_where_it_is_not() -> None:
    def price(fill: float) -> ShadowPrice:
        priced = torn(3, fill)
        return memory_price(priced, lower_bound(priced).hint, Evidence.GIVEN, Tier.HBM)

    short, plenty = price(0.9), price(0.2)
    assert short.saved_seconds is not None
    assert short.saved_seconds > 0
    assert (short.direction, short.method, short.evidence) == ("at_most", "relaxation", Evidence.GIVEN)
    assert plenty.saved_seconds == 0
    assert "does not depend on it" in plenty.note


def test_without_a_relaxation_nothing_is_known() -> None:
    price = memory_price(random_priced(0), None, Evidence.GIVEN, Tier.HBM)
    assert (price.saved_seconds, price.evidence) == (None, None)
    assert "nothing is known" in price.note


def test_the_price_is_for_a_host_full_of_ranks() -> None:
    none = np.zeros(3, dtype=np.int64)
    hint = RelaxationHint(option=none, second_option=none, slowest_seconds=np.zeros(2), memory_price=np.array([2e-12]))
    price = memory_price(random_priced(0, num_hosts=2, ranks_per_host=3), hint, Evidence.GIVEN, Tier.HBM)
    assert price.saved_seconds == pytest.approx(2e-12 * GIGABYTE * 3)


def test_host_memory_has_prices_where_rows_lie_there() -> None:
    """Kernels read rows through the link, and updates write to host memory while they read it, at one rate together."""
    far = TableConstraints(compute_kernels=frozenset({Kernel.FUSED_UVM}))
    found = prices(make_problem(make_table(rows=100_000, constraints=far)))
    assert found["host_link_bytes_per_second"].saved_seconds is not None
    assert found["host_link_bytes_per_second"].saved_seconds > 0
    assert found["ddr_bytes_per_second"].saved_seconds > 0
    assert "host_link_bytes_per_second" not in prices(make_problem(make_table(rows=100_000)))
