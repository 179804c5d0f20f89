"""Ranks that time their phases, and what is odd about them."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torchrec.datasets.random import RandomRecDataset
from torchrec.distributed.embedding import ShardedEmbeddingCollection
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder, ShardedEmbeddingBagCollection
from torchrec.distributed.fp_embeddingbag import ShardedFeatureProcessedEmbeddingBagCollection
from torchrec.distributed.mc_embeddingbag import ShardedManagedCollisionEmbeddingBagCollection
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.sharding_plan import construct_module_sharding_plan, table_wise
from torchrec.distributed.train_pipeline import TrainPipelineSparseDist
from torchrec.distributed.types import ShardingPlan
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.optimizers import in_backward_optimizer_filter

from api.client import ClientError, PlannerClient, RetryPolicy
from api.client.torchrec import PhaseTimes

NOWHERE = "http://127.0.0.1:1"
PLAN_DIGEST = "sha256:" + "a" * 64


class Timing:
    """Around the steps of a case; ``late_seconds`` has the last rank come late to both passes."""

    def __init__(self, name: str, document: dict, sharded: DistributedModelParallel, out: Path) -> None:
        settings = dict(document)
        late_seconds = settings.pop("late_seconds", 0.0)
        self._late_seconds = late_seconds if dist.get_rank() == dist.get_world_size() - 1 else 0.0
        self._plan_digest = settings.pop("plan_digest", PLAN_DIGEST)
        self._path = out / f"{name}.{dist.get_rank()}.json"
        self._sharded = sharded
        self._hooks: list[int] = []
        self._walls: list[float] = []
        self._times = PhaseTimes(sharded, **settings)

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step, and how long it took."""
        begin = time.perf_counter()
        with self._times.step():
            time.sleep(self._late_seconds)
            yield
            self._hooks.append(count_hooks(self._sharded))
        self._walls.append(time.perf_counter() - begin)

    def before_backward(self) -> None:
        """Where the late rank is late once more."""
        time.sleep(self._late_seconds)

    def write(self) -> None:
        """Write what was timed."""
        document = self._times.job_times(self._plan_digest)
        found = {
            "document": document,
            "seconds": self._times.seconds(),
            "walls": self._walls,
            "hooks": self._hooks,
            "hooks_after": count_hooks(self._sharded),
            "not_timed": self._times.not_timed,
            "errors": refusals(self._sharded),
            "unreachable": text_of(lambda: self._times.post(impatient(), PLAN_DIGEST)),
            "no_client": text_of(lambda: self._times.post(None, PLAN_DIGEST)),
        }
        self._path.write_text(json.dumps(found))


def count_hooks(sharded: nn.Module) -> int:
    """Hooks of all parts of all sharded modules."""
    found = 0
    for module in sharded.modules():
        if isinstance(module, ShardedEmbeddingBagCollection):
            for part in [*module._lookups, *module._input_dists, *module._output_dists]:  # noqa: SLF001
                found += len(part._forward_hooks) + len(part._forward_pre_hooks)  # noqa: SLF001
                for inner in part.modules():
                    stand_in = getattr(inner, "_dummy_embs_tensor", None)
                    found += len(getattr(stand_in, "_backward_hooks", None) or ())
    return found


def refusals(sharded: nn.Module) -> dict[str, str]:
    """What wrong use is told."""
    rank = dist.get_rank()
    untrained = PhaseTimes(sharded, warmup_steps=1, steps=2)
    for _ in range(3):
        with untrained.step():
            pass
    no_steps = PhaseTimes(sharded, warmup_steps=3)
    failed = PhaseTimes(sharded, warmup_steps=1, steps=1)
    for error in (None, ArithmeticError):
        with suppress(ArithmeticError), failed.step():
            if error is not None:
                raise error
    failed_hooks = count_hooks(sharded)
    failed.close()
    return {
        "sequences": text_of(lambda: PhaseTimes(nn.ModuleList([sharded, empty(ShardedEmbeddingCollection)]))),
        "slots": text_of(
            lambda: PhaseTimes(nn.ModuleList([sharded, empty(ShardedManagedCollisionEmbeddingBagCollection)]))
        ),
        "processed": text_of(
            lambda: PhaseTimes(nn.ModuleList([sharded, empty(ShardedFeatureProcessedEmbeddingBagCollection)]))
        ),
        "no modules": text_of(lambda: PhaseTimes(nn.Linear(1, 1))),
        "one rank has none": text_of(lambda: PhaseTimes(nn.Linear(1, 1) if rank else sharded)),
        "other steps": text_of(lambda: PhaseTimes(sharded, steps=5 + rank)),
        "no passes": text_of(lambda: untrained.job_times(PLAN_DIGEST)),
        "no steps": text_of(lambda: no_steps.job_times(PLAN_DIGEST)),
        "a step that raised": f"{failed.num_timed} timed, complete: {failed.is_complete}, {failed.left_out};"
        f" hooks: {failed_hooks > 0}, closed: {count_hooks(sharded)}",
        "numbers": text_of(lambda: PhaseTimes(sharded, warmup_steps=0)),
    }


def empty(kind: type[nn.Module]) -> nn.Module:
    """A module as far as anybody looks at it."""
    module = kind.__new__(kind)
    nn.Module.__init__(module)
    return module


def text_of(call: object) -> str:
    """The error of a call, as text."""
    try:
        call()
    except (ClientError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def impatient() -> PlannerClient:
    """A client of a service that is not there."""
    return PlannerClient(NOWHERE, retry=RetryPolicy(attempts=1))


def pipeline(rank: int, *, timed: bool) -> dict[str, object]:
    """Train DLRM in TorchRec's pipeline; returns its losses, and what was timed."""
    rows = [300, 200, 100]
    names = [f"f{index}" for index in range(len(rows))]
    torch.manual_seed(5)
    tables = [
        EmbeddingBagConfig(name=f"t_{name}", num_embeddings=number, embedding_dim=8, feature_names=[name])
        for name, number in zip(names, rows, strict=True)
    ]
    model = DLRMTrain(DLRM(EmbeddingBagCollection(tables=tables), 4, [8, 8], [8, 1]))
    sharders = [EmbeddingBagCollectionSharder()]
    path = "model.sparse_arch.embedding_bag_collection"
    placed = {
        table.name: table_wise(index % dist.get_world_size(), compute_kernel="fused")
        for index, table in enumerate(tables)
    }
    plan = construct_module_sharding_plan(
        model.get_submodule(path), placed, sharders[0], dist.get_world_size(), dist.get_world_size(), "cpu"
    )
    sharded = DistributedModelParallel(
        model, device=torch.device("cpu"), plan=ShardingPlan({path: plan}), sharders=sharders
    )
    outside = [parameter for _, parameter in in_backward_optimizer_filter(sharded.named_parameters())]
    optimizer = torch.optim.SGD([parameter for parameter in outside if parameter.numel()], lr=0.1)
    batches = iter(
        RandomRecDataset(
            keys=names, batch_size=8, hash_sizes=rows, ids_per_features=[2] * len(rows), num_dense=4, manual_seed=rank
        )
    )
    trainer = TrainPipelineSparseDist(sharded, optimizer, torch.device("cpu"))
    times = PhaseTimes(sharded, warmup_steps=1, steps=3) if timed else None
    losses = []
    for _ in range(5):
        with times.step() if times else torch.enable_grad():
            loss, *_ = trainer.progress(batches)
        losses.append(loss.item())
    reported = {} if times is None else {"document": times.job_times(PLAN_DIGEST), "not_timed": times.not_timed}
    return {"losses": losses, "hooks": count_hooks(sharded), **reported}
