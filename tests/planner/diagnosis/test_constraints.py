"""The user's constraints as a list."""

from cost_models.vocabulary import Kernel, Scheme
from planner.diagnosis.constraints import constraints_of, with_only
from planner.domain.problem.problem import Problem, Reservation
from planner.domain.problem.table import PinnedPiece, PinnedTable, TableConstraints
from tests.support.planning.builders import make_problem, make_table


def constrained() -> Problem:
    """Every constraint that there is, once."""
    everything = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE}),
        compute_kernels=frozenset({Kernel.FUSED}),
        ranks=frozenset({2, 0}),
        hosts=frozenset({0}),
        min_partition=64,
        cache_load_factors=(0.1, 0.5),
        data_types=("fp32",),
    )
    piece = PinnedPiece(column_offset=0, num_columns=64, site=1)
    pin = PinnedTable(sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, pieces=(piece,))
    return make_problem(
        make_table("a"),
        make_table("b", constraints=everything),
        make_table("c", constraints=TableConstraints(pinned=pin)),
        same_rank=(frozenset({0, 1}),),
        apart=(frozenset({1, 2}),),
        reservation=Reservation(hbm_fraction=0.15),
    )


def test_each_is_named_by_its_place_in_the_spec_and_what_it_asks_for() -> None:
    assert [(one.pointer, one.message) for one in constraints_of(constrained())] == [
        ("/constraints/same_rank/0", "tables a, b must share one rank"),
        ("/constraints/apart/0", "tables b, c must not share a rank"),
        ("/model/tables/1/constraints/sharding_types", 'table "b" may only use table_wise, row_wise'),
        ("/model/tables/1/constraints/compute_kernels", 'table "b" may only run fused'),
        ("/model/tables/1/constraints/ranks", 'table "b" may only be on ranks 0, 2'),
        ("/model/tables/1/constraints/hosts", 'table "b" may only be on hosts 0'),
        ("/model/tables/1/constraints/min_partition", 'table "b" may not have shards narrower than 64 columns'),
        ("/model/tables/1/constraints/cache_load_factors", 'table "b" may only have caches of 0.1, 0.5 of its rows'),
        ("/model/tables/1/constraints/data_types", 'table "b" may only have weights of fp32'),
        ("/model/tables/2/constraints/pinned", 'table "c" is pinned'),
        ("/constraints/reserved_hbm_fraction", "0.15 of every rank's memory is kept free of tables"),
    ]


def test_long_lists_are_cut() -> None:
    ranks = TableConstraints(ranks=frozenset(range(9)))
    (only,) = constraints_of(make_problem(make_table("a", constraints=ranks)))
    assert only.message == 'table "a" may only be on ranks 0, 1, 2, 3 and 5 more'


def test_all_of_them_are_the_problem_and_each_can_be_taken_away_alone() -> None:
    problem = constrained()
    everything = constraints_of(problem)
    assert with_only(problem, everything) == problem
    for gone in everything:
        left = [one for one in everything if one != gone]
        remaining = constraints_of(with_only(problem, left))
        assert [one.message for one in remaining] == [one.message for one in left]
    assert constraints_of(with_only(problem, ())) == ()


def test_other_reservations_are_no_constraints() -> None:
    free = with_only(constrained(), ()).reservation
    assert (free.hbm_fraction, free.dense_multiplier, free.input_copies) == (0.0, 6.0, 20)


def test_without_a_list_of_types_a_table_may_have_any_that_can_be_trained_and_keeps_its_splits() -> None:
    half = TableConstraints(data_types=("fp16",), hot_row_fractions=(0.1,))
    (table,) = with_only(make_problem(make_table("a", constraints=half)), ()).tables
    assert table.constraints == TableConstraints(data_types=("fp16", "fp32"), hot_row_fractions=(0.1,))
