"""Numbers at the edges of what machines hold: refused with their place, or planned, and the plan adds up exactly."""

import copy
import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from api.execution.processes.solve import SolveAnswer, SolveJob, solve
from api.schemas.spec import SpecDocument
from api.services.plans.reports import evaluation_of, validation_of
from api.specs.parse import parse_evaluation, parse_spec
from api.specs.request import SolveRequest
from cost_models.hardware.profile_fields import FIELDS
from planner.domain.formats.compact_form import long_document
from planner.errors import InvalidProblem, UnsupportedRequest
from planner.pipeline import plan as plan_pipeline
from tests.support.service.specs import raw, tiny
from tests.support.thorough import THOROUGH, thorough

#: Of the numbers of a place one in so many is tried, other ones from place to place; of those that are accepted one in
#: so many is planned with.
_READ_STEP, _SOLVE_STEP = (1, 1) if THOROUGH else (3, 7)
_TINIEST = math.ulp(0.0)
_SMALLEST_NORMAL = 2.0**-1022
#: Whatever the field: where signs, 32 and 64 bits, the exact integers of a double, and doubles themselves end.
EDGES: tuple[float, ...] = (
    *(0, -0.0, -1, 1, 0.5),
    *(_TINIEST, -_TINIEST, _SMALLEST_NORMAL, 1e-300, 1e300, math.nextafter(math.inf, 0)),
    *(2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64),
    *(-(2**31) - 1, -(2**63), -(2**63) - 1, 10**30),
)
RATE, BYTES = 1e11, 8e10
FEATURES = [{"name": "f", "pooling_factor": 2.0, "num_poolings": 1.0}]
CHECKPOINT = {
    "interval_steps": 1000,
    "policy": "intermittent",
    "full_every": 8,
    "upload_bytes_per_second": 1e9,
    "download_bytes_per_second": 1e9,
    "intervals_between_failures": 4.0,
    "balance": True,
}
CONSTRAINTS = {"ranks": [0, 1], "min_partition": 8, "compute_kernels": ["fused", "fused_uvm_caching"]}
SERVED = tiny(
    objective="request_latency",
    cost_model="serving",
    model__pipeline="none",
    hardware__overrides={"host_link_message_seconds": 1e-6},
    model__tables__0__optimizer="none",
    model__tables__1__optimizer="none",
    serving={"samples_per_request": 16, "requests_per_second": 10.0, "utilization_limit": 0.9, "p99_seconds": 1.0},
)
del SERVED["model"]["batch_size_per_rank"]
KV_CACHE = {"tokens_per_user": 16.0, "recompute_seconds": 1e-3, "hit_rates": [[10.0, 0.5]]}
KV_SHAPE = {"layers": 2, "kv_heads": 2, "head_dim": 8, "data_type": "bf16"}


def with_kv_cache(**cache: object) -> dict[str, Any]:
    """The served spec with a cache of keys and values."""
    spec = copy.deepcopy(SERVED)
    del spec["serving"]["p99_seconds"]
    spec["serving"]["kv_cache"] = {**KV_CACHE, **cache}
    return spec


#: Together they have every number of a spec.
SPECS: Mapping[str, dict[str, Any]] = {
    "everything": tiny(
        schema_version=1,
        model__dense={
            "forward_seconds": 0.001,
            "backward_seconds": 0.002,
            "parameter_bytes": 1e6,
            "activation_bytes": 1e6,
        },
        model__tables__0__constraints=CONSTRAINTS | {"cache_load_factors": [0.5]},
        hardware__pod_size=2,
        hardware__overrides={"hbm_bytes": BYTES, "ddr_bytes": BYTES, "relative_speed_by_rank": [1.0, 0.5]},
        constraints={
            "reserved_hbm_fraction": 0.1,
            "reserved_ddr_fraction": 0.1,
            "reserved_collective_bytes": 1e6,
        },
        solver__relative_gap=0.01,
        solver__seed=1,
        solver__work_limit_seconds=4.0,
        solver__cutoff_seconds=1e-6,
        checkpoint=CHECKPOINT,
    ),
    "rates": tiny(
        hardware__overrides={
            "hbm_bytes_per_second": RATE,
            "ddr_bytes_per_second": RATE,
            "host_link_bytes_per_second": RATE,
            "intra_host_bytes_per_second": RATE,
            "hbm_bytes_by_rank": [BYTES, BYTES],
        },
        model__tables__0__access={"zipf_alpha": 1.05},
    ),
    "histogram": tiny(model__tables__0__access={"reuse_histogram": [5.0, 3.0, *[0.0] * 15]}),
    "cdf": tiny(
        model__tables__0__access={"access_cdf": [[0.1, 0.9], [1.0, 1.0]], "distinct_rows": [[10.0, 9.0], [100.0, 50.0]]}
    ),
    "row cdf": tiny(
        model__tables__0__access={"row_cdf": [[0.1, 0.9], [1.0, 1.0]], "distinct_row_cdf": [[0.1, 0.5], [1.0, 1.0]]}
    ),
    "curve": tiny(model__tables__0__access={"miss_ratio_curve": [[0.1, 0.9], [1.0, 0.0]]}),
    "split": tiny(
        runtime="generic",
        model__tables__0__access={"zipf_alpha": 1.05},
        model__tables__0__constraints={"hot_row_fractions": [0.1], "compute_kernels": ["fused_uvm"], "hosts": [0]},
    ),
    "probed slots": tiny(
        model__tables__0__hash_table={
            "mode": "mpzch",
            "capacity": 1200,
            "bucket_size": 100,
            "max_probe": 64,
            "metadata_bytes_per_slot": 8,
        }
    ),
    "sorted slots": tiny(
        model__tables__0__hash_table={"mode": "zch", "eviction": "lru", "eviction_interval": 10, "capacity": 1200}
    ),
    "slots found by key": tiny(
        runtime="dynamicemb",
        model__tables__0__hash_table={
            "mode": "dynamicemb",
            "capacity": 1200,
            "bucket_size": 64,
            "initial_capacity_per_rank": 200,
        },
    ),
    "ordered": tiny(
        objectives=[
            {"name": "step_time"},
            {"name": "fullest_rank", "tolerance": 0.1, "tolerance_seconds": 1e-5, "tolerance_bytes": 1e3},
        ]
    ),
    "operations": tiny(
        model__dense={
            "forward_flops_per_sample": 1e6,
            "backward_flops_per_sample": 2e6,
            "compute_dtype": "fp16",
            "parameter_bytes": 1e6,
        },
        hardware__overrides={"dense_efficiency": 0.5, "fp16_flops_per_second": 1e14},
    ),
    "stash": tiny(
        model__dense={"forward_seconds": 0.1, "backward_seconds": 0.2, "activation_bytes": 1e9},
        model__stash={"link_share": 0.5, "max_wait_seconds": 0.001},
    ),
    "layers": tiny(
        model__dense={
            "layers": {"mlp_widths": [[13, 8]], "cross_layers": {"num_layers": 2, "width": 64, "rank": 8}},
            "compute_dtype": "bf16",
        }
    ),
    "groups": tiny(
        hardware__ranks_per_host=4,
        hardware__replica_groups={"sharding_group_size": 2, "sync_interval_steps": 10},
    ),
    "served": SERVED,
    "keys and values": with_kv_cache(sizes_bytes=[1e6], bytes_per_token=512.0),
    "shape of keys and values": with_kv_cache(sizes_bytes=[1e6], shape=KV_SHAPE),
}
SPECS["split"]["model"]["tables"][1]["features"] = FEATURES
del SPECS["split"]["model"]["tables"][1]["pooling_factor"]

#: Numbers of other documents that a spec may hold: their own tests look at their edges.
ELSEWHERE = {"bytes", "cache_load_factor", "column_offset", "max_moved_bytes", "min_relative_gain", "num_columns"}
ELSEWHERE |= {"num_rows", "rank", "remaining_steps", "row_offset", "bits", *FIELDS}


def numbers(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where there are numbers in a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from numbers(item, (*path, index))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def with_number(spec: object, path: tuple[str | int, ...], number: float) -> Any:
    """A copy of a document with another number at a place."""
    changed = copy.deepcopy(spec)
    place: Any = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = number
    return changed


def bounds(schema: Mapping[str, Any]) -> dict[str, set[float]]:
    """The bounds of the numbers of a schema, by the names of fields."""
    found: dict[str, set[float]] = {}

    def look(name: str, part: Any) -> None:
        if isinstance(part, list):
            for item in part:
                look(name, item)
        if not isinstance(part, dict):
            return
        if part.get("type") in ("number", "integer"):
            keys = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            found.setdefault(name, set()).update(part[key] for key in keys if key in part)
        for key in ("anyOf", "items"):
            look(name, part.get(key))

    for part in (schema, *schema["$defs"].values()):
        for name, field in part.get("properties", {}).items():
            look(name, field)
    return found


BOUNDS = bounds(SpecDocument.model_json_schema())


def edges_of(path: tuple[str | int, ...]) -> list[float]:
    """Numbers to try at a place: those of every place, its bounds, and what lies next to them."""
    tried = list(EDGES)
    for bound in sorted(BOUNDS.get(str(next(part for part in reversed(path) if isinstance(part, str))), ())):
        tried += [bound, float(bound), math.nextafter(bound, math.inf), math.nextafter(bound, -math.inf)]
        tried += [int(bound) - 1, int(bound) + 1]
    return tried


def solved(request: SolveRequest, folder: Path) -> SolveAnswer:
    """What a solver process does, in this one."""
    job = SolveJob(
        spec_bytes=raw(request.spec),
        spec_digest=request.spec_digest,
        assumptions=[],
        incumbent_file=folder / "plan",
        plan=plan_pipeline,
    )
    return solve(job, lambda incumbent: None)


def check_plan(spec: object, document: bytes) -> Any:
    """Judge a plan by the service's verifier, and its sums by plain arithmetic; return it."""
    plan = json.loads(document)
    evaluation = evaluation_of(*parse_evaluation(raw({"spec": spec, "plan": plan})))
    assert evaluation.valid, evaluation.violations
    request = parse_spec(raw(spec))
    tables = {table.name: table for table in request.problem.tables}
    plan = long_document(plan)
    for table in plan["tables"]:
        cells = tables[table["name"]].num_embeddings * tables[table["name"]].embedding_dim
        held = sum(shard["num_rows"] * shard["num_columns"] for shard in table["shards"])
        copies = plan["world_size"] if table["sharding_type"] == "data_parallel" else 1
        assert held == cells * copies
    for rank in plan["ranks"]:
        for tier, lines in rank["ledger_bytes"].items():
            total = sum(Fraction(number) for number in lines.values())
            assert abs(total - Fraction(rank["bytes"][tier])) <= len(lines) + Fraction(rank["bytes"][tier]) / 2**50
            assert rank["bytes"][tier] >= 0
    for phase in plan["phases"]:
        of_ranks = [rank["seconds"].get(phase["name"], 0.0) for rank in plan["ranks"]]
        assert phase["seconds"] == max(of_ranks)
        assert all(0 <= seconds < math.inf for seconds in of_ranks)
    return plan


@pytest.mark.parametrize("name", [pytest.param(name, marks=[thorough] * (name != "everything")) for name in SPECS])
def test_a_number_is_refused_with_its_place_or_planned_with(tmp_path: Path, name: str) -> None:
    spec, num_refused, accepted = SPECS[name], 0, []
    parse_spec(raw(spec))
    for index, path in enumerate(numbers(spec)):
        for number in edges_of(path)[index % _READ_STEP :: _READ_STEP]:
            changed = with_number(spec, path, number)
            try:
                request = parse_spec(raw(changed))
            except (InvalidProblem, UnsupportedRequest) as error:
                issues = error.issues if isinstance(error, InvalidProblem) else (error.issue,)
                assert issues, (path, number)
                assert all(issue.pointer for issue in issues), (path, number)
                num_refused += 1
                continue
            validation_of(request).model_dump_json()
            accepted.append((path, number, changed, request))
    assert num_refused
    small_ranks = [one for one in accepted if one[3].problem.world_size <= 64]
    for path, number, changed, request in small_ranks[::_SOLVE_STEP]:
        answer = solved(request, tmp_path)
        assert (answer.error or {}).get("code") != "solver-defect", (path, number, answer)
        if answer.best is not None:
            check_plan(changed, answer.best.document)


def test_every_number_of_a_spec_is_tried() -> None:
    tried = {part for spec in SPECS.values() for path in numbers(spec) for part in path if isinstance(part, str)}
    assert set(BOUNDS) - ELSEWHERE <= tried


@pytest.mark.parametrize("name", FIELDS)
def test_a_rate_that_nothing_has_is_refused(name: str) -> None:
    """Bytes divided by such a rate are no number of seconds any more."""
    for number in (0, -0.0, _TINIEST, _SMALLEST_NORMAL, 1e-300, 0.999):
        spec = raw(tiny(hardware__overrides={name: number}))
        if FIELDS[name].may_be_zero or (FIELDS[name].unit == "share" and number >= 0.001):
            continue
        with pytest.raises(InvalidProblem) as caught:
            parse_spec(spec)
        assert f"/hardware/overrides/{name}" in {issue.pointer for issue in caught.value.issues}


#: 2^40 rows of 2^14 columns of 4 bytes are 2^56 bytes: 128 of them overflow 64 bits with a sign, and 256 come to 2^64,
#: which is nothing at all in 64 bits.
@thorough
@pytest.mark.parametrize("num_tables", [127, 128, 129, 256])
@pytest.mark.parametrize("partitioner", ["greedy", "portfolio"])
def test_sums_of_tables_beyond_64_bits(tmp_path: Path, num_tables: int, partitioner: str) -> None:
    tables = [
        {"name": f"t{i}", "num_embeddings": 2**40, "embedding_dim": 2**14, "pooling_factor": 1.0, "optimizer": "sgd"}
        for i in range(num_tables)
    ]
    weights = num_tables * 2**56
    for num_ranks, fits in ((64, True), (8, False)):
        rates = {"hbm_bytes": 1e18, "ddr_bytes": 0}
        spec = tiny(
            model__tables=tables,
            hardware={"profile": "dgx-h100-80g", "num_hosts": num_ranks // 8, "overrides": rates},
            solver={"partitioner": partitioner, "time_limit_seconds": 2},
        )
        request = parse_spec(raw(spec))
        totals = validation_of(request).totals
        assert (totals.num_rows, totals.weight_bytes) == (num_tables * 2**40, weights)
        answer = solved(request, tmp_path)
        if not fits:
            assert weights > 8 * 10**18 * 0.85
            assert answer.best is None
            assert answer.reason in ("INFEASIBLE", "NO_SOLUTION_FOUND")
            continue
        assert answer.best is not None
        plan = check_plan(spec, answer.best.document)
        held = [sum(int(number) for number in (rank["ledger_bytes"]["hbm"]["weights"],)) for rank in plan["ranks"]]
        copies = sum(shard["num_rows"] * shard["num_columns"] * 4 for t in plan["tables"] for shard in t["shards"])
        assert copies == weights
        assert abs(sum(held) - weights) <= weights / 2**50


def test_shards_whose_cells_overflow_cover_nothing() -> None:
    """2^40 x 2^24 cells are none in 64 bits, and what is larger than its table is no part of it."""
    spec = tiny(model__tables__0__num_embeddings=2**40, hardware__overrides={"hbm_bytes": 1e18})
    shard = {"rank": 0, "row_offset": 0, "num_rows": 2**40, "column_offset": 0, "num_columns": 2**24, "tier": "hbm"}
    table = {"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    whole = {"rank": 1, "row_offset": 0, "num_rows": 500, "column_offset": 0, "num_columns": 16, "tier": "hbm"}
    other = {"name": "b", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [whole]}
    for shards in ([shard], [shard, shard], [shard, {**shard, "num_columns": 8}]):
        plan = {"world_size": 2, "ranks_per_host": 2, "tables": [{**table, "shards": shards}, other]}
        evaluation = evaluation_of(*parse_evaluation(raw({"spec": spec, "plan": plan})))
        assert not evaluation.valid
        assert "shard-out-of-range" in {violation.code for violation in evaluation.violations}
