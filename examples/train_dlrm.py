"""DLRM on made-up Criteo data, planned by TorchRec, or by shardplan: one line differs.

    torchrun --nproc-per-node 2 examples/train_dlrm.py --planner torchrec
    torchrun --nproc-per-node 2 examples/train_dlrm.py --planner shardplan --server http://127.0.0.1:8080

Where no service answers, the second plans on this machine, if ``shardplan`` is installed on it. With ``--measure`` it
times its phases and sends them to the service, which puts them next to the plan's prediction. Runs on CPU with gloo;
the plan is for GPUs all the same.
"""

import argparse
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from shardplan_client import ClientError, PlannerClient
from shardplan_client.torchrec import PhaseTimes, ServicePlanner
from torch.distributed.optim import _apply_optimizer_in_backward
from torchrec.datasets.criteo import DEFAULT_CAT_NAMES, DEFAULT_INT_NAMES
from torchrec.datasets.random import RandomRecDataset
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

BATCH_SIZE = 128
DIMENSION = 16
#: Rows of the 26 tables: Criteo's mix of long and short ones, small enough for a CPU.
ROWS = [
    *(40_000, 3_000, 12_000, 200, 17_000, 3, 7_000, 1_500, 63, 20_000, 30_000, 4_000, 10),
    *(2_200, 1_100, 150, 4, 970, 15, 35_000, 25_000, 39_000, 9_000, 12_000, 108, 36),
]
LEARNING_RATE = 0.05


def dlrm() -> DLRMTrain:
    """The model on the meta device, its tables with the optimizer that the fused kernels run."""
    tables = [
        EmbeddingBagConfig(name=f"t_{name}", num_embeddings=rows, embedding_dim=DIMENSION, feature_names=[name])
        for name, rows in zip(DEFAULT_CAT_NAMES, ROWS, strict=True)
    ]
    collection = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
    _apply_optimizer_in_backward(RowWiseAdagrad, collection.parameters(), {"lr": LEARNING_RATE})
    return DLRMTrain(
        DLRM(
            embedding_bag_collection=collection,
            dense_in_features=len(DEFAULT_INT_NAMES),
            dense_arch_layer_sizes=[32, DIMENSION],
            over_arch_layer_sizes=[32, 1],
        )
    )


def batches(rank: int) -> RandomRecDataset:
    """Made-up samples of one rank."""
    return RandomRecDataset(
        keys=DEFAULT_CAT_NAMES,
        batch_size=BATCH_SIZE,
        hash_sizes=ROWS,
        ids_per_features=[1] * len(ROWS),
        num_dense=len(DEFAULT_INT_NAMES),
        manual_seed=rank,
    )


def report(times: PhaseTimes, server: str, plan_digest: str) -> None:
    """Post the times, and print what was predicted next to them; a job does not fail for want of it."""
    try:
        with PlannerClient(server) as client:
            summary = times.post(client, plan_digest)
    except ClientError as error:
        lines = [f"not measured: {error}"]
    else:
        lines = [
            f"{one['phase']:16}  measured {one['observed_seconds']:.6f} s  predicted {one['predicted_seconds']:.6f} s"
            for one in summary["comparison"]["phases"]
        ]
        lines += [f"{phase}: not timed, for {why}" for phase, why in times.not_timed.items()]
        lines.append(f"stored as {summary['measurements_digest']}")
    if dist.get_rank() == 0:
        print("\n".join(lines), flush=True)


def main() -> None:
    """Plan, shard, train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planner", choices=("torchrec", "shardplan"), default="shardplan")
    parser.add_argument("--server", default="http://127.0.0.1:8080")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help="time the phases and post them to --server")
    given = parser.parse_args()
    if given.measure and given.planner != "shardplan":
        parser.error("--measure needs a plan of --planner shardplan: times are posted with its digest")
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    topology = Topology(
        world_size=world_size, local_world_size=int(os.environ["LOCAL_WORLD_SIZE"]), compute_device="cpu"
    )
    if given.planner == "torchrec":
        planner = EmbeddingShardingPlanner(topology=topology, batch_size=BATCH_SIZE)
    else:
        planner = ServicePlanner(given.server, hardware="dgx-h100-80g", topology=topology, batch_size=BATCH_SIZE)
    model = dlrm()
    plan = planner.collective_plan(model, [EmbeddingBagCollectionSharder()], dist.group.WORLD)
    if rank == 0 and given.planner == "shardplan":
        print(f"planned by the {'service' if planner.source == 'service' else 'command on this machine'}", flush=True)
    sharded = DistributedModelParallel(model, device=torch.device("cpu"), plan=plan)
    outside = [parameter for _, parameter in in_backward_optimizer_filter(sharded.named_parameters())]
    optimizer = torch.optim.SGD([parameter for parameter in outside if parameter.numel()], lr=LEARNING_RATE)
    times = PhaseTimes(sharded, warmup_steps=min(10, given.steps // 2)) if given.measure else None
    for step, batch in zip(range(given.steps), batches(rank), strict=False):
        with times.step() if times else nullcontext():
            loss, _ = sharded(batch)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}  loss {loss.item():.4f}", flush=True)
    if times is not None:
        report(times, given.server, planner.document["plan_digest"])
    dist.barrier()
    os._exit(0)  # gloo may hang when it is torn down


if __name__ == "__main__":
    main()
