"""The parts of plans that single ranks need: the head of the plan, and the shards of one rank."""

import json
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from api.services.plans.cache import PlanKey, SliceKey
from api.services.plans.forms import COMPACT
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.formats.compact_form import ranks_of, rows_of, shards_on
from planner.output.documents.plan import HeadDocument

#: What a plan takes in memory once its compact form is read, as a multiple of the bytes of that form.
_MEMORY_OF_BYTES = 5
_INDEX = "I"  # type of a table's number


class SlicedPlan:
    """A plan in compact form, of which the slice of a rank takes as long as its own shards."""

    def __init__(self, compact: bytes) -> None:
        plan = json.loads(compact)
        self._head = {key: plan[key] for key in HeadDocument.__annotations__ if key in plan}
        self._tables: list[dict[str, Any]] = plan["tables"]
        self._loads = {load["rank"]: load for load in rows_of(plan["ranks"])}
        #: by rank: the numbers of the tables that have shards there
        self._tables_on = [array(_INDEX) for _ in range(plan["world_size"])]
        for number, table in enumerate(self._tables):
            for rank in {rank for group in table["shards"] for rank in ranks_of(group["ranks"])}:
                self._tables_on[rank].append(number)
        index_bytes = sum(numbers.itemsize * len(numbers) for numbers in self._tables_on)
        self.num_bytes = _MEMORY_OF_BYTES * len(compact) + index_bytes

    def slice_of(self, rank: int) -> bytes | None:
        """Return the canonical bytes of the slice of a rank, ``None`` if there is no such rank."""
        if not 0 <= rank < len(self._tables_on):
            return None
        own = [self._tables[number] for number in self._tables_on[rank]]
        tables = [{**table, "shards": shards_on(rank, table["shards"])} for table in own]
        return canonical_bytes({**self._head, "rank": rank, "tables": tables, "ranks": [self._loads[rank]]})


class RankSlices:
    """The latest plans, ready to be sliced, within a budget of bytes; always the very last. Thread safe.

    All ranks of a job ask at the same time: the plan is read once for all of them.
    """

    def __init__(self, find: Callable[[PlanKey], bytes | None], *, max_bytes: int) -> None:
        self._find, self._max_bytes = find, max_bytes
        self._lock = threading.Lock()
        self._plans: OrderedDict[PlanKey, SlicedPlan] = OrderedDict()
        self._num_bytes = 0

    def find(self, key: SliceKey) -> bytes | None:
        """Return the slice of a rank, ``None`` if there is no such plan or rank."""
        tenant, digest, rank = key
        plan = self._plan((tenant, digest, COMPACT))
        return None if plan is None else plan.slice_of(rank)

    def _plan(self, key: PlanKey) -> SlicedPlan | None:
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
                return found
            compact = self._find(key)
            if compact is None:
                return None
            plan = self._plans[key] = SlicedPlan(compact)
            self._num_bytes += plan.num_bytes
            while self._num_bytes > self._max_bytes and len(self._plans) > 1:
                _, dropped = self._plans.popitem(last=False)
                self._num_bytes -= dropped.num_bytes
            return plan
