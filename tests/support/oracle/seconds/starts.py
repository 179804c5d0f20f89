"""What a plan starts once per step, by docs/cost-models.md#starts: one set of collectives and kernels per kind."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.support.oracle.shards import OF_TORCHREC, ROW_CUTS, Job, Table

_HOST_CUTS = ("table_row_wise", "grid_shard")
_NO_STARTS = ("torchrec", "serving")


def starts_of_plan(job: Job, model: str, plan: dict[str, Any]) -> Counter[str]:
    """Return the seconds by phase that every rank has in addition to its shards."""
    found: Counter[str] = Counter()
    if model in _NO_STARTS or job.runtime not in OF_TORCHREC or job.spec.get("count_starts") is False:
        return found
    tables = {
        one["name"]: Table.of(index, one, deduplicates=job.deduplicates)
        for index, one in enumerate(job.model["tables"])
    }
    modules = {(table.module_path, table.is_pooled) for table in tables.values()}
    for module in sorted(modules):
        members = [table for table in tables.values() if (table.module_path, table.is_pooled) == module]
        names = {table.name for table in members}
        is_weighted = any(table.is_weighted and not table.is_deduplicated for table in members)
        for scheme in {placed["sharding_type"] for placed in plan["tables"] if placed["name"] in names}:
            for phase, operation, group in _collectives(job, scheme, module[1], is_weighted):
                found[phase] += job.machine.start(operation, group)
            for phase, number in _launches(scheme).items():
                found[phase] += _launched(job.machine.numbers, phase, number)
            if members[0].is_deduplicated:
                for phase, number in (("input_comm", 22), ("forward_comm", 1), ("backward_comm", 2)):
                    found[phase] += _launched(job.machine.numbers, phase, number)
    return found


def _launched(numbers: dict[str, float], phase: str, number: int) -> float:
    """Return the starts of a phase's kernels: one number for all of them, where lookups were measured."""
    one = {"forward_compute": "forward_start_seconds", "backward_compute": "backward_start_seconds"}.get(phase, "")
    return numbers.get(one, number * numbers.get("kernel_launch_seconds", 0.0))


def _collectives(job: Job, scheme: str, is_pooled: bool, is_weighted: bool) -> Iterator[tuple[str, str, str]]:
    """Yield phase, operation and group of what a kind starts."""
    machine = job.machine
    if machine.world == 1:
        return
    if scheme == "data_parallel":
        yield "backward_comm", "all_reduce", "all"
        return
    for _ in range(2 + int(is_weighted) + int(job.pipeline == "none")):
        yield "input_comm", "all_to_all", "all"
    if not is_pooled or scheme not in ROW_CUTS:
        yield "forward_comm", "all_to_all", "all"
        yield "backward_comm", "all_to_all", "all"
    elif scheme not in _HOST_CUTS:
        yield "forward_comm", "reduce_scatter", "all"
        yield "backward_comm", "all_gather", "all"
    else:
        if machine.per_group > 1:
            yield "forward_comm", "reduce_scatter", "inside"
            yield "backward_comm", "all_gather", "inside"
        if machine.groups > 1:
            yield "forward_comm", "all_to_all", "across"
            yield "backward_comm", "all_to_all", "across"


def _launches(scheme: str) -> dict[str, int]:
    """Return kernels by phase."""
    compute = {"forward_compute": 2, "backward_compute": 9}
    if scheme == "data_parallel":
        return compute
    on_ids = 6 if scheme in _HOST_CUTS else 4 if scheme in ROW_CUTS else 2
    return compute | {"input_comm": on_ids, "forward_comm": 1}
