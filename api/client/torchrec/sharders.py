"""What the sharders of a job shard, and what of that a plan can hold: nothing is left out in silence."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fp_embeddingbag import FeatureProcessedEmbeddingBagCollectionSharder
from torchrec.distributed.mc_embedding import ManagedCollisionEmbeddingCollectionSharder
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.types import ModuleSharder
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.mc_embedding_modules import (
    ManagedCollisionEmbeddingBagCollection,
    ManagedCollisionEmbeddingCollection,
)

from ..errors import UnsupportedModel
from .model import tables_of

#: Kernels that a plan can name; the others are of virtual tables.
KERNELS = frozenset({"dense", "fused", "fused_uvm", "fused_uvm_caching", "key_value"})
#: Modules that are planned, and TorchRec's own sharder of each.
_PLANNED: dict[type[nn.Module], type[Any]] = {
    EmbeddingBagCollection: EmbeddingBagCollectionSharder,
    EmbeddingCollection: EmbeddingCollectionSharder,
    FeatureProcessedEmbeddingBagCollection: FeatureProcessedEmbeddingBagCollectionSharder,
    ManagedCollisionEmbeddingBagCollection: ManagedCollisionEmbeddingBagCollectionSharder,
    ManagedCollisionEmbeddingCollection: ManagedCollisionEmbeddingCollectionSharder,
}


def sharder_limits(
    module: nn.Module, sharders: Iterable[ModuleSharder[nn.Module]], device: str
) -> dict[str, dict[str, list[str]]]:
    """Return what a user's own sharder allows for the tables of each module, as constraints of a spec, by path.

    Raises
    ------
    UnsupportedModel
        A sharder shards a module that no plan has, or none shards one that plans have; every one is listed.
    """
    by_class = {sharder.module_type: sharder for sharder in sharders}
    reasons: list[str] = []
    limits = {}
    for path, found, sharder in _sharded(module, by_class):
        kind = type(found)
        if sharder is None:
            reasons.append(f'module "{path}": no sharder is given for {kind.__name__}, so that it would not be sharded')
        elif kind not in _PLANNED:
            reasons.append(
                f'module "{path}": {type(sharder).__name__} would shard this {kind.__name__}, which no plan holds;'
                f" leave the sharder out, or make it one of {', '.join(one.__name__ for one in _PLANNED)}"
            )
        elif left_out := _tables_of(found) - sharder.shardable_parameters(found).keys():
            names = ", ".join(sorted(left_out)[:5])
            reasons.append(f'module "{path}": {type(sharder).__name__} does not shard the tables {names}, and plans do')
        elif limit := _limit(sharder, _PLANNED[kind], device):
            limits[path] = limit
    if reasons:
        raise UnsupportedModel(reasons)
    return limits


def uses_index_dedup(module: nn.Module, sharders: Iterable[ModuleSharder[nn.Module]]) -> bool | None:
    """Return whether the sharders of sequences leave out repeated ids; ``None`` if the model has no sequences.

    Raises
    ------
    UnsupportedModel
        One does and another does not, which no plan has.
    """
    found = {
        path: bool(getattr(getattr(sharder, "_e_sharder", sharder), "_use_index_dedup", False))
        for path, one, sharder in _sharded(module, {sharder.module_type: sharder for sharder in sharders})
        if sharder is not None and isinstance(one, EmbeddingCollection | ManagedCollisionEmbeddingCollection)
    }
    if len(set(found.values())) > 1:
        names = ", ".join(f'"{path}"' for path, used in found.items() if used)
        raise UnsupportedModel([f"use_index_dedup is set for {names} alone; plans have one setting for all sequences"])
    return next(iter(found.values()), None)


def _sharded(
    module: nn.Module, by_class: Mapping[type[nn.Module], ModuleSharder[nn.Module]]
) -> Iterator[tuple[str, nn.Module, ModuleSharder[nn.Module] | None]]:
    """Yield modules with their sharders as TorchRec's planner finds them: by class, and nothing inside one of these.

    Modules that plans have come also without a sharder.
    """
    queue = deque([("", module)])
    while queue:
        path, found = queue.popleft()
        sharder = by_class.get(type(found))
        if sharder is not None and sharder.shardable_parameters(found):
            yield path, found, sharder
        elif type(found) in _PLANNED:
            yield path, found, None
        else:
            queue.extend((f"{path}.{name}" if path else name, child) for name, child in found.named_children())


def _tables_of(module: nn.Module) -> set[str]:
    module = tables_of(module)
    listed: Any = module.embedding_bags if isinstance(module, EmbeddingBagCollection) else module.embeddings
    return set(listed)


def _limit(sharder: ModuleSharder[nn.Module], own: type[Any], device: str) -> dict[str, list[str]]:
    """Return the sharding types and kernels of a sharder that lists others than TorchRec's own."""
    kind = type(sharder)
    found = {}
    types = sharder.sharding_types(device)
    if kind.sharding_types is not own.sharding_types:
        found["sharding_types"] = list(types)
    if kind.compute_kernels is not own.compute_kernels:
        kernels = {kernel for scheme in types for kernel in sharder.compute_kernels(scheme, device)}
        found["compute_kernels"] = sorted(kernels & KERNELS)
    return found
