"""Slots of managed collisions against TorchRec's own modules: buffers byte for byte, and bytes that a step moves."""

import warnings
from typing import Any

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.pipeline import plan
from planner.pricing.hash_tables.slot_columns import slot_columns
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem
from tests.support.planning.hash_tables import hash_table, mpzch, zch

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

#: Name, slots, hash table, samples per rank x 4 ids each: blocks that come out even and such that do not.
TABLES = (
    ("lfu", 1_000, zch(900, "lfu", 1)),
    ("lru", 1_003, zch(1_003, "lru", 3)),
    ("distance", 997, zch(500, "distance_lfu", 7)),
    ("kept", 960, mpzch(900)),
    ("aged", 960, mpzch(960, "single_ttl", bucket_size=40)),
    ("counted", 960, mpzch(100, "lru", bucket_size=80, metadata_bytes_per_slot=24)),
)
RANKS = 4


def torchrec_module(table: Table, found: HashTable, device: str) -> Any:
    """The module as a user makes it, of all slots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        pytest.importorskip("torchrec")
        from torchrec.modules import hash_mc_evictions, hash_mc_modules, mc_modules
    policies = {
        "lfu": mc_modules.LFU_EvictionPolicy,
        "lru": mc_modules.LRU_EvictionPolicy,
        "distance_lfu": mc_modules.DistanceLFU_EvictionPolicy,
    }
    if found.mode == "zch":
        return mc_modules.MCHManagedCollisionModule(
            zch_size=table.num_embeddings,
            device=torch.device(device),
            eviction_policy=policies[found.eviction](),
            eviction_interval=found.eviction_interval or 1,
            input_hash_size=2**40,
        )
    names = hash_mc_evictions.HashZchEvictionPolicyName
    name = {"none": None, "single_ttl": names.SINGLE_TTL_EVICTION, "lru": names.LRU_EVICTION}[found.eviction]
    return hash_mc_modules.HashZchManagedCollisionModule(
        zch_size=table.num_embeddings,
        device=torch.device(device),
        total_num_buckets=num_buckets(table, found),
        eviction_policy_name=name,
        eviction_config=hash_mc_evictions.HashZchEvictionConfig(features=["f"], single_ttl=24),
        write_runtime_meta_dim=found.metadata_bytes_per_slot // 8,
    )


def device_bytes(module: Any, device: str) -> int:
    """Bytes of all buffers and parameters on a device; TorchRec lists some parameters as buffers as well."""
    held = dict(module.named_buffers()) | dict(module.named_parameters())
    return sum(one.numel() * one.element_size() for one in held.values() if one.device.type == device)


def num_buckets(table: Table, found: HashTable) -> int:
    """Buckets of a probed table, by default one per rank."""
    return table.num_embeddings // found.bucket_size if found.bucket_size else RANKS


@pytest.mark.parametrize(("name", "slots", "found"), TABLES, ids=[name for name, *_ in TABLES])
def test_ledgers_are_what_torchrec_s_modules_hold(name: str, slots: int, found: HashTable) -> None:
    """Every rank's block as TorchRec rebuilds it for the rank (``rebuild_with_output_id_range``)."""
    table = hash_table(name, slots, found)
    result = plan(
        make_problem(table, cluster=make_cluster(2, 2)),
        cost_model=ROOFLINE,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=5, seed=0),
    )
    assert result.plan is not None
    (placed,) = result.plan.placement.tables
    assert (placed.sharding_type, placed.compute_kernel) == (Scheme.ROW_WISE, Kernel.FUSED)
    whole = torchrec_module(table, found, "meta")
    segments = [*placed.shards.row_offset.tolist(), slots]
    for shard, load in zip(placed.shards, result.plan.evaluation.ranks, strict=True):
        block = whole.rebuild_with_output_id_range(
            output_id_range=(shard.row_offset, shard.row_offset + shard.num_rows), output_segments=segments
        )
        assert load.ledger_bytes[Tier.HBM]["slots"] == device_bytes(block, "meta"), load.rank
        on_host = device_bytes(block, "cpu")
        assert on_host == (0 if found.mode == "zch" else 8 + 16 * num_buckets(table, found))


@pytest.mark.parametrize(("name", "slots", "found"), TABLES[:3], ids=[name for name, *_ in TABLES[:3]])
def test_histories_are_as_long_as_torchrec_s(name: str, slots: int, found: HashTable) -> None:
    torch = pytest.importorskip("torch")
    problem = make_problem(hash_table(name, slots, found))
    lookups = 64 * 4  # of one rank of four, whose batches of 64 x 4 ids are spread over all
    module = torchrec_module(problem.tables[0], found, "cpu").train()
    module.profile({"t": _ids(torch.arange(lookups))})
    held = [module._history_accumulator, *module._history_metadata.values()]  # noqa: SLF001
    columns = slot_columns(problem)
    history = np.floor(lookups * columns.history_numbers_per_lookup[0]) * columns.history_number_bytes[0]
    assert history == sum(one.numel() * one.element_size() for one in held)
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=5, seed=0))
    assert result.plan is not None
    assert {load.ledger_bytes[Tier.HBM]["slot_history"] for load in result.plan.evaluation.ranks} == {history}


def _ids(values: Any) -> Any:
    import torch
    from torchrec.sparse.jagged_tensor import JaggedTensor

    return JaggedTensor(values=values, lengths=torch.ones(len(values), dtype=torch.int32))


#: Bytes of a radix sort of an id, 8 passes that read and write a key and a place of 8 bytes each.
SORT_BYTES = 8 * 2 * 16
SECTOR_BYTES = 32
FREE = {"view", "slice", "select", "unsqueeze", "detach", "alias", "lift_fresh", "empty_like"}


def counted(module: Any, ids: Any) -> tuple[float, int, int]:
    """Bytes that a step of a module reads and writes, its operations that launch a kernel, and ids searched."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        """Adds up operations by what they read and write."""

        num_bytes, launches, searched = 0.0, 0, 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            name = str(func.overloadpacket).split(".")[-1]
            if name not in FREE:
                self.launches += 1
                self.num_bytes += self.moved(name, _tensors(args), _tensors(out))
            return out

        def moved(self, name: str, read: list[Any], written: list[Any]) -> float:
            """Sectors for what lies here and there, whole tensors for all else."""
            if name == "searchsorted":
                self.searched += written[0].numel()
                return float(_bytes(read[1:]) + _bytes(written))
            if name in ("sort", "_unique2"):
                return float(read[0].numel() * SORT_BYTES + _bytes(read[:1]) + _bytes(written))
            if name in ("index", "index_put_"):
                places = read[1]
                count = int(places.sum()) if places.dtype == torch.bool else places.numel()
                each = 32 if places.dtype == torch.bool else 8 + SECTOR_BYTES
                return float(_bytes([places]) + count * each)
            if name == "scatter_reduce_":
                return float(read[1].numel() * (16 + SECTOR_BYTES))
            return float(_bytes(read) + _bytes(written))

    with Counter() as counter:
        module.profile({"t": _ids(ids)})
        module.remap({"t": _ids(ids)})
        module.evict()
    return counter.num_bytes, counter.launches, counter.searched


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in _tensors(item)] if isinstance(value, list | tuple) else []


def _bytes(tensors: list[Any]) -> int:
    return sum(one.numel() * one.element_size() for one in tensors)


@pytest.mark.parametrize("eviction", ["lfu", "lru", "distance_lfu"])
@pytest.mark.parametrize(("num_ids", "slots", "interval"), [(2000, 4000, 1), (500, 6000, 3)])
def test_bytes_of_a_step_are_those_of_its_operations(eviction: str, num_ids: int, slots: int, interval: int) -> None:
    """Half of the ids have slots already; the mean of the steps of one interval, without binary searches."""
    torch = pytest.importorskip("torch")
    found = zch(slots, eviction, interval)
    problem = make_problem(hash_table("t", slots, found), cluster=make_cluster(1, 1))
    module = torchrec_module(problem.tables[0], found, "cpu").train()
    random = torch.Generator().manual_seed(3)
    known = torch.randperm(slots // 2, generator=random)
    steps = []
    for step in range(4 * interval):
        new = torch.randint(2**30, 2**40, (num_ids // 2,), generator=random)
        ids = torch.cat([known[torch.randint(0, len(known), (num_ids // 2,), generator=random)], new])
        if step < 3 * interval:
            module.profile({"t": _ids(ids)})
            module.evict()
        else:
            steps.append(counted(module, ids))
    num_bytes, launches, searched = np.mean(np.array(steps), axis=0)
    columns = slot_columns(problem)
    searches = SECTOR_BYTES * np.ceil(np.log2(slots))
    per_lookup = columns.lookup_bytes[0] - 2 * searches
    assert searched <= 3 * num_ids
    assert num_bytes == pytest.approx(num_ids * per_lookup + slots * columns.upkeep_bytes_per_slot[0], rel=0.15)
    assert launches == pytest.approx(columns.launches[0], rel=0.15)


def test_torchrec_gives_slots_of_probed_tables_on_gpus_alone() -> None:
    torch = pytest.importorskip("torch")
    module = torchrec_module(hash_table("t", 960, mpzch(900)), mpzch(900), "cpu").train()
    with pytest.raises(RuntimeError, match="Expected readonly"):
        module.remap({"t": _ids(torch.arange(8))})


def problem_of(*tables: Table) -> Problem:
    return make_problem(*tables, cluster=make_cluster(1, 1))


def test_probes_grow_with_the_share_of_slots_in_use() -> None:
    """(1 + 1 / (1 - a)) / 2 slots, 8 bytes each, and 4 more where ids expire; at most ``max_probe``."""
    half, nearly, full, aged = (
        slot_columns(problem_of(hash_table("t", 1000, found))).lookup_bytes[0]
        for found in (mpzch(500), mpzch(990), mpzch(1000), mpzch(990, "lru"))
    )
    assert half == 130 + 32 + 8 * 0.5
    assert nearly == pytest.approx(130 + 32 + 8 * 49.5)
    assert full == 130 + 32 + 8 * 127
    assert aged == pytest.approx(130 + 64 + 12 * 49.5)
