"""A plan of the service for TorchRec's own planner, by its ``plan_loader`` hook."""

import hashlib
from collections.abc import Callable

import torch
from torch import nn
from torchrec.distributed.planner.types import Perf, PlanLoader, Shard, ShardingOption, Storage
from torchrec.distributed.types import ParameterSharding, ShardingPlan

from ..documents import parse_plan
from ..plan_types import PlanDocument, TableDocument
from .plan import to_sharding_plan

#: TorchRec's key of an option (``ShardingOption.storage_hash``).
_KEY_BYTES = 7


class ServicePlanLoader(PlanLoader):  # type: ignore[misc]
    """Has ``EmbeddingShardingPlanner(plan_loader=...)`` take a plan instead of searching for one.

    For users who want the planner's statistics and callbacks as well. TorchRec then takes only cuts that it lists
    itself: the constraints must allow the plan's schemes, kernels, cache load factors and widths of pieces, else it
    fails with ``PLAN_LOADING_FAILED``; on CPU it lists no cuts by rows. ``ServicePlanner`` has none of these limits.
    Its statistics show no seconds, for these are the plan's.

    Parameters
    ----------
    load
        Returns the plan's bytes; called once, when the planner plans, which ``collective_plan`` does on rank 0.
    module
        The model that the planner is given.
    device, world_size, ranks_per_host
        As in :func:`to_sharding_plan`.
    """

    def __init__(
        self,
        load: Callable[[], bytes],
        *,
        module: nn.Module,
        device: str = "cuda",
        world_size: int | None = None,
        ranks_per_host: int | None = None,
    ) -> None:
        self._load, self._module = load, module
        self._device, self._world_size, self._ranks_per_host = device, world_size, ranks_per_host
        self._digest = ""

    def load(self) -> dict[int, ShardingOption]:
        """Return the plan's options by TorchRec's keys.

        Raises
        ------
        PlanRejected
            The plan is not for this model and job, or TorchRec would train it wrongly.
        """
        document, self._digest = parse_plan(self._load())
        plan = to_sharding_plan(
            document,
            module=self._module,
            device=self._device,
            world_size=self._world_size,
            ranks_per_host=self._ranks_per_host,
        )
        return _options(document, plan, self._module)

    def plan_context_hash(self) -> str | None:
        """Return nothing: the plan is compared with the model, not with what a planner was given."""
        return None

    def get_plan_id(self) -> str:
        """Return the digest of the plan that was loaded; TorchRec writes it into its log."""
        return self._digest


def _options(document: PlanDocument, plan: ShardingPlan, module: nn.Module) -> dict[int, ShardingOption]:
    tables = {table["name"]: table for table in document["tables"]}
    modules, found = dict(module.named_modules()), {}
    for path, members in plan.plan.items():
        for name, sharding in members.items():
            table = tables.get(f"{path}/{name}") or tables[name]
            found[_key(f"{path}.{name}", table)] = _option(name, table, sharding, path, modules[path])
    return found


def _option(
    name: str, table: TableDocument, sharding: ParameterSharding, path: str, module: nn.Module
) -> ShardingOption:
    """Return an option of which TorchRec takes the shards, and all else from its own of the same key."""
    return ShardingOption(
        name=name,
        tensor=torch.empty(0, device="meta"),
        module=(path, module),
        input_lengths=[],
        batch_size=0,
        sharding_type=sharding.sharding_type,
        partition_by="",
        compute_kernel=sharding.compute_kernel,
        cache_params=sharding.cache_params,
        shards=[
            Shard(
                size=[shard["num_rows"], shard["num_columns"]],
                offset=[shard["row_offset"], shard["column_offset"]],
                rank=shard["rank"],
                storage=Storage(
                    hbm=shard.get("bytes", 0) if shard["tier"] == "hbm" else 0,
                    ddr=shard.get("bytes", 0) if shard["tier"] == "ddr" else 0,
                ),
                perf=Perf(fwd_compute=0, fwd_comms=0, bwd_compute=0, bwd_comms=0),
            )
            for shard in table["shards"]
        ],
    )


def _key(fqn: str, table: TableDocument) -> int:
    words = (
        fqn,
        table["sharding_type"],
        table["compute_kernel"],
        table.get("cache_load_factor"),
        len(table["shards"]),
    )
    text = "|".join(str(word) for word in words)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_KEY_BYTES).digest(), "big")
