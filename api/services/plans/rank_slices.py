"""The parts of plans that single ranks need: the head of the plan, and the shards of one rank."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from api.services.plans.cache import PlanKey, SliceKey
from planner.domain.formats.canonical_json import canonical_bytes
from planner.output.plan_document import HeadDocument


def slices_of(canonical: bytes) -> tuple[bytes, ...]:
    """Return the canonical bytes of the slice of every rank."""
    plan = json.loads(canonical)
    head = {key: plan[key] for key in HeadDocument.__annotations__ if key in plan}
    tables: list[list[Mapping[str, Any]]] = [[] for _ in range(plan["world_size"])]
    for table in plan["tables"]:
        of_rank: dict[int, list[Mapping[str, Any]]] = {}
        for shard in table["shards"]:
            of_rank.setdefault(shard["rank"], []).append(shard)
        for rank, shards in of_rank.items():
            tables[rank].append({**table, "shards": shards})
    loads = {load["rank"]: load for load in plan["ranks"]}
    return tuple(
        canonical_bytes({**head, "rank": rank, "tables": tables[rank], "ranks": [loads[rank]]})
        for rank in range(plan["world_size"])
    )


class RankSlices:
    """The slices of the latest plans, within a budget of bytes; always those of the very last. Thread safe.

    All ranks of a job ask at the same time: the plan is read once for all of them.
    """

    def __init__(self, find: Callable[[PlanKey], bytes | None], *, max_bytes: int) -> None:
        self._find, self._max_bytes = find, max_bytes
        self._lock = threading.Lock()
        self._slices: OrderedDict[PlanKey, tuple[bytes, ...]] = OrderedDict()
        self._num_bytes = 0

    def get(self, key: PlanKey) -> tuple[bytes, ...] | None:
        """Return the slices of a plan by rank, ``None`` if there is no such plan."""
        with self._lock:
            found = self._slices.get(key)
            if found is not None:
                self._slices.move_to_end(key)
                return found
            canonical = self._find(key)
            if canonical is None:
                return None
            slices = self._slices[key] = slices_of(canonical)
            self._num_bytes += _size(slices)
            while self._num_bytes > self._max_bytes and len(self._slices) > 1:
                _, dropped = self._slices.popitem(last=False)
                self._num_bytes -= _size(dropped)
            return slices

    def find(self, key: SliceKey) -> bytes | None:
        """Return the slice of a rank, ``None`` if there is no such plan or rank."""
        tenant, digest, rank = key
        slices = self.get((tenant, digest))
        return slices[rank] if slices is not None and 0 <= rank < len(slices) else None


def _size(slices: tuple[bytes, ...]) -> int:
    return sum(map(len, slices))
