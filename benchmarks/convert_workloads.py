"""Turn public workload descriptions into specs that `shardplan plan` takes.

    python benchmarks/convert_workloads.py SOURCE_DIR OUT_DIR [--embedding-dim N]

Every ``*.json`` of ``SOURCE_DIR`` that describes tables becomes one spec of the same name.
The world size is one host of 8 ranks, or 2, 4, 8, ... of them until their memory is half
again as large as tables and optimizer state together (outputs and reservations need room
too); models of under 4 GB get two ranks of a host.

What is carried over: rows, widths, features with pooling factors, batch size (a global one
is divided over the ranks), optimizer, weight precision (quantised weights are served, not
trained, so their optimizer is ``none``), a Zipf exponent or reuse histograms where given.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROFILE = "dgx-h100-80g"
HBM_BYTES = 80_000_000_000  # of one rank; only for choosing a world size
RANKS_PER_HOST = 8
ROOM = 1.5  # memory of the cluster / bytes of tables and optimizer state
SMALL_BYTES = 4_000_000_000  # models below this get SMALL_RANKS
SMALL_RANKS = 2
ELEMENT_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0, "int4": 0.5, "int2": 0.25}
#: Bytes of optimizer state per byte of fp32 weights.
STATE_RATIO = {"none": 0.0, "sgd": 0.0, "adagrad": 1.0}


def world(held_bytes: float) -> tuple[int, int]:
    """Hosts and ranks per host for tables and optimizer state of ``held_bytes``."""
    if held_bytes < SMALL_BYTES:
        return 1, SMALL_RANKS
    hosts_needed = held_bytes * ROOM / (HBM_BYTES * RANKS_PER_HOST)
    return 2 ** max(0, math.ceil(math.log2(hosts_needed))), RANKS_PER_HOST


def features(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The features of a table; one of the table's own name where the source lists none."""
    listed = table.get("features") or [{"name": table["name"], "pooling_factor": table["pooling_factor"]}]
    return [{"name": feature["name"], "pooling_factor": float(feature["pooling_factor"])} for feature in listed]


def access(workload: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any] | None:
    """Access statistics where the source has some."""
    histogram = table.get("reuse_rows_hist")
    if histogram and sum(histogram) > 0:
        return {"reuse_histogram": [float(count) for count in histogram]}
    alpha = table.get("access", {}).get("zipf_alpha") or workload.get("access", {}).get("alpha")
    return {"zipf_alpha": float(alpha)} if alpha else None


def to_spec(workload: Mapping[str, Any], *, embedding_dim: int) -> dict[str, Any]:
    """One workload as a spec; ``embedding_dim`` is for sources that give no width."""
    precision = workload.get("weights_precision", "fp32")
    trained = precision in ("fp32", "fp16", "bf16")
    optimizer = workload.get("default_optimizer", "sgd") if trained else "none"
    tables = []
    for table in workload["tables"]:
        entry: dict[str, Any] = {
            "name": table["name"],
            "num_embeddings": table["num_embeddings"],
            "embedding_dim": table.get("embedding_dim", embedding_dim),
            "data_type": precision,
            "pooling": "sum",
            "optimizer": optimizer,
            "features": features(table),
        }
        statistics = access(workload, table)
        if statistics:
            entry["access"] = statistics
        tables.append(entry)
    table_bytes = sum(t["num_embeddings"] * t["embedding_dim"] * ELEMENT_BYTES[precision] for t in tables)
    num_hosts, ranks_per_host = world(table_bytes * (1 + STATE_RATIO[optimizer]))
    batch = int(workload["batch_size"])
    if workload.get("batch_scope", "global") == "global":
        batch = max(1, batch // (num_hosts * ranks_per_host))
    return {
        "schema_version": 1,
        "name": workload["name"],
        "model": {"batch_size_per_rank": batch, "tables": tables},
        "hardware": {"profile": PROFILE, "num_hosts": num_hosts, "ranks_per_host": ranks_per_host},
        "runtime": "torchrec" if trained else "generic",  # TorchRec holds no quantised weights in a training step
    }


def main(arguments: list[str] | None = None) -> int:
    """Convert a folder; print one line per spec."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--embedding-dim", type=int, default=128, help="width of tables whose source gives none")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    converted = 0
    for path in sorted(given.source.glob("*.json")):
        workload = json.loads(path.read_text())
        if not isinstance(workload, dict) or not isinstance(workload.get("tables"), list):
            continue
        spec = to_spec(workload, embedding_dim=given.embedding_dim)
        (given.out / path.name).write_text(json.dumps(spec, indent=1) + "\n")
        hardware = spec["hardware"]
        print(
            f"{path.name}: {len(spec['model']['tables'])} tables on {hardware['num_hosts']} x "
            f"{hardware['ranks_per_host']} ranks, batch {spec['model']['batch_size_per_rank']} per rank"
        )
        converted += 1
    if not converted:
        print(f"no workload found in {given.source}", file=sys.stderr)
    return 0 if converted else 1


if __name__ == "__main__":
    sys.exit(main())
