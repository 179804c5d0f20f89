"""How a search goes, as a picture: what every chain costs while the work is spent, from the first plans to the last.

    python benchmarks/solver/search_course.py [--spec SPEC.json] [--work 2] [--seed 0] [--picture FILE.svg]

Records local search on DLRM-DCNv2 on eight ranks, or on another spec, in reproducible mode: after every chunk of
proposals the objective of the chain that ran, and the best so far. The figures are excesses over the lower bound.
"""

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from api.specs.parse import parse_spec
from benchmarks.inputs.public_models import dcnv2_specs
from benchmarks.solver.search_picture import Look, picture
from planner.options.enumerate import enumerate_families
from planner.pricing.price_options import price, prune
from planner.solver.bounds.chain import lower_bound
from planner.solver.partitioners.base import Effort, SearchOptions, SolveLimits
from planner.solver.partitioners.kernels.warm_up import warm
from planner.solver.partitioners.local_search.chain import FINAL_REFINEMENT, Chain, Stage, annealing, settle
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.problem import SolverProblem

_PICTURE = Path(__file__).parents[2] / "docs" / "local-search.svg"
_MOST_BOXES = 200


def stage_name(stage: Stage) -> str:
    """Return what a stage is for, by how sharp it ends."""
    ends = {
        settle(1, 1.0, is_even=False).last_smoothness: "race",
        annealing(1.0).last_smoothness: "anneal",
        FINAL_REFINEMENT.last_smoothness: "refine",
    }
    return ends.get(stage.last_smoothness, "repair")


@contextlib.contextmanager
def recorded() -> Iterator[list[Look]]:
    """Record the looks at all chains of the searches inside."""
    looks: list[Look] = []
    numbers: dict[int, int] = {}
    chains: list[Chain] = []  # alive, so that no two have one id
    running: dict[int, tuple[int, Stage, Effort]] = {}  # by chain: the number of its run, and where it is
    runs = itertools.count()
    run, look = Chain.run, Chain.look

    def noted_run(chain: Chain, stage: Stage, effort: Effort, *arguments: Any) -> None:
        chains.append(chain)
        numbers.setdefault(id(chain), len(numbers))
        running[id(chain)] = next(runs), stage, effort
        run(chain, stage, effort, *arguments)
        del running[id(chain)]

    def noted_look(chain: Chain) -> bool:
        is_better = look(chain)
        if id(chain) in running:
            number, stage, effort = running[id(chain)]
            looks.append(
                Look(
                    work_fraction=min(effort.spent_of_whole, 1.0),
                    chain=numbers[id(chain)],
                    run=number,
                    stage=stage_name(stage),
                    objective_seconds=chain.seconds,
                    best_seconds=chain.best_seconds,
                )
            )
        return is_better

    with mock.patch.object(Chain, "run", noted_run), mock.patch.object(Chain, "look", noted_look):
        yield looks


def course_of(priced: SolverProblem, *, work_seconds: float, seed: int) -> tuple[float, list[Look]]:
    """Return the lower bound of a problem in seconds, and the looks of a search that has the bound's hint."""
    bound = lower_bound(priced, max_boxes=_MOST_BOXES)
    limits = SolveLimits(
        time_limit_seconds=60 * work_seconds, work_limit_seconds=work_seconds, relative_gap=0.0, seed=seed
    )
    with recorded() as looks:
        LocalSearch().solve(priced, limits, SearchOptions(hint=bound.hint))
    return bound.seconds, sorted(looks, key=lambda look: look.work_fraction)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record a search and write its picture; print what each stage reached."""
    given = _parser().parse_args(arguments)
    stated = next(dcnv2_specs()) if given.spec is None else json.loads(given.spec.read_text())
    request = parse_spec(json.dumps({**stated, "count_starts": False}).encode())
    warm()  # compiling is no part of a search
    priced = prune(price(request.problem, enumerate_families(request.problem), request.cost_model))
    bound_seconds, looks = course_of(priced, work_seconds=given.work, seed=given.seed)
    if not any(look.best_seconds < float("inf") for look in looks):
        print("no plan fits the memory: nothing to draw", file=sys.stderr)
        return 2
    given.picture.write_text(picture(looks, bound_seconds))
    for stage in dict.fromkeys(look.stage for look in looks):
        of_stage = [look for look in looks if look.stage == stage]
        best = min(look.best_seconds for look in of_stage)
        chains = len({look.chain for look in of_stage})
        print(
            f"{stage:<8}{chains:>3} chains  to {of_stage[-1].work_fraction:4.0%} of the work  "
            f"best {best / bound_seconds - 1:.2%} above the bound"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spec", type=Path, help="a spec; default: DLRM-DCNv2 on eight ranks")
    parser.add_argument("--work", type=float, default=2.0, help="work of the search, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=_PICTURE, help="the SVG file to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
