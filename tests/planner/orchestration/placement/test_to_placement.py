"""Placements of whole plans, against the shards of one piece after the other."""

import itertools

import pytest

from cost_models.vocabulary import Scheme
from planner.domain.plan.shards import Shards
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Scope
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table


@pytest.mark.parametrize(("hosts", "local"), [(1, 1), (1, 4), (2, 2), (3, 1)])
def test_every_piece_becomes_its_shards_in_the_order_of_tables(hosts: int, local: int) -> None:
    """One table of each scheme that the cluster has, in one plan."""
    cluster = make_cluster(hosts, local)
    tables = [
        make_table(scheme.label, rows=1003, dim=256, constraints=TableConstraints(sharding_types=frozenset({scheme})))
        for scheme in Scheme
    ]
    refused = enumerate_families(make_problem(*tables, cluster=cluster)).scheme_issues
    problem = make_problem(*(one for index, one in enumerate(tables) if index not in refused), cluster=cluster)
    families = enumerate_families(problem)
    priced = price(problem, families, ROOFLINE)
    assignment = Greedy().solve(priced, SolveLimits(time_limit_seconds=1)).assignment
    assert assignment is not None
    placement = to_placement(problem, families, priced, assignment)
    assert (placement.world_size, placement.ranks_per_host) == (hosts * local, local)
    pieces = zip(assignment.piece_shape.tolist(), assignment.piece_site.tolist(), strict=True)
    of_table = itertools.groupby(pieces, key=lambda piece: int(priced.shape_table[piece[0]]))
    for (index, its_pieces), placed in zip(of_table, placement.tables, strict=True):
        expected, offset = [], 0
        for shape, site in its_pieces:
            family = families.families[int(priced.shape_family[shape])]
            columns = int(priced.shape_columns[shape])
            piece = Piece(
                scope=family.geometry.scope,
                column_offset=offset,
                num_columns=columns,
                replicated=family.geometry.replicated,
            )
            expected.append(expand(problem.tables[index], piece, site, cluster, cluster.device_tier))
            offset += columns
        assert placed.name == placed.sharding_type.label == problem.tables[index].name
        assert placed.shards == Shards.joined(expected)
        assert offset == 256
    assert 1 in (hosts, local) or {family.geometry.scope for family in families.families} == set(Scope)
