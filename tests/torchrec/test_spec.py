"""From a live model to a spec."""

import json

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from torch import nn
from torch.distributed.optim import _apply_optimizer_in_backward
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad
from torchrec.types import DataType

from api.client import UnsupportedModel
from api.client.torchrec import live_tables, spec_from_model
from api.client.torchrec.model import PLANNED
from api.specs.parse import parse_spec

pytestmark = pytest.mark.torchrec

META = torch.device("meta")
ONLY = f"cannot be planned; only {', '.join(kind.__name__ for kind in PLANNED)} can"
HARDWARE = {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 8}


def config(name: str = "user", **values: object) -> EmbeddingBagConfig:
    """A table of 1,000 x 64."""
    settings = {"num_embeddings": 1000, "embedding_dim": 64, "feature_names": [name]} | values
    return EmbeddingBagConfig(name=name, **settings)


def collection(*configs: EmbeddingBagConfig, is_weighted: bool = False) -> EmbeddingBagCollection:
    """On the meta device."""
    return EmbeddingBagCollection(tables=list(configs), device=META, is_weighted=is_weighted)


class Ranker(nn.Module):
    """Two collections and a dense layer of 128 x 1 weights and one bias, fp32: 516 bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.sparse = nn.Module()
        self.sparse.ids = collection(
            config("user", feature_names=["user_id", "friend_id"], pooling=PoolingType.SUM),
            config("item", num_embeddings=10**9, data_type=DataType.FP16, pooling=PoolingType.MEAN),
        )
        self.sparse.scores = collection(config("tag"), is_weighted=True)
        self.over = nn.Linear(128, 1, device=META)


def test_a_model_becomes_a_spec_that_the_service_takes() -> None:
    model = Ranker()
    _apply_optimizer_in_backward(RowWiseAdagrad, model.sparse.ids.parameters(), {"lr": 0.1})
    _apply_optimizer_in_backward(torch.optim.SGD, model.sparse.scores.parameters(), {"lr": 0.1})
    spec = spec_from_model(
        model,
        batch_size_per_rank=512,
        hardware=HARDWARE,
        pooling_factors={"user": 2, "friend_id": 30.5, "item": 1, "tag": 0},
        name="ranker",
        access={"item": {"zipf_alpha": 1.05}},
        constraints={"tag": {"sharding_types": ["data_parallel"]}},
    )
    shared = {"embedding_dim": 64}
    assert spec == {
        "schema_version": 1,
        "name": "ranker",
        "model": {
            "batch_size_per_rank": 512,
            "tables": [
                shared
                | {
                    "name": "user",
                    "num_embeddings": 1000,
                    "data_type": "fp32",
                    "pooling": "sum",
                    "is_weighted": False,
                    "optimizer": "rowwise_adagrad",
                    "features": [
                        {"name": "user_id", "pooling_factor": 2.0},
                        {"name": "friend_id", "pooling_factor": 30.5},
                    ],
                    "module_path": "sparse.ids",
                },
                shared
                | {
                    "name": "item",
                    "num_embeddings": 10**9,
                    "data_type": "fp16",
                    "pooling": "mean",
                    "is_weighted": False,
                    "optimizer": "rowwise_adagrad",
                    "features": [{"name": "item", "pooling_factor": 1.0}],
                    "module_path": "sparse.ids",
                    "access": {"zipf_alpha": 1.05},
                },
                shared
                | {
                    "name": "tag",
                    "num_embeddings": 1000,
                    "data_type": "fp32",
                    "pooling": "sum",
                    "is_weighted": True,
                    "optimizer": "sgd",
                    "features": [{"name": "tag", "pooling_factor": 0.0}],
                    "module_path": "sparse.scores",
                    "constraints": {"sharding_types": ["data_parallel"]},
                },
            ],
            "dense": {"parameter_bytes": 516},
        },
        "hardware": HARDWARE,
        "runtime": "torchrec",
    }
    problem = parse_spec(json.dumps(spec).encode()).problem
    assert [(t.name, t.module_path, t.optimizer.name) for t in problem.tables] == [
        ("user", "sparse.ids", "rowwise_adagrad"),
        ("item", "sparse.ids", "rowwise_adagrad"),
        ("tag", "sparse.scores", "sgd"),
    ]
    assert problem.dense.parameter_bytes == 516


def test_a_spec_without_a_name_is_one_that_the_service_takes() -> None:
    spec = spec_from_model(
        collection(config()), batch_size_per_rank=1, hardware=HARDWARE, default_pooling_factor=1, optimizer="sgd"
    )
    assert "name" not in spec
    assert parse_spec(json.dumps(spec).encode()).name == "unnamed"


def test_a_collection_that_is_the_model_itself_has_no_path() -> None:
    spec = spec_from_model(
        collection(config()), batch_size_per_rank=1, hardware=HARDWARE, default_pooling_factor=1, optimizer="adam"
    )
    (table,) = spec["model"]["tables"]
    assert "module_path" not in table
    assert table["optimizer"] == "adam"


def test_everything_that_is_missing_or_unknown_is_listed() -> None:
    model = Ranker()
    _apply_optimizer_in_backward(torch.optim.Adam, model.sparse.scores.parameters(), {"lr": 0.1})
    with pytest.raises(UnsupportedModel) as caught:
        spec_from_model(
            model,
            batch_size_per_rank=1,
            hardware=HARDWARE,
            pooling_factors={"user": 1, "itme": 2},
            access={"x": {}},
            constraints={"y": {}},
            optimizer="sgd",
        )
    assert caught.value.reasons == (
        'pooling_factors: no feature or table is named "itme"',
        'access: no table is named "x"',
        'constraints: no table is named "y"',
        'feature "item" of table "item" has no pooling factor; give it in pooling_factors, or give'
        " default_pooling_factor",
        'feature "tag" of table "tag" has no pooling factor; give it in pooling_factors, or give'
        " default_pooling_factor",
        'table "tag" has the optimizer adam in its backward pass, not sgd',
    )


def refused(model: nn.Module) -> tuple[str, ...]:
    """The reasons against a model."""
    with pytest.raises(UnsupportedModel) as caught:
        live_tables(model)
    return caught.value.reasons


def test_no_optimizer_is_not_guessed() -> None:
    with pytest.raises(UnsupportedModel, match="no optimizer in its backward pass; give optimizer"):
        spec_from_model(collection(config()), batch_size_per_rank=1, hardware=HARDWARE, default_pooling_factor=1)


def test_modules_of_other_kinds_are_named() -> None:
    fused = FusedEmbeddingBagCollection(
        tables=[config("p")], optimizer_type=torch.optim.SGD, optimizer_kwargs={"lr": 0.1}, device=META
    )
    model = nn.ModuleDict({"fused": fused, "plain": collection(config())})
    assert refused(model) == (f'module "fused": FusedEmbeddingBagCollection {ONLY}',)


def test_rows_that_come_back_one_by_one_are_tables_without_pooling() -> None:
    sequences = EmbeddingCollection(
        tables=[
            EmbeddingConfig(name="s", num_embeddings=9, embedding_dim=4, feature_names=["u", "v"]),
            EmbeddingConfig(name="t", num_embeddings=5, embedding_dim=4, feature_names=["w"], data_type=DataType.FP16),
        ],
        device=META,
    )
    _apply_optimizer_in_backward(RowWiseAdagrad, sequences.parameters(), {"lr": 0.1})
    spec = spec_from_model(
        nn.ModuleDict({"history": sequences, "plain": collection(config())}),
        batch_size_per_rank=8,
        hardware=HARDWARE,
        default_pooling_factor=3,
        optimizer="rowwise_adagrad",
    )
    first, second, plain = spec["model"]["tables"]
    assert [table["pooling"] for table in (first, second, plain)] == ["none", "none", "sum"]
    assert (first["module_path"], first["optimizer"], first["is_weighted"]) == ("history", "rowwise_adagrad", False)
    assert [feature["name"] for feature in first["features"]] == ["u", "v"]
    assert second["data_type"] == "fp16"
    assert [table.pooling for table in parse_spec(json.dumps(spec).encode()).problem.tables] == ["none", "none", "sum"]


def test_a_subclass_is_not_the_class_that_torchrec_shards() -> None:
    class Mine(EmbeddingBagCollection):
        pass

    assert refused(nn.Sequential(Mine(tables=[config()], device=META))) == (f'module "0": Mine {ONLY}',)


def test_a_module_under_two_paths() -> None:
    shared = collection(config())
    model = nn.Module()
    model.first, model.second = nn.Sequential(shared), nn.Sequential(shared)
    assert refused(model) == (
        'module "second.0": the same module as module "first.0"; a plan knows one path per module',
    )


def test_a_name_in_two_modules() -> None:
    """Plans name the module, too; a spec has each name in its module, and numbers of one feature differ by table."""
    model = nn.Sequential(collection(config(), config("item")), collection(config()))
    tables = live_tables(model)
    assert [table.name for table in tables] == ["0/user", "item", "1/user"]
    assert [table.name_in_module for table in tables] == ["user", "item", "user"]
    spec = spec_from_model(
        model,
        batch_size_per_rank=8,
        hardware=HARDWARE,
        optimizer="sgd",
        pooling_factors={("0/user", "user"): 2.0, ("1/user", "user"): 50.0, "item": 1.0},
        constraints={"1/user": {"min_partition": 4}},
    )
    first, _, second = spec["model"]["tables"]
    assert [(one["name"], one["module_path"]) for one in (first, second)] == [("user", "0"), ("user", "1")]
    assert [one["features"][0]["pooling_factor"] for one in (first, second)] == [2.0, 50.0]
    assert "constraints" not in first
    assert second["constraints"] == {"min_partition": 4}
    assert [one.name for one in parse_spec(json.dumps(spec).encode()).problem.tables] == ["0/user", "item", "1/user"]


def test_a_model_without_tables() -> None:
    assert refused(nn.Linear(3, 3)) == ("the model has no EmbeddingBagCollection, and no EmbeddingCollection",)


def test_tables_that_a_plan_cannot_describe() -> None:
    model = collection(config("quantised", data_type=DataType.NFP8), config("endless"), config("lion"), config("two"))
    model.embedding_bag_configs()[1].use_virtual_table = True
    _apply_optimizer_in_backward(torch.optim.Adadelta, [model.embedding_bags["lion"].weight], {"lr": 0.1})
    for _ in range(2):
        _apply_optimizer_in_backward(torch.optim.SGD, [model.embedding_bags["two"].weight], {"lr": 0.1})
    assert refused(model) == (
        'the model itself: table "quantised" has the data type NFP8; known: FP32, FP16, BF16, INT8, INT4, INT2',
        'the model itself: table "endless" is a virtual table, which has no rows to place',
        'the model itself: table "lion" has the optimizer Adadelta, which no fused kernel has',
        'the model itself: table "two" has 2 optimizers in its backward pass; TorchRec takes one',
    )
