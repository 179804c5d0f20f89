"""The ``torchrec`` model against TorchRec's own enumerator and estimator, run here.

No GPU is needed: tables are on the meta device and the topology is only described.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from cost_models.analytic.torchrec import TorchRecModel
from cost_models.hardware.profiles_loader import load_profile
from cost_models.protocol import ShardWork
from cost_models.vocabulary import CACHED_KERNELS, NUM_PHASES, Kernel, Phase, Scheme
from planner.options.runtimes.torchrec.rules import SCHEMES
from tests.support.cost_models.shard_work import shard_work
from tests.support.thorough import thorough

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

BATCH = 512
KERNELS = ("dense", "fused", "fused_uvm", "fused_uvm_caching", "key_value")
MISS_RATE = 0.37
DISTINCT_SHARE = 0.4  # of a table's rows in a step


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """A table as both sides see it."""

    name: str
    rows: int
    columns: int
    poolings: tuple[float, ...] = (5.0,)  # pooling factor of each feature
    num_poolings: tuple[float, ...] = (1.0,)
    half: bool = False
    schemes: tuple[Scheme, ...] = field(default=SCHEMES)


TABLES = (
    LiveTable(name="narrow", rows=10_000, columns=16),
    LiveTable(name="rare", rows=50_001, columns=64, poolings=(0.3,)),
    LiveTable(name="wide_half", rows=1_000_000, columns=256, poolings=(20.5,), half=True),
    LiveTable(name="two_features", rows=3_001, columns=100, poolings=(0.5, 7.25), num_poolings=(2.0, 1.0)),
    LiveTable(name="tiny", rows=3, columns=128, poolings=(1.0,)),
)
SEQUENCES = (
    LiveTable(
        name="sequence",
        rows=20_000,
        columns=64,
        poolings=(30.0,),
        schemes=(Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE),
    ),
)


Found = list[tuple[LiveTable, str, str, int, int, list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCache:
    """What TorchRec is told of caches."""

    share: float
    prefetches: bool
    has_statistics: bool

    def params(self, table: LiveTable) -> Any:
        """Return the ``CacheParams`` of a table."""
        from torchrec.distributed.types import CacheParams, CacheStatistics

        class Statistics(CacheStatistics):
            expected_lookups = DISTINCT_SHARE * table.rows
            cacheability = 0.5

            def expected_miss_rate(self, clf: float) -> float:
                return MISS_RATE * (1.0 - clf)

        return CacheParams(
            load_factor=self.share,
            prefetch_pipeline=self.prefetches,
            stats=Statistics() if self.has_statistics else None,
        )


def estimate(
    tables: tuple[LiveTable, ...],
    num_ranks: int,
    ranks_per_host: int,
    *,
    kind: str,
    half_comms: bool,
    pod_size: int | None = None,
    kernels: tuple[str, ...] = ("fused", "dense"),
    cache: LiveCache | None = None,
) -> Found:
    """Let TorchRec enumerate and price: (table, scheme, kernel, rows, columns, seconds by part)."""
    pytest.importorskip("torchrec")
    import torch
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.fbgemm_qcomm_codec import CommType, QCommsConfig, get_qcomm_codecs_registry
    from torchrec.distributed.planner import Topology
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.planner.shard_estimators import EmbeddingPerfEstimator
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, EmbeddingConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

    topology = Topology(
        world_size=num_ranks,
        local_world_size=ranks_per_host,
        pod_size=None if pod_size is None else pod_size // ranks_per_host,  # which counts hosts
        compute_device="cuda",
    )
    constraints = {
        table.name: ParameterConstraints(
            sharding_types=[scheme.label for scheme in table.schemes],
            compute_kernels=list(kernels),
            pooling_factors=list(table.poolings),
            num_poolings=list(table.num_poolings),
            cache_params=None if cache is None else cache.params(table),
        )
        for table in tables
    }
    config = EmbeddingConfig if kind == "sequence" else EmbeddingBagConfig
    configs = [
        config(
            name=table.name,
            num_embeddings=table.rows,
            embedding_dim=table.columns,
            feature_names=[f"{table.name}_{i}" for i in range(len(table.poolings))],
            data_type=DataType.FP16 if table.half else DataType.FP32,
        )
        for table in tables
    ]
    codecs = None
    if half_comms:
        codecs = get_qcomm_codecs_registry(
            QCommsConfig(forward_precision=CommType.FP16, backward_precision=CommType.FP32), device=torch.device("cpu")
        )
    meta = torch.device("meta")
    if kind == "sequence":
        module: Any = EmbeddingCollection(tables=configs, device=meta)
        sharder: Any = EmbeddingCollectionSharder(qcomm_codecs_registry=codecs)
    else:
        module = EmbeddingBagCollection(tables=configs, is_weighted=kind == "weighted", device=meta)
        sharder = EmbeddingBagCollectionSharder(qcomm_codecs_registry=codecs)
    enumerator = EmbeddingEnumerator(
        topology=topology,
        batch_size=BATCH,
        constraints=constraints,
        estimator=EmbeddingPerfEstimator(topology=topology, constraints=constraints),
    )
    by_name = {table.name: table for table in tables}
    found = []
    for option in enumerator.enumerate(module, [sharder]):
        for shard in option.shards:
            perf = shard.perf
            seconds = [0.0] * NUM_PHASES
            seconds[Phase.INPUT_COMM] = perf.input_dist_comms / 1e3
            seconds[Phase.FORWARD_COMPUTE] = perf.fwd_compute / 1e3
            seconds[Phase.FORWARD_COMM] = perf.fwd_comms / 1e3
            seconds[Phase.BACKWARD_COMM] = perf.bwd_comms / 1e3
            seconds[Phase.BACKWARD_COMPUTE] = perf.bwd_compute / 1e3
            seconds[Phase.PREFETCH] = perf.prefetch_compute / 1e3
            table = by_name[option.name]
            found.append((table, option.sharding_type, option.compute_kernel, *shard.size, seconds))
    return found


@pytest.mark.parametrize("cluster", [(8, 8), (16, 8), (12, 4), (1, 1)], ids=lambda c: f"{c[0]}ranks_{c[1]}perhost")
@pytest.mark.parametrize("kind", ["plain", "weighted", "sequence"])
@pytest.mark.parametrize("half_comms", [False, True], ids=["stored_comms", "half_forward"])
def test_equal_to_torchrec(cluster: tuple[int, int], kind: str, half_comms: bool) -> None:
    num_ranks, ranks_per_host = cluster
    tables = SEQUENCES if kind == "sequence" else TABLES
    found = estimate(tables, num_ranks, ranks_per_host, kind=kind, half_comms=half_comms)
    work = work_of(found, num_ranks, ranks_per_host, kind=kind, half_comms=half_comms)
    wanted = {scheme for table in tables for scheme in table.schemes}
    assert set(work.scheme) == wanted
    priced = TorchRecModel().predict(work, load_profile("torchrec-default")).seconds
    np.testing.assert_allclose(priced, np.array([seconds for *_, seconds in found]), rtol=1e-9)


@pytest.mark.parametrize("cluster", [(8, 4, 8), (16, 4, 8), (12, 2, 4), (8, 4, 4)], ids=lambda c: "-".join(map(str, c)))
@pytest.mark.parametrize("half_comms", [False, True], ids=["stored_comms", "half_forward"])
def test_pods_are_equal_to_torchrec(cluster: tuple[int, int, int], half_comms: bool) -> None:
    num_ranks, ranks_per_host, pod_size = cluster
    found = estimate(TABLES, num_ranks, ranks_per_host, pod_size=pod_size, kind="plain", half_comms=half_comms)
    work = work_of(found, num_ranks, ranks_per_host, pod_size=pod_size, kind="plain", half_comms=half_comms)
    assert set(work.scheme) == set(SCHEMES)
    priced = TorchRecModel().predict(work, load_profile("torchrec-default")).seconds
    np.testing.assert_allclose(priced, np.array([seconds for *_, seconds in found]), rtol=1e-9)


@thorough
@pytest.mark.parametrize("cluster", [(8, 8), (12, 4)], ids=lambda c: f"{c[0]}ranks_{c[1]}perhost")
@pytest.mark.parametrize("kind", ["weighted", "sequence"])
@pytest.mark.parametrize("has_statistics", [False, True], ids=["unknown_accesses", "statistics"])
@pytest.mark.parametrize("prefetches", [False, True], ids=["no_pipeline", "prefetching"])
@pytest.mark.parametrize("share", [0.02, 0.2, 1.0])
def test_kernels_beyond_the_device_are_equal_to_torchrec(
    cluster: tuple[int, int], kind: str, has_statistics: bool, prefetches: bool, share: float
) -> None:
    num_ranks, ranks_per_host = cluster
    tables = SEQUENCES if kind == "sequence" else TABLES
    cache = LiveCache(share=share, prefetches=prefetches, has_statistics=has_statistics)
    found = estimate(tables, num_ranks, ranks_per_host, kind=kind, half_comms=True, kernels=KERNELS, cache=cache)
    work = work_of(found, num_ranks, ranks_per_host, kind=kind, half_comms=True, cache=cache)
    cached = work.kernel == Kernel.FUSED_UVM_CACHING
    wanted = {scheme for table in tables for scheme in table.schemes} - {Scheme.DATA_PARALLEL}
    assert set(work.kernel) == {kernel for kernel in Kernel if not kernel.facts.is_hashed}
    assert set(work.scheme[cached]) == wanted
    priced = TorchRecModel().predict(work, load_profile("torchrec-default")).seconds
    assert np.all((priced[:, Phase.PREFETCH] > 0) == (cached & has_statistics & (share < 1)))
    np.testing.assert_allclose(priced, np.array([seconds for *_, seconds in found]), rtol=1e-9)


def work_of(
    found: Found,
    num_ranks: int,
    ranks_per_host: int,
    *,
    kind: str,
    half_comms: bool,
    pod_size: int | None = None,
    cache: LiveCache | None = None,
) -> ShardWork:
    """Return the shards that TorchRec enumerated as columns of work."""
    ids = np.array([sum(p * n * BATCH for p, n in zip(t.poolings, t.num_poolings, strict=True)) for t, *_ in found])
    outputs = np.array(
        [sum(min(1.0, p) * n * BATCH for p, n in zip(t.poolings, t.num_poolings, strict=True)) for t, *_ in found]
    )
    scheme = np.array([Scheme.from_label(scheme) for _, scheme, *_ in found])
    kernel = np.array([Kernel.from_label(kernel) for _, _, kernel, *_ in found])
    table_rows = np.array([t.rows for t, *_ in found])
    by_host = np.isin(scheme, (Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD))
    row_shards = np.where(scheme == Scheme.ROW_WISE, num_ranks, np.where(by_host, pod_size or ranks_per_host, 1))
    columns: dict[str, Any] = {}
    if cache is not None:
        columns["cache_load_factor"] = np.where(np.isin(kernel, CACHED_KERNELS), cache.share, np.nan)
    if cache is not None and cache.has_statistics:
        columns["distinct_rows"] = DISTINCT_SHARE * table_rows / row_shards
        columns["missed_share"] = MISS_RATE * (1.0 - columns["cache_load_factor"])
    return shard_work(
        num_ranks,
        ranks_per_host,
        pod_size=pod_size,
        prefetches=cache is not None and cache.prefetches,
        scheme=scheme,
        kernel=kernel,
        table_rows=table_rows,
        shard_rows=-(-table_rows // row_shards),
        shard_columns=np.array([columns for _, _, _, _, columns, _ in found]),
        row_shards=row_shards,
        element_bytes=np.array([2.0 if t.half else 4.0 for t, *_ in found]),
        batch_ids=ids,
        batch_outputs=ids if kind == "sequence" else outputs,
        expected_outputs=ids if kind == "sequence" else outputs,
        lookups=1e9,
        is_weighted=kind == "weighted",
        is_pooled=kind != "sequence",
        forward_comm_element_bytes=2.0 if half_comms else np.nan,
        backward_comm_element_bytes=4.0 if half_comms else np.nan,
        **columns,
    )
