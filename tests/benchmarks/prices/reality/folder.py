"""A made-up folder in the shared format: two systems, submissions that are left out, and a series of another kind."""

import csv
import gzip
import json
from pathlib import Path

COLUMNS = (
    "row_id", "duplicate_of", "round", "gpu_short", "nodes", "gpus", "nvlink_domain", "global_batch",
    "mixed_precision", "sharding_plan", "mem_comm_bw_ratio", "dp_sharding_threshold_gb", "step_ms_train_median",
)  # fmt: skip
ROWS = (
    ("a", "", "v9.0", "H100", "1", "8", "8", "55296", "true", "auto", "7", "0.008", "4.0"),
    ("b", "", "v9.0", "H100", "1", "8", "8", "55296", "true", "auto", "7", "0.008", "5.0"),
    ("c", "", "v9.0", "A100", "2", "16", "8", "32768", "true", "hier_auto", "67", "0(default)", "6.0"),
    ("d", "a", "v9.0", "H100", "1", "8", "8", "55296", "true", "auto", "7", "0.008", "4.0"),
    ("e", "", "v9.0", "L40S", "1", "8", "0", "55296", "true", "auto", "7", "0.008", "20.0"),
    ("f", "", "v9.0", "H100", "1", "8", "0", "55296", "true", "auto", "7", "0.008", "40.0"),
    ("g", "", "v9.0", "H100", "1", "16", "16", "55296", "true", "auto", "7", "0.008", "2.0"),
)


def make_folder(folder: Path) -> Path:
    """Write the folder and return it."""
    with (folder / "held_out_steps.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *ROWS])
    (folder / "others.csv.gz").write_bytes(gzip.compress(b"op,bytes\nall_reduce,8\nall_reduce,16\n"))
    matrix = [[20, 21], [20, 21], [20, 19], [20, 22], [20, 14], [20, 11], [20, 9], [20, 0, 1, 2, 4, 10, 23]]
    replicas = [index for index in range(26) if not any(index in row for row in matrix)]
    plan = {"row_id": "b", "shard_matrix": matrix, "data_parallel": replicas}
    (folder / "plans.json").write_text(json.dumps({"plans": [plan]}))
    return folder
