"""Whether what a plan places on a rank fits into the bytes that are free there now.

A plan was solved for the memory of a hardware profile. On the running job other processes, an
earlier job that has not ended, or a smaller device may have taken some of it; then the first
steps would end with out-of-memory, hours of queueing later.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .plan_types import PlanDocument
from .verdicts import Difference, ranks_text, replan

DEVICE, HOST = "hbm", "ddr"
#: Bits of a weight.
_BITS = {"fp32": 32, "fp16": 16, "bf16": 16, "int8": 8, "int4": 4, "int2": 2}
#: Taken off for what no ledger counts: a plan that fits without it goes, with a warning.
_MARGIN = "margin"
_DENSE = "dense_parameters"
_KINDS = {DEVICE: "device memory", HOST: "host memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """What is free for one rank, and whom it shares that with: ranks of one pool draw on the same bytes."""

    device_pool: str
    device_free_bytes: int
    device_total_bytes: int
    host_pool: str
    host_free_bytes: int
    host_total_bytes: int


@dataclass(slots=True, kw_only=True)
class _Pool:
    kind: str
    ranks: list[int]
    free_bytes: int
    total_bytes: int
    tables_bytes: int = 0
    reserved_bytes: int = 0
    margin_bytes: int = 0


def memory_issues(
    document: PlanDocument,
    facts: Sequence[MemoryFacts],
    *,
    data_types: Mapping[str, str],
    plan_ranks: Sequence[int],
    resident_dense_bytes: Sequence[int],
) -> tuple[list[Difference], list[str]]:
    """Compare what a plan needs with what is free, pool by pool; returns differences and warnings.

    Parameters
    ----------
    document
        A plan whose shape was checked.
    facts
        Of every rank of the job.
    data_types
        Of the model's tables, by name.
    plan_ranks
        Which rank of the plan each rank of the job takes.
    resident_dense_bytes
        Of dense parameters that are on the device already, and need no free bytes any more.
    """
    pools: dict[str, _Pool] = {}
    weights = _weight_bytes(document, data_types)
    stated = _stated_ranks(document)
    for rank, (fact, plan_rank) in enumerate(zip(facts, plan_ranks, strict=True)):
        for tier in (DEVICE, HOST):
            name, free, total = (
                (fact.device_pool, fact.device_free_bytes, fact.device_total_bytes)
                if tier == DEVICE
                else (fact.host_pool, fact.host_free_bytes, fact.host_total_bytes)
            )
            kind = "memory" if fact.device_pool == fact.host_pool else _KINDS[tier]
            pool = pools.setdefault(name, _Pool(kind=kind, ranks=[], free_bytes=free, total_bytes=total))
            pool.free_bytes = min(pool.free_bytes, free)
            pool.ranks += [rank] if rank not in pool.ranks else []
            ledger = stated.get(plan_rank, {})
            reserved = dict(_numbers(_mapping(ledger.get("reserved_bytes")).get(tier)))
            pool.margin_bytes += reserved.pop(_MARGIN, 0)
            if tier == DEVICE:
                reserved[_DENSE] = max(0, reserved.get(_DENSE, 0) - resident_dense_bytes[rank])
            pool.reserved_bytes += sum(reserved.values())
            ledger_bytes = _numbers(ledger.get("bytes")).get(tier, 0)
            pool.tables_bytes += max(ledger_bytes, weights.get((plan_rank, tier), 0))
    differences, warnings = [], []
    for name, pool in pools.items():
        needed = pool.tables_bytes + pool.reserved_bytes
        text = (
            f"{ranks_text(pool.ranks)}: the plan needs {_size(needed)} of {pool.kind}"
            f" ({_size(pool.tables_bytes)} for tables, {_size(pool.reserved_bytes)} reserved for the rest),"
            f" {_size(pool.free_bytes)} of {_size(pool.total_bytes)} are free ({name})"
        )
        if pool.tables_bytes and needed > pool.free_bytes:
            differences.append(replan(text))
        elif pool.tables_bytes and needed + pool.margin_bytes > pool.free_bytes:
            warnings.append(f"{text}, which leaves less than the plan's margin of {_size(pool.margin_bytes)}")
    return differences, warnings


def _weight_bytes(document: PlanDocument, data_types: Mapping[str, str]) -> dict[tuple[int, str], int]:
    """Bytes of weights by rank and tier, out of the geometry alone: nothing that a plan says makes them fewer."""
    found: dict[tuple[int, str], int] = defaultdict(int)
    for table in document["tables"]:
        bits = _BITS.get(data_types.get(table["name"], ""), 0)  # tables that the model lacks take nothing
        for shard in table["shards"]:
            found[shard["rank"], shard.get("tier", DEVICE)] += shard["num_rows"] * shard["num_columns"] * bits // 8
    return dict(found)


def _stated_ranks(document: PlanDocument) -> dict[int, Mapping[str, object]]:
    """The ``ranks`` of the plan by rank; empty where it has none."""
    listed = document.get("ranks")
    found = {}
    for item in listed if isinstance(listed, list) else []:
        rank = _mapping(item).get("rank")
        if isinstance(rank, int):
            found[rank] = _mapping(item)
    return found


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _numbers(value: object) -> dict[str, int]:
    return {key: number for key, number in _mapping(value).items() if isinstance(number, int) and number > 0}


def _size(num_bytes: int) -> str:
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} B"
