"""Rules of sharding groups: their sizes on these hosts, and what can be planned together with them."""

from api.schemas.spec import ReplicaGroupsSpec, SpecDocument
from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.analytic.roofline import RooflineModel
from cost_models.hardware.hardware import Hardware
from cost_models.text.number_text import counted
from planner.domain.problem.cluster import MAX_RANKS, Cluster
from planner.domain.problem.problem import REQUEST_LATENCY
from planner.domain.problem.replica_groups import SYNCED_OPTIMIZERS, ReplicaGroups
from planner.options.runtimes.registry import RUNTIMES
from planner.options.runtimes.torchrec.rules import TorchRec

_WHERE = "/hardware/replica_groups"
_SIZE = f"{_WHERE}/sharding_group_size"
_SHOWN = 20  # sizes that a message names
#: TorchRec 1.8.0 ``DMPCollection._sync_mcc_modules``, by the mode of a hash table.
_OF_HASH_TABLES = {
    "zch": "TorchRec's DMPCollection fails at its first average of zch tables, whose modules have no sync_identities",
    "mpzch": "one sharding group merges the ids of all at every average, for which neither seconds nor bytes are known",
}
_OF_OTHER_HASH_TABLES = "every sharding group would give ids rows of its own"


def check_replica_groups(state: SpecState, issues: IssueCollector) -> None:
    """Report what is wrong with the sharding groups of a spec, if it has any."""
    groups = state.spec.hardware.replica_groups
    if groups is None or not issues.is_sound(_WHERE):
        return
    _check_runtime(state.spec, groups, issues)
    _check_tables(state, groups, issues)
    if state.hardware is not None and issues.is_sound(*state.rank_fields, "/hardware/pod_size"):
        _check_sizes(state, state.hardware, groups, issues)


def check_previous_groups(state: SpecState, issues: IssueCollector) -> None:
    """Report a previous plan for groups of another size: what moves is counted between groups of one size."""
    problem, previous = state.problem, state.previous
    if problem is None or previous is None or problem.replica_groups is None:
        return
    before, sizes = previous.plan.placement.world_size, problem.replica_groups.sizes
    if sizes != (before,):
        fits = before in sizes
        issues.report(
            "/previous_plan",
            f"the previous plan is for groups of {counted(before, 'rank')}, and groups have"
            f" {' or '.join(map(str, sizes[-_SHOWN:]))} here; moves are counted between groups of one size",
            f"set hardware.replica_groups.sharding_group_size to {before}"
            if fits
            else "leave previous_plan out, or plan groups of the size that runs",
            reads=(_SIZE, *state.rank_fields),
        )


def _check_runtime(spec: SpecDocument, groups: ReplicaGroupsSpec, issues: IssueCollector) -> None:
    """Report what is not planned together with sharding groups."""
    leave_out = "or leave hardware.replica_groups out"
    if not RUNTIMES[spec.runtime].has_replica_groups:
        issues.report(
            "/runtime",
            f"sharding groups are those of TorchRec's DMPCollection, and the runtime is {spec.runtime}",
            f"use the runtime {TorchRec.name}, {leave_out}",
        )
    if spec.objective == REQUEST_LATENCY:
        issues.report(
            _WHERE, f"the objective {REQUEST_LATENCY} is of hosts that serve, which average nothing", "leave it out"
        )
    elif spec.cost_model != RooflineModel.name:
        issues.report(
            "/cost_model",
            f"{spec.cost_model} has no price of averages over sharding groups",
            f"use the cost model {RooflineModel.name}, {leave_out}",
        )
    if spec.model.stash is not None:
        issues.report(
            "/model/stash",
            "TorchRec stashes weights on GPUs alone, and whether it averages those tables is not known",
            f"leave stash out, {leave_out}",
        )
    if spec.objectives is not None and groups.has_choice:
        issues.report(
            "/objectives",
            "ordered objectives are planned for one size of sharding groups: what one may worsen is counted from the"
            " best plan of that size",
            f"give one sharding_group_size and plan each in turn, leave objectives out, {leave_out}",
            reads=(_SIZE,),
        )


def _check_tables(state: SpecState, groups: ReplicaGroupsSpec, issues: IssueCollector) -> None:
    """Report tables that groups do not keep alike, and those with ranks where the size of a group is open."""
    replicated = ["data_parallel"]
    for where, table in state.written_tables():
        name, constraints = quoted(table.name), table.constraints
        if constraints.sharding_types != replicated and table.optimizer not in SYNCED_OPTIMIZERS:
            issues.report(
                f"{where}/optimizer",
                f"table {name}: TorchRec's DMPCollection finds no state to average of the optimizer {table.optimizer}",
                f"use {', '.join(sorted(SYNCED_OPTIMIZERS - {'none'}))}, or the sharding type data_parallel",
                reads=(f"{where}/constraints/sharding_types",),
            )
        if table.hash_table is not None:
            issues.report(
                f"{where}/hash_table",
                f"table {name}: {_OF_HASH_TABLES.get(table.hash_table.mode, _OF_OTHER_HASH_TABLES)}",
                "leave hash_table out, or hardware.replica_groups",
            )
        if not groups.has_choice:
            continue
        for field in ("ranks", "hosts", "pinned"):
            if getattr(constraints, field) is not None:
                issues.report(
                    f"{where}/constraints/{field}",
                    f"table {name} has {field} in a sharding group whose size is not decided",
                    "give one sharding_group_size, or leave them out",
                )


def _check_sizes(state: SpecState, hardware: Hardware, groups: ReplicaGroupsSpec, issues: IssueCollector) -> None:
    """Report sizes that the job cannot be divided into, each by itself."""
    spec = state.spec.hardware
    per_host = spec.ranks_per_host or hardware.ranks_per_host
    if spec.num_hosts * per_host > MAX_RANKS:
        return
    job = Cluster(hardware=hardware, num_hosts=spec.num_hosts, ranks_per_host=per_host, pod_size=spec.pod_size)
    contiguous = groups.use_inter_host_allreduce
    possible = ReplicaGroups.sizes_of(job, contiguous=contiguous)
    given = groups.sharding_group_size
    if given == "auto":
        if not possible:
            ranks = counted(job.world_size, "rank")
            issues.report(_SIZE, f"{ranks} cannot be divided into sharding groups", "plan for 2 ranks or more")
        return
    listed = [given] if isinstance(given, int) else list(given)
    shown = ", ".join(map(str, possible[-_SHOWN:]))
    for number, size in enumerate(listed):
        issue = ReplicaGroups.issue_of(job, size, contiguous=contiguous)
        if issue is not None:
            other = "" if contiguous else ", or set use_inter_host_allreduce"
            issues.report(
                _SIZE if isinstance(given, int) else f"{_SIZE}/{number}",
                issue,
                f"use one of {shown}{other if job.world_size % size == 0 else ''}" if shown else "plan for more ranks",
                reads=(*state.rank_fields, "/hardware/pod_size", f"{_WHERE}/use_inter_host_allreduce"),
            )
