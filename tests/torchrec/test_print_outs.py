"""What TorchRec's planner prints of its plans is read as its serialised plans are, with the memory of every rank."""

import json
import logging
from collections import Counter

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import CacheParams

from api.client.torchrec import plan_as_json, spec_from_model
from api.services.plans.printed_memory import compared_memory
from api.specs.parse import parse_plan, parse_spec
from api.specs.plans.document import GivenPlan
from api.specs.request import SolveRequest
from cost_models.vocabulary import Scheme
from tests.support.torchrec.table_per_scheme import TablePerScheme

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore::FutureWarning")]

_SCHEMES = Scheme.labels()
_BATCH_SIZE = 32_768


def planned(
    log: pytest.LogCaptureFixture, kernel: str, factor: float | None, pooling: float
) -> tuple[dict[str, object], str]:
    """Return the plan of TorchRec's planner on two hosts of two GPUs, and what it prints of it."""
    constraints = {
        name: ParameterConstraints(
            sharding_types=[name],
            compute_kernels=["dense" if name == "data_parallel" else kernel],
            min_partition=128,
            pooling_factors=[pooling],
            cache_params=None if factor is None else CacheParams(load_factor=factor),
        )
        for name in _SCHEMES
    }
    planner = EmbeddingShardingPlanner(
        topology=Topology(world_size=4, local_world_size=2, compute_device="cuda"),
        batch_size=_BATCH_SIZE,
        constraints=constraints,
    )
    with log.at_level(logging.INFO, logger="torchrec.distributed.planner.stats"):
        plan = planner.plan(TablePerScheme(_SCHEMES, rows=1_000_001), [EmbeddingBagCollectionSharder()])
    return plan_as_json(plan), "\n".join(record.getMessage() for record in log.records)


def request_for(pooling: float) -> SolveRequest:
    spec = spec_from_model(
        TablePerScheme(_SCHEMES, rows=1_000_001),
        batch_size_per_rank=_BATCH_SIZE,
        hardware={"profile": "dgx-h100-80g", "num_hosts": 2, "ranks_per_host": 2},
        pooling_factors=dict.fromkeys(_SCHEMES, pooling),
        optimizer="sgd",
    )
    spec["model"]["pipeline"] = "none"
    return parse_spec(json.dumps(spec).encode())


def geometry(plan: GivenPlan) -> list[tuple[object, ...]]:
    """All that prices and bytes depend on: which rank has which of several equal column pieces is not printed."""
    return [
        (
            table.name,
            table.module_path,
            table.sharding_type,
            table.compute_kernel,
            table.cache_load_factor,
            Counter((shard.rank, shard.row_offset, shard.num_rows, shard.num_columns) for shard in table.shards),
        )
        for table in sorted(plan.placement.tables, key=lambda table: table.name)
    ]


@pytest.mark.parametrize("pooling", [3.0, 0.25])
@pytest.mark.parametrize(("kernel", "factor"), [("fused", None), ("fused_uvm", None), ("fused_uvm_caching", 0.4)])
def test_a_print_out_is_read_as_the_plan_that_it_is_of(
    caplog: pytest.LogCaptureFixture, kernel: str, factor: float | None, pooling: float
) -> None:
    serialised, text = planned(caplog, kernel, factor, pooling)
    request = request_for(pooling)
    log = "\n".join(
        f"[rank0]:2026-11-25 10:00:00,123 INFO stats.py:{i} {line}" for i, line in enumerate(text.splitlines())
    )
    given = parse_plan(f"training begins\n{log}\nstep 1: loss 0.7\n".encode(), request.problem)
    assert geometry(given) == geometry(parse_plan(json.dumps(serialised).encode(), request.problem))
    assert [warning.code for warning in given.warnings] == ["print-out-inferred"]
    comparison = compared_memory(request.problem, given)
    assert comparison is not None
    assert comparison.agrees, comparison.text()
    assert comparison.num_ranks == 4
    if pooling < 1:
        assert not comparison.counts_empty_bags  # as from 1.7 on
