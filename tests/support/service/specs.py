"""Small specs that tests send."""

import copy
import json

#: Two tables on two ranks: 1000 x 8 fp32 are 32,000 bytes.
TINY: dict[str, object] = {
    "name": "tiny",
    "model": {
        "batch_size_per_rank": 16,
        "tables": [
            {"name": "a", "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 2.0},
            {"name": "b", "num_embeddings": 500, "embedding_dim": 16, "pooling_factor": 1.0},
        ],
    },
    "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 2},
    "solver": {"partitioner": "greedy", "time_limit_seconds": 5},
}


def tiny(**changes: object) -> dict[str, object]:
    """The tiny spec with some fields set: ``solver__seed=3``, ``model__tables__0__name="c"``."""
    spec = copy.deepcopy(TINY)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place: object = spec
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        place[last] = value
    return spec


def raw(spec: object) -> bytes:
    """The bytes of a spec."""
    return json.dumps(spec).encode()
