"""Results of dynamicemb's benchmark: FBGEMM's tables in device memory become lookups, the rest is left out."""

import json
from pathlib import Path

import pytest

from cost_models.errors import InvalidMeasurements
from cost_models.measurements.files import read_report
from cost_models.measurements.reports.report import Stated


def result(mode: str = "gpu", **changes: object) -> dict[str, object]:
    """A result in the form of the benchmark, with numbers of our own."""
    return {
        "label": f"T2_totalB2000_D64_adam_{mode}_pool=none_cap=1M",
        "gpu_name": "NVIDIA H100 80GB HBM3",
        "num_tables": 2,
        "batch_size": 1000,
        "embedding_dim": 64,
        "optimizer_type": "adam",
        "caching": mode == "caching",
        "cache_footprint_ratio": None,
        "pooling_mode": "none",
        "num_embeddings_per_feature": [1_000_000, 2_000_000],
        "feature_distribution": "pow-law",
        "alpha": 1.05,
        "max_hotness": 10,
        "avg_n_unique": 1200.5,
        "avg_n_total": 2000.0,
        "dyn_forward_ms": 0.5,
        "trc_forward_ms": 0.25,
        "trc_backward_ms": 0.75,
        "trc_train_ms": 1.0,
        "trc_eval_ms": 0.3,
        **changes,
    }


def written(tmp_path: Path, *results: object) -> Path:
    path = tmp_path / "benchmark_results.json"
    path.write_text(json.dumps(list(results), indent=2))
    return path


def test_a_configuration_is_a_launch_of_its_tables(tmp_path: Path) -> None:
    report = read_report(written(tmp_path, result()))
    rows = report.rows
    assert rows.counts("shard_rows").tolist() == [1_000_000, 2_000_000]
    assert rows.numbers("lookups").tolist() == rows.numbers("outputs").tolist() == [1000, 1000]
    assert rows.numbers("distinct_rows").tolist() == [600.25, 600.25]
    assert set(rows.numbers("seconds")) == {1e-3}
    assert set(rows.numbers("optimizer_element_bytes")) == {8.0}
    assert set(rows.text("implementation")) == {"fbgemm_tbe"}
    assert set(rows.text("device")) == {"NVIDIA H100 80GB HBM3"}
    assert len(set(rows.counts("launch"))) == 1
    assert report.left_out == ("1 times of dynamicemb's own hash tables (dyn_*): plans have no such kernel",)


def test_pooled_tables_write_a_row_for_each_sample(tmp_path: Path) -> None:
    rows = read_report(written(tmp_path, result(pooling_mode="sum", avg_n_total=11_000.0))).rows
    assert rows.numbers("lookups").tolist() == [5500, 5500]
    assert rows.numbers("outputs").tolist() == [1000, 1000]


@pytest.mark.parametrize("mode", ["caching", "no_hbm", "no_caching"])
def test_tables_in_host_memory_are_left_out(tmp_path: Path, mode: str) -> None:
    report = read_report(written(tmp_path, result(), result(mode)))
    assert report.rows.num_rows == 2
    assert report.left_out[0].startswith("/1 (")
    assert "not in device memory" in report.left_out[0]


def test_older_results_name_no_gpu(tmp_path: Path) -> None:
    old = {key: value for key, value in result().items() if key not in ("gpu_name", "alpha")}
    with pytest.raises(InvalidMeasurements, match=r"/0/gpu_name: .*import --device"):
        read_report(written(tmp_path, old))
    assert set(read_report(written(tmp_path, old), Stated(device="H100")).rows.text("device")) == {"H100"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"avg_n_total": "many"}, "/0/avg_n_total: "),
        ({"num_tables": 3}, "/0/num_embeddings_per_feature: "),
        ({"trc_forward_ms": "fast"}, "/0/trc_forward_ms: "),
        ({"trc_forward_ms": 10**400}, "/0/trc_forward_ms: "),
        ({"embedding_dim": 2**70}, "shard_columns: expected a whole number"),
        ({"optimizer_type": ["adam"]}, "is not known"),
        ({"avg_n_unique": 5000.0}, "distinct_rows: more than lookups"),
        ({"optimizer_type": "lion"}, "lion is not known"),
        ({"trc_backward_ms": None}, "were not run"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidMeasurements) as caught:
        read_report(written(tmp_path, result(**changes)))
    assert reason in str(caught.value)


def test_json_of_another_kind_is_refused(tmp_path: Path) -> None:
    for content in ({"tables": []}, [{"label": "x"}]):
        path = tmp_path / "other.json"
        path.write_text(json.dumps(content))
        with pytest.raises(InvalidMeasurements, match="JSON of another kind; expected rows of shardplan"):
            read_report(path)
