"""Write made-up planning problems of stated size as specs, one file each.

    python benchmarks/inputs/instances.py --out DIR --family torchrec --tables 50 200 --ranks 8 64 [--seed 0 1]
    python benchmarks/inputs/instances.py --out DIR --family roofline --tables 1000 --ranks 128 --fill 0.9 [--seed 0]
    python benchmarks/inputs/instances.py --out DIR --family neuroshard --source META_DLRM_2021 --ranks 4
        [--max-dim 4 128]
        [--made-for 4] [--memory-gib 4]

The same arguments give the same bytes on every platform. A name carries all that made the
instance: family, profile and objective, tables (t), ranks (r), fill in thousandths (f), seed (s);
of a task the ranks it was made for (gpu), greatest width (dim), GiB per rank (m) and number (i).
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import neuroshard_tasks
from benchmarks.inputs.convert_torchrec_golden import to_spec
from benchmarks.inputs.draws import choices, normals, uniforms
from benchmarks.inputs.meta_like import UNUSED_ROWS, draw_tables
from cost_models.hardware.profiles_loader import load_profile

RANKS_PER_HOST = 8
GIBIBYTE = 1024**3
BATCH_OF_ALL_RANKS = 65_536  # the golden instances, and the batches of Meta's data set
LEAST_BATCH_PER_RANK = 512  # torchrec golden instances of 128 ranks; Neo's local batch
RESERVED_FRACTION = 0.15  # TorchRec's default margin
HALF_SHARE = 0.25  # of the golden tables are fp16
ELEMENT_BYTES = {"fp32": 4, "fp16": 2}

# The golden instances synth_50_8, synth_50_16 and synth_200_16, whose distributions these are:
TORCHREC_DIMS = (16, 32, 64, 128, 256)
TORCHREC_DIM_SHARES = (0.05, 0.15, 0.35, 0.30, 0.15)
TORCHREC_ONE_HOT_SHARE = 0.5
TORCHREC_LEAST_POOLING, TORCHREC_MOST_POOLING = 2.0, 200.0  # of the others: Pareto with exponent 1
TORCHREC_ROWS_SIGMA = 2.2  # log-normal
TORCHREC_LEAST_ROWS, TORCHREC_MOST_ROWS = 1e3, 1e8
TORCHREC_FILL = (0.50, 0.66)  # weights over memory of the cluster
TORCHREC_MOST_FILL_OF_LIMIT = 0.5  # weights, where all rows at their most would still be few for the cluster
TORCHREC_HBM_GIB, TORCHREC_DDR_GIB = 80, 128

ROWWISE_ADAGRAD_ROW_BYTES = 4


def hosts(num_ranks: int) -> tuple[int, int]:
    """Hosts and ranks per host of a cluster of ``num_ranks``.

    Raises
    ------
    ValueError
        More than one host, and not whole hosts.
    """
    if num_ranks > RANKS_PER_HOST and num_ranks % RANKS_PER_HOST:
        raise ValueError(f"{num_ranks} ranks are no multiple of {RANKS_PER_HOST} per host")
    return max(1, num_ranks // RANKS_PER_HOST), min(num_ranks, RANKS_PER_HOST)


def batch_per_rank(num_ranks: int) -> int:
    """Samples per rank and step."""
    return max(LEAST_BATCH_PER_RANK, BATCH_OF_ALL_RANKS // num_ranks)


def torchrec_instance(*, num_tables: int, num_ranks: int, seed: int) -> dict[str, Any]:
    """Make an instance in the format of TorchRec's golden files, of the same distributions.

    Rows are scaled until the weights fill a drawn share of the cluster's memory. Where so few
    tables cannot fill it, they fill half of what they would with all rows at their most.
    """
    num_hosts, ranks_per_host = hosts(num_ranks)
    rng = np.random.default_rng([seed, num_tables, num_ranks])
    log_rows = TORCHREC_ROWS_SIGMA * normals(rng, num_tables)
    dims = np.array(TORCHREC_DIMS)[choices(rng, num_tables, TORCHREC_DIM_SHARES)]
    half = uniforms(rng, num_tables) < HALF_SHARE
    one_hot = uniforms(rng, num_tables) < TORCHREC_ONE_HOT_SHARE
    many = np.minimum(TORCHREC_LEAST_POOLING / uniforms(rng, num_tables), TORCHREC_MOST_POOLING)
    low, high = TORCHREC_FILL
    drawn_fill = low + (high - low) * float(uniforms(rng, 1)[0])
    row_bytes = dims * np.where(half, ELEMENT_BYTES["fp16"], ELEMENT_BYTES["fp32"])
    cluster_bytes = TORCHREC_HBM_GIB * GIBIBYTE * num_ranks
    most_bytes = float(row_bytes.sum()) * TORCHREC_MOST_ROWS
    wanted_bytes = min(drawn_fill * cluster_bytes, TORCHREC_MOST_FILL_OF_LIMIT * most_bytes)
    rows = _rows_that_weigh(log_rows, row_bytes, wanted_bytes)
    fill = float((rows * row_bytes).sum()) / cluster_bytes
    return {
        "name": f"torchrec-t{num_tables}-r{num_ranks}-f{round(1000 * fill)}-s{seed}",
        "batch_size": batch_per_rank(num_ranks),
        "world_size": num_hosts * ranks_per_host,
        "local_world_size": ranks_per_host,
        "hbm_gb": TORCHREC_HBM_GIB,
        "ddr_gb": TORCHREC_DDR_GIB,
        "intra_bw_gbps": None,
        "inter_bw_gbps": None,
        "tables": [
            {
                "name": f"t{index}",
                "num_embeddings": int(rows[index]),
                "embedding_dim": int(dims[index]),
                "pooling_factor": 1.0 if one_hot[index] else round(float(many[index]), 2),
                "data_type": "fp16" if half[index] else "fp32",
            }
            for index in range(num_tables)
        ],
    }


def torchrec_family(*, num_tables: int, num_ranks: int, seed: int, time_limit_seconds: float = 10.0) -> dict[str, Any]:
    """Make a spec on TorchRec's terms: its estimator, objective, constants and reservation."""
    instance = torchrec_instance(num_tables=num_tables, num_ranks=num_ranks, seed=seed)
    return to_spec(instance, time_limit_seconds=time_limit_seconds)


def meta_family(
    *,
    num_tables: int,
    num_ranks: int,
    fill: float,
    seed: int,
    profile: str = "dgx-h100-80g",
    objective: str = "step_time",
    cost_model: str = "roofline",
    time_limit_seconds: float = 10.0,
) -> dict[str, Any]:
    """Make a spec of Meta-like tables.

    Rows of all but the tiny tables are scaled by one factor, so that weights and optimizer
    state take ``fill`` of what the margin leaves of the cluster's HBM. Buffers come on top.

    Raises
    ------
    ValueError
        A cluster that is not of whole hosts, ``fill`` outside (0, 1], or only tiny tables drawn.
    """
    if not 0 < fill <= 1:
        raise ValueError(f"fill must be in (0, 1], not {fill}")
    num_hosts, ranks_per_host = hosts(num_ranks)
    rng = np.random.default_rng([seed, num_tables, num_ranks])
    tables = draw_tables(rng, num_tables)
    if not np.any(tables.is_scalable):
        raise ValueError(f"{num_tables} tables of seed {seed} are all tiny: none can fill memory; draw more")
    half = uniforms(rng, num_tables) < HALF_SHARE
    row_bytes = tables.dims * np.where(half, ELEMENT_BYTES["fp16"], ELEMENT_BYTES["fp32"]) + ROWWISE_ADAGRAD_ROW_BYTES
    hbm_bytes = load_profile(profile).numbers["hbm_bytes"].value
    wanted_bytes = fill * (1 - RESERVED_FRACTION) * hbm_bytes * num_ranks
    held_bytes = tables.rows * row_bytes
    fixed_bytes = math.fsum(held_bytes[~tables.is_scalable])
    factor = (wanted_bytes - fixed_bytes) / math.fsum(held_bytes[tables.is_scalable])
    rows = np.where(tables.is_scalable, np.maximum(tables.rows * factor, UNUSED_ROWS), tables.rows).round()
    return {
        "schema_version": 1,
        "name": f"{cost_model}-{profile}-{objective}-t{num_tables}-r{num_ranks}-f{round(1000 * fill)}-s{seed}",
        "model": {
            "batch_size_per_rank": batch_per_rank(num_ranks),
            "tables": [
                {
                    "name": f"t{index}",
                    "num_embeddings": int(rows[index]),
                    "embedding_dim": int(tables.dims[index]),
                    "data_type": "fp16" if half[index] else "fp32",
                    "optimizer": "rowwise_adagrad",
                    "pooling_factor": float(tables.pooling_factors[index]),
                    "access": {"zipf_alpha": float(tables.zipf_alphas[index])},
                }
                for index in range(num_tables)
            ],
        },
        "hardware": {"profile": profile, "num_hosts": num_hosts, "ranks_per_host": ranks_per_host},
        "constraints": {"reserved_hbm_fraction": RESERVED_FRACTION},
        "objective": objective,
        "cost_model": cost_model,
        "solver": {"partitioner": "portfolio", "time_limit_seconds": time_limit_seconds, "relative_gap": 0.0},
    }


def _rows_that_weigh(log_rows: np.ndarray, row_bytes: np.ndarray, wanted_bytes: float) -> np.ndarray:
    """Return whole rows in proportion to ``exp(log_rows)``, clipped, that weigh ``wanted_bytes`` in all."""

    def scaled(log_factor: float) -> np.ndarray:
        return np.exp(np.clip(log_rows + log_factor, math.log(TORCHREC_LEAST_ROWS), math.log(TORCHREC_MOST_ROWS)))

    low, high = -60.0, 60.0  # e^±60 takes every table to its least or most rows
    for _ in range(100):
        middle = (low + high) / 2
        if math.fsum(scaled(middle) * row_bytes) > wanted_bytes:
            high = middle
        else:
            low = middle
    return scaled(low).round()


def family(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield every instance that the arguments ask for."""
    if given.family == "neuroshard":
        for num_ranks, max_dim in itertools.product(given.ranks, given.max_dim):
            yield from neuroshard_tasks.specs(
                given.source,
                max_dim=max_dim,
                num_ranks=num_ranks,
                made_for=given.made_for,
                weight_gib_per_rank=given.memory_gib,
            )
        return
    for num_tables, num_ranks, seed in itertools.product(given.tables, given.ranks, given.seed):
        if given.family == "torchrec":
            yield torchrec_family(num_tables=num_tables, num_ranks=num_ranks, seed=seed)
            continue
        for fill in given.fill:
            yield meta_family(
                num_tables=num_tables,
                num_ranks=num_ranks,
                fill=fill,
                seed=seed,
                profile=given.profile,
                objective=given.objective,
            )


def main(arguments: list[str] | None = None) -> int:
    """Write the instances; print one line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the specs")
    parser.add_argument("--family", choices=("torchrec", "roofline", "neuroshard"), required=True)
    parser.add_argument("--tables", type=int, nargs="+", default=[200])
    parser.add_argument("--ranks", type=int, nargs="+", default=[8])
    parser.add_argument("--fill", type=float, nargs="+", default=[0.9], help="roofline: share of usable HBM")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--profile", default="dgx-h100-80g", help="roofline: hardware profile")
    parser.add_argument("--objective", choices=("step_time", "max_rank_time"), default="step_time", help="roofline")
    parser.add_argument("--source", type=Path, help="neuroshard: folder of Meta's tables and of the tasks")
    parser.add_argument("--max-dim", type=int, nargs="+", default=list(neuroshard_tasks.MAX_DIMS))
    parser.add_argument("--made-for", type=int, choices=neuroshard_tasks.RANKS_MADE_FOR, default=4)
    parser.add_argument("--memory-gib", type=int, default=neuroshard_tasks.WEIGHT_GIB_PER_RANK)
    given = parser.parse_args(arguments)
    if given.family == "neuroshard" and given.source is None:
        parser.error("--family neuroshard needs --source")
    given.out.mkdir(parents=True, exist_ok=True)
    for spec in family(given):
        (given.out / f"{spec['name']}.json").write_text(json.dumps(spec, indent=1) + "\n")
        print(f"{spec['name']}.json: {len(spec['model']['tables'])} tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
