"""dynamicemb in plain Python: what its planner makes of constraints, and which storage it builds of them.

Written from NVIDIA/recsys-examples 43465ae, ``corelib/dynamicemb/dynamicemb``, and from no code of ours: function by
function what ``planner/planner.py``, ``dynamicemb_config.py``, ``batched_dynamicemb_tables.py``,
``key_value_table.py``, ``scored_hashtable.py`` and ``extendable_tensor.py`` compute. Kernels are left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ELEMENT_BYTES = {"fp32": 4, "fp16": 2}
DEVICE_PAGE, HOST_PAGE = 2 * 1024 * 1024, 4096


@dataclass(frozen=True)
class Options:
    """The fields of ``DynamicEmbTableOptions`` that decide sizes, after its planner has filled them in."""

    dim: int
    element_bytes: int
    max_capacity: int
    init_capacity: int
    bucket_capacity: int
    local_hbm_for_values: int
    caching: bool
    score_strategy: tuple[str, ...]

    @property
    def grouped_key(self) -> tuple[object, ...]:
        """What ``get_grouped_key`` compares, of the fields that an export sets."""
        return self.caching, self.score_strategy


@dataclass(frozen=True)
class State:
    """One ``DynamicEmbTableState``: the slots of its index and of its values, by table."""

    index_slots: tuple[int, ...]
    value_slots: tuple[int, ...]
    bucket_capacity: int
    score_words: int
    has_overflow: bool
    on_device: bool
    value_bytes: tuple[int, ...]  # of a row

    def index_bytes(self) -> int:
        """``LinearBucketTable``: fields, sizes of buckets, counters; and the same of an overflow."""
        fields = 8 + 1 + 8 * self.score_words
        slots, count = sum(self.index_slots), len(self.index_slots)
        held = fields * slots + 4 * (slots // self.bucket_capacity) + 4 * slots
        if self.has_overflow:
            overflow = 3 * self.bucket_capacity * count
            held += fields * overflow + 4 * count + 4 * overflow
        return held

    def buffer_bytes(self) -> int:
        """Bytes of the values, in whole pages for each table."""
        page = DEVICE_PAGE if self.on_device else HOST_PAGE
        overflow = 3 * self.bucket_capacity if self.has_overflow else 0
        sizes = [(slots + overflow) * row for slots, row in zip(self.value_slots, self.value_bytes, strict=True)]
        return sum(-(-size // page) * page for size in sizes)


@dataclass(frozen=True)
class Storage:
    """What one operator holds on one rank."""

    layout: str
    states: tuple[State, ...]

    def device_bytes(self) -> int:
        """Bytes in the memory of the device."""
        return sum(one.index_bytes() + (one.buffer_bytes() if one.on_device else 0) for one in self.states)

    def host_bytes(self) -> int:
        """Bytes in host memory."""
        return sum(one.buffer_bytes() for one in self.states if not one.on_device)


def align(number: int, step: int) -> int:
    """``align_to_table_size``."""
    return step if number <= 0 else (number + step - 1) // step * step


def options_of(table: Mapping[str, Any], world_size: int) -> Options:
    """``_prepare_dynemb_table_options`` for a table of an export."""
    given = table["constraints"]["dynamicemb_options"]
    bucket = given["bucket_capacity"]
    if bucket <= 0 or bucket % 16:
        raise ValueError("bucket_capacity must be a multiple of BUCKET_ALIGNMENT")
    capacity = align(math.ceil(table["num_embeddings"] / world_size), bucket)
    initial = given["init_capacity"]
    return Options(
        dim=table["embedding_dim"],
        element_bytes=ELEMENT_BYTES[table["data_type"]],
        max_capacity=capacity,
        init_capacity=capacity if initial is None else min(align(initial, bucket), capacity),
        bucket_capacity=bucket,
        local_hbm_for_values=math.ceil(given["global_hbm_for_values"] / world_size),
        caching=given["caching"],
        score_strategy=tuple(given["score_strategy"]),
    )


def state_dim(optimizer: str, dim: int, element_bytes: int) -> int:
    """``get_optimizer_state_dim``."""
    return {"rowwise_adagrad": 16 // element_bytes, "adam": 2 * dim, "adagrad": dim}.get(optimizer, 0)


def create_state(options: Sequence[Options], optimizer: str, *, has_overflow: bool = False) -> State:
    """``create_table_state``: buckets, scores and the place of values are those of the first table."""
    first = options[0]
    bucket, evicts = first.bucket_capacity, first.score_strategy != ("NO_EVICTION",)
    asked = [one.init_capacity if evicts else align(math.ceil(one.init_capacity / 0.5), bucket) for one in options]
    index = tuple((cap + bucket - 1) // bucket * bucket for cap in asked)
    return State(
        index_slots=index,
        value_slots=index if evicts else tuple(one.init_capacity for one in options),
        bucket_capacity=bucket,
        score_words=len(first.score_strategy),
        has_overflow=has_overflow,
        on_device=first.local_hbm_for_values != 0,
        value_bytes=tuple(
            one.element_bytes * (one.dim + state_dim(optimizer, one.dim, one.element_bytes)) for one in options
        ),
    )


def create_storage(options: Sequence[Options], optimizer: str) -> Storage:
    """``_create_cache_storage`` for the tables of one operator."""
    rows = [one.element_bytes * (one.dim + state_dim(optimizer, one.dim, one.element_bytes)) for one in options]
    total = sum(one.max_capacity * row for one, row in zip(options, rows, strict=True))
    local = sum(one.local_hbm_for_values for one in options)
    if total <= local:
        return Storage("HBM_ONLY", (create_state(options, optimizer),))
    in_host = [replace(one, local_hbm_for_values=0) for one in options]
    scale = local / total
    if any(one.caching for one in options):
        if local <= 0:
            raise ValueError("Can't use caching mode as the reserved HBM size is too small.")
        near = [_near(one, scale) for one in options]
        cache = create_state(near, optimizer, has_overflow=True)
        return Storage("CACHING", (cache, create_state(in_host, optimizer)))
    if local <= 0:
        return Storage("HOST_ONLY", (create_state(in_host, optimizer),))
    far = []
    for one in in_host:
        cap = min(one.max_capacity, max(1, int(one.max_capacity * (1.0 - scale))))
        far.append(replace(one, max_capacity=cap, init_capacity=min(one.init_capacity, cap)))
    near_state = create_state([_near(one, scale) for one in options], optimizer)
    return Storage("HYBRID", (near_state, create_state(far, optimizer)))


def _near(one: Options, scale: float) -> Options:
    """A table of the device: buckets of 1,024, and scores by which keys leave."""
    cap = min(one.max_capacity, max(1, int(one.max_capacity * scale)))
    scores = ("TIMESTAMP",) if one.score_strategy == ("NO_EVICTION",) else one.score_strategy
    return replace(one, max_capacity=cap, init_capacity=cap, bucket_capacity=1024, score_strategy=scores)


def grown(state: State, options: Sequence[Options], num_keys: int) -> tuple[State, State]:
    """Insert keys one by one into the only table, as ``expand_if_need`` sees them: last states, before and after."""
    (one,) = options
    evicts, index, values = one.score_strategy != ("NO_EVICTION",), state.index_slots[0], state.value_slots[0]
    before = (index, values)
    while (size := index // 2 + 1) <= num_keys and not (evicts and index >= one.max_capacity):
        target = max(2 * index, align(size, one.bucket_capacity))
        target = min(one.max_capacity, target) if evicts else target
        before = (index, values)
        values += target - index
        index = (target + one.bucket_capacity - 1) // one.bucket_capacity * one.bucket_capacity
        values = index if evicts else values
    sizes = {"index_slots": (index,), "value_slots": (values,)}
    earlier = {"index_slots": (before[0],), "value_slots": (before[1],)}
    return replace(state, **earlier), replace(state, **sizes)
