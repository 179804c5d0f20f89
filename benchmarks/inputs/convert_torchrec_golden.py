"""Turn instances that TorchRec's planner was run on into specs on TorchRec's own terms.

    python benchmarks/inputs/convert_torchrec_golden.py SOURCE_DIR OUT_DIR

Each ``NAME.instance.json`` (batch per rank, GiB per rank, pooling factors) becomes
``NAME.json`` with TorchRec's estimator, TorchRec's objective (``max_rank_time``), TorchRec's
default constants and reservation, no pipeline, SGD and message types left to the estimator:
the settings that its planner was run with.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUFFIX = ".instance.json"
GIBIBYTE = 1024**3
GIGABYTE = 1_000_000_000


def overrides(instance: Mapping[str, Any]) -> dict[str, int]:
    """Capacities and link speeds of the instance; ``null`` leaves TorchRec's default."""
    given = {"hbm_bytes": instance["hbm_gb"] * GIBIBYTE, "ddr_bytes": instance["ddr_gb"] * GIBIBYTE}
    for theirs, ours in (
        ("intra_bw_gbps", "intra_host_bytes_per_second"),
        ("inter_bw_gbps", "inter_host_bytes_per_second"),
    ):
        if instance.get(theirs) is not None:
            given[ours] = instance[theirs] * GIGABYTE
    return given


def to_spec(instance: Mapping[str, Any], *, time_limit_seconds: float) -> dict[str, Any]:
    """One instance as a spec."""
    return {
        "schema_version": 1,
        "name": instance["name"],
        "model": {
            "batch_size_per_rank": instance["batch_size"],
            "pipeline": "none",
            "tables": [
                {
                    "name": table["name"],
                    "num_embeddings": table["num_embeddings"],
                    "embedding_dim": table["embedding_dim"],
                    "data_type": table["data_type"],
                    "optimizer": "sgd",
                    "features": [{"name": f"f_{table['name']}", "pooling_factor": table["pooling_factor"]}],
                }
                for table in instance["tables"]
            ],
        },
        "hardware": {
            "profile": "torchrec-default",
            "num_hosts": instance["world_size"] // instance["local_world_size"],
            "ranks_per_host": instance["local_world_size"],
            "overrides": overrides(instance),
        },
        "constraints": {"reserved_hbm_fraction": 0.15},
        "objective": "max_rank_time",
        "cost_model": "torchrec",
        "solver": {"partitioner": "portfolio", "time_limit_seconds": time_limit_seconds, "relative_gap": 0.0},
    }


def main(arguments: list[str] | None = None) -> int:
    """Convert a folder; print one line per spec."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds per solve")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    paths = sorted(given.source.glob(f"*{SUFFIX}"))
    for path in paths:
        spec = to_spec(json.loads(path.read_text()), time_limit_seconds=given.time_limit)
        target = given.out / f"{path.name.removesuffix(SUFFIX)}.json"
        target.write_text(json.dumps(spec, indent=1) + "\n")
        print(f"{target.name}: {len(spec['model']['tables'])} tables")
    if not paths:
        print(f"no *{SUFFIX} found in {given.source}", file=sys.stderr)
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main())
