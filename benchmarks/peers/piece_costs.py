"""What a planner of column pieces needs to know: the cost of every piece that halving can make."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceCosts:
    """Widths, seconds and bytes of each table halved 0, 1, 2, ... times, and the ranks.

    A piece's seconds fall on the rank that holds it, and add up there. Level k of a table has
    2^k equal pieces when all of them are cut k times; pieces of one table may be of several levels.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or a width that is not half of the one before.
    """

    widths: NDArray[np.int64]  # (num_tables, num_levels) columns; 0 past the narrowest legal piece
    seconds: NDArray[np.float64]  # (num_tables, num_levels, num_phases)
    bytes: NDArray[np.int64]  # (num_tables, num_levels)
    is_compute: NDArray[np.bool_]  # (num_phases,) compute of the embedding kernels; the rest is communication
    capacity_bytes: NDArray[np.int64]  # (num_ranks,)

    def __post_init__(self) -> None:
        shape = self.widths.shape
        if len(shape) != 2 or self.bytes.shape != shape or self.seconds.shape[:2] != shape:
            raise ValueError("Expected widths, bytes and seconds of the same tables and levels.")
        if self.is_compute.shape != self.seconds.shape[2:]:
            raise ValueError("Expected one entry of is_compute per phase.")
        narrower, wider = self.widths[:, 1:], self.widths[:, :-1]
        if not ((self.widths[:, 0] > 0).all() and ((narrower == 0) | (2 * narrower == wider)).all()):
            raise ValueError("Expected each width to be half of the one before, or 0.")

    @property
    def num_ranks(self) -> int:
        """Ranks of the cluster."""
        return len(self.capacity_bytes)


def halved_widths(dims: NDArray[np.int64], *, multiple_of: int = 4) -> NDArray[np.int64]:
    """Return the widths that halving gives, shape (num_tables, num_levels), 0 past the last legal one.

    ``dims``: (num_tables,) columns. A piece is halved where both halves are multiples of
    ``multiple_of`` columns; 4 is what fused kernels need.
    """
    levels = [np.asarray(dims, dtype=np.int64)]
    while (legal := (levels[-1] > 0) & (levels[-1] % (2 * multiple_of) == 0)).any():
        levels.append(np.where(legal, levels[-1] // 2, 0))
    return np.stack(levels, axis=1)
