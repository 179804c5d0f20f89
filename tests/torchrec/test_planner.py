"""The planner in the place of TorchRec's: what it asks for, whom it asks, and what becomes of the answer."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.planning.long_plans import to_document

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder, EmbeddingBagSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.distributed.types import BoundsCheckMode, CacheAlgorithm, CacheParams, DataType
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection

from api.client import (
    ClientError,
    NoPlan,
    PlannerClient,
    PlanRejected,
    PlanUnavailable,
    ProblemError,
    RetryPolicy,
    SolveTimeout,
    UnsupportedModel,
    canonical_bytes,
    local_solve,
)
from api.client.torchrec import ServicePlanLoader, ServicePlanner
from api.specs.parse import parse_spec
from planner.pipeline import plan as solved
from tests.support.thorough import thorough

pytestmark = pytest.mark.torchrec

SHARDERS = [EmbeddingBagCollectionSharder(fused_params={"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD})]


class Model(torch.nn.Module):
    """Two tables, one of them with two features."""

    def __init__(self) -> None:
        super().__init__()
        self.ebc = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[
                EmbeddingBagConfig(name="user", num_embeddings=1000, embedding_dim=64, feature_names=["u"]),
                EmbeddingBagConfig(name="item", num_embeddings=4000, embedding_dim=128, feature_names=["i", "j"]),
            ],
        )


def topology(device: str = "cuda", **settings: Any) -> Topology:
    return Topology(world_size=4, local_world_size=2, compute_device=device, **settings)


def answered(spec: Mapping[str, object]) -> bytes:
    """What a solve of a spec leaves, made in this process."""
    request = parse_spec(json.dumps(spec).encode())
    result = solved(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    facts = {"name": "x", "spec_digest": request.spec_digest, "hardware_profile": request.hardware_profile}
    return canonical_bytes(to_document(result.plan, **facts))


class Service:
    """A client in the place of one of a service."""

    def __init__(self, error: ClientError | None = None) -> None:
        self.error, self.specs = error, []

    def solve(self, spec: Mapping[str, object], *, wait_seconds: float) -> Mapping[str, object]:
        self.specs.append(spec)
        if self.error is not None:
            raise self.error
        return spec

    def plan_of(self, solve: Mapping[str, object]) -> Any:
        class Fetched:
            received = answered(solve)

        return Fetched


def planner(client: object = None, **settings: Any) -> ServicePlanner:
    given = {"hardware": "dgx-h100-80g", "batch_size": 64, "topology": topology(), "local": None}
    return ServicePlanner(None, client=client, **(given | settings))


def test_what_torchrec_was_reported_is_what_the_spec_says() -> None:
    constraints = {
        "user": ParameterConstraints(
            sharding_types=["table_wise", "row_wise"],
            compute_kernels=["fused_uvm_caching"],
            pooling_factors=[7.0],
            cache_params=CacheParams(load_factor=0.3),
        ),
        "item": ParameterConstraints(min_partition=32, pooling_factors=[2.0, 3.0], num_poolings=[1.0, 4.0]),
    }
    memory = {"hbm_cap": 30 * 2**30, "ddr_cap": 100 * 2**30}
    asked = planner(constraints=constraints, topology=topology(**memory), spec={"name": "mine"})
    spec = asked.spec_of(Model(), SHARDERS)
    user, item = spec["model"]["tables"]
    assert user["constraints"] == {
        "sharding_types": ["table_wise", "row_wise"],
        "compute_kernels": ["fused_uvm_caching"],
        "cache_load_factors": [0.3],
    }
    assert user["features"] == [{"name": "u", "pooling_factor": 7.0}]
    assert user["optimizer"] == item["optimizer"] == "rowwise_adagrad"
    assert item["constraints"] == {"min_partition": 32}
    assert item["features"] == [
        {"name": "i", "pooling_factor": 2.0},
        {"name": "j", "pooling_factor": 3.0, "num_poolings": 4.0},
    ]
    assert spec["hardware"] == {
        "profile": "dgx-h100-80g",
        "num_hosts": 2,
        "ranks_per_host": 2,
        "overrides": {"hbm_bytes": 30 * 2**30, "ddr_bytes": 100 * 2**30},
    }
    assert (spec["name"], spec["model"]["batch_size_per_rank"]) == ("mine", 64)
    parse_spec(json.dumps(spec).encode())


def test_features_of_which_no_one_says_more_count_as_in_torchrec_and_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        spec = planner().spec_of(Model(), SHARDERS)
    assert [f["pooling_factor"] for table in spec["model"]["tables"] for f in table["features"]] == [1.0, 1.0, 1.0]
    assert "3 features have no pooling_factors" in caplog.text


def test_ranks_with_other_memory_are_reported_one_by_one() -> None:
    uneven = topology()
    uneven.devices[3].storage.hbm //= 2
    overrides = planner(topology=uneven).spec_of(Model(), SHARDERS)["hardware"]["overrides"]
    assert overrides["hbm_bytes_by_rank"] == [device.storage.hbm for device in uneven.devices]


def test_a_topology_without_accelerators_is_never_planned_into_their_memory() -> None:
    """Whatever the profile has: also with several ranks on a host."""
    for hardware in ("dgx-h100-80g", "cpu-2s-genoa-200g"):
        spec = planner(topology=topology("cpu"), hardware=hardware).spec_of(Model(), SHARDERS)
        assert spec["hardware"]["overrides"]["hbm_bytes"] == 0
        assert spec["hardware"]["ranks_per_host"] == 2
        placed = json.loads(answered(spec))["tables"]
        assert {shard["tier"] for table in placed for shard in table["shards"]} == {"ddr"}


def test_pods_of_a_topology_are_those_of_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchRec counts the hosts of a pod, and a spec its ranks."""
    rack = Topology(world_size=4, local_world_size=1, pod_size=2, compute_device="cuda")
    tables = {name: ParameterConstraints(sharding_types=["table_row_wise"]) for name in ("user", "item")}
    asked = planner(topology=rack, constraints=tables, local=answered)
    assert asked.spec_of(Model(), SHARDERS)["hardware"]["pod_size"] == 2
    assert "pod_size" not in planner(topology=topology(pod_size=1)).spec_of(Model(), SHARDERS)["hardware"]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with pytest.raises(PlanRejected, match="set TORCHREC_RESOLVED_POD_SIZE=2 on every rank"):
        asked.plan(Model(), SHARDERS)
    monkeypatch.setenv("TORCHREC_RESOLVED_POD_SIZE", "2")
    sharding = asked.plan(Model(), SHARDERS).plan["ebc"]["item"]
    assert len(sharding.sharding_spec.shards) == 2


def test_hosts_of_unequal_size_are_refused_with_both_numbers() -> None:
    uneven = Topology(world_size=12, local_world_size=8, compute_device="cuda")
    with pytest.raises(UnsupportedModel, match="12 ranks are no multiple of 8 per host"):
        planner(topology=uneven).plan(Model(), SHARDERS)


def test_features_of_another_batch_size_have_as_many_poolings_more_or_fewer() -> None:
    """TorchRec's estimator takes poolings times batch size: 2 x 16 / 64 and 1 x 128 / 64."""
    constraint = ParameterConstraints(pooling_factors=[3.0], num_poolings=[2.0, 1.0], batch_sizes=[16, 128])
    _, item = planner(constraints={"item": constraint}).spec_of(Model(), SHARDERS)["model"]["tables"]
    assert [feature["num_poolings"] for feature in item["features"]] == [0.5, 2.0]


class Mixed(torch.nn.Module):
    """A collection, and a table of PyTorch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.bag = torch.nn.EmbeddingBag(1000, 8, device="meta")


class WholeTables(EmbeddingBagCollectionSharder):
    """A sharder of one's own."""

    def sharding_types(self, compute_device_type: str) -> list[str]:
        return ["table_wise", "row_wise"]


class SomeTables(EmbeddingBagCollectionSharder):
    """A sharder of one's own that leaves a table to PyTorch."""

    def shardable_parameters(self, module: EmbeddingBagCollection) -> dict[str, torch.nn.Parameter]:
        return {name: weight for name, weight in super().shardable_parameters(module).items() if name == "user"}


def test_what_a_sharder_would_shard_and_no_plan_holds_is_refused_by_name() -> None:
    assert planner().spec_of(Mixed(), SHARDERS)  # PyTorch's table is dense then
    with pytest.raises(UnsupportedModel, match='module "bag": EmbeddingBagSharder would shard this EmbeddingBag'):
        planner().spec_of(Mixed(), [*SHARDERS, EmbeddingBagSharder()])
    with pytest.raises(UnsupportedModel, match='module "ebc": no sharder is given for EmbeddingBagCollection'):
        planner().spec_of(Model(), [EmbeddingBagSharder()])
    with pytest.raises(UnsupportedModel, match="does not shard the tables item"):
        planner().spec_of(Model(), [SomeTables()])


def test_a_sharder_of_ones_own_limits_its_tables() -> None:
    constraints = {"user": ParameterConstraints(sharding_types=["table_wise", "column_wise"])}
    user, item = planner(constraints=constraints).spec_of(Model(), [WholeTables(SHARDERS[0].fused_params)])["model"][
        "tables"
    ]
    assert user["constraints"]["sharding_types"] == ["table_wise"]
    assert item["constraints"]["sharding_types"] == ["table_wise", "row_wise"]
    impossible = {"user": ParameterConstraints(sharding_types=["column_wise"])}
    with pytest.raises(
        UnsupportedModel, match='table "user": the sharder has no sharding_types but table_wise, row_wise'
    ):
        planner(constraints=impossible).spec_of(Model(), [WholeTables(SHARDERS[0].fused_params)])


@pytest.mark.parametrize(
    ("constraint", "reported"),
    [
        (ParameterConstraints(batch_sizes=[8, 8, 8]), "batch_sizes of table .*: 3 for 2 features"),
        (ParameterConstraints(use_virtual_table=True), "virtual table"),
        (ParameterConstraints(device_group="cpu"), "device_group cpu"),
        (ParameterConstraints(pooling_factors=[1.0, 2.0, 3.0]), "3 for 2 features"),
    ],
)
def test_what_a_plan_cannot_keep_is_refused(constraint: ParameterConstraints, reported: str) -> None:
    with pytest.raises(UnsupportedModel, match=reported):
        planner(constraints={"item": constraint}).spec_of(Model(), SHARDERS)


def test_optimizers_that_cannot_be_planned_are_refused() -> None:
    none = [EmbeddingBagCollectionSharder(fused_params={"optimizer": EmbOptimType.NONE})]
    with pytest.raises(UnsupportedModel, match="NONE"):
        planner().spec_of(Model(), none)


def test_the_plan_of_the_service_is_a_sharding_plan_with_the_settings_of_the_runtime() -> None:
    cache = CacheParams(load_factor=0.3, algorithm=CacheAlgorithm.LFU)
    constraints = {
        "user": ParameterConstraints(
            sharding_types=["table_wise"],
            compute_kernels=["fused_uvm_caching"],
            cache_params=cache,
            enforce_hbm=True,
            stochastic_rounding=False,
            bounds_check_mode=BoundsCheckMode.WARNING,
            output_dtype=DataType.FP16,
        ),
        "item": ParameterConstraints(sharding_types=["row_wise"]),
    }
    service = Service()
    asked = planner(service, constraints=constraints)
    plan = asked.plan(Model(), SHARDERS).plan["ebc"]
    assert asked.source == "service"
    assert asked.document is not None
    assert len(service.specs) == 1
    assert (plan["user"].sharding_type, plan["item"].sharding_type) == ("table_wise", "row_wise")
    user = plan["user"]
    assert (user.enforce_hbm, user.stochastic_rounding) == (True, False)
    assert (user.bounds_check_mode, user.output_dtype) == (BoundsCheckMode.WARNING, DataType.FP16)
    assert (user.cache_params.load_factor, user.cache_params.algorithm) == (0.3, CacheAlgorithm.LFU)
    assert plan["item"].cache_params is None


def test_the_log_says_how_good_the_plan_is(caplog: pytest.LogCaptureFixture) -> None:
    asked = planner(Service())
    with caplog.at_level(logging.INFO, "api.client.torchrec.planner"):
        asked.plan(Model(), SHARDERS)
    assert asked.document is not None
    (line,) = [one.getMessage() for one in caplog.records if one.name == "api.client.torchrec.planner"]
    verdict = asked.document["verdict"]
    assert line == f"plan {asked.document['plan_digest']}, source service: {verdict['text']}"


def problem(status: int) -> ProblemError:
    return ProblemError(status, {"title": "some title", "detail": "some detail"})


@thorough
@pytest.mark.parametrize("error", [problem(503), problem(500), SolveTimeout({"id": "1", "state": "running"}, 3.0)])
def test_where_the_service_cannot_answer_the_plan_is_made_here(
    error: ClientError, caplog: pytest.LogCaptureFixture
) -> None:
    asked = planner(Service(error), local=answered)
    assert set(asked.plan(Model(), SHARDERS).plan["ebc"]) == {"user", "item"}
    assert asked.source == "local"
    assert "planning on this machine" in caplog.text
    with pytest.raises(type(error)):
        planner(Service(error)).plan(Model(), SHARDERS)


def test_a_service_that_is_not_there_is_no_reason_to_stop() -> None:
    with PlannerClient("http://127.0.0.1:1", retry=RetryPolicy(attempts=1)) as client:
        asked = planner(client, local=answered)
        assert set(asked.plan(Model(), SHARDERS).plan["ebc"]) == {"user", "item"}


@pytest.mark.parametrize(
    "error", [problem(401), problem(422), NoPlan({"id": "1", "state": "succeeded", "result": {"reason": "INFEASIBLE"}})]
)
def test_what_the_service_refuses_is_not_asked_again_here(error: ClientError) -> None:
    with pytest.raises(type(error)):
        planner(Service(error), local=answered).plan(Model(), SHARDERS)


def test_without_a_service_and_a_local_solve_it_says_so() -> None:
    with pytest.raises(PlanUnavailable, match="neither a service nor a local solve"):
        planner().plan(Model(), SHARDERS)

    def nothing(_: object) -> bytes:
        raise PlanUnavailable("nothing here")

    with pytest.raises(PlanUnavailable, match=r"the service gave no plan: .*; and here: nothing here"):
        planner(Service(problem(503)), local=nothing).plan(Model(), SHARDERS)
    with pytest.raises(PlanUnavailable, match=r"^nothing here"):
        planner(local=nothing).plan(Model(), SHARDERS)


@pytest.mark.filterwarnings("ignore:HeuristicalStorageReservation:FutureWarning")
def test_torchrecs_planner_takes_a_plan_by_its_hook() -> None:
    constraints = {
        "user": ParameterConstraints(sharding_types=["table_wise"], compute_kernels=["fused"]),
        "item": ParameterConstraints(sharding_types=["row_wise"], compute_kernels=["fused"]),
    }
    model = Model()
    spec = planner(constraints=constraints).spec_of(model, SHARDERS)
    content = answered(spec)
    loader = ServicePlanLoader(lambda: content, module=model, world_size=4, ranks_per_host=2)
    loaded = EmbeddingShardingPlanner(topology=topology(), constraints=constraints, plan_loader=loader)
    expected = planner(Service(), constraints=constraints).plan(model, SHARDERS)
    found = loaded.plan(model, SHARDERS)
    assert found.plan["ebc"].keys() == expected.plan["ebc"].keys()
    for name, sharding in found.plan["ebc"].items():
        other = expected.plan["ebc"][name]
        assert (sharding.sharding_type, sharding.ranks) == (other.sharding_type, other.ranks)
        assert sharding.sharding_spec == other.sharding_spec
    assert loader.get_plan_id() == json.loads(content)["plan_digest"]
    others = {"user": constraints["item"], "item": constraints["user"]}
    unlisted = EmbeddingShardingPlanner(topology=topology(), constraints=others, plan_loader=loader)
    with pytest.raises(PlannerError, match="not all search space is covered"):
        unlisted.plan(model, SHARDERS)


@thorough
def test_the_command_on_this_machine_plans_a_spec() -> None:
    spec = planner().spec_of(Model(), SHARDERS) | {"solver": {"time_limit_seconds": 2}}
    assert json.loads(local_solve.solve_locally(spec))["world_size"] == 4
    with pytest.raises(PlanUnavailable, match="exit code 1"):
        local_solve.solve_locally({})
    with pytest.raises(PlanUnavailable, match="is not installed on this machine"):
        local_solve.solve_locally(spec, command=("no-such-command",))
