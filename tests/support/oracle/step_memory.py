"""Buffers of every rank by phase of a step: docs/cost-models.md#memory-over-a-step."""

import math
from collections import Counter, defaultdict

from tests.support.oracle.memory import Lines
from tests.support.oracle.shards import Job, Shard, Table

Moments = Counter[tuple[str, str]]  # by phase and line

_WHOLE = ("table_wise", "column_wise", "table_column_wise")
_OVER_GROUPS = ("table_row_wise", "grid_shard")
_BY_COLUMNS = ("column_wise", "table_column_wise", "grid_shard")


def step_memory(job: Job, shards: list[Shard]) -> list[Moments] | None:
    """Return what each rank holds besides what stays; ``None`` of requests."""
    if job.samples_of_request is not None:
        return None
    working = [one for one in shards if not one.is_hot_part]
    scheme_of = {one.table.name: one.scheme for one in working}
    table_of = {one.table.name: one.table for one in working}
    of_module: dict[str, set[str]] = defaultdict(set)
    for name, scheme in scheme_of.items():
        of_module[table_of[name].module_path].add(scheme)
    several = {name for name, table in table_of.items() if len(of_module[table.module_path]) > 1}
    everywhere = _everywhere(job, scheme_of, table_of, several)
    found = [Counter(everywhere) for _ in range(job.machine.world)]
    for shard in working:
        found[shard.rank].update(_of_shard(job, shard, shard.table.name in several))
    return found


def persistent(job: Job, lines: Lines, reserved: Counter[tuple[str, str]]) -> dict[str, float]:
    """Return what stays through a step, by line."""
    device = job.machine.device
    held = {name: amount for (tier, name), amount in lines.items() if tier == device}
    reservations = ("dense_parameters", "input_batches", "collective_buffers", "index_dedup")
    stays = {name: reserved[device, name] for name in reservations if name[0] != "i" or (device, name) in reserved}
    buffers = {"input_buffers", "output_buffers"}
    tables = sum(amount for name, amount in held.items() if name not in buffers)
    return {"tables": tables, "input_buffers": held.get("input_buffers", 0), **stays}


def _elements(job: Job) -> tuple[float, float, float]:
    names = ("output_dtype", "forward_comm_dtype", "backward_comm_dtype")
    stored, forward, backward = (job.wire_bytes(name) or 4.0 for name in names)
    return stored, forward, backward


def _travels_by_group(job: Job, scheme: str) -> bool:
    return scheme in _OVER_GROUPS and job.machine.groups > 1


def _everywhere(job: Job, scheme_of: dict[str, str], table_of: dict[str, Table], several: set[str]) -> Moments:
    stored, forward, backward = _elements(job)
    found: Moments = Counter()
    pieces: Counter[str] = Counter()
    for name, scheme in scheme_of.items():
        table = table_of[name]
        all_cells = job.batch * table.outputs * table.num_columns
        sent = table.sent_ids(job.batch) if table.is_deduplicated else job.batch * table.outputs
        cells = sent * table.num_columns
        is_message = scheme in _WHOLE or _travels_by_group(job, scheme)
        columns = 1 if scheme in _BY_COLUMNS else 0
        for phase in ("output_concat", "dense_forward", "dense_backward"):
            found[phase, "pooled_rows"] += all_cells * stored
        for phase in ("dense_backward", "gradient_split", "backward_comm"):
            found[phase, "gradients_of_pooled_rows"] += all_cells * stored
        if scheme != "data_parallel":
            found["forward_comm", "received_rows"] += cells * forward
        if name in several or is_message:
            found["output_concat", "received_rows"] += cells * stored
        if is_message:
            for phase in ("gradient_split", "backward_comm"):
                found[phase, "sent_gradients"] += cells * backward
        pieces[scheme] += cells * stored * (columns + (1 + (name in several) if is_message else 0))
        sends = name in several and scheme != "data_parallel" and not is_message
        found["backward_comm", "gradient_copies"] += cells * stored * (columns + sends)
    found["gradient_split", "gradient_copies"] = max(pieces.values())
    for phase in ("dense_forward", "dense_backward"):
        found[phase, "activations"] = job.dense.get("activation_bytes") or 0
    return found


def _of_shard(job: Job, shard: Shard, is_of_several: bool) -> Moments:
    stored, forward, backward = _elements(job)
    outputs = math.ceil(shard.o * shard.columns * stored * (1 - 1e-12))
    cells, by_group = outputs / stored, _travels_by_group(job, shard.scheme)
    part = 1 / job.machine.per_group if by_group else 0.0
    sent = 1.0 if shard.scheme in _WHOLE else 2 * part
    found: Moments = Counter()
    found["forward_compute", "lookup_outputs"] = found["forward_comm", "lookup_outputs"] = outputs
    found["forward_comm", "sent_rows"] = cells * forward * sent
    if shard.is_replica:
        found["backward_compute", "gradients_of_outputs"] = outputs
        return found
    gathered = 0 if by_group and not is_of_several else 1
    found["backward_comm", "gradients_of_outputs"] = cells * backward * (gathered + part)
    found["backward_compute", "gradients_of_outputs"] = cells * backward * (1 + part)
    return found
