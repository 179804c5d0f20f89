"""RecShard's own problem, solved to proven optimality next to its mixed-integer program.

    python benchmarks/peers/recshard.py [--tables 12 16 20] [--ranks 4] [--steps 8] [--seed 0] [--time-limit 120]
        [--partitioner mathopt]

Whole tables, two tiers, no communication: every table goes to one rank, its hottest rows to the accelerator's memory
and the others to host memory, and the rank that takes longest to gather its rows counts (arXiv 2201.10095). The same
problem is solved as RecShard writes it, one binary variable for each table, rank and step of the table's access CDF,
by HiGHS; the objectives must agree.
"""

import argparse
import sys
import time

import numpy as np
from ortools.linear_solver import pywraplp

from benchmarks.inputs.meta_like import draw_tables
from cost_models.analytic.tally import Tally
from cost_models.arrays import Bools
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import load_profile
from cost_models.protocol import ShardSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Evidence, Kernel, Phase, Scheme
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem, Reservation
from planner.domain.problem.table import Feature, Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.pipeline import plan
from planner.pricing.price_options import price
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.solver.problem import SolverProblem

GAP = 1e-5  # of a proof: prices are floats, and programs are solved in ticks or within tolerances
HBM_SHARE = 0.4  # of the weights that the accelerators' memory holds


class GatherOnly:
    """RecShard's cost: bytes gathered over the rate of the tier that holds them."""

    name = "recshard"
    version = "1"
    rounding = 0.0

    @property
    def counted_phases(self) -> Bools:
        """The gather alone."""
        counted = np.zeros(NUM_PHASES, dtype=np.bool_)
        counted[Phase.FORWARD_COMPUTE] = True
        return counted

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row."""
        tally = Tally(work.num_shards)
        row_bytes = work.lookups * work.shard_columns * work.element_bytes
        near = np.where(work.kernel == Kernel.FUSED, 1.0, work.hot_lookup_share)
        hbm, link = (hardware.numbers[f"{name}_bytes_per_second"].value for name in ("hbm", "host_link"))
        tally.add(Phase.FORWARD_COMPUTE, row_bytes * (near / hbm + (1 - near) / link), Evidence.ESTIMATED)
        return tally.result()


def problem_of(num_tables: int, num_ranks: int, steps: int, seed: int) -> Problem:
    """Return tables like Meta's that may be split at ``steps`` shares of their rows."""
    drawn = draw_tables(np.random.default_rng(seed), 20 * num_tables)
    large = np.flatnonzero(drawn.rows > 1e5)[:num_tables]
    fractions = tuple(np.geomspace(0.002, 0.8, steps).tolist())
    tables = tuple(
        Table(
            name=f"table_{index}",
            num_embeddings=int(drawn.rows[index]),
            embedding_dim=64,
            features=(Feature(name=f"table_{index}", pooling_factor=float(max(drawn.pooling_factors[index], 0.1))),),
            optimizer=OPTIMIZERS["none"],  # RecShard counts reads alone
            access=ZipfAccess(alpha=float(drawn.zipf_alphas[index])),
            constraints=TableConstraints(
                sharding_types=frozenset({Scheme.TABLE_WISE}),
                compute_kernels=frozenset({Kernel.FUSED, Kernel.FUSED_UVM}),
                hot_row_fractions=fractions,
            ),
        )
        for index in large.tolist()
    )
    hbm_bytes = HBM_SHARE * sum(table.weight_bytes for table in tables) / num_ranks
    hardware = load_profile("zionex-a100-40g").with_overrides({"hbm_bytes": hbm_bytes}, {"hbm_bytes": "bytes"})
    return Problem(
        tables=tables,
        cluster=Cluster(hardware=hardware, num_hosts=1, ranks_per_host=num_ranks),
        batch_size_per_rank=1024,
        runtime="generic",
        objective="max_rank_time",
        pipeline="none",
        reservation=Reservation(hbm_fraction=0.0, dense_multiplier=0.0, input_copies=0),
    )


def milp_seconds(priced: SolverProblem, time_limit_seconds: float) -> float | None:
    """Solve the program as RecShard writes it; ``None`` where HiGHS proves nothing in time."""
    solver = pywraplp.Solver.CreateSolver("HIGHS") or pywraplp.Solver.CreateSolver("SCIP")
    solver.SetTimeLimit(int(time_limit_seconds * 1e3))
    seconds = priced.shape_seconds @ priced.phase_weight
    slowest = solver.NumVar(0, solver.infinity(), "slowest")
    placed = {
        (shape, rank): solver.BoolVar("") for shape in range(priced.num_shapes) for rank in range(priced.num_ranks)
    }
    for table in range(priced.num_tables):
        of_table = np.flatnonzero(priced.shape_table == table).tolist()
        solver.Add(sum(placed[shape, rank] for shape in of_table for rank in range(priced.num_ranks)) == 1)
    for rank in range(priced.num_ranks):
        solver.Add(sum(seconds[shape] * 1e3 * placed[shape, rank] for shape in range(priced.num_shapes)) <= slowest)
        for tier in np.flatnonzero(priced.shape_bytes.any(axis=0)).tolist():
            gigabytes = priced.shape_bytes[:, tier] / 1e9
            room = float(priced.capacity_bytes[rank, tier]) / 1e9
            solver.Add(sum(gigabytes[shape] * placed[shape, rank] for shape in range(priced.num_shapes)) <= room)
    solver.Minimize(slowest)
    return solver.Objective().Value() / 1e3 if solver.Solve() == pywraplp.Solver.OPTIMAL else None


def main(arguments: list[str] | None = None) -> int:
    """Solve each size both ways, one line each; 1 where the objectives disagree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=int, nargs="+", default=[12, 16, 20])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--partitioner", default="mathopt")
    given = parser.parse_args(arguments)
    agree = True
    for num_tables in given.tables:
        problem = problem_of(num_tables, given.ranks, given.steps, given.seed)
        cost_model = GatherOnly()
        began = time.monotonic()
        limits = SolveLimits(time_limit_seconds=given.time_limit, relative_gap=GAP)
        result = plan(problem, cost_model=cost_model, partitioner=make_partitioner(given.partitioner), limits=limits)
        ours = time.monotonic() - began
        began = time.monotonic()
        milp = milp_seconds(price(problem, enumerate_families(problem), cost_model), given.time_limit)
        theirs = time.monotonic() - began
        found = None if result.plan is None else result.plan.evaluation.objective_seconds
        gap = None if result.plan is None else result.plan.relative_gap
        reported = "no proof in time" if milp is None else f"{milp * 1e6:.3f} us"
        if found is None:
            print(f"{num_tables} tables: no plan ({result.detail}); MILP {reported}")
            continue
        print(
            f"{num_tables} tables x {given.ranks} ranks: {found * 1e6:.3f} us {result.reason} (gap {gap:.0e})"
            f" in {ours:.1f} s; MILP {reported} in {theirs:.1f} s",
            flush=True,
        )
        agree &= milp is None or found <= milp * (1 + 1e-5)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
