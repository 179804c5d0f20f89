"""Where in the range of rows lookups go: fields of ``access``, statistics, and the warning if that is unknown."""

import math
from dataclasses import replace

import numpy as np
import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from api.specs.references.statistics_document import Statistics
from planner.domain.problem.access import AccessCdf, IdOrder, RowCdf
from planner.errors import Issue
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.local_search.local_search import LocalSearch
from tests.support.planning.builders import ROOFLINE
from tests.support.planning.id_streams import in_batches, sketched
from tests.support.service.specs import raw, tiny

FRONT = [[0.001, 1.0], [1.0, 1.0]]


def ids_of(access: dict[str, object], library: Library | None = None) -> IdOrder | RowCdf:
    spec = raw(tiny(model__tables__0__access=access))
    return parse_spec(spec, library or Library()).problem.tables[0].ids


@pytest.mark.parametrize("ids", ["hashed", "frequency_sorted", "unknown"])
def test_every_order_is_understood(ids: str) -> None:
    assert ids_of({"ids": ids, "zipf_alpha": 1.0}) == ids


def test_a_curve_may_stand_alone() -> None:
    assert ids_of({"ids": "hashed"}) == "hashed"
    assert ids_of({"zipf_alpha": 1.0}) == "unknown"
    assert ids_of({"row_cdf": FRONT}) == RowCdf(lookups=((0.001, 1.0), (1.0, 1.0)))
    both = ids_of({"row_cdf": FRONT, "distinct_row_cdf": [[1, 1]], "ids": "unknown"})
    assert both == RowCdf(lookups=((0.001, 1.0), (1.0, 1.0)), distinct=((1.0, 1.0),))


@pytest.mark.parametrize(
    ("access", "pointer", "reason"),
    [
        ({}, "", "or ids or row_cdf alone"),
        ({"ids": "hashed", "row_cdf": FRONT}, "", "both say where lookups go"),
        ({"zipf_alpha": 1.0, "distinct_row_cdf": FRONT}, "", "distinct_row_cdf needs row_cdf"),
        ({"ids": "frequency_sorted"}, "", "how hot the hottest rows are"),
        ({"ids": "frequency_sorted", "miss_ratio_curve": [[0.1, 0.1]]}, "", "how hot the hottest rows are"),
        ({"ids": "sorted", "zipf_alpha": 1.0}, "/ids", "hashed"),
        ({"row_cdf": [[0.5, 0.7]]}, "/row_cdf", "a last point"),
        ({"row_cdf": FRONT, "distinct_row_cdf": [[0.5, 0.7], [0.6, 0.6], [1, 1]]}, "/distinct_row_cdf", "never fall"),
    ],
)
def test_what_says_nothing_or_contradicts_itself_is_refused(
    access: dict[str, object], pointer: str, reason: str
) -> None:
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(tiny(model__tables__0__access=access)))
    issues = refused.value.issues
    assert any(one.pointer.startswith(f"/model/tables/0/access{pointer}") for one in issues), issues
    assert any(reason in f"{one.message} {one.hint}" for one in issues), issues


def of_trace(ids: list[int]) -> tuple[Library, str]:
    stream = np.random.default_rng(0).permutation(np.array(ids, dtype=np.int64))
    known = Statistics(sketches={"a": sketched(in_batches(stream, 1_000), table="a")})
    return Library(find_statistics={known.digest: known.canonical}.get), known.digest


def test_statistics_say_where_lookups_go() -> None:
    """Rows 0 to 99 of 1,000 once in ten lookups each, row 700 for the rest."""
    library, digest = of_trace([*range(100)] * 50 + [700] * 5_000)
    found = ids_of({"statistics": digest}, library)
    assert isinstance(found, RowCdf)
    assert found.distinct is not None
    for points, of_rows in ((found.lookups, 0.5), (found.distinct, 100 / 101)):
        rows, shares = np.array([(0.0, 0.0), *points]).T
        assert np.interp([0.1, 0.5, 0.75], rows, shares) == pytest.approx([of_rows, of_rows, 1.0], abs=0.02)
    assert ids_of({"statistics": digest, "ids": "hashed"}, library) == "hashed"
    assert ids_of({"statistics": digest, "ids": "frequency_sorted"}, library) == "frequency_sorted"
    given = ids_of({"statistics": digest, "row_cdf": FRONT}, library)
    assert given == RowCdf(lookups=((0.001, 1.0), (1.0, 1.0)))


def warned(access: dict[str, object] | None, **changes: object) -> list[Issue]:
    tables = [
        {"name": f"t{i}", "num_embeddings": 100_000, "embedding_dim": 64, "pooling_factor": 2.0}
        | ({} if access is None else {"access": access})
        | {"constraints": changes.get("constraints", {})}
        for i in range(2)
    ]
    spec = tiny(model__tables=tables, hardware__ranks_per_host=8, cost_model=changes.get("cost_model", "roofline"))
    return [one for one in parse_spec(raw(spec)).warnings if one.code == "row-order-unknown"]


def test_an_unknown_order_is_a_warning_where_it_could_change_the_plan() -> None:
    (warning,) = warned({"access_cdf": FRONT})
    assert (warning.severity, warning.pointer) == ("warning", "/model/tables")
    assert "row blocks of 2 tables are priced as equal" in warning.message
    assert 'one of 8 blocks of "t0" would get about 100% of its lookups' in warning.message
    assert "access.ids" in warning.hint
    assert len(warned({"zipf_alpha": 1.1})) == len(warned({"zipf_alpha": 1.1, "ids": "unknown"})) == 1


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3])
def test_the_share_of_a_block_is_that_of_its_rows(alpha: float) -> None:
    weight = np.arange(1.0, 100_001) ** -alpha
    share = weight[:12_500].sum() / weight.sum()
    (warning,) = warned({"zipf_alpha": alpha})
    assert f"would get about {share:.0%} of its lookups" in warning.message


def test_a_reuse_histogram_has_its_hottest_rows_last() -> None:
    """Of 100,000 rows 20,000 are seen once and 10,000 twice: 12,500 rows have 22,500 of 40,000 lookups."""
    (warning,) = warned({"reuse_histogram": [20_000, 10_000, *[0] * 15]})
    assert "would get about 56% of its lookups" in warning.message


@pytest.mark.parametrize(
    ("access", "changes"),
    [
        (None, {}),  # nothing is known of the rows at all
        ({"zipf_alpha": 0.2}, {}),  # nearly even in any order
        ({"zipf_alpha": 1.1, "ids": "hashed"}, {}),
        ({"zipf_alpha": 1.1, "ids": "frequency_sorted"}, {}),
        ({"zipf_alpha": 1.1, "row_cdf": FRONT}, {}),
        ({"zipf_alpha": 1.1}, {"constraints": {"sharding_types": ["table_wise", "column_wise"]}}),
        ({"zipf_alpha": 1.1}, {"cost_model": "torchrec"}),
    ],
)
def test_it_is_none_where_it_could_not(access: dict[str, object] | None, changes: dict[str, object]) -> None:
    assert warned(access, **changes) == []


#: Rows that are looked up in tables of 10 million rows of MovieLens-1M, and ids per sample: generative-recommenders'
#: configuration for it (dlrm_v3/configs.py, 2e81fab) uses ids as they come.
MOVIELENS = {"movie_id": (3953, 210), "user_id": (6041, 1), "sex": (2, 1), "age_group": (7, 1), "occupation": (21, 1)}


#: So small a gap that a plan of other schemes, 0.2% slower, is not good enough.
LIMITS = SolveLimits(time_limit_seconds=5.0, relative_gap=1e-4)


def movielens(ids: str | None, schemes: list[str] | None = None) -> dict[str, object]:
    tables = [
        {
            "name": name,
            "num_embeddings": 10_000_000,
            "embedding_dim": 256,
            "data_type": "fp16",
            "pooling": "none",
            "pooling_factor": pooling_factor,
            "access": {"access_cdf": [[rows / 1e7, 1.0], [1, 1]]} | ({} if ids is None else {"ids": ids}),
            "constraints": {} if schemes is None else {"sharding_types": schemes},
        }
        for name, (rows, pooling_factor) in MOVIELENS.items()
    ]
    return tiny(model__tables=tables, hardware__ranks_per_host=8)


def planned(spec: dict[str, object]) -> tuple[float, set[str]]:
    problem = parse_spec(raw(spec)).problem
    problem = replace(problem, counts_starts=False)  # starts are the same whatever the order of rows
    result = plan(problem, cost_model=ROOFLINE, partitioner=LocalSearch(), limits=LIMITS)
    assert result.plan is not None
    return result.plan.evaluation.objective_seconds, {
        table.sharding_type.label for table in result.plan.placement.tables
    }


def test_ids_that_are_used_as_they_come_are_not_cut_by_rows() -> None:
    """By rows every id goes to rank 0: eight times as long as an even cut, and five times as long as by columns."""
    believed, schemes = planned(movielens(None))
    assert schemes == {"row_wise"}
    by_rows, _ = planned(movielens("frequency_sorted", ["row_wise"]))
    assert by_rows == pytest.approx(8 * believed, rel=0.01)
    best, schemes = planned(movielens("frequency_sorted"))
    assert "row_wise" not in schemes
    assert believed < best < by_rows / 5
    assert math.isclose(planned(movielens("hashed"))[0], believed)
    (table, *_) = parse_spec(raw(movielens("frequency_sorted"))).problem.tables
    assert table.access == AccessCdf(points=((3953 / 1e7, 1.0), (1.0, 1.0)))
