"""Stashed weights in real TorchRec: the flag of a table's config, and the operators that it makes."""

import dataclasses

import torch
from torchrec.distributed.embedding_sharding import group_tables
from torchrec.distributed.embedding_types import EmbeddingComputeKernel, ShardedEmbeddingTable
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from api.client.torchrec import live_tables


def test_the_flag_of_a_config_is_read_from_a_live_model() -> None:
    tables = [
        EmbeddingBagConfig(name=name, num_embeddings=8, embedding_dim=4, feature_names=[f"f_{name}"]) for name in "ab"
    ]
    tables[0].stash_weights = True
    live = live_tables(EmbeddingBagCollection(tables=tables, device=torch.device("meta")))
    assert {table.name: table.stash_weights for table in live} == {"a": True, "b": False}


def test_stashed_tables_share_no_operator_with_others() -> None:
    """TorchRec stashes whole operators: tables that stay must lie in others."""
    one = ShardedEmbeddingTable(
        num_embeddings=8,
        embedding_dim=4,
        name="a",
        feature_names=["f"],
        embedding_names=["f"],
        data_type=DataType.FP32,
        pooling=PoolingType.SUM,
        compute_kernel=EmbeddingComputeKernel.FUSED,
        local_rows=8,
        local_cols=4,
    )
    tables = [dataclasses.replace(one, name=name, stash_weights=name in "ac") for name in "abcd"]
    (groups,) = group_tables([tables])
    assert [[table.name for table in group.embedding_tables] for group in groups] == [["a", "c"], ["b", "d"]]
