"""The export for dynamicemb: what it says, what its planner makes of it, and what it refuses."""

import hashlib
import json
import re
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cost_models.vocabulary import HOST_KERNELS, Kernel, Scheme
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.dynamicemb.export import SCORE_STRATEGIES
from planner.options.runtimes.export import ExportFacts, UnexportablePlan
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.planner.options.runtimes.dynamicemb.test_rules import named, problem_of
from tests.support.paths import ROOT
from tests.support.planning.builders import ROOFLINE, make_table
from tests.support.planning.dynamicemb_tables import make_hash_table
from tests.support.planning.export_documents import document, table
from tests.support.planning.exports import exporter
from tests.support.planning.long_plans import to_document
from tests.support.runtimes import dynamicemb_simulator as simulator

export_plan = exporter("dynamicemb")

ROWS = [(0, 0, 250, 0, 64), (1, 250, 250, 0, 64), (2, 500, 250, 0, 64), (3, 750, 250, 0, 64)]
HASH = table("h", "row_wise", ROWS, compute_kernel="hash")
COPIED = table("c", "data_parallel", [(rank, 0, 5, 0, 4) for rank in range(4)])
FUSED = table("f", "row_wise", [(rank, 3 * rank, 3, 0, 4) for rank in range(4)])


def facts(*tables: Table) -> ExportFacts:
    return ExportFacts(problem=problem_of(*tables))


KNOWN = facts(
    make_hash_table("h", rows=1000, optimizer="adam", bucket_size=64),
    make_table("c", rows=5, dim=4),
    make_table("f", rows=12, dim=4),
)


def test_the_whole_export() -> None:
    """1,000 slots: 250 on a rank, 256 with whole buckets of 64. Values of 64 + 128 fp32 are 768 bytes."""
    given = document(HASH, COPIED, FUSED)
    export = export_plan(given, facts=KNOWN)
    content = {key: value for key, value in export.items() if key != "content_sha256"}
    assert export["content_sha256"] == hashlib.sha256(canonical_bytes(content)).hexdigest()
    shared = {"module_path": "", "data_type": "fp32", "pooling": "sum"}
    assert content == {
        "format": "dynamicemb",
        "format_version": 1,
        "plan_digest": given["plan_digest"],
        "world_size": 4,
        "local_world_size": 2,
        "device": "cuda",
        "tables": [
            {
                "name": "h",
                "num_embeddings": 1000,
                "embedding_dim": 64,
                "sharding_type": "row_wise",
                "compute_kernel": "hash",
                "slots_per_rank": 256,
                "constraints": {
                    "use_dynamicemb": True,
                    "sharding_types": ["row_wise"],
                    "compute_kernels": None,
                    "bounds_check_mode": "NONE",
                    "cache_params": None,
                    "dynamicemb_options": {
                        "training": True,
                        "caching": False,
                        "bucket_capacity": 64,
                        "init_capacity": None,
                        "global_hbm_for_values": 4 * 256 * 768,
                        "score_strategy": ["TIMESTAMP"],
                        "dist_type": "roundrobin",
                    },
                },
                **shared,
            },
            {
                "name": "c",
                "num_embeddings": 5,
                "embedding_dim": 4,
                "sharding_type": "data_parallel",
                "compute_kernel": "dense",
                "slots_per_rank": None,
                "constraints": {
                    "use_dynamicemb": False,
                    "sharding_types": ["data_parallel"],
                    "compute_kernels": ["dense"],
                    "bounds_check_mode": None,
                    "cache_params": None,
                    "dynamicemb_options": None,
                },
                **shared,
            },
            {
                "name": "f",
                "num_embeddings": 12,
                "embedding_dim": 4,
                "sharding_type": "row_wise",
                "compute_kernel": "fused",
                "slots_per_rank": None,
                "constraints": {
                    "use_dynamicemb": False,
                    "sharding_types": ["row_wise"],
                    "compute_kernels": ["fused"],
                    "bounds_check_mode": None,
                    "cache_params": None,
                    "dynamicemb_options": None,
                },
                **shared,
            },
        ],
    }


@pytest.mark.parametrize(
    ("kernel", "share", "caching", "local"),
    [
        ("hash", None, False, 256 * 768),
        ("hash_host", None, False, 0),
        ("hash_hybrid", 0.3, False, 58_983),  # 58,982.4 rounded up
        ("hash_caching", 0.3, True, 58_983),
    ],
)
def test_memory_that_is_asked_for(kernel: str, share: float | None, caching: bool, local: int) -> None:
    placed = table("h", "row_wise", ROWS, compute_kernel=kernel, cache_load_factor=share)
    if kernel != "hash":
        placed["shards"] = [{**shard, "tier": "ddr"} for shard in placed["shards"]]
    (found,) = export_plan(document(placed), facts=KNOWN)["tables"]
    options = found["constraints"]["dynamicemb_options"]
    assert (options["caching"], options["global_hbm_for_values"]) == (caching, 4 * local)


def test_options_of_the_spec() -> None:
    known = facts(make_hash_table("h", rows=1000, eviction="timestamp_lfu", initial=100, optimizer="none"))
    (found,) = export_plan(document(HASH), facts=known)["tables"]
    options = found["constraints"]["dynamicemb_options"]
    assert options["score_strategy"] == ["TIMESTAMP", "LFU"]
    assert (options["init_capacity"], options["training"], options["bucket_capacity"]) == (100, False, 128)


def test_caches_of_torchrec_are_asked_for() -> None:
    placed = table("f", "row_wise", [(r, 3 * r, 3, 0, 4) for r in range(4)], compute_kernel="fused_uvm_caching")
    placed["cache_reserved_bytes"] = 0.25
    (found,) = export_plan(document(placed), facts=KNOWN)["tables"]
    assert found["constraints"]["cache_params"] == {"load_factor": 0.2, "reserved_memory": 0.25}
    assert found["constraints"]["compute_kernels"] == ["fused_uvm_caching"]


@pytest.mark.parametrize(
    ("placed", "reason"),
    [
        (table("f", "table_wise", [(0, 0, 12, 0, 4)]), "it is table_wise, which dynamicemb neither saves nor loads"),
        (table("f", "row_wise", [(r, 3 * r, 3, 0, 4) for r in range(4)], compute_kernel="key_value"), "key_value"),
        (table("f", "row_wise", [(r, 4 * r, 4, 0, 4) for r in range(3)]), "it is not on all ranks"),
        (
            table("f", "row_wise", [(0, 0, 6, 0, 4), (1, 6, 2, 0, 4), (2, 8, 2, 0, 4), (3, 10, 2, 0, 4)]),
            "a row block has 6 rows",
        ),
        (table("c", "data_parallel", [(r, 0, 5, 0, 4) for r in range(3)]), "without one whole copy on every rank"),
        (table("x", "row_wise", ROWS, compute_kernel="hash"), "the spec has no such table"),
        (table("f", "row_wise", ROWS, compute_kernel="hash"), "the spec has no hash_table of the mode dynamicemb"),
        (table("h", "row_wise", ROWS, compute_kernel="hash_host"), "its rows lie in hbm, where hash_host has none"),
        (table("h", "data_parallel", [(r, 0, 5, 0, 4) for r in range(4)], compute_kernel="hash"), "are row_wise"),
    ],
)
def test_what_is_refused(placed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnexportablePlan, match=reason) as raised:
        export_plan(document(placed), facts=KNOWN)
    assert 'set runtime to "dynamicemb"' in str(raised.value)


def test_hash_tables_need_the_spec_and_others_do_not() -> None:
    with pytest.raises(UnexportablePlan, match=r'options of the hash table "h" stand in the spec .*--spec'):
        export_plan(document(HASH))
    assert len(export_plan(document(COPIED, FUSED))["tables"]) == 2


def test_hosts_without_gpus_are_refused() -> None:
    with pytest.raises(UnexportablePlan, match="device must be cuda, not cpu"):
        export_plan(document(HASH), device="cpu", facts=KNOWN)


def planned(problem: Problem) -> dict[str, Any]:
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    given = to_document(result.plan, name="m", spec_digest="sha256:spec", hardware_profile="dgx-h100-80g")
    return export_plan(given, facts=ExportFacts(problem=problem))


@pytest.mark.parametrize("kernel", [Kernel.HASH, Kernel.HASH_HOST, Kernel.HASH_HYBRID, Kernel.HASH_CACHING])
def test_planned_bytes_of_a_rank_are_what_its_operators_hold(kernel: Kernel) -> None:
    """Two tables of one operator, a third of another: the simulator groups and builds them from the export alone."""
    shares = {"cache_load_factors": (0.15,)} if kernel.facts.is_cached else {}
    constraints = named(kernel, **shares)
    tables = [
        make_hash_table("a", 700_001, 64, optimizer="adam", constraints=constraints),
        make_hash_table("b", 90_000, 16, optimizer="adam", constraints=constraints),
        make_hash_table("s", 50_000, 32, optimizer="adam", pooling="none", constraints=constraints),
        make_table("t", rows=4_000, constraints=TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))),
    ]
    problem = problem_of(*tables, kernels=HOST_KERNELS)
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    export = planned(problem)
    operators: dict[tuple[object, ...], list[simulator.Options]] = {}
    for one in export["tables"]:
        if one["constraints"]["use_dynamicemb"]:
            options = simulator.options_of(one, export["world_size"])
            assert options.max_capacity == one["slots_per_rank"]
            operators.setdefault((one["pooling"], options.grouped_key), []).append(options)
    assert sorted(len(some) for some in operators.values()) == [1, 2]
    storages = [simulator.create_storage(some, "adam") for some in operators.values()]
    for rank in result.plan.evaluation.ranks:
        held = {tier.label: lines for tier, lines in rank.ledger_bytes.items()}
        of_fixed = 1_000 * 64 * 4
        on_device = sum(
            held["hbm"][line] for line in ("weights", "optimizer_state", "row_keys", "cache", "cache_index")
        )
        assert on_device - of_fixed == sum(one.device_bytes() for one in storages)
        in_host = sum(held["ddr"].get(line, 0) for line in ("weights", "optimizer_state"))
        assert in_host == sum(one.host_bytes() for one in storages)


def test_names_in_the_spec_decide_whose_options_they_are() -> None:
    known = facts(make_hash_table("a", rows=1000, bucket_size=64), make_hash_table("b", rows=1000, bucket_size=256))
    placed = [table(name, "row_wise", ROWS, compute_kernel="hash") for name in ("b", "a")]
    found = export_plan(document(*placed), facts=known)["tables"]
    assert [one["constraints"]["dynamicemb_options"]["bucket_capacity"] for one in found] == [256, 64]


class Recorded:
    """What a class of dynamicemb is made with."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorded) and self.given == other.given

    __hash__ = None  # type: ignore[assignment]


class Topology:
    world_size = 4


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The script of docs/runtimes.md, run next to a dynamicemb whose classes record what they are made with."""
    page = (ROOT / "docs" / "runtimes.md").read_text(encoding="utf-8")
    (text,) = [
        one
        for one in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        if "DynamicEmbTableOptions" in one
    ]
    package, planner = types.ModuleType("dynamicemb"), types.ModuleType("dynamicemb.planner")
    scores = {name: f"score {name}" for names in SCORE_STRATEGIES.values() for name in names}
    package.DynamicEmbScoreStrategy = scores  # type: ignore[attr-defined]
    package.DynamicEmbTableOptions = Recorded  # type: ignore[attr-defined]
    for name in ("DynamicEmbeddingEnumerator", "DynamicEmbeddingShardingPlanner", "DynamicEmbParameterConstraints"):
        setattr(planner, name, Recorded)
    monkeypatch.setitem(sys.modules, "dynamicemb", package)
    monkeypatch.setitem(sys.modules, "dynamicemb.planner", planner)
    monkeypatch.chdir(tmp_path)

    def run(export: Mapping[str, Any]) -> dict[str, Any]:
        (tmp_path / "dynamicemb.json").write_text(json.dumps(export))
        names: dict[str, Any] = {}
        exec(compile(text, "runtimes.md", "exec"), names)
        return names

    return run


Config = types.SimpleNamespace


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_the_script_makes_constraints(script: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    from torchrec.distributed.types import BoundsCheckMode, CacheParams

    cached = table("f", "row_wise", [(r, 3 * r, 3, 0, 4) for r in range(4)], compute_kernel="fused_uvm_caching")
    names = script(export_plan(document(HASH, cached), facts=KNOWN))
    configs = [Config(name="h", num_embeddings=1000), Config(name="f", num_embeddings=12)]
    made = names["planner_of"](configs, Topology)
    constraints = made.given["constraints"]
    assert made.given["enumerator"].given["constraints"] is constraints
    options = Recorded(
        score_strategy="score TIMESTAMP",
        training=True,
        caching=False,
        bucket_capacity=64,
        init_capacity=None,
        global_hbm_for_values=4 * 256 * 768,
        dist_type="roundrobin",
    )
    assert constraints == {
        "h": Recorded(
            use_dynamicemb=True,
            sharding_types=["row_wise"],
            bounds_check_mode=BoundsCheckMode.NONE,
            dynamicemb_options=options,
        ),
        "f": Recorded(
            use_dynamicemb=False,
            sharding_types=["row_wise"],
            compute_kernels=["fused_uvm_caching"],
            cache_params=CacheParams(load_factor=0.2, reserved_memory=None),
        ),
    }


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_the_script_refuses_other_models_and_ranks(script: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    names = script(export_plan(document(HASH), facts=KNOWN))
    with pytest.raises(SystemExit, match="h: the plan has 1000 rows, not 999"):
        names["planner_of"]([Config(name="h", num_embeddings=999)], Topology)
    with pytest.raises(SystemExit, match="the plan is for 4 ranks, not 8"):
        names["planner_of"]([], types.SimpleNamespace(world_size=8))
