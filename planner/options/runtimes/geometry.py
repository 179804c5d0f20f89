"""What can be wrong with the shards of runtimes that take the ranks of a table alone, and cut it themselves."""

from collections.abc import Iterable
from itertools import accumulate, pairwise

import numpy as np

from cost_models.arrays import Ints
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shards


class UnheldGeometry(ValueError):
    """Shards, or a table, that a runtime does not hold as planned; the message says why."""


#: Rows and columns of a table.
Size = tuple[int, int]


def extent(placed: TablePlacement) -> Size:
    """Return the size of a table as far as its shards reach, which is all that a plan says of it."""
    return int(placed.shards.row_end.max()), int(placed.shards.column_end.max())


def ranks_once(shards: Shards, place: str, holds: str = "a table once") -> list[int]:
    """Return the ranks of shards in rising order, or reject two shards on one; ``place`` is the runtime's word for it.

    Raises
    ------
    UnheldGeometry
        Two shards are on one rank.
    """
    ranks: list[int] = sorted(shards.rank.tolist())
    twice = next((rank for rank, after in pairwise(ranks) if rank == after), None)
    if twice is not None:
        raise UnheldGeometry(f"two shards are on {place} {twice}; a {place} holds {holds}")
    return ranks


def check_copies(shards: Shards, num_rows: int, num_columns: int, num_ranks: int, place: str) -> None:
    """Reject anything but one whole copy on every rank, which is what runtimes hold of a table that is not cut.

    Raises
    ------
    UnheldGeometry
        The shards are not that.
    """
    whole = (shards.row_offset == 0) & (shards.num_rows == num_rows)
    whole &= (shards.column_offset == 0) & (shards.num_columns == num_columns)
    if sorted(shards.rank.tolist()) != list(range(num_ranks)) or not np.all(whole):
        raise UnheldGeometry(f"it is data_parallel without one whole copy on every {place}")


def sizes_in_order(offsets: Ints, sizes: Ints, whole: int, parts: str) -> list[int]:
    """Return the sizes of parts by their offsets, or reject what does not cover the whole part after part.

    Raises
    ------
    UnheldGeometry
        The parts leave gaps or overlap.
    """
    ordered = sorted(zip(offsets.tolist(), sizes.tolist(), strict=True))
    ends = [0, *accumulate(size for _, size in ordered)]
    if ends[-1] != whole or any(
        (first, size > 0) != (end, True) for (first, size), end in zip(ordered, ends, strict=False)
    ):
        raise UnheldGeometry(f"its {parts} leave gaps or overlap")
    return [size for _, size in ordered]


def check_row_blocks(offsets: Ints, sizes: Ints, num_rows: int, num_shares: int, *, how: str, each: str) -> None:
    """Reject row blocks that do not cover the rows, or of which one is larger than one of ``num_shares`` even shares.

    ``how`` the runtime cuts rows and to ``each`` of what are words of the message.

    Raises
    ------
    UnheldGeometry
        The blocks are not such.
    """
    share = -(-num_rows // num_shares)
    for size in sizes_in_order(offsets, sizes, num_rows, "row blocks"):
        if size > share:
            raise UnheldGeometry(f"a row block has {size} rows; rows are {how}, at most {share} to each {each}")


def listed(numbers: Iterable[int]) -> str:
    """``"4 and 12"``: different numbers in rising order."""
    return " and ".join(str(number) for number in sorted(set(numbers)))
