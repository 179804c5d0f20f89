"""FBGEMM's operator that leaves out repeated ids, for processors: FBGEMM has it for GPUs alone.

What it returns follows ``jagged_unique_indices.cu``: unique ids of each table in order, spread evenly over the bags of
all features of the table, and for each id the place of its row.
"""

import torch
from torch import nn
from torchrec.distributed.embedding import ShardedEmbeddingCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

_NAME = "fbgemm::jagged_unique_indices"
_OPERATORS = torch.library.Library("fbgemm", "IMPL", "CPU")
Unique = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def register() -> None:
    """Give processors the operator, once for the process."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key(_NAME, "CPU"):  # noqa: SLF001
        _OPERATORS.impl("jagged_unique_indices", _jagged_unique_indices)


def _jagged_unique_indices(
    first_ids: torch.Tensor, first_features: torch.Tensor, offsets: torch.Tensor, ids: torch.Tensor
) -> Unique:
    """Return lengths and offsets of bags, unique ids and the place of each id's row.

    ``first_ids`` has what is added to the ids of each feature, and in the end the rows of all tables;
    ``first_features`` the first feature of each table, with no features for the positions in between.
    """
    num_features, num_bags = len(first_ids) - 1, len(offsets) - 1
    batch = num_bags // num_features
    of_bag = torch.arange(num_bags) // batch
    of_id = torch.repeat_interleave(of_bag, offsets.diff())
    unique, place = torch.unique(ids + first_ids[of_id], sorted=True, return_inverse=True)
    lengths = torch.zeros(num_bags, dtype=ids.dtype)
    for first, end in zip(first_features[:-1].tolist(), first_features[1:].tolist(), strict=True):
        bags = (end - first) * batch
        if bags:
            found = int(((unique >= first_ids[first]) & (unique < first_ids[end])).sum())
            lengths[first * batch : end * batch] = found // bags + (torch.arange(bags) < found % bags)
    of_table = torch.searchsorted(first_ids, unique, right=True) - 1
    starts = torch.cat([torch.zeros(1, dtype=ids.dtype), lengths.cumsum(0)])
    return lengths, starts, unique - first_ids[of_table], place


class ReceivedIds:
    """Counts the ids that reach the lookups of sequences on this rank."""

    def __init__(self, model: nn.Module) -> None:
        #: Ids by sharding type, of all modules together and all steps.
        self.by_type: dict[str, int] = {}
        for module in model.modules():
            if isinstance(module, ShardedEmbeddingCollection):
                kinds = zip(module._sharding_types, module._lookups, strict=True)  # noqa: SLF001
                for sharding_type, lookup in kinds:
                    self._count(sharding_type, lookup)

    def _count(self, sharding_type: str, lookup: nn.Module) -> None:
        inner = lookup.module if isinstance(lookup, nn.parallel.DistributedDataParallel) else lookup

        def count(_: nn.Module, inputs: tuple[KeyedJaggedTensor, ...]) -> None:
            self.by_type[sharding_type] = self.by_type.get(sharding_type, 0) + inputs[0].values().numel()

        inner.register_forward_pre_hook(count)
