"""Made-up launches whose true cost is known, and models fitted to them quickly."""

import functools

import numpy as np

from cost_models.fitting.model import fit_model
from cost_models.fitting.training import Effort
from cost_models.learned.document.file import model_bytes, parse_model
from cost_models.learned.model import LearnedModel
from cost_models.measurements.schema import Measurements, measurements

QUICK = Effort(members=2, hidden=16, parts=4, rank_hidden=8, epochs=25, least_steps=1_000, batch_launches=64)


def made_up_rows(
    num_launches: int, *, seed: int = 0, noise: float = 0.03, ranks: tuple[int, ...] = (4, 8), apart: bool = False
) -> Measurements:
    """Lookups of a machine that takes 1 ms a launch, 20 ns a lookup, 0.2 us and 2 ns/B a distinct row.

    More ranks per host make rows dearer by their square root, and launches of many shards save a little.
    """
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 9, num_launches)
    launch = np.repeat(np.arange(num_launches), sizes)
    total = len(launch)
    shard_rows = np.exp(random.uniform(np.log(100), np.log(1e7), total)).astype(np.int64)
    lookups = np.floor(np.exp(random.uniform(np.log(1e4), np.log(1e6), total)))
    distinct = np.floor(np.minimum(lookups * random.uniform(0.05, 0.9, total), shard_rows))
    columns = random.choice([4, 8, 16, 32, 64, 128], total)
    of_launch = random.choice(ranks, num_launches)
    forward = 2e-8 * lookups + 1e-10 * lookups * columns
    backward = 2e-7 * distinct + 2e-9 * 4 * distinct * columns
    crowd = np.sqrt(of_launch / min(ranks))
    spread = np.exp(random.normal(0, noise, (2, num_launches)))
    saved = sizes**-0.05
    forward_seconds = (5e-4 + np.bincount(launch, forward) * crowd * saved) * spread[0]
    backward_seconds = (5e-4 + np.bincount(launch, backward) * crowd * saved) * spread[1]
    columns_by_name = {
        "kind": np.full(total, "lookup"),
        "launch": launch,
        "task": np.array([f"task {i}" for i in launch]),
        "table": np.array([f"t{i}" for i in range(total)]),
        "device": np.full(total, "a made-up machine"),
        "library": np.full(total, "none"),
        "implementation": np.full(total, "made_up"),
        "num_ranks": of_launch[launch],
        "ranks_per_host": of_launch[launch],
        "shard_rows": shard_rows,
        "shard_columns": columns,
        "element_bytes": np.full(total, 4.0),
        "output_element_bytes": np.full(total, 4.0),
        "optimizer_element_bytes": np.zeros(total),
        "optimizer_row_bytes": np.full(total, 4.0),
        "lookups": lookups,
        "outputs": np.full(total, 8192.0),
        "distinct_rows": distinct,
        "seconds": (forward_seconds + backward_seconds)[launch],
    }
    if apart:
        columns_by_name |= {"forward_seconds": forward_seconds[launch], "backward_seconds": backward_seconds[launch]}
    return measurements(columns_by_name, total)


@functools.cache
def document(num_launches: int = 600, *, apart: bool = False, seed: int = 0) -> dict[str, object]:
    """The document of a quickly fitted model; not to be changed."""
    return fit_model(made_up_rows(num_launches, apart=apart), name="made up", seed=seed, effort=QUICK)


@functools.cache
def quick_model(num_launches: int = 600, *, apart: bool = False) -> LearnedModel:
    """A model as it is read from its file."""
    return parse_model(model_bytes(document(num_launches, apart=apart)))
