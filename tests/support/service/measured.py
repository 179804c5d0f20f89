"""Measured rows of a made-up machine, and models fitted to them: small enough to fit in a moment."""

import functools
import json

import numpy as np

from api.specs.references.learned_model import fit
from cost_models.measurements.json_rows import rows_from_json

DEVICE = "Test GPU"
NUM_LAUNCHES = 60


def benchmark_rows(*, device: str = DEVICE, seed: int = 0, slowdown: float = 1.0) -> list[dict[str, object]]:
    """Lookups of one table at a time, with a noise of 3 %."""
    random, rows = np.random.default_rng(seed), []
    for launch in range(NUM_LAUNCHES):
        columns = int(random.choice([16, 32, 64, 128]))
        num_rows = int(10 ** random.uniform(2, 7.5))
        lookups = float(10 ** random.uniform(3, 6.5))
        distinct = min(lookups, num_rows) * random.uniform(0.3, 0.9)
        noise = slowdown * float(np.exp(0.03 * random.standard_normal()))
        forward = noise * (1e-5 + lookups * columns * 4 / 1e12)
        backward = noise * (2e-5 + distinct * columns * 16 / 1e12)
        rows.append(
            {
                **_machine(device, f"seed0-round{launch}", launch),
                "kind": "lookup",
                "implementation": "fbgemm_tbe",
                "num_ranks": 1,
                "ranks_per_host": 1,
                "table": f"t{launch}",
                "shard_rows": num_rows,
                "shard_columns": columns,
                "element_bytes": 4.0,
                "output_element_bytes": 4.0,
                "optimizer_row_bytes": 4.0,
                "optimizer_element_bytes": 0.0,
                "lookups": lookups,
                "outputs": lookups / 4,
                "distinct_rows": distinct,
                "forward_seconds": forward,
                "backward_seconds": backward,
                "seconds": forward + backward,
            }
        )
    return rows


def exchange_rows(*, device: str = DEVICE, seed: int = 0, slowdown: float = 1.0) -> list[dict[str, object]]:
    """All-to-alls of 2 to 8 ranks; a curve of these takes some seconds to fit."""
    random, rows = np.random.default_rng(seed), []
    for launch in range(NUM_LAUNCHES, 2 * NUM_LAUNCHES):
        num_ranks = int(random.choice([2, 4, 8]))
        held = 10 ** random.uniform(4, 8) * random.uniform(0.5, 1.5, num_ranks)
        direction = ("forward", "backward")[launch % 2]
        seconds = slowdown * (2e-5 + held.max() / 1e11) * np.exp(0.03 * random.standard_normal(num_ranks))
        for rank in range(num_ranks):
            mine, even = float(held[rank]), float(held.mean())
            sent, received = (mine, even) if direction == "forward" else (even, mine)
            rows.append(
                {
                    **_machine(device, f"seed0-exchange{launch}", launch),
                    "kind": "collective",
                    "implementation": "nccl",
                    "num_ranks": num_ranks,
                    "ranks_per_host": num_ranks,
                    "operation": "all_to_all",
                    "direction": direction,
                    "rank": rank,
                    "sent_bytes": sent,
                    "received_bytes": received,
                    "seconds": float(seconds[rank]),
                }
            )
    return rows


def _machine(device: str, task: str, launch: int) -> dict[str, object]:
    return {"device": device, "library": "fbgemm_gpu 1.8.0", "task": task, "launch": launch, "repeats": 5}


@functools.cache
def model_bytes(name: str = "tested", *, seed: int = 0, slowdown: float = 1.0) -> bytes:
    """The document of a model of these rows."""
    return fit(rows_from_json(benchmark_rows(seed=seed, slowdown=slowdown)), name=name, seed=0)


def model_document(name: str = "tested", *, seed: int = 0, slowdown: float = 1.0) -> dict[str, object]:
    """The same, read."""
    return json.loads(model_bytes(name, seed=seed, slowdown=slowdown))
