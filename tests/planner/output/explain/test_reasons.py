"""Why a table is cut so, in words that say what was computed."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Phase, Scheme
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.storage import Storage
from planner.output.explain.alternatives import Alternative
from planner.output.explain.reasons import cut_in_words, reason, storage_in_words
from tests.support.planning.builders import make_assignment

FUSED = Storage(kernel=Kernel.FUSED, data_type=DATA_TYPES["fp32"])
DENSE = replace(FUSED, kernel=Kernel.DENSE)
CACHED = replace(FUSED, kernel=Kernel.FUSED_UVM_CACHING, cache_load_factor=0.1)
NEXT = Alternative(
    scheme=Scheme.ROW_WISE,
    storage=FUSED,
    columns=(128,),
    assignment=make_assignment([(0, 0)]),
    objective_seconds=11e-3,
    change_seconds=1e-3,
    excess_bytes=0.0,
    is_best=True,
    phase=Phase.FORWARD_COMM,
    phase_seconds=(2e-3, 2.8e-3),
)
WHOLE = replace(NEXT, scheme=Scheme.TABLE_WISE, change_seconds=4e-3)


def why(*alternatives: Alternative, scheme: Scheme = Scheme.COLUMN_WISE, is_pinned: bool = False) -> str:
    return reason(scheme, FUSED, (64, 64), alternatives, objective_seconds=10e-3, is_pinned=is_pinned, group="host")


def test_the_next_best_with_its_price_and_the_phase_that_lengthens() -> None:
    assert why(NEXT) == (
        "cut by columns (2x64); next best: cut by rows over all ranks, which would add 1 ms (10%), with forward_comm"
        " 1.4x as long"
    )


def test_leaving_the_table_whole_is_always_reported() -> None:
    assert "; whole on one rank, which would add 4 ms (40%)" in why(NEXT, WHOLE)
    assert why(WHOLE, NEXT).count("; ") == 1
    assert why(NEXT, WHOLE, scheme=Scheme.TABLE_WISE).count("; ") == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"change_seconds": -2e-5}, "would save 20 us (0.2%): the plan is not the best one"),
        ({"change_seconds": 1e-12}, "would cost the same"),
        ({"excess_bytes": 3e9}, "would exceed the memory of a rank by 3.0 GB"),
        ({"phase": None}, "would add 1 ms (10%)"),
        ({"phase_seconds": (2e-3, 2.001e-3)}, "would add 1 ms (10%)"),
        ({"phase_seconds": (0.0, 1e-3)}, "would add 1 ms (10%), above all in forward_comm"),
        ({"change_seconds": 20e-3}, "would add 20 ms (200%), with forward_comm 1.4x as long"),
        ({"is_best": False}, "would add at most 1 ms (10%), with forward_comm 1.4x as long"),
        (
            {"phase": None, "opened_seconds": 84e-6, "num_kinds": 3},
            "would add 1 ms (10%) (row_wise would open a third set of collectives: +84 us)",
        ),
        (
            {"phase": None, "opened_seconds": 84e-6, "closed_seconds": 67e-6, "num_kinds": 1},
            "would add 1 ms (10%) (row_wise would open a set of collectives: +84 us; one set of collectives less would"
            " save 67 us)",
        ),
        ({"is_best": False, "excess_bytes": 1000.0}, "would exceed the memory of a rank by at most 1.0 kB"),
    ],
)
def test_what_an_alternative_would_do(changes: dict[str, object], words: str) -> None:
    assert why(replace(NEXT, **changes)).endswith(f"all ranks, which {words}")


def test_where_nothing_else_fits_that_is_reported() -> None:
    assert "; no other cut fits: cut by rows" in why(replace(NEXT, excess_bytes=1.0))
    assert "; next best: " in why(NEXT, replace(WHOLE, excess_bytes=1.0))


def test_other_widths_and_kernels_of_the_same_cut_are_named() -> None:
    columns = replace(NEXT, scheme=Scheme.COLUMN_WISE, columns=(32, 96))
    assert "cut by columns (96 + 32), which would" in why(columns)
    assert "cut by columns (96 + 32) with the dense kernel, which would" in why(replace(columns, storage=DENSE))
    assert "kernel" not in why(replace(NEXT, storage=DENSE))


def test_where_rows_are_preserved_is_reported_unless_it_is_the_usual() -> None:
    assert storage_in_words(FUSED) == storage_in_words(DENSE) == ""
    assert storage_in_words(CACHED) == ", in host memory behind a cache of 10% of its rows"
    assert storage_in_words(replace(FUSED, kernel=Kernel.FUSED_UVM)) == ", in host memory"
    split = replace(FUSED, kernel=Kernel.FUSED_UVM, hot_row_share=0.02)
    assert storage_in_words(split) == ", its hottest 2% of rows near and the others in host memory"
    assert (
        storage_in_words(replace(CACHED, in_scm=True)) == ", in storage-class memory behind a cache of 10% of its rows"
    )
    assert storage_in_words(replace(split, in_scm=True)).endswith("rows near and the others in storage-class memory")
    stored = replace(CACHED, kernel=Kernel.KEY_VALUE)
    assert storage_in_words(stored) == ", in block storage behind a cache of 10% of its rows"
    assert "cut by rows over all ranks, in host memory behind a cache of 10% of its rows, which would" in why(
        replace(NEXT, storage=CACHED)
    )


def test_another_type_of_the_same_cut_is_named() -> None:
    halves = replace(NEXT, scheme=Scheme.COLUMN_WISE, storage=replace(FUSED, data_type=DATA_TYPES["fp16"]))
    assert "cut by columns (128) as fp16, which would" in why(halves)


def test_no_alternative() -> None:
    assert why(is_pinned=True) == "cut by columns (2x64), because the spec pins it"
    assert "no other cut is allowed" in why()


def test_every_scheme_has_words() -> None:
    assert len({cut_in_words(scheme, (44, 40, 44), "host") for scheme in Scheme}) == len(Scheme)
    assert cut_in_words(Scheme.COLUMN_WISE, (44, 40, 44), "host") == "cut by columns (2x44 + 40)"


def test_pods_stand_for_hosts() -> None:
    words = {scheme: cut_in_words(scheme, (64, 64), "pod") for scheme in Scheme}
    assert not any("host" in one for one in words.values())
    assert words[Scheme.TABLE_ROW_WISE] == "cut by rows over one pod"
    assert words[Scheme.TABLE_COLUMN_WISE] == "cut by columns (2x64) on one pod"
    assert words[Scheme.GRID_SHARD] == "cut by columns (2x64), each by rows over a pod"
