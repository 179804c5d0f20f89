"""What each rank of a running job knows of itself, and whether the ranks agree."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .check import ranks_per_group
from .live_table import LiveTable
from .memory import MemoryFacts, memory_issues
from .plan_types import PlanDocument
from .verdicts import Difference, ranks_text, refuse, replan

#: Facts that every rank must have alike, and how a message calls them.
_COMMON = {
    "group_size": "the world size",
    "sharding_group_size": "sharding_group_size",
    "contiguous_groups": "use_inter_host_allreduce",
    "ranks_per_host": "the number of ranks per host (LOCAL_WORLD_SIZE)",
    "pod_ranks": "the number of ranks of a pod (TORCHREC_RESOLVED_POD_SIZE)",
    "device": "the device",
    "torchrec": "the version of TorchRec",
    "expected_digest": "the expected digest",
}
#: Tables that a message names; the rest is counted.
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFacts:
    """What one rank says of itself; small, since all ranks send theirs to all."""

    group_size: int  # ranks of the job
    sharding_group_size: int  # ranks that share one copy of the tables: all of them but under 2D parallelism
    contiguous_groups: bool  # 2D: groups are 0..n-1, n..2n-1, ...; else every k-th rank
    ranks_per_host: int
    pod_ranks: int | None  # ranks of a pod, if TORCHREC_RESOLVED_POD_SIZE is set; TorchRec takes them for one host
    machine: str
    host_name: str
    device: str
    torchrec: str
    fingerprint: str
    expected_digest: str | None
    resident_dense_bytes: int
    memory: MemoryFacts
    local_world_size: int | None = None  # LOCAL_WORLD_SIZE, whatever the launcher states in its place
    states_groups: bool = True  # whether the launcher states the sharding groups
    states_ranks_per_host: bool = True


def job_issues(
    document: PlanDocument | None, facts: Sequence[RankFacts], tables: Sequence[LiveTable]
) -> tuple[list[Difference], list[str]]:
    """Return what all ranks together say against a plan, and what they warn of.

    What is placed where, and in how much memory, is compared only where the ranks agree on the
    job and the plan is for as many of them; ``None`` stands for a document that has not the shape of one.
    """
    found = agreement_differences(facts)
    if found or document is None:
        return found, []
    found = topology_differences(document, facts)
    if found or document["world_size"] != facts[0].sharding_group_size:
        return found, []
    return memory_issues(
        document,
        [fact.memory for fact in facts],
        data_types={table.name: table.data_type for table in tables},
        plan_ranks=plan_ranks(facts),
        resident_dense_bytes=[fact.resident_dense_bytes for fact in facts],
    )


def expected_differences(expected_digest: str | None, digest: str) -> list[Difference]:
    """Say where a plan is not the one that the job was started for."""
    if expected_digest in (None, digest):
        return []
    return [refuse(f"the plan's content has the digest {digest}, the job expects {expected_digest}")]


def agreement_differences(facts: Sequence[RankFacts]) -> list[Difference]:
    """Return every fact in which a rank is not like rank 0, but for the model, which has its own message."""
    found = []
    for field, name in _COMMON.items():
        expected = getattr(facts[0], field)
        odd: dict[object, list[int]] = defaultdict(list)
        for rank, fact in enumerate(facts):
            if getattr(fact, field) != expected:
                odd[getattr(fact, field)].append(rank)
        found += [
            refuse(f"{ranks_text(ranks)}: {name} is {value}, on rank 0 it is {expected}")
            for value, ranks in odd.items()
        ]
    return found


def plan_ranks(facts: Sequence[RankFacts]) -> list[int]:
    """Return which rank of the plan each rank of the job takes, as TorchRec's ``DMPCollection`` assigns them."""
    size = facts[0].sharding_group_size
    step = max(1, len(facts) // size)
    return [rank % size if facts[0].contiguous_groups else rank // step for rank in range(len(facts))]


def topology_differences(document: PlanDocument, facts: Sequence[RankFacts]) -> list[Difference]:
    """Compare the groups of ranks that the plan counts on with those that run."""
    first = facts[0]
    size = first.sharding_group_size
    found = pod_differences(document, first.ranks_per_host, first.pod_ranks, uses_2d=size != len(facts))
    if len(facts) % size:
        found.append(refuse(f"{len(facts)} ranks are not whole sharding groups of {size} ranks"))
    if size != len(facts):
        return found + _surplus(document, size)
    for start in range(0, size, first.ranks_per_host):
        ranks = range(start, min(start + first.ranks_per_host, size))
        away = next((rank for rank in ranks if facts[rank].machine != facts[start].machine), None)
        if away is not None:
            found.append(
                refuse(
                    f"{ranks_text(ranks)} are one host by LOCAL_WORLD_SIZE, but rank {start} runs on"
                    f" {facts[start].host_name} and rank {away} on {facts[away].host_name};"
                    " number the ranks machine by machine"
                )
            )
    return found


def pod_differences(
    document: PlanDocument, ranks_per_host: int, pod_ranks: int | None, *, uses_2d: bool = False
) -> list[Difference]:
    """Return where TorchRec's groups are not those of the plan.

    TorchRec cuts ``table_row_wise`` and ``grid_shard`` over a pod of as many hosts as ``TORCHREC_RESOLVED_POD_SIZE``
    says, else over a host. 2D parallelism does not read it: ``DMPCollection`` gets ``node_group_size`` of the plan.
    """
    planned, runs = ranks_per_group(document), pod_ranks or ranks_per_host
    if uses_2d and "replica_groups" in document:
        return []
    if uses_2d and "pod_size" in document and planned != ranks_per_host:
        return [
            refuse(
                f"the plan is for pods of {planned} ranks, and under 2D parallelism TorchRec uses groups of a host;"
                " plan for them with hardware.replica_groups, or train without sharding groups"
            )
        ]
    if "pod_size" not in document:
        if pod_ranks in (None, ranks_per_host):
            return []
        return [
            refuse(
                f"TORCHREC_RESOLVED_POD_SIZE makes TorchRec use groups of {runs} ranks, the job has {ranks_per_host}"
                f" per host (LOCAL_WORLD_SIZE), and the plan is for groups of a host; unset it, or plan with"
                f" hardware.pod_size {runs}"
            )
        ]
    if runs == planned:
        return []
    hosts = planned // ranks_per_host
    return [
        refuse(
            f"the plan is for pods of {planned} ranks, TorchRec uses groups of {runs};"
            f" set TORCHREC_RESOLVED_POD_SIZE={hosts} on every rank ({hosts} hosts of {ranks_per_host} ranks)"
        )
    ]


def _surplus(document: PlanDocument, size: int) -> list[Difference]:
    """Shards that 2D parallelism has no rank for."""
    cut = [t["name"] for t in document["tables"] if any(shard["rank"] >= size for shard in t["shards"])]
    if not cut:
        return []
    names = ", ".join(f'"{name}"' for name in cut[:_NAMED]) + (f" and {len(cut) - _NAMED} more" if cut[_NAMED:] else "")
    return [
        replan(
            f"{ranks_text(range(size, document['world_size']))} of the plan have no place in sharding groups of {size}"
            f" ranks, so that their shards of {names} would be left out; plan for {size} ranks"
        )
    ]
