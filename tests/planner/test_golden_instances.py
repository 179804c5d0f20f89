"""Ours against TorchRec's planner on its own objective and estimator: never worse."""

import json
from pathlib import Path

import pytest

from cost_models.profiles_loader import load_profile
from planner.domain.problem import Problem, Reservation
from planner.memory import TORCHREC as TORCHREC_LEDGER
from planner.partitioners.base import SolveLimits
from planner.partitioners.registry import make_partitioner
from planner.pipeline import plan
from planner.verify import verify
from tests.planner.builders import GIB, TORCHREC, make_cluster, make_problem, make_table

#: What TorchRec 1.8.0 with default settings and 15% reservation reached, ms (slowest rank).
TORCHREC_MILLISECONDS = {
    "dlrm_dcnv2_8": 4.1733,
    "dlrm_dcnv2_16": 8.1164,
    "synth_50_8": 9.8219,
    "synth_50_16": 16.9402,
    "synth_200_16": 51.7490,
}


def load(folder: Path, name: str) -> Problem:
    instance = json.loads((folder / "torchrec_golden" / f"{name}.instance.json").read_text())
    default = load_profile("torchrec-default")
    numbers = {key: quantity.value for key, quantity in default.numbers.items()}
    local = instance["local_world_size"]
    cluster = make_cluster(
        instance["world_size"] // local, local, **(numbers | {"hbm_bytes": instance["hbm_gb"] * GIB})
    )
    tables = [
        make_table(
            t["name"],
            t["num_embeddings"],
            t["embedding_dim"],
            pooling_factor=t["pooling_factor"],
            data_type=t["data_type"],
        )
        for t in instance["tables"]
    ]
    return make_problem(
        *tables,
        cluster=cluster,
        batch_size_per_rank=instance["batch_size"],
        reservation=Reservation(),
        objective="max_rank_time",
    )


@pytest.mark.parametrize("name", TORCHREC_MILLISECONDS)
def test_never_worse_than_torchrec(shared: Path, name: str) -> None:
    problem = load(shared, name)
    result = plan(
        problem,
        cost_model=TORCHREC,
        partitioner=make_partitioner("portfolio"),
        limits=SolveLimits(time_limit_seconds=5.0),
    )
    assert result.plan is not None
    assert verify(problem, result.plan.placement, rules=TORCHREC_LEDGER) == ()
    found = result.plan.evaluation.max_rank_time_seconds * 1e3
    assert result.plan.lower_bound_seconds * 1e3 <= found <= TORCHREC_MILLISECONDS[name] * (1 + 1e-4)


def test_infeasible_instance_says_by_how_much(shared: Path) -> None:
    result = plan(
        load(shared, "fail_infeasible"),
        cost_model=TORCHREC,
        partitioner=make_partitioner("portfolio"),
        limits=SolveLimits(time_limit_seconds=5.0),
    )
    assert result.reason == "INFEASIBLE"
    (short,) = result.shortfalls
    assert short.resource == "hbm"
    assert short.required_bytes > 4 * short.available_bytes > 0
