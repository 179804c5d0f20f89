"""The fourth stage: documents become values of the domain, as far as they are sound."""

from collections.abc import Iterable
from dataclasses import replace

from api.schemas.spec import HardwareOverrides, HardwareSpec, JointConstraintsSpec, ModelSpec, SpecDocument
from api.schemas.stash import StashSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from api.specs.to_domain.checkpoint import checkpoint_of
from api.specs.to_domain.dense import dense_of
from api.specs.to_domain.goals import goals_of
from api.specs.to_domain.pinned_tables import pin_tables
from api.specs.to_domain.serving import serving_of
from api.specs.to_domain.tables import tables_of
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import Tier
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import SERVING_DENSE_MULTIPLIER, SERVING_INPUT_COPIES, Problem, Reservation
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.stash import Stash
from planner.domain.problem.table import Table
from planner.orchestration.placement.renamed import with_checkpoint_plan


def _fields(section: str, names: Iterable[str], *without: str) -> tuple[str, ...]:
    return tuple(f"/{section}/{name}" for name in names if name not in without)


#: What says how much memory ranks have, how fast they are, which of them are pods, and how they are divided.
_RANK_SETTINGS = (
    "/hardware/pod_size",
    "/hardware/replica_groups",
    *_fields("hardware/overrides", (*(f"{tier.label}_bytes" for tier in Tier), *HardwareOverrides.model_fields)),
)
#: What a problem is made of, apart from its cluster, its tables and their groups.
_SETTINGS = (
    *("/runtime", "/objective", "/objectives", "/serving", "/checkpoint", "/checkpoint_plan"),
    *_fields("model", ModelSpec.model_fields, "tables"),
    *_fields("constraints", JointConstraintsSpec.model_fields, "same_rank", "apart"),
)
_USES_INDEX_DEDUP = {"off": False, "on": True, "auto": None}


def to_domain(state: SpecState, issues: IssueCollector) -> SpecState:
    """Return the tables, the cluster and the problem of a spec; what has an issue is left out.

    Without any issue, all of the spec is in the problem. Otherwise the problem has the sound tables alone, and there is
    none if one of its settings is not known: it shows what else is wrong, and is never solved.
    """
    cluster, groups, tables = None, None, tables_of(state, issues)
    if state.hardware is not None and issues.is_sound(*state.rank_fields, *_RANK_SETTINGS):
        cluster = _cluster(state.spec.hardware, state.hardware)
        groups = _replica_groups(state.spec.hardware, cluster)
        if groups is not None and groups.is_decided:
            cluster = groups.cluster_of(groups.sizes[0])
        pins = {where: pin for where, table in state.written_tables() if (pin := table.constraints.pinned)}
        if pins and issues.is_sound("/runtime"):
            tables = pin_tables(state, tables, pins, cluster, issues)
    state = replace(state, cluster=cluster, tables=tables)
    repeated = state.originals.repeated_names()
    tables = {where: table for where, table in tables.items() if table.name not in repeated}
    if cluster is None or not tables or not (state.originals.has_all_groups and issues.is_sound(*_SETTINGS)):
        return state
    samples = state.spec.model.batch_size_per_rank or 0  # of a request nothing is timed
    dense = dense_of(state.spec.model.dense, samples_per_rank=samples, hardware=cluster.hardware, issues=issues)
    names, is_partial = [table.name for table in tables.values()], issues.num_issues > 0
    problem = _problem(
        state.spec,
        tuple(tables.values()),
        cluster,
        same_rank=tuple(group for _, group in state.group_indices("same_rank", names, is_partial=is_partial) if group),
        apart=tuple(group for _, group in state.group_indices("apart", names, is_partial=is_partial) if group),
        dense=dense,
        groups=groups,
    )
    if state.of_checkpoint is not None:
        problem = with_checkpoint_plan(problem, state.of_checkpoint.plan)
    return replace(state, problem=problem)


def _cluster(spec: HardwareSpec, hardware: Hardware) -> Cluster:
    return Cluster(
        hardware=hardware,
        num_hosts=spec.num_hosts,
        ranks_per_host=spec.ranks_per_host or hardware.ranks_per_host,
        pod_size=spec.pod_size,
        hbm_bytes_by_rank=_by_rank(spec.overrides.hbm_bytes_by_rank),
        relative_speed_by_rank=_by_rank(spec.overrides.relative_speed_by_rank),
    )


def _replica_groups(spec: HardwareSpec, job: Cluster) -> ReplicaGroups | None:
    """Return the sharding groups of a job, which pass the checks of a spec; ``None`` without any."""
    given = spec.replica_groups
    if given is None:
        return None
    size, contiguous = given.sharding_group_size, given.use_inter_host_allreduce
    sizes = ReplicaGroups.sizes_of(job, contiguous=contiguous) if size == "auto" else size
    return ReplicaGroups(
        job=job,
        sizes=tuple(sorted({sizes} if isinstance(sizes, int) else {int(one) for one in sizes})),
        sync_interval_steps=given.sync_interval_steps,
        include_optimizer_state=given.include_optimizer_state,
        use_inter_host_allreduce=contiguous,
    )


def _problem(
    spec: SpecDocument,
    tables: tuple[Table, ...],
    cluster: Cluster,
    *,
    same_rank: tuple[frozenset[int], ...],
    apart: tuple[frozenset[int], ...],
    dense: Dense,
    groups: ReplicaGroups | None,
) -> Problem:
    """Return what a spec asks for; the groups are indices of ``tables``."""
    return Problem(
        tables=tables,
        cluster=cluster,
        batch_size_per_rank=spec.model.batch_size_per_rank,
        serving=None if spec.serving is None else serving_of(spec.serving),
        forward_comm_dtype=spec.model.forward_comm_dtype,
        backward_comm_dtype=spec.model.backward_comm_dtype,
        output_dtype=spec.model.output_dtype,
        dense=dense,
        stash=None if spec.model.stash is None else _stash(spec.model.stash),
        pipeline=spec.model.pipeline,
        reservation=_reservation(spec),
        same_rank=same_rank,
        apart=apart,
        runtime=spec.runtime,
        objective=spec.objective,
        goals=goals_of(spec.objectives or []),
        counts_starts=spec.count_starts,
        checkpoint=None if spec.checkpoint is None else checkpoint_of(spec.checkpoint),
        replica_groups=groups,
        use_index_dedup=_USES_INDEX_DEDUP[spec.model.use_index_dedup],
    )


def _reservation(spec: SpecDocument) -> Reservation:
    margin = Reservation(
        hbm_fraction=spec.constraints.reserved_hbm_fraction,
        ddr_fraction=spec.constraints.reserved_ddr_fraction,
        collective_bytes=spec.constraints.reserved_collective_bytes or 0.0,
    )
    if spec.serving is None:
        return margin
    return replace(margin, dense_multiplier=SERVING_DENSE_MULTIPLIER, input_copies=SERVING_INPUT_COPIES)


def _stash(spec: StashSpec) -> Stash:
    return Stash(
        tables=None if spec.tables is None else frozenset(spec.tables),
        link_share=spec.link_share,
        max_wait_seconds=spec.max_wait_seconds,
    )


def _by_rank(numbers: list[float] | None) -> tuple[float, ...] | None:
    return None if numbers is None else tuple(numbers)
