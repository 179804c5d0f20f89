"""What TorchRec's planner chooses from by default: one cut per scheme, in the memory of the device, at given prices.

A table whose columns are not cut is listed as column_wise and table_column_wise nevertheless, as a whole.
"""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools
from cost_models.vocabulary import DEVICE_KERNELS, Scheme
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.enumerate import Families, Family, enumerate_families
from planner.options.schemes.blocks import COLUMN_STEP
from planner.options.schemes.widths import Widths
from planner.orchestration.baselines.torchrec_options import Cluster, Option, placement_of
from planner.orchestration.baselines.torchrec_packing import Ranks
from planner.solver.problem import Assignment, Scope, SolverProblem

#: TorchRec 1.8.0: column pieces are the smallest divisor of the width that is at least this.
LEAST_PIECE_COLUMNS = 128
#: By default, TorchRec 1.8.0 does not list grid_shard.
SCHEMES = (
    Scheme.DATA_PARALLEL,
    Scheme.TABLE_WISE,
    Scheme.COLUMN_WISE,
    Scheme.TABLE_COLUMN_WISE,
    Scheme.ROW_WISE,
    Scheme.TABLE_ROW_WISE,
)
COLUMN_SCHEMES = (Scheme.COLUMN_WISE, Scheme.TABLE_COLUMN_WISE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRecOptions:
    """Options by table, each with the shape that it has in the solver problem."""

    tables: list[list[Option]]
    shapes: list[list[int]]
    cluster: Cluster

    def assignment(self, chosen: tuple[int, ...], ranks: tuple[Ranks, ...], priced: SolverProblem) -> Assignment:
        """Return the pieces of one option for each table, with its shards on ``ranks``."""
        shapes, sites = [], []
        for of_table, option, where in zip(self.shapes, chosen, ranks, strict=True):
            scope = priced.shape_scope[of_table[option]]
            site = where if scope == Scope.RANK else where[:1] // priced.ranks_per_host
            sites.append(np.zeros(1, dtype=np.int64) if scope == Scope.WORLD else site)
            shapes.append(np.full(len(sites[-1]), of_table[option], dtype=np.int64))
        return Assignment(piece_shape=np.concatenate(shapes), piece_site=np.concatenate(sites))


def torchrec_families(problem: Problem) -> Families:
    """Return the families that TorchRec lists, with its cut as their only one: family and shape have equal indices."""
    found: dict[tuple[int, Scheme], Family] = {}
    for family in enumerate_families(problem).families:
        width = family_width(problem.tables[family.table], family.scheme)
        is_listed = family.scheme in SCHEMES and family.kernel in DEVICE_KERNELS and width in family.widths.columns
        if is_listed:
            found.setdefault((family.table, family.scheme), replace(family, widths=_only(width, family)))
    return Families(families=tuple(found.values()))


def _only(width: int, family: Family) -> Widths:
    count = max(1, int(family.widths.columns[family.widths.cuts[0]].sum()) // width)
    columns = np.array([width], dtype=np.int64)
    return Widths(columns=columns, cuts=(np.zeros(count, dtype=np.int64),), max_pieces=count)


def torchrec_options(problem: Problem, families: Families, priced: SolverProblem) -> TorchRecOptions:
    """Return the options of each table, from what :func:`torchrec_families` lists and its prices."""
    tier = problem.cluster.device_tier
    counted = priced.phase_weight > 0
    of_table: list[dict[Scheme, int]] = [{} for _ in problem.tables]
    for index, family in enumerate(families.families):
        of_table[family.table][family.scheme] = index
    tables: list[list[Option]] = []
    shapes: list[list[int]] = []
    for table, own in zip(problem.tables, of_table, strict=True):
        is_cut = piece_width(table) < table.embedding_dim
        listed = [
            (scheme, own.get(scheme if is_cut or scheme not in COLUMN_SCHEMES else Scheme.TABLE_WISE))
            for scheme in SCHEMES
        ]
        found = [(scheme, shape) for scheme, shape in listed if shape is not None]
        shapes.append([shape for _, shape in found])
        tables.append(
            [
                _option(scheme, priced, shape, table.embedding_dim // int(priced.shape_columns[shape]), counted, tier)
                for scheme, shape in found
            ]
        )
    capacity = np.floor(priced.capacity_bytes[:, [tier]]).astype(np.int64)
    cluster = Cluster(ranks_per_host=priced.ranks_per_host, capacity_bytes=capacity)
    return TorchRecOptions(tables=tables, shapes=shapes, cluster=cluster)


def _option(scheme: Scheme, priced: SolverProblem, shape: int, pieces: int, counted: Bools, tier: int) -> Option:
    num_shards = int(priced.shape_ranks[shape]) * pieces
    return Option(
        scheme=scheme.label,
        placement=placement_of(scheme.label),
        seconds=np.tile(priced.shape_seconds[shape, counted], (num_shards, 1)),
        bytes=np.full((num_shards, 1), np.ceil(priced.shape_bytes[shape, tier]), dtype=np.int64),
    )


def family_width(table: Table, scheme: Scheme) -> int:
    """Return the columns of a shard of a table that TorchRec cuts by a scheme."""
    return piece_width(table) if scheme in COLUMN_SCHEMES else table.embedding_dim


def piece_width(table: Table) -> int:
    """Return the columns of a piece of a table: all, if TorchRec does not cut them."""
    return torchrec_width(table.embedding_dim, table.constraints.min_partition or LEAST_PIECE_COLUMNS)


def torchrec_width(columns: int, least: int = LEAST_PIECE_COLUMNS) -> int:
    """Return the smallest divisor of ``columns`` of at least ``least`` that is a multiple of 4, else ``columns``."""
    first = -(-least // COLUMN_STEP) * COLUMN_STEP
    return next((width for width in range(first, columns, COLUMN_STEP) if columns % width == 0), columns)
