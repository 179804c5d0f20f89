"""Plans in compact form, as they are accepted: what a few characters ask for is judged before it takes memory."""

import tracemalloc
from typing import Any

import pytest
from pydantic import ValidationError

from api.schemas.plan import CompactPlanDocument

GROUP = {"cut": None, "row_offset": 0, "num_rows": 1, "column_offset": 0, "num_columns": 4}


def errors(ranks: str, *, num_tables: int) -> list[Any]:
    table = {"name": "a", "sharding_type": "data_parallel", "compute_kernel": "dense"}
    tables = [{**table, "shards": [{**GROUP, "ranks": ranks}]}] * num_tables
    plan = {"form": "compact", "world_size": 8, "ranks_per_host": 8, "tables": tables}
    with pytest.raises(ValidationError) as refused:
        CompactPlanDocument.model_validate(plan)
    return refused.value.errors()


@pytest.mark.parametrize(
    ("ranks", "message"),
    [("0-999999", "ranks are below 4,096"), (",".join(["0-4095"] * 200), "at most 8,192 shards")],
)
def test_ranks_are_refused_before_they_are_listed(ranks: str, message: str) -> None:
    errors(ranks, num_tables=1)  # what is made once is there now
    tracemalloc.start()
    try:
        (error,) = errors(ranks, num_tables=1)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # a list of the ranks has at least 6 MB
    finally:
        tracemalloc.stop()
    assert message in error["msg"]


def test_the_first_table_with_wrong_groups_is_the_last_that_is_read() -> None:
    assert [error["loc"][:2] for error in errors("0-999999", num_tables=20)] == [("tables", 0)]
