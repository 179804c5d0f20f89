"""Counts what real TorchRec allocates in each part of a step: ``python -m tests.support.torchrec.step_allocations``.

Reads a case as JSON from stdin, trains it on gloo with one process per rank, and writes as JSON the bytes that every
rank holds, without those that it held when the step began: at most until the pooled rows are there; when the dense part
runs; and at most from the moment when the gradients of the pooled rows are there. Buffers that gloo makes for itself
count for nothing, for NCCL sends and receives in place.
"""

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.sharding_plan import (
    column_wise,
    construct_module_sharding_plan,
    data_parallel,
    row_wise,
    table_row_wise,
    table_wise,
)
from torchrec.distributed.types import ShardingPlan
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

ROWS = 20
#: Within which threads of gloo have let go of what they sent.
_SETTLED_SECONDS = 2.0
#: Of which the least count is taken: on a busy machine threads of gloo hold what they sent for longer.
_STEPS = 3
_GENERATORS: dict[str, Any] = {
    "table_wise": lambda table: table_wise(table["ranks"][0]),
    "column_wise": lambda table: column_wise(table["ranks"]),
    "row_wise": lambda _: row_wise(),
    "table_row_wise": lambda table: table_row_wise(table["ranks"][0]),
    "data_parallel": lambda _: data_parallel(),
}
_OF_GLOO = ("c10d::_reduce_scatter_base_", "c10d::_allgather_base_", "gloo:")


@dataclass(frozen=True)
class Held:
    """Bytes of one rank."""

    forward: int  # at most, until the pooled rows are there
    dense: int  # while the dense part runs
    backward: int  # at most, from the gradients of pooled rows on


class Model(nn.Module):
    """One embedding module, and a dense part that keeps nothing but the pooled rows."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__()
        self.sparse = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(
                    name=table["name"],
                    num_embeddings=ROWS,
                    embedding_dim=table["columns"],
                    feature_names=[f"f_{table['name']}"],
                )
                for table in case["tables"]
            ],
        )

    def forward(self, features: KeyedJaggedTensor) -> torch.Tensor:
        with record_function("@forward"):
            pooled = self.sparse(features).values()
        with record_function("@dense"):
            pooled.register_hook(_mark_gradient)
            return pooled.square().sum()


def _mark_gradient(_: torch.Tensor) -> None:
    with record_function("@backward"):
        pass


def _step(case: dict[str, Any], model: nn.Module) -> None:
    keys, batch = [f"f_{table['name']}" for table in case["tables"]], case["batch"]
    features = KeyedJaggedTensor.from_lengths_sync(
        keys=keys,
        values=torch.randint(0, ROWS, (len(keys) * batch,)),
        lengths=torch.ones(len(keys) * batch, dtype=torch.int64),
    )
    loss = model(features)
    time.sleep(_SETTLED_SECONDS)
    with record_function("@loss"):
        pass
    loss.backward()
    with record_function("@end"):
        pass


def _count(trace: Any) -> Held:
    events: list[Any] = []
    pending = list(trace.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        events.append(event)
        pending += event.children
    events.sort(key=lambda event: event.start_time_ns)
    held, most, part, start = 0, {"@forward": 0, "@dense": 0, "@backward": 0}, "", 0
    at_loss, of_gloo = 0, set[int]()
    for event in events:
        if event.name.startswith("@"):
            part = {"@loss": "", "@end": ""}.get(event.name, event.name)
            start = held if event.name == "@forward" else start
            at_loss = held if event.name == "@loss" else at_loss
        elif "Allocation" in str(event.typed[0]):
            place, size = event.extra_fields.ptr, event.extra_fields.alloc_size
            if size > 0 and _is_of_gloo(event):
                of_gloo.add(place)
            elif size > 0 or place not in of_gloo:
                held += size
            else:
                of_gloo.discard(place)
        if part:
            most[part] = max(most[part], held - start)
    return Held(forward=most["@forward"], dense=at_loss - start, backward=most["@backward"])


def _is_of_gloo(event: Any) -> bool:
    parent = event.parent
    while parent is not None:
        if parent.name.startswith(_OF_GLOO):
            return True
        parent = parent.parent
    return False


def _train(rank: int, case: dict[str, Any], folder: str) -> None:
    world, local = case["world_size"], case["ranks_per_host"]
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank % local), LOCAL_WORLD_SIZE=str(local))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank, world_size=world)
    model = Model(case)
    module_plan = construct_module_sharding_plan(
        model.sparse,
        {table["name"]: _GENERATORS[table["sharding_type"]](table) for table in case["tables"]},
        local_size=local,
        world_size=world,
        device_type="cpu",
    )
    for sharding in module_plan.values():
        sharding.compute_kernel = "dense" if sharding.sharding_type == "data_parallel" else "fused"
    trained = DistributedModelParallel(
        model,
        device=torch.device("cpu"),
        plan=ShardingPlan({"sparse": module_plan}),
        sharders=[EmbeddingBagCollectionSharder(fused_params={"learning_rate": 0.1})],
    )
    _step(case, trained)  # lazy buffers
    counts = []
    for _ in range(_STEPS):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
            _step(case, trained)
        counts.append(asdict(_count(trace)))
    least = {part: min(count[part] for count in counts) for part in counts[0]}
    (Path(folder) / f"{rank}.json").write_text(json.dumps(least))
    dist.barrier()
    os._exit(0)  # gloo can hang when it is torn down


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        case = json.load(sys.stdin)
        mp.spawn(_train, args=(case, folder), nprocs=case["world_size"])
        json.dump(
            [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(case["world_size"])], sys.stdout
        )
