"""What tables of a checkpoint may be: the rules of the options, and those of the verifier, which share no code."""

import itertools
from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.checkpoint_plan import CheckpointPlan
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.options.loadable_layouts import LoadableLayout, loadable_layouts
from planner.verification.narrow_pieces import narrow_pieces
from planner.verification.stored_state import checkpoint_issues, state_loss, stored_state
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.planning.layouts import laid_out, laid_out_on

TABLE = make_table("t", rows=1000, dim=64, optimizer="rowwise_adagrad")
_WIDTHS = ((), (32, 32), (16, 48), (48, 16))
#: Every scheme with its kernels and cuts.
LAYOUTS = [
    (Scheme.DATA_PARALLEL, Kernel.DENSE, ()),
    (Scheme.TABLE_WISE, Kernel.DENSE, ()),
    *(
        (scheme, kernel, widths)
        for scheme, kernel, widths in itertools.product(
            Scheme, (Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE), _WIDTHS
        )
        if scheme.facts.cuts_columns == bool(widths) and scheme is not Scheme.DATA_PARALLEL
    ),
]


def placed(layout: tuple[Scheme, Kernel, tuple[int, ...]], num_ranks: int = 4) -> TablePlacement:
    scheme, kernel, widths = layout
    return laid_out(TABLE, scheme, widths=widths, kernel=kernel, num_ranks=num_ranks)


def problem_of(before: TablePlacement, *, optimizer: str = "rowwise_adagrad", keep: str = "state") -> Problem:
    plan = CheckpointPlan(placement=laid_out_on(4, 2, before), keep=keep)  # type: ignore[arg-type]
    table = replace(TABLE, optimizer=OPTIMIZERS[optimizer])
    return replace(make_problem(table, cluster=make_cluster(2, 4)), checkpoint_plan=plan)


def allows(loadable: LoadableLayout, layout: tuple[Scheme, Kernel, tuple[int, ...]]) -> bool:
    scheme, kernel, widths = layout
    return scheme in loadable.schemes and kernel in loadable.kernels and loadable.column_cut in ((), widths)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_options_and_verifier_agree_on_every_pair_of_layouts(optimizer: str) -> None:
    allowed = 0
    for before in LAYOUTS:
        loadable = loadable_layouts(problem_of(placed(before), optimizer=optimizer))[0]
        for after in LAYOUTS:
            is_loadable = (
                state_loss(
                    OPTIMIZERS[optimizer], stored_state(placed(before)), stored_state(placed(after, num_ranks=8))
                )
                == ""
            )
            assert allows(loadable, after) == is_loadable, (before, after)
            allowed += is_loadable
    assert len(LAYOUTS) <= allowed < len(LAYOUTS) ** 2  # each layout loads itself


def test_a_number_per_row_ties_the_columns_of_pieces() -> None:
    loadable = loadable_layouts(problem_of(placed((Scheme.COLUMN_WISE, Kernel.FUSED, (16, 48)))))[0]
    assert loadable.schemes == {Scheme.COLUMN_WISE, Scheme.TABLE_COLUMN_WISE, Scheme.GRID_SHARD}
    assert loadable.column_cut == (16, 48)
    free = loadable_layouts(problem_of(placed((Scheme.COLUMN_WISE, Kernel.FUSED, (16, 48))), optimizer="adagrad"))[0]
    assert free.schemes == set(Scheme) - {Scheme.DATA_PARALLEL}
    assert free.column_cut == ()


def test_a_whole_table_stays_in_one_piece() -> None:
    loadable = loadable_layouts(problem_of(placed((Scheme.ROW_WISE, Kernel.FUSED, ()))))[0]
    assert loadable.schemes == {Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE}


def test_without_state_everything_is_allowed_but_key_value() -> None:
    loadable = loadable_layouts(problem_of(placed((Scheme.TABLE_WISE, Kernel.FUSED, ())), optimizer="sgd"))[0]
    assert loadable == LoadableLayout(schemes=frozenset(Scheme), kernels=frozenset(Kernel) - {Kernel.KEY_VALUE})


def test_schemes_keeps_the_sharding_type_too() -> None:
    loadable = loadable_layouts(
        problem_of(placed((Scheme.ROW_WISE, Kernel.FUSED, ())), optimizer="adam", keep="schemes")
    )[0]
    assert loadable.schemes == {Scheme.ROW_WISE}


def test_other_tables_and_other_shapes_are_free() -> None:
    problem = problem_of(placed((Scheme.ROW_WISE, Kernel.FUSED, ())))
    grown = replace(problem, tables=(replace(TABLE, num_embeddings=2000), make_table("new")))
    assert loadable_layouts(grown) == {}
    assert checkpoint_issues(grown, laid_out_on(8, 4, placed((Scheme.DATA_PARALLEL, Kernel.DENSE, ()), 8))) == []


def test_families_have_the_given_cut_alone() -> None:
    found = enumerate_families(problem_of(placed((Scheme.COLUMN_WISE, Kernel.FUSED, (16, 48)))))
    assert {family.scheme for family in found.families} == {
        Scheme.COLUMN_WISE,
        Scheme.TABLE_COLUMN_WISE,
        Scheme.GRID_SHARD,
    }
    for family in found.families:
        widths = family.widths
        assert [widths.columns[cut].tolist() for cut in widths.cuts] == [[16, 48]]
        assert (family.geometry.min_pieces, widths.max_pieces, widths.is_fixed) == (2, 2, True)


def test_the_verifier_names_table_and_loss() -> None:
    before = placed((Scheme.COLUMN_WISE, Kernel.FUSED, (16, 48)))
    (issue,) = checkpoint_issues(
        problem_of(before), laid_out_on(8, 4, placed((Scheme.COLUMN_WISE, Kernel.FUSED, (32, 32)), 8))
    )
    assert (issue.code, issue.pointer) == ("checkpoint-state", "/tables/0")
    assert "the pieces have 32 + 32 columns, not 16 + 48" in issue.message
    (other,) = checkpoint_issues(
        problem_of(placed((Scheme.ROW_WISE, Kernel.FUSED, ())), keep="schemes"),
        laid_out_on(8, 4, placed((Scheme.TABLE_WISE, Kernel.FUSED, ()), 8)),
    )
    assert (other.code, other.message) == (
        "checkpoint-scheme",
        'table "t" in the checkpoint: it is row_wise, not table_wise',
    )


def test_narrow_pieces_of_a_checkpoint_are_not_warned_of() -> None:
    layout = placed((Scheme.COLUMN_WISE, Kernel.FUSED, (16, 48)))
    problem = problem_of(layout)
    assert narrow_pieces(problem, laid_out_on(4, 2, layout)) == ()
    (warning,) = narrow_pieces(replace(problem, checkpoint_plan=None), laid_out_on(4, 2, layout))
    assert warning.code == "narrow-pieces"
