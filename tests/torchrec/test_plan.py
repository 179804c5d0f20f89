"""From a plan to a ShardingPlan: TorchRec's objects exactly, or a refusal that lists every difference."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from torch import nn

from api.client import PlanRejected, plan_digest
from api.client.torchrec import to_sharding_plan
from tests.support.planning.exports import exporter
from tests.support.torchrec.hand_plans import LONELY, MIXED, hand_plan, table_document
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.ranks import Model

export_plan = exporter("torchrec")

pytestmark = pytest.mark.torchrec


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("world_size", "ranks_per_host"), [(2, 2), (4, 2), (16, 8)])
def test_the_objects_are_those_of_the_export(world_size: int, ranks_per_host: int, device: str) -> None:
    plan = hand_plan(LONELY if world_size == 16 else MIXED, world_size, ranks_per_host)
    model = Model(list(LONELY if world_size == 16 else MIXED))
    sharding_plan = to_sharding_plan(
        plan, module=model, device=device, world_size=world_size, ranks_per_host=ranks_per_host
    )
    serialised = json.loads(json.dumps(sharding_plan._serialize()))  # noqa: SLF001  (TorchRec's own form)
    assert serialised["plan"] == export_plan(plan, device=device)["plan"]


def test_placements_count_devices_per_host() -> None:
    plan = hand_plan(LONELY, 16, 8)  # both tables on rank 15, the last of the second host
    sharding_plan = to_sharding_plan(plan, module=Model(list(LONELY)), world_size=16, ranks_per_host=8)
    (shard,) = sharding_plan.plan["sparse_arch.plain"]["one"].sharding_spec.shards
    assert str(shard.placement) == "rank:15/cuda:7"
    assert (shard.shard_offsets, shard.shard_sizes) == ([0, 0], [30, 8])


def test_data_parallel_has_no_spec_and_cached_tables_have_parameters() -> None:
    tables = [
        TableSpec(name="copied", rows=9, columns=4, features=("a",), scheme="data_parallel", kernel="dense"),
        TableSpec(name="cached", rows=9, columns=4, features=("b",), scheme="table_wise", kernel="fused_uvm_caching"),
    ]
    plan = hand_plan(tables, 2, 2)
    plan["tables"][1]["cache_load_factor"] = 0.25
    plan["plan_digest"] = plan_digest(plan)
    sharding = to_sharding_plan(plan, module=Model(tables), world_size=2, ranks_per_host=2).plan["sparse_arch.plain"]
    assert sharding["copied"].sharding_spec is None
    assert sharding["copied"].ranks == [0, 1]
    assert sharding["copied"].cache_params is None
    assert sharding["cached"].cache_params.load_factor == 0.25


def rejected(
    plan: dict[str, object], model: nn.Module, world_size: int = 4, ranks_per_host: int = 2
) -> tuple[str, ...]:
    """The reasons against a plan whose digest is right."""
    plan = plan | {"plan_digest": plan_digest(plan)}
    with pytest.raises(PlanRejected) as caught:
        to_sharding_plan(plan, module=model, device="cpu", world_size=world_size, ranks_per_host=ranks_per_host)
    return caught.value.reasons


def test_every_difference_to_the_model_is_listed() -> None:
    other = [replace(LONELY[0], rows=31, columns=12), replace(LONELY[1], name="three")]
    assert rejected(hand_plan(LONELY, 4, 2), Model(other)) == (
        'table "three" of module "sparse_arch.plain" is not in the plan',
        'table "two" of the plan is not in the model',
        'table "one": rows is 30 in the plan, 31 in the model',
        'table "one": columns is 8 in the plan, 12 in the model',
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "module_path",
            "sparse_arch.other",
            "module_path is sparse_arch.other in the plan, sparse_arch.plain in the model",
        ),
        ("num_embeddings", 29, "num_embeddings is 29 in the plan, 30 in the model"),
        ("embedding_dim", 16, "embedding_dim is 16 in the plan, 8 in the model"),
        ("data_type", "fp16", "data_type is fp16 in the plan, fp32 in the model"),
        ("pooling", "mean", "pooling is mean in the plan, sum in the model"),
    ],
)
def test_what_a_plan_says_of_a_table_must_be_true(key: str, value: object, message: str) -> None:
    plan = hand_plan(LONELY, 4, 2)
    plan["tables"][0][key] = value
    assert rejected(plan, Model(list(LONELY))) == (f'table "one": {message}',)


def test_a_plan_without_a_module_path_follows_the_model() -> None:
    plan = hand_plan(LONELY, 4, 2)
    for table in plan["tables"]:
        del table["module_path"]
    plan["plan_digest"] = plan_digest(plan)
    found = to_sharding_plan(plan, module=nn.ModuleDict({"a": Model(list(LONELY))}), world_size=4, ranks_per_host=2)
    assert list(found.plan) == ["a.sparse_arch.plain"]


def test_the_job_must_be_the_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(PlanRejected, match="2 ranks per host, the job has 4"):
        to_sharding_plan(hand_plan(LONELY, 4, 2), module=Model(list(LONELY)), world_size=4)


def test_pods_that_span_hosts_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHREC_RESOLVED_POD_SIZE", "2")
    with pytest.raises(PlanRejected, match="groups of 4 ranks, the job has 2 per host"):
        to_sharding_plan(hand_plan(LONELY, 4, 2), module=Model(list(LONELY)), world_size=4)
    monkeypatch.setenv("TORCHREC_RESOLVED_POD_SIZE", "1")
    assert to_sharding_plan(hand_plan(LONELY, 4, 2), module=Model(list(LONELY)), world_size=4).plan


def test_a_plan_for_pods_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, model = hand_plan(LONELY, 4, 1, 2), Model(list(LONELY))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    with pytest.raises(PlanRejected, match="set TORCHREC_RESOLVED_POD_SIZE=2 on every rank"):
        to_sharding_plan(plan, module=model, world_size=4)
    monkeypatch.setenv("TORCHREC_RESOLVED_POD_SIZE", "2")
    assert to_sharding_plan(plan, module=model, world_size=4).plan


def test_the_data_type_is_that_of_the_configuration() -> None:
    model = Model(list(LONELY))
    model.sparse_arch.plain.embedding_bag_configs()[0].data_type = torch_data_type("BF16")
    plan = hand_plan(LONELY, 4, 2)
    plan["tables"][0]["data_type"] = "fp16"
    assert rejected(plan, model) == ('table "one": data_type is fp16 in the plan, bf16 in the model',)


def torch_data_type(name: str) -> object:
    """TorchRec's ``DataType`` of a name."""
    from torchrec.types import DataType

    return DataType[name]


ROWS = TableSpec(name="t", rows=77, columns=16, features=("a",), scheme="row_wise")
Cut = tuple[int, int, int, int, int]
BLOCKS = [(0, 0, 20, 0, 16), (1, 20, 20, 0, 16), (2, 40, 20, 0, 16), (3, 60, 17, 0, 16)]


def _ranks(cuts: list[Cut], *ranks: int) -> list[Cut]:
    return [(rank, *cut[1:]) for rank, cut in zip(ranks, cuts, strict=True)]


@pytest.mark.parametrize(
    ("scheme", "kernel", "rows", "cuts", "message"),
    [
        # balanced 20, 19, 19, 19 in place of ceil blocks 20, 20, 20, 17
        (
            "row_wise",
            "fused",
            77,
            [(0, 0, 20, 0, 16), (1, 20, 19, 0, 16), (2, 39, 19, 0, 16), (3, 58, 19, 0, 16)],
            "blocks of 20 rows",
        ),
        ("row_wise", "fused", 77, _ranks(BLOCKS, 1, 0, 2, 3), "must stand on ranks 0..3 in order"),
        ("row_wise", "fused", 77, [*BLOCKS[:2], (2, 40, 37, 0, 16)], "must stand on ranks 0..3 in order"),
        ("row_wise", "dense", 77, BLOCKS, "needs the kernel fused or"),
        # 5 rows over 4 ranks: blocks of 2, 2, 1 and none
        ("row_wise", "fused", 5, [(0, 0, 2, 0, 16), (1, 2, 2, 0, 16), (2, 4, 1, 0, 16)], "leave a rank without rows"),
        ("table_row_wise", "fused", 77, [(1, 0, 39, 0, 16), (2, 39, 38, 0, 16)], "must stand on ranks 0..1 in order"),
        ("table_row_wise", "fused", 77, [(2, 0, 38, 0, 16), (3, 38, 39, 0, 16)], "blocks of 39 rows"),
        ("table_wise", "fused", 77, [(0, 0, 77, 0, 8), (1, 0, 77, 8, 8)], "one shard that is the whole table"),
        ("column_wise", "fused", 77, [(0, 0, 77, 0, 6), (1, 0, 77, 6, 10)], "6 columns, not a multiple of 4"),
        ("column_wise", "fused", 77, [(0, 0, 77, 8, 8), (1, 0, 77, 0, 8)], "from left to right"),
        ("column_wise", "fused", 77, [(0, 0, 40, 0, 16), (1, 40, 37, 0, 16)], "every column piece needs all rows"),
        ("table_column_wise", "fused", 77, [(1, 0, 77, 0, 8), (2, 0, 77, 8, 8)], "all pieces on one host"),
        ("grid_shard", "fused", 77, [(0, 0, 39, 0, 16), (2, 39, 38, 0, 16)], "must stand on ranks 0..1 in order"),
        ("grid_shard", "fused", 77, [(0, 0, 38, 0, 16), (1, 38, 39, 0, 16)], "blocks of 39 rows"),
        ("grid_shard", "fused", 77, [(0, 0, 77, 0, 16)], "needs 2 row pieces for every column piece"),
        ("data_parallel", "fused", 77, [(r, 0, 77, 0, 16) for r in range(4)], "needs the kernel dense"),
        ("twisted", "fused", 77, [(0, 0, 77, 0, 16)], "unknown sharding_type twisted"),
    ],
)
def test_cuts_that_torchrec_does_not_train(scheme: str, kernel: str, rows: int, cuts: list[Cut], message: str) -> None:
    table = replace(ROWS, rows=rows, scheme=scheme, kernel=kernel)
    plan = hand_plan([replace(ROWS, rows=rows, scheme="table_wise")], 4, 2)
    plan["tables"] = [table_document(table, cuts)]
    reasons = rejected(plan, Model([table]))
    assert any(message in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        (lambda t: t, True),  # rows of MEAN tables among themselves
        (lambda t: replace(t, scheme="table_wise"), False),
        (lambda t: replace(t, scheme="table_wise", pooling="mean"), False),
        (lambda t: replace(t, scheme="table_wise", module_path="sparse_arch.other"), True),
    ],
)
def test_mean_tables_cut_by_rows_want_their_module_for_themselves(
    change: Callable[[TableSpec], TableSpec], accepted: bool
) -> None:
    tables = [replace(ROWS, pooling="mean"), change(replace(ROWS, name="u", features=("b",)))]
    plan = hand_plan(tables, 4, 2)
    if accepted:
        assert to_sharding_plan(plan, module=Model(tables), world_size=4, ranks_per_host=2).plan
    else:
        (reason,) = rejected(plan, Model(tables))
        assert "TorchRec divide the outputs" in reason


def test_the_model_stays_on_the_meta_device() -> None:
    model = Model(list(LONELY))
    to_sharding_plan(hand_plan(LONELY, 4, 2), module=model, world_size=4, ranks_per_host=2)
    assert {p.device for p in model.sparse_arch.parameters()} == {torch.device("meta")}
