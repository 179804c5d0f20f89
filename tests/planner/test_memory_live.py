"""The ``torchrec`` ledger against TorchRec's own storage estimator, run here on described tables."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.memory import EXACT, LINES, TORCHREC, shard_ledger
from planner.work import build_work, table_columns
from tests.planner.builders import make_cluster, make_problem, make_table

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

BATCH = 512
TABLES = (
    make_table("plain", 10_000, 64, pooling_factor=5.0),
    make_table("rare", 50_000, 32, pooling_factor=0.3),
    make_table("wide_half", 3_000, 128, pooling_factor=20.5, data_type="fp16"),
)


def torchrec_bytes(*, is_weighted: bool) -> list[tuple[str, str, str, int, int, int]]:
    """Let TorchRec enumerate and size: (table, scheme, kernel, rows, columns, bytes of device memory)."""
    pytest.importorskip("torchrec")
    import torch
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import Topology
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.planner.shard_estimators import EmbeddingStorageEstimator
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection

    topology = Topology(world_size=8, local_world_size=4, compute_device="cuda")
    constraints = {
        table.name: ParameterConstraints(
            sharding_types=[scheme.label for scheme in Scheme],
            compute_kernels=["fused", "dense"],
            pooling_factors=[feature.pooling_factor for feature in table.features],
        )
        for table in TABLES
    }
    configs = [
        EmbeddingBagConfig(
            name=table.name,
            num_embeddings=table.num_embeddings,
            embedding_dim=table.embedding_dim,
            feature_names=[feature.name for feature in table.features],
            data_type=DataType.FP16 if table.data_type.name == "fp16" else DataType.FP32,
        )
        for table in TABLES
    ]
    module: Any = EmbeddingBagCollection(tables=configs, is_weighted=is_weighted, device=torch.device("meta"))
    sharder: Any = EmbeddingBagCollectionSharder()
    enumerator = EmbeddingEnumerator(
        topology=topology,
        batch_size=BATCH,
        constraints=constraints,
        estimator=EmbeddingStorageEstimator(topology=topology, constraints=constraints),
    )
    return [
        (option.name, option.sharding_type, option.compute_kernel, *shard.size, shard.storage.hbm)
        for option in enumerator.enumerate(module, [sharder])
        for shard in option.shards
    ]


@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
def test_torchrec_s_ledger_is_torchrec_s(is_weighted: bool) -> None:
    """TorchRec holds 8 B per id with or without a weight; what a weighted feature really brings is more."""
    found = torchrec_bytes(is_weighted=is_weighted)
    index = {table.name: i for i, table in enumerate(TABLES)}
    problem = make_problem(
        *(replace(table, is_weighted=is_weighted) for table in TABLES),
        cluster=make_cluster(2, 4),
        batch_size_per_rank=BATCH,
    )
    table = np.array([index[name] for name, *_ in found])
    work = build_work(
        problem,
        table_columns(problem),
        table=table,
        scheme=np.array([Scheme.from_label(scheme) for _, scheme, *_ in found], dtype=np.int8),
        kernel=np.array([Kernel.from_label(kernel) for _, _, kernel, *_ in found], dtype=np.int8),
        shard_columns=np.array([columns for *_, columns, _ in found]),
    )
    stored_rows = np.array([rows for *_, rows, _, _ in found])
    peer, exact = (
        shard_ledger(problem, work, table=table, stored_rows=stored_rows, rules=rules) for rules in (TORCHREC, EXACT)
    )
    assert set(work.scheme) == set(Scheme)
    np.testing.assert_array_equal(peer.sum(axis=1), [size for *_, size in found])
    ids = LINES.index("input_buffers")
    assert np.all((exact > peer)[:, ids] == is_weighted)
