"""From the indices that a search chose back to tables and shards."""

import numpy as np

from planner.domain.placement import Placement, Shard, TablePlacement
from planner.domain.problem import Problem
from planner.enumerate import Families
from planner.priced import Assignment, PricedOptions
from planner.schemes.base import Piece
from planner.schemes.expand import expand


def to_placement(problem: Problem, families: Families, priced: PricedOptions, assignment: Assignment) -> Placement:
    """Turn indices back into tables and shards."""
    cluster = problem.cluster
    shape = assignment.piece_shape
    first = np.searchsorted(priced.shape_table[shape], np.arange(priced.num_tables + 1))
    family = priced.family_source[priced.shape_family[shape]].tolist()
    columns, sites = priced.shape_columns[shape].tolist(), assignment.piece_site.tolist()
    placed = []
    for index, table in enumerate(problem.tables):
        chosen = families.families[family[first[index]]]
        shards: list[Shard] = []
        offset = 0
        for at in range(first[index], first[index + 1]):
            piece = Piece(
                scope=chosen.geometry.scope,
                column_offset=offset,
                num_columns=columns[at],
                replicated=chosen.geometry.replicated,
            )
            shards.extend(expand(table, piece, sites[at], cluster, cluster.device_tier))
            offset += columns[at]
        placed.append(
            TablePlacement(
                name=table.name,
                sharding_type=chosen.scheme,
                compute_kernel=chosen.kernel,
                shards=tuple(shards),
                module_path=table.module_path,
                data_type=table.data_type.name,
                pooling=table.pooling,
            )
        )
    return Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=tuple(placed))
