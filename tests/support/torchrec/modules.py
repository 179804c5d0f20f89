"""The modules of tables that the tests train, of every kind that is planned."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torchrec.distributed.mc_modules import ShardedManagedCollisionCollection
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.modules.feature_processor_ import PositionWeightedModuleCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import (
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)
from torchrec.modules.mc_modules import (
    DistanceLFU_EvictionPolicy,
    ManagedCollisionCollection,
    MCHManagedCollisionModule,
)
from torchrec.sparse.jagged_tensor import JaggedTensor

from tests.support.torchrec.model import (
    MAX_IDS_PER_BAG,
    TableSpec,
    is_of_slots,
    is_processed,
    is_sequence,
    is_weighted,
    raw_ids,
)

#: Of ids that get slots as they come.
INPUT_HASH_SIZE = 2**40
#: What the row of a new id is, by table.
Rows = Mapping[str, NDArray[np.float32]]


def module_of(path: str, tables: list[TableSpec], rows: Rows) -> nn.Module:
    """The module of a path: a collection, or one with what happens to its ids."""
    collection = (
        sequences_of(tables, rows)
        if is_sequence(path)
        else bags_of(tables, rows, is_weighted(path) or is_processed(path))
    )
    if is_processed(path):
        lengths = {feature: MAX_IDS_PER_BAG for table in tables for feature in table.features}
        return FeatureProcessedEmbeddingBagCollection(collection, PositionWeightedModuleCollection(lengths))
    if is_of_slots(path):
        kind = ManagedCollisionEmbeddingCollection if is_sequence(path) else ManagedCollisionEmbeddingBagCollection
        return kind(collection, slots_of(tables, collection))
    return collection


def slots_of(
    tables: list[TableSpec], collection: EmbeddingBagCollection | EmbeddingCollection
) -> ManagedCollisionCollection:
    """Slots that ids get at once: evictions in every step, and more slots than ids."""
    bags = isinstance(collection, EmbeddingBagCollection)
    modules = {
        table.name: MCHManagedCollisionModule(
            zch_size=table.slots,
            device=torch.device("cpu"),
            eviction_policy=DistanceLFU_EvictionPolicy(),
            eviction_interval=1,
            input_hash_size=INPUT_HASH_SIZE,
            input_hash_func=spread,
        )
        for table in tables
    }
    return ManagedCollisionCollection(
        modules, collection.embedding_bag_configs() if bags else collection.embedding_configs()
    )


def spread(ids: torch.Tensor, size: int) -> torch.Tensor:
    """Ids all over a range."""
    return (ids * 2_654_435_761) % size


def bags_of(tables: list[TableSpec], rows: Rows, weighted: bool) -> EmbeddingBagCollection:
    """A module that returns one row per bag."""
    return EmbeddingBagCollection(
        device=torch.device("meta"),
        is_weighted=weighted,
        tables=[
            EmbeddingBagConfig(
                name=t.name,
                num_embeddings=t.slots or t.rows,
                embedding_dim=t.columns,
                feature_names=list(t.features),
                pooling=PoolingType[t.pooling.upper()],
                init_fn=row_of_new_ids(t, rows),
            )
            for t in tables
        ],
    )


def sequences_of(tables: list[TableSpec], rows: Rows) -> EmbeddingCollection:
    """A module that returns every row."""
    return EmbeddingCollection(
        device=torch.device("meta"),
        tables=[
            EmbeddingConfig(
                name=t.name,
                num_embeddings=t.slots or t.rows,
                embedding_dim=t.columns,
                feature_names=list(t.features),
                init_fn=row_of_new_ids(t, rows),
            )
            for t in tables
        ],
    )


def row_of_new_ids(table: TableSpec, rows: Rows) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """What makes the rows of ids that come for the first time; nothing where rows are numbered."""
    if not table.slots:
        return None

    def new(weight: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return weight.copy_(torch.tensor(rows[table.name][:1]).expand_as(weight))

    return new


def make_room(sharded: DistributedModelParallel) -> None:
    """Let histories hold any batch: TorchRec makes them for 1.25 times the first, and passes over what is more."""
    many = JaggedTensor(values=torch.zeros(1000, dtype=torch.int64), lengths=torch.ones(1000, dtype=torch.int64))
    for module in sharded.modules():
        if isinstance(module, MCHManagedCollisionModule):
            module._init_history_buffers({"": many})  # noqa: SLF001


def ids_of(sharded: DistributedModelParallel, tables: list[TableSpec]) -> dict[str, np.ndarray]:
    """``ids/table`` -> the row of the whole table that the id of each slot of this rank has; -1 without an id."""
    row_of = {
        t.name: {
            int(spread(torch.tensor(raw), INPUT_HASH_SIZE)): row for row, raw in enumerate(raw_ids(np.arange(t.rows)))
        }
        for t in tables
    }
    found = {}
    for module in sharded.modules():
        if isinstance(module, ShardedManagedCollisionCollection):
            for name, slots in module._managed_collision_modules.items():  # noqa: SLF001
                places = (slots._mch_remapped_ids_mapping - slots._output_global_offset).tolist()  # noqa: SLF001
                rows = np.full(len(places), -1)
                known = slots._mch_sorted_raw_ids.tolist()  # noqa: SLF001
                rows[places] = [row_of[name].get(one, -1) for one in known]
                found[f"ids/{name}"] = rows
    return found
