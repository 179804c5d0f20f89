"""Options: each one of every table passes the independent checks, wherever it is placed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.placement import Placement, TablePlacement
from planner.domain.problem import Problem
from planner.domain.table import TableConstraints
from planner.enumerate import Option, enumerate_options
from planner.priced import Scope
from planner.schemes.expand import expand
from planner.verify import verify
from tests.planner.builders import make_cluster, make_problem, make_table


def placed(problem: Problem, option: Option, sites: list[int]) -> Placement:
    """The placement of a one-table problem."""
    table, cluster = problem.tables[0], problem.cluster
    shards = tuple(
        shard
        for piece, site in zip(option.cut.pieces, sites, strict=True)
        for shard in expand(table, piece, site, cluster, Tier.HBM)
    )
    one = TablePlacement(name=table.name, sharding_type=option.scheme, compute_kernel=option.kernel, shards=shards)
    return Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=(one,))


@given(
    rows=st.integers(1, 5000),
    quads=st.integers(1, 80),
    hosts=st.integers(1, 3),
    local=st.integers(1, 4),
    pooling=st.sampled_from(["sum", "mean", "none"]),
    data=st.data(),
)
@settings(max_examples=120, deadline=None)
def test_every_option_is_legal_wherever_it_is_placed(
    rows: int, quads: int, hosts: int, local: int, pooling: str, data: st.DataObject
) -> None:
    problem = make_problem(make_table(rows=rows, dim=4 * quads, pooling=pooling), cluster=make_cluster(hosts, local))
    options = enumerate_options(problem).options
    assert options
    for option in options:
        if option.cut.same_host:
            host = data.draw(st.integers(0, hosts - 1))
            sites = [host * local + data.draw(st.integers(0, local - 1)) for _ in option.cut.pieces]
        else:
            sizes = {Scope.RANK: hosts * local, Scope.HOST: hosts, Scope.WORLD: 1}
            sites = [data.draw(st.integers(0, sizes[piece.scope] - 1)) for piece in option.cut.pieces]
        assert verify(problem, placed(problem, option, sites)) == ()


def schemes(problem: Problem, table: int = 0) -> set[Scheme]:
    return {option.scheme for option in enumerate_options(problem).options if option.table == table}


def test_all_seven_schemes_on_two_hosts() -> None:
    assert schemes(make_problem(make_table(dim=128), cluster=make_cluster(2, 4))) == set(Scheme)


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
    by_scheme = {o.scheme: o.kernel for o in enumerate_options(make_problem(make_table(dim=128))).options}
    assert by_scheme.pop(Scheme.DATA_PARALLEL) is Kernel.DENSE
    assert set(by_scheme.values()) == {Kernel.FUSED}
    dense = TableConstraints(compute_kernels=frozenset({Kernel.DENSE}))
    options = enumerate_options(make_problem(make_table(constraints=dense))).options
    assert {(o.scheme, o.kernel) for o in options} == {
        (Scheme.DATA_PARALLEL, Kernel.DENSE),
        (Scheme.TABLE_WISE, Kernel.DENSE),
    }


def test_user_constraints_shape_the_options() -> None:
    cluster = make_cluster(2, 2)
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}), min_partition=64)
    problem = make_problem(make_table(dim=256, constraints=only), cluster=cluster)
    widths = [[p.num_columns for p in o.cut.pieces] for o in enumerate_options(problem).options]
    assert widths == [[128, 128], [88, 84, 84], [64, 64, 64, 64]]
    one_host = TableConstraints(hosts=frozenset({1}))
    assert Scheme.ROW_WISE not in schemes(make_problem(make_table(constraints=one_host), cluster=cluster))
    assert Scheme.TABLE_ROW_WISE in schemes(make_problem(make_table(constraints=one_host), cluster=cluster))
    one_rank = TableConstraints(ranks=frozenset({3}))
    assert schemes(make_problem(make_table(constraints=one_rank), cluster=cluster)) <= {
        Scheme.TABLE_WISE,
        Scheme.COLUMN_WISE,
        Scheme.TABLE_COLUMN_WISE,
    }


def test_groups_shape_the_options() -> None:
    tables = [make_table(name, dim=128) for name in "abc"]
    problem = make_problem(*tables, same_rank=(frozenset({0, 1}),), apart=(frozenset({1, 2}),))
    assert schemes(problem, 0) == schemes(problem, 1) == {Scheme.TABLE_WISE}
    assert Scheme.DATA_PARALLEL not in schemes(problem, 2)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (make_table(dim=10), "pad embedding_dim to 12"),
        (make_table(constraints=TableConstraints(compute_kernels=frozenset({Kernel.FUSED_UVM}))), "compute_kernels"),
        (make_table(rows=2, constraints=TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))), "no cut fits"),
    ],
)
def test_a_table_without_options_says_why(table: object, words: str) -> None:
    problem = make_problem(table)  # type: ignore[arg-type]
    assert any(words in reason for reason in enumerate_options(problem).refusals[0])


def test_as_many_pieces_as_ranks_are_tried() -> None:
    """288 columns on nine ranks: nine pieces of 32."""
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}))
    problem = make_problem(make_table(dim=288, constraints=only), cluster=make_cluster(1, 9))
    widths = [[piece.num_columns for piece in option.cut.pieces] for option in enumerate_options(problem).options]
    assert [32] * 9 in widths


def test_wide_tables_are_cut() -> None:
    problem = make_problem(make_table(dim=2048))
    widest = max(piece.num_columns for option in enumerate_options(problem).options for piece in option.cut.pieces)
    assert widest == 1024
