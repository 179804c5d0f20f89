"""Before anything is sharded: do the plan and the job, as it runs, belong together? All ranks answer alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch.distributed as dist
from torch import nn
from torchrec.distributed.types import ModuleSharder

from .exchange import Handshake, Rank, Source
from .facts import MemoryProbe, read_memory


def handshake(
    plan: Source,
    *,
    module: nn.Module,
    device: str = "cuda",
    process_group: dist.ProcessGroup | None = None,
    expected_digest: str | None = None,
    spec: Mapping[str, object] | None = None,
    replan: Callable[[Handshake], bytes] | None = None,
    ranks_per_host: int | None = None,
    sharding_group_size: int | None = None,
    contiguous_groups: bool = False,
    free_memory: MemoryProbe = read_memory,
    sharders: Sequence[ModuleSharder[nn.Module]] | None = None,
) -> Handshake:
    """Compare a plan with the job as it runs, on every rank, and agree on what follows.

    Call it on every rank, before anything is sharded. No rank is left waiting by a rank that
    cannot load, read or use the plan: all ranks return the same verdict, or raise the same error.

    Parameters
    ----------
    plan
        The plan's bytes, where every rank has them (a file on each host), or what returns them:
        that is called on rank 0 of the group only, and its bytes are sent to the others.
    module
        The model that is given to ``DistributedModelParallel``, before it; meta device is fine.
    device
        ``cuda`` (the current device) or ``cpu``: where the shards will live.
    process_group
        A group of all ranks of the job, gloo by preference, since the bytes travel over it; the
        default group if not given.
    expected_digest
        Of the plan that this job was started for; any other is refused.
    spec
        The spec that the plan was solved for. A plan leaves out the features, whether ids carry
        weights, and the optimizer; a spec has them to compare.
    replan
        Asked on rank 0 for the bytes of a new plan where the verdict is ``replan``, with the
        reasons; the handshake is then done once more. The other ranks wait as long as the
        process group lets them.
    ranks_per_host
        By default what TorchRec takes from ``LOCAL_WORLD_SIZE``; under 2D parallelism what
        ``DMPCollection`` gets as ``node_group_size``.
    sharding_group_size, contiguous_groups
        Under 2D parallelism, what ``DMPCollection`` gets as ``sharding_group_size`` and
        ``use_inter_host_allreduce``; the plan is then for one sharding group. If not given, they and
        ``node_group_size`` are those of the plan, where it has sharding groups:
        :meth:`Handshake.dmp_collection_arguments` returns them.
    free_memory
        How free bytes are found out.
    sharders
        Those that ``DistributedModelParallel`` gets, to compare whether they leave out repeated ids;
        not needed where they are made with :meth:`Handshake.embedding_collection_sharder_arguments`.

    Raises
    ------
    PlanUnavailable
        ``plan`` or ``replan`` raised on rank 0.
    """
    group = process_group or dist.group.WORLD
    rank = Rank(
        number=dist.get_rank(group),
        group=group,
        module=module,
        device=device,
        spec=spec,
        can_replan=replan is not None,
        ranks_per_host=ranks_per_host,
        sharding_group_size=sharding_group_size,
        contiguous_groups=contiguous_groups,
        free_memory=free_memory,
        sharders=sharders,
    )
    first, may_replan = rank.shake(plan, expected_digest, "load the plan")
    if first.verdict != "replan" or not may_replan:
        return first

    def ask() -> bytes:
        if replan is None:
            raise AssertionError("Expected replan on rank 0, which said that it has it.")
        return replan(first)

    second, _ = rank.shake(ask, None, f"get a new plan, which is needed ({'; '.join(first.reasons)})")
    return replace(second, replanned=True)
