"""Checks of a plan that need no model and no runtime: is it whole, and is it for this job."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import cast

from .documents import in_long_form, plan_digest
from .errors import PlanRejected
from .plan_types import SCHEMA_VERSION, PlanDocument, ShardDocument, TableDocument
from .verdicts import Difference, refuse, replan, verdict_of

DATA_PARALLEL = "data_parallel"
_NUMBERS = ("rank", "row_offset", "num_rows", "column_offset", "num_columns")


def check_plan(plan: Mapping[str, object], *, world_size: int, ranks_per_host: int) -> PlanDocument:
    """Return the plan in long form, checked: its digest, its cluster, and that every table is covered exactly once.

    Parameters
    ----------
    plan
        A plan document from anywhere, in either form.
    world_size, ranks_per_host
        The job's number of ranks, and of ranks on one host (``LOCAL_WORLD_SIZE``).

    Raises
    ------
    PlanRejected
        With every reason.
    UnexpectedAnswer
        It says that it is compact, and cannot be expanded.
    """
    plan = in_long_form(plan)
    document = cast("PlanDocument", plan)
    found = shape_differences(plan) or content_differences(
        document, digest=plan_digest(plan), world_size=world_size, ranks_per_host=ranks_per_host
    )
    if found:
        raise PlanRejected([difference.text for difference in found], verdict_of(found))
    return document


def shape_differences(plan: Mapping[str, object]) -> list[Difference]:
    """Return what keeps a document from being read as a plan at all."""
    return [refuse(reason) for reason in _shape_reasons(plan)]


def content_differences(
    document: PlanDocument, *, digest: str, world_size: int, ranks_per_host: int
) -> list[Difference]:
    """Return what is wrong with a plan of the right shape, and where it is not for this cluster.

    ``digest`` is that of its content.

    A plan for another cluster is out of date; one that was changed, or that does not cover its
    tables on the cluster that it names, is wrong.
    """
    found = []
    if document["plan_digest"] != digest:
        found.append(refuse(f"the plan says {document['plan_digest']}, its content has the digest {digest}"))
    if document["world_size"] != world_size:
        found.append(replan(f"the plan is for a world size of {document['world_size']}, the job has {world_size}"))
    if document["ranks_per_host"] != ranks_per_host:
        found.append(
            replan(
                f"the plan is for {document['ranks_per_host']} ranks per host, the job has {ranks_per_host}"
                " (LOCAL_WORLD_SIZE)"
            )
        )
    if document["world_size"] % ranks_per_group(document) or ranks_per_group(document) % document["ranks_per_host"]:
        found.append(
            refuse(
                f"pods of {ranks_per_group(document)} ranks are no whole hosts of {document['ranks_per_host']}, or do"
                f" not divide the {document['world_size']} ranks of the plan"
            )
        )
    seen: set[str] = set()
    for table in document["tables"]:
        if table["name"] in seen:
            found.append(refuse(f'table "{table["name"]}" stands twice in the plan'))
        seen.add(table["name"])
        reasons = _cover_reasons(table, document["world_size"])
        found += [refuse(f'table "{table["name"]}": {reason}') for reason in reasons]
    return found


def ranks_per_group(document: PlanDocument) -> int:
    """Ranks that ``table_row_wise`` and ``grid_shard`` cut rows over: of a pod, or else of a host."""
    return document.get("pod_size") or document["ranks_per_host"]


def extent(table: TableDocument) -> tuple[int, int]:
    """Rows and columns that the shards of a table reach to."""
    shards = table["shards"]
    return (
        max(s["row_offset"] + s["num_rows"] for s in shards),
        max(s["column_offset"] + s["num_columns"] for s in shards),
    )


def _shape_reasons(plan: Mapping[str, object]) -> list[str]:
    if plan.get("schema_version") != SCHEMA_VERSION:
        return [f"the plan has schema_version {plan.get('schema_version')!r}; this client reads {SCHEMA_VERSION}"]
    reasons = [f"the plan has no {key}" for key in PlanDocument.__required_keys__ if key not in plan]
    if reasons:
        return sorted(reasons)
    reasons = [
        f"{key} is not a positive whole number"
        for key in ("world_size", "ranks_per_host", *(("pod_size",) if "pod_size" in plan else ()))
        if not _natural(plan[key], 1)
    ]
    if "kv_cache_bytes" in plan and not _natural(plan["kv_cache_bytes"], 0):
        reasons.append("kv_cache_bytes is not a whole number")
    tables = plan["tables"]
    if not isinstance(tables, list) or not tables:
        return [*reasons, "tables is not a list with at least one table"]
    for index, table in enumerate(tables):
        if not isinstance(table, Mapping):
            reasons.append(f"table {index} is not an object")
            continue
        words = ("name", "sharding_type", "compute_kernel")
        reasons += [f"table {index} has no {key}" for key in words if not isinstance(table.get(key), str)]
        shards = table.get("shards")
        if not isinstance(shards, list) or not shards:
            reasons.append(f"table {index} has no shards")
        elif not all(isinstance(s, Mapping) and all(_natural(s.get(key), 0) for key in _NUMBERS) for s in shards):
            reasons.append(f"table {index} has a shard without {', '.join(_NUMBERS)} as whole numbers")
    return reasons


def _natural(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _cover_reasons(table: TableDocument, world_size: int) -> list[str]:
    """Whether the shards tile the table: column pieces side by side, each tiled by row pieces."""
    shards = table["shards"]
    reasons = [f"rank {s['rank']} is not one of {world_size}" for s in shards if s["rank"] >= world_size]
    if any(s["num_rows"] == 0 or s["num_columns"] == 0 for s in shards):
        reasons.append("a shard is empty")
    if table["sharding_type"] == DATA_PARALLEL:
        if [s["rank"] for s in shards] != list(range(world_size)):
            reasons.append(f"expected one copy on each of {world_size} ranks, in order")
        whole = (0, *extent(table))
        if any((s["row_offset"] + s["column_offset"], s["num_rows"], s["num_columns"]) != whole for s in shards):
            reasons.append("expected every copy to be the whole table")
        return reasons
    rows, columns = extent(table)
    pieces: dict[tuple[int, int], list[ShardDocument]] = defaultdict(list)
    for shard in shards:
        pieces[shard["column_offset"], shard["num_columns"]].append(shard)
    if not _tiles(sorted(pieces), columns):
        reasons.append(f"columns 0..{columns} are not covered exactly once")
    for (offset, width), members in pieces.items():
        if not _tiles(sorted((s["row_offset"], s["num_rows"]) for s in members), rows):
            reasons.append(f"rows 0..{rows} of columns {offset}..{offset + width} are not covered exactly once")
    return reasons


def _tiles(ranges: Iterable[tuple[int, int]], end: int) -> bool:
    """Whether sorted (offset, length) ranges follow one another from 0 to ``end``."""
    position = 0
    for offset, length in ranges:
        if offset != position:
            return False
        position += length
    return position == end
