"""One plan for 24 hours whose features are busy by day or by night: the worst hour, next to the plan of the mean.

    python benchmarks/solver/hourly_scenarios.py WORKLOADS [--model NAME] [--swing A] [--limit SECONDS]

``WORKLOADS`` is a folder of public workload descriptions, as ``convert_workloads.py`` takes them. The law is made up.
At hour ``h`` the pooling factor of a feature is that of the model times

    1 + A cos(2 pi h / 24) of features with an even number, 1 - A cos(2 pi h / 24) of the others,

so that half of the traffic moves from one half of the features to the other and back, and the mean over a day is the
model itself. The study compares steps as ratios to the best plan of each hour alone.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from api.cli.study.local import StudyFolder, run_study
from api.services.studies.kinds.registry import parse_study, study_of
from api.specs.references.resolve import Library
from benchmarks.inputs.public_models import workload_specs

HOURS = 24


def scenario(spec: dict[str, Any], hour: int, swing: float) -> dict[str, Any]:
    """The traffic of an hour as a scenario of a study."""
    streams = [(t, f) for t, table in enumerate(spec["model"]["tables"]) for f in range(len(table["features"]))]
    wave = swing * math.cos(2 * math.pi * hour / HOURS)
    changes = {}
    for number, (table, feature) in enumerate(streams):
        mean = spec["model"]["tables"][table]["features"][feature]["pooling_factor"]
        factor = round(mean * (1 + wave if number % 2 == 0 else 1 - wave), 4)
        changes[f"model.tables.{table}.features.{feature}.pooling_factor"] = factor
    return {"label": f"hour {hour:02d}", "set": changes}


def main() -> int:
    """Run the study, and print a line for each hour and what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("workloads", type=Path)
    parser.add_argument("--model", default="hugectr_t180_70b_hotness80")
    parser.add_argument("--swing", type=float, default=0.9)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds of each solve, and of each round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for the answer")
    given = parser.parse_args()
    spec = next(one for one in workload_specs(given.workloads) if one["name"] == given.model)
    spec["solver"] = {"time_limit_seconds": given.limit}
    request = {
        "kind": "scenarios",
        "spec": spec,
        "scenarios": [scenario(spec, hour, given.swing) for hour in range(HOURS)],
        "measure": "ratio_to_own",
        "num_rounds": given.rounds,
    }
    study = study_of(parse_study(json.dumps(request).encode()))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        store = StudyFolder(Path(folder))
        found = run_study(
            study,
            store,
            library=Library(find_plan=store.find_plan),
            num_processes=given.processes,
            form="compact",
            on_point=lambda point, outcome, _: print(f"{point.key}: {outcome.state}", file=sys.stderr, flush=True),
        )
    answer = study.answer({key: one.outcome for key, one in found.items()})
    if given.json is not None:
        given.json.write_text(json.dumps(answer, indent=1))
    print("hour      own best us   gap   one plan  of the mean  replanning pays after")
    for one in answer["scenarios"]:
        gap = one["own_seconds"] / one["own_lower_bound_seconds"] - 1
        pays = "" if one["replan"] is None else f"{one['replan']['break_even_steps']:,} steps"
        ratios = f"{one['ratio_to_own']:8.3f} {one['mean_ratio_to_own']:12.3f}"
        print(f"{one['label']:8} {1e6 * one['own_seconds']:12,.0f} {gap:5.1%}  {ratios}  {pays}")
    plan, mean = answer["plan"], answer["plan_of_mean"]
    seconds = time.monotonic() - began
    print(f"{given.model}: worst ratio {plan['cost']:.3f} ({plan['key']}), of the mean {mean['cost']:.3f};", end=" ")
    print(f"no plan is below {answer['lower_bound']:.3f}; {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
