"""Any plan as TorchRec's own estimators rate it, where TorchRec is installed."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.torchrec_live import Caches, described
from benchmarks.peers.torchrec_options import MILLISECONDS_PER_SECOND
from cost_models.vocabulary import Scheme
from planner.domain.plan.placement import Placement, TablePlacement

_TIERS = ("hbm", "ddr", "ssd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """What TorchRec says of a plan."""

    max_rank_seconds: float  # its rating of a plan
    fits: bool  # into what its reservation leaves of every rank


def rate(
    spec: Mapping[str, Any], placement: Placement, *, kernels: Sequence[str] | None = None, caches: Caches | None = None
) -> Rating:
    """Rate a placement of a spec's tables, shard by shard, with cuts that TorchRec would not list too.

    Raises
    ------
    ImportError
        TorchRec is not installed.
    """
    from torchrec.distributed.planner.perf_models import NoopPerfModel

    problem = described(spec, kernels=kernels, schemes=Scheme.labels(), caches=caches)
    listed = {
        (option.name, option.sharding_type, option.compute_kernel): option
        for option in problem.enumerator.enumerate(problem.module, problem.sharders)
    }
    plan = [
        _placed(listed[placed.name, placed.sharding_type.label, placed.compute_kernel.label], placed)
        for placed in placement.tables
    ]
    problem.enumerator.populate_estimates(plan)
    held = np.zeros((placement.world_size, len(_TIERS)))
    for option in plan:
        for shard in option.shards:
            held[shard.rank] += [getattr(shard.storage, tier) for tier in _TIERS]
    left = problem.reservation.reserve(
        topology=problem.topology,
        batch_size=problem.batch_size,
        module=problem.module,
        sharders=problem.sharders,
        constraints=problem.constraints,
    )
    room = np.array([[getattr(device.storage, tier) for tier in _TIERS] for device in left.devices])
    return Rating(
        max_rank_seconds=float(NoopPerfModel(problem.topology).rate(plan)) / MILLISECONDS_PER_SECOND,
        fits=bool(np.all(held <= room)),
    )


def _placed(option: Any, placed: TablePlacement) -> Any:
    """Return a listed option with the shards and the cache of a placement."""
    from torchrec.distributed.planner.types import Shard

    mine = copy.deepcopy(option)
    mine.shards = [
        Shard(
            size=[one.num_rows, one.num_columns],
            offset=[one.row_offset, one.column_offset],
            rank=one.rank,
        )
        for one in placed.shards
    ]
    if mine.cache_params is not None:
        mine.cache_params.load_factor = placed.cache_load_factor
    return mine
