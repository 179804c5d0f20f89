"""Made-up rows of collectives whose true times are known."""

from collections.abc import Callable

import numpy as np

from cost_models.arrays import Floats
from cost_models.measurements.schema import Measurements, measurements

Truth = Callable[[Floats, Floats], Floats]  # held bytes and starts of all ranks, (num_ranks,) each


def all_to_alls(
    truth: Truth,
    *,
    num_ranks: int,
    count: int,
    seed: int = 0,
    noise: float = 0.0,
    direction: str = "forward",
    even: bool = False,
    skewed: bool = False,
    first_launch: int = 0,
) -> Measurements:
    """``count`` exchanges of 1 to 64 MiB per rank, each a task of its own."""
    rng = np.random.default_rng(seed)
    sent, received, starts, seconds = [], [], [], []
    for _ in range(count):
        size = 2.0 ** rng.uniform(20, 26)
        held = np.full(num_ranks, size) if even else size * rng.uniform(0.2, 1.8, num_ranks)
        late = rng.uniform(0, 0.005, num_ranks) if skewed else np.zeros(num_ranks)
        mean = np.full(num_ranks, held.mean())
        sent.append(held if direction != "backward" else mean)
        received.append(mean if direction != "backward" else held)
        starts.append(late)
        seconds.append(truth(held, late) * np.exp(noise * rng.standard_normal()))
    rows = num_ranks * count
    launch = np.repeat(np.arange(count), num_ranks) + first_launch
    return measurements(
        {
            "kind": np.full(rows, "collective"),
            "launch": launch,
            "task": np.char.add(f"{num_ranks}:", launch.astype(str)),
            "num_ranks": np.full(rows, num_ranks),
            "ranks_per_host": np.full(rows, num_ranks),
            "operation": np.full(rows, "all_to_all"),
            "direction": np.full(rows, direction),
            "rank": np.tile(np.arange(num_ranks), count),
            "sent_bytes": np.concatenate(sent),
            "received_bytes": np.concatenate(received),
            "start_seconds": np.concatenate(starts),
            "seconds": np.concatenate(seconds),
        },
        rows,
    )


def together(*parts: Measurements) -> Measurements:
    """All rows of several sets."""
    return Measurements({key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns})
