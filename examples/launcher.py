"""A training job that gets its sharding plan from shardplan, from the model to the first steps.

Describe the model's tables, plan them, and train under the plan::

    python examples/launcher.py spec --ranks 2 > spec.json
    shardplan plan spec.json -o plan.json
    torchrun --nproc-per-node 2 examples/launcher.py train --plan plan.json

In production the plan comes through a channel: ``train --server http://planner:8080 --channel
ads/ranker/prod``; with ``--replan`` the server solves a new one where the model, the cluster or
the free memory is no longer what the plan was solved for. Runs on CPU with gloo; a real job says
``cuda`` and ``nccl``.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from shardplan_client import PlannerClient
from shardplan_client.torchrec import Handshake, handshake, spec_from_model
from torch import nn
from torch.distributed.optim import _apply_optimizer_in_backward
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

BATCH_SIZE = 64
TABLES = {"user": (20_000, 64), "item": (5_000, 32), "country": (200, 16)}
IDS_PER_SAMPLE = {"user": 1, "item": 8, "country": 1}
LEARNING_RATE = 0.05


class Ranker(nn.Module):
    """Three tables, and one layer over their pooled rows."""

    def __init__(self) -> None:
        super().__init__()
        self.sparse = EmbeddingBagCollection(
            device=torch.device("meta"),  # no full table is ever allocated
            tables=[
                EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=columns, feature_names=[name])
                for name, (rows, columns) in TABLES.items()
            ],
        )
        self.over = nn.Linear(sum(columns for _, columns in TABLES.values()), 1)

    def forward(self, features: KeyedJaggedTensor) -> torch.Tensor:
        """One score per sample."""
        pooled = self.sparse(features).to_dict()
        return self.over(torch.cat([pooled[name] for name in TABLES], dim=1)).squeeze(1)


def ranker() -> Ranker:
    """The model with the optimizer of its tables, which the fused kernels run in the backward pass."""
    model = Ranker()
    _apply_optimizer_in_backward(RowWiseAdagrad, model.sparse.parameters(), {"lr": LEARNING_RATE})
    return model


def spec_for(ranks: int) -> dict[str, object]:
    """The spec of the model on one host."""
    return spec_from_model(
        ranker(),
        batch_size_per_rank=BATCH_SIZE,
        hardware={"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": ranks},
        pooling_factors=IDS_PER_SAMPLE,
        name="example-ranker",
    )


def plan_source(arguments: argparse.Namespace) -> Callable[[], bytes]:
    """How rank 0 gets the bytes of the plan."""
    if arguments.plan:
        return Path(arguments.plan).read_bytes

    def from_channel() -> bytes:
        with PlannerClient(arguments.server) as client:
            plan = client.fetch_channel(arguments.channel, world_size=dist.get_world_size())
            if plan is None:
                raise AssertionError("Expected a plan where no ETag was sent.")
            return plan.received

    return from_channel


def new_plan_source(arguments: argparse.Namespace) -> Callable[[Handshake], bytes] | None:
    """How rank 0 gets a new plan where the one that it has is out of date; None where it shall not."""
    if not arguments.replan:
        return None

    def solve(refused: Handshake) -> bytes:
        print(f"asking for a new plan: {'; '.join(refused.reasons)}", file=sys.stderr, flush=True)
        with PlannerClient(arguments.server) as client:
            return client.plan_of(client.solve(spec_for(dist.get_world_size()))).received

    return solve


def train(load: Callable[[], bytes], replan: Callable[[Handshake], bytes] | None, steps: int) -> None:
    """Train a few steps on made-up clicks."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = ranker()
    agreed = handshake(load, module=model, device="cpu", replan=replan)
    for warning in agreed.warnings if rank == 0 else ():
        print(warning, file=sys.stderr, flush=True)
    sharded = DistributedModelParallel(model, device=torch.device("cpu"), plan=agreed.sharding_plan())
    outside = list(in_backward_optimizer_filter(sharded.named_parameters()))
    tables = [p for name, p in outside if name.startswith("sparse.") and p.numel()]  # the replicated ones
    optimizers = [torch.optim.SGD([p for name, p in outside if name.startswith("over.")], lr=LEARNING_RATE)]
    optimizers += [RowWiseAdagrad(tables, lr=LEARNING_RATE)] if tables else []
    random = torch.Generator().manual_seed(rank)
    for step in range(steps):
        features, clicks = clicked_batch(random)
        loss = nn.functional.binary_cross_entropy_with_logits(sharded(features), clicks)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if rank == 0:
            print(f"step {step}  loss {loss.item():.4f}", flush=True)
    dist.barrier()
    os._exit(0)  # gloo may hang when it is torn down


def clicked_batch(random: torch.Generator) -> tuple[KeyedJaggedTensor, torch.Tensor]:
    """Ids of every table, and clicks of those whose first item is an even one."""
    ids = {
        name: torch.randint(0, rows, (BATCH_SIZE, IDS_PER_SAMPLE[name]), generator=random)
        for name, (rows, _) in TABLES.items()
    }
    features = KeyedJaggedTensor(
        keys=list(ids),
        values=torch.cat([values.flatten() for values in ids.values()]),
        lengths=torch.cat([torch.full((BATCH_SIZE,), values.shape[1]) for values in ids.values()]),
    )
    return features, (ids["item"][:, 0] % 2 == 0).float()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    spec = commands.add_parser("spec", help="write the model's spec")
    spec.add_argument("--ranks", type=int, required=True)
    training = commands.add_parser("train", help="train under a plan (start with torchrun)")
    source = training.add_mutually_exclusive_group(required=True)
    source.add_argument("--plan", help="a plan file")
    source.add_argument("--channel", help="a channel of --server")
    training.add_argument("--server", default="http://127.0.0.1:8080")
    training.add_argument("--replan", action="store_true", help="have --server solve a new plan where this one is old")
    training.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.command == "spec":
        json.dump(spec_for(arguments.ranks), sys.stdout, indent=2)
    else:
        train(plan_source(arguments), new_plan_source(arguments), arguments.steps)


if __name__ == "__main__":
    main()
