"""A sweep of 60 points of Meta's 856 tables, how long it takes, and its front against brute force.

    python benchmarks/studies/sweep.py META_DLRM_2021 [--tables 856] [--work-limit 3] [--processes 2] [--unpruned]

Six clusters and ten batches, the tables as fp16 of 128 columns. Prints the seconds of the whole sweep, of its points,
and the front. ``--unpruned`` plans all points again without cutoffs and prints whether both fronts are alike.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from api.cli.study.local import Ended, StudyFolder, run_study
from api.services.studies.kinds.registry import parse_study, study_of
from api.specs.references.resolve import Library
from planner.solver.partitioners.kernels.warm_up import warm

COLUMNS = 128
BATCHES = (256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
CLUSTERS = (
    ("dgx-h100-80g", 3),
    ("dgx-h100-80g", 4),
    ("dgx-h100-80g", 8),
    ("dgx-a100-80g", 3),
    ("dgx-a100-80g", 4),
    ("dgx-a100-80g", 8),
)
#: Made-up prices in the ratio of public clouds of 2025: what counts is that they differ.
PRICES = {"dgx-h100-80g": {"price_per_host_hour": 60.0}, "dgx-a100-80g": {"price_per_host_hour": 30.0}}

#: The time limit of a point in units of its work: a busy machine changes no plan.
_TIMES = 10


def study(folder: Path, *, num_tables: int, work_seconds: float, prune: bool) -> dict[str, Any]:
    """Return the request of the sweep."""
    tables = json.loads((folder / "tables.json").read_text())["tables"][:num_tables]
    return {
        "kind": "sweep",
        "name": f"meta-{len(tables)}",
        "spec": {
            "name": f"meta-{len(tables)}",
            "model": {
                "batch_size_per_rank": BATCHES[0],
                "dense": {"forward_seconds": 0.002, "backward_seconds": 0.004, "parameter_bytes": 60_000_000},
                "tables": [_table(index, table) for index, table in enumerate(tables)],
            },
            "hardware": {"profile": CLUSTERS[0][0]},
            "solver": {"work_limit_seconds": work_seconds, "time_limit_seconds": _TIMES * work_seconds},
        },
        "axes": [
            {
                "variants": [
                    {
                        "label": f"{profile} x {hosts}",
                        "set": {"hardware.profile": profile, "hardware.num_hosts": hosts},
                    }
                    for profile, hosts in CLUSTERS
                ]
            },
            {"field": "model.batch_size_per_rank", "values": sorted(BATCHES, reverse=True)},
        ],
        "front": ["samples_per_second", "price_per_hour"],
        "prices": PRICES,
        "prune": prune,
    }


def _table(index: int, table: Mapping[str, Any]) -> dict[str, Any]:
    counts = [float(count) for count in table["reuse_rows_hist"]]
    return {
        "name": f"t{index}",
        "num_embeddings": table["num_embeddings"],
        "embedding_dim": COLUMNS,
        "data_type": "fp16",
        "pooling_factor": table["pooling_factor"],
        **({"access": {"reuse_histogram": counts}} if any(counts) else {}),
    }


def run(request: Mapping[str, Any], num_processes: int) -> tuple[dict[str, Ended], dict[str, Any], float]:
    """Run a study in a new folder; return its points, its answer and its seconds."""
    one = study_of(parse_study(json.dumps(request).encode()))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        store = StudyFolder(Path(folder))
        found = run_study(
            one,
            store,
            library=Library(find_plan=store.find_plan),
            num_processes=num_processes,
            form="compact",
            on_point=lambda point, outcome, _: print(
                f"{time.monotonic() - began:7.1f} s  {point.key}: {outcome.state} {outcome.limit or ''}", flush=True
            ),
        )
    return found, one.answer({key: ended.outcome for key, ended in found.items()}), time.monotonic() - began


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--tables", type=int, default=856)
    parser.add_argument("--work-limit", type=float, default=3.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--unpruned", action="store_true")
    options = parser.parse_args()
    if not (options.source / "tables.json").exists():
        sys.exit(f"there is no {options.source}/tables.json: give the folder of Meta's data set of 2021")
    warm()

    def asked(*, prune: bool) -> dict[str, Any]:
        limit = options.work_limit
        return study(options.source, num_tables=options.tables, work_seconds=limit, prune=prune)

    found, answer, seconds = run(asked(prune=True), options.processes)
    limits = [ended.outcome.limit for ended in found.values()]
    print(f"{len(found)} points in {seconds:.1f} s, {limits.count('cutoff')} of them cut off by their bounds")
    standing = {one["key"]: one for one in answer["front"]["points"]}
    for one in answer["front"]["points"]:
        if one["standing"] == "front":
            figures = found[one["key"]].outcome.figures
            assert figures is not None
            print(
                f"front: {one['key']}: {figures.samples_per_second:,.0f} samples/s, {figures.price_per_hour:,.0f}"
                f" an hour, gap {found[one['key']].outcome.relative_gap:.2%}, proven: {one['is_proven']}"
            )
    counts = {name: sum(one["standing"] == name for one in standing.values()) for name in ("dominated", "undecided")}
    print(f"{counts['dominated']} points are proven to be off the front, {counts['undecided']} are not decided")
    if options.unpruned:
        _, whole, seconds = run(asked(prune=False), options.processes)
        alike = _front(whole) == _front(answer)
        print(f"without cutoffs {seconds:.1f} s; the fronts are {'alike' if alike else 'not alike'}")


def _front(answer: Mapping[str, Any]) -> set[str]:
    return {one["key"] for one in answer["front"]["points"] if one["standing"] == "front"}


if __name__ == "__main__":
    main()
