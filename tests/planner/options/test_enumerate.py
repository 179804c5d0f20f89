"""Families: each cut of each one passes the independent checks, wherever it is placed."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import Family, enumerate_families, list_cuts, with_narrowest_pieces
from planner.options.runtimes.torchrec.rules import SCHEMES
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.solver.problem import Scope
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.thorough import thorough


def placed(problem: Problem, family: Family, widths: list[int], sites: list[int]) -> Placement:
    """The placement of a one-table problem."""
    table, cluster, geometry = problem.tables[0], problem.cluster, family.geometry
    offsets = itertools.accumulate(widths[:-1], initial=0)
    shards = Shards.joined(
        expand(
            table,
            Piece(scope=geometry.scope, column_offset=offset, num_columns=width, replicated=geometry.replicated),
            site,
            cluster,
            Tier.HBM,
        )
        for offset, width, site in zip(offsets, widths, sites, strict=True)
    )
    one = TablePlacement(name=table.name, sharding_type=family.scheme, compute_kernel=family.kernel, shards=shards)
    return Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=(one,))


def any_cut(family: Family, columns: int, data: st.DataObject) -> list[int]:
    """Widths of pieces that add up to all columns, cut off one after the other."""
    widths, left = family.widths.columns.tolist(), columns
    most = family.widths.max_pieces
    count = data.draw(st.integers(-(-columns // widths[-1]) if most > 1 else 1, most))
    count = max(count, family.geometry.min_pieces)
    pieces = []
    for others in range(count - 1, -1, -1):
        fitting = [w for w in widths if others * widths[0] <= left - w <= others * widths[-1]]
        pieces.append(data.draw(st.sampled_from(fitting)))
        left -= pieces[-1]
    return pieces


@thorough
@given(
    rows=st.integers(1, 5000),
    quads=st.integers(1, 80),
    hosts=st.integers(1, 3),
    local=st.integers(1, 4),
    pooling=st.sampled_from(["sum", "mean", "none"]),
    data=st.data(),
)
@settings(max_examples=120, deadline=None)
def test_every_cut_is_legal_wherever_it_is_placed(
    rows: int, quads: int, hosts: int, local: int, pooling: str, data: st.DataObject
) -> None:
    """The listed ones, and any other cut of the same widths."""
    problem = make_problem(make_table(rows=rows, dim=4 * quads, pooling=pooling), cluster=make_cluster(hosts, local))
    families = enumerate_families(problem).families
    assert families
    for family in families:
        listed = [family.widths.columns[cut].tolist() for cut in family.widths.cuts]
        for widths in (*listed, any_cut(family, 4 * quads, data)):
            assert family.geometry.min_pieces <= len(widths) <= family.widths.max_pieces
            if family.geometry.same_host:
                host = data.draw(st.integers(0, hosts - 1))
                sites = [host * local + data.draw(st.integers(0, local - 1)) for _ in widths]
            else:
                num_sites = {Scope.RANK: hosts * local, Scope.HOST: hosts, Scope.WORLD: 1}[family.geometry.scope]
                sites = [data.draw(st.integers(0, num_sites - 1)) for _ in widths]
            assert verify(problem, placed(problem, family, widths, sites)) == ()


def schemes(problem: Problem, table: int = 0) -> set[Scheme]:
    return {family.scheme for family in enumerate_families(problem).families if family.table == table}


def listed_widths(problem: Problem) -> list[list[int]]:
    """Widths of all listed cuts."""
    families = enumerate_families(problem).families
    return [family.widths.columns[cut].tolist() for family in families for cut in family.widths.cuts]


def test_all_schemes_of_a_runtime_on_two_hosts() -> None:
    for runtime, listed in (("torchrec", set(SCHEMES)), ("generic", set(Scheme))):
        problem = make_problem(make_table(dim=128), cluster=make_cluster(2, 4), runtime=runtime)
        assert schemes(problem) == listed


def test_no_rows_no_row_wise() -> None:
    """Three rows on four ranks would leave a rank without rows."""
    found = schemes(make_problem(make_table(rows=3, dim=128), cluster=make_cluster(2, 2)))
    assert Scheme.ROW_WISE not in found
    assert Scheme.TABLE_ROW_WISE in found  # two ranks per host: two rows and one


def test_pooling_decides_schemes() -> None:
    cluster = make_cluster(2, 4)
    assert Scheme.GRID_SHARD not in schemes(make_problem(make_table(dim=128, pooling="mean"), cluster=cluster))
    sequence = schemes(make_problem(make_table(dim=128, pooling="none"), cluster=cluster))
    assert sequence == {Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE}


def test_kernels() -> None:
    """data_parallel is dense only; the rest fused, and dense where the user asks for it."""
    by_scheme = {
        family.scheme: family.kernel for family in enumerate_families(make_problem(make_table(dim=128))).families
    }
    assert by_scheme.pop(Scheme.DATA_PARALLEL) is Kernel.DENSE
    assert set(by_scheme.values()) == {Kernel.FUSED}
    dense = TableConstraints(compute_kernels=frozenset({Kernel.DENSE}))
    families = enumerate_families(make_problem(make_table(constraints=dense))).families
    assert {(family.scheme, family.kernel) for family in families} == {
        (Scheme.DATA_PARALLEL, Kernel.DENSE),
        (Scheme.TABLE_WISE, Kernel.DENSE),
    }


def test_user_constraints_shape_the_families() -> None:
    cluster = make_cluster(2, 2)
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}), min_partition=64)
    problem = make_problem(make_table(dim=256, constraints=only), cluster=cluster)
    assert listed_widths(problem) == [[128, 128], [88, 84, 84], [64, 64, 64, 64]]
    one_host = TableConstraints(hosts=frozenset({1}))
    assert Scheme.ROW_WISE not in schemes(make_problem(make_table(constraints=one_host), cluster=cluster))
    assert Scheme.TABLE_ROW_WISE in schemes(make_problem(make_table(constraints=one_host), cluster=cluster))
    one_rank = TableConstraints(ranks=frozenset({3}))
    assert schemes(make_problem(make_table(constraints=one_rank), cluster=cluster)) <= {
        Scheme.TABLE_WISE,
        Scheme.COLUMN_WISE,
        Scheme.TABLE_COLUMN_WISE,
    }


def test_groups_shape_the_families() -> None:
    tables = [make_table(name, dim=128) for name in "abc"]
    problem = make_problem(*tables, same_rank=(frozenset({0, 1}),), apart=(frozenset({1, 2}),))
    assert schemes(problem, 0) == schemes(problem, 1) == {Scheme.TABLE_WISE}
    assert Scheme.DATA_PARALLEL not in schemes(problem, 2)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (make_table(dim=10), "pad embedding_dim to 12"),
        (
            make_table(
                constraints=TableConstraints(
                    sharding_types=frozenset({Scheme.ROW_WISE}), compute_kernels=frozenset({Kernel.DENSE})
                )
            ),
            "compute_kernels",
        ),
        (make_table(rows=2, constraints=TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))), "no cut fits"),
    ],
)
def test_a_table_without_families_says_why(table: object, words: str) -> None:
    problem = make_problem(table)  # type: ignore[arg-type]
    refused = enumerate_families(problem).scheme_issues[0]
    assert any(words in why for _, why in refused)
    assert {scheme for scheme, _ in refused} == set(Scheme)


def test_as_many_pieces_as_ranks_are_tried() -> None:
    """288 columns on nine ranks: nine pieces of 32."""
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}))
    problem = make_problem(make_table(dim=288, constraints=only), cluster=make_cluster(1, 9))
    assert [32] * 9 in listed_widths(problem)


def test_wide_tables_are_cut() -> None:
    """2,048 columns: no piece is wider than the 1,024 that the kernels read."""
    problem = make_problem(make_table(dim=2048))
    families = enumerate_families(problem).families
    assert max(family.widths.columns[-1] for family in families) == 1024
    assert [1024, 1024] in listed_widths(problem)


def test_one_rank_has_nothing_to_cut_for() -> None:
    """Neither a cluster of one rank for column_wise nor hosts of one rank for table_column_wise."""
    alone = make_problem(make_table(dim=128), cluster=make_cluster(1, 1))
    assert schemes(alone) == {Scheme.TABLE_WISE, Scheme.DATA_PARALLEL}
    assert Scheme.TABLE_COLUMN_WISE not in schemes(make_problem(make_table(dim=128), cluster=make_cluster(2, 1)))


def test_narrowest_pieces_keep_what_the_user_says() -> None:
    free, other = make_table("free", dim=64), make_table("other", dim=64)
    named = replace(make_table("named", dim=64), constraints=TableConstraints(min_partition=16))
    narrowed = with_narrowest_pieces(make_problem(free, named, other), (0, 1)).tables
    assert narrowed[0].constraints.min_partition == 4
    assert narrowed[1:] == (named, other)


def test_shapes_and_cuts_are_numbered_through() -> None:
    """Two tables of 64 columns on two ranks: whole, column_wise 32 + 32, row_wise; replicated."""
    tables = [make_table(name, constraints=TableConstraints(sharding_types=only)) for name, only in TWO.items()]
    cuts = list_cuts(enumerate_families(make_problem(*tables, cluster=make_cluster(1, 2))))
    assert cuts.shape_family.tolist() == [0, 1, 2, 3]
    assert cuts.shape_columns.tolist() == [64, 32, 64, 64]
    assert cuts.option_family.tolist() == [0, 1, 2, 3]
    assert cuts.unit_option.tolist() == [0, 1, 1, 2, 3]
    assert cuts.unit_shape.tolist() == [0, 1, 1, 2, 3]


TWO = {
    "a": frozenset({Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE}),
    "b": frozenset({Scheme.DATA_PARALLEL}),
}
