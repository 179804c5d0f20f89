"""Tables whose weights leave the device while the dense part of a step runs."""

import math
from dataclasses import dataclass

from planner.domain.expect import expect

#: Part of what hidden copies could make room for that plans may count on: tables are stashed whole, so that the stashed
#: bytes of a rank never meet what it needs exactly.
ROOM_SHARE = 0.95
#: Pinned buffers that a byte may take: PyTorch rounds them up to powers of two.
HOST_BYTES_PER_BYTE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stash:
    """What may be stashed, and at which cost (TorchRec ``stash_weights``, ``TrainPipelineSparseDistEmbStash``)."""

    tables: frozenset[str] | None = None  # that may be stashed; None: all whose rows lie in the device's memory
    link_share: float = 1.0  # part of the rates of the host link that copies have
    max_wait_seconds: float = 0.0  # that dense compute may wait for copies in each direction of a step
    room_share: float = ROOM_SHARE
    largest_shard_bytes: float = math.inf  # weights of larger shards make no room that plans count on
    stashes_all: bool = False  # whether plans are held to what can be stashed if all tables are that may be

    def __post_init__(self) -> None:
        expect(0 < self.link_share <= 1, "link_share in (0, 1]")
        expect(0 <= self.max_wait_seconds < math.inf, "max_wait_seconds >= 0")
        expect(0 <= self.room_share <= 1, "room_share in [0, 1]")
