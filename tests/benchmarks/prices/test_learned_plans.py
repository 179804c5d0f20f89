"""The benchmark of learned plans: it says what it needs, and judges both plans by the learned model."""

import json
from pathlib import Path

import pytest

from benchmarks.prices import learned_plans
from cost_models.vocabulary import Phase
from planner.verification.evaluate_placement import score
from tests.support.planning.launching_model import LaunchingModel


def test_it_says_that_no_costs_were_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["learned_plans.py", "--source", str(tmp_path)])
    assert learned_plans.main() == 2
    assert "no measured costs" in capsys.readouterr().err


def test_tasks_are_cut_as_was_measured_and_rates_replaced() -> None:
    table = {"name": "t", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 2.0}
    spec = {
        "schema_version": 1,
        "model": {"batch_size_per_rank": 64, "tables": [table]},
        "hardware": {
            "profile": "custom",
            "num_hosts": 1,
            "ranks_per_host": 2,
            "overrides": {"hbm_bytes": 10**9, "hbm_bytes_per_second": 1e9, "intra_host_bytes_per_second": 1e9},
        },
        "objective": "max_rank_time",
    }
    json.dumps(spec)
    problem = learned_plans._problem(spec, {"hbm_bytes_per_second": 2e9})  # noqa: SLF001
    assert problem.cluster.hardware.numbers["hbm_bytes_per_second"].value == 2e9
    schemes = problem.tables[0].constraints.sharding_types
    assert schemes is not None
    assert {scheme.label for scheme in schemes} == {"table_wise", "column_wise"}
    model = LaunchingModel(launch_seconds=1.0)
    found = learned_plans._plan(problem, model, 0.5)  # noqa: SLF001
    assert found is not None
    assert found.evaluation.objective_seconds == score(problem, found.placement, model).objective_seconds
    compute, communication = learned_plans._times_as_long(problem, found, model)  # type: ignore[arg-type]  # noqa: SLF001
    assert (compute, communication) == (1.0, 1.0)
    assert found.evaluation.ranks[0].seconds[Phase.FORWARD_COMPUTE] >= 0
