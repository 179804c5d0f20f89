"""A plan, recomputed: seconds of every rank and phase, bytes of every rank and line, the objective."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.deduplication import index_dedup_seconds
from tests.support.oracle.dense import whole_step
from tests.support.oracle.memory import Lines, rank_lines, reserved
from tests.support.oracle.seconds.checkpoints import Checkpoints
from tests.support.oracle.seconds.exchange import exchange_seconds
from tests.support.oracle.seconds.roofline import lookup_seconds, request_seconds
from tests.support.oracle.seconds.starts import starts_of_plan
from tests.support.oracle.seconds.torchrec import torchrec_bytes, torchrec_seconds
from tests.support.oracle.shards import FETCHES_AHEAD, Job, Shard, shards_of
from tests.support.oracle.step_memory import Moments, persistent, step_memory
from tests.support.oracle.tiers import Moved, add_shard

#: What takes longer on a rank of less than the hardware's speed.
COMPUTE = ("forward_compute", "backward_compute")
PHASES = (
    "input_comm",
    "forward_compute",
    "forward_comm",
    "backward_comm",
    "backward_compute",
    "prefetch",
    "checkpoint",
)
#: Phases that a cost model leaves out of the objective.
_NOT_COUNTED = {
    "roofline": (),
    "torchrec": ("input_comm",),
    "serving": ("backward_comm", "backward_compute", "checkpoint"),
}


@dataclass(frozen=True)
class Recomputed:
    """What a plan costs and holds."""

    seconds: list[dict[str, float]]  # of every rank
    bytes: list[Lines]
    reserved: list[Lines]
    torchrec_bytes: list[Counter[str]] | None
    objective: float
    lookups: list[float]  # of every rank
    id_bytes: list[float]
    tiers: list[dict[str, Moved]]  # of every rank
    step_seconds: float  # that tiers are held against
    whole_step: dict[str, float] | None
    persistent: list[dict[str, float]]  # of every rank's device over a step
    buffers: list[Moments] | None  # of every rank in each phase of a step; None of requests


def recompute(spec: dict[str, Any], plan: dict[str, Any]) -> Recomputed:
    """Recompute a plan document from its spec alone."""
    job = Job.of(spec, deduplicates=bool(plan.get("use_index_dedup")))
    model = spec.get("cost_model", "roofline")
    shards = list(shards_of(job, plan))
    working = [one for one in shards if not one.is_hot_part]
    seconds: list[Counter[str]] = [Counter(dict.fromkeys(PHASES, 0.0)) for _ in range(job.machine.world)]
    checkpoints = Checkpoints(job) if (spec.get("checkpoint") or {}).get("balance") else None
    known: dict[Any, dict[str, float]] = {}
    for shard in working:
        kind = (shard.table.name, shard.columns, shard.tier)
        if kind not in known:
            known[kind] = _shard_seconds(job, model, shard)
            if checkpoints is not None:
                known[kind] = dict(known[kind]) | {"checkpoint": checkpoints.seconds(shard)}
        for phase, value in known[kind].items():
            seconds[shard.rank][phase] += value
    for rank, of_rank in enumerate(seconds):
        for phase in COMPUTE:
            of_rank[phase] /= job.machine.speeds[rank]
        if model == "serving" and any(of_rank.values()):
            for phase in ("input_comm", "forward_comm"):
                of_rank[phase] += job.machine.numbers["host_link_message_seconds"]
    starts = starts_of_plan(job, model, plan)
    for of_rank in seconds:
        for phase, value in (*starts.items(), *index_dedup_seconds(job).items()):
            of_rank[phase] += value
    lookups, id_bytes = [0.0] * job.machine.world, [0.0] * job.machine.world
    tiers: list[dict[str, Moved]] = [{} for _ in seconds]
    for shard in working:
        lookups[shard.rank] += shard.own_lookups
        id_bytes[shard.rank] += 0.0 if shard.is_replica else shard.own_lookups * shard.table.id_bytes
        if shard.kernel not in ("dense", "fused", "hash"):
            add_shard(job.machine, shard, tiers[shard.rank].setdefault(shard.tier, Moved()))
    of_torchrec = None
    if model == "torchrec":
        of_torchrec = [Counter[str]() for _ in seconds]
        for shard in working:
            of_torchrec[shard.rank].update(torchrec_bytes(job, shard))
    step_phases = [one for one in _counted(model) if one != "checkpoint"]
    sparse = _step_time(job, step_phases, seconds)
    held, taken = rank_lines(job, shards), [reserved(job, rank) for rank in range(job.machine.world)]
    return Recomputed(
        seconds=[dict(one) for one in seconds],
        bytes=held,
        reserved=taken,
        persistent=[persistent(job, lines, of_rank) for lines, of_rank in zip(held, taken, strict=True)],
        buffers=step_memory(job, shards),
        torchrec_bytes=of_torchrec,
        objective=_objective(job, model, seconds),
        lookups=lookups,
        id_bytes=id_bytes,
        tiers=tiers,
        step_seconds=sparse + job.dense_seconds,
        whole_step=None
        if job.samples_of_request is not None
        else whole_step(job.dense, job.machine, job.batch, sparse, _hidden(job, step_phases, seconds)),
    )


def _shard_seconds(job: Job, model: str, shard: Shard) -> dict[str, float]:
    if model == "torchrec":
        return torchrec_seconds(job, shard)
    if model == "serving":
        return request_seconds(job, shard)
    return dict(Counter(lookup_seconds(job, shard)) + Counter(exchange_seconds(job, shard)))


def _objective(job: Job, model: str, seconds: list[Counter[str]]) -> float:
    counted = _counted(model)
    if job.spec.get("objective", "step_time") != "step_time":
        return max(sum(one[phase] for phase in counted) for one in seconds)
    return _step_time(job, counted, seconds)


def _counted(model: str) -> list[str]:
    return [phase for phase in PHASES if phase not in _NOT_COUNTED[model]]


def _step_time(job: Job, counted: list[str], seconds: list[Counter[str]]) -> float:
    hidden = _hidden(job, counted, seconds)
    return sum(max(0.0, max(one[phase] for one in seconds) - hidden[phase]) for phase in counted)


def _hidden(job: Job, counted: list[str], seconds: list[Counter[str]]) -> Counter[str]:
    """Return what dense compute hides of each phase."""
    hidden: Counter[str] = Counter()
    for phase, pipelines in (("input_comm", ("train_sparse_dist", FETCHES_AHEAD)), ("prefetch", (FETCHES_AHEAD,))):
        if phase in counted and job.pipeline in pipelines:
            hidden[phase] = min(job.dense_seconds, max(one[phase] for one in seconds))
    return hidden
