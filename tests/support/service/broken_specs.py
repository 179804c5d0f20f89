"""A spec in which there is something for every rule to be broken, and single mistakes in it."""

import copy
import itertools
from typing import Any

Json = dict[str, Any]
#: In the place of a value: the field is taken out.
MISSING = object()


def _table(name: str, **more: object) -> Json:
    return {"name": name, "num_embeddings": 1000, "embedding_dim": 128, "pooling_factor": 2.0, **more}


_PINNED = {"rank": 2, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 128}
#: Nine tables on two hosts of two ranks of a custom machine.
SOUND: Json = {
    "name": "sound",
    "model": {
        "batch_size_per_rank": 16,
        "tables": [
            _table("t0"),
            _table(
                "t1",
                constraints={"pinned": {"sharding_type": "table_wise", "compute_kernel": "fused", "shards": [_PINNED]}},
            ),
            _table("t2", access={"zipf_alpha": 1.1}),
            _table("t3", constraints={"ranks": [0, 1], "sharding_types": ["table_wise", "row_wise"]}),
            _table("t4", optimizer="sgd", data_type="fp16"),
            {
                "name": "t5",
                "num_embeddings": 500,
                "embedding_dim": 64,
                "features": [{"name": "f", "pooling_factor": 1.0}, {"name": "g", "pooling_factor": 2.0}],
            },
            _table("t6"),
            _table("t7"),
            _table("t8"),
        ],
    },
    "hardware": {
        "profile": "custom",
        "num_hosts": 2,
        "ranks_per_host": 2,
        "overrides": {
            "hbm_bytes": 8e10,
            "ddr_bytes": 1e11,
            "hbm_bytes_per_second": 1e12,
            "intra_host_bytes_per_second": 1e11,
            "inter_host_bytes_per_second": 1e10,
        },
    },
    "constraints": {"same_rank": [["t6", "t7"]], "apart": [["t0", "t8"], ["t2", "t5"]]},
    "solver": {"partitioner": "greedy", "time_limit_seconds": 5},
}


def broken(*changes: dict[str, object]) -> Json:
    """Return the sound spec with fields set: ``{"model.tables.0.name": "a"}``."""
    spec = copy.deepcopy(SOUND)
    for path, value in itertools.chain.from_iterable(change.items() for change in changes):
        *parents, last = path.split(".")
        place: Any = spec
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        key: Any = int(last) if isinstance(place, list) else last
        if value is MISSING:
            del place[key]
        else:
            place[key] = copy.deepcopy(value)
    return spec
