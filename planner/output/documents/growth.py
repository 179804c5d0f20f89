"""What a plan document states of hash tables that grow."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class GrowthStepDocument(TypedDict):
    """A size of a table on one of its ranks; bytes are those of keys, values and state, without caches."""

    ids: Annotated[int, "Of all ranks, up to which the table has this size. Unit: ids.", Example(160_256)]
    slots_per_rank: Annotated[int, "Unit: slots.", Example(80_128)]
    device_bytes: Annotated[int, "Unit: bytes."]
    host_bytes: Annotated[int, "Unit: bytes."]
    peak_device_bytes: Annotated[int, "While the table comes to this size, the size before included. Unit: bytes."]


class TableGrowthDocument(TypedDict):
    """The sizes of a table, from the first to the one that the plan reserves."""

    table: Annotated[str, "Name of the table.", Example("user_id")]
    steps: Annotated[list[GrowthStepDocument], "The sizes in their order; the plan reserves the last."]
    fits_ids: Annotated[
        int | None,
        "Ids of all ranks that memory suffices for, other tables as planned; null where the table evicts. Unit: ids.",
    ]
