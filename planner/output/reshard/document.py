"""The reshard map as JSON, the one definition: of all ranks in bands, and of one rank read by read."""

from typing import Annotated, Literal, TypedDict

from planner.output.documents.field_example import Example

#: What becomes of a table's optimizer state.
StateOfTable = Literal["read", "lost", "none", "unknown"]


class RunDocument(TypedDict):
    """Shards of a table that lie one below the other, equally many rows each, or copies of the first."""

    ranks: Annotated[str, "Ranks of the shards in order, as in the compact form of a plan.", Example("0-511")]
    copies: Annotated[bool, "Whether each shard is a copy of the first.", Example(False)]
    row_offset: Annotated[int, "First row of the first shard. Unit: rows.", Example(0)]
    num_rows: Annotated[int, "Number of rows of each shard. Unit: rows.", Example(78_125)]
    column_offset: Annotated[int, "First column of all shards. Unit: columns.", Example(0)]
    num_columns: Annotated[int, "Number of columns of all shards. Unit: columns.", Example(128)]


#: ``from`` is no name that Python knows.
BandDocument = TypedDict(
    "BandDocument",
    {
        "row_offset": Annotated[int, "First row. Unit: rows.", Example(0)],
        "num_rows": Annotated[int, "Number of rows. Unit: rows.", Example(40_000_000)],
        "column_offset": Annotated[int, "First column. Unit: columns.", Example(0)],
        "num_columns": Annotated[int, "Number of columns. Unit: columns.", Example(128)],
        "to": Annotated[RunDocument, "Shards of the new plan."],
        "from": Annotated[RunDocument, "Shards of the checkpoint, of which copies are stored once."],
    },
)


class TableReshardDocument(TypedDict):
    """What is read of a table."""

    name: Annotated[str, "Name of the table in the new plan.", Example("cat_0")]
    state: Annotated[
        StateOfTable,
        "Optimizer state: read as the weights are; lost, since the runtime does not read it; none; or unknown, without"
        " the spec of the new plan.",
        Example("read"),
    ]
    state_loss: Annotated[str, "Why state is lost, in words; empty where it is not.", Example("")]
    weight_cell_bytes: Annotated[int, "Of one weight as it is stored. Unit: bytes.", Example(4)]
    state_cell_bytes: Annotated[int, "State that is read with each weight. Unit: bytes.", Example(0)]
    state_row_bytes: Annotated[int, "State that is read with each row of a band. Unit: bytes.", Example(4)]
    bands: Annotated[list[BandDocument], "Rectangles from which all reads follow."]


class ReshardDocument(TypedDict):
    """Which rank of a plan reads which bytes of a checkpoint of another plan."""

    schema_version: Annotated[Literal[1], "Version of this document.", Example(1)]
    old_plan_digest: Annotated[str, "Of the plan of the checkpoint.", Example("sha256:" + 64 * "0")]
    new_plan_digest: Annotated[str, "Of the plan that reads.", Example("sha256:" + 64 * "1")]
    old_world_size: Annotated[int, "Unit: ranks.", Example(1024)]
    new_world_size: Annotated[int, "Unit: ranks.", Example(512)]
    num_reads: Annotated[int, "Rectangles that ranks read.", Example(1536)]
    weight_bytes: Annotated[int, "Read by all ranks. Unit: bytes.", Example(20_480_000_000)]
    state_bytes: Annotated[int | None, "The same of state; null without the spec. Unit: bytes.", Example(160_000_000)]
    tables: Annotated[list[TableReshardDocument], "Tables that both plans have, in the same shape."]
    new_tables: Annotated[list[str], "Tables that start without stored state."]
    gone_tables: Annotated[list[str], "Tables that are not read."]
    num_reads_by_rank: Annotated[list[int], "Of each rank."]
    read_bytes_by_rank: Annotated[list[int], "Weights and state. Unit: bytes."]
    stored_bytes_by_old_rank: Annotated[list[int], "What is read of what each old rank wrote. Unit: bytes."]


class ReadDocument(TypedDict):
    """A rectangle that one rank reads: part of a shard of its own, and of a stored one."""

    old_rank: Annotated[int, "Rank that wrote it; of copies, the first.", Example(7)]
    row_offset: Annotated[int, "First row of the table. Unit: rows.", Example(156_250)]
    num_rows: Annotated[int, "Number of rows. Unit: rows.", Example(39_063)]
    column_offset: Annotated[int, "First column of the table. Unit: columns.", Example(0)]
    num_columns: Annotated[int, "Number of columns. Unit: columns.", Example(128)]
    shard_row_offset: Annotated[int, "First row of the shard that reads. Unit: rows.", Example(156_250)]
    shard_column_offset: Annotated[int, "First column of the shard that reads. Unit: columns.", Example(0)]
    old_row_offset: Annotated[int, "First row of the stored shard. Unit: rows.", Example(117_189)]
    old_column_offset: Annotated[int, "First column of the stored shard. Unit: columns.", Example(0)]
    weight_bytes: Annotated[int, "Unit: bytes.", Example(20_000_256)]
    state_bytes: Annotated[int, "Unit: bytes.", Example(156_252)]


class TableReadsDocument(TypedDict):
    """What a rank reads of a table."""

    name: Annotated[str, "Name of the table in the new plan.", Example("cat_0")]
    state: Annotated[StateOfTable, "As in the map of all ranks.", Example("read")]
    reads: Annotated[list[ReadDocument], "What it reads, in the order of bands and rows."]


class RankReadsDocument(TypedDict):
    """What one rank of a plan reads of a checkpoint of another plan."""

    schema_version: Annotated[Literal[1], "Version of this document.", Example(1)]
    old_plan_digest: Annotated[str, "Of the plan of the checkpoint.", Example("sha256:" + 64 * "0")]
    new_plan_digest: Annotated[str, "Of the plan that reads.", Example("sha256:" + 64 * "1")]
    rank: Annotated[int, "Rank of the new plan.", Example(3)]
    tables: Annotated[list[TableReadsDocument], "Tables of which it reads something."]
