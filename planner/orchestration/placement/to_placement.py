"""From the indices that a search chose back to tables and shards."""

import numpy as np

from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families, hot_rows_of
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.expand import SitedPieces, expand_all
from planner.solver.problem import Assignment, SolverProblem


def to_placement(problem: Problem, families: Families, priced: SolverProblem, assignment: Assignment) -> Placement:
    """Turn indices back into tables and shards."""
    cluster, shape = problem.cluster, assignment.piece_shape
    table = priced.shape_table[shape]
    first = np.searchsorted(table, np.arange(priced.num_tables + 1))  # piece of each table, and the end
    sources = priced.family_source[priced.shape_family[shape[first[:-1]]]]
    chosen = [families.families[source] for source in sources.tolist()]
    columns = priced.shape_columns[shape]
    left_of = np.cumsum(columns) - columns  # columns of all pieces before
    pieces = SitedPieces(
        table_rows=np.array([one.num_embeddings for one in problem.tables], dtype=np.int64)[table],
        scope=np.array([one.geometry.scope for one in chosen], dtype=np.int64)[table],
        replicated=np.array([one.geometry.replicated for one in chosen], dtype=np.bool_)[table],
        column_offset=left_of - left_of[first[table]],
        num_columns=columns,
        site=assignment.piece_site,
        tier=np.array([one.storage.tier(cluster.device_tier) for one in chosen], dtype=np.int64)[table],
        hot_rows=np.array([hot_rows_of(problem, one) for one in chosen], dtype=np.int64)[table],
    )
    ends = np.concatenate([[0], np.cumsum(pieces.num_shards(cluster))])[first[1:]]
    shards = expand_all(pieces, cluster).split(ends)
    widest = np.maximum.reduceat(columns, first[:-1]).tolist()
    runtime = RUNTIMES[problem.runtime]
    return Placement(
        world_size=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        pod_size=cluster.pod_size,
        kv_cache_bytes=None if problem.kv_cache is None else problem.kv_cache.least_bytes,
        use_index_dedup=bool(problem.use_index_dedup),
        tables=tuple(
            TablePlacement(
                name=one.name,
                sharding_type=family.scheme,
                compute_kernel=family.kernel,
                shards=its_shards,
                module_path=one.module_path,
                cache_load_factor=family.storage.cache_load_factor,
                cache_reserved_bytes=runtime.cache_reserved_bytes(index, family.storage, widest[index]),
                data_type=family.storage.data_type.name,
                pooling=one.pooling,
                hash_table_mode=one.hash_table_mode,
            )
            for index, (one, family, its_shards) in enumerate(zip(problem.tables, chosen, shards, strict=True))
        ),
    )
