"""Pooling factors of a spec beside those that its statistics saw."""

from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from planner.errors import Issue
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


def test_within_a_tenth_nothing_is_stated() -> None:
    assert mismatches(1.0) == mismatches(1.09) == mismatches(0.92) == []
    assert len(mismatches(1.11)) == len(mismatches(0.9)) == 1


def test_many_tables_are_counted() -> None:
    warnings = mismatches(3.0, 7)
    assert len(warnings) == 5
    assert warnings[-1].message.endswith("; 2 more tables differ as well")
