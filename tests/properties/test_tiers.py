"""What more memory may not do to tables that lie in several tiers."""

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.pricing.price_options import price, prune
from planner.solver.bounds.chain import lower_bound
from tests.properties.problems import is_at_most, optimum, tiered_problems
from tests.support.planning.builders import ROOFLINE, SCM, make_hardware
from tests.support.thorough import thorough

CAREFUL = settings(max_examples=15, derandomize=True, deadline=None, database=None)


def with_hbm(cluster: Cluster, num_bytes: float) -> Cluster:
    return replace(cluster, hardware=make_hardware(hbm_bytes=num_bytes))


def bound(problem: Problem) -> float:
    """The lower bound of the listed cuts."""
    return lower_bound(prune(price(problem, enumerate_families(problem), ROOFLINE)), max_boxes=1).seconds


@thorough
@CAREFUL
@given(tiered_problems(), st.floats(1.0, 3.0))
def test_more_accelerator_memory_never_worsens_a_tiered_model(problem: Problem, times: float) -> None:
    """Neither its optimum nor its bound, which stays below the optimum of the smaller memory, too."""
    hbm_bytes = problem.cluster.hardware.numbers["hbm_bytes"].value
    larger = replace(problem, cluster=with_hbm(problem.cluster, math.ceil(hbm_bytes * times)))
    less, more = optimum(problem), optimum(larger)
    assert less < math.inf, "the host holds all tables"
    assert is_at_most(more, less)
    assert is_at_most(bound(problem), less)
    assert is_at_most(bound(larger), more)
    assert is_at_most(bound(larger), bound(problem) * (1 + 1e-3))


@thorough
@CAREFUL
@given(tiered_problems(), st.floats(0.0, 1.0), st.sampled_from((1e9, 1e11)))
def test_storage_class_memory_never_worsens_a_model_whatever_its_rate(
    problem: Problem, ddr_share: float, bytes_per_second: float
) -> None:
    """Of hosts that hold a share of the tables in host memory; neither the optimum nor the bound below it."""
    held = sum(table.weight_bytes + 8 * table.num_embeddings * table.embedding_dim for table in problem.tables)
    hbm_bytes = problem.cluster.hardware.numbers["hbm_bytes"].value
    numbers = {"hbm_bytes": hbm_bytes, "ddr_bytes": math.floor(held * ddr_share)}
    rates = {"scm_bytes_per_second": bytes_per_second, "scm_write_bytes_per_second": bytes_per_second / 3}
    without, with_scm = (
        replace(problem, runtime="generic", cluster=replace(problem.cluster, hardware=make_hardware(**each)))
        for each in (numbers, numbers | SCM | rates)
    )
    less, more = optimum(without), optimum(with_scm)
    assert more < math.inf, "storage-class memory holds all tables"
    assert is_at_most(more, less)
    assert is_at_most(bound(with_scm), more)
