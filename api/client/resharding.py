"""What one rank reads of a checkpoint that was written under another plan."""

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import UnexpectedAnswer
from .reshard_bands import Read, reads_on


def rank_reads(reshard_map: Mapping[str, Any], rank: int) -> Iterator[tuple[str, Read]]:
    """Yield table and rectangle of everything that a rank reads, by the reshard map of all ranks.

    Rows and columns are those of the table; of the stored shard ``old_row_offset`` and ``old_column_offset`` are taken
    off, of the own one ``shard_row_offset`` and ``shard_column_offset``.

    Raises
    ------
    UnexpectedAnswer
        The document is no reshard map, or has no such rank.
    """
    try:
        tables, world_size = reshard_map["tables"], reshard_map["new_world_size"]
    except (KeyError, TypeError) as error:
        raise UnexpectedAnswer("this is no reshard map: shardplan reshard OLD.json NEW.json writes one") from error
    if not 0 <= rank < world_size:
        raise UnexpectedAnswer(f"the map has ranks 0 to {world_size - 1}, and no rank {rank}")
    for table in tables:
        for read in reads_on(rank, table["bands"]):
            yield table["name"], read
