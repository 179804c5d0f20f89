"""Trains the cases of a job with real TorchRec, one process per rank: ``python -m tests.support.torchrec.ranks JOB``.

TorchRec is imported once; the ranks are forks of that process. Results are files, and every
rank leaves with ``os._exit``, because gloo can hang when it is torn down.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.optim import _apply_optimizer_in_backward
from torch.distributed.tensor import DTensor
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fp_embeddingbag import FeatureProcessedEmbeddingBagCollectionSharder
from torchrec.distributed.mc_embedding import ManagedCollisionEmbeddingCollectionSharder
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.types import ShardingEnv, ShardingPlan
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from api.client.index_dedup import embedding_collection_sharder_arguments
from api.client.torchrec import handshake, live_tables
from api.client.torchrec.plan import assemble
from tests.support.torchrec import unique_ids
from tests.support.torchrec.fully_sharded import HELD
from tests.support.torchrec.model import (
    ADAGRAD_EPSILON,
    DENSE_LEARNING_RATE,
    LEARNING_RATES,
    Bags,
    TableSpec,
    batches,
    dense_weights,
    initial_weights,
    is_of_slots,
    is_sequence,
    is_weighted,
    lookups,
    raw_ids,
)
from tests.support.torchrec.modules import ids_of, make_room, module_of
from tests.support.torchrec.replicas import in_groups
from tests.support.torchrec.shakes import shake
from tests.support.torchrec.timings import Timing, pipeline

#: After this many seconds without an end the ranks are killed.
LIMIT_SECONDS = 240


class Model(nn.Module):
    """Embedding modules under ``sparse_arch``, and one dense layer over all pooled outputs."""

    def __init__(self, tables: list[TableSpec]) -> None:
        super().__init__()
        self.tables = tables
        self.sparse_arch = nn.Module()
        by_path: dict[str, list[TableSpec]] = defaultdict(list)
        for table in tables:
            by_path[table.module_path].append(table)
        for path, members in by_path.items():
            module = module_of(path, members, initial_weights(tables))
            setattr(self.sparse_arch, path.removeprefix("sparse_arch."), module)
        self.dense = nn.Linear(sum(t.columns for t, _, _ in lookups(tables)), 1, bias=False)

    def forward(self, inputs: dict[str, KeyedJaggedTensor]) -> torch.Tensor:
        """One number per sample."""
        pooled = {path: pooled_by_key(self.get_submodule(path)(features), path) for path, features in inputs.items()}
        return self.dense(torch.cat([pooled[t.module_path][key] for t, _, key in lookups(self.tables)], dim=1)).squeeze(
            1
        )


def pooled_by_key(output: KeyedTensor | dict[str, JaggedTensor], path: str) -> dict[str, torch.Tensor]:
    """One row per sample; of a sequence each row counts by its position, so that their order matters."""
    if is_of_slots(path):
        output, _ = output  # remapped features come with it
    if not is_sequence(path):
        return output.to_dict()
    pooled = {}
    for key, sequence in output.items():
        lengths = sequence.lengths()
        sample = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        position = torch.arange(len(sample)) - (lengths.cumsum(0) - lengths)[sample]
        rows = sequence.values() / (1 + position).unsqueeze(1)
        pooled[key] = torch.zeros(len(lengths), rows.shape[1]).index_add(0, sample, rows)
    return pooled


def main(job_path: str) -> int:
    """Fork the ranks, wait for them, and say whether all went well."""
    job = json.loads(Path(job_path).read_text())
    children = {}
    for rank in range(job["world_size"]):
        child = os.fork()
        if child == 0:
            run_rank(job, rank)
        children[child] = rank
    deadline = time.monotonic() + LIMIT_SECONDS
    failed = False
    while children and not failed and time.monotonic() < deadline:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.05)
        else:
            del children[child]
            failed = status != 0
    for child in children:
        os.kill(child, signal.SIGKILL)
    for error in sorted(Path(job["out"]).glob("*.error")):
        print(error.name, error.read_text(), file=sys.stderr)
    if children and not failed:
        print(f"ranks {sorted(children.values())} did not end in {LIMIT_SECONDS} s", file=sys.stderr)
    return 1 if failed or children else 0


def run_rank(job: dict, rank: int) -> None:
    """Train every case as one rank; never returns."""
    out = Path(job["out"])
    code = 1
    try:
        torch.set_num_threads(1)
        local = job["ranks_per_host"]
        os.environ |= {"LOCAL_WORLD_SIZE": str(local), "LOCAL_RANK": str(rank % local), "RANK": str(rank)}
        if job["pod_size"] is not None:
            os.environ["TORCHREC_RESOLVED_POD_SIZE"] = str(job["pod_size"] // local)
        rendezvous = f"file://{out / 'rendezvous'}"
        dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=job["world_size"])
        for case in job["cases"]:
            np.savez(out / f"{case['name']}.{rank}.npz", **train(case, rank, out))
        for document in job["shakes"]:
            (out / f"{document['name']}.{rank}.json").write_text(json.dumps(shake(document, rank, Model)))
        for name, timed in job["pipelines"].items():
            (out / f"{name}.{rank}.json").write_text(json.dumps(pipeline(rank, timed=timed)))
        dist.barrier()
        code = 0
    except BaseException:
        (out / f"{rank}.error").write_text(traceback.format_exc())
    os._exit(code)


def train(case: dict, rank: int, out: Path) -> dict[str, np.ndarray]:
    """Train one case; returns its losses, its dense weights and the rank's shards."""
    tables = [TableSpec(**{**t, "features": tuple(t["features"])}) for t in case["tables"]]
    model = Model(tables)
    optimizer = {"sgd": torch.optim.SGD, "rowwise_adagrad": RowWiseAdagrad}[case["optimizer"]]
    settings = {"lr": LEARNING_RATES[case["optimizer"]]} | (
        {"eps": ADAGRAD_EPSILON} if optimizer is RowWiseAdagrad else {}
    )
    # A copy, because TorchRec writes into the dictionary that it is given.
    in_tables = [p for name, p in model.sparse_arch.named_parameters() if "_feature_processors" not in name]
    _apply_optimizer_in_backward(optimizer, in_tables, dict(settings))
    sharders = [
        EmbeddingBagCollectionSharder(),
        EmbeddingCollectionSharder(**embedding_collection_sharder_arguments(case["plan"])),
        FeatureProcessedEmbeddingBagCollectionSharder(),
        ManagedCollisionEmbeddingBagCollectionSharder(),
        ManagedCollisionEmbeddingCollectionSharder(),
    ]
    if case["plan"].get("use_index_dedup"):
        unique_ids.register()
    groups = case["plan"].get("replica_groups")
    if groups is None:
        sharded = DistributedModelParallel(
            model,
            env=ShardingEnv.from_process_group(dist.group.WORLD),
            device=torch.device("cpu"),
            plan=sharding_plan(case, model),
            sharders=sharders,
        )
    else:
        sharded = in_groups(case, model, sharders)
    set_weights(sharded, tables)
    make_room(sharded)
    outside = dict(in_backward_optimizer_filter(sharded.named_parameters()))
    dense = [p for name, p in outside.items() if not name.startswith("sparse_arch.")]
    # Tables with the dense kernel, which the fused optimizer does not reach; ranks without a
    # part of such a table have an empty parameter in its place.
    unfused = [p for name, p in outside.items() if name.startswith("sparse_arch.") and p.numel()]
    steppers: list[torch.optim.Optimizer] = [torch.optim.SGD(dense, lr=DENSE_LEARNING_RATE)]
    steppers += [optimizer(unfused, **settings)] if unfused and not case["fused_only"] else []
    losses, received = [], unique_ids.ReceivedIds(sharded)
    timing = Timing(case["name"], case["timed"], sharded, out) if case.get("timed") else None
    for bags, labels in batches(tables, dist.get_world_size()):
        part = slice(rank * len(labels) // dist.get_world_size(), (rank + 1) * len(labels) // dist.get_world_size())
        inputs = {path: features_of(path, tables, bags, rank) for path in dict.fromkeys(t.module_path for t in tables)}
        with timing.step() if timing else nullcontext():
            loss = (sharded(inputs) - torch.tensor(labels[part])).square().mean()
            for stepper in steppers:
                stepper.zero_grad()
            if timing:
                timing.before_backward()
            loss.backward()
        for stepper in steppers:
            stepper.step()
        if groups is not None and case["averages"]:
            sharded.sync(groups["include_optimizer_state"])
        losses.append(loss.item())
    if timing:
        timing.write()
    if case.get("fully_sharded"):
        (out / f"{case['name']}.{rank}.json").write_text(json.dumps(HELD))
    elif not timing:
        (out / f"{case['name']}.{rank}.json").write_text(json.dumps(received.by_type))
    return {
        "losses": np.array(losses),
        "dense": dense[0].detach().numpy(),
        **shards_of(sharded),
        **ids_of(sharded, tables),
    }


def sharding_plan(case: dict, model: Model) -> ShardingPlan:
    """The plan as a launcher gets it; ``unchecked`` goes round the checks to show what they prevent."""
    content = json.dumps(case["plan"]).encode()
    if not case.get("unchecked"):
        return handshake(lambda: content, module=model, device="cpu").sharding_plan()
    planned = {table["name"]: table for table in case["plan"]["tables"]}
    by_path = defaultdict(list)
    for table in live_tables(model):
        if table.name in planned:
            by_path[planned[table.name].get("module_path", table.module_path)].append((planned[table.name], table))
    return assemble(by_path, device="cpu", ranks_per_host=case["plan"]["ranks_per_host"])


def features_of(path: str, tables: list[TableSpec], bags: dict[tuple[str, str], Bags], rank: int) -> KeyedJaggedTensor:
    """One module's input for this rank's samples."""
    keys = list(dict.fromkeys(f for t in tables if t.module_path == path for f in t.features))
    parts = [bags[path, key].part(rank) for key in keys]
    ids = np.concatenate([p.ids for p in parts])
    return KeyedJaggedTensor(
        keys=keys,
        values=torch.tensor(raw_ids(ids) if is_of_slots(path) else ids),
        lengths=torch.tensor(np.concatenate([p.lengths for p in parts])),
        weights=torch.tensor(np.concatenate([p.weights for p in parts])) if is_weighted(path) else None,
    )


def set_weights(sharded: DistributedModelParallel, tables: list[TableSpec]) -> None:
    """Give every shard its rectangle of the initial weights."""
    initial, with_slots = initial_weights(tables), {t.name: (t.slots, t.columns) for t in tables if t.slots}
    with torch.no_grad():
        for table, (row, column), part in local_parts(sharded):
            rows, columns = part.shape
            whole = (
                initial[table] if table not in with_slots else np.broadcast_to(initial[table][:1], with_slots[table])
            )
            part.copy_(torch.tensor(whole[row : row + rows, column : column + columns]))
        sharded.module.dense.weight.copy_(torch.tensor(dense_weights(tables)))


def shards_of(sharded: DistributedModelParallel) -> dict[str, np.ndarray]:
    """``table/row/column`` -> the rank's weights of that rectangle."""
    return {f"{table}/{row}/{column}": part.detach().numpy() for table, (row, column), part in local_parts(sharded)}


def local_parts(sharded: DistributedModelParallel) -> list[tuple[str, tuple[int, int], torch.Tensor]]:
    """(table, offsets, weights) of everything that this rank holds, by TorchRec's own metadata."""
    found = []
    for name, value in sharded.state_dict().items():
        if ".embedding_bags." not in name and ".embeddings." not in name:
            continue
        table = name.split(".")[-2]
        if isinstance(value, DTensor):
            shards = value.to_local()
            parts = shards.local_shards()  # of a rank without any, the offsets are those of nothing
            offsets = shards.local_offsets() if parts else []
            found += [(table, tuple(offset), part) for offset, part in zip(offsets, parts, strict=True)]
        elif isinstance(value, ShardedTensor):
            found += [(table, tuple(s.metadata.shard_offsets), s.tensor) for s in value.local_shards()]
        else:
            found.append((table, (0, 0), value))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
