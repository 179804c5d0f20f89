"""Which features of a solve a spec has."""

import numpy as np

from api.specs.request import SolveRequest
from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.hash_table import HASH_TABLE_MODES
from planner.domain.problem.problem import OBJECTIVES, REQUEST_LATENCY
from planner.options.module_rules import module_rules
from planner.solver.problem import Scope
from tests.support.brute_force.whole_optimum import Listed, listed_problems

_RUNTIMES = ("torchrec", "generic", "torcheasyrec", "dynamicemb", "hugectr", "distributed_embeddings")
_COST_MODELS = ("roofline", "torchrec", "serving")


def features_of(request: SolveRequest) -> dict[str, bool]:
    """Return every feature by its name, and whether the spec has it; empty where a table of it has no option."""
    found: dict[str, bool] = {}
    for listed in listed_problems(request):
        found |= {name: has or found.get(name, False) for name, has in _features_of(request, listed).items()}
    return found


def _features_of(request: SolveRequest, listed: Listed) -> dict[str, bool]:
    priced, problem, cluster = listed.priced, request.problem, request.problem.cluster
    serving, previous, groups = problem.serving, request.previous, problem.replica_groups
    storages = [one.storage for one in listed.families.families]
    tiers = {one.tier(cluster.device_tier) for one in storages}
    sizes, speeds = (set(some or ()) for some in (cluster.hbm_bytes_by_rank, cluster.relative_speed_by_rank))
    return {
        **{f"objective {name}": problem.objective == name for name in (*OBJECTIVES, REQUEST_LATENCY)},
        **{f"runtime {name}": problem.runtime == name for name in _RUNTIMES},
        **{f"cost model {name}": request.cost_model.name == name for name in _COST_MODELS},
        **{f"scope {scope.name}": bool(np.any(priced.family_scope == scope)) for scope in Scope},
        "several pieces": bool(np.any(priced.family_max_pieces > 1)),
        "host memory": Tier.DDR in tiers,
        "storage-class memory": Tier.SCM in tiers,
        "block storage": Tier.SSD in tiers,
        "caches": any(one.kernel is Kernel.FUSED_UVM_CACHING for one in storages),
        "rows split by heat": any(one.hot_row_share > 0 for one in storages),
        "a choice of data types": len({one.data_type.name for one in storages}) > 1,
        "starts": priced.num_kinds > 0,
        "hidden windows": bool(np.any(priced.phase_window_seconds > 0)),
        "modules cut by rows throughout": len(module_rules(problem, listed.families)) > 0,
        "pins": len(priced.pinned_shape) > 0,
        "chosen ranks": not np.all(priced.table_rank_allowed),
        "same rank": len(priced.same_rank) > 0,
        "apart": len(priced.apart) > 0,
        "several hosts": cluster.num_hosts > 1,
        "pods": cluster.pod_size is not None,
        "sharding groups": listed.problem.is_replicated,
        "sharding groups of several hosts": listed.problem.is_replicated and cluster.num_hosts > 1,
        "sharding groups in pods": listed.problem.is_replicated and cluster.pod_size is not None,
        "a choice of sharding groups": groups is not None and not groups.is_decided,
        "checkpoints of sharding groups": listed.problem.is_replicated and problem.checkpoint is not None,
        **{f"hash tables {mode}": any(t.hash_table_mode == mode for t in problem.tables) for mode in HASH_TABLE_MODES},
        "deduplicated ids": problem.use_index_dedup is True,
        "deduplication left open": problem.use_index_dedup is None,
        "ranks of several sizes": len(sizes) > 1,
        "ranks of several speeds": len(speeds) > 1,
        "checkpoint": problem.checkpoint is not None,
        "tiers that may be too slow": priced.shape_busy_seconds is not None,
        "a rate of requests": serving is not None and serving.requests_per_second is not None,
        "previous plan": previous is not None,
        "checkpoint of another plan": problem.checkpoint_plan is not None,
        "cuts that are given": len(priced.fixed_cut_table) > 0,
        "limit of moved bytes": previous is not None and previous.max_moved_bytes is not None,
    }
