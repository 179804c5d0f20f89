"""Which collectives of a step were measured, and the bytes that each shard puts into them.

Those of :mod:`cost_models.collectives.collective_bytes` in which all ranks take part, as they do in those inside a host
or pod if there is one. All-reduces go bucket by bucket during the backward pass, and collectives inside one of several
hosts or pods, or across them, are not measured here: these stay analytic.
"""

from dataclasses import dataclass

from cost_models.arrays import Floats
from cost_models.collectives.collective_bytes import Exchange, Group, exchanges_of
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective of a step that was measured."""

    phase: Phase
    kind: CollectiveKind
    group: Group
    shard_bytes: Floats  # (num_shards,): 0 for shards whose rows do not travel in it
    message_bytes: float  # of one rank's buffer when all tables use it


def learned_and_left(
    work: ShardWork, exchange: LearnedExchange | None
) -> tuple[tuple[Collective, ...], tuple[Exchange, ...]]:
    """Return the collectives of a step of which ``exchange`` knows the time, and the others."""
    learned, left = [], []
    for one in exchanges_of(work):
        if _why_not(one, work, exchange):
            left.append(one)
            continue
        learned.append(
            Collective(
                phase=one.phase,
                kind=_kind(one, work),
                group=one.group,
                shard_bytes=one.shard_bytes,
                message_bytes=float(one.message_bytes[0]),
            )
        )
    return tuple(learned), tuple(left)


def unmeasured(work: ShardWork, exchange: LearnedExchange | None) -> tuple[tuple[Phase, str], ...]:
    """Return phase and reason, each once, of the collectives of which ``exchange`` does not know the time."""
    reasons = [(one.phase, _why_not(one, work, exchange)) for one in exchanges_of(work)]
    return tuple(dict.fromkeys((phase, reason) for phase, reason in reasons if reason))


def _why_not(one: Exchange, work: ShardWork, exchange: LearnedExchange | None) -> str:
    """Say why a collective has no learned time; ``""`` if it has one."""
    if exchange is None:
        return "collectives were not measured"
    if not _is_of_all(one, work):
        groups = "hosts" if work.pod_size is None else "pods"
        where = f"inside {groups}" if one.group == "inside" else f"across {groups}"
        return f"{one.operation} {where}, as table_row_wise and grid_shard run it, is not learned"
    if one.operation == "all_reduce":
        return "all_reduce of replicated tables, during the backward pass, is not learned"
    return exchange.unmeasured(_kind(one, work), work.num_ranks)


def _is_of_all(one: Exchange, work: ShardWork) -> bool:
    """Return whether all ranks take part: on one host, or in one pod, those of it are all."""
    return one.group == "all" or (one.group == "inside" and work.num_groups == 1)


def _kind(one: Exchange, work: ShardWork) -> CollectiveKind:
    return CollectiveKind(one.operation, one.direction, spans_hosts=work.num_hosts > 1)
