"""What the launcher's handshake takes: ranks on this machine, gloo, a plan of many tables.

A handshake happens once per start of a job. Each one is timed from a barrier to the last rank's
answer, with the processor time of rank 0, which other work on the machine does not stretch; the
parts are timed on rank 0 alone.

    python benchmarks/service/handshake_cost.py [--tables 1000] [--ranks 4] [--repeats 20]
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from api.client import parse_plan
from api.client.model_check import plan_differences
from api.client.torchrec import handshake, live_tables, read_memory, spec_from_model
from api.specs.parse import parse_spec
from planner.domain.formats.compact_form import long_parts
from planner.output.exporters.generic import to_document
from planner.pipeline import plan as solve

ROWS, COLUMNS = (2_000, 50_000, 1_000_000, 8_000_000), (16, 32, 64, 128)


def model_of(num_tables: int) -> nn.Module:
    """Tables of all sizes on the meta device."""
    tables = [
        EmbeddingBagConfig(
            name=f"table_{index}",
            num_embeddings=ROWS[index % len(ROWS)],
            embedding_dim=COLUMNS[index // len(ROWS) % len(COLUMNS)],
            feature_names=[f"feature_{index}"],
        )
        for index in range(num_tables)
    ]
    return nn.ModuleDict({"sparse": EmbeddingBagCollection(tables=tables, device=torch.device("meta"))})


def plan_of(model: nn.Module, num_ranks: int) -> bytes:
    """A plan of the model on one host, as the service serves it."""
    spec = spec_from_model(
        model,
        batch_size_per_rank=1024,
        hardware={
            "profile": "dgx-h100-80g",
            "num_hosts": 1,
            "ranks_per_host": num_ranks,
            "overrides": {"hbm_bytes": 1e12},  # so that any number of tables fits on any number of ranks
        },
        default_pooling_factor=4.0,
        optimizer="rowwise_adagrad",
    )
    request = parse_spec(json.dumps({**spec, "solver": {"partitioner": "greedy"}}).encode())
    result = solve(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    if result.plan is None:
        raise AssertionError(f"no plan: {result.reason}")
    document = to_document(
        result.plan, name="handshake", spec_digest=request.spec_digest, hardware_profile=request.hardware_profile
    )
    return b"".join(long_parts(document))


def plenty(device: str) -> object:
    """The time of reading the memory, with an answer in which every plan fits."""
    found = read_memory(device)
    return type(found)(
        device_pool="device",
        device_free_bytes=1 << 60,
        device_total_bytes=1 << 60,
        host_pool="host",
        host_free_bytes=1 << 60,
        host_total_bytes=1 << 60,
    )


def run_rank(rank: int, arguments: argparse.Namespace, content: bytes, folder: str) -> None:
    """Time the handshakes as one rank, and print them on rank 0; never returns."""
    torch.set_num_threads(1)
    os.environ |= {"LOCAL_WORLD_SIZE": str(arguments.ranks), "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank, world_size=arguments.ranks)
    model = model_of(arguments.tables)
    tables = live_tables(model)

    def agree(plan: bytes | Callable[[], bytes]) -> None:
        if handshake(plan, module=model, device="cpu", free_memory=plenty).verdict != "go":
            raise AssertionError("Expected a plan that fits.")

    def gather() -> None:
        dist.all_gather_object([None] * arguments.ranks, "x" * 1_000)

    document, digest = parse_plan(content)
    parts: dict[str, tuple[bool, Callable[[], object]]] = {
        "handshake, rank 0 has the plan": (True, lambda: agree(lambda: content)),
        "handshake, every rank has it": (True, lambda: agree(content)),
        "one exchange of 1 KB": (True, gather),
        "rank 0: read the model": (False, lambda: live_tables(model)),
        "rank 0: parse the plan": (False, lambda: parse_plan(content)),
        "rank 0: judge the plan": (
            False,
            lambda: plan_differences(
                document, tables, digest=digest, world_size=arguments.ranks, ranks_per_host=arguments.ranks
            ),
        ),
    }
    for name, (together, call) in parts.items():
        seconds, busy = [], []
        for _ in range(arguments.repeats):
            dist.barrier()
            start, processor = time.perf_counter(), time.process_time()
            if together or rank == 0:
                call()
            busy.append(time.process_time() - processor)
            if together:
                dist.barrier()
            seconds.append(time.perf_counter() - start)
        if rank == 0:
            of_rank, of_all, longest = (1e3 * value for value in (median(busy), median(seconds), max(seconds)))
            print(f"{name:<32} median {of_all:8.1f} ms, longest {longest:8.1f} ms; processor time {of_rank:7.1f} ms")
    dist.barrier()
    os._exit(0)  # gloo may hang when it is torn down


def main() -> None:
    """Parse the command line, plan, and start the ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    content = plan_of(model_of(arguments.tables), arguments.ranks)
    shards = sum(len(table["shards"]) for table in parse_plan(content)[0]["tables"])
    print(
        f"{arguments.tables} tables, {shards} shards, {len(content) / 1e6:.2f} MB, {arguments.ranks} ranks", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(arguments.ranks):
            child = os.fork()
            if child == 0:
                run_rank(rank, arguments, content, str(Path(folder)))
            children.append(child)
        failed = [child for child in children if os.waitpid(child, 0)[1]]
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
