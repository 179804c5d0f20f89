"""A table of a same-rank group may be pinned, whichever of the group it is: the others go where it is."""

import json

import pytest

from api.specs.parse import parse_spec
from planner.pipeline import plan

GROUP = ("a", "b")
RANK = 2


def spec(partitioner: str, pinned: tuple[str, ...]) -> bytes:
    pin = {
        "sharding_type": "table_wise",
        "compute_kernel": "fused",
        "shards": [{"rank": RANK, "row_offset": 0, "num_rows": 100_000, "column_offset": 0, "num_columns": 64}],
    }
    tables = [
        {"name": name, "num_embeddings": 100_000, "embedding_dim": 64, "pooling_factor": factor}
        | ({"constraints": {"pinned": pin}} if name in pinned else {})
        for name, factor in (("a", 10), ("b", 10), ("c", 30), ("d", 5))
    ]
    document = {
        "model": {"batch_size_per_rank": 64, "tables": tables},
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 4},
        "constraints": {"same_rank": [GROUP]},
        "solver": {"partitioner": partitioner, "time_limit_seconds": 10, "work_limit_seconds": 0.2},
    }
    return json.dumps(document).encode()


@pytest.mark.parametrize("pinned", [("a",), ("b",), GROUP])
@pytest.mark.parametrize("partitioner", ["local_search", "cp_sat", "greedy", "ldm", "portfolio"])
def test_the_group_is_where_its_pinned_table_is(partitioner: str, pinned: tuple[str, ...]) -> None:
    request = parse_spec(spec(partitioner, pinned))
    result = plan(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    assert result.plan is not None
    ranks = {table.name: set(table.shards.rank.tolist()) for table in result.plan.placement.tables}
    assert [ranks[name] for name in GROUP] == [{RANK}, {RANK}]
