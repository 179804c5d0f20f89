"""Legal plans by chance."""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price
from planner.solver.problem import Assignment, Scope

#: A replica of a larger table is an all-reduce of megabytes: no plan would have it, and its order is no question.
_MAX_REPLICA_WEIGHTS = 2**16
_MAX_SCHEMES = 3


def random_placements(problem: Problem, rng: np.random.Generator) -> Iterator[Placement]:
    """Yield legal plans without end: one to three schemes, one of them for each table, cuts and ranks by chance.

    About half of the plans put each piece on the rank that has the least work so far: else nearly all would be out of
    balance, and only balance would order them.
    """
    families = enumerate_families(problem)
    priced = price(problem, families, make_cost_model("roofline"))
    table_of = priced.family_table[priced.option_family]
    schemes = np.array([family.scheme for family in families.families])[priced.family_source[priced.option_family]]
    weights = np.array([table.num_embeddings * table.embedding_dim for table in problem.tables])
    is_usable = (schemes != Scheme.DATA_PARALLEL) | (weights[table_of] <= _MAX_REPLICA_WEIGHTS)
    work = np.array([table.ids_per_sample * table.embedding_dim for table in problem.tables])
    offered = np.unique(schemes[is_usable])
    while True:
        chosen = rng.choice(offered, size=int(rng.integers(1, min(_MAX_SCHEMES, len(offered)) + 1)), replace=False)
        is_balanced = bool(rng.random() < 0.5)
        load = np.zeros(problem.world_size)
        shapes, sites = [], []
        for table in range(priced.num_tables):
            options = np.flatnonzero((table_of == table) & is_usable)
            wanted = options[np.isin(schemes[options], chosen)]
            options = wanted if len(wanted) else options[schemes[options] == Scheme.TABLE_WISE]
            scheme = rng.choice(np.unique(schemes[options]))
            option = int(rng.choice(options[schemes[options] == scheme]))
            pieces = priced.unit_shape[priced.unit_option == option]
            shapes.append(pieces)
            if priced.family_scope[priced.option_family[option]] == Scope.RANK:
                share = work[table] * priced.shape_columns[pieces] / priced.table_columns[table]
                sites.append(_ranks(share, load, rng, is_balanced=is_balanced))
            else:  # of one host: all of its ranks
                sites.append(np.zeros(len(pieces), dtype=np.int64))
        assignment = Assignment(piece_shape=np.concatenate(shapes), piece_site=np.concatenate(sites))
        yield to_placement(problem, families, priced, assignment)


def _ranks(work: Floats, load: Floats, rng: np.random.Generator, *, is_balanced: bool) -> Ints:
    """Return a rank for each piece, and add the work of the pieces to its load."""
    ranks = np.zeros(len(work), dtype=np.int64)
    for piece, amount in enumerate(work.tolist()):
        ranks[piece] = np.argmin(load) if is_balanced else rng.integers(len(load))
        load[ranks[piece]] += amount
    return ranks
