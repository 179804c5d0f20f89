"""The memory below which no plan of the listed cuts exists, even if every table that may be stashed is stashed.

    python benchmarks/tiers/least_memory.py SPEC.json[.gz] --dense-forward 0.4 --dense-backward 0.8 \\
        --activation-bytes 2e10

A lower limit, not a plan: it counts what no stash takes away (:mod:`planner.orchestration.limits.resident`). Some
tables fit over all ranks alone and leave the others less room on every rank; of the cuts that still fit there, every
table is taken at the fewest bytes, and all of them together must fit into the cluster. Rows may not lie in host memory.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.tiers.stash_curve import request_of, with_hbm
from cost_models.vocabulary import Tier
from planner.domain.problem.stash import Stash
from planner.orchestration.limits.resident import with_resident_bytes
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.solver.problem import Scope, SolverProblem

_ROUNDS = 3  # of leaving out cuts that no longer fit next to those over all ranks
_RESOLUTION = 1e-5  # of the limit, relative


def fits(priced: SolverProblem, capacity_bytes: float, num_ranks: int) -> bool:
    """Whether the bytes of all tables that stay at the tightest moment may fit, if every rank has so many."""
    resident = -1  # the last column: what stays while activations are at their most
    total, largest = np.zeros(priced.num_options), np.zeros(priced.num_options)
    np.add.at(total, priced.unit_option, priced.shape_total_bytes[priced.unit_shape, resident])
    np.maximum.at(largest, priced.unit_option, priced.shape_bytes[priced.unit_shape, resident])
    on_all_ranks = priced.family_scope[priced.option_family] == Scope.WORLD
    room = np.full(priced.num_tables, capacity_bytes)
    for _ in range(_ROUNDS):
        legal = largest <= room[priced.option_table]
        everywhere = np.full(priced.num_tables, np.inf)  # of every rank, 0 if some other cut of the table fits
        np.minimum.at(everywhere, priced.option_table, np.where(legal, np.where(on_all_ranks, largest, 0.0), np.inf))
        if not np.all(np.isfinite(everywhere)):
            return False
        room = capacity_bytes - (everywhere.sum() - everywhere)
    fewest = np.full(priced.num_tables, np.inf)
    np.minimum.at(fewest, priced.option_table, np.where(largest <= room[priced.option_table], total, np.inf))
    return bool(fewest.sum() <= num_ranks * capacity_bytes)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--dense-forward", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--dense-backward", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--activation-bytes", type=float, required=True, metavar="BYTES")
    arguments = parser.parse_args()
    request = request_of(arguments)
    given = float(request.problem.cluster.tier_bytes(0, Tier.HBM))
    capacities = []
    for hbm_bytes in (given, 2 * given):
        problem = with_hbm(request.problem, hbm_bytes, Stash())
        listed = list_and_price(problem, request.cost_model)
        if isinstance(listed, Infeasibility):
            raise SystemExit(f"no option fits into {hbm_bytes:.4g} bytes of each rank")
        families, priced = listed
        priced = with_resident_bytes(priced, problem, families)
        capacities.append(float(priced.capacity_bytes[0, -1]))
    slope = (capacities[1] - capacities[0]) / given  # of the room for tables, by the memory of a rank
    low, high = 0.0, capacities[1]
    while high - low > _RESOLUTION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(priced, middle, problem.world_size) else (middle, high)
    hbm_bytes = given + (low - capacities[0]) / slope
    print(f"no plan with less than {hbm_bytes / 1e9:.2f} GB on each rank, {low / 1e9:.2f} GB of them for tables")


if __name__ == "__main__":
    main()
