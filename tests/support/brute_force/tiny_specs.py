"""Specs of every feature, with so few tables and ranks that all plans can be looked at.

Each is drawn from its number alone: a random spec (:mod:`tests.support.planning.random_specs`) of which one to three
tables are left, those first of which the spec says something.
"""

import copy
import functools
import json
import math

import numpy as np

from api.execution.processes.solve import facts_of
from api.specs.checks.checkpoint_plan import RUNTIMES
from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from planner.domain.problem.replica_groups import SYNCED_OPTIMIZERS
from planner.errors import InvalidProblem
from planner.pipeline import plan
from planner.solver.partitioners.greedy import Greedy
from tests.support.brute_force.whole_optimum import listed_problems
from tests.support.planning.exhaustive import num_placements
from tests.support.planning.long_plans import to_bytes
from tests.support.planning.random_specs import Spec, random_spec, with_previous

#: More placements of one table, or plans, are too many to be looked at.
_MOST_PLACEMENTS, _MOST_PLANS = 400, 40_000
_GROUPS = ("same_rank", "apart")
#: What host memory and the link to it do in a second, where they are slow.
_SLOW_BYTES_PER_SECOND = {"ddr_bytes_per_second": 2e9, "host_link_bytes_per_second": 2e9}
_SCM = {
    "scm_bytes": 1e12,
    "scm_bytes_per_second": 1e10,
    "scm_write_bytes_per_second": 4e9,
    "scm_block_bytes": 256,
}
_LEAST_CUT = 64  # columns of tables that are cut in a checkpoint
_HASH_TABLES: tuple[Spec, ...] = (
    {"mode": "zch", "eviction": "lru", "eviction_interval": 10},
    {"mode": "mpzch", "eviction": "single_ttl"},
    {"mode": "mpzch"},
)
_REPLICATED = 5  # one spec in so many has sharding groups
_OF_SLOTS = {"torchrec": len(_HASH_TABLES), "torcheasyrec": 1}  # how many of these a runtime has
_RARE = "key_value"  # a kernel that few tables ask for
_ATTEMPTS = 1000


@functools.lru_cache(maxsize=64)
def tiny_request(number: int) -> SolveRequest:
    """Return a spec that its runtime takes, with few plans.

    Every third that can has a previous plan, and every other one of these starts from a checkpoint.
    """
    for attempt in range(_ATTEMPTS):
        spec = _tiny_spec(number, attempt)
        request = _read(spec)
        if request is None or not _has_few_plans(request):
            continue
        again = None
        if number % 3 == 0:
            again = _read(_with_previous(spec, request, number))
        elif number % 2 == 0 and spec["runtime"] in RUNTIMES and "serving" not in spec:
            again = _read(_with_checkpoint(spec, request, number))
        return again if again is not None and _has_few_plans(again) else request
    raise AssertionError(f"no spec {number} with few plans")


def _tiny_spec(number: int, attempt: int) -> Spec:
    rng = np.random.default_rng((number, attempt, 7))
    spec = random_spec(8 * int(rng.integers(2**27)) + number % 8)  # of which one in eight serves
    tables, constraints = spec["model"]["tables"], spec.setdefault("constraints", {})
    grouped = [name for key in _GROUPS for group in constraints.get(key, ()) for name in sorted(group)]
    first = [name for name in grouped if rng.random() < 0.8]  # else what is left is often a group
    others = sorted((table["name"] for table in tables if "constraints" in table), key=lambda _: rng.random())
    rare = [table["name"] for table in tables if _RARE in table.get("constraints", {}).get("compute_kernels", ())]
    order = dict.fromkeys((*rare, *first, *others, *(table["name"] for table in tables)))
    left = set(list(order)[: int(rng.integers(1, 4))])
    spec["model"]["tables"] = [table for table in tables if table["name"] in left]
    for key in _GROUPS:
        constraints[key] = [group for group in constraints.get(key, ()) if left.issuperset(group)]
    if "serving" not in spec and not spec["hardware"]["profile"].startswith("cpu"):
        overrides = spec["hardware"]["overrides"]
        overrides |= _SLOW_BYTES_PER_SECOND if rng.random() < 0.3 else {}
        overrides |= _SCM if spec["runtime"] == "generic" and rng.random() < 0.4 else {}
    if "serving" not in spec:
        if number % _REPLICATED == 1:
            _replicate(spec, np.random.default_rng((number, attempt, 8)))
        _group_hosts(spec, np.random.default_rng((number, attempt, 4)))
        _hash_ids(spec, np.random.default_rng((number, attempt, 5)))
        _find_by_key(spec, np.random.default_rng((number, attempt, 6)))
        _grow_maps(spec, np.random.default_rng((number, attempt, 9)))
        _leave_out_repeats(spec, np.random.default_rng((number, attempt, 10)))
    return spec


def _leave_out_repeats(spec: Spec, rng: np.random.Generator) -> None:
    """Deduplicate the ids of some specs with sequences, or leave that to the planner."""
    has_sequences = any(table["pooling"] == "none" for table in spec["model"]["tables"])
    is_gpu = not spec["hardware"]["profile"].startswith("cpu")
    if has_sequences and is_gpu and spec["runtime"] in ("torchrec", "dynamicemb") and rng.random() < 0.8:
        spec["model"]["use_index_dedup"] = ("on", "auto")[int(rng.integers(2))]
        spec["cost_model"] = "roofline"  # which prices that


def _group_hosts(spec: Spec, rng: np.random.Generator) -> None:
    """Make pods of two hosts of some clusters."""
    hardware = spec["hardware"]
    has_groups = "replica_groups" in hardware
    if (
        hardware["num_hosts"] % 2 == 0
        and spec["runtime"] in ("torchrec", "generic")
        and not has_groups
        and rng.random() < 0.4
    ):
        hardware["pod_size"] = 2 * hardware["ranks_per_host"]
        hardware["overrides"]["intra_host_bytes_per_second"] = 2e11


def _hash_ids(spec: Spec, rng: np.random.Generator) -> None:
    """Make hash tables of some tables, in modules of their own."""
    for table in spec["model"]["tables"]:
        is_rare = _RARE in table.get("constraints", {}).get("compute_kernels", ())
        has_groups = "replica_groups" in spec["hardware"]
        if spec["runtime"] in _OF_SLOTS and rng.random() < 0.15 and not is_rare and not has_groups:
            found = _HASH_TABLES[int(rng.integers(_OF_SLOTS[spec["runtime"]]))]
            table |= {"hash_table": found, "module_path": f"m.mc.{table['name']}"}


def _replicate(spec: Spec, rng: np.random.Generator) -> None:
    """Make a job of several groups of what was the whole of it; some choose between it and larger groups."""
    hardware, tables = spec["hardware"], spec["model"]["tables"]
    spec |= {"runtime": "torchrec", "cost_model": "roofline"}
    for table in tables:
        if table["optimizer"] not in SYNCED_OPTIMIZERS:
            table["optimizer"] = ("sgd", "adagrad", "rowwise_adagrad")[int(rng.integers(3))]
    if hardware["num_hosts"] % 2 == 0 and rng.random() < 0.6:
        hardware["pod_size"] = 2 * hardware["ranks_per_host"]
        hardware["overrides"]["intra_host_bytes_per_second"] = 2e11
    size, contiguous = hardware["num_hosts"] * hardware["ranks_per_host"], bool(rng.random() < 0.5)
    hardware["num_hosts" if contiguous else "ranks_per_host"] *= 2
    if "pod_size" in hardware and not contiguous:
        hardware["pod_size"] *= 2
    for field in ("hbm_bytes_by_rank", "relative_speed_by_rank"):
        if field in hardware["overrides"]:
            hardware["overrides"][field] *= 2
    names_ranks = any(
        field in table.get("constraints", {}) for table in tables for field in ("ranks", "hosts", "pinned")
    )
    sizes = [size, 2 * size] if not names_ranks and rng.random() < 0.5 else size
    hardware["replica_groups"] = {
        "sharding_group_size": sizes,
        "sync_interval_steps": (1, 10, 1000)[int(rng.integers(3))],
        "include_optimizer_state": bool(rng.random() < 0.7),
        "use_inter_host_allreduce": contiguous,
    }


def _find_by_key(spec: Spec, rng: np.random.Generator) -> None:
    """Give some specs the runtime dynamicemb, and hash tables of it."""
    if spec["runtime"] != "torcheasyrec" or rng.random() >= 0.4:
        return
    spec |= {"runtime": "dynamicemb", "cost_model": "roofline"}  # which has laws of them
    kernels = (None, ["hash"], ["hash_caching"], ["hash_hybrid"], ["hash_host"])
    which = kernels[int(rng.integers(len(kernels)))]
    for table in spec["model"]["tables"]:
        if rng.random() < 0.7:
            constraints = {"cache_load_factors": [0.3]} | ({} if which is None else {"compute_kernels": which})
            eviction = ("none", "timestamp", "lfu", "timestamp_lfu")[int(rng.integers(4))]
            table |= {"hash_table": {"mode": "dynamicemb", "eviction": eviction}, "constraints": constraints}


def _grow_maps(spec: Spec, rng: np.random.Generator) -> None:
    """Give some specs the runtime hugectr, and most of these dynamic tables."""
    if spec["runtime"] not in ("distributed_embeddings", "generic") or rng.random() >= 0.2:
        return
    spec |= {"runtime": "hugectr", "constraints": {}}
    is_dynamic, optimizer = rng.random() < 0.7, ("sgd", "adagrad")[int(rng.integers(2))]
    for table in spec["model"]["tables"]:
        for name in ("constraints", "data_type", "is_weighted"):
            table.pop(name, None)
        table |= {"optimizer": optimizer} | ({"hash_table": {"mode": "hugectr"}} if is_dynamic else {})


def _with_previous(spec: Spec, request: SolveRequest, number: int) -> Spec:
    """Return the spec, drifted, with a plan that runs already; the spec itself where greedy finds none."""
    first = plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=request.limits).plan
    if first is None:
        return spec
    return with_previous(spec, json.loads(to_bytes(first, **facts_of(request, request.spec_digest))), number)


def _with_checkpoint(spec: Spec, request: SolveRequest, number: int) -> Spec:
    """Return the spec of a job that starts from a checkpoint, whose plan has more pieces than greedy would cut."""
    forced = copy.deepcopy(spec)
    for table in forced["model"]["tables"]:
        if "constraints" not in table and table["embedding_dim"] >= _LEAST_CUT:
            table["constraints"] = {"sharding_types": ["column_wise"]}
    written = _read(forced) or request
    found = plan(written.problem, cost_model=written.cost_model, partitioner=Greedy(), limits=written.limits).plan
    if found is None:
        return spec
    document = json.loads(to_bytes(found, **facts_of(written, written.spec_digest)))
    keep = ("state", "schemes")[number // 2 % 2]
    return {**spec, "checkpoint_plan": {"plan": document, "keep": keep}}


def _read(spec: Spec) -> SolveRequest | None:
    try:
        return parse_spec(json.dumps(spec).encode())
    except InvalidProblem:
        return None


def _has_few_plans(request: SolveRequest) -> bool:
    of_tables = [num_placements(one.priced, _MOST_PLACEMENTS) for one in listed_problems(request)]
    return all(max(some) <= _MOST_PLACEMENTS and math.prod(some) <= _MOST_PLANS for some in of_tables)
