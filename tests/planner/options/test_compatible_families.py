"""Which families may be used together."""

from cost_models.vocabulary import Scheme
from planner.domain.problem.table import TableConstraints
from planner.options.compatible_families import compatible_family_sets
from planner.options.enumerate import enumerate_families
from tests.support.planning.builders import make_problem, make_table


def test_no_mean_tables_one_mode() -> None:
    problem = make_problem(make_table("a"), make_table("b"))
    (mask,) = compatible_family_sets(problem, enumerate_families(problem)).masks
    assert mask.all()


def test_free_and_all_by_rows() -> None:
    problem = make_problem(make_table("m", pooling="mean"), make_table("s"))
    families = enumerate_families(problem)
    free, rows = compatible_family_sets(problem, families).masks
    for one, in_free, in_rows in zip(families.families, free, rows, strict=True):
        by_rows = one.scheme in (Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE)
        assert in_free == (not (by_rows and one.table == 0))
        assert in_rows == by_rows


def test_other_modules_are_left_alone() -> None:
    problem = make_problem(make_table("m", pooling="mean", module_path="x"), make_table("s", module_path="y"))
    families = enumerate_families(problem)
    for mask in compatible_family_sets(problem, families).masks:
        assert all(mask[i] for i, one in enumerate(families.families) if one.table == 1)


def test_a_module_that_cannot_go_by_rows_stays_free() -> None:
    """Three rows cannot be cut over four ranks, so that the module of that table is not undecided."""
    problem = make_problem(make_table("m", pooling="mean"), make_table("tiny", rows=3))
    assert len(compatible_family_sets(problem, enumerate_families(problem)).masks) == 1


def test_a_module_that_can_be_neither_leaves_no_mode() -> None:
    rows_only = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    problem = make_problem(make_table("m", pooling="mean", constraints=rows_only), make_table("tiny", rows=3))
    family_sets = compatible_family_sets(problem, enumerate_families(problem))
    assert family_sets.masks == ()
    assert family_sets.exhaustive
    assert family_sets.unsatisfiable_modules == ("",)


def test_a_stuck_module_next_to_many_undecided_ones() -> None:
    rows_only = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    many = [make_table(f"m{i}", pooling="mean", module_path=f"module{i}") for i in range(4)]
    stuck = [
        make_table("s", pooling="mean", module_path="stuck", constraints=rows_only),
        make_table("tiny", rows=3, module_path="stuck"),
    ]
    problem = make_problem(*many, *stuck)
    assert compatible_family_sets(problem, enumerate_families(problem)).unsatisfiable_modules == ("stuck",)


def test_many_modules_are_switched_one_at_a_time() -> None:
    """Five modules: all free, all by rows, and each alone by rows, the largest first."""
    tables = [make_table(f"m{i}", rows=1000 * (i + 1), pooling="mean", module_path=f"module{i}") for i in range(5)]
    problem = make_problem(*tables)
    families = enumerate_families(problem)
    family_sets = compatible_family_sets(problem, families)
    assert len(family_sets.masks) == 7
    assert not family_sets.exhaustive
    by_rows = [
        {
            o.table
            for o, preserved in zip(families.families, mask, strict=True)
            if preserved and o.scheme is Scheme.ROW_WISE
        }
        for mask in family_sets.masks
    ]
    assert by_rows == [set(), {0, 1, 2, 3, 4}, {4}, {3}, {2}, {1}, {0}]


def test_few_modules_are_tried_in_every_combination() -> None:
    tables = [make_table(f"m{i}", pooling="mean", module_path=f"module{i}") for i in range(3)]
    family_sets = compatible_family_sets(make_problem(*tables), enumerate_families(make_problem(*tables)))
    assert len(family_sets.masks) == 8
    assert family_sets.exhaustive
