"""Whether the size of sharding groups that a solve chooses is the best of all sizes, each planned alone.

For each model, seeded tables that look like Meta's, on 16 and 128 hosts of eight ranks: one solve chooses the size, and
every size is planned by itself with the same limits. ``python benchmarks/replicas/group_sizes.py --models 20``.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.inputs.draws import choices
from benchmarks.inputs.meta_like import draw_tables
from cost_models.hardware.profiles_loader import load_profile
from cost_models.registry import make_cost_model
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.table import Feature, Table, TableConstraints
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner

RANKS_PER_HOST = 8
HOSTS = (16, 128)
_INTERVALS = (1, 10, 100, 1000)
_BATCHES = (256, 1024, 4096)
_TABLES = (10, 20, 40)
_ROOFLINE = make_cost_model("roofline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a solve chose, and the best of the sizes that were planned alone."""

    chosen_size: int
    chosen_seconds: float
    bound_seconds: float
    best_size: int
    best_seconds: float
    sizes: dict[int, float]  # seconds of the plan of each size alone; infinite without a plan
    solve_seconds: float  # wall clock of the solve that chose

    @property
    def excess(self) -> float:
        """By what part the chosen plan is longer than the best one; below 0 it is shorter."""
        return self.chosen_seconds / self.best_seconds - 1


def random_problem(seed: int, num_hosts: int) -> Problem:
    """Return a seeded model on DGX H100, in groups of any size."""
    rng = np.random.default_rng([82, seed])
    interval, batch, num_tables = (
        int(values[choices(rng, 1, [1 / len(values)] * len(values))[0]]) for values in (_INTERVALS, _BATCHES, _TABLES)
    )
    drawn = draw_tables(rng, num_tables)
    tables = tuple(
        Table(
            name=f"t{index}",
            num_embeddings=int(drawn.rows[index]),
            embedding_dim=int(drawn.dims[index]),
            features=(Feature(name=f"f{index}", pooling_factor=float(drawn.pooling_factors[index])),),
            pooling="sum",
            data_type=DATA_TYPES["fp32"],
            optimizer=OPTIMIZERS["rowwise_adagrad"],
            module_path="",
            access=ZipfAccess(alpha=float(drawn.zipf_alphas[index])),
            constraints=TableConstraints(),
        )
        for index in range(num_tables)
    )
    job = Cluster(hardware=load_profile("dgx-h100-80g"), num_hosts=num_hosts, ranks_per_host=RANKS_PER_HOST)
    contiguous = seed % 2 == 1
    groups = ReplicaGroups(
        job=job,
        sizes=ReplicaGroups.sizes_of(job, contiguous=contiguous),
        sync_interval_steps=interval,
        use_inter_host_allreduce=contiguous,
    )
    return Problem(tables=tables, cluster=job, batch_size_per_rank=batch, replica_groups=groups)


def compare(problem: Problem, limits: SolveLimits) -> Compared:
    """Let a solve choose the size, and plan every size alone."""

    def seconds_of(one: Problem) -> tuple[int, float, float]:
        found = plan(one, cost_model=_ROOFLINE, partitioner=make_partitioner("portfolio"), limits=limits)
        if found.plan is None:
            return 0, float("inf"), found.lower_bound_seconds
        return found.plan.placement.world_size, found.plan.evaluation.objective_seconds, found.lower_bound_seconds

    began = time.monotonic()
    size, seconds, bound = seconds_of(problem)
    took = time.monotonic() - began
    alone = {one.world_size: seconds_of(one)[1] for one in problem.of_each_group()}
    best = min(alone, key=lambda one: alone[one])
    return Compared(
        chosen_size=size,
        chosen_seconds=seconds,
        bound_seconds=bound,
        best_size=best,
        best_seconds=alone[best],
        sizes=alone,
        solve_seconds=took,
    )


def rows(num_models: int, hosts: Sequence[int], limits: SolveLimits) -> Iterator[str]:
    """Yield a line for each model and cluster, and one about all."""
    excesses, same = [], 0
    for num_hosts in hosts:
        for seed in range(num_models):
            found = compare(random_problem(seed, num_hosts), limits)
            excesses.append(found.excess)
            same += found.chosen_size == found.best_size
            chosen, best = found.chosen_seconds * 1e3, found.best_seconds * 1e3
            yield (
                f"{num_hosts * RANKS_PER_HOST:>5} ranks, model {seed:>2}: chosen {found.chosen_size:>4} {chosen:9.4f}"
                f" ms, best alone {found.best_size:>4} {best:9.4f} ms, {found.excess:+.3%},"
                f" gap to the bound {found.chosen_seconds / found.bound_seconds - 1:.2%}, {found.solve_seconds:.1f} s"
            )
    within = sum(one <= limits.relative_gap for one in excesses)
    yield (
        f"{len(excesses)} models: the same size in {same}, within {limits.relative_gap:.1%} of the best in {within},"
        f" worst {max(excesses):+.3%}"
    )


def main() -> None:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=20, help="models on each cluster")
    parser.add_argument("--hosts", type=int, nargs="*", default=list(HOSTS), help="hosts of eight ranks")
    parser.add_argument("--time-limit", type=float, default=120.0, help="of each solve, seconds")
    parser.add_argument("--work-limit", type=float, default=10.0, help="of each solve, nominal seconds")
    given = parser.parse_args()
    limits = SolveLimits(time_limit_seconds=given.time_limit, work_limit_seconds=given.work_limit)
    for line in rows(given.models, given.hosts, limits):
        print(line, flush=True)


if __name__ == "__main__":
    main()
