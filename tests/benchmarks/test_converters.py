"""The converters of public workloads and of TorchRec's instances write valid specs."""

import json
from pathlib import Path

import pytest

from api.specs.parse import parse_spec
from benchmarks import convert_workloads
from benchmarks.inputs import convert_torchrec_golden
from tests.support.service.specs import raw

GIB = 1024**3


def test_world_sizes() -> None:
    # 8 x 80 GB = 640 GB, half again as large as what is held: one host up to 426 GB, two up to 853 GB
    assert convert_workloads.world(3.9e9) == (1, 2)
    assert convert_workloads.world(4.1e9) == (1, 8)
    assert convert_workloads.world(426e9) == (1, 8)
    assert convert_workloads.world(427e9) == (2, 8)
    assert convert_workloads.world(854e9) == (4, 8)


def test_a_workload_with_everything() -> None:
    workload = {
        "name": "w",
        "batch_size": 64,
        "batch_scope": "global",
        "default_optimizer": "adagrad",
        "weights_precision": "fp32",
        "access": {"distribution": "zipf", "alpha": 1.1},
        "tables": [
            {
                "name": "a",
                "num_embeddings": 100,
                "embedding_dim": 16,
                "features": [{"name": "x", "pooling_factor": 1}, {"name": "y", "pooling_factor": 9}],
            },
            {"name": "b", "num_embeddings": 100, "pooling_factor": 2.0, "reuse_rows_hist": [3, *[0] * 16]},
        ],
    }
    spec = convert_workloads.to_spec(workload, embedding_dim=32)
    first, second = spec["model"]["tables"]
    assert spec["hardware"]["num_hosts"] * spec["hardware"]["ranks_per_host"] == 2
    assert spec["model"]["batch_size_per_rank"] == 32  # 64 over 2 ranks
    assert first["features"] == [{"name": "x", "pooling_factor": 1.0}, {"name": "y", "pooling_factor": 9.0}]
    assert first["access"] == {"zipf_alpha": 1.1}
    assert (second["embedding_dim"], second["features"]) == (32, [{"name": "b", "pooling_factor": 2.0}])
    assert second["access"] == {"reuse_histogram": [3.0, *[0.0] * 16]}
    parse_spec(json.dumps(spec).encode())


def test_quantised_weights_are_not_trained() -> None:
    table = {"name": "a", "num_embeddings": 100, "embedding_dim": 16, "pooling_factor": 1.0}
    workload = {"name": "w", "batch_size": 2, "weights_precision": "int4", "tables": [table]}
    (converted,) = convert_workloads.to_spec(workload, embedding_dim=16)["model"]["tables"]
    assert (converted["data_type"], converted["optimizer"]) == ("int4", "none")
    assert parse_spec(raw(convert_workloads.to_spec(workload, embedding_dim=16)))


def test_every_public_workload_becomes_a_valid_spec(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert_workloads.main([str(shared / "workloads"), str(tmp_path)]) == 0
    sources = [path.name for path in (shared / "workloads").glob("*.json")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(sources)
    assert len(capsys.readouterr().out.splitlines()) == len(sources)
    for path in tmp_path.iterdir():
        parse_spec(path.read_bytes())


def test_golden_instances_become_specs_on_torchrecs_terms(shared: Path, tmp_path: Path) -> None:
    assert convert_torchrec_golden.main([str(shared / "torchrec_golden"), str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == len(list((shared / "torchrec_golden").glob("*.instance.json")))
    request = parse_spec((tmp_path / "dlrm_dcnv2_16.json").read_bytes())
    problem = request.problem
    assert (request.cost_model.name, problem.objective, problem.pipeline) == ("torchrec", "max_rank_time", "none")
    assert (problem.cluster.num_hosts, problem.cluster.ranks_per_host) == (2, 8)
    assert problem.batch_size_per_rank == 4096
    assert problem.cluster.hardware.numbers["hbm_bytes"].value == 80 * GIB
    assert problem.cluster.hardware.numbers["ddr_bytes"].value == 128 * GIB
    assert problem.reservation.hbm_fraction == 0.15


def test_an_empty_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert_workloads.main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert convert_torchrec_golden.main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert "found in" in capsys.readouterr().err
