"""A job's own phases, timed on every rank and posted to the service as measurements of its plan."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.embedding import ShardedEmbeddingCollection
from torchrec.distributed.embeddingbag import ShardedEmbeddingBagCollection
from torchrec.distributed.fp_embeddingbag import ShardedFeatureProcessedEmbeddingBagCollection
from torchrec.distributed.mc_embedding_modules import BaseShardedManagedCollisionEmbeddingCollection

from ..client import PlannerClient
from ..device_names import fbgemm_library
from ..errors import NotPosted, NotTimed
from ..job_times import (
    BACKWARD_COMM,
    BACKWARD_COMPUTE,
    FORWARD_COMPUTE,
    INPUT_COMM,
    RankReport,
    job_times,
    median_seconds,
)
from .clocks import Clock, device_name
from .gather import gathered
from .phase_hooks import ModuleHooks, StepRecord, device_of, num_lookups

#: Modules of tables whose ids or rows pass through more than what is timed.
_OTHERS = (
    ShardedEmbeddingCollection,
    ShardedFeatureProcessedEmbeddingBagCollection,
    BaseShardedManagedCollisionEmbeddingCollection,
)
#: Tables by sharding type or kernel, the phases that cannot be timed for them, and why.
_UNTIMED = (
    (
        lambda table: table.sharding_type == "data_parallel",
        (BACKWARD_COMM, BACKWARD_COMPUTE),
        "tables are replicated: the all-reduce of their gradients and their optimizer run during the backward pass",
    ),
    (
        lambda table: table.compute_kernel == "dense",
        (BACKWARD_COMPUTE,),
        "tables have the kernel dense, whose optimizer runs after the backward pass",
    ),
    (
        lambda table: "caching" in table.compute_kernel or "key_value" in table.compute_kernel,
        (FORWARD_COMPUTE,),
        "tables are cached: their lookup fetches rows, too, which is priced as prefetch",
    ),
)


class PhaseTimes:
    """Times the phases of the embedding tables over some steps of a training job::

        times = PhaseTimes(sharded_model)  # on every rank
        for batch in batches:
            with times.step():
                train(batch)  # one forward and one backward pass
        times.post(client, plan_digest)  # on every rank; rank 0 posts

    Steps before ``warmup_steps`` and after the timed ones run without any hook. Timed ones keep exchanges and compute
    apart (see ``phase_hooks``), and are slower by what TorchRec would have overlapped.

    Parameters
    ----------
    model
        What ``DistributedModelParallel`` made, or a module that holds it.
    warmup_steps
        Steps before the first that is timed; at least one, in which TorchRec makes the last of its parts.
    steps
        Steps that are timed.
    process_group
        The ranks of the plan, gloo by preference; the default group if not given. Under 2D parallelism the sharding
        group.
    device_name
        What rows of this device are called, where it is not the name that ``shardplan measure`` gives it.

    Raises
    ------
    NotTimed
        The model has no sharded embedding modules, or ranks were given different steps; every rank raises the same.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        warmup_steps: int = 10,
        steps: int = 50,
        process_group: dist.ProcessGroup | None = None,
        device_name: str | None = None,
    ) -> None:
        if warmup_steps < 1 or steps < 1:
            raise ValueError("Expected warmup_steps >= 1 and steps >= 1.")
        self._group = process_group or dist.group.WORLD
        self._modules = [module for module in model.modules() if isinstance(module, ShardedEmbeddingBagCollection)]
        self._warmup_steps, self._steps_wanted, self._device_name = warmup_steps, steps, device_name
        other = next((type(module).__name__ for module in model.modules() if isinstance(module, _OTHERS)), "")
        self._agree((warmup_steps, steps, len(self._modules), other))
        self._device = device_of(self._modules[0])
        self._clock = Clock(self._device)
        self._num_lookups = sum(num_lookups(module) for module in self._modules)
        self._untimed = dict(_untimed(self._modules))
        self._hooks: list[ModuleHooks] = []
        self._running: StepRecord | None = None
        self._records: list[StepRecord] = []
        self._issues: list[str] = []
        self._num_steps = 0

    @property
    def is_complete(self) -> bool:
        """Whether all steps that were wanted have been timed, so that the rest of the training runs as without."""
        return len(self._records) + len(self._issues) >= self._steps_wanted

    @property
    def num_timed(self) -> int:
        return len(self._records)

    @property
    def not_timed(self) -> dict[str, str]:
        """Phases that cannot be timed in this job, and why."""
        return dict(self._untimed)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why steps that should have been timed were not counted, each reason once."""
        return tuple(dict.fromkeys(self._issues))

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around one forward and one backward pass."""
        self._num_steps += 1
        if self._num_steps <= self._warmup_steps or self.is_complete:
            yield
            return
        if not self._hooks:
            self._hooks = [ModuleHooks(one, self._device, self._clock, lambda: self._running) for one in self._modules]
        record = self._running = StepRecord()
        try:
            yield
            self._count(record)
        finally:
            self._running = None
            for handle in record.handles:
                handle.remove()

    def seconds(self) -> dict[str, float]:
        """Return the median seconds of each phase on this rank; on a GPU, wait for the last step that was timed."""
        medians = median_seconds([record.seconds(self._clock) for record in self._records])
        return {phase: value for phase, value in medians.items() if phase not in self._untimed}

    def close(self) -> None:
        """Take all hooks away; what was timed stays."""
        for hooks in self._hooks:
            hooks.close()
        self._hooks = []

    def job_times(self, plan_digest: str) -> dict[str, object]:
        """Return what all ranks saw, as the service takes it. Call it on every rank.

        Raises
        ------
        NotTimed
            A rank has no times, or ranks run on different devices; every rank raises the same.
        """
        self.close()
        report = RankReport(
            seconds=self.seconds(),
            num_steps=self.num_timed,
            device=self._device_name or device_name(self._device),
            library=fbgemm_library(),
            left_out=self.left_out
            or (f"the job ran {self._num_steps} steps, {self._warmup_steps} of them to warm up",),
        )
        return job_times(plan_digest, gathered(report, self._group), communication=dist.get_backend(self._group))

    def post(self, client: PlannerClient | None, plan_digest: str) -> dict[str, object]:
        """Post what all ranks saw, and return the service's summary. Call it on every rank.

        Parameters
        ----------
        client
            Used on rank 0 alone; the others may have none.
        plan_digest
            Of the plan that the job runs: ``planner.document["plan_digest"]``, or that of a handshake.

        Raises
        ------
        NotTimed
            As of :meth:`job_times`.
        NotPosted
            Rank 0 could not post, because the service did not answer, does not have the plan, or has no client.
        """
        document = self.job_times(plan_digest)
        sent: list[Any] = [None]
        failure: Exception | None = None
        if dist.get_rank(self._group) == 0:
            try:
                if client is None:
                    raise NotPosted("no client was given")
                sent = [(client.post_measurements(document), None)]
            except Exception as error:  # the other ranks wait for this one
                failure = error
                sent = [(None, f"rank 0 could not post the times: {error}")]
        dist.broadcast_object_list(sent, group=self._group, group_src=0)
        summary, why = sent[0]
        if why is not None:
            raise NotPosted(why) from failure
        found: dict[str, object] = summary
        return found

    def _count(self, record: StepRecord) -> None:
        incomplete_reason = record.incomplete_reason(self._num_lookups)
        if incomplete_reason is None:
            self._records.append(record)
        else:
            self._issues.append(incomplete_reason)
        if any(hooks.is_pipelined for hooks in self._hooks):
            self._untimed[INPUT_COMM] = "a training pipeline sends ids ahead, those of all modules in one exchange"
        if self.is_complete:
            self.close()

    def _agree(self, mine: tuple[int, int, int, str]) -> None:
        """Raise the same on every rank where one has nothing to time, or other steps: it would wait for ever."""
        every = gathered(mine, self._group)
        if other := next((name for _, _, _, name in every if name), ""):
            raise NotTimed([f"the model has a {other}, which is not timed; the plan's prediction is of all tables"])
        if not all(number for _, _, number, _ in every):
            raise NotTimed(
                ["the model has no ShardedEmbeddingBagCollection; give what DistributedModelParallel made of it"]
            )
        if len(set(every)) > 1:
            message = "; ".join(
                f"rank {rank}: warmup_steps={warmup}, steps={steps}, {number} modules"
                for rank, (warmup, steps, number, _) in enumerate(every)
            )
            raise NotTimed([f"all ranks must time the same steps and modules, found {message}"])


def _untimed(modules: Sequence[ShardedEmbeddingBagCollection]) -> Iterator[tuple[str, str]]:
    """Yield phases that cannot be timed, and why."""
    for is_such, phases, why in _UNTIMED:
        if any(is_such(table) for module in modules for table in module.module_sharding_plan.values()):
            yield from ((phase, why) for phase in phases)
