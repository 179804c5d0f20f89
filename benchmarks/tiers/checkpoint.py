"""What balancing checkpoints buys and costs: Meta-like tables, planned with and without it.

    python benchmarks/tiers/checkpoint.py [--tables 100 300] [--ranks 32 64] [--fill 0.5 0.3]
        [--policy full intermittent]
        [--interval-seconds 1800] [--intervals-between-failures 20] [--work 10] [--seed 0]

For each problem and policy two lines, one plan each: milliseconds of a step, and what more they are than without
balance; milliseconds per step that checkpoints cost; seconds of a full checkpoint's snapshot and of its upload by the
slowest host; that upload over the mean of the hosts, and the same of the largest increment.
"""

import argparse
import json
import sys
from dataclasses import dataclass, replace

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from benchmarks.inputs.instances import meta_family
from cost_models.vocabulary import STEP_PHASES
from planner.domain.plan.plan import Evaluation, Plan
from planner.domain.problem.checkpoint import (
    DEFAULT_FULL_EVERY,
    DEFAULT_INTERVALS_BETWEEN_FAILURES,
    POLICIES,
    Checkpoint,
)
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.verification.evaluate_placement import score

CLOCK_PER_WORK = 10.0  # so that a busy machine cuts nothing
MOST_OVER_MEAN, MOST_STEP_COST = 1.10, 0.01  # targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One plan, and what its checkpoints take."""

    step_seconds: float
    lost_seconds: float  # per step
    snapshot_seconds: float  # of a full checkpoint
    upload_seconds: float  # of the slowest host, a full checkpoint
    over_mean: float  # that, over the mean of the hosts
    increment_over_mean: float | None  # the same of the largest increment


def outcome_of(evaluation: Evaluation) -> Outcome:
    """Take from a score what is compared."""
    load = evaluation.checkpoint
    if load is None:
        raise ValueError("Expected a problem with checkpoints.")
    increment = load.incremental
    return Outcome(
        step_seconds=sum(
            max(phase.seconds - phase.hidden_seconds, 0.0) for phase in evaluation.phases if phase.phase in STEP_PHASES
        ),
        lost_seconds=load.lost_seconds_per_step,
        snapshot_seconds=load.full.snapshot_seconds,
        upload_seconds=load.full.upload_seconds,
        over_mean=load.full.upload_seconds / load.full.mean_upload_seconds,
        increment_over_mean=None if increment is None else increment.upload_seconds / increment.mean_upload_seconds,
    )


def planned(request: SolveRequest, checkpoint: Checkpoint, work_seconds: float) -> Plan | None:
    """Plan with checkpoints; ``None`` where no plan is found."""
    limits = SolveLimits(
        time_limit_seconds=CLOCK_PER_WORK * work_seconds, work_limit_seconds=work_seconds, relative_gap=0.0
    )
    return plan(
        replace(request.problem, checkpoint=checkpoint),
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=limits,
    ).plan


def compared(
    request: SolveRequest, policy: str, *, interval_seconds: float, between_failures: float, work_seconds: float
) -> tuple[Outcome, Outcome] | None:
    """Plan without and with balance, an interval being so many seconds of the first plan's steps."""
    full_every = 1 if policy == "full" else DEFAULT_FULL_EVERY
    checkpoint = Checkpoint(
        interval_steps=1, policy=policy, full_every=full_every, intervals_between_failures=between_failures
    )
    free = planned(request, checkpoint, work_seconds)
    if free is None:
        return None
    steps = max(round(interval_seconds / outcome_of(free.evaluation).step_seconds), 1)
    checkpoint = replace(checkpoint, interval_steps=steps)
    balanced = planned(request, replace(checkpoint, balance=True), work_seconds)
    if balanced is None:
        return None
    again = score(replace(request.problem, checkpoint=checkpoint), free.placement, request.cost_model)
    return outcome_of(again), outcome_of(balanced.evaluation)


def line(name: str, found: Outcome, step_seconds: float) -> str:
    """One plan as a line of the table; its step time next to ``step_seconds``."""
    increment = "" if found.increment_over_mean is None else f"{found.increment_over_mean:11.3f}"
    return (
        f"{name:44}{found.step_seconds * 1e3:9.4f}{found.step_seconds / step_seconds - 1:8.2%}"
        f"{found.lost_seconds * 1e3:10.4f}{found.snapshot_seconds:8.3f}{found.upload_seconds:8.1f}"
        f"{found.over_mean:8.3f}{increment}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit status is 1 where a problem has no plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--ranks", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--fill", type=float, nargs="+", default=[0.5, 0.3])
    parser.add_argument("--policy", nargs="+", choices=POLICIES, default=["full", "intermittent"])
    parser.add_argument("--interval-seconds", type=float, default=1800.0)
    parser.add_argument("--intervals-between-failures", type=float, default=DEFAULT_INTERVALS_BETWEEN_FAILURES)
    parser.add_argument("--work", type=float, default=10.0, help="seconds of work of each search")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if not len(given.tables) == len(given.ranks) == len(given.fill):
        parser.error("give as many numbers of tables as of ranks and of fills")
    head = ("step ms", 9), ("cost", 8), ("lost ms", 10), ("snap s", 8), ("up s", 8), ("/ mean", 8), ("increment", 11)
    print(f"{'problem':44}" + "".join(f"{name:>{width}}" for name, width in head))
    missed = reached = 0
    for num_tables, num_ranks, fill in zip(given.tables, given.ranks, given.fill, strict=True):
        spec = meta_family(num_tables=num_tables, num_ranks=num_ranks, fill=fill, seed=given.seed)
        request = parse_spec(json.dumps(spec).encode())
        for policy in given.policy:
            found = compared(
                request,
                policy,
                interval_seconds=given.interval_seconds,
                between_failures=given.intervals_between_failures,
                work_seconds=given.work,
            )
            name = f"{num_tables} x {num_ranks}, {fill:.0%} full, {policy}"
            if found is None:
                missed += 1
                print(f"{name:44}  no plan")
                continue
            free, balanced = found
            print(line(name, free, free.step_seconds))
            print(line(f"{name}, balanced", balanced, free.step_seconds), flush=True)
            cost = balanced.step_seconds / free.step_seconds - 1
            reached += balanced.over_mean <= MOST_OVER_MEAN and cost < MOST_STEP_COST
    print(f"upload within 10% of the mean at less than 1% of step time: {reached}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
