"""The plan document in compact form: what differs from the long form of :mod:`planner.output.documents.plan`."""

from typing import Annotated, Literal, TypedDict

from planner.output.documents.checkpoint import CheckpointFactsDocument
from planner.output.documents.field_example import Example
from planner.output.documents.plan import HeadDocument, SearchDocument, StepLoadsDocument, TableFactsDocument


class ShardGroupDocument(TypedDict):
    """Shards of equal size that follow one another: the first of them, and how the others differ."""

    ranks: Annotated[
        str, "Ranks of the shards in order: single ones, and the first and the last of a range.", Example("0-1023")
    ]
    cut: Annotated[
        Literal["rows", "columns"] | None,
        "Each shard begins with the row, or with the column, where the one before ends; null: each is a copy.",
        Example("rows"),
    ]
    row_offset: Annotated[int, "First row of the first shard. Unit: rows.", Example(0)]
    num_rows: Annotated[int, "Number of rows of each shard. Unit: rows.", Example(5_000_000)]
    column_offset: Annotated[int, "First column of the first shard. Unit: columns.", Example(0)]
    num_columns: Annotated[int, "Number of columns of each shard. Unit: columns.", Example(128)]
    tier: Annotated[str, "Memory tier.", Example("hbm")]
    bytes: Annotated[
        int, "Of each shard, in all tiers together; outside the digest. Unit: bytes.", Example(2_580_000_000)
    ]


class CompactTableDocument(TableFactsDocument):
    """One table's scheme, kernel and shards, in groups."""

    shards: Annotated[list[ShardGroupDocument], "The shards in order, in groups."]


class CompactCheckpointDocument(CheckpointFactsDocument):
    """What checkpoints take under a plan, with columns in the place of rows."""

    by_rank: Annotated[dict[str, object], "The fields of the long form's rows, as columns."]
    by_host: Annotated[dict[str, object], "The fields of the long form's rows, as columns."]


class CompactPlanDocument(HeadDocument, StepLoadsDocument, SearchDocument):
    """A sharding plan in compact form: equal shards and equal loads of ranks stand there once."""

    form: Annotated[Literal["compact"], "The long form has no such field.", Example("compact")]
    tables: Annotated[list[CompactTableDocument], "Every table of the model."]
    ranks: Annotated[
        dict[str, object],
        "Predicted load of every rank, as columns: a list has the value of each rank, any other value is that of all"
        " ranks, and an object has a column in every field.",
    ]
    checkpoint: Annotated[CompactCheckpointDocument | None, "What checkpoints take; null where the spec has none."]
