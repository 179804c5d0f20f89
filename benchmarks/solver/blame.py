"""Where a gap stays, is the bound or the plan to blame? On problems small enough to be proven.

    python benchmarks/solver/blame.py [--objective step_time max_rank_time] [--tables 8 10 12 16] [--ranks 8 4 8 4]
        [--fill 0.5] [--seed 0] [--work 8] [--prove 60]

Meta-like tables under the roofline model, with as few tables per rank as the large instances whose gap is
wide. A solve with local_search plans and bounds, and CP-SAT proves the best plan of the listed cuts. The gap of the
plan to that optimum is the plan's part, the rest is the bound's. If CP-SAT proves nothing, the line says so.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from benchmarks.inputs.instances import meta_family
from planner.orchestration.placement.listed_plan import find_plan
from planner.pipeline import plan
from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import SearchOptions, SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.kernels.warm_up import warm
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.problem import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What was found of one problem, seconds."""

    bound_seconds: float
    plan_seconds: float
    best_seconds: float  # of the listed cuts, where it is proven
    is_proven: bool

    @property
    def of_bound(self) -> float:
        """How far the optimum is above the bound."""
        return self.best_seconds / self.bound_seconds - 1

    @property
    def of_plan(self) -> float:
        """How far the plan is above the optimum; below zero where a cut that is not listed is better."""
        return self.plan_seconds / self.best_seconds - 1


def made_up(*, num_tables: int, num_ranks: int, fill: float, seed: int, objective: str) -> SolveRequest:
    """Return a made-up problem."""
    spec = meta_family(num_tables=num_tables, num_ranks=num_ranks, fill=fill, seed=seed, objective=objective)
    return parse_spec(json.dumps(spec).encode())


def blame(request: SolveRequest, *, work_seconds: float, prove_seconds: float) -> Blame | None:
    """Plan and bound as a solve does, and prove; ``None`` where no plan was found."""
    limits = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=work_seconds, relative_gap=0.0)
    problem, cost_model = request.problem, request.cost_model
    found = plan(problem, cost_model=cost_model, partitioner=LocalSearch(), limits=limits)
    if found.plan is None:
        return None
    listed = find_plan(problem, found.plan.placement, cost_model)
    proof = CpSat().solve(
        listed.priced,
        SolveLimits(time_limit_seconds=prove_seconds, relative_gap=0.0),
        SearchOptions(start=listed.assignment),
    )
    best = listed.assignment if proof.assignment is None else proof.assignment
    return Blame(
        bound_seconds=found.lower_bound_seconds,
        plan_seconds=objective_of(listed.priced, listed.assignment),
        best_seconds=objective_of(listed.priced, best),
        is_proven=proof.reason is Reason.OPTIMAL,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per problem."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objective", nargs="+", default=["step_time"], choices=("step_time", "max_rank_time"))
    parser.add_argument("--tables", type=int, nargs="+", default=[8, 10, 12, 16])
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 4, 8, 4], help="of each number of tables")
    parser.add_argument("--fill", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=float, default=8.0, help="seconds of work of local_search")
    parser.add_argument("--prove", type=float, default=60.0, help="seconds for CP-SAT")
    given = parser.parse_args(arguments)
    if len(given.tables) != len(given.ranks):
        parser.error("--tables and --ranks need as many numbers")
    warm()
    print(f"{'objective':14}{'tables':>7}{'ranks':>6}{'plan ms':>10}  {'of bound':>9}{'of plan':>9}")
    for objective in given.objective:
        for num_tables, num_ranks in zip(given.tables, given.ranks, strict=True):
            request = made_up(
                num_tables=num_tables, num_ranks=num_ranks, fill=given.fill, seed=given.seed, objective=objective
            )
            found = blame(request, work_seconds=given.work, prove_seconds=given.prove)
            head = f"{objective:14}{num_tables:7}{num_ranks:6}"
            if found is None:
                print(f"{head}  no plan")
                continue
            parts = f"{found.of_bound:9.2%}{found.of_plan:9.2%}" if found.is_proven else "  not proven"
            print(f"{head}{found.plan_seconds * 1e3:10.4f}  {parts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
