"""What texts and comparisons read of a plan in compact form: numbers of its shards, and the loads of its ranks."""

from typing import cast

from planner.domain.formats.compact_form import num_shards, ranks_of, rows_of
from planner.output.documents.compact_plan import CompactPlanDocument, CompactTableDocument
from planner.output.documents.step import RankDocument


def rank_loads(plan: CompactPlanDocument) -> list[RankDocument]:
    """Return the load of every rank."""
    return cast("list[RankDocument]", rows_of(plan["ranks"]))


def shards_in(table: CompactTableDocument) -> int:
    """Return the number of shards of a table."""
    return sum(map(num_shards, table["shards"]))


def bytes_of(table: CompactTableDocument) -> int:
    """Return the bytes of all shards of a table."""
    return sum(group["bytes"] * num_shards(group) for group in table["shards"])


def ranks_with(table: CompactTableDocument) -> list[int]:
    """Return the rank of every shard of a table."""
    return [rank for group in table["shards"] for rank in ranks_of(group["ranks"])]
