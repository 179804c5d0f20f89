"""Hash tables: tables whose rows are slots, which ids are given as they come and lose when others need them.

A table with a hash table has as many rows as slots, ``Table.num_embeddings``, and that is what shards cut. How many ids
are expected to hold a slot at a time is :attr:`HashTable.expected_rows`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.domain.expect import expect

#: Eviction of a table whose ids keep their slots.
NO_EVICTION = "none"
#: Slots of a bucket that a lookup tries at most, unless the spec says (``HashZchManagedCollisionModule``).
DEFAULT_MAX_PROBE = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class HashTableMode:
    """What the hash tables of one mode have."""

    evictions: tuple[str, ...]
    #: fields of a spec's ``hash_table`` that belong to the mode, besides ``mode``, ``capacity`` and ``eviction``
    fields: frozenset[str]
    required_fields: frozenset[str] = frozenset()
    #: whether every rank has whole buckets whatever the slots; else the slots must be whole buckets of every rank
    rounds_up_buckets: bool = False
    #: whether all tables of a module are hash tables, and a feature is looked up in one of them
    fills_modules: bool = True
    #: whether the slots are a number of their own; else there are as many as ids, whatever is held besides
    has_capacity: bool = True
    #: whether every rank has some of the slots
    is_on_all_ranks: bool = True


#: Modes by the name used in specs. ``zch`` and ``mpzch`` are TorchRec's managed collisions: sorted ids
#: (``MCHManagedCollisionModule``), and slots that are probed (``HashZchManagedCollisionModule``). Of ``dynamicemb``
#: kernels find rows by key. Of ``hugectr`` a rank's maps grow with its ids.
HASH_TABLE_MODES: Mapping[str, HashTableMode] = MappingProxyType(
    {
        "zch": HashTableMode(
            evictions=("lfu", "lru", "distance_lfu"),
            fields=frozenset({"eviction_interval"}),
            required_fields=frozenset({"eviction_interval"}),
        ),
        "mpzch": HashTableMode(
            evictions=(NO_EVICTION, "single_ttl", "per_feature_ttl", "lru"),
            fields=frozenset({"bucket_size", "max_probe", "metadata_bytes_per_slot"}),
        ),
        "dynamicemb": HashTableMode(
            evictions=("timestamp", "step", "lfu", "timestamp_lfu", "customized", NO_EVICTION),
            fields=frozenset({"bucket_size", "initial_capacity_per_rank"}),
            rounds_up_buckets=True,
            fills_modules=False,
        ),
        "hugectr": HashTableMode(
            evictions=(NO_EVICTION,),
            fields=frozenset(),
            fills_modules=False,
            has_capacity=False,
            is_on_all_ranks=False,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashTable:
    """How ids become slots of one table; ``None`` where the mode has no such number."""

    mode: str
    eviction: str
    expected_rows: int  # ids that hold a slot at a time
    eviction_interval: int | None = None  # steps from one eviction to the next
    bucket_size: int | None = None  # slots; no bucket lies on two ranks. None: one bucket per rank
    initial_capacity_per_rank: int | None = None  # slots that a rank begins with; None: all of its slots
    max_probe: int | None = None  # slots that a lookup tries at most
    metadata_bytes_per_slot: int = 0  # what the model keeps for each id besides, such as how often it came

    def __post_init__(self) -> None:
        expect(self.mode in HASH_TABLE_MODES, f"mode to be one of {', '.join(HASH_TABLE_MODES)}")
        mode = HASH_TABLE_MODES[self.mode]
        expect(self.eviction in mode.evictions, f"eviction to be one of {', '.join(mode.evictions)}")
        expect(self.expected_rows >= 1, "expected_rows >= 1")
        for name in ("eviction_interval", "bucket_size", "initial_capacity_per_rank", "max_probe"):
            value = getattr(self, name)
            expect(value is None or value >= 1, f"{name} >= 1")
        expect(self.metadata_bytes_per_slot >= 0, "metadata_bytes_per_slot >= 0")

    @property
    def evicts(self) -> bool:
        """Whether ids lose their slots."""
        return self.eviction != NO_EVICTION


def has_whole_buckets(hash_table: HashTable, num_slots: int, num_blocks: int) -> bool:
    """Return whether every block holds as many whole buckets; a mode without buckets has blocks of any size."""
    mode = HASH_TABLE_MODES[hash_table.mode]
    if "bucket_size" not in mode.fields or mode.rounds_up_buckets:
        return True
    return num_slots % (num_blocks * (hash_table.bucket_size or 1)) == 0
