"""TorchEasyRec around TorchRec's real planner: its config messages, its names, and its planner's options.

Written from TorchEasyRec's source, without the exporter and the rules that it uses. Config messages have the fields of
``feature.proto`` that matter here, so that protobuf's own parser reads what was exported. Tables get their names and
constraints as ``EmbeddingGroup`` makes them, on the meta device, and TorchRec's planner plans them for GPUs that are
only described, with the proposers that TorchEasyRec asks for. A lookup is replayed through the shards that came out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from cost_models.arrays import Floats

Bags = Sequence[Sequence[int]]

_PACKAGE = "tzrec.protos"
_STRING, _UINT64, _MESSAGE = 9, 4, 11
_OPTIONAL, _REPEATED = 1, 3
#: Fields by message: name, number, type or message, whether repeated.
_MESSAGES: dict[str, list[tuple[str, int, int | str, bool]]] = {
    "ParameterConstraints": [("sharding_types", 1, _STRING, True), ("compute_kernels", 2, _STRING, True)],
    "LFU_EvictionPolicy": [],
    "LRU_EvictionPolicy": [],
    "DistanceLFU_EvictionPolicy": [],
    "ZeroCollisionHash": [
        ("zch_size", 1, _UINT64, False),
        ("eviction_interval", 2, _UINT64, False),
        ("lfu", 101, "LFU_EvictionPolicy", False),
        ("lru", 102, "LRU_EvictionPolicy", False),
        ("distance_lfu", 103, "DistanceLFU_EvictionPolicy", False),
    ],
    "DynamicEmbedding": [("max_capacity", 5, _UINT64, False)],
    "IdFeature": [
        ("feature_name", 1, _STRING, False),
        ("embedding_name", 3, _STRING, False),
        ("embedding_dim", 4, _UINT64, False),
        ("num_buckets", 6, _UINT64, False),
        ("pooling", 10, _STRING, False),
        ("zch", 16, "ZeroCollisionHash", False),
        ("dynamicemb", 19, "DynamicEmbedding", False),
        ("data_type", 35, _STRING, False),
        ("embedding_constraints", 50, "ParameterConstraints", False),
    ],
    "RawFeature": [
        ("feature_name", 1, _STRING, False),
        ("embedding_name", 3, _STRING, False),
        ("embedding_constraints", 50, "ParameterConstraints", False),
    ],
    "SeqFeatureConfig": [("id_feature", 1, "IdFeature", False), ("raw_feature", 2, "RawFeature", False)],
    "SequenceFeature": [("sequence_name", 1, _STRING, False), ("features", 5, "SeqFeatureConfig", True)],
    "FeatureConfig": [
        ("id_feature", 1, "IdFeature", False),
        ("raw_feature", 2, "RawFeature", False),
        ("sequence_feature", 6, "SequenceFeature", False),
        ("sequence_id_feature", 101, "IdFeature", False),
    ],
    "TrainConfig": [("global_embedding_constraints", 15, "ParameterConstraints", False)],
    "EasyRecConfig": [("train_config", 4, "TrainConfig", False), ("feature_configs", 8, "FeatureConfig", True)],
}
_ONE_OF = ("SeqFeatureConfig", "FeatureConfig")


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="tzrec/protos/simulated.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name in _ONE_OF:
            message.oneof_decl.add(name="feature")
        for field_name, number, kind, repeated in fields:
            one = message.field.add(name=field_name, number=number, label=_REPEATED if repeated else _OPTIONAL)
            if isinstance(kind, str):
                one.type, one.type_name = _MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                one.type = kind
            if name in _ONE_OF:
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


MESSAGES = _messages()


@dataclass(kw_only=True)
class Feature:
    """A sparse feature as ``create_features`` makes it."""

    name: str
    config: Any
    is_sequence: bool

    @property
    def embedding_name(self) -> str:
        return self.config.embedding_name or f"{self.name}_emb"


def features_of(config: Any) -> Iterator[Feature]:
    for one in config.feature_configs:
        kind = one.WhichOneof("feature")
        found = getattr(one, kind)
        if kind == "sequence_feature":
            for member in found.features:
                if member.WhichOneof("feature") == "id_feature":
                    name = f"{found.sequence_name}__{member.id_feature.feature_name}"
                    yield Feature(name=name, config=member.id_feature, is_sequence=True)
        elif kind in ("id_feature", "sequence_id_feature"):
            yield Feature(name=found.feature_name, config=found, is_sequence=kind != "id_feature")


@dataclass(kw_only=True)
class Landed:
    """What TorchEasyRec's planner made of a table."""

    module_path: str
    sharding_type: str
    compute_kernel: str
    ranks: list[int]
    shards: list[tuple[int, int, int, int, int]] = field(
        default_factory=list
    )  # rank, rows from, rows, columns from, columns


def train(
    config: Any, *, nnodes: int, nproc_per_node: int, wide: Sequence[str] = (), hbm_bytes: int = 80 * 1024**3
) -> dict[str, Landed]:
    """Return what each table is sharded to when training starts.

    Parameters
    ----------
    config
        An ``EasyRecConfig``.
    wide
        Names of features that are in a group of type WIDE, too, whose tables have 4 columns.
    """
    import torch
    from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.planner.proposers import DynamicProgrammingProposer, UniformProposer
    from torchrec.distributed.planner.types import ParameterConstraints
    from torchrec.distributed.sharding_plan import get_default_sharders
    from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, EmbeddingConfig, PoolingType
    from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
    from torchrec.modules.mc_embedding_modules import (
        ManagedCollisionEmbeddingBagCollection,
        ManagedCollisionEmbeddingCollection,
    )
    from torchrec.modules.mc_modules import ManagedCollisionCollection

    def constraint(asked: Any) -> Any:
        return ParameterConstraints(
            sharding_types=list(asked.sharding_types) or None, compute_kernels=list(asked.compute_kernels) or None
        )

    class Enumerator(EmbeddingEnumerator):
        """TorchEasyRec's, which takes numbers of buckets from configs of tables alone, not from managed collisions."""

        def _get_num_buckets(self, parameter: str, module: Any) -> int | None:
            is_plain = isinstance(module, EmbeddingBagCollection | EmbeddingCollection)
            return super()._get_num_buckets(parameter, module) if is_plain else None

    bags: dict[str, Any] = {}
    mc_bags: dict[str, Any] = {}
    sequences: dict[int, dict[str, Any]] = {}
    mc_sequences: dict[int, dict[str, Any]] = {}
    slots: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    for feature in features_of(config):
        has_zch = feature.config.HasField("zch")
        shared = {
            "num_embeddings": feature.config.zch.zch_size if has_zch else feature.config.num_buckets,
            "feature_names": [feature.name],
            "data_type": DataType[feature.config.data_type or "FP32"],
        }
        columns = feature.config.embedding_dim
        tables = [(feature.embedding_name, columns)]
        tables += [(f"{feature.embedding_name}_wide", 4)] if feature.name in wide else []
        for name, dim in tables:
            if feature.is_sequence:
                made = EmbeddingConfig(name=name, embedding_dim=dim, **shared)
                preserved = (mc_sequences if has_zch else sequences).setdefault(dim, {}).setdefault(name, made)
            else:
                pooling = PoolingType[(feature.config.pooling or "sum").upper()]
                made = EmbeddingBagConfig(name=name, embedding_dim=dim, pooling=pooling, **shared)
                preserved = (mc_bags if has_zch else bags).setdefault(name, made)
            if preserved is not made:
                preserved.feature_names.append(feature.name)
            if has_zch:
                slots[name] = mc_module(feature.config.zch)
            if feature.config.HasField("embedding_constraints") and not has_zch:  # the last feature of a table wins
                constraints[name] = constraint(feature.config.embedding_constraints)
            elif name not in constraints and config.train_config.HasField("global_embedding_constraints"):
                constraints[name] = constraint(config.train_config.global_embedding_constraints)
    meta = torch.device("meta")
    model = torch.nn.Module()
    if bags:
        model.ebc = EmbeddingBagCollection(list(bags.values()), device=meta)
    model.ec_dict = torch.nn.ModuleDict(
        {str(dim): EmbeddingCollection(list(tables.values()), device=meta) for dim, tables in sequences.items()}
    )
    if mc_bags:
        model.mc_ebc = ManagedCollisionEmbeddingBagCollection(
            EmbeddingBagCollection(list(mc_bags.values()), device=meta),
            ManagedCollisionCollection({name: slots[name] for name in mc_bags}, list(mc_bags.values())),
        )
    model.mc_ec_dict = torch.nn.ModuleDict(
        {
            str(dim): ManagedCollisionEmbeddingCollection(
                EmbeddingCollection(list(tables.values()), device=meta),
                ManagedCollisionCollection({name: slots[name] for name in tables}, list(tables.values())),
            )
            for dim, tables in mc_sequences.items()
        }
    )
    all_tables = {**bags, **mc_bags}
    for tables in (*sequences.values(), *mc_sequences.values()):
        all_tables |= tables
    topology = Topology(
        world_size=nnodes * nproc_per_node,
        local_world_size=nproc_per_node,
        compute_device="cuda",
        hbm_cap=hbm_bytes,
        ddr_cap=256 * 1024**3,
    )
    planner = EmbeddingShardingPlanner(
        topology=topology,
        batch_size=512,
        enumerator=Enumerator(topology=topology, batch_size=512, constraints=constraints),
        proposer=[DynamicProgrammingProposer(), UniformProposer()],
        debug=False,
    )
    plan = planner.plan(model, get_default_sharders())
    return {
        name: _landed(path, one, all_tables[name]) for path, tables in plan.plan.items() for name, one in tables.items()
    }


def mc_module(zch: Any) -> Any:
    """Return the managed collisions that a feature with ``zch`` makes, on the meta device."""
    import torch
    from torchrec.modules import mc_modules

    policies = {
        "lfu": mc_modules.LFU_EvictionPolicy,
        "lru": mc_modules.LRU_EvictionPolicy,
        "distance_lfu": mc_modules.DistanceLFU_EvictionPolicy,
    }
    (policy,) = [policies[field.name] for field, _ in zch.ListFields() if field.name in policies]
    return mc_modules.MCHManagedCollisionModule(
        zch_size=zch.zch_size,
        device=torch.device("meta"),
        eviction_interval=zch.eviction_interval,
        eviction_policy=policy(),
    )


def _landed(path: str, one: Any, table: Any) -> Landed:
    found = Landed(
        module_path=path, sharding_type=one.sharding_type, compute_kernel=one.compute_kernel, ranks=list(one.ranks)
    )
    if one.sharding_spec is None:  # a copy on every rank
        found.shards = [(rank, 0, table.num_embeddings, 0, table.embedding_dim) for rank in one.ranks]
    else:
        for shard in one.sharding_spec.shards:
            (row, column), (rows, columns) = shard.shard_offsets, shard.shard_sizes
            found.shards.append((shard.placement.rank(), row, rows, column, columns))
    return found


def lookup(landed: Landed, weights: Floats, pooling: str, bags: Bags) -> Floats:
    """Return the pools of bags as the ranks of a table make them: partial ones of what each has, added and divided.

    Of a table that is copied, the rank that asks looks up alone: here the last one.
    """
    held = landed.shards[-1:] if landed.sharding_type == "data_parallel" else landed.shards
    pools = np.zeros((len(bags), weights.shape[1]))
    for _, first_row, rows, first_column, columns in held:
        block = weights[first_row : first_row + rows, first_column : first_column + columns]
        for number, bag in enumerate(bags):
            mine = [one - first_row for one in bag if first_row <= one < first_row + rows]
            pools[number, first_column : first_column + columns] += block[mine].sum(axis=0)
    lengths = np.array([[max(len(bag), 1)] for bag in bags])
    return pools / lengths if pooling == "mean" else pools


def unsharded(weights: Floats, pooling: str, bags: Bags) -> Floats:
    """Return the same of the whole table."""
    pools = np.stack([weights[list(bag)].sum(axis=0) for bag in bags])
    return pools / np.array([[max(len(bag), 1)] for bag in bags]) if pooling == "mean" else pools


def checkpoint_plan(landed: Mapping[str, Landed]) -> dict[str, Any]:
    """Return the file ``plan`` that TorchEasyRec writes next to a checkpoint."""
    saved: dict[str, Any] = {}
    for name, one in landed.items():
        saved.setdefault(one.module_path, {})[name] = {
            "sharding_type": one.sharding_type,
            "compute_kernel": one.compute_kernel,
            "ranks": one.ranks,
        }
    return saved
