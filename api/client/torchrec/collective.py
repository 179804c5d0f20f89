"""One rank fetches, every rank plans alike, and all fail together."""

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.types import ShardingPlan

from ..documents import parse_plan
from ..errors import ClientError, PlanRejected, PlanUnavailable
from .plan import to_sharding_plan


def collective_fetch(
    load: Callable[[], bytes],
    *,
    module: nn.Module,
    device: str = "cuda",
    process_group: dist.ProcessGroup | None = None,
    world_size: int | None = None,
    ranks_per_host: int | None = None,
) -> ShardingPlan:
    """Read a plan on rank 0, give all ranks the same bytes, and turn it into a ``ShardingPlan``.

    Call it on every rank. Nobody is left waiting: where rank 0 cannot load, or any rank finds
    that the plan does not fit its model, every rank raises the same error.

    Parameters
    ----------
    load
        Returns the plan's bytes; called on rank 0 of the group only.
    module, device, world_size, ranks_per_host
        As in :func:`to_sharding_plan`.
    process_group
        A group of all ranks of the job, gloo by preference, since the bytes travel over it; the
        default group if not given.

    Raises
    ------
    PlanUnavailable
        ``load`` raised on rank 0.
    PlanRejected
        A rank cannot use the plan; the reasons are those of the lowest such rank.
    """
    group = process_group or dist.group.WORLD
    rank = dist.get_rank(group)
    failure: BaseException | None = None
    sent: list[Any] = [None, None]  # the bytes, or why there are none
    if rank == 0:
        try:
            sent[0] = load()
        except Exception as error:
            failure = error
            sent[1] = f"rank 0 could not load the plan: {type(error).__name__}: {error}"
    dist.broadcast_object_list(sent, group=group, group_src=0)
    content, refusal = sent
    if refusal is not None:
        raise PlanUnavailable(refusal) from failure
    plan: ShardingPlan | None = None
    reasons: tuple[str, ...] = ()
    try:
        document, _ = parse_plan(content)
        plan = to_sharding_plan(
            dict(document), module=module, device=device, world_size=world_size, ranks_per_host=ranks_per_host
        )
    except PlanRejected as error:
        reasons = error.reasons
    except Exception as error:  # whatever it is, the other ranks must hear of it before they wait for this one
        reasons = (str(error) if isinstance(error, ClientError) else f"{type(error).__name__}: {error}",)
    verdicts: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(verdicts, reasons, group=group)
    for other, found in enumerate(verdicts):
        if found:
            raise PlanRejected([f"rank {other}: {reason}" for reason in found])
    if plan is None:
        raise AssertionError("Expected a plan where no rank has a reason against it.")
    return plan
