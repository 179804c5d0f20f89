"""TorchRec's own planner on a spec of the ``torchrec`` family, where TorchRec is installed.

    python benchmarks/peers/torchrec_live.py SPEC.json ... [--kernels fused dense] [--time-limit SECONDS]

Prints TorchRec's slowest rank and time next to those of the re-made search on the same options. No
accelerator is needed: tables are on the meta device and the topology is only described. The planner
has its default settings; what a spec says beyond tables, batch, pipeline, cluster and capacity is not read.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.torchrec_options import MILLISECONDS_PER_SECOND, PERF_PARTS
from planner.orchestration.baselines.torchrec_options import Cluster, Option, placement_of
from planner.orchestration.baselines.torchrec_search import search

_CURVE_POINTS = 101  # of a miss curve whose area TorchRec asks for (``cacheability``)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveResult:
    """What TorchRec's planner did, and what it chose from."""

    max_rank_seconds: float  # inf where it found no plan
    num_proposals: int
    num_packed: int
    wall_seconds: float  # enumeration, pricing and search
    tables: list[list[Option]]
    cluster: Cluster
    sharding_plan: dict[str, Any] | None  # as ``shardplan improve`` takes it


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAccess:
    """What TorchRec can be given of a table's accesses (its ``CacheStatistics``)."""

    distinct_rows: float  # of a step of all ranks
    missed_share: Callable[[float], float]  # of them, by the share of the table's rows that is cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """What TorchRec gets of caches in device memory."""

    share: float  # of the rows of every cached table; scaled up from there where accesses are known
    accesses: Mapping[str, KnownAccess] | None = None  # by table


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A spec as TorchRec's classes have it; nothing here is typed, since TorchRec may be absent."""

    topology: Any
    module: Any
    sharders: list[Any]
    constraints: dict[str, Any]  # by table
    batch_size: int
    enumerator: Any  # with the estimators that TorchRec has by default, for the spec's pipeline
    reservation: Any


def described(
    spec: Mapping[str, Any],
    *,
    kernels: Sequence[str] | None = None,
    schemes: Sequence[str] | None = None,
    caches: Caches | None = None,
) -> Described:
    """Describe a spec to TorchRec; ``None`` leaves kernels and schemes to TorchRec's own choice."""
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.planner.shard_estimators import EmbeddingPerfEstimator, EmbeddingStorageEstimator
    from torchrec.distributed.planner.storage_reservations import HeuristicalStorageReservation
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.distributed.types import PipelineType

    topology, batch = _topology(spec), spec["model"]["batch_size_per_rank"]
    pipeline = PipelineType(spec["model"]["pipeline"])
    constraints = {
        table["name"]: ParameterConstraints(
            sharding_types=list(schemes) if schemes else None,
            pooling_factors=[feature["pooling_factor"] for feature in table["features"]],
            compute_kernels=list(kernels) if kernels else None,
            cache_params=None if caches is None else _cache_params(caches, table["name"], pipeline),
        )
        for table in spec["model"]["tables"]
    }
    return Described(
        topology=topology,
        module=_module(spec),
        sharders=[EmbeddingBagCollectionSharder()],
        constraints=constraints,
        batch_size=batch,
        enumerator=EmbeddingEnumerator(
            topology=topology,
            batch_size=batch,
            constraints=constraints,
            estimator=[
                EmbeddingPerfEstimator(topology=topology, constraints=constraints),
                EmbeddingStorageEstimator(topology=topology, constraints=constraints, pipeline_type=pipeline),
            ],
        ),
        reservation=HeuristicalStorageReservation(percentage=spec["constraints"]["reserved_hbm_fraction"]),
    )


def plan(
    spec: Mapping[str, Any],
    *,
    kernels: Sequence[str] | None = None,
    caches: Caches | None = None,
    time_limit_seconds: int | None = None,
) -> LiveResult:
    """Run ``EmbeddingShardingPlanner`` with its defaults.

    ``kernels``: those it may choose from, ``None`` for its own choice (three that read host memory
    too). ``caches``: where accesses are known, its ``EmbeddingOffloadScaleupProposer`` comes first
    of its proposers, so that no time limit cuts it off. ``time_limit_seconds`` covers its search;
    listing and pricing come on top.

    Raises
    ------
    ImportError
        TorchRec is not installed.
    """
    from torchrec.distributed.planner import EmbeddingShardingPlanner
    from torchrec.distributed.planner.partitioners import GreedyPerfPartitioner
    from torchrec.distributed.planner.perf_models import NoopPerfModel
    from torchrec.distributed.planner.types import PlannerError

    from api.client.torchrec import plan_as_json

    problem = described(spec, kernels=kernels, caches=caches)
    partitioner = _CountedPartitioner(GreedyPerfPartitioner())
    rating = _RecordedRating(NoopPerfModel(problem.topology))
    planner = EmbeddingShardingPlanner(
        topology=problem.topology,
        batch_size=problem.batch_size,
        enumerator=problem.enumerator,
        storage_reservation=problem.reservation,
        proposer=_proposers() if caches is not None and caches.accesses is not None else None,
        partitioner=partitioner,
        performance_model=rating,
        constraints=problem.constraints,
        timeout_seconds=time_limit_seconds,
    )
    started = time.monotonic()
    chosen = None
    try:
        chosen = plan_as_json(planner.plan(problem.module, problem.sharders))
    except PlannerError:
        if rating.plans:
            raise
    wall_seconds = time.monotonic() - started
    by_table: dict[str, list[Option]] = {table["name"]: [] for table in spec["model"]["tables"]}
    for option in problem.enumerator.enumerate(problem.module, problem.sharders):
        by_table[option.name].append(_option(option))
    left = problem.reservation.last_reserved_topology
    return LiveResult(
        max_rank_seconds=rating.best_milliseconds / MILLISECONDS_PER_SECOND,
        num_proposals=partitioner.proposals,
        num_packed=rating.plans,
        wall_seconds=wall_seconds,
        tables=list(by_table.values()),
        cluster=Cluster(
            ranks_per_host=spec["hardware"]["ranks_per_host"],
            capacity_bytes=np.array([[device.storage.hbm, device.storage.ddr] for device in left.devices]),
        ),
        sharding_plan=chosen,
    )


class _CountedPartitioner:
    """A partitioner of TorchRec's that counts what it is given."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.proposals = 0

    def partition(self, **given: Any) -> Any:
        self.proposals += 1
        return self._inner.partition(**given)


class _RecordedRating:
    """A rating of TorchRec's that remembers its best."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.best_milliseconds = math.inf
        self.plans = 0

    def rate(self, plan: Any) -> float:
        milliseconds = float(self._inner.rate(plan))
        self.best_milliseconds = min(self.best_milliseconds, milliseconds)
        self.plans += 1
        return milliseconds


def _proposers() -> list[Any]:
    """Return the one that scales caches up, then those that TorchRec has by default."""
    from torchrec.distributed.planner.proposers import (
        EmbeddingOffloadScaleupProposer,
        GreedyProposer,
        GridSearchProposer,
        UniformProposer,
    )

    scaleup = EmbeddingOffloadScaleupProposer()
    return [scaleup, GridSearchProposer(), GreedyProposer(), GreedyProposer(use_depth=False), UniformProposer()]


def _cache_params(caches: Caches, table: str, pipeline: Any) -> Any:
    from torchrec.distributed.types import CacheParams, CacheStatistics, PipelineType

    class Statistics(CacheStatistics):  # type: ignore[misc]
        """Known accesses as TorchRec asks for them."""

        def __init__(self, known: KnownAccess) -> None:
            self._known = known
            shares = np.linspace(0.0, 1.0, _CURVE_POINTS)
            self._area = float(np.trapezoid([known.missed_share(share) for share in shares], shares))

        @property
        def expected_lookups(self) -> float:
            return self._known.distinct_rows

        def expected_miss_rate(self, clf: float) -> float:
            return self._known.missed_share(clf)

        @property
        def cacheability(self) -> float:
            return self._area

    return CacheParams(
        load_factor=caches.share,
        prefetch_pipeline=pipeline is PipelineType.TRAIN_PREFETCH_SPARSE_DIST,
        stats=None if caches.accesses is None else Statistics(caches.accesses[table]),
    )


def _topology(spec: Mapping[str, Any]) -> Any:
    from torchrec.distributed.planner import Topology

    hardware = spec["hardware"]
    return Topology(
        world_size=hardware["num_hosts"] * hardware["ranks_per_host"],
        local_world_size=hardware["ranks_per_host"],
        compute_device="cuda",
        hbm_cap=hardware["overrides"]["hbm_bytes"],
        ddr_cap=hardware["overrides"]["ddr_bytes"],
    )


def _module(spec: Mapping[str, Any]) -> Any:
    import torch
    from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection

    return EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingBagConfig(
                name=table["name"],
                num_embeddings=table["num_embeddings"],
                embedding_dim=table["embedding_dim"],
                feature_names=[feature["name"] for feature in table["features"]],
                data_type=DataType.FP16 if table["data_type"] == "fp16" else DataType.FP32,
            )
            for table in spec["model"]["tables"]
        ],
    )


def _option(option: Any) -> Option:
    seconds = np.array([[getattr(shard.perf, part) for part in PERF_PARTS] for shard in option.shards])
    return Option(
        scheme=option.sharding_type,
        placement=placement_of(option.sharding_type),
        seconds=seconds / MILLISECONDS_PER_SECOND,
        bytes=np.array([[shard.storage.hbm, shard.storage.ddr] for shard in option.shards], dtype=np.int64),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run both planners; print one line per spec."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("specs", type=Path, nargs="+")
    parser.add_argument("--kernels", nargs="+", help="kernels to choose from; default: TorchRec's own choice")
    parser.add_argument("--time-limit", type=int, default=None, help="seconds of search, for either")
    given = parser.parse_args(arguments)
    print(f"{'instance':<28} {'TorchRec ms':>12} {'s':>8} {'packed':>14}  {'re-made ms':>12} {'s':>8} {'packed':>14}")
    for path in given.specs:
        spec = json.loads(path.read_text())
        theirs = plan(spec, kernels=given.kernels, time_limit_seconds=given.time_limit)
        limit_seconds = math.inf if given.time_limit is None else given.time_limit
        ours = search(theirs.tables, theirs.cluster, time_limit_seconds=limit_seconds, packs_all=True)
        cells = [f"{spec['name']:<28}"]
        for result in (theirs, ours):
            packed = f"{result.num_packed}/{result.num_proposals}"
            milliseconds = result.max_rank_seconds * MILLISECONDS_PER_SECOND
            cells.append(f"{milliseconds:12.4f} {result.wall_seconds:8.1f} {packed:>14}")
        print("  ".join(cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
