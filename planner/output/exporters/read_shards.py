"""The shards of a table of a plan document, as columns."""

from cost_models.vocabulary import Tier
from planner.domain.plan.shards import Shards
from planner.output.plan_document import TableDocument


def shards_of(table: TableDocument) -> Shards:
    """Return the shards that a plan document lists for a table."""
    listed = table["shards"]
    return Shards.of_columns(
        rank=[shard["rank"] for shard in listed],
        row_offset=[shard["row_offset"] for shard in listed],
        num_rows=[shard["num_rows"] for shard in listed],
        column_offset=[shard["column_offset"] for shard in listed],
        num_columns=[shard["num_columns"] for shard in listed],
        tier=[Tier.from_label(shard["tier"]) for shard in listed],
    )
