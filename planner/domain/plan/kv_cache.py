"""The cache of keys and values under a plan, and how other sizes compare."""

from dataclasses import dataclass

from planner.domain.plan.replicas import SizeState


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheLoad:
    """What a cache of keys and values takes of every rank, and what a request pays on average."""

    bytes: float  # of every rank
    users: float  # whose keys and values it holds, on all ranks together
    hit_rate: float
    recompute_seconds: float  # of a miss
    seconds_per_request: float  # on average, in the phase kv_recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheSize:
    """One size that was considered, with its plan and its bound as far as they are known."""

    bytes: float  # of every rank
    hit_rate: float
    seconds_per_request: float  # of recomputation, on average
    state: SizeState
    objective_seconds: float | None  # of its best plan; None where none was searched for or found
    lower_bound_seconds: float  # of all its plans
    detail: str = ""  # why it has no plan
