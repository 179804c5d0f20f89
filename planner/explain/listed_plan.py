"""A plan's placement as indices of the waist, so that it can be compared with what else was possible.

Needs the problem and the placement alone: plans are explained long after their search, by whoever has the spec.
"""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.protocol import CostModel
from planner.domain.placement import Placement, Shard, TablePlacement
from planner.domain.problem import Problem
from planner.enumerate import Families, Family, enumerate_families, narrowest_pieces
from planner.errors import Issue, UnsupportedRequest
from planner.priced import Assignment, PricedOptions, Scope
from planner.pricing import price
from planner.schemes.base import Piece
from planner.schemes.expand import expand


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPlan:
    """A problem with all its families, priced, and the assignment that one plan is."""

    problem: Problem
    families: Families
    priced: PricedOptions
    assignment: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A table's family, and the width (an index into the family's) and site of each of its pieces, left to right."""

    family: int
    pieces: tuple[tuple[int, int], ...]


def find_plan(problem: Problem, placement: Placement, cost_model: CostModel) -> ListedPlan:
    """List and price all families of ``problem``, and find the ones that ``placement`` has.

    The placement must name every table once. Tables with narrower pieces than are listed by
    default are listed with the narrowest pieces allowed, as the search does where nothing else fits.

    Raises
    ------
    UnsupportedRequest
        If a table is cut in a way that is not listed for it.
    """
    position = {table.name: index for index, table in enumerate(placement.tables)}
    placed = [placement.tables[position[table.name]] for table in problem.tables]
    families = enumerate_families(problem)
    found, missing = _find(problem, families, placed)
    if missing:
        tables = (narrowest_pieces(t) if index in missing else t for index, t in enumerate(problem.tables))
        problem = replace(problem, tables=tuple(tables))
        families = enumerate_families(problem)
        found, missing = _find(problem, families, placed)
    if missing:
        name = problem.tables[missing[0]].name
        raise _unlisted(name, position[name])
    priced = price(problem, families, cost_model)
    pieces = np.array([(one.family, *piece) for one in found for piece in one.pieces], dtype=np.int64)
    return ListedPlan(
        problem=problem,
        families=families,
        priced=priced,
        assignment=Assignment(
            piece_shape=priced.shapes_of_family[0][pieces[:, 0]] + pieces[:, 1], piece_site=pieces[:, 2].copy()
        ),
    )


def _find(problem: Problem, families: Families, placed: list[TablePlacement]) -> tuple[list[_Found], list[int]]:
    """Return what every table is, and the tables that are nothing that is listed for them."""
    index_of = {(one.table, one.scheme, one.kernel): index for index, one in enumerate(families.families)}
    found: list[_Found] = []
    missing: list[int] = []
    for table, one in enumerate(placed):
        family = index_of.get((table, one.sharding_type, one.compute_kernel))
        pieces = None if family is None else _pieces(problem, families.families[family], one)
        if family is None or pieces is None:
            missing.append(table)
        else:
            found.append(_Found(family=family, pieces=pieces))
    return found, missing


def _pieces(problem: Problem, family: Family, placed: TablePlacement) -> tuple[tuple[int, int], ...] | None:
    """Return width and site of every piece, ``None`` where its shards are not those of the family."""
    shards_of: dict[int, list[Shard]] = {}
    for shard in placed.shards:
        shards_of.setdefault(shard.column_offset, []).append(shard)
    if not family.geometry.min_pieces <= len(shards_of) <= family.widths.max_pieces:
        return None
    cluster, geometry = problem.cluster, family.geometry
    pieces = []
    for offset, shards in sorted(shards_of.items()):
        columns, rank = shards[0].num_columns, min(shard.rank for shard in shards)
        width = int(np.searchsorted(family.widths.columns, columns))
        site = {Scope.RANK: rank, Scope.HOST: cluster.host_of(rank), Scope.WORLD: 0}[geometry.scope]
        piece = Piece(scope=geometry.scope, column_offset=offset, num_columns=columns, replicated=geometry.replicated)
        expected = expand(problem.tables[family.table], piece, site, cluster, cluster.device_tier)
        if columns not in family.widths.columns or set(shards) != set(expected):
            return None
        pieces.append((width, site))
    return tuple(pieces)


def _unlisted(name: str, index: int) -> UnsupportedRequest:
    return UnsupportedRequest(
        Issue(
            code="unlisted-cut",
            pointer=f"/tables/{index}",
            message=f'table "{name}" is cut in a way that this version does not list for it',
            hint="plan again with this version, or judge the plan with plans:evaluate",
        )
    )
