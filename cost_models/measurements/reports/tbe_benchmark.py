"""Reads the results of dynamicemb's benchmark of batched tables (NVIDIA recsys-examples), FBGEMM's side of them.

The file is a list of configurations that were run on one GPU, each with the milliseconds of dynamicemb's hash tables
(``dyn_*``) and of FBGEMM's table-batched embedding (``trc_*``), means over all iterations. Ids are the same for both,
``avg_n_total`` of all tables per batch, ``avg_n_unique`` of them distinct. Tables are fp32. Their place is in the
label alone: FBGEMM's lie in device memory in the mode ``gpu``; in ``no_hbm`` **and** ``no_caching`` they lie in host
memory, whatever part dynamicemb keeps on the device, and in ``caching`` in host memory with a cache. The rows of the
schema are of device memory, so that the others are left out.

References
----------
NVIDIA/recsys-examples, ``corelib/dynamicemb/benchmark/benchmark_batched_dynamicemb_tables.py``.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from cost_models.measurements.cells import refused
from cost_models.measurements.reports.report import NOTHING_STATED, Report, Stated, cell_text, report_of

_NEEDED: Mapping[str, type | tuple[type, ...]] = {
    "num_tables": int,
    "batch_size": int,
    "embedding_dim": int,
    "optimizer_type": str,
    "caching": bool,
    "pooling_mode": str,
    "num_embeddings_per_feature": list,
    "avg_n_total": (int, float),
    "avg_n_unique": (int, float),
}
#: State of an optimizer, in bytes: per element, and per row.
_STATE_BYTES = {"sgd": (0.0, 0.0), "adam": (8.0, 0.0), "exact_adagrad": (4.0, 0.0), "rowwise_adagrad": (0.0, 4.0)}
_ELEMENT_BYTES = 4.0
_MOST_MILLISECONDS = 1e9
_MARK = "trc_forward_ms"
#: The mode in a label whose tables lie in device memory.
_ON_DEVICE = "_gpu_"


def is_tbe_benchmark(content: object) -> bool:
    """Whether a JSON document is a list of results of this benchmark."""
    return isinstance(content, list) and any(isinstance(one, dict) and _MARK in one for one in content)


def read_tbe_benchmark(content: Sequence[object], *, name: str, stated: Stated = NOTHING_STATED) -> Report:
    """Return one launch for each configuration, with a row for each of its tables.

    Raises
    ------
    InvalidMeasurements
        A configuration lacks a field, or no configuration can be used.
    """
    rows: list[dict[str, object]] = []
    read, left_out = [], []
    for index, one in enumerate(content):
        where = f"/{index}"
        if not isinstance(one, dict):
            raise refused(f"{where}: expected an object for each configuration")
        label = cell_text(str(one.get("label", ""))) or f"configuration {index}"
        if (why := _why_not(one)) is not None:
            left_out.append(f"{where} ({label}): {why}")
            continue
        for field, expected in _NEEDED.items():
            if field not in one or not isinstance(one[field], expected):
                raise refused(f"{where}/{field}: missing, or of another type than the benchmark writes")
        if len(one["num_embeddings_per_feature"]) != one["num_tables"] or one["num_tables"] < 1:
            raise refused(f"{where}/num_embeddings_per_feature: expected one number for each of num_tables")
        device = stated.device or cell_text(str(one.get("gpu_name", "")))
        if not device:
            raise refused(
                f"{where}/gpu_name: the configuration does not say which GPU it ran on:"
                " shardplan measurements import --device"
            )
        rows += _rows(one, index, f"{cell_text(PurePath(name).name)[:30]}:{index}", device)
        read.append(f"{where} ({label}): {one['num_tables']} tables on {device}, fbgemm_tbe")
    if read:
        left_out.append(f"{len(read)} times of dynamicemb's own hash tables (dyn_*): plans have no such kernel")
    return report_of(rows, read, left_out, what="result of FBGEMM's tables")


def _why_not(one: Mapping[str, object]) -> str | None:
    if one.get(_MARK) is None or one.get("trc_backward_ms") is None:
        return "FBGEMM's tables were not run, forward and backward"
    if _ON_DEVICE not in str(one.get("label", "")) or one.get("caching") is not False:
        return "FBGEMM's tables are not in device memory, by the mode in its label, and rows of lookups are of that"
    if str(one.get("optimizer_type")) not in _STATE_BYTES:
        return f"the optimizer {cell_text(str(one.get('optimizer_type')))} is not known"
    return None


def _rows(one: Mapping[str, object], launch: int, task: str, device: str) -> list[dict[str, object]]:
    tables = one["num_embeddings_per_feature"]
    assert isinstance(tables, list)
    forward, backward = _seconds(one, launch, _MARK), _seconds(one, launch, "trc_backward_ms")
    lookups = float(str(one["avg_n_total"])) / len(tables)
    per_element, per_row = _STATE_BYTES[str(one["optimizer_type"])]
    is_pooled = one["pooling_mode"] != "none"
    row: dict[str, object] = {
        "kind": "lookup",
        "launch": launch,
        "task": task,
        "device": device,
        "library": "fbgemm by recsys-examples",
        "implementation": "fbgemm_tbe",
        "num_ranks": 1,
        "ranks_per_host": 1,
        "shard_columns": one["embedding_dim"],
        "element_bytes": _ELEMENT_BYTES,
        "output_element_bytes": _ELEMENT_BYTES,
        "optimizer_element_bytes": per_element,
        "optimizer_row_bytes": per_row,
        "lookups": lookups,
        "outputs": float(str(one["batch_size"])) if is_pooled else lookups,
        "distinct_rows": float(str(one["avg_n_unique"])) / len(tables),
        "forward_seconds": forward,
        "backward_seconds": backward,
        "seconds": forward + backward,
    }
    if one.get("feature_distribution") == "pow-law" and isinstance(one.get("alpha"), int | float):
        row["zipf_alpha"] = float(str(one["alpha"]))
    return [{**row, "table": f"t{index}", "shard_rows": num_rows} for index, num_rows in enumerate(tables)]


def _seconds(one: Mapping[str, object], launch: int, field: str) -> float:
    value = one[field]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_MILLISECONDS:
        raise refused(f"/{launch}/{field}: expected a number of milliseconds")
    return value / 1e3
