"""Pooling factors of a spec next to those that its statistics saw."""

import pytest

from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from planner.access.table_columns import table_columns
from planner.domain.problem.access import AccessCdf
from planner.errors import InvalidProblem, Issue
from tests.support.service.specs import raw, tiny
from tests.support.service.statistics_files import statistics


def mismatches(pooling_factor: float, num_tables: int = 1) -> list[Issue]:
    """Warnings about tables whose statistics saw one id per sample."""
    names = [f"t{index}" for index in range(num_tables)]
    known = statistics(*names)
    tables = [
        {
            "name": name,
            "num_embeddings": 2_000,
            "embedding_dim": 8,
            "features": [{"name": name, "pooling_factor": pooling_factor / 2, "num_poolings": 2.0}],
            "access": {"statistics": known.digest},
        }
        for name in names
    ]
    request = parse_spec(raw(tiny(model__tables=tables)), Library(find_statistics={known.digest: known.canonical}.get))
    return [issue for issue in request.warnings if issue.code == "pooling-factor-mismatch"]


def test_a_pooling_factor_that_no_one_saw_is_reported_with_both_numbers() -> None:
    (warning,) = mismatches(3.0)
    assert (warning.pointer, warning.severity) == ("/model/tables/0", "warning")
    assert 'table "t0": the spec states 3 ids per sample' in warning.message
    assert "its statistics saw 1: more than 10% apart" in warning.message
    assert mismatches(0.0)


def test_a_step_has_the_distinct_rows_that_were_counted() -> None:
    """At the size of a batch, and of runs of four and sixteen batches, which registers estimate to about 1%."""
    known = statistics("t0")
    sketch = known.sketches["t0"]
    table = {"name": "t0", "num_embeddings": 2_000, "embedding_dim": 8, "access": {"statistics": known.digest}}
    for batches, counted in ((1, sketch.reuse_rows.sum() / 20), (4, sketch.windows[8, 2] / 5)):
        spec = tiny(model__tables=[table | {"pooling_factor": 1}], model__batch_size_per_rank=1_000 * batches)
        spec["hardware"] = {"profile": "dgx-h100-80g", "ranks_per_host": 1}
        problem = parse_spec(raw(spec), Library(find_statistics={known.digest: known.canonical}.get)).problem
        assert float(table_columns(problem).distinct_of_all_ranks[0]) == pytest.approx(counted, rel=1e-12)


def test_within_a_tenth_nothing_is_stated() -> None:
    assert mismatches(1.0) == mismatches(1.09) == mismatches(0.92) == []
    assert len(mismatches(1.11)) == len(mismatches(0.9)) == 1


def test_many_tables_are_counted() -> None:
    warnings = mismatches(3.0, 7)
    assert len(warnings) == 5
    assert warnings[-1].message.endswith("; 2 more tables differ as well")


def test_slots_take_statistics_of_ids_beyond_them_without_row_numbers() -> None:
    known = statistics("t0")
    largest = known.sketches["t0"].largest_row
    assert largest is not None
    table = {"name": "t0", "num_embeddings": 900, "embedding_dim": 8, "pooling_factor": 1}
    table["access"] = {"statistics": known.digest}
    library = Library(find_statistics={known.digest: known.canonical}.get)
    with pytest.raises(InvalidProblem, match=f"the statistics have row {largest}, and the table has 900 rows"):
        parse_spec(raw(tiny(model__tables=[table])), library)
    slots = {"mode": "zch", "eviction": "lru", "eviction_interval": 1}
    (found,) = parse_spec(raw(tiny(model__tables=[table | {"hash_table": slots}])), library).problem.tables
    assert found.ids == "hashed"
    assert isinstance(found.access, AccessCdf)
