"""Plans of TorchRec's own planner: written, read, judged."""

import json

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import CacheParams, ObjectPoolShardingPlan, ObjectPoolShardingType, ShardingPlan

from api.client.torchrec import plan_as_json, spec_from_model
from api.services.plans.reports import evaluation_of
from api.specs.parse import parse_plan, parse_spec
from api.specs.request import SolveRequest
from tests.support.torchrec.table_per_scheme import TablePerScheme

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore::FutureWarning")]

_SCHEMES = ["data_parallel", "table_wise", "column_wise", "row_wise", "table_row_wise", "grid_shard"]


def planned(model: TablePerScheme, kernel: str | None = None, cache: CacheParams | None = None) -> ShardingPlan:
    """What TorchRec's planner makes of it on two hosts of two GPUs, table by table as its name says."""
    constraints = {
        name: ParameterConstraints(
            sharding_types=[name],
            compute_kernels=None if kernel is None or name == "data_parallel" else [kernel],
            min_partition=128,
            cache_params=cache,
        )
        for name in _SCHEMES
    }
    planner = EmbeddingShardingPlanner(
        topology=Topology(world_size=4, local_world_size=2, compute_device="cuda"), constraints=constraints
    )
    return planner.plan(model, [EmbeddingBagCollectionSharder()])


def request_for(model: TablePerScheme) -> SolveRequest:
    spec = spec_from_model(
        model,
        batch_size_per_rank=64,
        hardware={"profile": "dgx-h100-80g", "num_hosts": 2, "ranks_per_host": 2},
        pooling_factors=dict.fromkeys(_SCHEMES, 2.0),
        optimizer="rowwise_adagrad",
    )
    return parse_spec(json.dumps(spec).encode())


def test_a_plan_of_every_scheme_is_read_as_torchrec_meant_it() -> None:
    model = TablePerScheme(_SCHEMES, rows=1000)
    request = request_for(model)
    given = parse_plan(json.dumps(plan_as_json(planned(model))).encode(), request.problem)
    evaluation = evaluation_of(request, given)
    assert evaluation.violations == []
    assert evaluation.score is not None
    assert [table.sharding_type.label for table in given.placement.tables] == _SCHEMES
    assert {table.module_path for table in given.placement.tables} == {"ebc"}


@pytest.mark.parametrize(("factor", "codes"), [(0.4, []), (None, ["load-factor-assumed"] * (len(_SCHEMES) - 1))])
def test_shares_of_caches_are_written_where_they_are_known(factor: float | None, codes: list[str]) -> None:
    model = TablePerScheme(_SCHEMES, rows=1000)
    cache = None if factor is None else CacheParams(load_factor=factor)
    written = plan_as_json(planned(model, "fused_uvm_caching", cache))
    given = parse_plan(json.dumps(written).encode(), request_for(model).problem)
    assert [warning.code for warning in given.warnings] == codes
    assert {table.cache_load_factor for table in given.placement.tables[1:]} == {factor or 0.2}


def test_a_plan_with_a_module_of_another_kind_is_refused() -> None:
    pool = ShardingPlan({"pool": ObjectPoolShardingPlan(ObjectPoolShardingType.ROW_WISE)})
    with pytest.raises(ValueError, match='module "pool" of the plan is a ObjectPoolShardingPlan'):
        plan_as_json(pool)
