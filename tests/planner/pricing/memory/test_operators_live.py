"""The ledger against FBGEMM: every byte of the operators that TorchRec makes of a plan, built on the meta device."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cost_models.registry import make_cost_model
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import PIPELINES, PREFETCH_PIPELINE, Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.torchrec.rules import ROW_SCHEMES
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.evaluate_placement import bytes_by_tier
from planner.verification.plan_from_placement import plan_of_placement
from tests.support.planning.builders import SSD, make_cluster, make_problem, make_table
from tests.support.planning.long_plans import to_document
from tests.support.planning.random_placements import random_placement
from tests.support.thorough import THOROUGH

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
import torchrec
from torch import nn
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, EmbeddingConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

from api.client.torchrec import to_sharding_plan
from tests.support.torchrec.operators import Operator, cluster, operators_of

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore")]

KERNELS = frozenset(Kernel)
ROOFLINE = make_cost_model("roofline")
OPTIMIZER_CLASSES = {
    "sgd": "SGD",
    "rowwise_adagrad": "RowWiseAdagrad",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "lamb": "LAMB",
    "partial_rowwise_adam": "PartialRowWiseAdam",
    "partial_rowwise_lamb": "PartialRowWiseLAMB",
}
#: Lines of the ledger that operators allocate; ``row_optimizer_state`` is counted with ``optimizer_state``.
LINES = ("weights", "optimizer_state", "cache", "cache_index", "eviction_buffers")


def random_problem(rng: np.random.Generator, num_tables: int, pipeline: str, num_hosts: int) -> Problem:
    """Tables of mixed widths, types, poolings and optimizers, in modules of bags, of weighted bags and of sequences."""
    tables = []
    for index in range(num_tables):
        module = str(rng.choice(["bags", "bags", "means", "weighted", "sequences"]))
        pooling = {"sequences": "none", "means": "mean"}.get(module, "sum")
        schemes = frozenset(Scheme) - (ROW_SCHEMES if module == "means" else frozenset())
        table = make_table(
            f"t{index}",
            int(rng.integers(300, 30_000)),
            64 if module == "sequences" else 4 * int(rng.choice([4, 16, 24, 32, 128])),
            pooling=pooling,
            data_type=str(rng.choice(["fp32", "fp16"])),
            optimizer=str(rng.choice(list(OPTIMIZER_CLASSES) + ["rowwise_adagrad"] * 6)),
            module_path=module,
            constraints=TableConstraints(compute_kernels=KERNELS, sharding_types=schemes),
        )
        tables.append(replace(table, is_weighted=module == "weighted"))
    return make_problem(*tables, cluster=make_cluster(num_hosts, 4, **SSD), pipeline=pipeline)


class Model(nn.Module):
    """The modules of a problem, on the meta device, with the optimizers that are applied in the backward pass."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        of_module: dict[str, list[Table]] = defaultdict(list)
        for table in problem.tables:
            of_module[table.module_path].append(table)
        for path, tables in of_module.items():
            is_pooled = tables[0].is_pooled
            configs: list[Any] = [_config(table) for table in tables]
            made: nn.Module
            if is_pooled:
                made = EmbeddingBagCollection(configs, is_weighted=tables[0].is_weighted, device=torch.device("meta"))
            else:
                made = EmbeddingCollection(configs, device=torch.device("meta"))
            self.add_module(path, made)
            weights = dict(made.named_parameters())
            for table in tables:
                weight: Any = weights[f"embedding{'_bag' if is_pooled else ''}s.{table.name}.weight"]
                optimizer = getattr(torchrec.optim, OPTIMIZER_CLASSES[table.optimizer.name])
                weight._optimizer_classes, weight._optimizer_kwargs = [optimizer], [{}]  # noqa: SLF001


def _config(table: Table) -> EmbeddingBagConfig | EmbeddingConfig:
    shared: dict[str, Any] = {
        "name": table.name,
        "num_embeddings": table.num_embeddings,
        "embedding_dim": table.embedding_dim,
        "feature_names": [feature.name for feature in table.features],
        "data_type": DataType.FP16 if table.data_type.name == "fp16" else DataType.FP32,
    }
    if not table.is_pooled:
        return EmbeddingConfig(**shared)
    return EmbeddingBagConfig(**shared, pooling=PoolingType.MEAN if table.pooling == "mean" else PoolingType.SUM)


def operators(problem: Problem, placement: Placement, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Operator]]:
    """Return the plan document, and the operators that a job of the launcher's client makes of it."""
    plan = plan_of_placement(problem, placement, ROOFLINE)
    document: Any = to_document(plan, name="", spec_digest="", hardware_profile="test")
    model, cluster_ = Model(problem), problem.cluster
    fused_params = {"prefetch_pipeline": True} if problem.pipeline == PREFETCH_PIPELINE else {}
    with cluster(cluster_.world_size, cluster_.ranks_per_host, monkeypatch):
        sharding = to_sharding_plan(
            document, module=model, world_size=cluster_.world_size, ranks_per_host=cluster_.ranks_per_host
        )
        found = [
            operator
            for path, of_module in sharding.plan.items()
            for operator in operators_of(model.get_submodule(path), of_module, fused_params)  # type: ignore[arg-type]
        ]
    return document, found


def assert_equal_bytes(problem: Problem, document: Any, found: list[Operator]) -> None:
    """Compare rank by rank, tier by tier and line by line."""
    allocated: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for operator in found:
        allocated[operator.rank].update(operator.bytes)
        assert operator.bytes["descriptors", ""] < 1000 + 200 * operator.num_features  # the ledger leaves these out
    for table, placed in zip(problem.tables, document["tables"], strict=True):
        for shard in placed["shards"] if placed["compute_kernel"] == "dense" else ():
            # An optimizer of PyTorch's has the state of these tables.
            state = table.optimizer.state_bytes(shard["num_rows"], shard["num_columns"])
            allocated[shard["rank"]]["optimizer_state", "hbm"] += state
    for rank in document["ranks"]:
        stated = Counter[tuple[str, str]]()
        for tier, lines in rank["ledger_bytes"].items():
            for line, held in lines.items():
                stated[line.removeprefix("row_"), tier] += held
        for line in LINES:
            for tier in ("hbm", "ddr"):
                assert stated[line, tier] == allocated[rank["rank"]][line, tier], (rank["rank"], line, tier)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("num_hosts", [1, 2])
def test_a_plan_takes_the_bytes_of_its_operators(
    pipeline: str, num_hosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([num_hosts, PIPELINES.index(pipeline)])
    problem = random_problem(rng, 40, pipeline, num_hosts)
    document, found = operators(problem, random_placement(rng, problem), monkeypatch)
    assert {operator.kernel for operator in found} >= {"dense", "fused"}
    assert_equal_bytes(problem, document, found)


def without_reserved_bytes(placement: Placement) -> Placement:
    """The same plan as from a launcher that leaves all grouping to TorchRec."""
    return replace(placement, tables=tuple(replace(placed, cache_reserved_bytes=None) for placed in placement.tables))


@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.1, 0.05), (0.2, 0.2)])
@pytest.mark.parametrize("sizes", [(6400, 6400), (6400, 6420), (6400, 12800), (20, 20)])
def test_tables_on_drives_share_what_one_of_them_is_allowed(
    sizes: tuple[int, int], shares: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TorchRec makes one operator of tables whose caches are bounded alike, and bounds the operator by one of them."""
    problem = make_problem(
        *(
            make_table(
                f"t{index}",
                rows,
                64,
                module_path="bags",
                optimizer="rowwise_adagrad",
                constraints=TableConstraints(
                    compute_kernels=frozenset({Kernel.KEY_VALUE}),
                    sharding_types=frozenset({Scheme.TABLE_WISE}),
                    cache_load_factors=(share,),
                    ranks=frozenset({0}),
                ),
            )
            for index, (rows, share) in enumerate(zip(sizes, shares, strict=True))
        ),
        cluster=make_cluster(1, 2, **SSD),
    )
    shared = without_reserved_bytes(random_placement(np.random.default_rng(0), problem))
    document, found = operators(problem, shared, monkeypatch)
    alike = len({max(int(share * rows / 32), 1) for rows, share in zip(sizes, shares, strict=True)}) == 1
    assert len([operator for operator in found if operator.kernel == "key_value"]) == (1 if alike else 2)
    assert_equal_bytes(problem, document, found)


def test_tables_that_nothing_keeps_apart_share_a_cache_as_wide_as_the_widest(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    problem = random_problem(rng, 60, "train_sparse_dist", 1)
    apart = random_placement(rng, problem)
    shared = without_reserved_bytes(apart)
    document, found = operators(problem, shared, monkeypatch)
    assert_equal_bytes(problem, document, found)
    caches = [operator for operator in found if operator.kernel == "fused" and operator.bytes["cache", "hbm"]]
    widths = {table.name: table.embedding_dim for table in problem.tables}
    assert any(len({widths[name] for name in operator.tables}) > 1 for operator in caches)
    held = bytes_by_tier(problem, shared)[:, Tier.HBM].sum(), bytes_by_tier(problem, apart)[:, Tier.HBM].sum()
    assert held[0] > held[1]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(40))
def test_random_plans_take_the_bytes_of_their_operators(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of 5 to 60 tables, half of them without what keeps caches apart."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(5, 61)), str(rng.choice(PIPELINES)), int(rng.integers(1, 4)))
    placement = random_placement(rng, problem)
    if seed % 2:
        placement = without_reserved_bytes(placement)
    document, found = operators(problem, placement, monkeypatch)
    assert_equal_bytes(problem, document, found)


@pytest.mark.parametrize("seed", range(10 if THOROUGH else 1))
def test_a_job_larger_than_its_accelerators_holds_what_was_planned(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed widths in host memory behind caches, as the search places them: no rank holds more than it has."""
    rng = np.random.default_rng(seed)
    optimizer = str(rng.choice(list(OPTIMIZER_CLASSES)))
    widths = rng.choice([16, 64, 128, 512], size=20).tolist()
    tables = [
        make_table(f"t{i}", int(rng.integers(10_000, 300_000)), width, optimizer=optimizer, module_path="bags")
        for i, width in enumerate(widths)
    ]
    needed = sum(table.weight_bytes for table in tables)
    cluster_ = make_cluster(1, 4, hbm_bytes=needed / 16, ddr_bytes=2 * needed)
    problem = make_problem(*tables, cluster=cluster_, pipeline=str(rng.choice(PIPELINES)))
    limits = SolveLimits(
        time_limit_seconds=60.0, work_limit_seconds=1.0, relative_gap=0.01, seed=seed, reproducible=True
    )
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits)
    assert result.plan is not None
    document, found = operators(problem, result.plan.placement, monkeypatch)
    assert_equal_bytes(problem, document, found)
    assert any(operator.bytes["cache", "hbm"] for operator in found)
    for rank in document["ranks"]:
        assert all(held <= rank["capacity_bytes"][tier] for tier, held in rank["bytes"].items())
