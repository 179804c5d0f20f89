"""What others and rules of thumb make of a model: TorchRec's planner, and whole tables by one key."""

import json
import warnings
from collections.abc import Sequence

import numpy as np

from api.specs.parse import parse_plan
from benchmarks.prices.real_steps.models import MODULE_PATH, StepModel
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem


def by_torchrec(model: StepModel, problem: Problem) -> Placement:
    """Have TorchRec's planner plan the model for CPUs, with its defaults and the model's pooling factors."""
    import torch
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.modules.embedding_configs import EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection

    from api.client.torchrec import plan_as_json

    module = torch.nn.Module()
    collection = EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingBagConfig(
                name=table.name, num_embeddings=table.rows, embedding_dim=table.columns, feature_names=[table.name]
            )
            for table in model.tables
        ],
    )
    setattr(module, MODULE_PATH, collection)
    planner = EmbeddingShardingPlanner(
        topology=Topology(
            world_size=problem.world_size, local_world_size=problem.cluster.ranks_per_host, compute_device="cpu"
        ),
        batch_size=model.batch_size_per_rank,
        constraints={
            table.name: ParameterConstraints(pooling_factors=[table.pooling_factor]) for table in model.tables
        },
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found = planner.plan(module, [EmbeddingBagCollectionSharder()])
    return parse_plan(json.dumps(plan_as_json(found)).encode(), problem).placement


def whole_tables(problem: Problem, key: Sequence[float]) -> Placement:
    """Put the tables with the largest key first, each whole on the rank with the least of it."""
    load, rank = np.zeros(problem.world_size), np.zeros(len(key), dtype=np.int64)
    for table in np.argsort(-np.array(key, dtype=np.float64), kind="stable").tolist():
        rank[table] = int(np.argmin(load))
        load[rank[table]] += key[table]
    return Placement(
        world_size=problem.world_size,
        ranks_per_host=problem.cluster.ranks_per_host,
        tables=tuple(
            TablePlacement(
                name=table.name,
                sharding_type=Scheme.TABLE_WISE,
                compute_kernel=Kernel.FUSED,
                module_path=MODULE_PATH,
                shards=Shards.of_columns(
                    rank=place,
                    row_offset=0,
                    num_rows=table.num_embeddings,
                    column_offset=0,
                    num_columns=table.embedding_dim,
                    tier=Kernel.FUSED.tier(problem.cluster.device_tier),
                ),
            )
            for table, place in zip(problem.tables, rank.tolist(), strict=True)
        ),
    )
