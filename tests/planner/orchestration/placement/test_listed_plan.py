"""Placements found again as indices, and those that are not listed refused."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.errors import UnsupportedRequest
from planner.options.schemes.geometry import DEFAULT_MIN_PARTITION
from planner.orchestration.placement.listed_plan import find_plan
from planner.orchestration.placement.to_placement import to_placement
from tests.planner.output.explain.test_alternatives import solved
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table


def only(scheme: Scheme) -> TableConstraints:
    return TableConstraints(sharding_types=frozenset({scheme}))


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_scheme_is_found_again(scheme: Scheme, hosts: int) -> None:
    tables = [make_table(name, 4000, 128, constraints=only(scheme)) for name in ("a", "b")]
    problem = make_problem(*tables, cluster=make_cluster(hosts, 4 // hosts), runtime="generic")
    placement = solved(problem).placement
    turned = replace(placement, tables=placement.tables[::-1])
    found = find_plan(problem, turned, ROOFLINE)
    assert to_placement(found.problem, found.families, found.priced, found.assignment) == placement


def in_pieces(problem: Problem, *widths: int) -> Placement:
    """The first table of a problem by columns, one piece on each rank."""
    table = problem.tables[0]
    template = solved(replace(problem, tables=(replace(table, constraints=only(Scheme.COLUMN_WISE)),))).placement
    shards = [
        replace(template.tables[0].shards[0], rank=i, column_offset=sum(widths[:i]), num_columns=width)
        for i, width in enumerate(widths)
    ]
    return replace(template, tables=(replace(template.tables[0], shards=Shards.of(shards)),))


def test_narrow_pieces_are_listed_where_a_plan_has_them() -> None:
    """As the search does where nothing else fits; unequal pieces of no listed cut are found, too."""
    problem = make_problem(make_table("a", 4000, 128))
    assert DEFAULT_MIN_PARTITION > 24
    for widths in ((96, 32), (104, 24), (44, 44, 20, 20)):
        found = find_plan(problem, in_pieces(problem, *widths), ROOFLINE)
        assert tuple(found.priced.shape_columns[found.assignment.piece_shape].tolist()) == widths
        assert found.assignment.piece_site.tolist() == list(range(len(widths)))


def changed(placed: TablePlacement, **changes: int) -> TablePlacement:
    first, *others = placed.shards
    return replace(placed, shards=Shards.of([replace(first, **changes), *others]))


def test_what_is_not_listed_is_refused_with_its_place() -> None:
    problem = make_problem(make_table("a", 4000, 128), make_table("b", 4000, 128, constraints=only(Scheme.ROW_WISE)))
    placement = solved(problem).placement
    wrong_rows = changed(placement.tables[1], num_rows=999)
    not_allowed = replace(placement.tables[1], sharding_type=Scheme.TABLE_WISE)
    for wrong in (wrong_rows, not_allowed):
        with pytest.raises(UnsupportedRequest) as caught:
            find_plan(problem, replace(placement, tables=(placement.tables[0], wrong)), ROOFLINE)
        assert (caught.value.issue.code, caught.value.issue.pointer) == ("unlisted-cut", "/tables/1")
