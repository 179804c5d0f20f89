"""Certificates of real plans: objectives, tiers, constraints, runtimes, requests; and what cannot be certified."""

from dataclasses import replace
from typing import Any

import pytest

from cost_models.protocol import CostModel
from cost_models.vocabulary import HOST_KERNELS
from planner.domain.plan.placement import Placement
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.errors import InvalidProblem, UnsupportedRequest
from planner.output.certificate import check as check_certificate
from planner.output.certificate.certify import certify
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.portfolio import Portfolio
from tests.support.planning.builders import ROOFLINE, SCM, TORCHREC, make_cluster, make_problem, make_table
from tests.support.planning.certificates import SPEC_DIGEST, Document, resealed
from tests.support.planning.launching_model import LaunchingModel
from tests.support.planning.long_plans import to_document
from tests.support.thorough import thorough

LIMITS = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.2)


def tables(count: int = 6, **changes: Any) -> list[Any]:
    return [make_table(f"t{i}", 10 ** (3 + i % 3) + 7 * i, (64, 128, 256)[i % 3], **changes) for i in range(count)]


def unequal(ranks_per_host: int = 2) -> Any:
    cluster = make_cluster(2, ranks_per_host)
    return replace(cluster, hbm_bytes_by_rank=(80_000_000, 40_000_000) * ranks_per_host)


ERROR_KINDS: dict[str, Problem] = {
    "one host": make_problem(*tables()),
    "two hosts": make_problem(*tables(), cluster=make_cluster(2, 2)),
    "max_rank_time": make_problem(*tables(), cluster=make_cluster(2, 2), objective="max_rank_time"),
    "little memory": make_problem(*tables(), cluster=make_cluster(2, 2, hbm_bytes=55e6)),
    "unequal memory": make_problem(*tables(), cluster=unequal()),
    "unequal speeds": make_problem(
        *tables(), cluster=replace(make_cluster(2, 2), relative_speed_by_rank=(1.0, 0.5, 1.0, 0.8))
    ),
    "unequal speeds, max_rank_time": make_problem(
        *tables(),
        cluster=replace(make_cluster(2, 2), relative_speed_by_rank=(1.0, 0.5, 1.0, 0.8)),
        objective="max_rank_time",
    ),
    "hidden": make_problem(
        *tables(pooling_factor=60.0),
        cluster=make_cluster(2, 2),
        pipeline="train_sparse_dist",
        dense=Dense(forward_seconds=1e-6),
    ),
    "host memory": make_problem(
        *tables(access=ZipfAccess(alpha=1.05)), cluster=make_cluster(1, 2, hbm_bytes=60e6), kernels=HOST_KERNELS
    ),
    "split by heat": make_problem(
        *tables(access=ZipfAccess(alpha=1.05)),
        cluster=make_cluster(1, 2, hbm_bytes=60e6),
        kernels=HOST_KERNELS,
        runtime="generic",
    ),
    "storage-class memory": make_problem(
        *tables(3),
        cluster=make_cluster(1, 2, hbm_bytes=30e6, ddr_bytes=1e6, **SCM),
        kernels=HOST_KERNELS,
        runtime="generic",
    ),
    "sequences and means": make_problem(
        *tables(3, pooling="none", module_path="s"),
        *(make_table(f"m{i}", 900, 64, pooling="mean", module_path="m") for i in range(2)),
        make_table("beside", 900, 64, module_path="m"),
        cluster=make_cluster(2, 2),
    ),
}


def certified(problem: Problem, cost_model: CostModel = ROOFLINE, *, cp_sat: bool = False) -> tuple[Document, Document]:
    partitioner = CpSat() if cp_sat else Portfolio()
    found = plan(problem, cost_model=cost_model, partitioner=partitioner, limits=LIMITS).plan
    assert found is not None
    document = to_document(found, name="x", spec_digest=SPEC_DIGEST, hardware_profile="test")
    head = {"name": "x", "spec_digest": SPEC_DIGEST, "plan_digest": document["plan_digest"]}
    objective = document["objective"]
    assert isinstance(objective, dict)
    return certify(problem, found.placement, cost_model, head=head, objective=objective), document


@pytest.mark.parametrize("name", ERROR_KINDS)
def test_plans_are_certified_and_checked(name: str) -> None:
    """The certificate costs what the plan says, and proves no more than the optimum allows."""
    certificate, document = certified(ERROR_KINDS[name])
    assert check_certificate.check(certificate, document)
    claim, objective = certificate["claim"], document["objective"]
    assert isinstance(objective, dict)
    assert claim["objective_seconds"] == pytest.approx(objective["seconds"], rel=1e-9)
    assert 0 < claim["bound_seconds"] <= claim["objective_seconds"]
    if objective["lower_bound_seconds"] > 0:
        assert claim["bound_seconds"] >= 0.5 * objective["lower_bound_seconds"]


def test_torchrecs_prices_are_certified_too() -> None:
    certificate, document = certified(make_problem(*tables(), cluster=make_cluster(2, 2)), TORCHREC)
    assert check_certificate.check(certificate, document)
    assert certificate["cost_model"].startswith("torchrec@")


@thorough
def test_hot_rows_are_shards_of_their_own() -> None:
    certificate, document = certified(ERROR_KINDS["split by heat"])
    families = certificate["problem"]["families"]
    assert any(family["hot_rows"] > 0 for family in families)
    assert check_certificate.check(certificate, document)


def test_a_bound_that_a_search_proved_is_not_certified() -> None:
    """CP-SAT proves by exhaustion, which leaves no prices behind: less is certified, and both are told."""
    problem = make_problem(*tables(3), cluster=make_cluster(1, 2), objective="max_rank_time")
    certificate, document = certified(problem, cp_sat=True)
    claim = certificate["claim"]
    assert check_certificate.check(certificate, document)
    assert claim["plan_objective"]["lower_bound_seconds"] >= claim["bound_seconds"]


def test_more_work_proves_no_less() -> None:
    problem = ERROR_KINDS["two hosts"]
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert found is not None
    little, much = (
        certify(problem, found.placement, ROOFLINE, head={}, work_seconds=work)["claim"]["bound_seconds"]
        for work in (1e-9, 2.0)
    )
    assert little <= much


def test_the_same_plan_has_the_same_certificate() -> None:
    one, other = (certified(ERROR_KINDS["one host"])[0] for _ in range(2))
    assert one == other


def test_equal_prices_are_stated_once() -> None:
    problem = make_problem(*(make_table(f"t{i}", 5000, 64) for i in range(4)))
    stated = certified(problem)[0]["problem"]
    assert len(stated["prices"]) <= len(stated["families"]) / 4


def test_a_plan_that_breaks_a_rule_is_not_certified() -> None:
    problem = ERROR_KINDS["one host"]
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert found is not None
    broken = Placement(world_size=4, ranks_per_host=4, tables=found.placement.tables[1:])
    with pytest.raises(InvalidProblem) as caught:
        certify(problem, broken, ROOFLINE, head={})
    assert caught.value.issues[0].code == "missing-table"


def test_prices_of_whole_ranks_are_not_certified() -> None:
    """There is no bound on plans under them."""
    problem = ERROR_KINDS["one host"]
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert found is not None
    with pytest.raises(UnsupportedRequest) as caught:
        certify(problem, found.placement, LaunchingModel(launch_seconds=3e-7), head={})
    assert caught.value.issue.code == "no-certificate"
    assert "roofline" in caught.value.issue.hint


def test_a_certificate_says_nothing_of_plans_for_more_bytes() -> None:
    """The same plan in a cluster with less memory than it takes is refused by what is stated."""
    certificate, _ = certified(ERROR_KINDS["little memory"])
    for rank in certificate["problem"]["capacity_bytes"]:
        rank[0] *= 0.5
    with pytest.raises(ValueError, match=r"more bytes than it has|fits nowhere"):
        check_certificate.check(resealed(certificate))
