"""Real training steps next to their predictions: TorchRec on gloo, on this machine, under many plans of made-up models.

    python benchmarks/real_steps.py [--models one_hot long_bags wide one_heavy many] [--plans 30] [--rounds 60]
        [--steps 3] [--processes 2] [--seconds 60] [--solve 2] [--profile cpu-xeon-vm] [--model MODEL.json]
        [--seed 0] [--without-starts] [--json OUT.json]

Every model is planned by TorchRec's planner, by two rules of thumb (whole tables, most bytes or most lookups first), by
ours under the roofline and under a learned model, and at random; each plan is legal. All plans of a model are trained
in turn, in many short rounds. Prints, for each model and cost model, Kendall's tau between predicted and measured
steps, and how the plan made under it compares with the best of all and with TorchRec's planner's; then what a step
takes longer for each sharding type that it uses, measured on a sixth model that has next to nothing to look up. A model
takes about 25 s besides ``--seconds`` on a quiet machine: under 10 minutes in all.

Exits with 1 where a tau is below 0.8, a plan of ours is further from the best than noise, or ours are not faster than
TorchRec's planner's in the geometric mean; with 2 where nothing could be measured.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from api.client.device_names import cpu_name
from benchmarks.prices.real_steps.measured import Effort, TrainingFailed, measure
from benchmarks.prices.real_steps.models import StepModel, bare_model, step_models
from benchmarks.prices.real_steps.plans import NoPlan, plans_of, predicted, problem_of
from benchmarks.prices.real_steps.report import as_json, is_reached, model_lines, summary_lines
from benchmarks.prices.real_steps.verdict import KindStart, ModelResult, kind_starts
from cost_models.errors import InvalidModelFile
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.learned.document.file import parse_model
from cost_models.learned.shipped import shipped_models
from cost_models.protocol import CostModel
from cost_models.registry import make_cost_model

SHIPPED_MODEL = "cpu-epyc"
PROFILE = "cpu-xeon-vm"
_MISSED, _NOT_MEASURED = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, compare, print."""
    given = _arguments(arguments)
    if find_spec("torchrec") is None:
        print("real steps need TorchRec: pip install 'shardplan[torchrec]'", file=sys.stderr)
        return _NOT_MEASURED
    logging.disable(logging.WARNING)  # TorchRec's advice on topologies and dry runs
    try:
        cost_models = _cost_models(given.model)
        starts = [] if given.without_starts else _starts(given)
        results = list(_results(given, cost_models))
    except (NoPlan, TrainingFailed, InvalidModelFile, OSError) as error:
        print(error, file=sys.stderr)
        return _NOT_MEASURED
    print(*summary_lines(results, starts), sep="\n")
    if given.json is not None:
        machine = {"cpu": cpu_name(), "cores": os.cpu_count(), "processes": given.processes, "profile": given.profile}
        given.json.write_text(json.dumps(as_json(results, starts, machine), indent=1) + "\n")
    return 0 if is_reached(results) else _MISSED


def _starts(given: argparse.Namespace) -> list[KindStart]:
    bare = result_of(bare_model(), given, {})
    print(*model_lines(bare), sep="\n", flush=True)
    return kind_starts(bare)


def _results(given: argparse.Namespace, cost_models: Mapping[str, CostModel]) -> Iterator[ModelResult]:
    models = step_models()
    for name in given.models:
        result = result_of(models[name], given, cost_models)
        print(*model_lines(result), sep="\n", flush=True)
        yield result


def result_of(model: StepModel, given: argparse.Namespace, cost_models: Mapping[str, CostModel]) -> ModelResult:
    """Plan a model, train it under all plans, and predict each of them.

    Raises
    ------
    NoPlan, TrainingFailed
        A planner found none; a rank failed.
    """
    hardware = {"profile": given.profile, "num_hosts": 1, "ranks_per_host": given.processes}
    problem = problem_of(model, hardware)
    plans = plans_of(model, problem, cost_models, count=given.plans, seconds=given.solve, seed=given.seed)
    effort = Effort(world_size=given.processes, rounds=given.rounds, steps=given.steps, seconds=given.seconds)
    return ModelResult(
        model=model.name,
        plans=plans,
        measured=measure(model, [plan.document() for plan in plans], effort),
        predictions={
            name: [predicted(problem, plan.placement, cost_model) for plan in plans]
            for name, cost_model in cost_models.items()
        },
    )


def _cost_models(path: Path | None) -> dict[str, CostModel]:
    learned = shipped_models()[SHIPPED_MODEL] if path is None else path.read_bytes()
    return {"roofline": make_cost_model("roofline"), "learned": parse_model(learned)}


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=list(step_models()), default=list(step_models()))
    parser.add_argument("--plans", type=_at_least(5), default=30, help="different plans of each model")
    parser.add_argument("--rounds", type=_at_least(2), default=60, help="at most, of each model")
    parser.add_argument("--steps", type=_at_least(1), default=3, help="of each plan in a round")
    parser.add_argument("--processes", type=_at_least(2), default=2, help="ranks, all on this machine")
    parser.add_argument("--seconds", type=float, default=60.0, help="of rounds, of each model")
    parser.add_argument("--solve", type=float, default=2.0, help="seconds of each of our solves")
    parser.add_argument("--profile", choices=_cpu_profiles(), default=PROFILE, help="hosts that ours plan for")
    parser.add_argument("--model", type=Path, help=f"a fitted learned model; default: the shipped {SHIPPED_MODEL}")
    parser.add_argument("--seed", type=int, default=0, help="of the random plans")
    parser.add_argument("--without-starts", action="store_true", help="leave the bare model out")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    return parser.parse_args(arguments)


def _cpu_profiles() -> list[str]:
    return [profile for profile in profile_ids() if load_profile(profile).family == "cpu"]


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"expected at least {least}, got {value}")
        return value

    return number


if __name__ == "__main__":
    sys.exit(main())
