"""Hash tables of dynamicemb for the planner's tests."""

from dataclasses import replace

from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.table import Table
from tests.support.planning.builders import make_table


def make_hash_table(
    name: str = "t",
    rows: int = 1_000_000,
    dim: int = 64,
    *,
    eviction: str = "timestamp",
    bucket_size: int | None = None,
    initial: int | None = None,
    **columns: object,
) -> Table:
    """A table of dynamicemb's with as many slots as rows are expected."""
    hash_table = HashTable(
        mode="dynamicemb",
        eviction=eviction,
        expected_rows=rows,
        bucket_size=bucket_size,
        initial_capacity_per_rank=initial,
    )
    return replace(make_table(name, rows, dim, **columns), hash_table=hash_table)  # type: ignore[arg-type]
