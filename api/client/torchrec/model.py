"""What a live model says about its embedding tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import nn
from torchrec.distributed.types import ShardedModule
from torchrec.distributed.utils import optimizer_type_to_emb_opt_type
from torchrec.modules.embedding_configs import BaseEmbeddingConfig
from torchrec.modules.embedding_modules import (
    EmbeddingBagCollection,
    EmbeddingBagCollectionInterface,
    EmbeddingCollection,
    EmbeddingCollectionInterface,
)
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import (
    BaseManagedCollisionEmbeddingCollection,
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)

from ..errors import UnsupportedModel
from ..live_table import LiveTable, unique_names
from .managed_collisions import live_hash_table

#: TorchRec's data types and ours; the others cannot be planned.
DATA_TYPES = {name: name.lower() for name in ("FP32", "FP16", "BF16", "INT8", "INT4", "INT2")}
#: FBGEMM's ``EmbOptimType`` members and our names of the same optimizers.
OPTIMIZERS = {
    "EXACT_SGD": "sgd",
    "EXACT_ROWWISE_ADAGRAD": "rowwise_adagrad",
    "EXACT_ADAGRAD": "adagrad",
    "LARS_SGD": "lars_sgd",
    "ADAM": "adam",
    "LAMB": "lamb",
    "PARTIAL_ROWWISE_ADAM": "partial_rowwise_adam",
    "PARTIAL_ROWWISE_LAMB": "partial_rowwise_lamb",
}
#: Modules of tables that are planned.
PLANNED = (
    EmbeddingBagCollection,
    EmbeddingCollection,
    FeatureProcessedEmbeddingBagCollection,
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)
#: Packages whose modules treat an embedding module inside them in their own way.
_WRAPPER_PACKAGES = ("torchrec.modules.", "torchrec.distributed.", "torchrec.quant.")


def live_tables(module: nn.Module) -> tuple[LiveTable, ...]:
    """All tables of a model, in its own order. The model may live on the meta device.

    Only the classes of :data:`PLANNED` themselves are described: ``DistributedModelParallel`` chooses the sharder by
    the exact class, and the other embedding modules follow other rules.

    Raises
    ------
    UnsupportedModel
        Embedding modules of another kind, a module reached by two paths, or settings that a plan
        cannot carry; every one is listed with its path.
    """
    reasons: list[str] = []
    tables: list[LiveTable] = []
    path_of_module: dict[int, str] = {}
    for path, found in _embedding_modules(module, ""):
        reason = _why_unusable(found)
        if reason:
            reasons.append(f"{_shown(path)}: {reason}")
            continue
        first_path = path_of_module.setdefault(id(found), path)
        if first_path != path:
            reasons.append(f"{_shown(path)}: the same module as {_shown(first_path)}; a plan knows one path per module")
            continue
        for config in _configs_of(found):
            table = _live_table(found, config, path, reasons)
            if table is not None:
                tables.append(table)
    if not tables and not reasons:
        reasons.append("the model has no EmbeddingBagCollection, and no EmbeddingCollection")
    if reasons:
        raise UnsupportedModel(reasons)
    names = unique_names([(table.module_path, table.name) for table in tables])
    return tuple(replace(table, name=name) for table, name in zip(tables, names, strict=True))


def dense_parameters(module: nn.Module) -> list[nn.Parameter]:
    """All parameters outside the tables: what every rank holds a copy of, processors of features among them."""
    in_tables = {
        id(parameter)
        for _, found in _embedding_modules(module, "")
        for parameter in (
            tables_of(found) if isinstance(found, FeatureProcessedEmbeddingBagCollection) else found
        ).parameters()
    }
    return [parameter for parameter in module.parameters() if id(parameter) not in in_tables]


def tables_of(module: nn.Module) -> nn.Module:
    """Return the collection that holds the tables of a module: inside of another one, or the module itself."""
    if isinstance(module, FeatureProcessedEmbeddingBagCollection):
        bags: nn.Module = module._embedding_bag_collection  # noqa: SLF001
        return bags
    if isinstance(module, BaseManagedCollisionEmbeddingCollection):
        inner: nn.Module = module._embedding_module  # noqa: SLF001
        return inner
    return module


def _embedding_modules(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    """The outermost modules that hold TorchRec tables, with their paths."""
    kinds = (EmbeddingBagCollectionInterface, EmbeddingCollectionInterface, ShardedModule)
    if isinstance(module, kinds) or (
        type(module).__module__.startswith(_WRAPPER_PACKAGES)
        and any(isinstance(inner, kinds) for inner in module.modules())
    ):
        yield path, module
        return
    for name, child in module.named_children():
        yield from _embedding_modules(child, f"{path}.{name}" if path else name)


def _why_unusable(found: nn.Module) -> str | None:
    kind = type(found).__name__
    if isinstance(found, ShardedModule):
        return f"{kind} is sharded already; give the model before DistributedModelParallel"
    if type(found) not in PLANNED:
        return f"{kind} cannot be planned; only {', '.join(one.__name__ for one in PLANNED)} can"
    inner = tables_of(found)
    if inner is not found and type(inner) not in (EmbeddingBagCollection, EmbeddingCollection):
        return f"the tables of {kind} lie in a {type(inner).__name__}, which cannot be planned"
    return None


def _configs_of(module: nn.Module) -> Sequence[BaseEmbeddingConfig]:
    module = tables_of(module)
    has_bags = isinstance(module, EmbeddingBagCollection)
    found: Sequence[BaseEmbeddingConfig] = module.embedding_bag_configs() if has_bags else module.embedding_configs()
    return found


def _live_table(module: nn.Module, config: BaseEmbeddingConfig, path: str, reasons: list[str]) -> LiveTable | None:
    """Describe a table of an embedding module, or report why it cannot be planned."""
    outer, module = module, tables_of(module)
    has_bags = isinstance(module, EmbeddingBagCollection)
    where = f'{_shown(path)}: table "{config.name}"'
    data_type = DATA_TYPES.get(config.data_type.value)
    weight = (module.embedding_bags if has_bags else module.embeddings)[config.name].weight
    classes = getattr(weight, "_optimizer_classes", [])
    optimizer = _optimizer_name(classes[0]) if classes else None
    hash_table = (
        live_hash_table(outer, config.name) if isinstance(outer, BaseManagedCollisionEmbeddingCollection) else None
    )
    if isinstance(hash_table, str):
        reasons.append(f"{where} {hash_table}")
    elif data_type is None:
        reasons.append(f"{where} has the data type {config.data_type.value}; known: {', '.join(DATA_TYPES)}")
    elif config.use_virtual_table:
        reasons.append(f"{where} is a virtual table, which has no rows to place")
    elif len(classes) > 1:
        reasons.append(f"{where} has {len(classes)} optimizers in its backward pass; TorchRec takes one")
    elif classes and optimizer is None:
        reasons.append(f"{where} has the optimizer {classes[0].__name__}, which no fused kernel has")
    else:
        return LiveTable(
            module_path=path,
            name=config.name,
            num_embeddings=config.num_embeddings,
            embedding_dim=config.embedding_dim,
            data_type=data_type,
            pooling=config.pooling.value.lower() if has_bags else "none",
            is_weighted=has_bags and module.is_weighted(),
            feature_names=tuple(config.feature_names),
            optimizer=optimizer,
            hash_table=hash_table,
            stash_weights=bool(getattr(config, "stash_weights", False)),  # releases before 1.8 have no such field
        )
    return None


def _optimizer_name(optimizer_class: type) -> str | None:
    try:
        kind = optimizer_type_to_emb_opt_type(optimizer_class)
    except ValueError:
        return None
    return OPTIMIZERS.get(kind.name)


def _shown(path: str) -> str:
    return f'module "{path}"' if path else "the model itself"
