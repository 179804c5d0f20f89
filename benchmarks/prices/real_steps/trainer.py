"""Ranks that train one model under many plans in turn, with real TorchRec on gloo.

A job is a JSON file; each rank writes what it timed next to the file. All plans are built at once, each with tables of
its own. In every round each plan trains a few steps, in an order that changes from round to round, so that a stretch in
which the machine is slow falls on all of them.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import _apply_optimizer_in_backward
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.types import ShardingEnv
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from api.client.torchrec import PhaseTimes, to_sharding_plan
from benchmarks.prices.real_steps.models import TableShape, batches
from benchmarks.prices.real_steps.small_collectives import time_small_collectives

_NUM_BATCHES = 4
_LEARNING_RATE = 0.01
_POLL_SECONDS = 0.05


class Model(nn.Module):
    """The tables, and one dense layer over all pooled outputs."""

    def __init__(self, tables: Sequence[TableShape]) -> None:
        super().__init__()
        self.tables = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(
                    name=table.name,
                    num_embeddings=table.rows,
                    embedding_dim=table.columns,
                    feature_names=[table.name],
                )
                for table in tables
            ],
        )
        self.dense = nn.Linear(sum(table.columns for table in tables), 1)

    def forward(self, features: KeyedJaggedTensor) -> torch.Tensor:
        """One number per sample."""
        return self.dense(self.tables(features).values()).squeeze(1)


class Trained:
    """The model under one plan."""

    def __init__(self, tables: Sequence[TableShape], plan: dict[str, Any]) -> None:
        model = Model(tables)
        settings = {"lr": _LEARNING_RATE}
        _apply_optimizer_in_backward(RowWiseAdagrad, model.tables.parameters(), dict(settings))
        self.sharded = DistributedModelParallel(
            model,
            env=ShardingEnv.from_process_group(dist.group.WORLD),
            device=torch.device("cpu"),
            plan=to_sharding_plan(plan, module=model, device="cpu"),
            sharders=[EmbeddingBagCollectionSharder()],
        )
        outside = [p for _, p in in_backward_optimizer_filter(self.sharded.named_parameters()) if p.numel()]
        dense = {id(p) for p in self.sharded.module.dense.parameters()}
        replicas = [p for p in outside if id(p) not in dense]
        self._optimizers: list[torch.optim.Optimizer] = [
            torch.optim.SGD([p for p in outside if id(p) in dense], **settings),
            *([RowWiseAdagrad(replicas, **settings)] if replicas else []),
        ]

    def step(self, features: KeyedJaggedTensor) -> None:
        """Train one batch."""
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        self.sharded(features).square().mean().backward()
        for optimizer in self._optimizers:
            optimizer.step()


def run_rank(job: dict[str, Any], rank: int, out: Path) -> None:
    """Train the job as one rank, and leave the process: gloo can hang when it is torn down."""
    code = 1
    try:
        world_size = job["world_size"]
        torch.set_num_threads(1)
        os.environ |= {"LOCAL_WORLD_SIZE": str(world_size), "LOCAL_RANK": str(rank), "RANK": str(rank)}
        dist.init_process_group("gloo", init_method=f"file://{out / 'meeting'}", rank=rank, world_size=world_size)
        (out / f"{rank}.json").write_text(json.dumps(_trained(job, rank)))
        dist.barrier()
        code = 0
    except BaseException:
        (out / f"{rank}.error").write_text(traceback.format_exc())
    os._exit(code)


def _trained(job: dict[str, Any], rank: int) -> dict[str, Any]:
    began = time.monotonic()
    tables = [TableShape(**table) for table in job["tables"]]
    inputs = [
        KeyedJaggedTensor(
            keys=[table.name for table in tables], values=torch.tensor(one.ids), lengths=torch.tensor(one.lengths)
        )
        for one in batches(tables, job["samples"], rank, _NUM_BATCHES)
    ]
    trained = [Trained(tables, plan) for plan in job["plans"]]
    for one in trained:  # makes what TorchRec makes in its first step, and has the machine touch all memory
        one.step(inputs[0])
    collectives = time_small_collectives(job["collectives"])
    phases = [_phases(one, inputs, job["phase_steps"]) for one in trained] if job["phase_steps"] else []
    build_seconds = time.monotonic() - began
    began = time.monotonic()
    rounds = []
    while _all_agree((len(rounds) < job["rounds"] and time.monotonic() - began < job["seconds"]) or not rounds):
        rounds.append(_round(trained, inputs, job["steps"], np.random.default_rng([17, len(rounds)])))
    return {"rounds": rounds, "phases": phases, "collectives": collectives, "build_seconds": build_seconds}


def _round(
    trained: list[Trained], inputs: list[KeyedJaggedTensor], steps: int, rng: np.random.Generator
) -> list[list[tuple[float, float]]]:
    """Return (seconds, processor seconds of this rank) of each step of each plan.

    The order of the plans is that of the generator, equal on all ranks.
    """
    found: list[list[tuple[float, float]]] = [[] for _ in trained]
    for index in rng.permutation(len(trained)).tolist():
        trained[index].step(inputs[-1])  # finds the caches full of another plan's tables
        for step in range(steps):
            dist.barrier()
            busy, began = time.process_time(), time.perf_counter()
            trained[index].step(inputs[step % len(inputs)])
            found[index].append((time.perf_counter() - began, time.process_time() - busy))
    return found


def _phases(trained: Trained, inputs: list[KeyedJaggedTensor], steps: int) -> dict[str, float]:
    """Return the seconds of the phases on this rank, each timed alone: medians over steps."""
    times = PhaseTimes(trained.sharded, warmup_steps=1, steps=steps)
    for step in range(1 + steps):
        with times.step():
            trained.step(inputs[step % len(inputs)])
    times.close()
    return times.seconds()


def _all_agree(wanted: bool) -> bool:
    """Whether rank 0 wants to go on; its clock counts for all."""
    answer = torch.tensor([int(wanted)])
    dist.broadcast(answer, src=0)
    return bool(answer.item())


def main(path: str) -> int:
    """Fork the ranks of a job and wait for them; returns 1 where one failed or none came to an end in time."""
    job = json.loads(Path(path).read_text())
    out = Path(path).parent
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    children = set()
    for rank in range(job["world_size"]):
        child = os.fork()
        if child == 0:
            run_rank(job, rank, out)
        children.add(child)
    failed = not _waited(children, time.monotonic() + job["limit_seconds"], lambda: not list(out.glob("*.error")))
    for error in sorted(out.glob("*.error")):
        print(error.name, error.read_text(), file=sys.stderr)
    if failed and not list(out.glob("*.error")):
        print(f"the ranks did not end within {job['limit_seconds']:g} s", file=sys.stderr)
    return int(failed)


def _waited(children: set[int], deadline: float, is_well: Callable[[], bool]) -> bool:
    """Wait until all children have ended; kill those that are left where one failed, or at the deadline."""
    while children and is_well() and time.monotonic() < deadline:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(_POLL_SECONDS)
            continue
        children.discard(child)
        if status != 0:
            break
    else:
        if not children:
            return is_well()
    for child in children:
        os.kill(child, signal.SIGKILL)
    return False
