"""Saves and loads checkpoints of TorchRec under plans: ``python -m tests.support.torchrec.checkpoints JOB``.

Each number that is saved says which cell it belongs to, or which row of which column piece, so that a rank sees from
its own plan whether it has read what is its own. Like :mod:`tests.support.torchrec.ranks`, one process per rank.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.optim import _apply_optimizer_in_backward
from torch.distributed.tensor import DTensor
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.types import ShardingEnv
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from tests.support.paths import ROOT
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.ranks import Model, sharding_plan
from tests.support.torchrec.replicas import in_groups

OPTIMIZERS = {"sgd": torch.optim.SGD, "rowwise_adagrad": RowWiseAdagrad, "adagrad": torch.optim.Adagrad}
_UNREAD = -1.0
_TIMEOUT_SECONDS = 240

Tensors = dict[str, ShardedTensor | DTensor | torch.Tensor]


def run(
    *, tables: Sequence[TableSpec], plan: Mapping[str, object], optimizer: str, loads: bool, folder: Path
) -> dict[str, str]:
    """Save a checkpoint in a folder, or load the one that is there; returns what became of every tensor of a load."""
    job = {
        "tables": [
            {"name": t.name, "rows": t.rows, "columns": t.columns, "features": t.features, "scheme": t.scheme}
            for t in tables
        ],
        "plan": dict(plan),
        "optimizer": optimizer,
        "loads": loads,
        "folder": str(folder),
    }
    path = folder / f"{'load' if loads else 'save'}.json"
    path.write_text(json.dumps(job))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}
    without_asserts = ["-O"] if "replica_groups" in plan else []  # that devices are GPUs
    command = [sys.executable, *without_asserts, "-m", "tests.support.torchrec.checkpoints", str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
    )
    errors = [error.read_text() for error in sorted(folder.glob("*.error"))]
    if done.returncode != 0 or errors:
        raise AssertionError(f"the ranks failed:\n{errors}\n{done.stderr[-4000:]}")
    return json.loads((folder / "outcome.json").read_text()) if loads else {}


def main(job_path: str) -> int:
    """Fork the ranks and wait for them."""
    job = json.loads(Path(job_path).read_text())
    children = []
    for rank in range(_of_job(job)["world_size"]):
        child = os.fork()
        if child == 0:
            _run_rank(job, rank)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def _of_job(job: dict) -> dict:
    """The ranks of the job, which are those of the plan unless it is for sharding groups."""
    return job["plan"].get("replica_groups", job["plan"])


def stored_on(folder: Path) -> dict[tuple[str, tuple[int, ...]], int]:
    """Which rank stored each part, by ``TABLE weight`` or ``TABLE STATE`` and its offsets."""
    stored = dcp.FileSystemReader(str(folder / "checkpoint")).read_metadata().storage_data
    return {
        (index.fqn.removeprefix("all."), tuple(index.offset or ())): int(where.relative_path.split("_")[2])
        for index, where in stored.items()
    }


def _run_rank(job: dict, rank: int) -> None:
    folder = Path(job["folder"])
    code = 1
    try:
        torch.set_num_threads(1)
        world_size, local = _of_job(job)["world_size"], _of_job(job)["ranks_per_host"]
        os.environ |= {"LOCAL_WORLD_SIZE": str(local), "LOCAL_RANK": str(rank % local), "RANK": str(rank)}
        rendezvous = f"file://{folder / ('rendezvous-load' if job['loads'] else 'rendezvous-save')}"
        dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world_size)
        tensors, marks = _tensors_of(job)
        if job["loads"]:
            outcome = _load(tensors, marks, folder)
            if rank == 0:
                (folder / "outcome.json").write_text(json.dumps(outcome))
        else:
            for key, tensor in tensors.items():
                for part, mark in zip(_parts(tensor), marks[key], strict=True):
                    part.copy_(mark)
            dcp.save({"all": tensors}, checkpoint_id=str(folder / "checkpoint"))
        dist.barrier()
        code = 0
    except BaseException:
        (folder / f"{rank}.error").write_text(traceback.format_exc())
    os._exit(code)


def _tensors_of(job: dict) -> tuple[Tensors, dict[str, list[torch.Tensor]]]:
    """Weights and optimizer state of a rank, by ``TABLE weight`` or ``TABLE STATE``, and what each part is to hold."""
    tables = [TableSpec(**{**t, "features": tuple(t["features"])}) for t in job["tables"]]
    model = Model(tables)
    settings = {"lr": 0.1}
    _apply_optimizer_in_backward(OPTIMIZERS[job["optimizer"]], model.sparse_arch.parameters(), settings)
    sharders = [EmbeddingBagCollectionSharder()]
    if "replica_groups" in job["plan"]:
        sharded = in_groups(job, model, sharders)
    else:
        sharded = DistributedModelParallel(
            model,
            env=ShardingEnv.from_process_group(dist.group.WORLD),
            device=torch.device("cpu"),
            plan=sharding_plan({"plan": job["plan"], "unchecked": True}, model),
            sharders=sharders,
        )
    tensors: Tensors = {}
    rectangles: dict[str, list[tuple[int, int, int, int]]] = {}
    for name, tensor in sharded.state_dict().items():
        if ".embedding_bags." in name:
            table = name.split(".")[-2]
            tensors[f"{table} weight"] = tensor
            rectangles[table] = _rectangles(tensor)
    for states in sharded.fused_optimizer.state_dict()["state"].values():
        for name, tensor in states.items():
            table, state = name.rsplit(".", 1)
            tensors[f"{table} {state}"] = tensor
    marks = {
        key: [
            _mark(*rectangle, part) for rectangle, part in zip(rectangles[key.split()[0]], _parts(tensor), strict=True)
        ]
        for key, tensor in tensors.items()
    }
    return tensors, marks


def _rectangles(tensor: ShardedTensor | torch.Tensor) -> list[tuple[int, int, int, int]]:
    """(row, column, rows, columns) of every part that the rank has."""
    if isinstance(tensor, ShardedTensor):
        return [(*s.metadata.shard_offsets, *s.metadata.shard_sizes) for s in tensor.local_shards()]
    if isinstance(tensor, DTensor):
        parts = _parts(tensor)
        offsets = tensor.to_local().local_offsets() if parts else []
        return [(*offset, *part.shape) for offset, part in zip(offsets, parts, strict=True)]
    return [(0, 0, *tensor.shape)]


def _mark(row: int, column: int, rows: int, columns: int, part: torch.Tensor) -> torch.Tensor:
    """The number of each cell, or of each row of a column piece."""
    row_numbers = torch.arange(row, row + rows, dtype=torch.float32)
    if part.dim() == 2:
        return 1000 * row_numbers[:, None] + torch.arange(column, column + columns)[None, :]
    return row_numbers + 1000 * column + 100_000 * columns


def _parts(tensor: ShardedTensor | torch.Tensor) -> list[torch.Tensor]:
    if isinstance(tensor, ShardedTensor):
        return [s.tensor for s in tensor.local_shards()]
    return tensor.to_local().local_shards() if isinstance(tensor, DTensor) else [tensor.data]


def _load(tensors: Tensors, marks: dict[str, list[torch.Tensor]], folder: Path) -> dict[str, str]:
    """Load all weights at once, and every tensor of state by itself, on all ranks.

    What became of each: ``read``, ``wrong`` where it has what is another's, or the error.
    """
    for tensor in tensors.values():
        for part in _parts(tensor):
            part.fill_(_UNREAD)
    keys = sorted({key for some in _gathered(sorted(tensors)) for key in some})
    weights = [key for key in keys if key.endswith(" weight")]
    errors = {}
    for together in (weights, *([key] for key in keys if key not in weights)):
        mine = {key: tensors[key] for key in together if key in tensors}
        try:
            dcp.load({"all": mine}, checkpoint_id=str(folder / "checkpoint"))
        except dcp.api.CheckpointException as error:
            errors |= dict.fromkeys(together, "; ".join(sorted({str(one[0]) for one in error.failures.values()})))
    wrong = {
        key
        for some in _gathered([key for key, tensor in tensors.items() if not _is_right(tensor, marks[key])])
        for key in some
    }
    return {key: errors.get(key) or ("wrong" if key in wrong else "read") for key in keys}


def _is_right(tensor: ShardedTensor | torch.Tensor, marks: list[torch.Tensor]) -> bool:
    return all(torch.equal(part, mark) for part, mark in zip(_parts(tensor), marks, strict=True))


def _gathered(value: object) -> list:
    gathered: list = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, value)
    return gathered


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
