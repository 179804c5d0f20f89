"""Times FBGEMM's embedding kernels on one GPU, shape by shape: what the random design of ``shardplan measure`` lacks.

    python benchmarks/prices/gpu_launches.py --out launches.csv

All tables of a launch are alike, so that each number of a law shows: columns from 4 to 512, bags of one id and of 20,
uniform and skewed ids, sequences, optimizers, tiny launches, rows in host memory and caches before them.
Needs a CUDA device, PyTorch and FBGEMM, and takes a minute. The rows have the columns of the shared format of
launches, which ``benchmarks/reality.py --data FOLDER`` predicts.

Times are medians by events of the stream, with a filled queue and without rows of earlier laps in the L2. ``fwd_ms``
includes the prefetch of a cache.
"""

import argparse
import csv
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

_COLUMNS = (
    *("backend", "gpu", "tables", "rows_per_table", "dim", "batch_per_table", "lookups", "unique_lookups", "hotness"),
    *("pooling", "weights_dtype", "output_dtype", "optimizer", "kernel_location", "cache_load_factor", "alpha"),
    *("fwd_ms", "bwd_ms", "source"),
)
_WARM_UPS, _LAPS, _BATCHES = 2, 9, 3
_LOCATIONS = {"DEVICE": "DEVICE", "UVM": "MANAGED", "UVM_CACHING": "MANAGED_CACHING"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Tables of one shape that one launch looks up."""

    tables: int = 4
    rows: int
    columns: int
    batch: int
    pooling: int
    alpha: float
    location: str = "DEVICE"
    optimizer: str = "rowwise_adagrad"
    data_type: str = "fp32"
    is_pooled: bool = True
    cache_load_factor: float = 0.0


def launches() -> Iterator[Launch]:
    """Yield what is timed."""
    for tables in (1, 4, 16, 64):
        for batch in (1, 64, 512):
            yield Launch(tables=tables, rows=10_000, columns=64, batch=batch, pooling=4, alpha=0.0)
    for data_type in ("fp32", "fp16"):
        for columns in (4, 8, 16, 32, 64, 128, 256, 512):
            rows = min(10_000_000, 250_000_000 // columns)
            for alpha in (0.0, 1.05):
                yield Launch(rows=rows, columns=columns, batch=16_384, pooling=20, alpha=alpha, data_type=data_type)
            yield Launch(
                tables=8, rows=rows, columns=columns, batch=131_072, pooling=1, alpha=1.05, data_type=data_type
            )
    for columns in (16, 64, 128):
        for alpha in (0.0, 1.05):
            shape: dict[str, Any] = {"rows": 2_000_000, "columns": columns, "batch": 8_192, "pooling": 20}
            yield Launch(**shape, alpha=alpha)
            yield Launch(**shape, alpha=alpha, optimizer="adam")
            yield Launch(**shape, alpha=alpha, is_pooled=False)
    for columns in (16, 64, 128, 256):
        for alpha in (0.0, 1.05):
            for pooling in (1, 10):
                shape = {"rows": 64_000_000 // columns, "columns": columns, "batch": 8_192, "pooling": pooling}
                yield Launch(**shape, alpha=alpha, location="UVM")
                for share in (0.1, 0.3):
                    yield Launch(**shape, alpha=alpha, location="UVM_CACHING", cache_load_factor=share)


def time_launch(launch: Launch, gpu: str) -> dict[str, object]:
    """Return a launch with its times as a row of the shared format."""
    import torch

    from api.cli.measuring.ids import draw_ids
    from api.cli.measuring.stopwatch import Stopwatch

    module, is_cached = _module(launch), launch.location == "UVM_CACHING"
    generator = torch.Generator(device="cuda").manual_seed(1)
    per_table = launch.batch * launch.pooling
    batches = [
        [draw_ids(launch.rows, launch.alpha, per_table, generator, "cuda") for _ in range(launch.tables)]
        for _ in range(_BATCHES)
    ]
    offsets = torch.arange(0, launch.tables * per_table + 1, launch.pooling, device="cuda")
    outputs = (launch.batch, launch.tables * launch.columns)
    if not launch.is_pooled:
        outputs = (launch.tables * per_table, launch.columns)
    gradient = torch.full(outputs, 1e-3, device="cuda")
    watch = Stopwatch("cuda")
    laps = []
    for lap in range(_WARM_UPS + _LAPS):
        ids = torch.cat(batches[lap % _BATCHES])
        prefetched = watch.time(lambda ids=ids: module.prefetch(ids, offsets))[1] if is_cached else lambda: 0.0
        sums, forward_lap = watch.time(lambda ids=ids: module(ids, offsets))
        _, backward_lap = watch.time(lambda sums=sums: sums.backward(gradient))
        laps.append((prefetched, forward_lap, backward_lap))
    watch.finish()
    before, forward, backward = (statistics.median(lap[part]() for lap in laps[_WARM_UPS:]) for part in range(3))
    distinct = sum(len(ids.unique()) for batch in batches for ids in batch) / _BATCHES
    return {
        "backend": "fbgemm_tbe",
        "gpu": gpu,
        "tables": launch.tables,
        "rows_per_table": launch.rows,
        "dim": launch.columns,
        "batch_per_table": launch.batch if launch.is_pooled else per_table,
        "lookups": launch.tables * per_table,
        "unique_lookups": f"{distinct:.6g}",
        "hotness": launch.pooling,
        "pooling": "sum" if launch.is_pooled else "none",
        "weights_dtype": launch.data_type,
        "output_dtype": "fp32",
        "optimizer": launch.optimizer,
        "kernel_location": launch.location,
        "cache_load_factor": launch.cache_load_factor or "",
        "alpha": launch.alpha,
        "fwd_ms": f"{(before + forward) * 1e3:.6g}",
        "bwd_ms": f"{backward * 1e3:.6g}",
        "source": "benchmarks/prices/gpu_launches.py",
    }


def _module(launch: Launch) -> Any:
    import torch
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as training
    from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import CacheAlgorithm, EmbeddingLocation, PoolingMode

    location = EmbeddingLocation[_LOCATIONS[launch.location]]
    optimizers = {"rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "adam": EmbOptimType.ADAM}
    cache: dict[str, Any] = {}
    if launch.location == "UVM_CACHING":
        cache = {"cache_load_factor": launch.cache_load_factor, "cache_algorithm": CacheAlgorithm.LRU}
    module = training.SplitTableBatchedEmbeddingBagsCodegen(
        [(launch.rows, launch.columns, location, training.ComputeDevice.CUDA)] * launch.tables,
        optimizer=optimizers[launch.optimizer],
        learning_rate=0.01,
        eps=1e-8,
        pooling_mode=PoolingMode.SUM if launch.is_pooled else PoolingMode.NONE,
        weights_precision=SparseType.FP16 if launch.data_type == "fp16" else SparseType.FP32,
        stochastic_rounding=False,
        output_dtype=SparseType.FP32,
        device=torch.device("cuda"),
        **cache,
    )
    for weights in module.split_embedding_weights():
        weights.fill_(0.01)
    return module


def main(arguments: Sequence[str] | None = None) -> None:
    """Time every launch and write its row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    given = parser.parse_args(arguments)
    import torch

    if not torch.cuda.is_available():
        parser.error("there is no CUDA device here")
    gpu = torch.cuda.get_device_name(0)
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        for launch in launches():
            writer.writerow(time_launch(launch, gpu))
            file.flush()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
