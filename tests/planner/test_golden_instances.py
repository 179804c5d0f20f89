"""Ours against TorchRec's planner on its own objective and estimator: never worse."""

from dataclasses import replace

import pytest

from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Scheme
from planner.domain.problem.problem import Problem, Reservation
from planner.domain.problem.table import TableConstraints
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.verify import verify
from tests.support.golden.torchrec_golden import INFEASIBLE, TORCHREC_MILLISECONDS, golden_instance
from tests.support.planning.builders import TORCHREC, make_cluster, make_problem, make_table
from tests.support.thorough import thorough

_TORCHREC_SCHEMES = frozenset({Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE})


def load(name: str) -> Problem:
    """An instance on TorchRec's terms: its constants, its reservation, its objective."""
    instance = golden_instance(name)
    numbers = {key: quantity.value for key, quantity in load_profile("torchrec-default").numbers.items()}
    cluster = make_cluster(instance.num_hosts, instance.ranks_per_host, **(numbers | {"hbm_bytes": instance.hbm_bytes}))
    tables = [
        make_table(t.name, t.num_embeddings, t.embedding_dim, pooling_factor=t.pooling_factor, data_type=t.data_type)
        for t in instance.tables
    ]
    return make_problem(
        *tables,
        cluster=cluster,
        batch_size_per_rank=instance.batch_size_per_rank,
        reservation=Reservation(),
        objective="max_rank_time",
    )


@pytest.mark.parametrize("name", TORCHREC_MILLISECONDS)
def test_never_worse_than_torchrec(name: str) -> None:
    problem = load(name)
    result = plan(
        problem,
        cost_model=TORCHREC,
        partitioner=make_partitioner("portfolio"),
        limits=SolveLimits(time_limit_seconds=5.0),
    )
    assert result.plan is not None
    assert verify(problem, result.plan.placement) == ()
    found = result.plan.evaluation.max_rank_time_seconds * 1e3
    assert result.plan.lower_bound_seconds * 1e3 <= found <= TORCHREC_MILLISECONDS[name] * (1 + 1e-4)


@thorough
@pytest.mark.parametrize(("name", "milliseconds"), [("dlrm_dcnv2_8", 4.0708), ("dlrm_dcnv2_16", 7.0971)])
def test_proven_in_torchrecs_own_search_space(name: str, milliseconds: float) -> None:
    """TorchRec lists no column cut of tables this narrow; among its cuts the best plan is known."""
    problem = load(name)
    only = TableConstraints(sharding_types=_TORCHREC_SCHEMES)
    problem = replace(problem, tables=tuple(replace(table, constraints=only) for table in problem.tables))
    limits = SolveLimits(time_limit_seconds=600.0, relative_gap=0.0)
    result = plan(problem, cost_model=TORCHREC, partitioner=make_partitioner("cp_sat"), limits=limits)
    assert result.plan is not None
    assert result.plan.reason == "OPTIMAL"
    assert round(result.plan.lower_bound_seconds * 1e3, 4) == milliseconds
    assert round(result.plan.evaluation.max_rank_time_seconds * 1e3, 4) == milliseconds < TORCHREC_MILLISECONDS[name]


def test_infeasible_instance_says_by_how_much() -> None:
    problem = load(INFEASIBLE)
    hardware = problem.cluster.hardware.with_overrides({"ddr_bytes": 0}, {"ddr_bytes": "bytes"})
    result = plan(
        replace(problem, cluster=replace(problem.cluster, hardware=hardware)),
        cost_model=TORCHREC,
        partitioner=make_partitioner("portfolio"),
        limits=SolveLimits(time_limit_seconds=5.0),
    )
    assert result.reason == "INFEASIBLE"
    (short,) = result.shortfalls
    assert short.resource == "hbm"
    assert short.required_bytes > 4 * short.available_bytes > 0
