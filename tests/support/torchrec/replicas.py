"""Sharding groups on CPUs: TorchRec's ``DMPCollection`` as the plan and its handshake have it."""

import json
from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.remote_device import _remote_device
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.distributed.types import ModuleSharder, ShardingPlan, ShardingStrategy

from api.client.torchrec import handshake
from tests.support.torchrec.fully_sharded import run_on_hosts


class OnHosts(DMPCollection):
    """Averages over gloo, which has sums alone, and has shards on a device without a number.

    ``DMPCollection`` writes placements as those of GPUs.
    """

    def _remap_sharding_plan(self, plan: ShardingPlan, **places: object) -> None:
        super()._remap_sharding_plan(plan, **places)
        for module in plan.plan.values():
            for sharding in module.values():
                for shard in () if sharding.sharding_spec is None else sharding.sharding_spec.shards:
                    shard.placement = _remote_device(f"rank:{shard.placement.rank()}/cpu")

    def average(self, tensors: list[torch.Tensor]) -> None:
        """Take the mean of each tensor over the ranks of equal position."""
        replicas = self._default_ctx.replica_pg
        for tensor in tensors:
            dist.all_reduce(tensor, group=replicas)
            tensor.div_(dist.get_world_size(replicas))


def in_groups(case: Mapping, model: nn.Module, sharders: Sequence[ModuleSharder]) -> DMPCollection:
    """Shard a model as a launcher does: what the plan says of its groups comes from the handshake."""
    content = json.dumps(case["plan"]).encode()
    agreed = handshake(lambda: content, module=model, device="cpu")
    strategy = ShardingStrategy.DEFAULT
    if case.get("fully_sharded"):
        strategy = ShardingStrategy.FULLY_SHARDED
        run_on_hosts()
    sharded = OnHosts(
        module=model,
        device=torch.device("cpu"),
        plan=agreed.sharding_plan(),
        global_pg=dist.group.WORLD,
        sharders=list(sharders),
        sharding_strategy=strategy,
        **agreed.dmp_collection_arguments(),
    )
    sharded.set_all_reduce_hook(sharded.average)
    return sharded
