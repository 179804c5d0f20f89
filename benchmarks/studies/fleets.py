"""The smallest fleet of public models: which are proven, with how many solves.

    python benchmarks/studies/fleets.py WORKLOADS [--times 2.5] [--hosts 16] [--work-limit 2] [--only NAME]

Every model that the folder describes is planned on the fewest hosts of eight H100 that hold it; the target is so many
times its rate there. Prints the fewest hosts that reach the target, what is proven of fewer, and the seconds.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from api.cli.study.local import Ended, StudyFolder, run_study
from api.services.studies.kinds.registry import parse_study, study_of
from api.specs.references.resolve import Library
from benchmarks.inputs.public_models import workload_specs
from planner.solver.partitioners.kernels.warm_up import warm

PROFILE = "dgx-h100-80g"
#: The time limit of a point in units of its work: a busy machine changes no plan.
_TIMES = 10


def run(request: Mapping[str, Any], num_processes: int) -> tuple[dict[str, Ended], dict[str, Any]]:
    """Run a study in a new folder; return its points and its answer."""
    one = study_of(parse_study(json.dumps(request).encode()))
    with tempfile.TemporaryDirectory() as folder:
        store = StudyFolder(Path(folder))
        found = run_study(
            one,
            store,
            library=Library(find_plan=store.find_plan),
            num_processes=num_processes,
            form="compact",
            on_point=lambda *_: None,
        )
    return found, one.answer({key: ended.outcome for key, ended in found.items()})


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", type=Path)
    parser.add_argument("--times", type=float, default=2.5)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--work-limit", type=float, default=2.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warm()
    num_models = num_proven = 0
    for spec in workload_specs(options.workloads):
        if options.only not in spec["name"]:
            continue
        began = time.monotonic()
        spec["hardware"] = {"profile": PROFILE}
        spec["solver"] = {"work_limit_seconds": options.work_limit, "time_limit_seconds": _TIMES * options.work_limit}
        fleet = {"kind": "smallest_fleet", "spec": spec, "host_range": {"first": 1, "last": options.hosts, "step": 1}}
        found, least = run({**fleet, "target": {"samples_per_second": 1e-9}}, options.processes)
        smallest = least["machines"][0]
        if smallest["key"] is None:
            print(f"{spec['name']}: no plan on up to {options.hosts} hosts")
            continue
        figures = found[smallest["key"]].outcome.figures
        assert figures is not None
        assert figures.samples_per_second is not None
        target = options.times * figures.samples_per_second
        points, answer = run({**fleet, "target": {"samples_per_second": target}}, options.processes)
        (one,) = answer["machines"]
        num_models, num_proven = num_models + 1, num_proven + one["is_proven"]
        print(
            f"{spec['name']}: on {smallest['fewest_hosts']} at {figures.samples_per_second:,.0f} samples/s; for"
            f" {target:,.0f}: fewest {one['fewest_hosts']}, at least {one['at_least_hosts']}, proven:"
            f" {one['is_proven']}, {len(points)} solves, {time.monotonic() - began:.1f} s",
            flush=True,
        )
    print(f"{num_proven} of {num_models} models are proven")


if __name__ == "__main__":
    main()
