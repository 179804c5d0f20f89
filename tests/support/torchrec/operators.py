"""The FBGEMM operators that TorchRec makes of a plan for GPUs, built on the meta device, and what they allocate.

TorchRec's own code groups the shards and calls FBGEMM's GPU classes. Tensors asked for on a GPU are made on the
meta device, where they have sizes and no memory, and RocksDB and CUDA streams are stood in for.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
import torchrec.distributed.batched_embedding_kernel as kernels
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchrec.distributed import comm, embedding, embeddingbag
from torchrec.distributed.types import EmbeddingModuleShardingPlan, ShardingEnv
from torchrec.modules.embedding_modules import EmbeddingBagCollection

_MEMORY_BYTES = 2**60  # of the GPU, so that no cache is cut down to it
#: Buffers of FBGEMM's by the line of the ledger and the tier. Others hold a few bytes per feature.
_LINES = {
    "weights_dev": ("weights", "hbm"),
    "weights_uvm": ("weights", "ddr"),
    "momentum1_dev": ("optimizer_state", "hbm"),
    "momentum1_uvm": ("optimizer_state", "ddr"),
    "momentum2_dev": ("optimizer_state", "hbm"),
    "momentum2_uvm": ("optimizer_state", "ddr"),
    "lxu_cache_weights": ("cache", "hbm"),
    "cache_index_table_map": ("cache_index", "hbm"),
    "lxu_cache_state": ("cache_index", "hbm"),
    "lxu_state": ("cache_index", "hbm"),
    "lru_state": ("cache_index", "hbm"),
    "lxu_cache_locking_counter": ("cache_index", "hbm"),
    **{
        f"lxu_cache_evicted_{what}_{buffer}": ("eviction_buffers", "ddr")
        for what in ("weights", "indices", "slots", "count")
        for buffer in (0, 1)
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of one rank."""

    rank: int
    tables: tuple[str, ...]
    kernel: str
    #: bytes by line and tier; ``descriptors`` are those that no line has
    bytes: Counter[tuple[str, str]]
    num_features: int


class _OnMeta(TorchFunctionMode):
    """Makes on the meta device what is asked for on a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {key: _meta(value) for key, value in (kwargs or {}).items()}
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = "meta"
        return func(*(_meta(value) for value in args), **kwargs)


def _meta(value: Any) -> Any:
    is_gpu = isinstance(value, torch.device) and value.type == "cuda"
    return torch.device("meta") if is_gpu else value


@contextlib.contextmanager
def cluster(world_size: int, ranks_per_host: int, monkeypatch: Any) -> Iterator[None]:
    """A job of so many ranks, of which this process is the first, and whose collectives do nothing."""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks_per_host))
    dist.init_process_group("fake", rank=0, world_size=world_size, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
        comm._INTRA_PG = comm._CROSS_PG = None  # noqa: SLF001  (groups within hosts and across them)


def operators_of(
    module: nn.Module, sharding: EmbeddingModuleShardingPlan, fused_params: dict[str, Any]
) -> list[Operator]:
    """Return the operators of all ranks for one embedding module, of the process group that is there."""
    bags = isinstance(module, EmbeddingBagCollection)
    env = ShardingEnv.from_process_group(dist.group.WORLD)
    gpu = torch.device("cuda:0")
    made_of: Any
    by_table = dict(sharding.items())
    if bags:
        made_of = embeddingbag.ShardedEmbeddingBagCollection
        infos = made_of.create_grouped_sharding_infos(module, by_table, "embedding_bags.", fused_params)
    else:
        made_of = embedding.ShardedEmbeddingCollection
        infos = made_of.create_grouped_sharding_infos(module, by_table, fused_params)
    found = []
    for scheme, some in infos.items():
        if bags:
            made = made_of.create_embedding_bag_sharding(some, env, gpu)
        else:
            made = made_of.create_embedding_sharding(scheme, some, env, gpu)
        for rank, configs in enumerate(made._grouped_embedding_configs_per_rank):  # noqa: SLF001
            found += [built(rank, config, gpu, bags=bags) for config in configs]
    return found


@contextlib.contextmanager
def on_meta() -> Iterator[None]:
    """FBGEMM's classes for GPUs are built on the meta device."""
    with contextlib.ExitStack() as stack:
        for target, name, value in (
            (tempfile, "mkdtemp", lambda *_, **__: tempfile.gettempdir()),
            (torch.cuda, "current_device", lambda: 0),
            (torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=_MEMORY_BYTES)),
            (torch.cuda, "memory_reserved", lambda _: 0),
            (torch.cuda, "Stream", mock.MagicMock(priority_range=lambda: (0, -1))),
            (torch.cuda, "Event", mock.MagicMock()),
            (torch.cuda, "current_stream", mock.MagicMock()),
            (torch.cuda, "stream", mock.MagicMock()),
        ):
            stack.enter_context(mock.patch.object(target, name, value, create=True))
        on_ssd = {name: mock.MagicMock() for name in ("EmbeddingRocksDBWrapper", "SSDScratchPadIndicesQueue")}
        stack.enter_context(mock.patch.dict(vars(torch.classes.fbgemm), on_ssd))
        stack.enter_context(_OnMeta())
        yield


def built(rank: int, config: Any, gpu: torch.device, *, bags: bool) -> Operator:
    """Build the operator of a group of tables of one rank."""
    suffix = "Bag" if bags else ""
    kind = {"dense": "BatchedDenseEmbedding", "fused": "BatchedFusedEmbedding", "key_value": "KeyValueEmbedding"}
    kernel = config.compute_kernel.value
    make = getattr(kernels, f"{kind[kernel]}{suffix}")
    with contextlib.ExitStack() as stack:
        for target, name, value in (
            (kernels, "EmbeddingFusedOptimizer", mock.MagicMock()),
            (kernels, "KeyValueEmbeddingFusedOptimizer", mock.MagicMock()),
            (kernels, "_gen_named_parameters_by_table_ssd_pmt", lambda **_: ()),
            (make, "init_parameters", lambda _: None),
        ):
            stack.enter_context(mock.patch.object(target, name, value))
        stack.enter_context(on_meta())
        operator = make(config, None, gpu).emb_module
    held: Counter[tuple[str, str]] = Counter()
    cached = {"cache_index", "cache"} if getattr(operator, "lxu_cache_weights", torch.empty(0)).numel() == 0 else set()
    for name, tensor in [*operator.named_buffers(), *operator.named_parameters()]:
        line, tier = _LINES.get("weights_dev" if name == "weights" else name, ("descriptors", ""))
        is_filler = tensor.dtype == torch.int64 and name.startswith("momentum")  # stands for a state that is not there
        if is_filler or line in cached:
            line, tier = "descriptors", ""
        held[line, tier] += tensor.numel() * tensor.element_size()
    return Operator(
        rank=rank,
        tables=tuple(table.name for table in config.embedding_tables),
        kernel=kernel,
        bytes=held,
        num_features=config.num_features(),
    )
