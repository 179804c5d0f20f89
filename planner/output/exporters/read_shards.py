"""The shards of a table of a plan document, as columns."""

from collections.abc import Mapping, Sequence
from typing import cast

from cost_models.vocabulary import Tier
from planner.domain.plan.shards import Shards

_FIELDS = ("rank", "row_offset", "num_rows", "column_offset", "num_columns")


def shards_of(table: Mapping[str, object]) -> Shards:
    """Return the shards that a plan document lists for a table."""
    listed = cast("Sequence[Mapping[str, object]]", table["shards"])
    columns = {field: [cast("int", shard[field]) for shard in listed] for field in _FIELDS}
    return Shards.of_columns(**columns, tier=[Tier.from_label(cast("str", shard["tier"])) for shard in listed])
